//! `--image`: a directory, a tar archive or an OCI layout as the system of a native sandbox.

use std::path::{Path, PathBuf};

use sandtable_protocol::probe::Class;
use sandtable_testkit::archive::{Tar, gzip, layout, write_layout};
use sandtable_testkit::conformance::{self, Stage, Verdict, native::Native};
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::fingerprint::Fingerprint;
use sandtable_testkit::process::Ended;
use sandtable_testkit::require;

const PROGRAMS: &[&str] = &["sh", "cat", "ls", "touch", "env", "id", "true"];

/// A world with a repository in it, and the bytes of a program that brings everything a shell needs.
struct World {
    env: TestEnv,
    source: PathBuf,
    busybox: Vec<u8>,
}

impl World {
    fn new(caller: Caller) -> Option<Self> {
        let Some(busybox) = require::program("busybox") else {
            require::skip("no busybox to make an image of");
            return None;
        };
        let env = TestEnv::of_the_executable_as(caller)?;
        let source = env.repository("r");
        Some(Self { env, source, busybox: fs_err::read(busybox).unwrap() })
    }

    /// A root file system as an archive, with `more` in it.
    fn tar(&self, more: impl FnOnce(Tar) -> Tar) -> Vec<u8> {
        let tar = Tar::default().directory("./").directory("bin").file("bin/busybox", 0o755, &self.busybox);
        let tar = PROGRAMS.iter().fold(tar, |tar, name| tar.symlink(&format!("bin/{name}"), "busybox"));
        let tar = tar.directory("etc").file("etc/issue", 0o644, b"the image\n").directory("home");
        more(tar.directory("var/lib").file("var/lib/own", 0o644, b"kept\n").symlink("sbin", "bin")).finished()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.env.home().join(name);
        self.env.file(&path, bytes);
        path
    }

    fn run(&self, image: &Path, options: &[&str], script: &str) -> Ended {
        let run = self.env.sandtable().directory(&self.source).args(["run", "-q", "--image"]).arg(image);
        run.args(options).args(["--", "/bin/sh", "-c", script]).ended()
    }

    fn images(&self) -> PathBuf {
        self.env.home().join(".local/share/sandtable/images")
    }
}

#[test]
fn an_image_is_the_system_and_the_rest_is_as_always() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(world) = World::new(caller) else { return };
        let root = world.env.home().join("root");
        for directory in ["bin", "etc", "home", "var/lib"] {
            world.env.directory(&root.join(directory));
        }
        world.file("root/bin/busybox", &world.busybox);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(root.join("bin/busybox"), mode).unwrap();
        for name in PROGRAMS {
            world.env.symlink("busybox", &root.join("bin").join(name));
        }
        world.file("root/etc/issue", b"the image\n");
        world.file("root/var/lib/own", b"kept\n");
        world.env.symlink("bin", &root.join("sbin"));

        let tar = world.file("root.tar", &world.tar(|tar| tar));
        let squeezed = world.file("root.tgz", &gzip(&world.tar(|tar| tar)));
        let oci = world.env.home().join("layout");
        let files = layout(&[gzip(&world.tar(|tar| tar))], &["PATH=/bin:/sbin", "SECRET=no"]);
        write_layout(&oci, &files);
        world.env.directory(&oci);

        for image in [&root, &tar, &squeezed, &oci] {
            let before = world.env.fingerprint(&world.source);
            let script = "cat /etc/issue /var/lib/own README && ls /usr 2>/dev/null; touch own && touch \"$HOME/x\" /tmp/y \
                          && touch /etc/z 2>/dev/null || echo closed; echo $SECRET$PATH";
            let ended = world.run(image, &["--rm"], script).expect_code(0);
            let lines: Vec<&str> = ended.stdout.lines().collect();
            assert_eq!(lines.first().copied(), Some("the image"), "{}: {ended:?}", image.display());
            assert_eq!(lines[1], "kept");
            assert_eq!(lines[lines.len() - 2], "closed");
            let search = lines[lines.len() - 1];
            assert_eq!(search, if image == &oci { "/bin:/sbin" } else { "/sbin:/bin" });
            assert!(!ended.stdout.contains("local"), "the host's /usr is seen: {}", ended.stdout);
            assert_eq!(before.differences(&world.env.fingerprint(&world.source)), [""; 0]);
            assert!(!root.join("etc/z").exists());
        }
    }
}

#[test]
fn a_sandbox_with_an_image_goes_on_where_it_was_left() {
    let Some(world) = World::new(Caller::Same) else { return };
    let tar = world.file("root.tar", &world.tar(|tar| tar));
    let _ran = world.run(&tar, &["--name", "kept"], "echo one > own.txt").expect_code(0);
    let exec = world.env.sandtable().args(["exec", "-q", "kept", "--", "/bin/cat", "own.txt", "/etc/issue"]);
    assert_eq!(exec.ended().expect_code(0).stdout, "one\nthe image\n");
}

