use super::*;

fn name(text: &str) -> HostName {
    text.parse().expect("a name")
}

/// A message written independently of the reader: header, the question, and records as given.
fn reply(flags: u16, question: &str, kind: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34];
    bytes.extend(flags.to_be_bytes());
    bytes.extend([0, 1, 0, u8::try_from(records.len()).expect("few"), 0, 0, 0, 0]);
    for label in question.split('.') {
        bytes.push(u8::try_from(label.len()).expect("short"));
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend(records.concat());
    bytes
}

fn record(owner: &[u8], kind: u16, live: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = owner.to_vec();
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend(live.to_be_bytes());
    bytes.extend(u16::try_from(data.len()).expect("short").to_be_bytes());
    bytes.extend(data);
    bytes
}

fn answered(bytes: &[u8]) -> Result<Found, StubError> {
    read(bytes, 0x1234, &name("a.example"), Family::V4)
}

#[test]
fn a_question_is_the_one_of_the_standard() {
    let expected = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x1c\0\x01";
    assert_eq!(query(0x1234, &name("A.example."), Family::V6), expected);
}

#[test]
fn addresses_are_found_behind_aliases() {
    let cname = record(b"\xc0\x0c", 5, 300, b"\x01B\x03cdn\xc0\x0e");
    let first = record(b"\x01b\x03CDN\x07example\0", 1, 20, &[93, 184, 216, 34]);
    let foreign = record(b"\x04evil\x07example\0", 1, 20, &[6, 6, 6, 6]);
    let second = record(b"\x01b\x03cdn\x07example\0", 1, 30, &[93, 184, 216, 35]);
    let found =
        answered(&reply(0x8180, "A.exAmple", 1, &[foreign, cname, first, second])).expect("an answer");
    let expected = ["93.184.216.34", "93.184.216.35"].map(|it| it.parse::<IpAddr>().expect("an address"));
    assert_eq!(found, Found { addresses: expected.to_vec(), seconds_to_live: 20 });
}

#[test]
fn loops_and_long_chains_of_aliases_end() {
    let one = record(b"\xc0\x0c", 5, 1, b"\x01b\x07example\0");
    let two = record(b"\x01b\x07example\0", 5, 1, b"\x01a\x07example\0");
    assert_eq!(answered(&reply(0x8180, "a.example", 1, &[one, two])).map(|it| it.addresses), Ok(Vec::new()));
    let itself = record(b"\xc0\x0c", 5, 1, b"\xc0\x0c");
    assert_eq!(answered(&reply(0x8180, "a.example", 1, &[itself])).map(|it| it.addresses), Ok(Vec::new()));
}

#[test]
fn pointers_lead_backwards_only() {
    let at = reply(0x8180, "a.example", 1, &[]).len();
    let own = u8::try_from(at).expect("short");
    for owner in [
        vec![0xc0, own],
        vec![0xc0, own + 2],
        vec![0xc3, 0xff],
        vec![1, b'x', 0xc0, own],
        vec![0x40],
        vec![0x80],
    ] {
        let bytes = reply(0x8180, "a.example", 1, &[record(&owner, 1, 1, &[1, 2, 3, 4])]);
        assert_eq!(answered(&bytes), Err(StubError::Malformed), "{owner:x?}");
    }
}

#[test]
fn an_answer_to_another_question_is_none() {
    let a = || vec![record(b"\xc0\x0c", 1, 1, &[1, 2, 3, 4])];
    let foreign = Err(StubError::Foreign);
    assert_eq!(answered(&reply(0x8180, "b.example", 1, &a())), foreign);
    assert_eq!(answered(&reply(0x8180, "a.example", 28, &a())), foreign);
    assert_eq!(answered(&reply(0x0180, "a.example", 1, &a())), foreign, "a question");
    assert_eq!(read(&reply(0x8180, "a.example", 1, &a()), 1, &name("a.example"), Family::V4), foreign);
    assert_eq!(answered(&[]), foreign);
    assert_eq!(answered(&reply(0x8380, "a.example", 1, &a())), Err(StubError::Truncated));
    assert_eq!(answered(&reply(0x8183, "a.example", 1, &[])), Err(StubError::NoSuchName));
    assert_eq!(answered(&reply(0x8182, "a.example", 1, &[])), Err(StubError::Code(2)));
}

#[test]
fn records_of_the_wrong_size_and_answers_cut_short_are_malformed() {
    let short = record(b"\xc0\x0c", 1, 1, &[1, 2, 3]);
    assert_eq!(answered(&reply(0x8180, "a.example", 1, &[short])), Err(StubError::Malformed));
    let padded = record(b"\xc0\x0c", 5, 1, b"\x01b\0zz");
    assert_eq!(answered(&reply(0x8180, "a.example", 1, &[padded])), Err(StubError::Malformed));
    let sound = reply(0x8180, "a.example", 1, &[record(b"\xc0\x0c", 1, 1, &[1, 2, 3, 4])]);
    for length in 0..sound.len() {
        assert!(answered(&sound[..length]).is_err(), "{length}");
    }
    let many: Vec<_> = (0..200).map(|last| record(b"\xc0\x0c", 1, 1, &[1, 2, 3, last])).collect();
    assert_eq!(answered(&reply(0x8180, "a.example", 1, &many)).map(|it| it.addresses.len()), Ok(16));
}
