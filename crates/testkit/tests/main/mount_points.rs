//! Places of mounts that a command of the sandbox, or an image, has turned into links: no engine is led astray by
//! them, and no program of the sandbox becomes its first process.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use sandtable_sandbox::engine::oci::INIT;
use sandtable_testkit::container::Contained;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::{Ended, Run};

/// Leaves a trace where it runs, whatever it is run as.
const PAYLOAD: &str = "#!/bin/sh\necho ran > /.sandtable/ran\n";

/// What a command does to a place in its home directory, and the place that the error names.
const TRICKS: &[(&str, &str)] = &[
    ("mv w w.old; mkdir w; ln -s /.sandtable w/proj", "w/proj"),
    ("mv w w.old; ln -s /.sandtable w", "w/proj"),
    ("mv w w.old; mkdir w; echo x > w/proj", "w/proj"),
    ("mv .config .old; mkdir .config; ln -s /.sandtable .config/git", ".config/git/config"),
];

#[test]
fn a_container_engine_follows_no_link_of_a_sandbox() {
    Contained::each(Contained::new, |world, _| {
        each_trick(&world.env, &|source, options| world.starting(source).args(options), &|| {
            world.sandtable()
        });
    });
}

#[test]
fn the_native_engine_follows_no_link_of_a_sandbox() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        each_trick(
            &env,
            &|source, options| env.sandtable().directory(source).arg("run").args(options),
            &|| env.sandtable(),
        );
    }
}

fn each_trick(env: &TestEnv, run: &dyn Fn(&Path, &[&str]) -> Run, sandtable: &dyn Fn() -> Run) {
    let source = env.repository("home/w/proj");
    env.file(&env.home().join(".config/git/config"), "[user]\n\tname = Ann\n");
    plant(env, &source);
    for (index, (trick, place)) in TRICKS.iter().enumerate() {
        let name = format!("t{index}");
        // The image has these under one name alone.
        let tools =
            "if busybox true 2>/dev/null; then mv() { busybox mv \"$@\"; }; ln() { busybox ln \"$@\"; }; fi";
        let script = format!("{tools}; cd; {trick}");
        let first = run(&source, &["-q", "--name", &name, "--", "sh", "-c", &script]).ended();
        drop(first.expect_code(0));
        let again = || sandtable().args(["exec", &name, "--", "true"]).ended();
        let refused = again().expect_code(125);
        let named = format!("`{}`", env.home().join(place).display());
        assert!(refused.stderr.contains(&named), "{trick}: {}", refused.stderr);
        drop(refused.expect_stderr("No link of a sandbox is followed"));
        let sandbox = env.sandboxes().join(&name);
        assert!(traces(&sandbox).is_empty(), "{trick}");
        put_right(&sandbox.join("home"));
        drop(again().expect_code(0));
        drop(sandtable().args(["rm", &name]).ended().expect_code(0));
    }
}

/// A mount leads over our own directory by a link of the image, which nobody outside can look at.
#[test]
fn an_image_cannot_bring_another_first_process() {
    Contained::each(Contained::new, |world, source| {
        let lent = world.env.root().join("lent");
        world.env.directory(&lent);
        plant(&world.env, &lent);
        let link = |image: &Path| {
            fs_err::create_dir_all(image.join("a/b")).unwrap();
            symlink("/.sandtable", image.join("a/b/c")).unwrap();
        };
        let Some(image) = world.another("linked", &link) else { return };
        let words = ["run", "-q", "--rm", "--engine", world.kind.word(), "--image", &image];
        let mount = format!("{}:/a/b/c:rw", lent.display());
        let run = world.sandtable().directory(&source).args(words).args(["-v", &mount, "--", "true"]);
        let ended: Ended = run.ended();
        assert!([0, 125].contains(&ended.code), "{ended:?}");
        assert!(!lent.join("ran").exists(), "{ended:?}");
    });
}

/// Puts the payload wherever our own executable would be if `directory` came to lie over its place.
fn plant(env: &TestEnv, directory: &Path) {
    let below = INIT.strip_prefix("/.sandtable/").expect("our own directory");
    for place in ["init", below] {
        let file = directory.join(place);
        env.file(&file, PAYLOAD);
        fs_err::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
}

/// Traces of the payload anywhere in a sandbox.
fn traces(directory: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| path.join("ran")).filter(|trace| trace.exists()).collect()
}

fn put_right(home: &Path) {
    for place in ["w", ".config/git"] {
        let place = home.join(place);
        if fs_err::symlink_metadata(&place).is_ok_and(|found| !found.is_dir()) {
            fs_err::remove_file(&place).unwrap();
        }
    }
    let inner = home.join("w/proj");
    if fs_err::symlink_metadata(&inner).is_ok_and(|found| !found.is_dir()) {
        fs_err::remove_file(inner).unwrap();
    }
}
