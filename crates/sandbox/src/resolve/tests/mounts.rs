//! What the user mounts, and the tools on PATH.

use super::machines::ann;
use super::{check, host, own_mounts, refusal, resolved, spec, with_mount};
use crate::facts::fake::Fake;
use crate::model::path::HostPath;

fn mounted(written: &[&str], machine: &Fake) -> String {
    let spec = written.iter().fold(spec("/home/ann/repo/src"), |spec, written| with_mount(spec, written));
    match resolved(&spec, &host(1000, "/home/ann", "/usr/bin"), machine) {
        Ok(resolved) => own_mounts(&resolved),
        Err(error) => refusal(&error),
    }
}

fn machine() -> Fake {
    ann()
        .dir("/srv/data/deep")
        .file("/srv/data/file", "")
        .dir("/srv/other")
        .link("/srv/data/link", "../other")
        .link("/srv/way", "data")
        .link("/home/ann/repo/escape", "/home/ann/.ssh")
        .dir("/home/ann/side")
        .socket("/srv/data/socket")
        .socket("/run/docker.sock")
        .dir("/run/user/1000")
}

#[test]
fn mounts_as_asked() {
    let asked =
        ["/srv/data", "../../side:/opt/side:rw", "/srv/other:/srv/o:cow", "/srv/data/file:/etc/extra:ro"];
    insta::assert_snapshot!(mounted(&asked, &machine()), @"");
}

#[test]
fn mounts_that_escape_by_a_symbolic_link() {
    insta::assert_snapshot!(mounted(&["../escape"], &machine()), @"");
    insta::assert_snapshot!(mounted(&["/srv/data/link"], &machine()), @"");
    insta::assert_snapshot!(mounted(&["/srv/way/deep"], &machine()), @"");
    assert!(mounted(&["/srv/data/link/../deep"], &machine()).starts_with("input mount-"));
    assert!(mounted(&["/home/ann/.ssh"], &machine()).contains("/home/ann/.ssh: read caller"));
}

#[test]
fn sources_that_are_refused() {
    for source in [
        "/",
        "/home",
        "/home/ann",
        "/run",
        "/run/docker.sock",
        "/run/user/1000",
        "/srv/data/socket",
        "/proc",
        "/dev",
    ] {
        let text = mounted(&[source], &machine().dir("/proc").dir("/dev"));
        assert!(text.starts_with("input mount-source: "), "{source}: {text}");
    }
    let state = machine().dir("/home/ann/.local/share/sandtable/sandboxes");
    for source in ["/home/ann/.local", "/home/ann/.local/share/sandtable/sandboxes"] {
        assert!(mounted(&[source], &state).starts_with("input mount-source: "), "{source}");
    }
    insta::assert_snapshot!(mounted(&["/srv/none"], &machine()), @"");
    insta::assert_snapshot!(mounted(&["/srv/data/file:/x:cow"], &machine()), @"");
    insta::assert_snapshot!(mounted(&["/srv/data:/x:cow"], &machine().mount("/srv/data/deep", "tmpfs")), @"");
}

#[test]
fn targets_that_are_refused() {
    for target in ["/", "/proc", "/proc/self", "/dev/x", "/sys/y"] {
        let text = mounted(&[&format!("/srv/data:{target}")], &machine());
        assert!(text.starts_with("input mount-target: "), "{target}: {text}");
    }
    insta::assert_snapshot!(mounted(&["/srv/data:relative"], &machine()), @"");
    insta::assert_snapshot!(mounted(&["/srv/data:/usr"], &machine()), @"");
    insta::assert_snapshot!(mounted(&["/srv/data:/bin/x"], &machine()), @"");
    insta::assert_snapshot!(mounted(&["/srv/data", "/srv/other:/srv/data"], &machine()), @"");
    insta::assert_snapshot!(mounted(&["/srv/data:/home/ann/repo"], &machine()), @"");
}

#[test]
fn what_the_user_mounts_replaces_what_we_would_show() {
    let spec = with_mount(spec("/home/ann/repo"), "/home/ann/.cargo:/home/ann/.cargo:rw");
    let host = host(1000, "/home/ann", "/home/ann/.cargo/bin:/usr/bin");
    let text = own_mounts(&resolved(&spec, &host, &ann()).unwrap());
    assert!(
        text.contains("/home/ann/.cargo: write caller\n/home/ann/.cargo/credentials.toml: masked"),
        "{text}"
    );
}

#[test]
fn tools_behind_links_and_mounts() {
    let machine = ann()
        .link("/home/ann/.pyenv", "tools/pyenv")
        .dir("/home/ann/tools/pyenv/shims")
        .link("/home/ann/.volta", "/srv/volta")
        .dir("/srv/volta/bin")
        .dir("/home/ann/go/bin")
        .dir("/home/ann/go/pkg/mod")
        .mount("/home/ann/go/pkg/mod", "tmpfs");
    let path = "/home/ann/.pyenv/shims:/home/ann/.volta/bin:/home/ann/go/bin:/usr/bin";
    let resolved = resolved(&spec("/home/ann/repo"), &host(1000, "/home/ann", path), &machine).unwrap();
    insta::assert_snapshot!(own_mounts(&resolved), @"");
    insta::assert_snapshot!(resolved.environment["PATH"].value, @"");
}

#[test]
fn a_path_directory_in_the_workspace_or_mounted_by_the_user_is_kept() {
    let machine = ann().dir("/home/ann/repo/venv/bin").owner("/home/ann", 1000, 1000);
    let spec = with_mount(spec("/home/ann/repo"), "/home/ann/bin");
    let path = "/home/ann/repo/venv/bin:/home/ann/bin";
    let text = check(&spec, &host(1000, "/home/ann", path), &machine);
    assert!(text.contains("\nPATH=/home/ann/repo/venv/bin:/home/ann/bin:/usr/local/sbin:"), "{text}");
    assert!(!text.contains("path-not-exposed"), "{text}");
}

#[test]
fn a_tool_that_is_the_workspace_is_not_mounted_twice() {
    let mut host = host(1000, "/home/ann", "/home/ann/.cargo/bin:/usr/bin");
    host.data = HostPath::new("/srv/state").unwrap();
    let text = check(&spec("/home/ann/.cargo"), &host, &ann());
    assert!(text.contains("/home/ann/.cargo: cow workspace\n/home/ann/.gitconfig"), "{text}");
}
