//! A fault at every system call that writes. Either the process under trace is killed when it enters the call, so that
//! each kill leaves what the calls before it did, or the call fails, as on a disk that is broken or full. `ls` follows;
//! then everything is as before or as after, the operation can be done again or taken back, and nothing is left over.
//! After a call that failed, what the operation said of it is true as well.

use std::collections::BTreeMap;
use std::path::Path;

use sandtable_testkit::counts;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Ended;
use sandtable_testkit::require::{self, say};

use crate::operations::{Operation, Scene, Shows, Traced, table};
use crate::remains::{remains, scratch};
use crate::seen::{Seen, difference};

/// The calls that change a file system. A file that is only opened for writing is changed by the call after that.
const WRITING: &str = "write,pwrite64,writev,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,symlink,\
                       symlinkat,link,linkat,truncate,ftruncate,fallocate,chmod,fchmod,fchmodat,fchown,fchownat,utimensat,\
                       setxattr,fsetxattr,removexattr,fremovexattr,copy_file_range,sendfile,fsync,fdatasync";

/// The calls that need room, so that a full disk lets them fail.
const NEEDS_ROOM: [&str; 19] = [
    "write",
    "pwrite64",
    "writev",
    "rename",
    "renameat",
    "renameat2",
    "mkdir",
    "mkdirat",
    "symlink",
    "symlinkat",
    "link",
    "linkat",
    "ftruncate",
    "fallocate",
    "setxattr",
    "fsetxattr",
    "copy_file_range",
    "fsync",
    "fdatasync",
];

/// What happens at a system call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill,
    BrokenDisk,
    FullDisk,
}

impl Fault {
    /// As strace has it.
    const fn word(self) -> &'static str {
        match self {
            Self::Kill => "signal=KILL",
            Self::BrokenDisk => "error=EIO",
            Self::FullDisk => "error=ENOSPC",
        }
    }

    /// How many points of an operation are looked at.
    fn most(self) -> usize {
        let most = match self {
            Self::Kill => counts::of("kill-points"),
            Self::BrokenDisk | Self::FullDisk => counts::of("error-points"),
        };
        usize::try_from(most).unwrap()
    }

    fn concerns(self, call: &str) -> bool {
        self != Self::FullDisk || NEEDS_ROOM.contains(&call)
    }
}

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
    everywhere(&[Fault::Kill]);
}

#[test]
fn a_writing_call_that_fails_leaves_the_old_state_or_the_new_one_and_true_words() {
    everywhere(&[Fault::BrokenDisk, Fault::FullDisk]);
}

