//! HTTP without TLS: what of a connection reaches the server.

use std::io::Write as _;

use super::probe::{connect, read_all, say};
use super::world::{Rules, World, case};

/// Sends this to the server of the allowed name.
fn send(world: &World, text: &str) -> String {
    world.inside(|| say("allowed.example", 80, text.as_bytes()))
}

#[test]
fn ambiguous_requests_reach_no_server() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        let post =
            |headers: &str| format!("POST / HTTP/1.1\r\nHost: allowed.example\r\n{headers}\r\n\r\n0\r\n\r\n");
        world.internet.seen();
        for text in [
            post("Content-Length: 5\r\nTransfer-Encoding: chunked"),
            post("Content-Length: 5\r\nContent-Length: 5"),
            post("Content-Length: 5\r\nContent-Length: 50"),
            post("Transfer-Encoding: chunked, x"),
            post("Transfer-Encoding: x"),
            post("Transfer-Encoding : chunked"),
            post("X: a\r\n b"),
            post("X: a\rb"),
            post("X: a\nY: b"),
            post("X: a\0b"),
            post("Host: evil.example"),
            post("Content-Length: +5"),
            "GET / HTTP/1.1\r\n\r\n".to_owned(),
            "GET / HTTP/1.0\r\n\r\n".to_owned(),
            "GET http://allowed.example@evil.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n".to_owned(),
            "GET /a b HTTP/1.1\r\nHost: allowed.example\r\n\r\n".to_owned(),
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        ] {
            let answer = send(&world, &text);
            assert!(answer.starts_with("HTTP/1.1 400 "), "{text:?}: {answer}");
        }
        assert_eq!(world.internet.requests(), [""; 0]);
        assert_eq!(world.reasons().len(), 17);
    });
}

#[test]
fn another_host_over_the_same_connection_is_refused() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example", "allowed.example:40000"]));
        for text in [
            "GET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: allowed.example:81\r\n\r\n",
            "GET http://other.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
            "GET http://allowed.example:81/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
        ] {
            let answer = send(&world, text);
            assert!(answer.starts_with("HTTP/1.1 421 "), "{text:?}: {answer}");
        }
        let tunnel = send(&world, "CONNECT other.example:443 HTTP/1.1\r\nHost: allowed.example\r\n\r\n");
        assert!(tunnel.starts_with("HTTP/1.1 403 "), "{tunnel}");
        let trace = send(&world, "TRACE / HTTP/1.1\r\nHost: allowed.example\r\n\r\n");
        assert!(trace.starts_with("HTTP/1.1 403 "), "{trace}");
        assert_eq!(world.internet.requests(), [""; 0]);
        assert_eq!(world.reasons()[4..], ["tunnel", "method"]);
        let whole = send(&world, "GET http://Allowed.example/x HTTP/1.1\r\nHost: allowed.example:80\r\n\r\n");
        assert!(whole.ends_with("hello from outside"), "{whole}");
        assert!(world.internet.requests()[0].starts_with("GET /x HTTP/1.1\r\nHost: allowed.example:80\r\n"));
    });
}

#[test]
fn one_request_passes_for_each_connection_and_nothing_behind_it() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        let behind = "GET /secret HTTP/1.1\r\nHost: other.example\r\n\r\n";
        for first in [
            "GET /a HTTP/1.1\r\nHost: allowed.example\r\nConnection: keep-alive\r\n\r\n",
            "POST /a HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 4\r\n\r\nbody",
            "POST /a HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: allowed.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n\r\n",
        ] {
            let answer = send(&world, &format!("{first}{behind}"));
            assert!(answer.ends_with("hello from outside"), "{answer}");
            let requests = world.internet.requests();
            assert_eq!(requests.len(), 1);
            assert!(!requests[0].contains("secret") && !requests[0].contains("Upgrade"), "{}", requests[0]);
            assert!(requests[0].contains("\r\nConnection: close\r\n"), "{}", requests[0]);
        }
        let broken = "POST /a HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\n\r\n4;x\r\nbody\r\n0\r\n\r\n";
        assert_eq!(send(&world, broken), "<reset>");
    });
}

#[test]
fn a_websocket_passes_once_the_server_agrees() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        let (head, echo) = world.inside(|| {
            let mut stream = connect("allowed.example", 80);
            let ask = "GET /ws HTTP/1.1\r\nHost: allowed.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
            stream.write_all(ask.as_bytes()).unwrap();
            let mut bytes = [0; 100];
            let read = std::io::Read::read(&mut stream, &mut bytes).unwrap();
            let head = String::from_utf8_lossy(&bytes[..read]).into_owned();
            stream.write_all(b"\x81\x02hi").unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            (head, read_all(&mut stream).0)
        });
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert_eq!(echo, b"\x81\x02hi");
        let denied = world.inside(|| {
            let ask =
                "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
            say("allowed.example", 80, ask.as_bytes())
        });
        assert!(denied.starts_with("HTTP/1.1 421 "), "{denied}");
    });
}

#[test]
fn methods_and_paths_are_judged_in_the_form_that_is_forwarded() {
    case(|| {
        let rules =
            Rules { requests: vec![("http://allowed.example", "GET", "/repos/me/**")], ..Rules::default() };
        let world = World::new(&rules);
        let ask = |method: &str, path: &str| {
            send(&world, &format!("{method} {path} HTTP/1.1\r\nHost: allowed.example\r\n\r\n"))
        };
        for (path, forwarded) in
            [("/repos/me/x?q=/../", "/repos/me/x?q=/../"), ("/repos/%6De/%7ex%2a", "/repos/me/~x%2A")]
        {
            assert!(ask("GET", path).ends_with("hello from outside"), "{path}");
            assert!(world.internet.requests()[0].starts_with(&format!("GET {forwarded} HTTP/1.1\r\n")));
        }
        assert!(ask("POST", "/repos/me/x").starts_with("HTTP/1.1 403 "));
        assert!(ask("GET", "/gists").starts_with("HTTP/1.1 403 "));
        for path in [
            "/repos/me/../you",
            "/repos/me/%2e%2e/you",
            "/repos/me//x",
            "/repos/me/%2fx",
            "/repos/me/;x",
            "/repos/me/\\x",
            "/repos/me/%252e",
            "/repos/me/.",
            "*",
        ] {
            let answer = ask("GET", path);
            assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer}");
        }
        assert_eq!(world.internet.requests(), [""; 0]);
        assert_eq!(world.reasons()[..2], ["method", "path"]);
    });
}

#[test]
fn an_answer_that_comes_before_the_end_of_the_request_arrives() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        for _ in 0..10 {
            let answer = world.inside(|| {
                let mut stream = connect("allowed.example", 80);
                let head =
                    "POST /early HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 100000000\r\n\r\n";
                stream.write_all(head.as_bytes()).unwrap();
                let piece = [7; 8192];
                for _ in 0..200 {
                    // The server closes at some point.
                    if stream.write_all(&piece).is_err() {
                        break;
                    }
                }
                String::from_utf8_lossy(&read_all(&mut stream).0).into_owned()
            });
            assert!(answer.contains("HTTP/1.1 200 OK") && answer.contains("hello from outside"), "{answer}");
        }
    });
}
