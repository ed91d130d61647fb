//! What one sandbox may take: many connections, slow clients, events that nobody reads, a supervisor that is gone.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use sandtable_egress::event::GateEvent;
use sandtable_egress::plan::Limits;

use super::probe::{address, connect, get, read_all};
use super::servers::Seen;
use super::world::{Rules, World, case, say};

/// Resident memory of this process at its highest, in MiB: the gate, the internet and the test together.
fn most_memory() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn a_denial_comes_within_fifty_milliseconds() {
    case(|| {
        let world = World::new(&Rules::allowing(&["silent.example"]));
        let mut times = Vec::new();
        for (port, text) in [
            (80, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
            (443, "\x16\x03\x01\0\x01\x01"),
            (22, ""),
            (40_000, ""),
        ] {
            for _ in 0..5 {
                let time = world.inside(|| {
                    let mut stream = connect("evil.example", port);
                    let begun = Instant::now();
                    stream.write_all(text.as_bytes()).unwrap();
                    let mut bytes = [0; 1000];
                    let _answer = stream.read(&mut bytes);
                    begun.elapsed()
                });
                times.push(time);
            }
        }
        times.sort();
        say(&format!("measured: denials between {:?} and {:?}", times[0], times[times.len() - 1]));
        // The middle one: the machine may be busy with something else.
        assert!(times[times.len() / 2] < Duration::from_millis(50), "{times:?}");
        world.assert_nothing_left();
    });
}

#[test]
fn too_many_connections_are_refused_and_the_others_live() {
    case(|| {
        let limits = Limits { connections: 100, ..Limits::default() };
        let world = World::new(&Rules { limits, ..Rules::allowing(&["tcp://allowed.example:5432"]) });
        world.inside(|| {
            let to = address("allowed.example").unwrap();
            let mut open: Vec<TcpStream> =
                (0..100).map(|_| TcpStream::connect((to, 5432)).unwrap()).collect();
            for stream in &mut open {
                stream.write_all(b"x").unwrap();
                stream.read_exact(&mut [0]).unwrap();
            }
            let mut more: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect((to, 5432)).unwrap()).collect();
            for stream in &mut more {
                stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                assert_eq!(read_all(stream).0, b"<reset>");
            }
            for stream in &mut open {
                stream.write_all(b"y").unwrap();
                stream.read_exact(&mut [0]).unwrap();
            }
            drop(open);
            std::thread::sleep(Duration::from_millis(200));
            let mut again = TcpStream::connect((to, 5432)).unwrap();
            again.write_all(b"z").unwrap();
            again.read_exact(&mut [0]).unwrap();
        });
        let refused: u64 = world
            .events()
            .iter()
            .map(|it| if let GateEvent::Refused { connections, .. } = it { *connections } else { 0 })
            .sum();
        assert_eq!(refused, 50);
    });
}

#[test]
fn thousands_in_a_row_and_at_once_stay_within_the_memory() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example", "tcp://silent.example:5432"]));
        let before = most_memory();
        world.inside(|| {
            let to = address("silent.example").unwrap();
            let denied = address("evil.example").unwrap();
            for _ in 0..3000 {
                let mut stream = TcpStream::connect((denied, 22)).unwrap();
                stream.read_exact(&mut [0; 7]).unwrap();
            }
            // Clients that send much and read nothing.
            let mut greedy: Vec<TcpStream> =
                (0..400).map(|_| TcpStream::connect((to, 5432)).unwrap()).collect();
            for stream in &mut greedy {
                stream.set_nonblocking(true).unwrap();
            }
            let piece = vec![7; 1 << 16];
            for _ in 0..40 {
                for stream in &mut greedy {
                    let _taken = stream.write(&piece);
                }
            }
        });
        let after = most_memory();
        say(&format!("measured: {before} MiB before, {after} MiB at most with 400 greedy clients"));
        assert!(after < before + 64, "{before} MiB, then {after} MiB");
        assert!(world.inside(|| get("allowed.example", "/")).ends_with("hello from outside"));
    });
}

