//! Whom a sandbox with limits would ask for a control group.

use super::machines::ann;
use super::*;

const OWN: &str = "/run/user/1000/systemd/private";

fn limited() -> Spec {
    let mut spec = spec("/home/ann/repo");
    spec.limits.pids = Some(Setting::default_value("64".parse().unwrap()));
    spec
}

fn asked(spec: &Spec, host: &Host, machine: &Fake) -> Option<String> {
    resolved(spec, host, machine).unwrap().systemd.map(|found| found.socket.to_string())
}

#[test]
fn systemd_is_asked_where_it_has_the_groups() {
    let host = host(1000, "/home/ann", "/usr/bin:/bin");
    let machine = ann().mount("/sys/fs/cgroup", "cgroup2").socket(OWN);
    assert_eq!(asked(&limited(), &host, &machine).as_deref(), Some(OWN));
    let named =
        Host { environment: [("XDG_RUNTIME_DIR".to_owned(), "/run/own".to_owned())].into(), ..host.clone() };
    assert_eq!(asked(&limited(), &named, &machine), None, "nobody listens there");
    let there = machine.clone().socket("/run/own/systemd/private");
    assert_eq!(asked(&limited(), &named, &there).as_deref(), Some("/run/own/systemd/private"));
}

#[test]
fn nobody_is_asked_without_need() {
    let host = host(1000, "/home/ann", "/usr/bin:/bin");
    let machine = ann().mount("/sys/fs/cgroup", "cgroup2").socket(OWN);
    assert_eq!(asked(&spec("/home/ann/repo"), &host, &machine), None, "nothing is limited");
    assert_eq!(asked(&limited(), &host, &ann().socket(OWN)), None, "no groups of version 2");
    let dead = ann().mount("/sys/fs/cgroup", "cgroup2").dead_socket(OWN);
    assert_eq!(asked(&limited(), &host, &dead), None, "nobody listens");
}
