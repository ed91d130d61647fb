//! Inside, references are those of the base, however the repository keeps them. Git says what they are.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandtable_testkit::env::TestEnv;
use sandtable_testkit::process::Ended;

use crate::cli::Unused as _;
use crate::git_base::{COMMIT, SHOWN, each, inside};

/// Everything that git says about references. The way to a stash is a log, which follows the source.
const LOOK: &str = "git for-each-ref --format='%(refname) %(objectname) %(objecttype) %(symref) %(*objectname)' 2>&1
    git show-ref --dereference --head 2>&1; git log --all --format='%H %D' 2>&1; git describe --tags --all 2>&1
    git status --porcelain --branch; git fsck --no-progress 2>&1; git bisect log 2>&1; git branch -a 2>&1";

/// Everything that is done to references inside.
const WORK: &str = "export GIT_COMMITTER_DATE='2030-01-01 00:00 +0000' GIT_AUTHOR_DATE='2030-01-01 00:00 +0000'
    git commit -q --allow-empty -m inside; git branch fresh; git branch -q -D many/7; git branch -m many/8 moved
    git tag -d v1 > /dev/null; git tag -a -m again v1; git update-ref -d refs/remotes/origin/old
    printf 'create refs/x/one HEAD\\ndelete refs/heads/many/9\\n' | git update-ref --stdin
    git branch -q -f many/11 HEAD~1; git switch -q -c many-more main; git switch -q main
    git worktree add -q ../tree many/12 2> /dev/null; git -C ../tree branch -q from-tree; git worktree remove ../tree
    git notes add -m note HEAD; git gc -q; git branch -q -D many/10; git pack-refs --all; git branch -q later
    git for-each-ref --format='%(refname) %(objectname) %(*objectname)'; git reflog | head -3; git fsck --no-progress";

fn shell(env: &TestEnv, directory: &Path, script: &str) -> String {
    env.run("sh").directory(directory).args(["-c", script]).ended().stdout
}

/// A repository with references of every kind: loose, packed, both, annotated, symbolic.
fn rich(env: &TestEnv, name: &str) -> PathBuf {
    let source = env.repository(name);
    for args in [
        &["tag", "-a", "-m", "one", "v1"][..],
        &["tag", "-a", "-m", "two", "v2", "HEAD~1"],
        &["tag", "light"],
        &["branch", "packed", "HEAD~1"],
        &["branch", "moved-later", "HEAD~1"],
        &["update-ref", "refs/remotes/origin/old", "HEAD"],
        &["notes", "add", "-m", "note", "HEAD~1"],
        &["pack-refs", "--all"],
        &["branch", "-f", "moved-later", "HEAD"],
        &["tag", "-f", "-a", "-m", "anew", "v2", "HEAD"],
        &["tag", "-a", "-m", "three", "v3"],
        &["update-ref", "refs/remotes/origin/main", "HEAD~1"],
        &["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"],
        &["update-ref", "refs/a", "HEAD"],
        &["update-ref", "refs/zz/top", "HEAD"],
    ] {
        env.git(&source, args);
    }
    many(env, &source, 40);
    source
}

/// Makes loose branches.
fn many(env: &TestEnv, source: &Path, count: usize) {
    let tip = env.git(source, &["rev-parse", "HEAD~1"]);
    for number in 0..count {
        env.file(&source.join(format!(".git/refs/heads/many/{number}")), &tip);
    }
}

/// What a user does outside.
fn go_on(env: &TestEnv, source: &Path) {
    for args in [
        &["commit", "-q", "--allow-empty", "-m", "mine"][..],
        &["branch", "-q", "-D", "many/3", "packed"],
        &["branch", "-q", "-f", "many/4", "HEAD"],
        &["tag", "mine"],
        &["tag", "-d", "v3"],
        &["update-ref", "-d", "refs/remotes/origin/main"],
        &["pack-refs", "--all"],
        &["gc", "-q"],
        &["branch", "-q", "-D", "many/5"],
    ] {
        env.git(source, args);
    }
}

fn start(env: &TestEnv, source: &Path, name: &str) {
    env.run_script(source, &["-q", "--name", name], "true").expect_code(0).unused();
}

#[test]
fn references_are_those_of_the_base_as_git_shows_them() {
    each(|env| {
        let source = rich(env, "r");
        let base = shell(env, &source, LOOK);
        assert!(base.contains("refs/heads/many/39") && base.contains("refs/tags/v3^{}"), "{base}");
        start(env, &source, "a");
        start(env, &source, "b");
        assert_eq!(inside(env, "a", LOOK), base);
        go_on(env, &source);
        assert_eq!(inside(env, "a", LOOK), base);
        env.sandtable().args(["fork", "a", "--name", "c"]).ended().expect_code(0).unused();
        assert_eq!(inside(env, "c", LOOK), base);
        assert_eq!(inside(env, "a", COMMIT), SHOWN);
        let merge = env.sandtable().directory(&source).args(["merge", "a", "--history", "-m", "merged"]);
        merge.ended().expect_code(0).unused();
        assert!(env.git(&source, &["log", "--format=%s", "-3"]).contains("agent: add"));
    });
}

