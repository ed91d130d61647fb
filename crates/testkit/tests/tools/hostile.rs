//! A recipe that means harm: nothing outside its sandbox changes.

use std::net::TcpListener;
use std::path::Path;

use sandtable_testkit::archive::{Tar, gzip, sha256};
use sandtable_testkit::process::Run;
use sandtable_testkit::require::{program, skip};
use serde_json::{Value, json};

use crate::world::{World, plan, possible};

/// Tries each, and writes down which worked.
const ATTACKS: &str = r#"
try() { if ( eval "$2" ) >/dev/null 2>&1; then echo "$1" >> worked; fi; }
: > worked
try control 'echo x > /build/allowed'
try home 'echo x > HOMEDIR/owned'
try home-read 'cat HOMEDIR/secret'
try outside 'echo x > OUTSIDE/victim'
try dependency-write 'echo x >> /opt/sandtable/tools/dep-1/bin/dep'
try dependency-add 'echo x > /opt/sandtable/tools/dep-1/bin/cmake'
try dependency-chmod 'chmod u+w /opt/sandtable/tools/dep-1/bin && echo x > /opt/sandtable/tools/dep-1/bin/cmake'
try depot 'ls DEPOT'
try path-directory 'echo x > /usr/bin/owned'
try local-directory 'mkdir -p /usr/local/bin && echo x > /usr/local/bin/owned'
try libraries 'echo x > /usr/lib/owned'
try remount 'mount -o remount,rw /usr/lib'
try device 'mknod /build/disk b 8 0 && cat /build/disk'
try through-a-link 'ln -s OUTSIDE /build/link && echo x > /build/link/victim'
try set-id 'cp /usr/bin/id /build/id && chmod 4755 /build/id && [ "$(/build/id -u)" = 0 ] && echo x > /usr/lib/owned'
try network 'python3 -c "import socket; socket.create_connection((\"127.0.0.1\", PORT), 2)"'
cp worked $out/
"#;

#[test]
fn a_malicious_recipe_changes_nothing_outside() {
    if !possible() {
        return;
    }
    let world = World::new();
    fs_err::write(world.path("home/secret"), "secret").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let attacks = ATTACKS
        .replace("HOMEDIR", world.path("home").to_str().unwrap())
        .replace("OUTSIDE", world.path("outside").to_str().unwrap())
        .replace("DEPOT", &format!("'{}'", world.depot().display()))
        .replace("PORT", &listener.local_addr().unwrap().port().to_string());
    let made = world.make(&plan("evil", &attacks, &[plan("dep", "", &[])]));
    assert_eq!(fs_err::read_to_string(made.source().join("worked")).unwrap(), "control\n", "{made:?}");
    assert!(listener.accept().is_err(), "somebody called");
    assert_eq!(fs_err::read_to_string(world.path("outside/victim")).unwrap(), "as it was");
    assert!(!world.path("home/owned").exists());
    assert!(!Path::new("/usr/bin/owned").exists() && !Path::new("/usr/lib/owned").exists());
    // What it depends on is as it was made: else this would be refused.
    assert_eq!(world.make(&plan("dep", "", &[])).counts(), (1, 0));
}

/// Everything that a step started is gone when it ends, whether it ended well or not.
#[test]
fn no_process_outlives_its_step() {
    if !possible() {
        return;
    }
    let world = World::new();
    let mark = format!("98765.{}", std::process::id());
    let many = format!("n=0; while [ $n -lt 60 ]; do (setsid sleep {mark} &) ; n=$((n+1)); done");
    assert_eq!(world.make(&plan("many", &many, &[])).counts(), (0, 1));
    let failing = format!("{many}; exit 1");
    assert!(world.make(&plan("failing", &failing, &[])).error().contains("ended with 1"));
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs_err::read_to_string(entry.path().join("cmdline")).ok());
    assert_eq!(lines.filter(|line| line.contains(&mark)).count(), 0, "processes are left");
}

/// A plan that unpacks one download, which a client of ours brings.
fn unpacking(world: &World, archive: &[u8]) -> Value {
    fs_err::write(world.path("archive"), archive).unwrap();
    let client = world.path("programs/curl");
    let text = format!(
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = --output ] && cp '{}' \"$2\"; shift; done\n",
        world.path("archive").display()
    );
    // By another process: what this one has open for writing, for a moment and in any thread's child, cannot be executed.
    let written = Run::new("/bin/sh", world.place.path())
        .args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""])
        .arg(client)
        .arg(text)
        .ended();
    assert_eq!(written.code, 0, "{}", written.stderr);
    let mut plan = plan("unpacks", "cat /build/tree/file", &[]);
    plan["downloads"] = json!([{
        "source": "https", "name": "thing", "version": "1", "file": "thing.tgz",
        "url": "https://example.org/thing.tgz", "sha256": sha256(archive), "size": archive.len(),
    }]);
    let steps = plan["steps"].as_array_mut().unwrap();
    steps.insert(0, json!({"action": "download_file", "file": "thing.tgz", "to": "thing.tgz"}));
    steps.insert(1, json!({"action": "extract", "archive": "thing.tgz", "format": "tar.gz", "to": "tree"}));
    plan
}

