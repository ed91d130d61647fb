//! Who the command is and what it was given: ids, privileges, namespaces, descriptors, environment.

use std::ffi::OsString;
use std::path::Path;

use sandtable_protocol::report::Control::{
    self, Descriptors, NoCapabilities, NoNewPrivileges, PrivateIds, SealedInit, Seccomp,
};

use super::finding::{describe, name};
use super::procfs::bytes;
use super::{Attempt, Finding, Probe};
use crate::sys::probe::signal_zero;

pub(super) const PROBES: &[Probe] = &[
    probe("fds", &["box/F12"], &[Descriptors], |_| descriptors()),
    probe("caps", &["box/F17", "box/P8"], &[NoCapabilities], |_| capabilities()),
    probe("nnp", &["box/F17"], &[NoNewPrivileges], |_| status("NoNewPrivs", "1")),
    probe("seccomp-mode", &["box/P6", "box/P21"], &[Seccomp], |_| status("Seccomp", "2")),
    probe("landlock", &["box/P21"], &[Control::Landlock], |_| landlock_layers()),
    probe("kernel-root", &["box/P3"], &[PrivateIds], |_| kernel_root()),
    probe("core-limit", &["box/P19"], &[Control::NoCoreDumps], |_| core_limit()),
    probe("pending-signals", &["box/P16"], &[], |_| pending_signals()),
    probe("namespace-user", &["box/P8"], &[Control::UserNamespace], |args| namespace("user", args)),
    probe("namespace-mnt", &["box/F14"], &[Control::MountNamespace], |args| namespace("mnt", args)),
    probe("namespace-pid", &["box/P13"], &[Control::PidNamespace], |args| namespace("pid", args)),
    probe("namespace-ipc", &["box/P18"], &[Control::IpcNamespace], |args| namespace("ipc", args)),
    probe("namespace-uts", &["box/P18"], &[Control::UtsNamespace], |args| namespace("uts", args)),
    probe("namespace-cgroup", &["box/P17"], &[Control::CgroupNamespace], |args| namespace("cgroup", args)),
    probe("namespace-net", &["box/N1", "box/N20"], &[Control::NetworkNamespace], |args| {
        namespace("net", args)
    }),
    probe("session", &["box/P4"], &[Control::Session], |_| session()),
    probe("hostname", &["box/P18"], &[Control::UtsNamespace], hostname),
    probe("signal-host", &["box/P13"], &[Control::PidNamespace], signal_host),
    probe("pidfd-getfd-init", &["box/P1", "box/P12"], &[SealedInit], |_| pidfd_getfd()),
    probe("env-absent", &["box/P18"], &[SealedInit], env_absent),
    probe("env-names", &[], &[], |_| env_names()),
];

const fn probe(
    name: &'static str,
    attacks: &'static [&'static str],
    claims: &'static [Control],
    steps: fn(&[OsString]) -> Finding,
) -> Probe {
    Probe { name, attacks, claims, attempt: Attempt::Steps(steps) }
}

/// Only standard input, output and error, and the handle this very listing needs.
fn descriptors() -> Finding {
    let entries = match Path::new("/proc/self/fd").read_dir() {
        Ok(entries) => entries,
        Err(error) => return Finding::unsupported(describe(&error)),
    };
    let link = |number: &u32| std::fs::read_link(format!("/proc/self/fd/{number}"));
    let numbers: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let others: Vec<String> = numbers
        .iter()
        .filter(|number| **number > 2)
        .filter_map(|number| Some(format!("{number}={}", link(number).ok()?.display())))
        .collect();
    Finding::leak_if_any(&others, "0, 1 and 2 only")
}

fn capabilities() -> Finding {
    let status = own_status();
    let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    let held: Vec<String> = sets
        .iter()
        .filter(|set| field(&status, set).is_none_or(|value| value.bytes().any(|digit| digit != b'0')))
        .map(|set| format!("{set}={}", field(&status, set).unwrap_or("?")))
        .collect();
    Finding::leak_if_any(&held, "every set is empty")
}

fn status(key: &str, wanted: &str) -> Finding {
    let status = own_status();
    let value = field(&status, key).unwrap_or("?");
    let detail = format!("{key} is {value}");
    if value == wanted { Finding::blocked(detail) } else { Finding::leak(detail) }
}

/// Nothing shows whether Landlock is in force, but the kernel stacks at most sixteen rule sets: whoever can
/// add them all had none before.
fn landlock_layers() -> Finding {
    use landlock::{AccessFs, Ruleset, RulesetAttr};
    const MOST: usize = 16;
    let add = || Ruleset::default().handle_access(AccessFs::MakeFifo)?.create()?.restrict_self();
    let own = (0..MOST)
        .take_while(|_| add().is_ok_and(|status| status.ruleset != landlock::RulesetStatus::NotEnforced));
    match own.count() {
        0 => Finding::unsupported("no rule set could be added"),
        MOST => Finding::leak("no rule set was in force"),
        added => Finding::blocked(format!("{} rule sets were in force", MOST - added)),
    }
}