#[test]
fn an_archive_is_unpacked_once() {
    let Some(world) = World::new(Caller::Same) else { return };
    let tar = world.file("root.tar", &world.tar(|tar| tar));
    let _ran = world.run(&tar, &["--rm"], "true").expect_code(0);
    let made = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs_err::metadata(path).unwrap());
    let kept: Vec<PathBuf> = fs_err::read_dir(world.images())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("root").is_dir())
        .collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    let first = made(&kept[0].join("root"));
    let _ran = world.run(&tar, &["--rm"], "true").expect_code(0);
    assert_eq!(made(&kept[0].join("root")), first);
}

#[test]
fn places_that_an_image_does_not_have_are_made_around_it() {
    let Some(world) = World::new(Caller::Same) else { return };
    let tar = world.file(
        "root.tar",
        &world.tar(|tar| tar.file("usr/share/doc", 0o644, b"doc\n").file("usr/x", 0o644, b"x\n")),
    );
    world.file("data/file", b"data\n");
    let data = world.env.home().join("data");
    let mount = format!("{}:/usr/share/more/data:ro", data.display());
    let at_etc = format!("{}:/etc/own:ro", data.join("file").display());
    let script = "cat /usr/share/more/data/file /usr/share/doc /usr/x /etc/own /etc/issue; touch /usr/y || echo closed";
    let ended = world.run(&tar, &["--rm", "-v", &mount, "-v", &at_etc], script).expect_code(0);
    assert_eq!(ended.stdout, "data\ndoc\nx\ndata\nthe image\nclosed\n");
}

#[test]
fn a_hostile_image_is_refused_and_nothing_is_touched() {
    let Some(world) = World::new(Caller::Same) else { return };
    world.file("outside/victim", b"as it was");
    let outside = world.env.home().join("outside");
    let before = Fingerprint::of(&outside, &[]);
    let to = outside.to_str().unwrap();
    let cases: [(&str, Tar); 5] = [
        ("leads out", Tar::default().file("../../../../../outside/victim", 0o644, b"x")),
        ("absolute", Tar::default().file(&format!("{to}/victim"), 0o644, b"x")),
        ("below a symbolic link", Tar::default().symlink("a", to).file("a/victim", 0o644, b"x")),
        ("hard link", Tar::default().symlink("a", to).hard_link("b", "a/victim")),
        ("special", Tar::default().directory("etc")),
    ];
    for (what, tar) in cases {
        let bytes = if what == "special" {
            let device = sandtable_testkit::archive::Header {
                name: b"etc/disk",
                kind: b'4',
                mode: 0o666,
                size: 0,
                link: b"",
            };
            tar.entry(device, b"").finished()
        } else {
            tar.finished()
        };
        let path = world.file("hostile.tar", &bytes);
        let ended = world.run(&path, &["--rm"], "true");
        assert_eq!(ended.code, 2, "{what}: {}", ended.stderr);
        assert!(ended.stderr.contains("entry `"), "{what}: {}", ended.stderr);
    }
    assert_eq!(before.differences(&Fingerprint::of(&outside, &[])), [""; 0]);
    let left: Vec<_> =
        fs_err::read_dir(world.images()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "known" || name.to_string_lossy().contains(".lock")), "{left:?}");
}

#[test]
fn a_wrong_image_is_explained() {
    let Some(world) = World::new(Caller::Same) else { return };
    let explained = |image: &Path, code: i32, words: &str| {
        let ended = world.run(image, &["--rm", "--engine", "native"], "true");
        assert_eq!(ended.code, code, "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    };
    explained(Path::new("/nowhere/at/all"), 2, "cannot be used");
    explained(Path::new("/"), 2, "root of the file system");
    explained(&world.env.home(), 2, "home directory");
    let named = world.run(Path::new("busybox"), &["--rm", "--engine", "native"], "true");
    assert_eq!(named.code, 2, "{}", named.stderr);
    assert!(named.stderr.contains("--engine docker"), "{}", named.stderr);
    explained(&world.file("bzip2.tar", b"BZh9 rest"), 2, "bzip2");
    explained(&world.file("text", b"no archive at all"), 2, "damaged");
}

/// What an image changes is the system that is seen, not what holds.
#[test]
fn native_stops_every_attack_with_an_image() {
    let Some(world) = World::new(Caller::Same) else { return };
    // Nothing that a probe would take for the host's.
    let tar = Tar::default().directory("bin").file("bin/busybox", 0o755, &world.busybox);
    let tar = PROGRAMS.iter().fold(tar, |tar, name| tar.symlink(&format!("bin/{name}"), "busybox"));
    let tar = tar.file("etc/passwd", 0o644, b"root:x:0:0::/:/bin/sh\n").finished();
    let World { env, .. } = world;
    let image = env.home().join("image.tar");
    env.file(&image, &tar);
    env.file(&env.home().join(".config/sandtable/config.toml"), format!("image = {image:?}\n"));
    let mut stage = Stage::set(env);
    let engine = Native { caller: Caller::Same };
    let verdicts = conformance::run(&engine, &mut stage);
    let summary = conformance::summary(&engine, &verdicts);
    require::say(&format!("with an image: {summary}"));
    // Tools of the host are not shown in an image, so what is elsewhere only harmless is not even there.
    let absent =
        |verdict: &Verdict| verdict.case.name == "append-shared-cache" && verdict.got == Ok(Class::Blocked);
    assert!(verdicts.iter().all(|verdict| verdict.is_as_expected() || absent(verdict)), "{summary}");
}
