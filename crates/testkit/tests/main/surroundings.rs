//! What a sandbox has in common with its user: how many files it can watch, how much memory it can fill, and what
//! programs inside make of files that are the system's.

use sandtable_testkit::container::Contained;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::require;

/// A setting of this machine, or of the sandbox in which the text was printed.
fn number(text: &str) -> u64 {
    text.trim().parse().unwrap()
}

#[test]
fn a_sandbox_watches_half_as_many_files_as_its_user() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        for kind in ["instances", "watches"] {
            let own = format!("/proc/sys/user/max_inotify_{kind}");
            let before = fs_err::read_to_string(&own).unwrap();
            let most =
                number(&fs_err::read_to_string(format!("/proc/sys/fs/inotify/max_user_{kind}")).unwrap());
            let inside = env.run_script(&source, &["--rm", "-q"], &format!("cat {own}")).expect_code(0);
            assert_eq!(number(&inside.stdout), most / 2, "{kind}");
            assert_eq!(fs_err::read_to_string(&own).unwrap(), before, "the host's own is not touched");
        }
    }
}

/// A file of the system's in that directory belongs to nobody inside, and ssh stops at the sight of it.
#[test]
fn ssh_works_where_the_system_has_settings_for_it() {
    if !require::is_root() || require::program("ssh").is_none() {
        return require::skip("needs root and ssh");
    }
    if !std::path::Path::new("/etc/ssh/ssh_config.d").is_dir() {
        return require::skip("this ssh has no such directory");
    }
    let Some(env) = TestEnv::of_the_executable_as(Caller::Same) else { return };
    let source = env.repository("r");
    let settings = env.root().join("settings");
    env.file(&settings.join("10-own.conf"), "Host *\n\tPort 2222\n");
    let script = format!(
        "mount --bind {} /etc/ssh/ssh_config.d && ssh -G example.org | grep -qx 'port 2222' && exec \"$@\"",
        settings.display()
    );
    let run =
        env.sandtable().directory(&source).args(["run", "--rm", "-q", "--", "ssh", "-G", "example.org"]);
    let ended = run.through(["unshare", "--mount", "sh", "-c", &script, "sh"]).ended().expect_code(0);
    assert!(ended.stdout.contains("port 22\n"), "{ended:?}");
}

#[test]
fn directories_on_the_way_to_a_mount_are_the_callers() {
    Contained::each(Contained::new, |world, _| {
        let source = world.env.repository("home/w/proj");
        world.env.file(&world.env.home().join(".config/git/config"), "[user]\n\tname = Ann\n");
        let script = "cat ~/.config/git/config && mkdir ~/.config/gh ~/w/other && echo x > ~/.config/gh/y && ls ~/.config";
        for kept in [["--rm", "-q"], ["--name", "kept"]] {
            let ended = world.run_script(&source, &kept, script).expect_code(0);
            assert!(ended.stdout.ends_with("gh\ngit\n"), "{ended:?}");
        }
        drop(world.sandtable().args(["rm", "kept"]).ended().expect_code(0));
    });
}
