//! TLS: the name in the clear must be the one that was dialled, whatever way it is said in.

use std::io::{Read as _, Write as _};

use super::hello::{extension, hello, retry, sni};
use super::probe::{address, connect, get_secure, get_tls, read_all};
use super::servers::Seen;
use super::world::{Rules, World, case};

/// The alert that answers a first message to the allowed name.
fn alert(world: &World, bytes: &[u8]) -> Vec<u8> {
    world.inside(|| {
        let mut stream = connect("allowed.example", 443);
        stream.write_all(bytes).unwrap();
        read_all(&mut stream).0
    })
}

const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
const DECODE_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 50];
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

#[test]
fn a_message_that_names_another_host_or_none_does_not_pass() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example", "other.example"]));
        let authority = world.internet.authority.clone();
        let fronted = world.inside(|| {
            get_tls((address("allowed.example").unwrap(), 443).into(), "other.example", &authority)
        });
        assert!(fronted.unwrap_err().contains("UnrecognisedName"));
        for (bytes, expected) in [
            (hello(&[], 9999), UNRECOGNIZED_NAME),
            (hello(&[sni("93.184.216.34")], 9999), UNRECOGNIZED_NAME),
            (hello(&[sni("allowed.example.evil.example")], 9999), UNRECOGNIZED_NAME),
            (hello(&[sni("allowed.example"), extension(0xfe0d, &[0, 1, 2, 3])], 9999), ACCESS_DENIED),
            (hello(&[sni("allowed.example"), sni("other.example")], 9999), DECODE_ERROR),
            (hello(&[sni("allowed.example."), extension(21, &[0; 9000])], 100), DECODE_ERROR),
            (hello(&[sni("allowed.example"), extension(21, &vec![0; 17_000])], 9999), DECODE_ERROR),
        ] {
            assert_eq!(alert(&world, &bytes), expected);
        }
        let seen = world.internet.seen();
        assert!(!seen.iter().any(|it| matches!(it, Seen::Connection(_))), "{seen:?}");
        let expected = [
            "sni-mismatch",
            "no-sni",
            "no-sni",
            "sni-mismatch",
            "ech",
            "malformed",
            "malformed",
            "malformed",
        ];
        assert_eq!(world.reasons(), expected);
    });
}

#[test]
fn a_message_in_the_smallest_pieces_is_read_and_passes_unchanged() {
    case(|| {
        let world = World::new(&Rules::allowing(&["tcp.example", "https://allowed.example:40000"]));
        let bytes = hello(&[sni("allowed.example"), extension(0x1a1a, &[])], 1);
        let echo = world.inside(|| {
            let mut stream = connect("allowed.example", 40_000);
            for piece in bytes.chunks(7) {
                stream.write_all(piece).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            let mut echo = vec![0; bytes.len()];
            stream.read_exact(&mut echo).unwrap();
            echo
        });
        assert_eq!(echo, bytes);
    });
}

#[test]
fn what_is_not_tls_passes_only_where_a_rule_says_so() {
    case(|| {
        let world = World::new(&Rules::allowing(&[
            "allowed.example",
            "tcp://db.example:5432",
            "ssh://git@allowed.example",
        ]));
        for text in
            ["SSH-2.0-x\r\n", "GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n", "\0\0\0\x08\x04\x52\x16\x2f"]
        {
            let answer = world.inside(|| super::probe::say("allowed.example", 443, text.as_bytes()));
            assert!(!answer.is_empty(), "{text}");
        }
        assert_eq!(world.reasons(), ["not-tls"; 3]);
        let seen = world.internet.seen();
        assert!(!seen.iter().any(|it| matches!(it, Seen::Connection(_))), "{seen:?}");
        for (name, port) in [("db.example", 5432), ("allowed.example", 22)] {
            let echo = world.inside(|| {
                let mut stream = connect(name, port);
                stream.write_all(b"\0any bytes\xff").unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                read_all(&mut stream).0
            });
            assert_eq!(echo, b"\0any bytes\xff", "{name}");
        }
    });
}

#[test]
fn a_server_may_ask_for_a_second_message_and_that_names_the_same_host() {
    case(|| {
        let world = World::new(&Rules::allowing(&["retrying.example", "https://retrying.example:40000"]));
        let authority = world.internet.authority.clone();
        let answer = world.inside(|| get_secure("retrying.example", &authority));
        assert!(answer.unwrap().ends_with("hello from outside"));
        world.internet.seen();

        // At this port the server asks for a second message and sends back what it gets then.
        let second = |name: &str| {
            world.inside(|| {
                let mut stream = connect("retrying.example", 40_000);
                stream.write_all(&hello(&[sni("retrying.example")], 9999)).unwrap();
                let mut answer = vec![0; retry().len()];
                stream.read_exact(&mut answer).unwrap();
                assert_eq!(answer, retry());
                let change = [20, 3, 3, 0, 1, 1];
                stream.write_all(&[&change[..], &hello(&[sni(name)], 9999)].concat()).unwrap();
                let mut bytes = [0; 7];
                stream.read_exact(&mut bytes).unwrap();
                bytes
            })
        };
        assert_eq!(second("retrying.example")[..6], [20, 3, 3, 0, 1, 1], "it comes back from the server");
        world.internet.seen();
        world.reasons();
        assert_eq!(second("other.example"), UNRECOGNIZED_NAME);
        let sent = world.internet.requests();
        assert!(!sent.iter().any(|text| text.contains("other.example")), "{sent:?}");
        assert_eq!(world.reasons(), ["sni-mismatch"]);
    });
}

#[test]
fn the_last_words_of_a_server_that_closes_early_arrive() {
    case(|| {
        let world = World::new(&Rules::allowing(&["tcp://db.example:5432"]));
        for _ in 0..20 {
            let answer = world.inside(|| {
                let mut stream = connect("db.example", 5432);
                stream.write_all(b"early").unwrap();
                let piece = [7; 8192];
                let _closed = (0..200).find(|_| stream.write_all(&piece).is_err());
                read_all(&mut stream).0
            });
            assert!(answer.starts_with(b"bye"), "{}", answer.escape_ascii());
        }
    });
}