fn everywhere(faults: &[Fault]) {
    if require::program("strace").is_none() {
        return require::skip("a fault at a system call needs strace");
    }
    let only = require::variable("SANDTABLE_FAULTS_ONLY");
    let mut wrong = Vec::new();
    let mut callers = vec![("the user of the tests", Caller::Same)];
    if counts::is_long() {
        callers.push(("an ordinary user", Caller::ordinary()));
    }
    for (who, caller) in callers {
        if TestEnv::of_the_executable_as(caller).is_none() {
            return;
        }
        for fault in faults {
            let title = format!("{} as {who}", fault.word());
            say(&format!("{title:<42} {:>7} {:>7} {:>7} {:>7}", "points", "before", "after", "wrong"));
            let asked = |row: &&Operation| only.as_ref().is_none_or(|only| row.name.contains(only));
            for operation in table().iter().filter(asked) {
                let row = all_points(operation, caller, *fault);
                let Row { points, before, after, .. } = row;
                let name = operation.name;
                say(&format!("{name:<42} {points:>7} {before:>7} {after:>7} {:>7}", row.wrong.len()));
                row.wrong.iter().for_each(|line| say(&format!("    {line}")));
                wrong.extend(row.wrong.into_iter().map(|line| format!("{name}, {title}: {line}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn all_points(operation: &Operation, caller: Caller, fault: Fault) -> Row {
    let scene = || {
        let scene = Scene::new(TestEnv::of_the_executable_as(caller).unwrap(), operation.source);
        let words = (operation.prepare)(&scene);
        (scene, words)
    };
    let (undisturbed, words) = scene();
    let old = States::of(&undisturbed, operation);
    let points = points(&undisturbed, &words, operation);
    let new = States::of(&undisturbed, operation);
    let nowhere = matches!(operation.shows, Shows::Nowhere);
    assert!(!nowhere || old.all == new.all, "{:?}", difference(&old.all, &new.all));
    let points: Vec<_> = points.into_iter().filter(|(call, _)| fault.concerns(call)).collect();
    let mut row = Row::default();
    for (call, when) in sample(&points, fault.most()) {
        let (scene, words) = scene();
        let trace = inject(&format!("{call}:{}:when={when}", fault.word()), operation.traced);
        let ended = scene.ground.call(&scene.source, &words).through(trace).ended();
        row.points += 1;
        let check = Check { operation, scene: &scene, old: &old, new: &new };
        let judged = if fault == Fault::Kill {
            check.afterwards(&words)
        } else {
            check.at_once(&ended).and_then(|()| check.afterwards(&words)).and_then(|now| {
                check.words_are_true(&ended, now)?;
                Ok(now)
            })
        };
        match judged {
            Ok(Now::New) => row.after += 1,
            Ok(Now::Old) => row.before += 1,
            Err(why) => {
                let said = format!("{} {}", ended.stdout, ended.stderr).trim().replace('\n', " / ");
                row.wrong.push(format!("{call} {when} (code {}): {why} [{said}]", ended.code));
            }
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

fn inject(rule: &str, traced: Traced) -> Vec<String> {
    let mut words = vec!["strace".to_owned()];
    words.extend((traced == Traced::All).then(|| "-f".to_owned()));
    let call = rule.split(':').next().unwrap_or_default();
    let [traced, rule] = [format!("trace={call}"), format!("inject={rule}")];
    words.extend(["-qq", "-o", "/dev/null", "-e", &traced, "-e", &rule].map(str::to_owned));
    words
}

/// Whether these words are among what a call printed, on whichever stream.
fn says(ended: &Ended, words: &str) -> bool {
    ended.stdout.contains(words) || ended.stderr.contains(words)
}

/// Which state an operation led to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Now {
    Old,
    New,
}

/// What there is to see before or after an operation.
struct States {
    /// In the source.
    source: Seen,
    /// Wherever the operation shows.
    all: Seen,
}

impl States {
    fn of(scene: &Scene, operation: &Operation) -> Self {
        Self { source: scene.look(Shows::Nowhere), all: scene.look(operation.shows) }
    }
}

/// One fault, looked at.
struct Check<'a> {
    operation: &'a Operation,
    scene: &'a Scene,
    old: &'a States,
    new: &'a States,
}

impl Check<'_> {
    /// Before any other command: the source is whole, unless the next command was announced to complete the work.
    fn at_once(&self, ended: &Ended) -> Result<(), String> {
        if ended.code == 101 || ended.code > 127 {
            return Err("it crashed".to_owned());
        }
        let Self { scene, old, new, .. } = self;
        let seen = scene.look(Shows::Nowhere);
        if says(ended, "everything was put back") && seen != old.source {
            return Err(format!("not put back: {}", difference(&old.source, &seen).join(", ")));
        }
        if seen == old.source || seen == new.source || says(ended, "the next command") {
            return Ok(());
        }
        Err(format!("half at once: {}", difference(&old.source, &seen).join(", ")))
    }

    /// What was said about an operation of which a call failed.
    fn words_are_true(&self, ended: &Ended, now: Now) -> Result<(), String> {
        let shows = !matches!(self.operation.shows, Shows::Nowhere);
        let claimed = says(ended, "the work is there") || says(ended, "is in its new state");
        match (ended.code, now) {
            (0, Now::Old) if shows => Err("it was not done, and the code is 0".to_owned()),
            (1.., Now::Old) if claimed => Err("it was not done, and is said to be".to_owned()),
            (1.., Now::New) if says(ended, "put back") => {
                Err("it was done, and is said to be put back".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// The state after the command that comes next; else what is wrong.
    fn afterwards(&self, words: &[String]) -> Result<Now, String> {
        let Self { operation, scene, old, new } = self;
        let listed = scene.ground.ended(&scene.source, &["ls"]);
        if listed.code != 0 {
            return Err(format!("ls: {}", listed.stderr));
        }
        let left = remains(&scene.ground, &scene.source);
        if !left.is_empty() {
            return Err(left.join(", "));
        }
        let seen = scene.look(operation.shows);
        let now = match (seen == old.all, seen == new.all) {
            (true, _) => Now::Old,
            (false, true) => Now::New,
            (false, false) => return Err(format!("half: {}", difference(&old.all, &seen).join(", "))),
        };
        if now == Now::Old {
            self.again(words)?;
        } else if let Some(back) = operation.back {
            self.way_back(back)?;
        } else {
            return Ok(now);
        }
        let left = scratch(&scene.ground);
        if left.is_empty() { Ok(now) } else { Err(left.join(", ")) }
    }

    /// What was not done can be done now.
    fn again(&self, words: &[String]) -> Result<(), String> {
        let Self { operation, scene, new, .. } = self;
        let ended = scene.ground.ended(&scene.source, words);
        if ended.code != 0 {
            return Err(format!("again: {} {}", ended.code, ended.stderr));
        }
        let seen = scene.look(operation.shows);
        if seen == new.all {
            Ok(())
        } else {
            Err(format!("again: {}", difference(&new.all, &seen).join(", ")))
        }
    }

    /// What was done can be taken back, and it is that operation that is taken back.
    fn way_back(&self, back: &str) -> Result<(), String> {
        let Self { operation, scene, old, .. } = self;
        let ended = scene.ground.ended(&scene.source, &[back, "."]);
        if ended.code != 0 {
            return Err(format!("{back}: {} {}", ended.code, ended.stderr));
        }
        let seen = scene.look(operation.shows);
        if seen == old.all {
            Ok(())
        } else {
            Err(format!("{back}: {}", difference(&old.all, &seen).join(", ")))
        }
    }
}
