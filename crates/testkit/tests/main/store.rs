//! The store from outside: stock git as its reader, many who write at once, a source whose history is rewritten, and
//! processes that are killed.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandtable_store::gc::MOST_PACKS;
use sandtable_testkit::env::TestEnv;
use sandtable_testkit::process::Ended;
use sandtable_testkit::{counts, require};
use serde_json::Value;

use crate::cli::Unused;

fn done(env: &TestEnv, directory: &Path, args: &[&str]) -> String {
    env.sandtable().directory(directory).args(args).ended().expect_code(0).stdout
}

/// The id and the tree of a snapshot that is taken now.
fn taken(env: &TestEnv, directory: &Path, of: &str) -> (String, String) {
    let answer: Value = serde_json::from_str(&done(env, directory, &["snapshot", of, "--json"])).unwrap();
    let text = |name: &str| answer[name].as_str().unwrap().to_owned();
    (text("id"), text("tree"))
}

/// The tree that stock git makes of a directory, everything in it as it is.
fn git_tree(env: &TestEnv, directory: &Path) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let run = env.run("git").directory(directory).variable("GIT_DIR", scratch.path().join("git"));
        let raw =
            ["-c", "core.autocrlf=false", "-c", "core.fileMode=true", "-c", "core.attributesFile=/dev/null"];
        run.variable("GIT_WORK_TREE", directory).args(raw).args(args).ended().expect_code(0).stdout
    };
    git(&["init", "-q"]);
    git(&["add", "-A", "-f", "."]);
    git(&["write-tree"]).trim().to_owned()
}

#[test]
fn stock_git_reads_a_hundred_snapshots_and_makes_the_same_trees() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let count = counts::of("git-snapshots");
    let mut last = (String::new(), String::new());
    for number in 0..count {
        env.file(&source.join(format!("d{}/f{}", number % 7, number % 13)), format!("{number}\n"));
        if number % 10 == 9 {
            fs_err::remove_dir_all(source.join(format!("d{}", number % 7))).unwrap();
        }
        last = taken(&env, &source, ".");
        if number % 20 == 0 {
            assert_eq!(last.1, git_tree(&env, &source), "{number}");
        }
    }
    assert_eq!(last.1, git_tree(&env, &source));
    let path = done(&env, &source, &["store", "path"]);
    let git = |args: &[&str]| {
        let all: Vec<&str> = ["--git-dir", path.trim()].into_iter().chain(args.iter().copied()).collect();
        env.git(env.root(), &all)
    };
    assert_eq!(git(&["fsck", "--strict", "--full", "--no-dangling"]), "");
    assert_eq!(git(&["log", "--format=%s", &last.0]).lines().count(), usize::try_from(count).unwrap());
    assert!(git(&["diff", "--stat", &format!("{}~3", last.0), &last.0]).contains("changed"));
    assert!(git(&["show", "--stat", &last.0]).contains("Sandtable-State:"));
    assert_eq!(git(&["rev-parse", &format!("{}^{{tree}}", last.0)]).trim(), last.1);
}

#[test]
fn snapshots_leave_few_packs_though_nobody_collects() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let mut first = None;
    for number in 0..MOST_PACKS * 2 {
        env.file(&source.join("f"), format!("{number}\n"));
        let (id, _) = taken(&env, &source, ".");
        first.get_or_insert(id);
    }
    let path = done(&env, &source, &["store", "path"]);
    let packs = fs_err::read_dir(Path::new(path.trim()).join("objects/pack")).unwrap();
    let packs = packs.filter(|entry| {
        entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "pack")
    });
    assert!(packs.count() <= MOST_PACKS + 1, "one more is from the source");
    done(&env, &source, &["store", "fsck", "--deep"]);
    let out = env.root().join("out");
    done(&env, &source, &["checkout", &first.unwrap(), out.to_str().unwrap()]);
    assert_eq!(fs_err::read_to_string(out.join("f")).unwrap(), "0\n");
}

