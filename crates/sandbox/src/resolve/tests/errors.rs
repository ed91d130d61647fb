//! Everything that is refused: by whom it can be mended, under which code, and how.

use super::machines::{ann, debian};
use super::{check, host, spec};
use crate::facts::FileSystem;
use crate::facts::fake::Fake;
use crate::host::Host;
use crate::model::path::HostPath;
use crate::model::setting::Setting;
use crate::model::spec::{EngineChoice, Network, SourceGuard, WorkspaceMode};

fn caller() -> Host {
    host(1000, "/home/ann", "/usr/bin")
}

fn state_at(path: &str) -> Host {
    Host { data: HostPath::new(path).unwrap(), ..caller() }
}

fn engine(choice: EngineChoice, machine: &Fake) -> String {
    let mut spec = spec("/home/ann/repo");
    spec.engine = Setting::default_value(choice);
    check(&spec, &caller(), machine)
}

#[test]
fn engines() {
    let installed = ann().file("/usr/bin/podman", "");
    insta::assert_snapshot!(engine(EngineChoice::Docker, &ann()), @"
    machine engine-missing: engine `docker` was asked for but is not installed: no `docker` on PATH
      `apt-get install docker.io`, or leave out `--engine` to run natively
    ");
    insta::assert_snapshot!(engine(EngineChoice::Podman, &ann()), @"
    machine engine-missing: engine `podman` was asked for but is not installed: no `podman` on PATH
      `apt-get install podman`, or leave out `--engine` to run natively
    ");
    insta::assert_snapshot!(engine(EngineChoice::Podman, &installed), @r#"
    input image-unnamed: engine `podman` needs an image, and none was named
      name one: `--image NAME`, the variable `LLXPRT_SANDBOX_IMAGE`, or `image = "NAME"` in the configuration
    "#);
    insta::assert_snapshot!(engine(EngineChoice::Seatbelt, &ann()), @"
    machine engine-elsewhere: engine `seatbelt` exists on macOS only
      use `--engine native`, or leave out `--engine`
    ");
    assert!(engine(EngineChoice::Native, &ann()).starts_with("source"));
}

#[test]
fn networks() {
    let mut spec = spec("/home/ann/repo");
    spec.network = Setting::default_value(Network::Nat);
    insta::assert_snapshot!(check(&spec, &caller(), &ann()), @"
    machine network-helper-missing: network `nat` needs a program that carries packets: there is no `slirp4netns` on PATH
      `apt-get install slirp4netns`, or use `--network none` or `--network host`
    ");
    let no_device = ann().file("/usr/bin/slirp4netns", "");
    insta::assert_snapshot!(check(&spec, &caller(), &no_device), @"
    machine network-device: network `nat` needs the device `/dev/net/tun`, which cannot be opened
      `modprobe tun` and `chmod 666 /dev/net/tun` as root, or use `--network none` or `--network host`
    ");
}

#[test]
fn sources_that_are_none() {
    let machine = ann().mode("/home/ann/repo", 0).dir("/proc/1").dir("/dev/shm/work");
    insta::assert_snapshot!(check(&spec("/home/ann/none"), &caller(), &machine), @"input source-missing: the directory `/home/ann/none` cannot be used: there is no such file or directory");
    insta::assert_snapshot!(check(&spec("/home/ann/.gitconfig"), &caller(), &machine), @"input source-not-directory: `/home/ann/.gitconfig` is not a directory");
    insta::assert_snapshot!(check(&spec("/proc/1"), &caller(), &machine), @"input source-pseudo: `/proc/1` holds no files but the kernel's own view");
    insta::assert_snapshot!(check(&spec("/dev/shm/work"), &caller(), &machine), @"input source-pseudo: `/dev/shm/work` holds no files but the kernel's own view");
}

#[test]
fn sources_that_are_too_wide() {
    for (path, why) in [
        ("/", "is the root of the file system"),
        ("/home", "contains the home directory"),
        ("/home/ann", "is the home directory"),
        ("/etc", "is or contains a directory of the system"),
        ("/run", "is or contains a directory of the system"),
    ] {
        let text = check(&spec(path), &caller(), &ann());
        assert!(text.starts_with("input source-too-wide: ") && text.contains(why), "{text}");
        assert!(text.contains("--dangerously-allow-source"), "{text}");
    }
}

#[test]
fn a_wide_source_can_be_allowed() {
    let mut spec = spec("/home/ann");
    spec.source_guard = Setting::default_value(SourceGuard::Allow);
    let text = check(&spec, &state_at("/srv/state"), &ann());
    assert!(text.contains("/home/ann: cow workspace"), "{text}");
    assert!(!text.contains("private home") && !text.contains(".gitconfig"), "{text}");
    insta::assert_snapshot!(check(&spec, &caller(), &ann()), @"
    input source-holds-state: `/home/ann` contains Sandtable's own state at `/home/ann/.local/share/sandtable`
      run in a narrower directory, or let `XDG_DATA_HOME` name a directory outside it
    ");
}

#[test]
fn sources_with_credentials_or_our_own_state() {
    let linked = ann().file("/home/ann/dots/creds", "").link("/home/ann/.git-credentials", "dots/creds");
    insta::assert_snapshot!(check(&spec("/home/ann/dots"), &caller(), &linked), @"
    input source-holds-credentials: the workspace `/home/ann/dots` contains the credential store `/home/ann/dots/creds`
      move `/home/ann/dots/creds` out of it, or say `--dangerously-allow-source`
    ");
    let copied = ann().file("/home/ann/repo/.git-credentials", "");
    insta::assert_snapshot!(check(&spec("/home/ann/repo"), &caller(), &copied), @"
    input source-holds-credentials: the workspace `/home/ann/repo` contains the credential store `/home/ann/repo/.git-credentials`
      move `/home/ann/repo/.git-credentials` out of it, or say `--dangerously-allow-source`
    ");
    insta::assert_snapshot!(check(&spec("/home/ann/repo"), &state_at("/home/ann/repo/state"), &ann()), @"
    input source-holds-state: `/home/ann/repo` contains Sandtable's own state at `/home/ann/repo/state`
      run in a narrower directory, or let `XDG_DATA_HOME` name a directory outside it
    ");
    let inside = ann().dir("/home/ann/state/sandboxes/x");
    insta::assert_snapshot!(check(&spec("/home/ann/state/sandboxes"), &state_at("/home/ann/state"), &inside), @"input source-in-state: `/home/ann/state/sandboxes` lies in Sandtable's own state at `/home/ann/state`");
    let symlinked = ann().link("/srv/state", "/home/ann/repo/state").dir("/home/ann/repo/state");
    let text = check(&spec("/home/ann/repo"), &state_at("/srv/state"), &symlinked);
    assert!(text.starts_with("input source-holds-state"), "{text}");
}

#[test]
fn overlays_that_cannot_be() {
    let overlay = || {
        let mut spec = spec("/home/ann/repo");
        spec.mode = Setting::default_value(WorkspaceMode::Overlay);
        spec
    };
    let submounts = ann().mount("/home/ann/repo/mnt/a b", "tmpfs").mount("/home/ann/repository", "tmpfs");
    insta::assert_snapshot!(check(&overlay(), &caller(), &submounts), @"
    machine submounts: an overlay cannot show what is mounted below `/home/ann/repo`: `/home/ann/repo/mnt/a b`
      run in a directory without mounts below it, unmount `/home/ann/repo/mnt/a b`, or copy the workspace: `--mode copy`
    ");
    let vfat = ann().system("/home/ann/repo", FileSystem { magic: 0x4d44, read_only: false });
    insta::assert_snapshot!(check(&overlay(), &caller(), &vfat), @"
    machine source-file-system: `/home/ann/repo` cannot be the lower part of an overlay: it is on vfat, and names there do not keep upper and lower case apart
      copy the workspace: `--mode copy`, or move the project to another file system
    ");
    let frozen = ann().system("/home/ann/repo", FileSystem { magic: 0xef53, read_only: true });
    assert!(check(&spec("/home/ann/repo"), &caller(), &frozen).starts_with("source /home/ann/repo"));
    let stacked = ann().system("/home/ann/repo", FileSystem { magic: 0x794c_7630, read_only: false });
    assert!(check(&spec("/home/ann/repo"), &caller(), &stacked).starts_with("source /home/ann/repo"));
}

#[test]
fn state_that_cannot_hold_layers() {
    let on =
        |magic: u64| ann().dir("/srv/state").system("/srv/state", FileSystem { magic, read_only: false });
    let host = state_at("/srv/state/sandtable");
    let mut spec = spec("/home/ann/repo");
    spec.mode = Setting::default_value(WorkspaceMode::Overlay);
    insta::assert_snapshot!(check(&spec, &host, &on(0x794c_7630)), @"
    machine state-file-system: the state directory `/srv/state/sandtable` cannot hold a sandbox's layer: it is on overlay, and an overlay cannot hold the layer of another overlay
      let `XDG_DATA_HOME` name a directory on a local, writable file system such as ext4, xfs or btrfs
    ");
    for magic in [0x6969, 0x6573_5546, 0x4d44, 0x0102_1997, 0x8584_58f6] {
        assert!(check(&spec, &host, &on(magic)).starts_with("machine state-file-system: "), "{magic:x}");
    }
    insta::assert_snapshot!(check(&spec, &host, &on(0x0102_1994).kernel("6.1.0-18-amd64")), @"
    machine state-file-system: the state directory `/srv/state/sandtable` cannot hold a sandbox's layer: it is on tmpfs, and before Linux 6.6 it has no attributes of users
      let `XDG_DATA_HOME` name a directory on a local, writable file system such as ext4, xfs or btrfs
    ");
    assert!(check(&spec, &host, &on(0x0102_1994).kernel("6.6.0")).starts_with("source"));
    let frozen = on(0).system("/srv/state", FileSystem { magic: 0xef53, read_only: true });
    insta::assert_snapshot!(check(&spec, &host, &frozen), @"
    machine state-read-only: the state directory `/srv/state/sandtable` is on a read-only file system
      let `XDG_DATA_HOME` name a directory on a local, writable file system such as ext4, xfs or btrfs
    ");
}

#[test]
fn owners_that_do_not_exist_inside_are_named() {
    let machine = debian(1000)
        .dir("/srv/work")
        .owner("/srv/work", 1000, 1000)
        .file("/srv/work/a", "")
        .file("/srv/work/b", "")
        .file("/srv/work/c", "")
        .owner("/srv/work/b", 1000, 4)
        .owner("/srv/work/c", 1000, 1000)
        .dir("/home/ann");
    let text = check(&spec("/srv/work"), &caller(), &machine);
    assert!(text.contains("! foreign-owner: ") && text.contains(": `a`, `b`; "), "{text}");
    let many = (0..8).fold(machine, |machine, n| machine.file(&format!("/srv/work/f{n}"), ""));
    let text = check(&spec("/srv/work"), &caller(), &many);
    assert!(text.contains(": `a`, `b`, `f0`, `f1`, `f2` and 5 more; "), "{text}");
}
