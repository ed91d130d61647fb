//! The host as an attacker would like to find it: secrets in the home directory, listening sockets, a
//! process to be seen, links that lead out of the repository. Everything lies in the test's own directory.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::container::Contained;
use crate::env::TestEnv;
use crate::fingerprint::Fingerprint;
use crate::process::Run;

/// The stage, with what keeps it alive.
#[derive(Debug)]
pub struct Stage {
    env: World,
    source: PathBuf,
    loopback: SocketAddr,
    outside: SocketAddr,
    process: Child,
    before: Fingerprint,
    _listeners: Vec<Listener>,
}

/// The world that the stage stands in.
#[derive(Debug)]
enum World {
    Plain(TestEnv),
    Contained(Box<Contained>),
}

#[derive(Debug)]
enum Listener {
    Tcp { _socket: TcpListener },
    Unix { _socket: UnixListener },
}

/// What every secret on the stage contains.
const SECRET: &str = "canary-7f3a";

/// Files of a home directory that nobody wants read.
const HOME_SECRETS: &[&str] = &[
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".gnupg/private-keys-v1.d/key",
    ".config/gh/hosts.yml",
    ".netrc",
    ".docker/config.json",
    ".kube/config",
    ".git-credentials",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".mozilla/firefox/profile/logins.json",
    ".bash_history",
    "notes.txt",
];

/// Secrets in the repository, with names that a matcher might stumble over.
const SOURCE_SECRETS: &[&[u8]] =
    &[b".env", b"a/b/c/d/e/.env", b"odd[x]*?/.env", b"back\\slash/.env", b"not-\xff-text/.env"];

impl Stage {
    /// Sets the stage in a test's own world.
    ///
    /// # Panics
    /// If the machine does not let it be set.
    pub fn set(env: TestEnv) -> Self {
        Self::in_world(World::Plain(env))
    }

    /// The same in a world with a container engine.
    pub fn set_contained(world: Contained) -> Self {
        Self::in_world(World::Contained(Box::new(world)))
    }

    fn in_world(world: World) -> Self {
        let env = world.env();
        let source = env.repository("project");
        fs_err::hard_link(env.binary(), source.join("probe-bin"))
            .or_else(|_| fs_err::copy(env.binary(), source.join("probe-bin")).map(drop))
            .expect("room for the executable");
        fill_home(env);
        fill_source(env, &source);
        let (loopback, outside, listeners) = listen(env);
        let outside = world.outside().unwrap_or(outside);
        let process = env.run("sh").args(["-c", "read nothing", SECRET]).waiting();
        let before = fingerprint(env, &source);
        Self { env: world, source, loopback, outside, process, before, _listeners: listeners }
    }

    pub fn env(&self) -> &TestEnv {
        self.env.env()
    }

    /// The executable under test, with whatever it needs to reach its engine.
    pub fn run(&self) -> Run {
        match &self.env {
            World::Plain(env) => env.sandtable(),
            World::Contained(world) => world.sandtable(),
        }
    }

    /// The repository that sandboxes are made on.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// Replaces `{…}` in an argument of a case.
    pub(super) fn fill_in(&self, arg: &str) -> String {
        let mut text = arg.to_owned();
        for (name, value) in self.values() {
            text = text.replace(&format!("{{{name}}}"), &value);
        }
        for kind in ["user", "mnt", "pid", "ipc", "uts", "cgroup", "net"] {
            let link = fs_err::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default();
            text = text.replace(&format!("{{ns:{kind}}}"), &link.to_string_lossy());
        }
        text
    }

    /// The options of a case.
    pub(super) fn options(&self, case: &super::Case) -> Vec<String> {
        case.options.iter().map(|option| self.fill_in(option)).collect()
    }