/// The same work in a sandbox and in a copy of its repository leaves the same references.
#[test]
fn git_does_inside_what_it_does_outside() {
    each(|env| {
        let source = rich(env, "r");
        let copy = env.root().join("copy");
        env.directory(&copy);
        shell(env, &source, "cp -a . ../copy/r");
        start(env, &source, "a");
        go_on(env, &source);
        let done = shell(env, &copy.join("r"), WORK);
        assert!(done.contains("refs/heads/later ") && !done.contains("refs/heads/many/7 "), "{done}");
        assert_eq!(inside(env, "a", WORK), done);
        assert_eq!(
            inside(env, "a", "git branch --list 'many/1?' | wc -l; git status --porcelain").trim(),
            "9"
        );
    });
}

/// Where a loose reference means something that a list cannot say.
#[test]
fn what_is_no_plain_reference_stays_what_it_is() {
    each(|env| {
        let source = rich(env, "r");
        let heads = source.join(".git/refs/heads");
        let tip = env.git(&source, &["rev-parse", "HEAD"]);
        for (name, text) in [
            ("upper", tip.to_uppercase()),
            ("words", format!("{} and words", tip.trim())),
            ("to-main", "ref: refs/heads/main\n".to_owned()),
            ("to-nothing", "ref: refs/heads/nothing\n".to_owned()),
            ("locked.lock", tip.clone()),
            ("packed/below", tip.clone()),
        ] {
            env.file(&heads.join(name), text);
        }
        env.file(&heads.join(OsStr::from_bytes(b"not-\xff-utf8")), &tip);
        // Git takes the text of a link for a name, or follows it.
        env.symlink("refs/heads/many/1", &heads.join("named"));
        env.git(&source, &["bisect", "start", "HEAD", "HEAD~1"]);
        env.git(&source, &["update-ref", "refs/worktree/own", "HEAD"]);
        let look = format!("{LOOK}; git rev-parse named");
        let base = shell(env, &source, &look);
        for word in ["refs/bisect/bad", "refs/heads/packed/below", "refs/worktree/own"] {
            assert!(base.contains(word), "{word}: {base}");
        }
        start(env, &source, "a");
        env.symlink("many/2", &heads.join("linked"));
        let linked = shell(env, &source, &look);
        assert!(linked.contains("refs/heads/linked ") && !base.contains("linked"), "{linked}");
        start(env, &source, "b");
        env.git(&source, &["bisect", "reset"]);
        fs_err::remove_file(heads.join("named")).unwrap();
        env.git(&source, &["branch", "-q", "-f", "many/2", "HEAD"]);
        // Where a bisection is was said by references and by logs of its own, which are gone.
        let but_logs = |text: &str| -> Vec<String> {
            let is_log = |line: &&str| {
                line.starts_with('#') || line.contains("git bisect") || line.contains("not bisecting")
            };
            text.lines().filter(|line| !is_log(line)).map(ToOwned::to_owned).collect()
        };
        for (name, base) in [("a", base), ("b", linked)] {
            assert_eq!(but_logs(&inside(env, name, &look)), but_logs(&base), "{name}");
        }
    });
}

/// Git goes on with what it can read, and says what it cannot.
#[test]
fn broken_references_are_broken_inside_too() {
    each(|env| {
        let source = rich(env, "r");
        let heads = source.join(".git/refs/heads");
        let tip = env.git(&source, &["rev-parse", "HEAD"]);
        for (name, text) in [
            ("nonsense", "nonsense\n".to_owned()),
            ("empty", String::new()),
            ("zero", format!("{}\n", "0".repeat(40))),
            ("missing", format!("{}\n", "12345".repeat(8))),
            ("long", format!("{}1\n", tip.trim())),
            ("new\nline", tip.clone()),
            ("a..b", tip.clone()),
            ("with space", tip),
        ] {
            env.file(&heads.join(name), text);
        }
        let look = "git for-each-ref --format='%(refname) %(objectname)' 2>&1; git fsck --no-progress 2>&1
            git rev-parse a..b zero nonsense long 2>&1; cat .git/refs/heads/new*";
        let base = shell(env, &source, look);
        for word in
            ["ignoring broken ref refs/heads/zero", "refs/heads/missing: invalid", "refs/heads/many/39"]
        {
            assert!(base.contains(word), "{word}: {base}");
        }
        start(env, &source, "a");
        assert_eq!(inside(env, "a", look), base);
    });
}