#[test]
fn many_record_their_sandboxes_while_one_collects() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    done(&env, &source, &["onboard"]);
    let writers = counts::of("store-writers");
    let name = |number: u32| format!("box-{number}");
    let all = |script: &dyn Fn(u32) -> Vec<String>| {
        let children: Vec<_> = (0..writers)
            .map(|number| env.sandtable().directory(&source).args(script(number)).started())
            .collect();
        children
    };
    let wait = |children: Vec<std::process::Child>| {
        for child in children {
            // Meanwhile somebody collects, over and over.
            done(&env, &source, &["store", "gc"]);
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    };
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    wait(all(&|number| {
        let script = format!("echo {number} > own; seq {number} > more");
        words(&["run", "-q", "--name", &name(number), "--", "sh", "-c", &script])
    }));
    wait(all(&|number| words(&["snapshot", &name(number), "-m", &format!("message {number}")])));
    for number in 0..writers {
        let out = env.root().join(format!("out-{number}"));
        done(&env, &source, &["checkout", &name(number), out.to_str().unwrap()]);
        assert_eq!(fs_err::read_to_string(out.join("own")).unwrap(), format!("{number}\n"));
    }
    done(&env, &source, &["store", "gc"]);
    assert!(done(&env, &source, &["store", "fsck", "--deep"]).contains("all is as it was written"));
}

#[test]
fn a_rewritten_history_takes_nothing_from_the_store() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.git(&source, &["repack", "-a", "-d", "-q"]);
    let mut snapshots = vec![done(&env, &source, &["onboard"]).trim().to_owned()];
    env.run_script(&source, &["-q", "--name", "box"], "echo 1 > README").expect_code(0).unused();
    snapshots.push(taken(&env, &source, "box").0);
    // Nothing of what was there can be reached any more, and git removes it.
    for args in [
        &["checkout", "-q", "--orphan", "new"][..],
        &["rm", "-q", "-r", "--cached", "."],
        &["clean", "-q", "-f", "-d", "-x"],
        &["commit", "-q", "--allow-empty", "-m", "nothing"],
        &["branch", "-q", "-D", "main"],
        &["reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all"],
        &["gc", "-q", "--aggressive", "--prune=now"],
    ] {
        env.git(&source, args);
    }
    assert_eq!(
        env.git(&source, &["count-objects", "-v"]).lines().find(|line| line.starts_with("in-pack")),
        Some("in-pack: 2")
    );
    for (number, snapshot) in snapshots.iter().enumerate() {
        done(&env, &source, &["verify", snapshot]);
        let out = env.root().join(format!("out-{number}"));
        done(&env, &source, &["checkout", snapshot, out.to_str().unwrap()]);
        assert_eq!(fs_err::read_to_string(out.join("src/main.c")).unwrap(), "int main(void) { return 0; }\n");
    }
}

/// Two states of a directory and of a sandbox, and what may be broken off between them.
struct Scene {
    env: TestEnv,
    source: PathBuf,
    worktree: PathBuf,
    /// Ids and trees.
    worktree_states: [(String, String); 2],
    sandbox_states: [(String, String); 2],
}

impl Scene {
    fn new() -> Option<Self> {
        let env = TestEnv::of_the_executable()?;
        let source = env.root().join("r");
        for number in 0..120 {
            env.file(&source.join(format!("d{}/f{number}", number % 9)), format!("{number}\n").repeat(200));
        }
        let first = done(&env, env.root(), &["onboard", source.to_str().unwrap()]).trim().to_owned();
        let worktree = env.root().join("w");
        done(&env, env.root(), &["checkout", &first, worktree.to_str().unwrap()]);
        let one = taken(&env, env.root(), worktree.to_str().unwrap());
        for number in 0..120 {
            let path = worktree.join(format!("d{}/f{number}", number % 9));
            match number % 4 {
                0 => fs_err::remove_file(path).unwrap(),
                1 => fs_err::write(path, "changed\n").unwrap(),
                2 => fs_err::write(worktree.join(format!("new{number}")), "new\n").unwrap(),
                _ => {}
            }
        }
        let worktree_states = [one, taken(&env, env.root(), worktree.to_str().unwrap())];
        env.run_script(&source, &["-q", "--name", "box"], "echo 1 > own; rm -r d1").expect_code(0).unused();
        let one = taken(&env, env.root(), "box");
        let exec = ["exec", "-q", "box", "--", "sh", "-c", "echo 2 > own; rm -r d2; seq 999 > d3/more"];
        done(&env, env.root(), &exec);
        let sandbox_states = [one, taken(&env, env.root(), "box")];
        Some(Self { env, source, worktree, worktree_states, sandbox_states })
    }

