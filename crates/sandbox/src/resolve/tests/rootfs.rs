//! Images as the root of a native sandbox.

use super::machines::ann;
use super::{check, host, spec, with_mount};
use crate::facts::fake::Fake;
use crate::model::setting::{Origin, Setting};
use crate::model::spec::{EngineChoice, Network, Spec};

const PATH: &str = "/home/ann/.cargo/bin:/usr/bin:/odd";

fn with_image(path: &str) -> Spec {
    let image = Setting::new(path.parse().unwrap(), Origin::Flag { name: "--image".to_owned() });
    Spec { image: Some(image), ..spec("/home/ann/repo") }
}

fn image(fake: Fake, root: &str) -> Fake {
    fake.file(&format!("{root}/bin/sh"), "")
        .file(&format!("{root}/usr/bin/env"), "")
        .file(&format!("{root}/etc/issue"), "")
        .dir(&format!("{root}/home"))
        .dir(&format!("{root}/dev"))
        .dir(&format!("{root}/var/lib"))
        .link(&format!("{root}/lib"), "usr/lib")
        .socket(&format!("{root}/socket"))
}

#[test]
fn a_directory_is_the_system() {
    let machine = image(ann(), "/srv/root");
    insta::assert_snapshot!(check(&with_image("/srv/root"), &host(1000, "/home/ann", PATH), &machine), @"
    source /home/ann/repo Git
    in /home/ann/repo, home /home/ann
    /bin: read caller from /srv/root/bin
    /dev: devices
    /etc: read caller from /srv/root/etc
    /home: empty
    /home/ann: private home
    /home/ann/.gitconfig: read caller
    /home/ann/repo: cow workspace
    /lib: link usr/lib
    /proc: processes
    /run: empty
    /tmp: scratch 0
    /usr: read caller from /srv/root/usr
    /var: empty
    /var/lib: read caller from /srv/root/var/lib
    /var/tmp: link /tmp
    GIT_DISCOVERY_ACROSS_FILESYSTEM=1
    HOME=/home/ann
    LC_ALL=C.UTF-8
    PATH=/usr/bin:/bin
    SHELL=/bin/sh
    TERM=xterm
    TMPDIR=/tmp
    USER=ann
    ! image-entries: 1 entries of the image cannot be shown: `/socket`
    ");
}

#[test]
fn a_place_that_the_image_lacks_is_made_around_it() {
    let machine = image(ann(), "/srv/root").dir("/srv/data").file("/srv/file", "");
    let spec =
        with_mount(with_mount(with_image("/srv/root"), "/srv/data:/usr/share/data"), "/srv/file:/etc/issue");
    let spec = Spec { network: Setting::default_value(Network::Host), ..spec };
    let text = check(&spec, &host(1000, "/home/ann", PATH), &machine);
    let lines: Vec<&str> =
        text.lines().filter(|line| line.starts_with("/usr") || line.starts_with("/etc")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    /etc: empty
    /etc/issue: read caller from /srv/file
    /etc/resolv.conf: read system from /run/systemd/resolve/stub-resolv.conf
    /usr: empty
    /usr/bin: read caller from /srv/root/usr/bin
    /usr/share/data: read caller from /srv/data
    ");
}

#[test]
fn an_archive_is_what_was_unpacked_of_it() {
    let images = "/home/ann/.local/share/sandtable/images";
    let archive = ann().file("/srv/root.tar", "bytes");
    let asked = with_image("/srv/root.tar");
    let caller = host(1000, "/home/ann", PATH);
    insta::assert_snapshot!(check(&asked, &caller, &archive), @"
    machine image-not-unpacked: the image `/srv/root.tar` has not been unpacked
      `sandtable run` unpacks it
    ");
    let stamp = match crate::facts::Facts::ask(
        &archive,
        &crate::facts::Question::Stamp { path: "/srv/root.tar".into() },
    ) {
        crate::facts::Answer::Text(stamp) => stamp,
        other => panic!("{other:?}"),
    };
    let meta = r#"{"schema":1,"environment":["A=b","PATH=/opt/x:relative:/bin"],"skipped":[]}"#;
    let unpacked = image(archive, &format!("{images}/sha256-0f/root"))
        .file(&format!("{images}/known/{stamp}"), "sha256-0f")
        .file(&format!("{images}/sha256-0f/image.json"), meta)
        .owner("/home/ann", 1000, 1000);
    let text = check(&asked, &caller, &unpacked);
    let lines: Vec<&str> =
        text.lines().filter(|line| line.starts_with("/bin") || line.starts_with("PATH")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    /bin: read caller from /home/ann/.local/share/sandtable/images/sha256-0f/root/bin
    PATH=/opt/x:/bin
    ");
    // A note that names something else than a digest leads nowhere.
    let forged = unpacked.file(&format!("{images}/known/{stamp}"), "../../../../../etc");
    assert!(check(&asked, &caller, &forged).contains("image-not-unpacked"));
}

#[test]
fn what_cannot_be_an_image_is_refused() {
    let caller = host(1000, "/home/ann", PATH);
    let native = Spec { engine: Setting::default_value(EngineChoice::Native), ..with_image("debian") };
    insta::assert_snapshot!(check(&native, &caller, &ann()), @"
    input image-named: image `debian` is a name, and the native engine runs a directory, a tar archive or an OCI layout
      use `--engine docker` or `--engine podman`, or a path with a slash in front: `./debian`
    ");
    insta::assert_snapshot!(check(&with_image("/"), &caller, &ann()), @"input mount-source: `/` cannot be mounted: it is the root of the file system");
    insta::assert_snapshot!(check(&with_image("/none"), &caller, &ann()), @"input mount-missing: mount source `/none` cannot be used: there is no such file or directory");
}
