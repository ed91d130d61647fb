//! Whole resolutions on typical machines.

use super::machines::{ann, debian};
use super::{check, host, own_mounts, resolved, spec};
use crate::facts::fake::Fake;
use crate::model::path::HostPath;
use crate::model::setting::Setting;
use crate::model::spec::{GitConfig, Network};

const PATH: &str = "/home/ann/.cargo/bin:/home/ann/bin:/home/ann/none:.:/usr/local/bin:/usr/bin:/snap/bin";

#[test]
fn an_ordinary_user_on_debian() {
    let text = check(&spec("/home/ann/repo/src"), &host(1000, "/home/ann", PATH), &ann());
    insta::assert_snapshot!(text, @"
    source /home/ann/repo Git
    in /home/ann/repo/src, home /home/ann
    /bin: link usr/bin
    /dev: devices
    /etc: read system
    /etc/wireguard: masked
    /home/ann: private home
    /home/ann/.cargo: cow cargo
    /home/ann/.cargo/credentials.toml: masked
    /home/ann/.gitconfig: read caller
    /home/ann/.rustup: read caller
    /home/ann/repo: cow workspace
    /lib: link usr/lib
    /lib64: link usr/lib64
    /opt: read system
    /proc: processes
    /run: empty
    /sbin: link usr/sbin
    /tmp: scratch 0
    /usr: read system
    /var: empty
    /var/tmp: link /tmp
    GIT_DISCOVERY_ACROSS_FILESYSTEM=1
    HOME=/home/ann
    LC_ALL=C.UTF-8
    PATH=/home/ann/.cargo/bin:/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/sbin:/bin
    SHELL=/usr/bin/fish
    TERM=xterm
    TMPDIR=/tmp
    USER=ann
    ! path-not-exposed: directories on PATH below the home directory are not visible inside; to expose them: `--mount /home/ann/bin`
    ");
}

#[test]
fn root_with_a_repository_elsewhere() {
    let machine = debian(0)
        .mode("/etc/shadow", 0o644)
        .file("/srv/repo/.git/HEAD", "")
        .owner("/srv/repo", 1000, 100_000)
        .dir("/root");
    let text = check(&spec("/srv/repo"), &host(0, "/root", "/usr/sbin:/usr/bin"), &machine);
    insta::assert_snapshot!(text, @"
    source /srv/repo Git
    in /srv/repo, home /root
    /bin: link usr/bin
    /dev: devices
    /etc: read system
    /etc/shadow: masked
    /etc/wireguard: masked
    /lib: link usr/lib
    /lib64: link usr/lib64
    /opt: read system
    /proc: processes
    /root: private home
    /run: empty
    /sbin: link usr/sbin
    /srv/repo: cow workspace
    /tmp: scratch 0
    /usr: read system
    /var: empty
    /var/tmp: link /tmp
    GIT_DISCOVERY_ACROSS_FILESYSTEM=1
    HOME=/root
    LC_ALL=C.UTF-8
    PATH=/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin:/sbin:/bin
    SHELL=/usr/bin/fish
    TERM=xterm
    TMPDIR=/tmp
    USER=ann
    ! foreign-owner: changing them inside will fail, because they belong to another owner or group: `.`, `.git`; `chown` them to yourself and your primary group
    ");
}

#[test]
fn a_nix_system() {
    let machine = Fake::new(1000)
        .dir("/nix/store/abc-system/sw/bin")
        .dir("/nix/store/profile/bin")
        .dir("/nix/var/nix/profiles")
        .link("/run/current-system", "/nix/store/abc-system")
        .file("/bin/sh", "")
        .file("/usr/bin/env", "")
        .dir("/etc/static")
        .link("/home/ann/.nix-profile", "/nix/store/profile")
        .dir("/home/ann/work")
        .owner("/home/ann", 1000, 1000);
    let path = "/home/ann/.nix-profile/bin:/run/current-system/sw/bin:/run/wrappers/bin";
    let text = check(&spec("/home/ann/work"), &host(1000, "/home/ann", path), &machine);
    insta::assert_snapshot!(text, @"
    source /home/ann/work Plain
    in /home/ann/work, home /home/ann
    /bin: read system
    /dev: devices
    /etc: read system
    /home/ann: private home
    /home/ann/.nix-profile: link /nix/store/profile
    /home/ann/work: cow workspace
    /nix/store: read system
    /nix/var/nix/profiles: read system
    /proc: processes
    /run: empty
    /run/current-system: link /nix/store/abc-system
    /tmp: scratch 0
    /usr: read system
    /var: empty
    /var/tmp: link /tmp
    GIT_DISCOVERY_ACROSS_FILESYSTEM=1
    HOME=/home/ann
    LC_ALL=C.UTF-8
    PATH=/home/ann/.nix-profile/bin:/run/current-system/sw/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/bin
    SHELL=/bin/sh
    TERM=xterm
    TMPDIR=/tmp
    USER=ann
    ");
}

#[test]
fn a_home_directory_with_two_names() {
    let machine = debian(1000)
        .link("/home", "var/home")
        .file("/var/home/ann/.gitconfig", "")
        .file("/var/home/ann/repo/.git/HEAD", "")
        .dir("/var/home/ann/.cargo/bin")
        .dir("/var/home/ann/data")
        .owner("/var/home/ann", 1000, 1000);
    let host = host(1000, "/home/ann", "/home/ann/.cargo/bin:/usr/bin");
    let spec = super::with_mount(spec("/home/ann/repo"), "/home/ann/data:/home/ann/data:rw");
    let resolved = resolved(&spec, &host, &machine).unwrap();
    assert_eq!(
        resolved.environment["PATH"].value,
        "/var/home/ann/.cargo/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin"
    );
    let with_home: Vec<String> = resolved
        .mounts
        .iter()
        .filter(|mount| super::is_no_card(mount))
        .map(super::line)
        .filter(|line| line.contains("home"))
        .collect();
    insta::assert_snapshot!(with_home.join("\n"), @"
    /home/ann: link /var/home/ann
    /var/home/ann: private home
    /var/home/ann/.cargo: cow cargo
    /var/home/ann/.gitconfig: read caller
    /var/home/ann/data: write caller
    /var/home/ann/repo: cow workspace
    ");
}

#[test]
fn nobody_without_a_home() {
    let mut host = host(1000, "/", "/usr/bin");
    host.data = HostPath::new("/srv/state").unwrap();
    let machine = debian(1000).dir("/srv/work").owner("/srv/work", 1000, 1000);
    let resolved = resolved(&spec("/srv/work"), &host, &machine).unwrap();
    insta::assert_snapshot!(own_mounts(&resolved), @"
    /etc/wireguard: masked
    /home/sandbox: private home
    /opt: read system
    /srv/work: cow workspace
    ");
    assert_eq!(resolved.environment["HOME"].value, "/home/sandbox");
}

#[test]
fn the_resolver_comes_with_the_network_only() {
    let mut spec = spec("/home/ann/repo");
    let host = host(1000, "/home/ann", "/usr/bin");
    let stub = "/run/systemd/resolve/stub-resolv.conf: read system";
    assert!(!check(&spec, &host, &ann()).contains(stub));
    spec.network = Setting::default_value(Network::Host);
    assert!(check(&spec, &host, &ann()).contains(stub));
}

#[test]
fn without_git_configuration_nothing_of_it_is_seen() {
    let mut spec = spec("/home/ann/repo");
    spec.git_config = Setting::default_value(GitConfig::Off);
    assert!(!check(&spec, &host(1000, "/home/ann", "/usr/bin"), &ann()).contains(".gitconfig"));
}

#[test]
fn a_workspace_among_temporary_files() {
    let machine = ann().dir("/var/tmp/work").owner("/var/tmp/work", 1000, 1000).dir("/tmp/work");
    let host = host(1000, "/home/ann", "/usr/bin");
    let text = check(&spec("/var/tmp/work"), &host, &machine);
    assert!(text.contains("/var/tmp: scratch 0\n/var/tmp/work: cow workspace\n"), "{text}");
    let text = check(&spec("/tmp/work"), &host, &machine);
    assert!(text.contains("/tmp: scratch 0\n/tmp/work: cow workspace\n"), "{text}");
    let text = check(&spec("/tmp"), &host, &machine);
    assert!(text.contains("/tmp: cow workspace\n") && !text.contains("/tmp: scratch"), "{text}");
}
