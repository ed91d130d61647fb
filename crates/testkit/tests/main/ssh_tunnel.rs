//! The tunnel into Podman's virtual machine, for real: a real agent, a real `ssh`, a real `sshd` that stands for
//! the machine, and a `podman` that knows it. Only the machine is told to be a Mac.

use std::path::Path;
use std::time::Duration;

use sandtable_sandbox::engine::Place;
use sandtable_sandbox::engine::oci::Dialect;
use sandtable_sandbox::engine::ssh_agent::{Guard, Lowered, Setup, SshAgentError, Tunnel, lower, set_up};
use sandtable_sandbox::facts::MachineFacts;
use sandtable_sandbox::host::Host;
use sandtable_sandbox::model::agent::Agent;
use sandtable_sandbox::model::diagnosis::Diagnose as _;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::model::setting::Setting;
use sandtable_sandbox::model::spec::SshAgent as Asked;
use sandtable_sandbox::resolve::{self, renew};
use sandtable_testkit::agent::{SshAgent, wait_for};
use sandtable_testkit::env::{PATH, TestEnv};
use sandtable_testkit::machine::{Machine, is_alive};
use sandtable_testkit::process::Run;
use sandtable_testkit::require;
use serde_json::json;

/// A world with an agent and a machine.
struct World {
    env: TestEnv,
    agent: SshAgent,
    machine: Machine,
}

impl World {
    fn new(settings: &str) -> Option<Self> {
        let env = TestEnv::new(Path::new("/bin/true"), sandtable_testkit::env::Caller::Same);
        let agent = SshAgent::start(&env)?;
        let machine = Machine::start(&env, settings)?;
        Some(Self { env, agent, machine })
    }

    fn host(&self, path: &str) -> Host {
        let home = HostPath::new(self.env.home()).unwrap();
        let socket = self.agent.socket().display().to_string();
        Host {
            uid: 0,
            gid: 0,
            data: home.join("data"),
            home: Some(home),
            executable: None,
            environment: [("PATH".to_owned(), path.to_owned()), ("SSH_AUTH_SOCK".to_owned(), socket)].into(),
            odd_variables: Vec::new(),
            foreign: Vec::new(),
            tools: Vec::new(),
        }
    }

    /// What a request for Podman on a Mac means here, as far as the agent is concerned.
    fn decided(&self, path: &str) -> Result<ResolvedSpec, resolve::ResolveError> {
        let setting = |value: &str| json!({ "value": value, "origin": { "from": "default" } });
        let spec = json!({
            "engine": "podman", "engine_reason": "", "platform": { "os": "macos" },
            "container": {
                "program": self.machine.podman(), "rights": "rootless", "init": "/opt/sandtable", "flags": [],
                "variables": { "PATH": setting(PATH) }, "ports": [], "support": setting("nobody"),
            },
            "source": { "root": "/r", "kind": { "kind": "plain" } },
            "mode": { "value": "overlay", "reason": "" }, "identity": { "uid": 0, "gid": 0 },
            "home": "/home/ann", "directory": "/r", "mounts": [], "seeds": [], "hide": [], "environment": {},
            "network": setting("none"), "network_helper": null, "secrets": setting("warn"),
            "strictness": setting("strict"), "lifetime": setting("keep"), "warnings": [],
        });
        let mut spec: ResolvedSpec = serde_json::from_value(spec).unwrap();
        spec.ssh_agent = Agent { asked: Setting::default_value(Asked::Auto), forwarding: None };
        renew(&mut spec, &self.host(path), &MachineFacts)?;
        Ok(spec)
    }

    fn lowered(&self, name: &str) -> Lowered {
        let directory = self.env.home().join("a \"place\"").join(name);
        fs_err::create_dir_all(&directory).unwrap();
        let directory = HostPath::new(directory).unwrap();
        let place = Place { directory, name: name.parse().unwrap(), id_base: None, pid: 1, started: 0 };
        lower(&self.decided(PATH).unwrap(), Dialect::Podman, &place)
    }

    fn tunnel(&self, name: &str) -> (Vec<String>, Tunnel) {
        let Lowered { args, setup: Setup::Tunnel(tunnel) } = self.lowered(name) else { panic!("no tunnel") };
        (args.into_iter().map(|arg| arg.value).collect(), *tunnel)
    }

    /// `podman run` with the words for the agent.
    fn container(&self, words: &[String]) -> String {
        let run: Vec<String> = std::iter::once("run".to_owned()).chain(words.iter().cloned()).collect();
        self.machine.call_podman(&run).stdout
    }

