//! Which connections pass: by name, by address, by what a name resolves to.

use super::probe::{self, address, connect_to, get, get_secure, read_all, say_to};
use super::servers::{ALLOWED, OTHER, SIX, Seen};
use super::world::{INSIDE, NONCE, Rules, World, case};

#[test]
fn an_allowed_name_is_reached_and_another_one_is_answered() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example", "*.allowed.example"]));
        let authority = world.internet.authority.clone();
        let (plain, tls, below) = world.inside(|| {
            let plain = get("allowed.example", "/");
            (plain, get_secure("ALLOWED.example.", &authority), get("also.allowed.example", "/"))
        });
        assert!(plain.ends_with("hello from outside") && below.ends_with("hello from outside"), "{plain}");
        assert!(tls.unwrap().ends_with("hello from outside"));
        let connections = world.internet.seen();
        let all = connections.iter().filter(|it| matches!(it, Seen::Connection(_))).count();
        assert_eq!(all, 3);

        let (page, alert) =
            world.inside(|| (get("evil.example", "/"), get_secure("evil.example", &authority)));
        assert!(page.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{page}");
        assert!(page.contains("the rule `evil.example` would allow it"), "{page}");
        assert!(alert.unwrap_err().contains("AccessDenied"));
        world.assert_nothing_left();
        assert_eq!(world.reasons(), ["not-allowed", "not-allowed"]);
    });
}

#[test]
fn nothing_passes_without_rules() {
    case(|| {
        let world = World::new(&Rules::allowing(&[]));
        for name in ["allowed.example", "allowed.example.evil.example", "notallowed.example"] {
            assert!(world.inside(|| get(name, "/")).starts_with("HTTP/1.1 403"), "{name}");
        }
        world.assert_nothing_left();
    });
}

#[test]
fn names_that_look_like_an_allowed_one_do_not_pass() {
    case(|| {
        let world = World::new(&Rules {
            deny: vec!["also.allowed.example"],
            ..Rules::allowing(&["allowed.example", "*.allowed.example", "allowed.example:5432"])
        });
        for name in [
            "notallowed.example",
            "allowed.example.evil.example",
            "allowed.examples.example",
            "also.allowed.example",
        ] {
            assert!(world.inside(|| get(name, "/")).starts_with("HTTP/1.1 403"), "{name}");
        }
        let reset = world.inside(|| read_all(&mut probe::connect("allowed.example", 40_000)));
        assert_eq!(reset.0, b"<reset>");
        world.internet.seen().iter().for_each(|seen| {
            assert!(matches!(seen, Seen::Question(name, _) if name == "allowed.example"), "{seen:?}");
        });
    });
}

#[test]
fn an_address_that_was_never_handed_out_does_not_pass() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example", "93.184.216.34:80"]));
        let pages = world.inside(|| {
            let known = address("allowed.example").unwrap();
            let unknown = std::net::Ipv4Addr::from_bits(known.to_bits() ^ 1);
            let ask =
                |ip: &str| say_to(format!("{ip}:80").parse().unwrap(), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
            [
                ask(&unknown.to_string()),
                ask(INSIDE),
                ask(OTHER),
                ask("10.1.2.3"),
                ask("169.254.169.254"),
                ask("127.0.0.1"),
            ]
        });
        for page in &pages {
            assert!(page.starts_with("HTTP/1.1 403"), "{page}");
        }
        let expected = [
            "raw-address",
            "raw-address",
            "not-allowed",
            "private-address",
            "private-address",
            "private-address",
        ];
        assert_eq!(world.reasons(), expected);
        let seen = world.internet.seen();
        assert!(!seen.iter().any(|it| matches!(it, Seen::Connection(_))), "{seen:?}");
        // The one address that a rule names.
        let page = world.inside(|| {
            say_to(format!("{ALLOWED}:80").parse().unwrap(), b"GET / HTTP/1.1\r\nHost: 93.184.216.34\r\n\r\n")
        });
        assert!(page.ends_with("hello from outside"), "{page}");
    });
}

