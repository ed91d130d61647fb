//! The attacks of the threat model, tried on this machine from inside the sandbox of the trial.
//!
//! Every probe takes its smallest step and is harmless where it goes through. What it is pointed at is real:
//! a file, sockets and a process of our own outside, and the places where people keep secrets.

use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use sandtable_app::env::Environment;
use sandtable_launch::inside::probe::{self, Probe};
use sandtable_protocol::probe::{Case, Class, Line};
use sandtable_sandbox::model::resolved::ResolvedSpec;
use serde::Serialize;

use crate::ui::escape;

/// One attack and what came of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Attack {
    pub(super) probe: String,
    /// Its numbers in the threat model.
    pub(super) attacks: Vec<String>,
    pub(super) expected: Class,
    pub(super) got: Class,
    pub(super) detail: String,
}

impl Attack {
    /// Whether something happened that must not. What could not be tried did not.
    pub(super) fn went_through(&self) -> bool {
        self.got != self.expected && self.got != Class::Unsupported
    }

    pub(super) fn row(&self) -> [String; 4] {
        let verdict = match self.got {
            Class::Unsupported => "not tried",
            _ if self.went_through() => "WENT THROUGH",
            Class::Works => "works",
            _ => "stopped",
        };
        [verdict.to_owned(), self.probe.clone(), self.attacks.join(" "), escape::line(&self.detail)]
    }
}

/// What stands outside for the attacks to find, kept alive while they are made.
#[derive(Debug)]
pub(super) struct Stage {
    secret: String,
    /// A directory of ours that can be written from inside.
    lent: String,
    mark: String,
    home: String,
    hidden_variables: Vec<String>,
    socket_name: String,
    loopback: TcpListener,
    _abstract: UnixListener,
}

/// Probes of what must work; all others must be stopped.
const WORKING: [&str; 5] = ["size-limit", "sparse-file", "env-names", "unknown-syscall", "own-loopback"];

/// Nobody answers there: the block is kept free for documents.
const OUTSIDE: &str = "192.0.2.1:9";

impl Stage {
    /// Sets the stage in a directory of our own.
    pub(super) fn set(place: &Path, resolved: &ResolvedSpec, environment: &Environment) -> io::Result<Self> {
        let mark = format!("canary-{}", std::process::id());
        let secret = place.join("secret");
        fs_err::write(&secret, &mark)?;
        let socket_name = format!("sandtable-doctor-{}", std::process::id());
        let hidden = environment.names().filter(|name| !resolved.environment.contains_key(*name));
        Ok(Self {
            secret: secret.to_string_lossy().into_owned(),
            lent: place.join("out").to_string_lossy().into_owned(),
            mark,
            home: resolved.home.to_string(),
            hidden_variables: hidden.map(str::to_owned).collect(),
            loopback: TcpListener::bind("127.0.0.1:0")?,
            _abstract: UnixListener::bind_addr(&SocketAddr::from_abstract_name(&socket_name)?)?,
            socket_name,
        })
    }

    /// Every probe that makes sense here.
    pub(super) fn cases(&self) -> Vec<Case> {
        probe::all()
            .filter_map(|probe| Some(Case { probe: probe.name.to_owned(), args: self.args(probe)? }))
            .collect()
    }

    /// What a probe is pointed at; `None` for those that need a prepared source.
    fn args(&self, probe: &Probe) -> Option<Vec<String>> {
        let home = |name: &str| format!("{}/{name}", self.home);
        Some(match probe.name {
            "append" | "rename" => return None,
            "open-sensitive" => {
                let homes =
                    [".ssh", ".aws", ".gnupg", ".netrc", ".git-credentials", ".docker/config.json", ".kube"];
                let mut paths: Vec<String> = homes.map(home).into();
                paths.extend(["/etc/shadow", "/var/log", "/var/lib"].map(str::to_owned));
                paths.push(self.secret.clone());
                paths
            }
            "read-mark" => vec![self.mark.clone(), self.secret.clone()],
            "write-path" => words(&["/usr/bin/env", "/bin/sh", "/etc/passwd", "/etc/hosts"]),
            "create-path" => words(&["/probe-file", "/usr/probe-file", "/etc/probe-file", "/var/probe-file"]),
            "hard-link" => words(&["/usr/bin/env", "linked-env"]),
            "nosuid" => words(&["."]),
            "set-id" => vec![self.lent.clone()],
            "size-limit" => {
                let places = ["/tmp", "/var/tmp", "/dev/shm"].map(str::to_owned);
                places.into_iter().chain([self.home.clone()]).collect()
            }
            "proc-self-root" => vec![self.secret.clone()],
            "host-process" => words(&["doctor"]),
            "hostname" => vec![text("/proc/sys/kernel/hostname")],
            "signal-host" => vec![std::process::id().to_string()],
            "env-absent" => self.hidden_variables.clone(),
            "abstract-socket" => vec![self.socket_name.clone()],
            "path-socket" => {
                words(&["/run/docker.sock", "/run/dbus/system_bus_socket", "/run/podman/podman.sock"])
            }
            "connect-loopback" => vec![self.loopback.local_addr().ok()?.to_string()],
            "tcp-out" | "udp-out" | "icmp" => words(&[OUTSIDE]),
            "dns" => words(&["192.0.2.1:53"]),
            name => match name.strip_prefix("namespace-") {
                Some(kind) => {
                    vec![fs_err::read_link(format!("/proc/self/ns/{kind}")).ok()?.to_string_lossy().into()]
                }
                None => Vec::new(),
            },
        })
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn text(path: &str) -> String {
    fs_err::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// What came of each attempt. One that has no answer was not tried.
pub(super) fn judged(cases: &[Case], lines: Vec<Line>) -> Vec<Attack> {
    let mut lines = lines.into_iter();
    let judge = |case: &Case| {
        let line = lines.next();
        let probe = probe::find(&case.probe)?;
        let expected = if WORKING.contains(&probe.name) { Class::Works } else { Class::Blocked };
        let (got, detail) =
            line.map_or((Class::Unsupported, "no answer".to_owned()), |line| (line.class, line.detail));
        let attacks = probe.attacks.iter().map(|id| (*id).to_owned()).collect();
        Some(Attack { probe: case.probe.clone(), attacks, expected, got, detail })
    };
    cases.iter().filter_map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(case: &str, class: Class) -> Line {
        Line { case: case.to_owned(), class, detail: String::new() }
    }

    #[test]
    fn an_answer_is_judged_by_what_must_come_of_it() {
        let cases = ["caps", "size-limit", "bpf", "chroot"]
            .map(|probe| Case { probe: probe.to_owned(), args: vec![] });
        let lines =
            vec![line("caps", Class::Leak), line("size-limit", Class::Blocked), line("bpf", Class::Blocked)];
        let verdicts: Vec<bool> = judged(&cases, lines).iter().map(Attack::went_through).collect();
        assert_eq!(verdicts, [true, true, false, false]);
    }

    #[test]
    fn what_must_work_are_probes() {
        assert!(WORKING.iter().all(|name| probe::find(name).is_some()));
    }
}