    fn nothing_is_left(&self) {
        assert_eq!(self.machine.run("ls -A /tmp").stdout, "", "something is left in the machine");
    }
}

fn tunnel_of(tunnel: &Tunnel) -> Setup {
    Setup::Tunnel(Box::new(tunnel.clone()))
}

#[test]
fn the_agent_answers_at_the_far_end_and_nothing_is_left_there() {
    let Some(world) = World::new("") else { return };
    let (words, tunnel) = world.tunnel("one");
    assert_eq!(words[1], format!("{}:/ssh-agent", tunnel.far));
    let guard = set_up(&tunnel_of(&tunnel)).unwrap();
    assert!(!Path::new(&tunnel.far).exists(), "the machine is this machine");
    let listed = world.container(&words);
    assert!(listed.contains(world.agent.fingerprint()), "{listed}");
    let rights = world.machine.run(&format!("stat -c %a {} {}", tunnel.far, tunnel.far_directory)).stdout;
    assert_eq!(rights, "600\n700\n");
    drop(guard);
    world.nothing_is_left();
    assert!(!world.container(&words).contains(world.agent.fingerprint()));
}

#[test]
fn sessions_at_once_have_sockets_of_their_own_and_a_stale_one_is_replaced() {
    let Some(world) = World::new("") else { return };
    let sessions: Vec<(Vec<String>, Tunnel)> = ["one", "two", "three"].map(|name| world.tunnel(name)).into();
    let stale = &sessions[0].1;
    let left = format!(
        "mkdir -m 700 {0}; eval $(ssh-agent -a {1}) > /dev/null; kill -s KILL $SSH_AGENT_PID; test -S {1}",
        stale.far_directory, stale.far
    );
    let _left = world.machine.run(&left).expect_code(0);
    let guards: Vec<Guard> = std::thread::scope(|scope| {
        let open = |(_, tunnel): &(Vec<String>, Tunnel)| set_up(&tunnel_of(tunnel)).unwrap();
        let threads: Vec<_> = sessions.iter().map(|session| scope.spawn(move || open(session))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (words, _) in &sessions {
        assert!(world.container(words).contains(world.agent.fingerprint()));
    }
    drop(guards);
    world.nothing_is_left();
}

/// A directory of the machine that is another user's, or anybody's link, is not used.
#[test]
fn a_place_in_the_machine_that_is_not_ours_is_refused() {
    let Some(world) = World::new("") else { return };
    let (_, tunnel) = world.tunnel("one");
    let _made = world.machine.run(&format!("ln -s /usr {}", tunnel.far_directory)).expect_code(0);
    let error = set_up(&tunnel_of(&tunnel)).unwrap_err();
    assert!(matches!(error, SshAgentError::Tunnel(_)), "{error:?}");
}

#[test]
fn a_connection_that_cannot_be_chosen_stops_the_launch_with_a_remedy() {
    let Some(world) = World::new("") else { return };
    let two = [world.machine.connection("a", "false"), world.machine.connection("b", "false")].join(",");
    let cases = [
        ("Name  URI\n", "is not understood", "podman system connection list"),
        ("[]", "no connection", "podman machine start"),
        (&format!("[{two}]"), "none of them the default: `a`, `b`", "podman system connection default"),
        (r#"[{"Name":"a","URI":"unix:///x"}]"#, "`unix:///x`", "podman system connection"),
    ];
    for (answer, words, mend) in cases {
        world.machine.answer(answer);
        refused(&world.decided(PATH).unwrap_err(), words, mend);
    }
    world.machine.list(&world.machine.connection("only", "false"));
    assert!(world.decided(PATH).is_ok(), "the only connection is as good as the default");
    refused(&world.decided("/nonexistent").unwrap_err(), "no `ssh` on PATH", "OpenSSH");
    fs_err::remove_file(world.machine.podman()).unwrap();
    refused(&world.decided(PATH).unwrap_err(), "does not list its connections", "podman machine start");
    assert_eq!(world.machine.containers(), 0);
}

fn refused(error: &resolve::ResolveError, words: &str, mend: &str) {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    assert!(cause.contains(words), "no {words}: {cause}");
    let remedy = error.remedy().unwrap_or_default();
    assert!(remedy.contains(mend) && remedy.contains("SANDTABLE_SSH_AGENT=off"), "{remedy}");
    assert_eq!(error.code(), "ssh-agent-connection");
}

#[test]
fn a_machine_that_forwards_no_sockets_ends_the_tunnel_and_says_why() {
    let Some(world) = World::new("AllowStreamLocalForwarding no") else { return };
    let (_, tunnel) = world.tunnel("one");
    let error = set_up(&tunnel_of(&tunnel)).unwrap_err();
    fails(&error, "the tunnel ended before it was ready", "forwarding failed");
    world.nothing_is_left();
    assert_eq!(world.machine.containers(), 0);
}

#[test]
fn a_machine_that_is_not_there_or_lets_nobody_in_is_said() {
    let Some(world) = World::new("") else { return };
    let (_, tunnel) = world.tunnel("one");
    let mut strange = tunnel.clone();
    for word in &mut strange.login {
        *word = word.replace("login_key", "host_key");
    }
    fails(&set_up(&tunnel_of(&strange)).unwrap_err(), "does not let us in", "Permission denied");
    let guard = set_up(&tunnel_of(&tunnel)).unwrap();
    drop(world.machine);
    // Nothing can be removed there any more, which harms nobody.
    drop(guard);
    let error = set_up(&tunnel_of(&tunnel)).unwrap_err();
    fails(&error, "does not let us in", "Connection refused");
    let missing = Tunnel { ssh: "/nonexistent/ssh".into(), ..tunnel };
    fails(&set_up(&tunnel_of(&missing)).unwrap_err(), "cannot run `ssh`", "/nonexistent/ssh");
}

/// An `ssh` that makes no tunnel but stays, and one that ends: both say something first.
#[test]
fn a_socket_that_never_appears_ends_the_tunnel() {
    let Some(world) = World::new("") else { return };
    let (_, tunnel) = world.tunnel("one");
    let pid = world.env.home().join("pid");
    let ssh = world.machine.program(
        "ssh",
        &format!(
            "#!/bin/sh\ncase \"$*\" in *' -R '*) echo $$ > {}; echo odd news >&2; exec sleep 600;; esac\nexec /usr/bin/ssh \"$@\"\n",
            pid.display()
        ),
    );
    let error = set_up(&tunnel_of(&Tunnel { ssh, patience_ms: 500, ..tunnel })).unwrap_err();
    fails(&error, "did not appear", "odd news");
    let pid = fs_err::read_to_string(pid).unwrap();
    assert!(!is_alive(&pid), "the tunnel is still there");
    world.nothing_is_left();
}

fn fails(error: &SshAgentError, what: &str, why: &str) {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    assert!(text.contains(what) && text.contains(why), "no `{what}` and `{why}`: {text}");
    let remedy = error.remedy();
    assert!(remedy.lines().count() == 2 && remedy.contains("SANDTABLE_SSH_AGENT=off"), "{remedy}");
}

/// Tells that this process is to hold a tunnel until it is killed, and where the tunnel is described.
const HOLD: &str = "SANDTABLE_TEST_HOLD_TUNNEL";

/// Whatever ends a launcher, nobody is left to clean up but the far end.
#[test]
fn a_launcher_that_is_killed_leaves_no_tunnel() {
    if let Some(file) = require::variable(HOLD) {
        let tunnel = serde_json::from_slice(&fs_err::read(&file).unwrap()).unwrap();
        let _guard = set_up(&tunnel_of(&tunnel)).unwrap();
        fs_err::write(format!("{file}.held"), "").unwrap();
        std::thread::sleep(Duration::from_hours(1));
    }
    let Some(world) = World::new("") else { return };
    for signal in ["KILL", "TERM", "INT", "HUP"] {
        let (words, tunnel) = world.tunnel("one");
        let file = world.env.home().join(signal);
        fs_err::write(&file, serde_json::to_vec(&tunnel).unwrap()).unwrap();
        let test = std::env::current_exe().unwrap();
        let run = Run::new(test, world.env.root()).variable(HOLD, &file).variable("PATH", PATH);
        let name = "ssh_tunnel::a_launcher_that_is_killed_leaves_no_tunnel";
        // Whoever started the tests may ignore some of the signals (`nohup` does), and that is inherited.
        let run = run.args(["--exact", name, "--nocapture"]).through(["env", "--default-signal"]);
        let mut launcher = run.started();
        wait_for("tunnel", || world.env.home().join(format!("{signal}.held")).exists());
        assert!(world.container(&words).contains(world.agent.fingerprint()));
        let kill = world.env.run("kill").args(["-s", signal, &launcher.id().to_string()]);
        let _killed = kill.ended().expect_code(0);
        launcher.wait().unwrap();
        wait_for("end of the tunnel", || world.machine.run("ls -A /tmp").stdout.is_empty());
    }
}