    /// What is broken off in a round.
    fn call(&self, round: usize, out: &Path) -> Vec<String> {
        let other = round / 5 % 2;
        let words = match round % 5 {
            0 => vec!["snapshot", self.worktree.to_str().unwrap(), "-m", "some words"],
            1 => vec!["checkout", &self.worktree_states[1].0, out.to_str().unwrap()],
            2 => vec!["rollback", &self.worktree_states[other].0, self.worktree.to_str().unwrap()],
            3 => vec!["rollback", &self.sandbox_states[other].0, "box"],
            _ => vec!["store", "gc"],
        };
        words.into_iter().map(str::to_owned).collect()
    }

    /// The next call works, and what is there is one of both states.
    fn check(&self, round: usize, out: &Path) {
        let Self { env, source, worktree, .. } = self;
        done(env, source, &["store", "fsck"]);
        let is_one_of =
            |states: &[(String, String); 2], found: &str| states.iter().any(|(_, tree)| tree == found);
        let (_, tree) = taken(env, source, worktree.to_str().unwrap());
        assert!(is_one_of(&self.worktree_states, &tree), "round {round}: the directory is at {tree}");
        let (_, tree) = taken(env, source, "box");
        assert!(is_one_of(&self.sandbox_states, &tree), "round {round}: the sandbox is at {tree}");
        if round % 5 == 1 {
            done(env, source, &["checkout", &self.worktree_states[1].0, out.to_str().unwrap()]);
            assert_eq!(git_tree(env, out), self.worktree_states[1].1, "round {round}");
        }
    }
}

#[test]
fn killed_at_any_moment_nothing_is_lost_and_the_next_call_works() {
    let Some(scene) = Scene::new() else { return };
    let asked = require::variable("SANDTABLE_TEST_SEED").and_then(|seed| seed.parse().ok());
    let clock = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros();
    let mut seed: u64 = asked.unwrap_or_else(|| u64::try_from(clock).unwrap()) | 1;
    require::say(&format!("kills with SANDTABLE_TEST_SEED={seed}"));
    let mut longest = [Duration::from_millis(200); 5];
    for round in 0..usize::try_from(counts::of("store-kills")).unwrap() {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let out = scene.env.root().join(format!("out-{round}"));
        let began = Instant::now();
        let mut child =
            scene.env.sandtable().directory(&scene.source).args(scene.call(round, &out)).started();
        let at = longest[round % 5] * u32::try_from(seed >> 44).unwrap() / (1 << 20);
        while child.try_wait().unwrap().is_none() && began.elapsed() < at {
            std::thread::sleep(Duration::from_micros(300));
        }
        if child.try_wait().unwrap().is_some() {
            longest[round % 5] = began.elapsed();
        }
        child.kill().unwrap();
        let said = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(!said.contains("error"), "round {round}: {said}");
        scene.check(round, &out);
    }
    let Scene { env, source, worktree_states, sandbox_states, .. } = &scene;
    for (id, _) in worktree_states.iter().chain(sandbox_states) {
        done(env, source, &["verify", id]);
    }
    assert!(done(env, source, &["store", "fsck", "--deep"]).contains("all is as it was written"));
}

fn called(env: &TestEnv, source: &Path, words: &[&str]) -> Ended {
    env.sandtable().directory(source).args(words).ended()
}

