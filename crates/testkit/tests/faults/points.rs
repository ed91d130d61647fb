//! Killed at every system call that writes: the process under trace is killed when it enters the call, so each kill
//! leaves what the calls before it did. `ls` follows; then everything is as before or as after, the operation
//! can be done again or taken back, and nothing is left lying about.

use std::collections::BTreeMap;
use std::path::Path;

use sandtable_testkit::counts;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::require::{self, say};

use crate::operations::{Operation, Scene, Shows, Traced, table};
use crate::remains::{remains, scratch};
use crate::seen::{Seen, difference};

/// The calls that change a file system. A file that is only opened for writing is changed by the call after that.
const WRITING: &str = "write,pwrite64,writev,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,symlink,\
                       symlinkat,link,linkat,truncate,ftruncate,fallocate,chmod,fchmod,fchmodat,fchown,fchownat,utimensat,\
                       setxattr,fsetxattr,removexattr,fremovexattr,copy_file_range,sendfile,fsync,fdatasync";

/// What became of all points of an operation.
#[derive(Default)]
struct Row {
    points: usize,
    before: usize,
    after: usize,
    wrong: Vec<String>,
}

#[test]
fn killed_at_every_writing_call_the_old_state_or_the_new_one() {
    if require::program("strace").is_none() {
        return require::skip("killing at a system call needs strace");
    }
    let only = require::variable("SANDTABLE_FAULTS_ONLY");
    let mut wrong = Vec::new();
    let mut callers = vec![("whoever runs the tests", Caller::Same)];
    if counts::is_long() {
        callers.push(("an ordinary user", Caller::ordinary()));
    }
    for (who, caller) in callers {
        if TestEnv::of_the_executable_as(caller).is_none() {
            return;
        }
        say(&format!(
            "{:<34} {:>7} {:>7} {:>7} {:>7}",
            format!("as {who}"),
            "points",
            "before",
            "after",
            "wrong"
        ));
        for operation in table().iter().filter(|row| only.as_ref().is_none_or(|only| row.name.contains(only)))
        {
            let row = all_points(operation, caller);
            let Row { points, before, after, .. } = row;
            say(&format!("{:<34} {points:>7} {before:>7} {after:>7} {:>7}", operation.name, row.wrong.len()));
            row.wrong.iter().for_each(|line| say(&format!("    {line}")));
            wrong.extend(row.wrong.into_iter().map(|line| format!("{} as {who}: {line}", operation.name)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn all_points(operation: &Operation, caller: Caller) -> Row {
    let scene = || {
        let scene = Scene::new(TestEnv::of_the_executable_as(caller).unwrap(), operation.source);
        let words = (operation.prepare)(&scene);
        (scene, words)
    };
    let (undisturbed, words) = scene();
    let old = undisturbed.look(operation.shows);
    let points = points(&undisturbed, &words, operation);
    let new = undisturbed.look(operation.shows);
    assert!(!matches!(operation.shows, Shows::Nowhere) || old == new, "{:?}", difference(&old, &new));
    let most = usize::try_from(counts::of("kill-points")).unwrap();
    let mut row = Row::default();
    for (call, when) in sample(&points, most) {
        let (scene, words) = scene();
        let trace = inject(&call, when, operation.traced);
        let ended = scene.ground.call(&scene.source, &words).through(trace).ended();
        row.points += 1;
        let mut check = Check { operation, scene: &scene, old: &old, new: &new };
        match check.after_a_kill(&words) {
            Ok(true) => row.after += 1,
            Ok(false) => row.before += 1,
            Err(why) => row.wrong.push(format!("{call} {when} (code {}): {why}", ended.code)),
        }
    }
    row
}

/// Every point, or as many as are asked for, spread over all of them.
fn sample(points: &[(String, usize)], most: usize) -> Vec<(String, usize)> {
    if points.len() <= most {
        return points.to_vec();
    }
    (0..most).map(|n| points[(2 * n + 1) * points.len() / (2 * most)].clone()).collect()
}

/// Does the operation under trace, and counts the calls of the process that made most of each kind.
fn points(scene: &Scene, words: &[String], operation: &Operation) -> Vec<(String, usize)> {
    let log = scene.ground.env().root().join("trace");
    let mut trace = vec!["strace".to_owned()];
    trace.extend((operation.traced == Traced::All).then(|| "-f".to_owned()));
    trace.extend(
        ["-qq", "-e", &format!("trace={WRITING}"), "-o", &log.display().to_string()].map(str::to_owned),
    );
    drop(scene.ground.call(&scene.source, words).through(trace).ended().expect_code(0));
    let mut most: BTreeMap<String, usize> = BTreeMap::new();
    for ((_, call), count) in counted(&log) {
        let most = most.entry(call).or_default();
        *most = count.max(*most);
    }
    most.into_iter().flat_map(|(call, count)| (1..=count).map(move |when| (call.clone(), when))).collect()
}

/// How often each process made each call.
fn counted(log: &Path) -> BTreeMap<(String, String), usize> {
    let mut counted = BTreeMap::new();
    for line in fs_err::read_to_string(log).unwrap().lines() {
        let Some((head, _)) = line.split_once('(') else { continue };
        let (process, call) = head.trim().rsplit_once(' ').unwrap_or(("", head));
        if call.chars().all(|c| c.is_ascii_alphanumeric()) {
            *counted.entry((process.trim().to_owned(), call.to_owned())).or_insert(0) += 1;
        }
    }
    counted
}

fn inject(call: &str, when: usize, traced: Traced) -> Vec<String> {
    let mut words = vec!["strace".to_owned()];
    words.extend((traced == Traced::All).then(|| "-f".to_owned()));
    let rule = format!("inject={call}:signal=KILL:when={when}");
    words.extend(["-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &rule].map(str::to_owned));
    words
}

/// One kill, looked at.
struct Check<'a> {
    operation: &'a Operation,
    scene: &'a Scene,
    old: &'a Seen,
    new: &'a Seen,
}

impl Check<'_> {
    /// Whether the operation was done, after the command that comes next; else what is wrong.
    fn after_a_kill(&mut self, words: &[String]) -> Result<bool, String> {
        let Self { operation, scene, old, new } = *self;
        let listed = scene.ground.ended(&scene.source, &["ls"]);
        if listed.code != 0 {
            return Err(format!("ls: {}", listed.stderr));
        }
        let left = remains(&scene.ground, &scene.source);
        if !left.is_empty() {
            return Err(left.join(", "));
        }
        let seen = scene.look(operation.shows);
        let done = match (seen == *old, seen == *new) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => return Err(format!("half: {}", difference(old, &seen).join(", "))),
        };
        if !done {
            self.again(words)?;
        } else if let Some(back) = operation.back {
            self.way_back(back)?;
        } else {
            return Ok(done);
        }
        let left = scratch(&scene.ground);
        if left.is_empty() { Ok(done) } else { Err(left.join(", ")) }
    }

    /// What was not done can be done now.
    fn again(&self, words: &[String]) -> Result<(), String> {
        let Self { operation, scene, new, .. } = self;
        let ended = scene.ground.ended(&scene.source, words);
        if ended.code != 0 {
            return Err(format!("again: {} {}", ended.code, ended.stderr));
        }
        let seen = scene.look(operation.shows);
        if seen == **new { Ok(()) } else { Err(format!("again: {}", difference(new, &seen).join(", "))) }
    }

    /// What was done can be taken back, and it is that operation that is taken back.
    fn way_back(&self, back: &str) -> Result<(), String> {
        let Self { operation, scene, old, .. } = self;
        let ended = scene.ground.ended(&scene.source, &[back, "."]);
        if ended.code != 0 {
            return Err(format!("{back}: {} {}", ended.code, ended.stderr));
        }
        let seen = scene.look(operation.shows);
        if seen == **old { Ok(()) } else { Err(format!("{back}: {}", difference(old, &seen).join(", "))) }
    }
}
