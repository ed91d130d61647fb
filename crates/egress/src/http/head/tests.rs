use super::*;

fn read(text: &str) -> Result<RequestHead, HeadError> {
    RequestHead::read(text.as_bytes())
}

fn with(headers: &str) -> Result<RequestHead, HeadError> {
    read(&format!("POST /a HTTP/1.1\r\nHost: a.org\r\n{headers}\r\n"))
}

fn host(text: &str) -> Host {
    text.parse().expect("a host")
}

#[test]
fn a_request_is_read_and_forwarded_as_the_last_of_its_connection() {
    let text = "GET /a?b HTTP/1.1\r\nHost: A.org:8080\r\nAccept:*/* \r\nConnection: keep-alive, Foo\r\nX-Y: \t z\r\n\
                Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic x\r\nTE: trailers\r\n\r\n";
    let head = read(text).expect("sound");
    assert_eq!((head.method.as_str(), &head.host, head.port), ("GET", &host("a.org"), Some(8080)));
    assert_eq!(head.target, TargetForm::Origin("/a?b".to_owned()));
    assert_eq!(head.body, Body::Length(0));
    let forwarded =
        "GET /a?b HTTP/1.1\r\nHost: A.org:8080\r\nAccept: */*\r\nX-Y: z\r\nConnection: close\r\n\r\n";
    assert_eq!(String::from_utf8(head.forward("/a?b")).expect("text"), forwarded);
}

#[test]
fn a_websocket_stays_one_and_other_upgrades_do_not() {
    let ask = |extra: &str| read(&format!("GET / HTTP/1.1\r\nHost: a.org\r\n{extra}\r\n")).expect("sound");
    let head = ask("Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n");
    assert!(head.is_websocket);
    let forwarded = String::from_utf8(head.forward("/")).expect("text");
    assert!(forwarded.ends_with("Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"), "{forwarded}");
    for extra in [
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n",
        "Upgrade: websocket\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n",
    ] {
        let head = ask(extra);
        assert!(!head.is_websocket, "{extra}");
        let forwarded = String::from_utf8(head.forward("/")).expect("text");
        assert!(!forwarded.contains("Upgrade") && !forwarded.contains("HTTP2"), "{forwarded}");
    }
}

#[test]
fn targets_have_four_forms() {
    let target =
        |line: &str| read(&format!("{line} HTTP/1.1\r\nHost: a.org\r\n\r\n")).map(|head| head.target);
    let absolute = |scheme, host: &str, port, path: &str| {
        Ok(TargetForm::Absolute { scheme, host: self::host(host), port, path: path.to_owned() })
    };
    assert_eq!(target("GET http://B.org:81/x?y"), absolute(Scheme::Http, "b.org", Some(81), "/x?y"));
    assert_eq!(target("GET HTTP://b.org"), absolute(Scheme::Http, "b.org", None, "/"));
    assert_eq!(target("GET https://b.org?q"), absolute(Scheme::Https, "b.org", None, "/?q"));
    assert_eq!(target("GET http://[::1]:80/"), absolute(Scheme::Http, "[::1]", Some(80), "/"));
    assert_eq!(target("CONNECT b.org:443"), Ok(TargetForm::Authority { host: host("b.org"), port: 443 }));
    assert_eq!(target("CONNECT [::1]:443"), Ok(TargetForm::Authority { host: host("::1"), port: 443 }));
    assert_eq!(target("OPTIONS *"), Ok(TargetForm::Asterisk));
    for line in [
        "GET *",
        "CONNECT b.org",
        "CONNECT b.org:",
        "CONNECT b.org:0",
        "CONNECT b.org:65536",
        "CONNECT /a",
        "CONNECT b.org:443/x",
        "GET b.org",
        "GET ftp://b.org/",
        "GET http:///",
        "GET http://a.org@evil.org/",
        "GET http://evil.org#@a.org/",
        "GET http://a.org\\@evil.org/",
        "GET http://a.org%2eevil.org/",
        "GET http://a.org:x/",
        "GET http://a b/",
        "GET http://a.org:80:81/",
        "CONNECT a.org\0:443",
        "CONNECT a%00.org:443",
        "CONNECT ::1:443",
        "GET /a\tb",
        "GET /ä",
        "GET /a#b",
        "CONNECT u@b.org:443",
        "CONNECT [a.org]:443",
        "GET http://[::1]x/",
    ] {
        assert!(target(line).is_err(), "{line}");
    }
}

