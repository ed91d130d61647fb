use super::*;

/// An extension, as written in the standard.
fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &length(content), content].concat()
}

fn length(content: &[u8]) -> [u8; 2] {
    u16::try_from(content.len()).expect("short").to_be_bytes()
}

fn name_entry(name: &[u8]) -> Vec<u8> {
    [&[0][..], &length(name), name].concat()
}

fn sni(name: &[u8]) -> Vec<u8> {
    let list = name_entry(name);
    extension(0, &[&length(&list)[..], &list].concat())
}

fn body(extensions: &[Vec<u8>]) -> Vec<u8> {
    let all = extensions.concat();
    let mut body = [&[3, 3][..], &[9; 32], &[0], &[0, 2, 0x13, 1], &[1, 0]].concat();
    body.extend(length(&all));
    body.extend(all);
    body
}

/// Handshake header and records of at most `chunk` bytes.
fn records(body: &[u8], chunk: usize) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("short").to_be_bytes();
    let message = [&[1][..], &length[1..], body].concat();
    let record = |part: &[u8]| [&[22, 3, 1][..], &self::length(part), part].concat();
    message.chunks(chunk).flat_map(record).collect()
}

fn read(bytes: &[u8]) -> Option<Result<ClientHello, HelloError>> {
    HelloReader::default().read(bytes)
}

fn name(text: &str) -> ServerName {
    ServerName::Name(text.parse().expect("a name"))
}

#[test]
fn the_name_is_read_in_whatever_pieces_it_comes() {
    let alpn = extension(16, b"\0\x0c\x02h2\x08http/1.1");
    let body = body(&[extension(0x0a0a, &[]), sni(b"Example.org"), alpn, extension(21, &[0; 9000])]);
    for chunk in [1, 5, 1000, 1 << 14] {
        let bytes = records(&body, chunk);
        let mut reader = HelloReader::default();
        let mut found = (0..=bytes.len()).filter_map(|end| reader.read(&bytes[..end]).map(|it| (end, it)));
        let (end, hello) = found.next().expect("a message");
        let hello = hello.expect("sound");
        assert_eq!(end, bytes.len(), "not before it is complete");
        assert_eq!((hello.server_name, hello.has_encrypted_name), (name("example.org"), false));
        assert_eq!(hello.protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    }
}

#[test]
fn what_follows_the_message_is_not_read() {
    let bytes = [records(&body(&[sni(b"a.org")]), 1 << 14), vec![23, 3, 3, 0, 1, 0]].concat();
    assert_eq!(read(&bytes).expect("complete").expect("sound").server_name, name("a.org"));
}

#[test]
fn a_name_that_is_missing_an_address_or_encrypted_is_told_apart() {
    let server_name = |extensions: &[Vec<u8>]| {
        read(&records(&body(extensions), 1 << 14)).expect("complete").expect("sound")
    };
    assert_eq!(server_name(&[]).server_name, ServerName::Missing);
    for address in [&b"127.0.0.1"[..], b"::1", b"[::1]", b"2130706433", b"0x7f.1"] {
        assert_eq!(server_name(&[sni(address)]).server_name, ServerName::Address);
    }
    for kind in [0xfe0d, 0xffce] {
        let hello = server_name(&[sni(b"a.org"), extension(kind, &[0, 1, 2])]);
        assert!(hello.has_encrypted_name && hello.server_name == name("a.org"));
    }
    let without_extensions = [&[3, 3][..], &[9; 32], &[0], &[0, 2, 0x13, 1], &[1, 0]].concat();
    let hello = read(&records(&without_extensions, 100)).expect("complete").expect("sound");
    assert_eq!(hello.server_name, ServerName::Missing);
}

#[test]
fn whatever_could_be_read_in_two_ways_is_refused() {
    let two = [name_entry(b"a.org"), name_entry(b"b.org")].concat();
    let bad: Vec<(&str, Vec<u8>)> = vec![
        ("two extensions with a name", body(&[sni(b"a.org"), sni(b"b.org")])),
        ("another extension twice", body(&[sni(b"a.org"), extension(5, &[]), extension(5, &[])])),
        ("two names", body(&[extension(0, &[&length(&two)[..], &two].concat())])),
        ("no name in the list", body(&[extension(0, &[0, 0])])),
        ("no list", body(&[extension(0, &[])])),
        ("an empty name", body(&[sni(b"")])),
        ("a dot at the end", body(&[sni(b"a.org.")])),
        ("NUL", body(&[sni(b"a.org\0.evil.org")])),
        ("not ASCII", body(&[sni("bücher.org".as_bytes())])),
        ("no text", body(&[sni(b"\xff\xfe")])),
        ("a name of another kind", body(&[extension(0, &[0, 4, 1, 0, 1, b'a'])])),
        ("more behind the list", body(&[extension(0, &[0, 4, 0, 0, 1, b'a', 0])])),
        ("an empty protocol", body(&[extension(16, &[0, 1, 0])])),
        ("more behind the extensions", [body(&[sni(b"a.org")]), vec![0]].concat()),
        ("no ciphers", [&[3, 3][..], &[9; 32], &[0], &[0, 0], &[1, 0]].concat()),
        ("half a cipher", [&[3, 3][..], &[9; 32], &[0], &[0, 1, 0x13], &[1, 0]].concat()),
        ("a long session", [&[3, 3][..], &[9; 32], &[33], &[0; 33], &[0, 2, 0x13, 1], &[1, 0]].concat()),
        ("nothing", Vec::new()),
    ];
    for (what, body) in bad {
        assert_eq!(read(&records(&body, 1 << 14)), Some(Err(HelloError::Malformed)), "{what}");
    }
    let mut trailing = records(&body(&[sni(b"a.org")]), 1 << 14);
    trailing[4] += 1;
    trailing.push(0);
    assert_eq!(read(&trailing), Some(Err(HelloError::Malformed)), "another message in the record");
}

#[test]
fn other_protocols_and_messages_without_end_are_refused_early() {
    for bytes in [
        &b"GET / HTTP/1.1"[..],
        b"SSH-2.0-x",
        b"\x80\x2e\x01\x03\x01",
        b"\x15\x03\x03\0\x02\x02\x28",
        b"\x16\x02",
    ] {
        assert_eq!(read(bytes), Some(Err(HelloError::NotTls)), "{}", bytes.escape_ascii());
    }
    assert_eq!(read(&[22, 3, 1, 0, 0]), Some(Err(HelloError::NotTls)), "an empty record");
    assert_eq!(read(&[22, 3, 1, 0xff, 0xff]), Some(Err(HelloError::NotTls)), "a record of 64 KiB");
    assert_eq!(read(&[22, 3, 1, 0, 4, 1, 0, 0x40, 1]), Some(Err(HelloError::TooLong)));
    assert_eq!(read(&[22, 3, 1, 0, 1, 2]), Some(Err(HelloError::Malformed)), "another message");
    let mut interrupted = records(&body(&[sni(b"a.org")]), 10);
    interrupted[15] = 23;
    assert_eq!(read(&interrupted), Some(Err(HelloError::Malformed)), "another record in between");
}

#[test]
fn records_before_a_second_message_are_passed_over() {
    let second = records(&body(&[sni(b"b.org")]), 40);
    let bytes = [&[23, 3, 3, 0, 2, 1, 2][..], &[20, 3, 3, 0, 1, 1], &second].concat();
    let hello = HelloReader::default().read_after(&bytes, &[20, 23]).expect("complete").expect("sound");
    assert_eq!(hello.server_name, name("b.org"));
    assert_eq!(read(&bytes), Some(Err(HelloError::NotTls)), "not at the beginning");
}