#[test]
fn a_hostile_archive_is_refused() {
    if !possible() {
        return;
    }
    let world = World::new();
    let good = Tar::default().file("file", 0o644, b"x");
    let outside = world.path("outside");
    for (bad, why) in [
        (Tar::default().file("../../../outside/victim", 0o644, b"x"), "leads out"),
        (Tar::default().file("/etc/owned", 0o644, b"x"), "absolute"),
        (Tar::default().symlink("link", outside.to_str().unwrap()), "leads out"),
        (Tar::default().symlink("a", ".").file("a/file", 0o644, b"x"), "below a symbolic link"),
        (Tar::default().hard_link("h", "../archive"), "leads out"),
    ] {
        let refused = world.make(&unpacking(&world, &gzip(&bad.finished())));
        assert!(refused.error().contains(why), "{why}: {refused:?}");
        assert!(refused.error().starts_with("unpacks: step 2 (`extract`) failed"), "{refused:?}");
    }
    assert_eq!(fs_err::read_to_string(world.path("outside/victim")).unwrap(), "as it was");
    let made = world.make(&unpacking(&world, &gzip(&good.finished())));
    assert_eq!((made.counts(), &made.answer["fetched"]), ((0, 1), &json!(1)), "{made:?}");
}

/// Steps may turn their own directory into a maze; what is done from outside stays in it.
#[test]
fn a_work_directory_full_of_links_leads_nowhere() {
    if !possible() {
        return;
    }
    let world = World::new();
    let mut maze = unpacking(&world, &gzip(&Tar::default().file("victim", 0o644, b"x").finished()));
    let link = format!("ln -s {} tree", world.path("outside").display());
    maze["steps"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"action": "run_command", "command": ["sh", "-c", link]}));
    let refused = world.make(&maze);
    assert!(refused.error().contains("step 3 (`extract`) failed"), "{refused:?}");
    assert_eq!(fs_err::read_to_string(world.path("outside/victim")).unwrap(), "as it was");
}

/// A program for glibc in a root file system with musl is refused by the name of its loader.
#[test]
fn a_program_that_cannot_run_is_refused_before_it_is_tried() {
    if !possible() {
        return;
    }
    let Some(busybox) = program("busybox") else { return skip("no static busybox") };
    let world = World::new();
    let root = world.path("root");
    for directory in ["bin", "lib", "etc", "usr/bin"] {
        fs_err::create_dir_all(root.join(directory)).unwrap();
    }
    fs_err::copy(busybox, root.join("bin/busybox")).unwrap();
    for name in ["sh", "cp", "mkdir", "chmod", "cat", "printf", "true"] {
        fs_err::os::unix::fs::symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    // Its loader need only be there, and say what it is.
    let loader = format!("lib/ld-musl-{}.so.1", std::env::consts::ARCH);
    fs_err::write(root.join(loader), b"\x7fELF\x02\x01 \x001.2.5\x00").unwrap();
    let dynamic = fs_err::read(program("env").unwrap()).unwrap();
    let archive = gzip(&Tar::default().file("file", 0o755, &dynamic).finished());
    let text = unpacking(&world, &archive).to_string().replace("\"glibc\"", "\"musl\"");
    let mut plan: Value = serde_json::from_str(&text).unwrap();
    plan["provides"]["binaries"] = json!(["bin/unpacks", "bin/env"]);
    plan["steps"].as_array_mut().unwrap().push(json!({"action": "install_binaries",
        "files": [{"from": "tree/file", "to": "bin/env"}], "executables": ["bin/env"]}));
    let refused = world.make_with(&plan, &["--root", root.to_str().unwrap()]);
    assert_eq!(refused.answer["code"], "tool-misfit", "{refused:?}");
    assert!(refused.error().contains("needs the program loader `/lib"), "{refused:?}");
    assert!(refused.error().contains("the root file system has musl 1.2.5"), "{refused:?}");
    assert!(refused.answer["remedy"].as_str().unwrap().contains("musllinux"));
}

/// A package manager would change the system that it runs in, and this machine's is not for that.
#[test]
fn packages_are_never_installed_into_this_machine() {
    let world = World::new();
    let mut packages = plan("packages", "", &[]);
    let step = json!({"action": "system_packages", "manager": "apt", "packages": ["hello"]});
    packages["steps"].as_array_mut().unwrap().insert(0, step);
    let refused = world.make(&packages);
    assert_eq!(refused.answer["code"], "tool-packages", "{refused:?}");
    assert!(refused.error().contains("not into this machine's"), "{refused:?}");
    assert!(refused.answer["remedy"].as_str().unwrap().contains("--rootfs"), "{refused:?}");

    let mut other = plan("other", "", &[]);
    other["platform"]["linux_family"] =
        if crate::families::here() == "arch" { "suse" } else { "arch" }.into();
    let refused = world.make(&other);
    assert_eq!(refused.answer["code"], "tool-platform", "{refused:?}");
}
