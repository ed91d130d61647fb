//! Programs as users run them, with nothing configured: what is allowed works, and what is denied says why.

use std::process::Output;
use std::time::{Duration, Instant};

use super::servers::Seen;
use super::world::{NAMESERVER, Rules, World, case, program, say};

struct Sandbox<'w> {
    world: &'w World,
    directory: tempfile::TempDir,
}

/// How a program ended.
struct Ran {
    output: Output,
    time: Duration,
}

impl Ran {
    fn text(&self) -> String {
        [&self.output.stdout, &self.output.stderr].map(|it| String::from_utf8_lossy(it).into_owned()).concat()
    }
}

impl<'w> Sandbox<'w> {
    fn new(world: &'w World) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let server = NAMESERVER.split(':').next().unwrap();
        fs_err::write(directory.path().join("resolv.conf"), format!("nameserver {server}\n")).unwrap();
        let authority = openssl(&world.internet.authority);
        fs_err::write(directory.path().join("authority.pem"), authority).unwrap();
        Self { world, directory }
    }

    /// Runs a shell line in the sandbox's network, with its nameserver. `None` if the program is not installed.
    fn run(&self, line: &str) -> Option<Ran> {
        let name = line.split_whitespace().find(|word| !word.contains('=')).unwrap();
        let directory = self.directory.path().to_str().unwrap();
        let script = format!(
            "command -v {name} >/dev/null || exit 99; mount --bind {directory}/resolv.conf /etc/resolv.conf || exit 98; \
             export HOME={directory} CA={directory}/authority.pem; unset http_proxy https_proxy all_proxy; {line}"
        );
        let begun = Instant::now();
        let output = self.world.inside(|| {
            program("timeout").args(["20", "unshare", "-m", "sh", "-c", &script]).output().unwrap()
        });
        match output.status.code() {
            Some(99) => {
                say(&format!("skipped: `{name}` is not installed"));
                None
            }
            Some(98) => panic!("no mount: {output:?}"),
            _ => Some(Ran { output, time: begun.elapsed() }),
        }
    }
}

/// A certificate in the form that programs read.
fn openssl(der: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::from("-----BEGIN CERTIFICATE-----");
    for (index, three) in der.chunks(3).enumerate() {
        text.push_str(if index % 16 == 0 { "\n" } else { "" });
        let bits =
            three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let is_there = place <= three.len();
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if is_there { letter.into() } else { '=' });
        }
    }
    text + "\n-----END CERTIFICATE-----\n"
}

#[test]
fn programs_reach_what_is_allowed() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        let sandbox = Sandbox::new(&world);
        for line in [
            "curl -sS http://allowed.example/",
            "curl -sS --cacert $CA https://allowed.example/",
            "wget -q -O - http://allowed.example/",
            "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://allowed.example/\").read().decode())'",
            "NODE_EXTRA_CA_CERTS=$CA node -e 'fetch(\"https://allowed.example/\").then(r => r.text()).then(console.log)'",
            "openssl version >/dev/null; printf 'GET / HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\n' | openssl s_client -quiet -servername allowed.example -CAfile $CA -connect allowed.example:443",
        ] {
            if let Some(ran) = sandbox.run(line) {
                assert!(ran.text().contains("hello from outside"), "{line}: {}", ran.text());
            }
        }
    });
}

#[test]
fn programs_say_why_something_is_denied() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        let sandbox = Sandbox::new(&world);
        world.internet.seen();
        for (line, expected) in [
            ("curl -sS http://evil.example/", "the rule `evil.example` would allow it"),
            ("curl -sS https://evil.example/", "access denied"),
            ("wget -O - http://evil.example/", "403"),
            ("git ls-remote https://evil.example/x.git", "denied"),
            ("git ls-remote http://evil.example/x.git", "403"),
            (
                "ssh -o StrictHostKeyChecking=no -o BatchMode=yes git@evil.example",
                "the rule `ssh://evil.example` would allow it",
            ),
            ("openssl s_client -connect evil.example:443 </dev/null", "access denied"),
            ("node -e 'fetch(\"https://evil.example/\").catch(e => console.log(e.cause))'", "ACCESS_DENIED"),
        ] {
            let Some(ran) = sandbox.run(line) else { continue };
            let text = ran.text().to_lowercase();
            assert!(text.contains(&expected.to_lowercase()), "{line}: {text}");
            assert!(ran.time < Duration::from_secs(10), "{line}: {:?}", ran.time);
        }
        world.assert_nothing_left();
    });
}

#[test]
fn the_connection_after_a_redirection_is_judged_by_itself() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        let sandbox = Sandbox::new(&world);
        let Some(ran) = sandbox.run("curl -sSL http://allowed.example/moved") else { return };
        assert!(ran.text().contains("the rule `redirected.example` would allow it"), "{}", ran.text());
        let seen = world.internet.seen();
        let connections = seen.iter().filter(|it| matches!(it, Seen::Connection(_))).count();
        assert_eq!(connections, 1, "{seen:?}");
    });
}

#[test]
fn datagrams_to_servers_are_refused_at_once() {
    case(|| {
        let world = World::new(&Rules::allowing(&["allowed.example"]));
        world.inside(|| {
            let to = super::probe::address("allowed.example").unwrap();
            for port in [443, 123, 5353] {
                let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                socket.connect((to, port)).unwrap();
                socket.send(b"x").unwrap();
                let error = socket.recv(&mut [0]).unwrap_err();
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused, "{port}");
            }
        });
        assert!(!world.internet.seen().iter().any(|it| matches!(it, Seen::Connection(_))));
    });
}
