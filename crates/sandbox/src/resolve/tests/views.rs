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
    insta::assert_snapshot!(text, @"");
}

#[test]
fn root_with_a_repository_elsewhere() {
    let machine = debian(0)
        .mode("/etc/shadow", 0o644)
        .file("/srv/repo/.git/HEAD", "")
        .owner("/srv/repo", 1000, 100_000)
        .dir("/root");
    let text = check(&spec("/srv/repo"), &host(0, "/root", "/usr/sbin:/usr/bin"), &machine);
    insta::assert_snapshot!(text, @"");
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
    insta::assert_snapshot!(text, @"");
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
    let with_home: Vec<String> =
        resolved.mounts.iter().map(super::line).filter(|line| line.contains("home")).collect();
    insta::assert_snapshot!(with_home.join("\n"), @"");
}

#[test]
fn nobody_without_a_home() {
    let mut host = host(1000, "/", "/usr/bin");
    host.data = HostPath::new("/srv/state").unwrap();
    let machine = debian(1000).dir("/srv/work").owner("/srv/work", 1000, 1000);
    let resolved = resolved(&spec("/srv/work"), &host, &machine).unwrap();
    insta::assert_snapshot!(own_mounts(&resolved), @"");
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
