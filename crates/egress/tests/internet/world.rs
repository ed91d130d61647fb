//! Two namespaces, a gate between them, and what happened at both ends.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use sandtable_egress::event::GateEvent;
use sandtable_egress::gate::{self, HostsFile, Sockets, Start};
use sandtable_egress::plan::{Limits, RequestRule, Settings, Surroundings, Written, compile};

use super::servers::{Internet, RESOLVER};

/// Where the sandbox finds its nameserver and its proxy.
pub(crate) const INSIDE: &str = "10.0.2.100";
pub(crate) const NAMESERVER: &str = "10.0.2.3:53";
pub(crate) const PROXY: &str = "10.0.2.3:3128";
/// Ports that are captured; the first ones also have servers outside.
pub(crate) const PORTS: [u16; 8] = [80, 443, 22, 5432, 8443, 853, 53, 40_000];
pub(crate) const NONCE: &[u8] = b"nonce of this gate";
/// An address of the machine that looks like any other one.
pub(crate) const OWN: &str = "93.184.216.99";

const MARK: &str = "SANDTABLE_EGRESS_INTERNET";
const SETUP: &str =
    "ip link set lo up && ip route add local default dev lo && ip -6 route add local default dev lo";

/// Runs a case in a network of its own, by starting this test again in one.
///
/// # Panics
/// If the case does.
pub(crate) fn case(body: impl FnOnce()) {
    if variable(MARK).is_some() {
        return body();
    }
    let name = std::thread::current().name().expect("the harness names its threads").to_owned();
    let itself = std::env::current_exe().unwrap();
    let script = format!("{SETUP} && exec \"$0\" \"$@\"");
    let ended = program("unshare")
        .args(["-Urn", "sh", "-c", &script])
        .arg(itself)
        .args(["--exact", &name, "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .output();
    let Ok(ended) = ended else { return skip("`unshare` is missing") };
    let text = [ended.stdout, ended.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat();
    if text.contains("unshare: unshare failed") || text.contains("ip: not found") {
        return skip("no user namespace, or no `ip`");
    }
    assert!(ended.status.success() && text.contains("1 passed"), "{text}");
    text.lines().filter(|line| line.starts_with("skipped:") || line.starts_with("measured:")).for_each(say);
}

/// Says what was left out; on a build machine that is a failure.
pub(crate) fn skip(why: &str) {
    assert!(variable("CI").as_deref() != Some("true"), "missing here, with CI=true: {why}");
    say(&format!("skipped: {why}"));
}

pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    writeln!(std::io::stderr(), "{text}").ok();
}

#[expect(clippy::disallowed_methods, reason = "a test says to itself in this way that it is inside")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[expect(clippy::disallowed_methods, reason = "the tests start programs that no code of ours starts")]
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    Command::new(name)
}

/// A sandbox, its gate, and the internet.
pub(crate) struct World {
    pub(crate) internet: Internet,
    sandbox: Child,
    events: Receiver<GateEvent>,
    /// Kept open: the gate ends with it. Read by a thread.
    supervisor: Option<UnixStream>,
    gate: Option<std::thread::JoinHandle<()>>,
}

/// What a world is made with.
#[derive(Default)]
pub(crate) struct Rules {
    pub(crate) allow: Vec<&'static str>,
    pub(crate) deny: Vec<&'static str>,
    pub(crate) private: Vec<&'static str>,
    /// Host, method, path.
    pub(crate) requests: Vec<(&'static str, &'static str, &'static str)>,
    pub(crate) limits: Limits,
    pub(crate) hosts: &'static str,
}

impl Rules {
    pub(crate) fn allowing(allow: &[&'static str]) -> Self {
        Self { allow: allow.to_vec(), ..Self::default() }
    }

    fn settings(&self) -> Settings {
        let written = |texts: &[&str]| texts.iter().map(|text| Written::new(text, "test")).collect();
        let request = |(host, method, path): &(&str, &str, &str)| RequestRule {
            host: Written::new(host, "test"),
            methods: vec![(*method).to_owned()],
            paths: vec![(*path).to_owned()],
        };
        Settings {
            allow: written(&self.allow),
            deny: written(&self.deny),
            private: written(&self.private),
            requests: self.requests.iter().map(request).collect(),
            limits: self.limits,
        }
    }
}

impl World {
    pub(crate) fn new(rules: &Rules) -> Self {
        let (mut world, events) = Self::unread(rules);
        let (send, receive) = channel();
        let mut lines = BufReader::new(events);
        std::thread::spawn(move || {
            let mut line = String::new();
            while lines.read_line(&mut line).unwrap() > 0 {
                assert!(line.len() < 4096 && line.is_ascii(), "{line}");
                if send.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
                line.clear();
            }
        });
        world.events = receive;
        assert_eq!(world.events.recv().unwrap(), GateEvent::Ready);
        world
    }

    /// The same with events that nobody reads.
    pub(crate) fn unread(rules: &Rules) -> (Self, UnixStream) {
        let internet = Internet::start();
        let script = format!("{SETUP} && echo ready && exec cat");
        let mut sandbox = program("unshare")
            .args(["-n", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        sandbox.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        let machine = Surroundings {
            nameservers: vec![RESOLVER.parse().unwrap()],
            own: vec![OWN.parse().unwrap()],
            inside: INSIDE.parse().unwrap(),
            ..Surroundings::default()
        };
        let plan = compile(&rules.settings(), &machine).unwrap_or_else(|faults| panic!("{faults:?}"));
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (listeners, proxies, questions) = enter(sandbox.id(), sockets);
        let sockets = Sockets { listeners, proxies, questions, events: theirs.into() };
        let start = Start { plan, hosts: HostsFile::read(rules.hosts), nonce: NONCE.to_vec(), sockets };
        let gate = std::thread::spawn(|| gate::run(start).unwrap());
        let (_, nothing) = channel();
        let supervisor = Some(ours.try_clone().unwrap());
        (Self { internet, sandbox, events: nothing, supervisor, gate: Some(gate) }, ours)
    }

    /// Does something as a program in the sandbox would.
    pub(crate) fn inside<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        enter(self.sandbox.id(), body)
    }

    /// All events so far, after a moment for those that are on their way.
    pub(crate) fn events(&self) -> Vec<GateEvent> {
        std::thread::sleep(Duration::from_millis(150));
        self.events.try_iter().collect()
    }

    /// The codes of all denials since the last look, each once for every connection.
    pub(crate) fn reasons(&self) -> Vec<&'static str> {
        let events = self.events();
        let code = |event: &GateEvent| match event {
            GateEvent::Denied(denied) => Some(denied.reason.code()),
            _ => None,
        };
        events.iter().filter_map(code).collect()
    }

    /// That nothing left since the last look: no connection, no question.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        let seen = self.internet.seen();
        assert!(seen.is_empty(), "this left: {seen:?}");
    }

    /// Ends the supervisor, and with it the gate.
    pub(crate) fn end_supervisor(&mut self) {
        if let Some(stream) = self.supervisor.take() {
            stream.shutdown(std::net::Shutdown::Both).unwrap();
        }
        if let Some(gate) = self.gate.take() {
            gate.join().unwrap();
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.sandbox.kill().ok();
        self.sandbox.wait().ok();
    }
}

/// Does something on a thread in the network of a process.
fn enter<T: Send>(process: u32, body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let inside = move || {
            let network = fs_err::File::open(format!("/proc/{process}/ns/net")).unwrap();
            move_into_link_name_space(std::os::fd::AsFd::as_fd(&network), Some(LinkNameSpaceType::Network))
                .unwrap();
            body()
        };
        let joined = std::thread::Builder::new().spawn_scoped(scope, inside).unwrap().join();
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

type Fds = Vec<std::os::fd::OwnedFd>;

/// What PID 1 makes before it gives up its rights.
fn sockets() -> (Fds, Fds, Fds) {
    let listen = |address: SocketAddr| TcpListener::bind(address).unwrap().into();
    let any = |port: u16| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let listeners = PORTS.iter().map(|port| listen(any(*port))).collect();
    let questions = UdpSocket::bind(NAMESERVER.parse::<SocketAddr>().unwrap()).unwrap().into();
    (listeners, vec![listen(PROXY.parse().unwrap())], vec![questions])
}