/// The only pack of a store.
fn pack_of(store: &Path) -> PathBuf {
    let packs = fs_err::read_dir(store.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let mut packs: Vec<PathBuf> =
        packs.filter(|path| path.extension().is_some_and(|end| end == "pack")).collect();
    assert_eq!(packs.len(), 1, "{packs:?}");
    packs.remove(0)
}

#[test]
fn a_check_claims_no_more_than_it_read() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.root().join("plain");
    // Nothing that could be made smaller, so that the middle of the pack is in the middle of this.
    let mut seed = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed.to_be_bytes()[0]
    })
    .take(100_000)
    .collect();
    env.file(&source.join("noise"), noise);
    called(&env, &source, &["snapshot", "."]).expect_code(0).unused();
    let store = PathBuf::from(called(&env, &source, &["store", "path"]).expect_code(0).stdout.trim());
    let deep = called(&env, &source, &["store", "fsck", "--deep"]).expect_code(0);
    assert!(deep.stdout.contains("all is as it was written"), "{}", deep.stdout);

    let pack = pack_of(&store);
    let mut bytes = fs_err::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs_err::set_permissions(&pack, std::fs::Permissions::from_mode(0o600)).unwrap();
    fs_err::write(&pack, bytes).unwrap();
    let fast = called(&env, &source, &["store", "fsck"]);
    assert!(!fast.stdout.contains("as it was written"), "{}", fast.stdout);
    assert!(fast.code != 0 || fast.stdout.contains("`--deep` does that"), "{}", fast.stdout);
    let deep = called(&env, &source, &["store", "fsck", "--deep"]);
    assert_ne!(deep.code, 0, "{}", deep.stdout);
}

#[test]
fn all_that_a_store_takes_is_told() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    called(&env, &source, &["snapshot", "."]).expect_code(0).unused();
    let told = called(&env, &source, &["store", "status", "--json"]).expect_code(0).stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    let (mut there, mut waiting) = (0, vec![PathBuf::from(told["path"].as_str().unwrap())]);
    while let Some(path) = waiting.pop() {
        let meta = fs_err::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            waiting.extend(fs_err::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            there += meta.blocks() * 512;
        }
    }
    let told = told["bytes"].as_u64().unwrap();
    assert!(told * 10 > there * 9 && told < there * 2, "told {told}, there {there}");
}

#[test]
fn what_killed_calls_left_among_our_own_files_goes() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if require::program("strace").is_none() {
        return require::skip("killing at a system call needs strace");
    }
    let source = env.repository("r");
    let data = env.sandboxes().with_file_name("");
    let killed_at = |call: &str, words: &[&str]| {
        let rule = format!("inject={call}:signal=KILL:when=1");
        let trace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &rule];
        let ended = env.sandtable().directory(&source).args(words).through(trace).ended();
        assert_ne!(ended.code, 0, "{call} was never called: {}", ended.stderr);
    };
    let names = |folder: &str| -> Vec<String> {
        let entries = fs_err::read_dir(data.join(folder)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    killed_at("renameat2", &["snapshot", "."]);
    assert!(names("stores").iter().any(|name| name.contains(".new-")), "{:?}", names("stores"));
    called(&env, &source, &["snapshot", "."]).expect_code(0).unused();
    assert!(!names("stores").iter().any(|name| name.contains(".new-")), "{:?}", names("stores"));

    env.run_script(&source, &["--name", "box"], "echo work > work").expect_code(0).unused();
    killed_at("linkat,link", &["merge", "box"]);
    let scratch = || -> Vec<String> {
        let targets = names("merges").into_iter().filter(|name| data.join("merges").join(name).is_dir());
        let inside = targets.flat_map(|target| names(&format!("merges/{target}")));
        inside.filter(|name| name != "lock").collect()
    };
    assert_ne!(scratch(), [""; 0], "the kill came before there was anything");
    called(&env, &source, &["merge", "box"]).expect_code(0).unused();
    assert_eq!(scratch(), [""; 0]);
}
