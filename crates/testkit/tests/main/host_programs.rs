//! What works for us on the host comes from the user's own machine, never from what is worked on.

use std::path::{Path, PathBuf};

use sandtable_testkit::env::{Caller, PATH};
use sandtable_testkit::process::Ended;
use sandtable_testkit::require;

use crate::tool_cli::World;

/// Every program of the host that works for us, and some that those start in turn.
const STARTED: [&str; 16] = [
    "pip",
    "pip3",
    "npm",
    "cargo",
    "apt-get",
    "curl",
    "git",
    "docker",
    "podman",
    "slirp4netns",
    "ssh",
    "ssh-add",
    "newuidmap",
    "node",
    "python3",
    "env",
];
/// Where files come from, and the client that is asked for them.
const REGISTRIES: [(&str, &str); 6] = [
    ("pypi", "pip"),
    ("npm", "npm"),
    ("crate", "cargo"),
    ("debian", "apt-get"),
    ("debian-source", "apt-get"),
    ("https", "curl"),
];

/// A source that has a program of every name, with its directory first on PATH; behind it programs of the user's own, which say
/// where they are started and with what, start others by name, and fail.
struct Hostile {
    world: World,
    traces: PathBuf,
    calls: PathBuf,
    path: String,
    _agent: std::os::unix::net::UnixListener,
}

impl Hostile {
    fn new(caller: Caller) -> Option<Self> {
        let world = World::new(caller)?;
        let root = world.env.root();
        let (traces, calls) = (root.join("traces"), root.join("calls"));
        let (theirs, own) = (world.source.join("node_modules/.bin"), world.env.home().join("bin"));
        world.env.directory(&traces);
        world.env.directory(&calls);
        let program = |place: &Path, text: &str| {
            world.env.file(place, format!("#!/bin/sh\n{text}\n"));
            fs_err::set_permissions(place, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        let (trace, call) = (traces.display(), calls.display());
        for name in STARTED {
            program(&theirs.join(name), &format!(": > '{trace}/{name}'"));
        }
        for name in ["pip", "npm", "cargo", "apt-get", "curl", "docker", "podman", "slirp4netns", "ssh-add"] {
            let text = format!(
                "/bin/pwd -P >> '{call}/{name}'; /usr/bin/env >> '{call}/{name}.env'; node; git --version; exit 1"
            );
            program(&own.join(name), &text);
        }
        let agent = std::os::unix::net::UnixListener::bind(root.join("agent")).unwrap();
        let path = format!("{}:{}:{}", theirs.display(), own.display(), PATH);
        Some(Self { world, traces, calls, path, _agent: agent })
    }

    fn call(&self, directory: &Path, args: &[&str]) -> Ended {
        let source = self.world.source.display();
        let run = self.world.env.sandtable().directory(directory).variable("PATH", &self.path);
        // What `npm run` and direnv say besides.
        let run = run.variable("PYTHONPATH", format!("/usr/lib/none:{source}"));
        let run = run.variable("NODE_OPTIONS", format!("--require {source}/hook.js"));
        let run = run.variable("INIT_CWD", &self.world.source).variable("PWD", &self.world.source);
        let run = run.variable("SSH_AUTH_SOCK", self.world.env.root().join("agent"));
        run.variable("SANDTABLE_SSH_AGENT", "").args(args).ended()
    }

    /// What a client was told or where it was started, a line each.
    fn heard(&self, name: &str) -> Vec<String> {
        let text = fs_err::read_to_string(self.calls.join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn check(&self, what: &str, ended: &Ended) {
        let traces: Vec<_> =
            fs_err::read_dir(&self.traces).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(traces.is_empty(), "{what}: programs of the source ran: {traces:?}\n{ended:?}");
    }

    /// A recipe that fetches a file.
    fn fetching(&self, registry: &str) -> String {
        let file = if registry == "pypi" { "thing-1.0-py3-none-any.whl" } else { "thing.tar.gz" };
        let url = if registry == "https" { "url = \"https://example.invalid/thing.tar.gz\"\n" } else { "" };
        let hash = "0".repeat(64);
        let head = format!(
            "[[download]]\nsource = \"{registry}\"\nname = \"thing\"\nversion = \"1.0\"\nfile = \"{file}\"\n{url}\
             sha256 = \"{hash}\"\n[[steps]]\naction = \"source_archive\"\nfile = \"{file}\"\n"
        );
        self.world.recipe(&format!("from-{registry}"), &head, "true")
    }
}

#[test]
fn no_program_of_the_source_runs_on_the_host() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(hostile) = Hostile::new(caller) else { return };
        let (source, home) = (hostile.world.source.clone(), hostile.world.env.home());
        let of = source.to_str().unwrap();
        for (place, args) in [
            (&source, vec!["run", "--rm", "--tool", "ninja", "--", "true"]),
            (&home, vec!["run", "--rm", "--tool", "ninja", "-C", of, "--", "true"]),
            (&source, vec!["run", "--dry-run", "--tool", "ninja", "--", "true"]),
            (&source, vec!["tool", "install", "ninja"]),
            (&source, vec!["tool", "install", "--engine", "docker", "--image", "i", "ninja"]),
            (&source, vec!["doctor"]),
            (&source, vec!["run", "--rm", "--network", "nat", "--", "true"]),
            (&source, vec!["run", "--rm", "--engine", "docker", "--image", "i", "--", "true"]),
            (&source, vec!["run", "--rm", "--engine", "podman", "--image", "i", "--", "true"]),
            (&home, vec!["run", "--rm", "--engine", "podman", "--image", "i", "-C", of, "--", "true"]),
        ] {
            hostile.check(&args.join(" "), &hostile.call(place, &args));
        }
        for (registry, client) in REGISTRIES {
            let recipe = hostile.fetching(registry);
            fs_err::remove_file(hostile.calls.join(client)).ok();
            let ended = hostile.call(&source, &["tool", "install", "--yes", "--recipe", &recipe]);
            hostile.check(registry, &ended);
            assert!(!hostile.heard(client).is_empty(), "{registry}: no `{client}` was asked: {ended:?}");
        }
        let downloads = hostile.world.tools().join("downloads");
        for client in ["pip", "npm", "cargo", "apt-get", "curl"] {
            for directory in hostile.heard(client) {
                assert!(Path::new(&directory).starts_with(&downloads), "{client} was started in {directory}");
            }
            let told = hostile.heard(&format!("{client}.env"));
            let led: Vec<&String> = told.iter().filter(|line| line.contains(of)).collect();
            assert!(led.is_empty(), "{client} is led to the source: {led:?}");
        }
        // Only where the device of a tunnel can be opened is its program started.
        let tunnel = fs_err::metadata("/dev/net/tun").is_ok() && caller == Caller::Same && require::is_root();
        for program in ["docker", "podman"].iter().chain(tunnel.then_some(&"slirp4netns")) {
            assert!(!hostile.heard(program).is_empty(), "{program}");
        }
    }
}
