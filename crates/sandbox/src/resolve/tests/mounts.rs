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
        .dir("/opt/side")
        .file("/etc/extra", "")
        .owner("/home/ann", 1000, 1000)
}

#[test]
fn mounts_as_asked() {
    let asked =
        ["/srv/data", "../../side:/opt/side:rw", "/srv/other:/srv/o:cow", "/srv/data/file:/etc/extra:ro"];
    insta::assert_snapshot!(mounted(&asked, &machine()), @"
    /etc/extra: read caller from /srv/data/file
    /etc/wireguard: masked
    /home/ann: private home
    /home/ann/.gitconfig: read caller
    /home/ann/repo: cow workspace
    /opt: read system
    /opt/side: write caller from /home/ann/side
    /srv/data: read caller
    /srv/o: cow mount-2 from /srv/other
    ");
}

#[test]
fn mounts_that_escape_by_a_symbolic_link() {
    insta::assert_snapshot!(mounted(&["../escape"], &machine()), @"
    input mount-symlink: mount source `/home/ann/repo/escape` leads through a symbolic link to `/home/ann/.ssh`
      name `/home/ann/.ssh` itself if that is meant
    ");
    insta::assert_snapshot!(mounted(&["/srv/data/link"], &machine()), @"
    input mount-symlink: mount source `/srv/data/link` leads through a symbolic link to `/srv/other`
      name `/srv/other` itself if that is meant
    ");
    insta::assert_snapshot!(mounted(&["/srv/way/deep"], &machine()), @"
    input mount-symlink: mount source `/srv/way/deep` leads through a symbolic link to `/srv/data/deep`
      name `/srv/data/deep` itself if that is meant
    ");
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
    insta::assert_snapshot!(mounted(&["/srv/none"], &machine()), @"input mount-missing: mount source `/srv/none` cannot be used: there is no such file or directory");
    insta::assert_snapshot!(mounted(&["/srv/data/file:/x:cow"], &machine()), @"
    input mount-cow-file: `/srv/data/file` cannot be mounted copy-on-write: it is not a directory
      mount it `:ro` or `:rw`, or mount its directory
    ");
    insta::assert_snapshot!(mounted(&["/srv/data:/x:cow"], &machine().mount("/srv/data/deep", "tmpfs")), @"
    machine submounts: an overlay cannot show what is mounted below `/srv/data`: `/srv/data/deep`
      run in a directory without mounts below it, unmount `/srv/data/deep`, or copy the workspace: `--mode copy`
    ");
}

#[test]
fn targets_that_are_refused() {
    for target in ["/", "/proc", "/proc/self", "/dev/x", "/sys/y"] {
        let text = mounted(&[&format!("/srv/data:{target}")], &machine());
        assert!(text.starts_with("input mount-target: "), "{target}: {text}");
    }
    assert!(mounted(&["/srv/data:/opt/none"], &machine()).contains("there is no directory `/opt/none`"));
    assert!(mounted(&["/srv/data:/etc/extra"], &machine()).contains("there is no directory `/etc/extra`"));
    assert!(mounted(&["/srv/data/file:/opt/side"], &machine()).contains("there is no file `/opt/side`"));
    insta::assert_snapshot!(mounted(&["/srv/data:relative"], &machine()), @"input mount-path: the path of a mount is not usable: path `relative` is not absolute");
    insta::assert_snapshot!(mounted(&["/srv/data:/usr"], &machine()), @"input mount-conflict: the mounts contradict each other: two mounts at `/usr`: asked for by flag --mount and programs, libraries and their data");
    insta::assert_snapshot!(mounted(&["/srv/data:/bin/x"], &machine()), @"input mount-conflict: the mounts contradict each other: nothing can be mounted at `/bin/x` below a symbolic link at `/bin`");
    insta::assert_snapshot!(mounted(&["/srv/data", "/srv/other:/srv/data"], &machine()), @"input mount-conflict: the mounts contradict each other: two mounts at `/srv/data`: asked for by flag --mount and asked for by flag --mount");
    insta::assert_snapshot!(mounted(&["/srv/data:/home/ann/repo"], &machine()), @"input mount-conflict: the mounts contradict each other: two mounts at `/home/ann/repo`: the workspace and asked for by flag --mount");
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
    insta::assert_snapshot!(own_mounts(&resolved), @"
    /etc/wireguard: masked
    /home/ann: private home
    /home/ann/.gitconfig: read caller
    /home/ann/.pyenv: read caller from /home/ann/tools/pyenv
    /home/ann/go/bin: read caller
    /home/ann/go/pkg: read caller
    /home/ann/repo: cow workspace
    /opt: read system
    ! toolchain-read-only: `/home/ann/go/pkg` is read-only inside: an overlay cannot show what is mounted below `/home/ann/go/pkg`: `/home/ann/go/pkg/mod`
    ! toolchain-outside: `/home/ann/.volta` leads out of the home directory to `/srv/volta` and is not visible inside
    ! path-not-exposed: directories on PATH below the home directory are not visible inside; to expose them: `--mount /srv/volta/bin:/home/ann/.volta/bin`
    ");
    insta::assert_snapshot!(resolved.environment["PATH"].value, @"/home/ann/.pyenv/shims:/home/ann/go/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin");
}

#[test]
fn our_own_state_is_hidden_below_what_is_shown() {
    let mut host = host(1000, "/home/ann", "/usr/bin");
    host.data = HostPath::new("/opt/state/sandtable").unwrap();
    let text = check(&spec("/home/ann/repo"), &host, &ann());
    assert!(text.contains("/opt: read system\n/opt/state/sandtable: masked\n"), "{text}");
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