#[test]
fn the_first_address_of_the_pool_proves_the_path() {
    case(|| {
        let world = World::new(&Rules::allowing(&[]));
        let nonce = world.inside(|| read_all(&mut connect_to("28.64.0.1:40000")).0);
        assert_eq!(nonce, NONCE);
        world.assert_nothing_left();
    });
}

#[test]
fn a_name_that_leads_to_the_machine_or_its_network_does_not_pass() {
    case(|| {
        let names = ["loopback", "private", "metadata", "own", "mapped"];
        let rules = Rules {
            private: vec!["10.20.0.0/16"],
            ..Rules::allowing(&[
                "loopback.example",
                "private.example",
                "metadata.example",
                "own.example",
                "mapped.example",
                "lan.example",
            ])
        };
        let world = World::new(&rules);
        for name in names {
            let page = world.inside(|| get(&format!("{name}.example"), "/"));
            assert!(page.starts_with("HTTP/1.1 403"), "{name}: {page}");
            assert_eq!(world.reasons(), ["private-address"], "{name}");
        }
        assert!(!world.internet.seen().iter().any(|it| matches!(it, Seen::Connection(_))));
        assert!(
            world.inside(|| get("lan.example", "/")).ends_with("hello from outside"),
            "opened by `private`"
        );
    });
}

#[test]
fn a_name_is_resolved_once_and_the_address_that_was_checked_is_dialled() {
    case(|| {
        let world = World::new(&Rules::allowing(&["mixed.example", "rebinding.example", "*.wild.example"]));
        for _ in 0..3 {
            assert!(world.inside(|| get("mixed.example", "/")).ends_with("hello from outside"));
        }
        let seen = world.internet.seen();
        let connections: Vec<_> = seen
            .iter()
            .filter_map(|it| if let Seen::Connection(to) = it { Some(to.ip().to_string()) } else { None })
            .collect();
        assert_eq!(connections, [ALLOWED; 3], "the bad addresses are passed over");

        // The first answer lasts a second, within which it is the only one.
        assert!(world.inside(|| get("rebinding.example", "/")).ends_with("hello from outside"));
        let questions = world.internet.seen().iter().filter(|it| matches!(it, Seen::Question(_, 1))).count();
        assert_eq!(questions, 1, "one lookup");
        std::thread::sleep(std::time::Duration::from_millis(1100));
        world.internet.ask_again("rebinding.example");
        let page = world.inside(|| get("rebinding.example", "/"));
        assert!(page.starts_with("HTTP/1.1 403"), "{page}");
        assert_eq!(world.reasons(), ["private-address"]);
    });
}

#[test]
fn both_families_are_used_outside_and_one_inside() {
    case(|| {
        let world = World::new(&Rules::allowing(&["six.example", "both.example"]));
        assert!(world.inside(|| get("six.example", "/")).ends_with("hello from outside"));
        assert!(world.inside(|| get("both.example", "/")).ends_with("hello from outside"));
        let to = |seen: &Seen| matches!(seen, Seen::Connection(to) if to.ip().to_string() == SIX);
        assert_eq!(world.internet.seen().iter().filter(|it| to(it)).count(), 2);
    });
}

#[test]
fn a_host_that_does_not_exist_or_answer_is_an_answer() {
    case(|| {
        let world = World::new(&Rules {
            hosts: "10.1.2.3 hosts.example\n",
            ..Rules::allowing(&["missing.example", "*.wild.example", "hosts.example", "allowed.example:853"])
        });
        assert_eq!(world.inside(|| address("missing.example")), None, "it does not exist inside either");
        let page = world.inside(|| get("x.wild.example", "/"));
        assert!(page.starts_with("HTTP/1.1 502") && page.contains("does not exist"), "{page}");
        let page = world.inside(|| get("hosts.example", "/"));
        assert!(page.starts_with("HTTP/1.1 403"), "the machine's file of hosts is no way in: {page}");
        assert_eq!(world.reasons(), ["no-such-host", "private-address"]);
    });
}
