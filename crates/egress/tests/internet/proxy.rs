//! Clients that use the proxy of the gate: the same verdicts.

use std::io::{Read as _, Write as _};

use super::probe::{connect_to, over_tls, read_all, say_to};
use super::world::{PROXY, Rules, World, case};

fn ask(world: &World, bytes: &[u8]) -> String {
    world.inside(|| say_to(PROXY.parse().unwrap(), bytes))
}

fn connect_request(authority: &str) -> String {
    format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
}

fn socks_name(name: &[u8], port: u16) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    [&[5, 1, 0, 5, 1, 0, 3, length][..], name, &port.to_be_bytes()].concat()
}

#[test]
fn a_tunnel_leads_where_a_connection_may() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        let authority = world.internet.authority.clone();
        let through = |name: &str, inner: &str| {
            world.inside(|| {
                let mut stream = connect_to(PROXY);
                stream.write_all(connect_request(&format!("{name}:443")).as_bytes()).unwrap();
                let mut head = [0; 39];
                stream.read_exact(&mut head).unwrap();
                assert!(head.starts_with(b"HTTP/1.1 200 "));
                over_tls(stream, inner, &authority)
            })
        };
        assert!(through("ALLOWED.example.", "allowed.example").unwrap().ends_with("hello from outside"));
        assert!(through("allowed.example", "other.example").unwrap_err().contains("UnrecognisedName"));
        world.internet.seen();
        for authority in ["evil.example:443", "allowed.example:22", "allowed.example:8443"] {
            let answer = ask(&world, connect_request(authority).as_bytes());
            assert!(answer.starts_with("HTTP/1.1 403 "), "{authority}: {answer}");
        }
        let fronted = "CONNECT evil.example:443 HTTP/1.1\r\nHost: allowed.example:443\r\n\r\n";
        assert!(ask(&world, fronted.as_bytes()).starts_with("HTTP/1.1 421 "));
        world.assert_nothing_left();
    });
}

#[test]
fn whole_urls_are_fetched_from_the_host_they_name() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        let get = |url: &str, host: &str| {
            ask(&world, format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
        };
        assert!(get("http://allowed.example/x", "allowed.example").ends_with("hello from outside"));
        assert!(world.internet.requests()[0].starts_with("GET /x HTTP/1.1\r\n"));
        for (url, host, status) in [
            ("http://evil.example/", "evil.example", "403"),
            ("http://evil.example/", "allowed.example", "403"),
            ("http://allowed.example/", "evil.example", "421"),
            ("https://allowed.example/", "allowed.example", "400"),
            ("/", "allowed.example", "400"),
            ("http://allowed.example@evil.example/", "allowed.example", "400"),
            ("http://evil.example#@allowed.example/", "allowed.example", "400"),
            ("http://allowed.example\\@evil.example/", "allowed.example", "400"),
            ("http://allowed%2eexample/", "allowed.example", "400"),
        ] {
            let answer = get(url, host);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{url} {host}: {answer}");
        }
        world.assert_nothing_left();
    });
}

#[test]
fn no_spelling_of_an_address_of_the_machine_passes() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example", "*.example.org:*"]));
        for host in [
            "127.0.0.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "0.0.0.0",
            "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "[fe80::1%lo]",
            "[::1]",
            "169.254.169.254",
            "10.0.0.1",
            "93.184.216.99",
        ] {
            let answer = ask(&world, connect_request(&format!("{host}:443")).as_bytes());
            assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
            assert_eq!(world.reasons(), ["private-address"], "{host}");
            if !host.starts_with('[') {
                let answer = ask(&world, &socks_name(host.as_bytes(), 443));
                assert_eq!(answer.as_bytes()[..4], [5, 0, 5, 2], "{host}");
                world.reasons();
            }
        }
        world.assert_nothing_left();
    });
}

#[test]
fn names_that_are_none_are_refused_and_spellings_of_one_are_the_same() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        let long = [b'a'; 255];
        for name in [
            &b"allowed.example\0.evil.example"[..],
            b"allowed.example%00.evil",
            b"allowed .example",
            b"allowed.example\r\n",
            b"",
            b".",
            b"allowed..example",
            b"\xc3\xa4.example",
            b"evil@allowed.example",
            &long,
        ] {
            let answer = ask(&world, &socks_name(name, 443));
            assert_eq!(answer.as_bytes()[..4], [5, 0, 5, 1], "{}", name.escape_ascii());
            let connect = [b"CONNECT ", name, b":443 HTTP/1.1\r\nHost: x.example\r\n\r\n"].concat();
            let answer = ask(&world, &connect);
            assert!(answer.starts_with("HTTP/1.1 4"), "{}: {answer}", name.escape_ascii());
        }
        world.assert_nothing_left();
        let answer = world.inside(|| {
            let mut stream = connect_to(PROXY);
            stream.write_all(&socks_name(b"ALLOWED.example.", 80)).unwrap();
            let mut reply = [0; 12];
            stream.read_exact(&mut reply).unwrap();
            assert_eq!(reply[..4], [5, 0, 5, 0]);
            stream.write_all(b"GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n").unwrap();
            String::from_utf8(read_all(&mut stream).0).unwrap()
        });
        assert!(answer.ends_with("hello from outside"), "{answer}");
    });
}