#[test]
fn whatever_smuggles_a_second_request_is_refused() {
    for headers in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked, x\r\n",
        "Transfer-Encoding: x, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer\u{b}Encoding: chunked\r\n",
        "X: a\r\n b\r\n",
        "X: a\r\n\tb\r\n",
        " X: a\r\n",
        "X: a\rb\r\n",
        "X: a\nY: b\r\n",
        "X: a\0b\r\n",
        "X: a\u{7f}\r\n",
        "Transfer-Encoding: \u{c}chunked\r\n",
        "Content-Length: 5\u{c}\r\n",
        "X\r\n",
        ": a\r\n",
        "X Y: a\r\n",
        "X(: a\r\n",
        "Host: b.org\r\n",
        "\r\nX: a\r\n",
    ] {
        assert!(matches!(with(headers), Err(HeadError::Malformed(_))), "{headers:?}: {:?}", with(headers));
    }
    assert_eq!(with("Transfer-Encoding: Chunked\r\n").expect("sound").body, Body::chunked());
    assert_eq!(with("content-length: 12\r\n").expect("sound").body, Body::Length(12));
    let chunked_in_1_0 = "POST / HTTP/1.0\r\nHost: a.org\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(read(chunked_in_1_0).is_err());
}

#[test]
fn other_versions_and_lines_are_no_http() {
    for line in [
        "GET /",
        "GET / HTTP/2.0",
        "GET / HTTP/1.2",
        "GET / HTTP/1.1 ",
        "GET  / HTTP/1.1",
        " GET / HTTP/1.1",
        "GET / http/1.1",
        "G(T / HTTP/1.1",
        "PRI * HTTP/2.0",
        "GET\t/\tHTTP/1.1",
        "",
    ] {
        let error = read(&format!("{line}\r\nHost: a.org\r\n\r\n")).expect_err(line);
        assert!(matches!(error, HeadError::NotHttp | HeadError::Malformed(_)), "{line}");
    }
    for text in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
    ] {
        assert!(read(text).is_err(), "{text:?}");
    }
}

#[test]
fn the_end_of_a_head_is_found_in_whatever_pieces_it_comes() {
    let bytes = b"GET / HTTP/1.1\r\nHost: a.org\r\n\r\nbody";
    let mut reader = HeadReader::default();
    let found: Vec<_> = (0..=bytes.len()).filter_map(|end| reader.end(&bytes[..end], 100)).collect();
    assert_eq!(found.first(), Some(&Ok(bytes.len() - 4)));
    let end = |bytes: &[u8], most| HeadReader::default().end(bytes, most);
    assert_eq!(end(b"GET / HTTP/1.1\r\nX: 1\r\n", 10), Some(Err(HeadError::TooLong)));
    assert!(matches!(end(b"GET / HTTP/1.1\nHost", 100), Some(Err(HeadError::Malformed(_)))));
    for bytes in [&b"SSH"[..0], b"GET"] {
        assert_eq!(end(bytes, 100), None);
    }
    for bytes in [&b"\x16\x03\x01"[..], b"\r\nGET /", b" GET", b"get /"] {
        assert_eq!(end(bytes, 100), Some(Err(HeadError::NotHttp)));
    }
}

/// A second reader of heads, on text: what it accepts must have the same method, host and length.
fn naive(text: &str) -> Option<(String, String, Option<u64>)> {
    let (first, rest) = text.strip_suffix("\r\n\r\n")?.split_once("\r\n")?;
    let fields: Vec<(String, String)> = rest
        .split("\r\n")
        .map(|line| {
            line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect::<Option<_>>()?;
    let value = |name: &str| fields.iter().find(|field| field.0 == name).map(|field| field.1.clone());
    Some((
        first.split(' ').next()?.to_owned(),
        value("host")?,
        value("content-length").map(|it| it.parse().unwrap_or(9)),
    ))
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_accepted_is_what_anyone_would_read(
        lines in proptest::collection::vec(
            "((Host|host)( )?: ?a\\.org|Content-Length: ?[0-9]{1,2}|X: [ -~]{0,5}|Transfer-Encoding: chunked|[ -~\\t]{0,6})", 0..5),
        separator in "(\r\n){5}|\n|\r\n",
    ) {
        let separator = if separator.len() > 2 { "\r\n" } else { &separator };
        let text = format!("GET / HTTP/1.1{separator}{}\r\n\r\n", lines.join(separator));
        if let Ok(head) = read(&text) {
            let (method, host, length) = naive(&text).expect("a plain head");
            proptest::prop_assert_eq!((method, host), (head.method.clone(), head.host.to_string()));
            let own = match head.body { Body::Length(length) => length, Body::Chunked(_) => 0 };
            proptest::prop_assert_eq!(own, length.unwrap_or(0));
            let again = RequestHead::read(&head.forward("/")).expect("its own form");
            proptest::prop_assert_eq!((again.host, again.body), (head.host, head.body));
        }
    }
}
