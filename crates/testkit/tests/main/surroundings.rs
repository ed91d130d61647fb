//! What a sandbox has in common with its user: how many files it can watch, how much memory it can fill, and what
//! programs inside make of files that are the system's.

use sandtable_testkit::container::Contained;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::require;

use crate::cli::Unused as _;

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

/// What the kernel counts for a user, or for the machine, is not taken whole by one sandbox.
#[test]
fn counts_of_the_user_are_bounded_inside() {
    const SCRIPT: &str = "\
awk '/^Max pending signals/ { print $5 } /^Max open files/ { print $5 }' /proc/self/limits; grep devpts /proc/mounts";
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let ended = env.run_script(&source, &["--rm", "-q"], SCRIPT).expect_code(0);
        let lines: Vec<&str> = ended.stdout.lines().collect();
        let limits = fs_err::read_to_string("/proc/self/limits").unwrap();
        let own = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
        let own = number(own.split_whitespace().nth(1).unwrap());
        assert!(number(lines[0]) < own, "descriptors: {ended:?}");
        assert!(number(lines[1]) <= 4096, "pending signals: {ended:?}");
        assert!(lines[2].contains("max=256"), "pseudo-terminals: {ended:?}");
    }
}

/// The kernel counts descriptors that are under way in sockets for the whole user.
#[test]
fn descriptors_under_way_keep_nobody_from_entering_a_sandbox() {
    const TAKE: &str = "\
import array, os, resource, socket, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
pairs, error = [], None
while error != 109 and len(pairs) < 400:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    pairs.append(pair)
    pair[0].setblocking(False)
    try:
        while True:
            pair[0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 250))])
    except OSError as e:
        error = e.errno
open('taken', 'w').write(str(error))
time.sleep(30)
";
    if require::program("python3").is_none() {
        return require::skip("needs python3");
    }
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        env.file(&source.join("take.py"), TAKE);
        let call = |args: &[&str]| env.sandtable().directory(&source).args(args.iter().copied()).ended();
        call(&["run", "-q", "-d", "--name", "crowd", "--", "python3", "take.py"]).expect_code(0).unused();
        let taken = "for i in $(seq 200); do [ -s taken ] && exec cat taken; sleep 0.1; done";
        // Whether that was the limit: ETOOMANYREFS.
        assert_eq!(call(&["exec", "crowd", "--", "sh", "-c", taken]).expect_code(0).stdout, "109");
        call(&["exec", "-t", "crowd", "--", "true"]).expect_code(0).unused();
        call(&["run", "-q", "--rm", "--", "true"]).expect_code(0).unused();
        call(&["rm", "-f", "crowd"]).expect_code(0).unused();
    }
}

/// An engine would make the place of a mount with its own rights, and the sandbox could not be removed.
#[test]
fn places_of_mounts_in_the_workspace_are_the_callers() {
    Contained::each(Contained::new, |world, source| {
        let shown = world.env.root().join("shown");
        world.env.file(&shown.join("f"), "x");
        world.env.file(&source.join("sub/there"), "x");
        for below in ["sub/m", "new/er/m"] {
            let mount = format!("{}:{}:ro", shown.display(), source.join(below).display());
            let script = format!("cat {below}/f && exit 7");
            let kept = world.run_script(&source, &["--name", "r1", "-v", &mount], &script);
            assert_eq!((kept.code, kept.stdout.as_str()), (7, "x"), "{below}: {}", kept.stderr);
            world.sandtable().args(["rm", "r1"]).ended().expect_code(0).unused();
            let gone = world.run_script(&source, &["--rm", "-q", "-v", &mount], &script);
            assert_eq!((gone.code, gone.stdout.as_str()), (7, "x"), "{below}: {}", gone.stderr);
        }
        assert!(!source.join("sub/m").exists() && !source.join("new").exists());
    });
}
