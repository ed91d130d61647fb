use super::*;
use crate::dns::Refusal;

fn pool() -> Pool {
    Pool::new("28.64.0.0/12".parse().expect("a network"), 100).expect("a pool")
}

/// A question as a client sends it, written by hand.
fn message(labels: &[&[u8]], kind: u16, options: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xab, 0xcd, 0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, u8::from(!options.is_empty())];
    for label in labels {
        bytes.push(u8::try_from(label.len()).expect("short"));
        bytes.extend(*label);
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend(options);
    bytes
}

fn asked(labels: &[&[u8]], kind: u16, pool: &mut Pool) -> Answer {
    answer(&Question::read(&message(labels, kind, &[])).expect("a question"), pool)
}

#[test]
fn an_answer_is_what_a_client_expects_byte_for_byte() {
    let mut pool = pool();
    let sent = message(&[b"GitHub", b"com"], 1, &[0, 0, 41, 0x10, 0, 0, 0, 0x80, 0, 0, 3, 1, 2, 3]);
    let question = Question::read(&sent).expect("a question");
    let address = pool.address_of(&"github.com".parse().expect("a name")).expect("an address");
    let mut expected = b"\xab\xcd\x81\x80\0\x01\0\x01\0\0\0\x01\x06GitHub\x03com\0\0\x01\0\x01".to_vec();
    expected.extend(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04");
    expected.extend(address.octets());
    expected.extend(b"\0\0\x29\x04\xd0\0\0\0\0\0\0");
    assert_eq!(answer(&question, &mut pool).encode(&question), expected);
}

#[test]
fn only_addresses_of_names_and_names_of_addresses_are_known() {
    let mut pool = pool();
    let Answer::Address(address) = asked(&[b"a", b"example"], 1, &mut pool) else { panic!("no address") };
    // AAAA, TXT, NULL, MX, ANY, HTTPS, SVCB, SRV, AXFR.
    for kind in [28, 16, 10, 15, 255, 65, 64, 33, 252] {
        assert_eq!(asked(&[b"a", b"example"], kind, &mut pool), Answer::NoData, "{kind}");
    }
    let parts: Vec<String> = address.octets().iter().rev().map(ToString::to_string).collect();
    let mut labels: Vec<&[u8]> = parts.iter().map(String::as_bytes).collect();
    labels.extend([b"in-addr".as_slice(), b"arpa"]);
    assert_eq!(asked(&labels, 12, &mut pool), Answer::Pointer("a.example".parse().expect("a name")));
    assert_eq!(asked(&[b"1", b"0", b"0", b"10", b"in-addr", b"arpa"], 12, &mut pool), Answer::NoSuchName);
}

#[test]
fn names_that_public_dns_does_not_have_do_not_exist() {
    let mut pool = pool();
    for labels in [
        &[b"intranet".as_slice()][..],
        &[],
        &[b"printer", b"local"],
        &[b"x", b"onion"],
        &[b"x", b"invalid"],
        &[b"x", b"localhost"],
        &[b"db", b"internal"],
        &[b"a b", b"example"],
        &[b"a\0", b"example"],
        &[b"a.b", b"example"],
        &[b"\xff", b"example"],
        &[b"-a", b"example"],
        &[b"127", b"1"],
    ] {
        assert_eq!(asked(labels, 1, &mut pool), Answer::NoSuchName, "{labels:?}");
    }
    assert!(pool.is_empty());
    assert!(matches!(asked(&[b"metadata", b"google", b"internal"], 1, &mut pool), Answer::Address(_)));
}

#[test]
fn what_is_no_question_gets_an_error_or_nothing() {
    let sound = message(&[b"a", b"example"], 1, &[]);
    let with = |at: usize, byte: u8| {
        let mut bytes = sound.clone();
        bytes[at] = byte;
        Question::read(&bytes).err()
    };
    assert_eq!(with(2, 0x81), Some(Refusal::Silence), "an answer");
    assert_eq!(with(2, 0x29), Some(Refusal::Code { id: 0xabcd, code: 4 }), "another operation");
    let form = Some(Refusal::Code { id: 0xabcd, code: 1 });
    assert_eq!(with(5, 2), form, "two questions");
    assert_eq!(with(7, 1), form, "with an answer");
    assert_eq!(with(11, 1), form, "an option that is not there");
    assert_eq!(with(12, 0xc0), form, "a pointer");
    assert_eq!(with(12, 64), form, "a long label");
    assert_eq!(with(sound.len() - 1, 3), form, "another class");
    for length in 0..sound.len() {
        let expected = if length < 12 { Some(Refusal::Silence) } else { form };
        assert_eq!(Question::read(&sound[..length]).err(), expected, "{length}");
    }
    assert_eq!(Question::read(&[sound.clone(), vec![0]].concat()).err(), form, "more behind it");
    assert_eq!(Question::read(&vec![0; 2000]).err(), Some(Refusal::Silence));
    let long = [b'a'; 63];
    assert_eq!(Question::read(&message(&[&long[..]; 4], 1, &[])).err(), form, "a name of 257 bytes");
    assert_eq!(form.and_then(Refusal::encode), Some(b"\xab\xcd\x80\x81\0\0\0\0\0\0\0\0".to_vec()));
}