/// Which id the kernel checks this process with, as far as its own namespace shows it.
fn kernel_root() -> Finding {
    let uid = rustix::process::getuid().as_raw();
    let map = String::from_utf8_lossy(&bytes(Path::new("/proc/self/uid_map"), 4096).unwrap_or_default())
        .into_owned();
    let outside = map.lines().find_map(|line| {
        let numbers: Vec<u32> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [inside, outside, count] = numbers[..] else { return None };
        (uid >= inside && uid - inside < count).then(|| outside + (uid - inside))
    });
    match outside {
        Some(0) => Finding::leak(format!("uid {uid} is root of the namespace around it")),
        Some(outside) => Finding::blocked(format!("uid {uid} is {outside} outside")),
        None => Finding::unsupported("no id map to read"),
    }
}

fn core_limit() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Core);
    match limit.maximum {
        Some(0) => Finding::blocked("hard limit 0"),
        other => Finding::leak(format!("hard limit {other:?}")),
    }
}

/// They are counted for the user, who could have no timer any more.
fn pending_signals() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Sigpending);
    match limit.maximum {
        Some(most) if most <= 4096 => Finding::blocked(format!("hard limit {most}")),
        other => Finding::leak(format!("hard limit {other:?}")),
    }
}

/// `LINK`: what `/proc/self/ns/KIND` is on the host.
fn namespace(kind: &str, args: &[OsString]) -> Finding {
    let Some(host) = args.first() else { return Finding::unsupported("needs the host's link") };
    match std::fs::read_link(format!("/proc/self/ns/{kind}")) {
        Ok(own) if own.as_os_str() == host => Finding::leak(format!("shared: {}", own.display())),
        Ok(own) => Finding::blocked(own.display().to_string()),
        Err(error) => Finding::blocked(describe(&error)),
    }
}

/// A session whose leader is outside shows as 0; one that was inherited could still own a terminal.
fn session() -> Finding {
    let stat =
        String::from_utf8_lossy(&bytes(Path::new("/proc/self/stat"), 4096).unwrap_or_default()).into_owned();
    // The name before the last parenthesis may hold anything; state, parent, group and session follow it.
    let leader =
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(3)?.parse::<u32>().ok());
    match leader {
        Some(0) => Finding::leak("the session's leader is outside of this pid namespace"),
        Some(leader) => Finding::blocked(format!("the leader is {leader}")),
        None => Finding::unsupported("no session to read"),
    }
}

/// `NAME`: the host's name.
fn hostname(args: &[OsString]) -> Finding {
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    match args.first() {
        Some(host) if host.to_str() == Some(own.as_str()) => Finding::leak(own),
        Some(_) => Finding::blocked(own),
        None => Finding::unsupported("needs the host's name"),
    }
}

/// `PID`: a process of the host. Signal 0 only asks.
fn signal_host(args: &[OsString]) -> Finding {
    let Some(pid) = args.first().and_then(|pid| pid.to_str()?.parse().ok()).filter(|pid| *pid > 1) else {
        return Finding::unsupported("needs a process id");
    };
    match signal_zero(pid) {
        Ok(()) => Finding::leak(format!("{pid} can be signalled")),
        Err(errno) => Finding::blocked(name(errno)),
    }
}

fn pidfd_getfd() -> Finding {
    use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
    let taken = pidfd_open(Pid::INIT, PidfdFlags::empty())
        .and_then(|init| pidfd_getfd(init, 0, PidfdGetfdFlags::empty()));
    Finding::of_io(taken.map_err(Into::into), "took a descriptor of PID 1")
}

/// `NAME…`: variables that must not be there.
fn env_absent(args: &[OsString]) -> Finding {
    let names = variables();
    let found: Vec<String> = args
        .iter()
        .filter_map(|name| name.to_str())
        .filter(|name| names.iter().any(|n| n == name))
        .map(Into::into)
        .collect();
    Finding::leak_if_any(&found, format!("none among {} variables", names.len()))
}

fn env_names() -> Finding {
    Finding::works(variables().join(" "))
}

/// From the kernel rather than the library: what was really handed over.
fn variables() -> Vec<String> {
    let environ = bytes(Path::new("/proc/self/environ"), 1 << 20).unwrap_or_default();
    let mut names: Vec<String> = String::from_utf8_lossy(&environ)
        .split('\0')
        .filter_map(|entry| Some(entry.split_once('=')?.0.to_owned()))
        .collect();
    names.sort();
    names
}

fn own_status() -> String {
    String::from_utf8_lossy(&bytes(Path::new("/proc/self/status"), 1 << 16).unwrap_or_default()).into_owned()
}

fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim()))
}