    fn values(&self) -> [(&'static str, String); 9] {
        let hostname = fs_err::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        [
            ("home", self.env().home().display().to_string()),
            ("root", self.env().root().display().to_string()),
            ("secret", SECRET.to_owned()),
            ("loopback", self.loopback.to_string()),
            ("outside", self.outside.to_string()),
            ("pid", self.process.id().to_string()),
            ("abstract", abstract_name(self.env())),
            ("hostname", hostname.trim().to_owned()),
            ("source", self.source.display().to_string()),
        ]
    }

    /// What changed on the host since the last look.
    pub(super) fn moved(&mut self) -> Vec<String> {
        let now = fingerprint(self.env.env(), &self.source);
        let lines = self.before.differences(&now);
        self.before = now;
        lines
    }
}

impl World {
    /// What can be reached by a way out, where there is one.
    fn outside(&self) -> Option<SocketAddr> {
        match self {
            Self::Plain(_) => None,
            Self::Contained(world) => world.outside_address(),
        }
    }

    fn env(&self) -> &TestEnv {
        match self {
            Self::Plain(env) => env,
            Self::Contained(world) => &world.env,
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Both are our own children; that they may have ended already is no matter.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Home and source, without what a run may well change: our own state, caches, and the executable.
fn fingerprint(env: &TestEnv, source: &Path) -> Fingerprint {
    let home = env.home();
    let probe = source.join("probe-bin");
    env.fingerprint_without(
        env.root(),
        &[
            &probe,
            env.binary(),
            &env.root().join("p"),
            &env.root().join("run"),
            // Probes make files here and remove them, which the times of a directory show.
            &env.root().join("lent"),
            &source.join("lent"),
            &home.join(".local"),
            &home.join(".cache"),
            &home.join(".config/sandtable"),
        ],
    )
}

fn fill_home(env: &TestEnv) {
    for secret in HOME_SECRETS {
        env.file(&env.home().join(secret), format!("{SECRET}\n"));
    }
    env.file(&env.home().join(".cargo/registry/index"), "shared\n");
    env.file(&env.home().join(".cargo/bin/tool"), "#!/bin/sh\n");
    env.directory(&env.home().join(".local/share"));
    env.directory(&env.home().join(".cache"));
    env.file(&env.root().join("elsewhere/note.txt"), format!("{SECRET}\n"));
}

fn fill_source(env: &TestEnv, source: &Path) {
    for name in SOURCE_SECRETS {
        env.file(&source.join(std::ffi::OsStr::from_bytes(name)), format!("TOKEN={SECRET}\n"));
    }
    let home = env.home();
    env.symlink(home.join(".ssh/id_ed25519"), &source.join("to-key"));
    env.symlink("/", &source.join("to-root"));
    env.symlink("../home/notes.txt", &source.join("to-notes"));
    env.file(&home.join("linked.txt"), "linked\n");
    fs_err::hard_link(home.join("linked.txt"), source.join("hard-linked")).expect("one file system");
    env.directory(&env.root().join("lent"));
    env.directory(&source.join("lent"));
    env.directory(&source.join("folder/below"));
    env.file(&source.join("folder/below/file"), "lower\n");
}

fn abstract_name(env: &TestEnv) -> String {
    format!("sandtable-{}", env.root().file_name().unwrap_or_default().to_string_lossy())
}

fn listen(env: &TestEnv) -> (SocketAddr, SocketAddr, Vec<Listener>) {
    let loopback = TcpListener::bind("127.0.0.1:0").expect("loopback is up");
    let at_loopback = loopback.local_addr().expect("just bound");
    let outside = UdpSocket::bind("0.0.0.0:0")
        .and_then(|socket| socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()))
        .and_then(|address| TcpListener::bind((address.ip(), 0)));
    let at_outside = outside.as_ref().ok().and_then(|socket| socket.local_addr().ok());
    let address =
        std::os::unix::net::SocketAddr::from_abstract_name(abstract_name(env)).expect("a short name");
    let hidden = UnixListener::bind_addr(&address).expect("a name of our own");
    let visible = UnixListener::bind(env.home().join("agent.sock")).expect("a short path of our own");
    let mut listeners = vec![
        Listener::Tcp { _socket: loopback },
        Listener::Unix { _socket: hidden },
        Listener::Unix { _socket: visible },
    ];
    listeners.extend(outside.ok().map(|socket| Listener::Tcp { _socket: socket }));
    (at_loopback, at_outside.unwrap_or_else(|| SocketAddr::from(([192, 0, 2, 1], 9))), listeners)
}