#[test]
fn a_slow_client_has_its_time_and_no_more() {
    case(|| {
        let limits = Limits { head_seconds: 1, head: 4096, ..Limits::default() };
        let world = World::new(&Rules { limits, ..Rules::allowing(&["allowed.example"]) });
        let slow = |port: u16, piece: &[u8]| {
            world.inside(|| {
                let mut stream = connect("allowed.example", port);
                let begun = Instant::now();
                let mut sent = 0;
                while begun.elapsed() < Duration::from_secs(4) && stream.write_all(piece).is_ok() {
                    sent += 1;
                    std::thread::sleep(Duration::from_millis(50));
                }
                (sent, begun.elapsed())
            })
        };
        for (port, piece) in [(80, &b"G"[..]), (443, &[22, 3, 1, 0, 1, 1])] {
            let (_, time) = slow(port, piece);
            assert!(time < Duration::from_secs(3), "{port}: {time:?}");
        }
        let endless = world.inside(|| {
            let mut stream = connect("allowed.example", 80);
            stream.write_all(b"GET / HTTP/1.1\r\nX: ").unwrap();
            let piece = vec![b'x'; 1 << 16];
            let mut sent = 0_usize;
            while sent < 1 << 30 && stream.write_all(&piece).is_ok() {
                sent += piece.len();
            }
            sent
        });
        assert!(endless < 16 << 20, "{endless} bytes of one header were taken");
        let seen = world.internet.seen();
        assert!(!seen.iter().any(|it| matches!(it, Seen::Connection(_))), "{seen:?}");
    });
}

#[test]
fn nothing_new_passes_while_events_are_not_read() {
    case(|| {
        let (world, events) = World::unread(&Rules::allowing(&["allowed.example"]));
        let refused = world.inside(|| {
            let denied = address("evil.example").unwrap();
            (0..20_000).find(|_| {
                let mut stream = TcpStream::connect((denied, 22)).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                stream.read(&mut [0; 10]).is_err()
            })
        });
        assert!(refused.is_some(), "the socket for events took everything");
        world.internet.seen();
        let answer = world.inside(|| {
            let to = address("allowed.example").unwrap();
            let mut stream = TcpStream::connect((to, 80)).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            read_all(&mut stream).0
        });
        assert_eq!(answer, b"<reset>");
        assert!(!world.internet.seen().iter().any(|it| matches!(it, Seen::Connection(_))));
        // Once somebody reads, it goes on.
        let mut lines = events;
        std::thread::spawn(move || while lines.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {});
        std::thread::sleep(Duration::from_millis(500));
        assert!(world.inside(|| get("allowed.example", "/")).ends_with("hello from outside"));
    });
}

#[test]
fn a_gate_ends_with_its_supervisor_and_so_do_its_connections() {
    case(|| {
        let mut world = World::new(&Rules::allowing(&["tcp://allowed.example:5432"]));
        let mut stream = world.inside(|| {
            let mut stream = connect("allowed.example", 5432);
            stream.write_all(b"x").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            stream
        });
        world.end_supervisor();
        let (rest, _) = read_all(&mut stream);
        assert!(rest.is_empty() || rest == b"<reset>");
        let refused = world.inside(|| TcpStream::connect("28.64.0.9:80").is_err());
        assert!(refused, "no listener is left");
    });
}

#[test]
fn what_passed_is_reported_without_what_was_said() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        world.inside(|| get("allowed.example", "/large?token=secret"));
        let events = world.events();
        let [
            GateEvent::Open { id, host, port: 80, protocol, address, rule, origin },
            GateEvent::Close { id: closed, sent, received },
        ] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!(id, closed);
        assert_eq!(
            [host.as_str(), protocol, address, rule, origin],
            ["allowed.example", "http", "93.184.216.34", "allowed.example", "test"]
        );
        assert!(
            (60..300).contains(sent) && (3 << 20..(3 << 20) + 200).contains(received),
            "{sent} {received}"
        );
        assert!(!format!("{events:?}").contains("secret"));
    });
}
