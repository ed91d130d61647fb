//! Machines on paper: each says what is wrong with it and the one command that mends it.

use super::*;
use crate::facts::FileSystem;
use crate::facts::fake::Fake;
use crate::model::container::{Homeless, Questions};
use crate::model::path::HostPath;

fn machine(uid: u32) -> Fake {
    Fake::new(uid)
        .file("/proc/self/ns/user", "")
        .file("/proc/self/uid_map", "         0          0 4294967295\n")
        .file("/proc/filesystems", "nodev\tsysfs\n\text4\nnodev\toverlay\n")
        .setting("user/max_user_namespaces", "62000")
        .mount("/proc", "proc")
        .mount("/proc/sys/fs/binfmt_misc", "autofs")
        .dir("/home/ann")
        .owner("/home/ann", 1000, 1000)
}

fn host(uid: u32) -> Host {
    let home = HostPath::new("/home/ann").unwrap();
    Host {
        uid,
        gid: uid,
        data: home.join(".local/share/sandtable"),
        home: Some(home),
        executable: None,
        environment: [("PATH", "/usr/bin"), ("USER", "ann")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .into(),
        odd_variables: Vec::new(),
        foreign: Vec::new(),
        tools: Vec::new(),
    }
}

fn examined(uid: u32, machine: &Fake) -> Vec<Check> {
    let host = host(uid);
    let patient = Patient { host: &host, facts: machine };
    [foundations(patient), surroundings(patient)].concat()
}

/// What is not all right, one line each, and what would be done about it.
fn complaints(uid: u32, machine: &Fake) -> String {
    let checks = examined(uid, machine);
    let bad = checks.iter().filter(|check| check.status == Status::Fail);
    let lines: Vec<String> = bad.map(|check| format!("{}: {}", check.id, check.why)).collect();
    let mend = remedy(&checks).map(|mend| format!("-> {mend}"));
    lines.into_iter().chain(mend).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_healthy_machine_has_no_complaints() {
    assert_eq!(complaints(1000, &machine(1000)), "");
    assert_eq!(complaints(0, &machine(0)), "");
}

#[test]
fn ids_are_unique_and_every_failure_has_a_mend() {
    let sick =
        machine(1000).setting("user/max_user_namespaces", "0").kernel("4.19").mount("/proc/kcore", "tmpfs");
    let checks = examined(1000, &sick);
    let ids: std::collections::BTreeSet<&str> = checks.iter().map(|check| check.id.as_str()).collect();
    assert_eq!(ids.len(), checks.len());
    assert!(checks.iter().all(|check| check.status != Status::Fail || check.mend.is_some()), "{checks:?}");
}

#[test]
fn forbidden_user_namespaces_are_told_apart() {
    insta::assert_snapshot!(complaints(1000, &machine(1000).setting("user/max_user_namespaces", "0")), @"
    kernel.user-namespaces: `user.max_user_namespaces` is 0: nobody may make one
    -> sudo sysctl -w user.max_user_namespaces=15000
    ");
    let debian = |uid| machine(uid).setting("kernel/unprivileged_userns_clone", "0");
    insta::assert_snapshot!(complaints(1000, &debian(1000)), @"
    kernel.user-namespaces: `kernel.unprivileged_userns_clone` is 0: only root may make one
    -> sudo sysctl -w kernel.unprivileged_userns_clone=1
    ");
    assert_eq!(complaints(0, &debian(0)), "");
    let ubuntu = |uid| machine(uid).setting("kernel/apparmor_restrict_unprivileged_userns", "1");
    insta::assert_snapshot!(complaints(1000, &ubuntu(1000)), @"
    kernel.user-namespaces: `kernel.apparmor_restrict_unprivileged_userns` is 1, and no AppArmor profile allows them to us
    -> sandtable doctor --apparmor-profile | sudo tee /etc/apparmor.d/sandtable >/dev/null && sudo apparmor_parser -r /etc/apparmor.d/sandtable
    ");
    assert_eq!(complaints(0, &ubuntu(0)), "");
    let with_profile = ubuntu(1000).file("/proc/self/attr/current", "sandtable (unconfined)\n");
    assert_eq!(complaints(1000, &with_profile), "");
}

#[test]
fn old_kernels_and_missing_landlock_are_named() {
    insta::assert_snapshot!(complaints(1000, &machine(1000).kernel("5.10.0-8-amd64")), @"
    kernel.version: `5.10.0-8-amd64`, and a sandbox needs 5.13 or newer
    -> install a newer kernel and reboot
    ");
    assert_eq!(complaints(1000, &machine(1000).kernel("5.15.0")), "");
    assert!(complaints(0, &machine(0).kernel("5.15.0")).contains("a sandbox of root needs 5.19"));
    let off = machine(1000).without_landlock("Operation not supported");
    assert!(complaints(1000, &off).contains("lsm="), "{}", complaints(1000, &off));
}

#[test]
fn a_container_is_recognised_with_what_it_takes_away() {
    let masks = ["/proc/kcore", "/proc/keys", "/proc/sys"];
    let docker =
        masks.iter().fold(machine(0), |machine, path| machine.mount(path, "tmpfs")).file("/.dockerenv", "");
    let system = FileSystem { magic: 0x794c_7630, read_only: false };
    let text = complaints(0, &docker.system("/", system));
    assert!(text.contains("machine.proc: `/proc/kcore` and 2 more are covered"), "{text}");
    assert!(text.contains("state.directory:") && text.contains("overlay"), "{text}");
    assert!(text.contains("-> docker run --user 1000:1000"), "{text}");
    let inside = examined(0, &machine(0).file("/.dockerenv", ""));
    let container = inside.iter().find(|check| check.id == "machine.container").unwrap();
    assert_eq!((container.status, container.why.as_str()), (Status::Warn, "this runs in a Docker container"));
}

#[test]
fn root_of_a_small_user_namespace_cannot_give_ids_away() {
    let small = machine(0).file("/proc/self/uid_map", "0 1000 1\n");
    let text = complaints(0, &small);
    assert!(text.contains("kernel.id-range") && text.contains("-> unshare --user --map-user=1000"), "{text}");
    assert!(
        !complaints(1000, &machine(1000).file("/proc/self/uid_map", "1000 1000 1\n")).contains("id-range")
    );
}

#[test]
fn root_without_its_capabilities_is_told_to_be_somebody_else() {
    let status = |held: &str| machine(0).file("/proc/self/status", &format!("Name:\tx\nCapEff:\t{held}\n"));
    let text = complaints(0, &status("00000000a80425fb"));
    assert!(text.contains("kernel.idmapped-mounts") && text.contains("-> unshare --user"), "{text}");
    assert_eq!(complaints(0, &status("000001ffffffffff")), "");
}

#[test]
fn a_state_directory_that_cannot_be_written_is_named() {
    let closed = machine(1000).mode("/home/ann", 0o555);
    let text = complaints(1000, &closed);
    assert!(text.contains("`/home/ann` cannot be written") && text.contains("XDG_DATA_HOME"), "{text}");
}

#[test]
fn control_groups_are_told_by_kind() {
    let told = |machine: &Fake| {
        let checks = examined(1000, machine);
        checks.into_iter().find(|check| check.id == "machine.cgroups").unwrap().why
    };
    let hybrid = machine(1000)
        .mount("/sys/fs/cgroup/unified", "cgroup2")
        .mount("/sys/fs/cgroup/pids", "cgroup")
        .dir("/sys/fs/cgroup/pids/mine")
        .dir("/sys/fs/cgroup/unified")
        .owner("/sys/fs/cgroup/pids/mine", 1000, 1000)
        .file("/proc/self/cgroup", "7:pids:/mine\n0::/\n");
    assert_eq!(
        told(&hybrid),
        "hybrid: version 1 with version 2 beside it; our own group can be written in 1 of 2 hierarchies"
    );
    assert_eq!(told(&machine(1000)), "none are mounted");
}

/// What is found about Podman, and about `SELinux`.
fn podman(uid: u32, machine: &Fake) -> String {
    let host = host(uid);
    let patient = Patient { host: &host, facts: machine };
    let homeless = |engine: &&EngineChoice| {
        Questions::of(**engine).is_some_and(|questions| questions.homeless == Homeless::Yes)
    };
    let engine = *EngineChoice::ALL.iter().find(homeless).unwrap();
    let checks = super::container_engine(engine, patient, Some("tools:1"));
    let line = |check: &Check| {
        let mend = check.mend.as_ref().map(|mend| format!("\n  -> {mend}")).unwrap_or_default();
        format!("{} {}: {}{mend}", check.status.word(), check.id, check.why)
    };
    checks.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn podman_is_examined_without_being_started() {
    let here = |uid| {
        machine(uid).file("/usr/bin/podman", "").said(
            "/usr/bin/podman --version",
            0,
            ["podman version 4.3.1\n", ""],
        )
    };
    insta::assert_snapshot!(podman(1000, &machine(1000)), @"
    warn engine.podman: not installed
      -> sudo apt-get install podman
    ");
    insta::assert_snapshot!(podman(1000, &here(1000)), @"
    ok engine.podman: installed; it has never run for you, and to ask it would make its directories
    ok podman.rights: yours: the command has ids of its own
    fail podman.ids: there is no `newuidmap`
      -> sudo apt-get install uidmap
    warn podman.network: there is no `slirp4netns`: no network but `none` and `host`
      -> sudo apt-get install slirp4netns
    warn podman.limits: without root they need control groups of version 2 alone; one that is named ends with 125
    warn podman.image: not here; the first run fetches it
      -> /usr/bin/podman pull tools:1
    ");
    let ready = here(1000)
        .file("/usr/bin/newuidmap", "")
        .file("/usr/bin/slirp4netns", "")
        .file("/dev/net/tun", "")
        .mode("/dev/net/tun", 0o666)
        .file("/etc/subuid", "ann:100000:65536\n")
        .file("/etc/subgid", "1000:100000:65536\n")
        .mount("/sys/fs/cgroup", "cgroup2")
        .dir("/home/ann/.local/share/containers/storage")
        .said("/usr/bin/podman image inspect --format {{.Id}} tools:1", 0, ["abc\n", ""]);
    insta::assert_snapshot!(podman(1000, &ready), @"
    ok engine.podman: version 4.3.1
    ok podman.rights: yours: the command has ids of its own
    ok podman.ids: a range of your own
    ok podman.network: `slirp4netns` and its device are here
    ok podman.limits: control groups of version 2; those that your login delegates can be limited
    ok podman.image: here, as abc
    ");
    insta::assert_snapshot!(podman(0, &here(0)), @"
    ok engine.podman: version 4.3.1
    warn podman.rights: root's: the command shares the ids of the host, and whoever may use the engine is as good as root
    warn podman.image: not here; the first run fetches it
      -> /usr/bin/podman pull tools:1
    ");
}

#[test]
fn selinux_is_told() {
    let told = |machine: &Fake| {
        let checks = examined(1000, machine);
        checks.into_iter().find(|check| check.id == "machine.selinux").unwrap().status
    };
    assert_eq!(told(&machine(1000)), Status::Ok);
    assert_eq!(told(&machine(1000).file("/sys/fs/selinux/enforce", "1")), Status::Warn);
    assert_eq!(told(&machine(1000).file("/sys/fs/selinux/enforce", "0")), Status::Ok);
}

#[test]
fn a_systemd_that_would_give_a_control_group_is_found() {
    let told = |uid: u32, machine: &Fake| {
        let checks = examined(uid, machine);
        let check = checks.into_iter().find(|check| check.id == "machine.cgroups").unwrap();
        let mend = check.mend.map(|mend| format!("\n-> {mend}")).unwrap_or_default();
        format!("{}: {}{mend}", check.status, check.why)
    };
    let plain = |uid: u32| {
        machine(uid)
            .mount("/sys/fs/cgroup", "cgroup2")
            .dir("/sys/fs/cgroup/session-1.scope")
            .file("/proc/self/cgroup", "0::/session-1.scope\n")
            .dir("/run/systemd/system")
    };
    insta::assert_snapshot!(told(1000, &plain(1000)), @"
    warn: version 2; our own group can be written in 0 of 1 hierarchies; there is no systemd of yours that could give us one: you are not logged in
    -> sudo loginctl enable-linger 1000
    ");
    let socket = "/run/user/1000/systemd/private";
    insta::assert_snapshot!(told(1000, &plain(1000).socket(socket)), @"ok: version 2; our own group can be written in 0 of 1 hierarchies; systemd gives a sandbox with limits one of its own");
    let controllers = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers";
    insta::assert_snapshot!(told(1000, &plain(1000).socket(socket).file(controllers, "memory pids\n")), @r"
    warn: version 2; our own group can be written in 0 of 1 hierarchies; systemd gives a sandbox with limits one of its own, but without cpu
    -> sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\nDelegate=cpu memory pids\n' | sudo tee /etc/systemd/system/user@.service.d/sandtable.conf && sudo systemctl daemon-reload
    ");
    let root = plain(0).socket("/run/systemd/private");
    insta::assert_snapshot!(told(0, &root), @"ok: version 2; our own group can be written in 1 of 1 hierarchies; systemd gives a sandbox with limits one of its own");
    let dead = plain(1000).dead_socket(socket);
    assert!(told(1000, &dead).starts_with("warn: "), "{}", told(1000, &dead));
}