#[test]
fn references_of_submodules_and_linked_worktrees_are_held() {
    each(|env| {
        let library = rich(env, "library");
        let source = env.repository("r");
        let from = library.to_str().unwrap();
        let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "lib"];
        env.git(&source, &add);
        env.git(&source, &["commit", "-q", "-m", "a library"]);
        let tip = env.git(&source.join("lib"), &["rev-parse", "HEAD"]);
        for number in 0..20 {
            env.file(&source.join(format!(".git/modules/lib/refs/heads/many/{number}")), &tip);
        }
        let linked = env.root().join("linked");
        env.directory(&linked);
        env.git(&source, &["worktree", "add", "-q", "-b", "topic", linked.to_str().unwrap()]);
        env.git(&linked, &["bisect", "start", "HEAD", "HEAD~1"]);
        let refs =
            "git for-each-ref --format='%(refname) %(objectname) %(*objectname)'; git branch --show-current";
        let of_library = format!("cd lib && {refs}");
        let bases = [(&source, of_library.as_str(), "a"), (&linked, refs, "b")]
            .map(|(directory, look, name)| (shell(env, directory, look), look, name));
        start(env, &source, "a");
        start(env, &linked, "b");
        env.git(&linked, &["bisect", "reset"]);
        env.git(&linked, &["branch", "beside"]);
        for args in [&["branch", "mine"][..], &["branch", "-D", "many/3"], &["pack-refs", "--all"]] {
            env.git(&source.join("lib"), args);
        }
        for (base, look, name) in bases {
            assert!(base.contains("refs/"), "{base}");
            assert_eq!(inside(env, name, look), base, "{name}");
        }
    });
}

/// What nobody waits for is left out or said, and soon.
#[test]
fn hostile_references_take_no_time() {
    each(|env| {
        let soon = |source: &Path, name: &str| -> Ended {
            let since = Instant::now();
            let ended = env.run_script(source, &["--name", name], "git for-each-ref 2>&1 | wc -l");
            assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
            ended.expect_code(0)
        };
        let source = env.repository("r");
        let heads = source.join(".git/refs/heads");
        shell(env, &source, "mkfifo .git/refs/heads/pipe; truncate -s 1T .git/refs/heads/huge");
        env.symlink("/dev/zero", &heads.join("endless"));
        let seen = soon(&source, "a");
        assert!(seen.stdout.trim().parse::<u32>().unwrap() <= 3, "{}", seen.stdout);
        assert!(!seen.stderr.contains("[git-follows-source]"), "{}", seen.stderr);
        for name in ["pipe", "huge", "endless"] {
            fs_err::remove_file(heads.join(name)).unwrap();
        }
        env.file(&heads.join(["d"; 60].join("/")).join("f"), "");
        soon(&source, "b").expect_stderr("[git-follows-source]").unused();
    });
}

/// A list that git would refuse is left to git, with the files beside it.
#[test]
fn a_damaged_list_of_references_is_shown_as_it_is() {
    each(|env| {
        let source = rich(env, "r");
        let list = source.join(".git/packed-refs");
        let good = fs_err::read_to_string(&list).unwrap();
        for (number, bad) in
            [good.trim_end().to_owned(), format!("{good}no reference\n"), good.replace('^', "^^")]
                .into_iter()
                .enumerate()
        {
            env.file(&list, &bad);
            let (look, name) = ("git for-each-ref 2>&1; find .git/refs -type f | sort", format!("a{number}"));
            let base = shell(env, &source, look);
            assert!(base.contains("fatal: "), "{base}");
            start(env, &source, &name);
            assert_eq!(inside(env, &name, look), base, "{bad}");
        }
    });
}

/// A start must not pay for each reference with an inode or a link.
#[test]
fn loose_references_are_neither_linked_nor_copied_one_by_one() {
    each(|env| {
        let source = env.repository("r");
        many(env, &source, 2000);
        let before = env.fingerprint(&source);
        start(env, &source, "a");
        assert_eq!(before.differences(&env.fingerprint(&source)), [""; 0]);
        let one = fs_err::metadata(source.join(".git/refs/heads/many/0")).unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&one), 1);
        let held = shell(env, &env.sandboxes().join("a"), "find . -path '*/refs/*' -type f | wc -l");
        assert!(held.trim().parse::<u32>().unwrap() < 10, "{held}");
        assert_eq!(inside(env, "a", "git branch | wc -l").trim(), "2001");
    });
}
