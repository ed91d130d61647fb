//! A fault at every system call that writes. Either the process under trace is killed when it enters the call, so that
//! each kill leaves what the calls before it did, or the call fails, as on a disk that is broken or full. `ls` follows;
//! then everything is as before or as after, the operation can be done again or taken back, and nothing is left over.
//! After a call that failed, what the operation said of it is true as well.
//!
//! `SANDTABLE_FAULTS_ONLY` is a part of the names of the operations that are looked at, `SANDTABLE_FAULTS_POINTS` the number of
//! points of each, or `all`.

use std::time::{Duration, Instant};

use sandtable_testkit::counts;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Ended;
use sandtable_testkit::require::{self, say};

use crate::operations::{Operation, Scene, Shows, table as table_of_operations};
use crate::remains::{remains, scratch};
use crate::seen::{Seen, difference};
use crate::trace::{self, Fault, Point, Who};

/// What became of some points of an operation.
#[derive(Default)]
struct Row {
    points: usize,
    before: usize,
    after: usize,
    /// Points at which nothing happened, because the call was not made again.
    missed: usize,
    wrong: Vec<String>,
}

/// What became of one point.
struct Looked {
    happened: bool,
    now: Result<Now, String>,
}

/// Every operation with one fault, as one caller.
struct Table {
    caller: Caller,
    fault: Fault,
    title: String,
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
    let asked = |row: &&Operation| only.as_ref().is_none_or(|only| row.name.contains(only));
    let mut callers = vec![("root", Caller::Same)];
    if !require::is_root() {
        callers = vec![("the user of the tests", Caller::Same)];
    } else if counts::is_long() {
        callers.push(("an ordinary user", Caller::ordinary()));
    }
    let mut wrong = Vec::new();
    for (who, caller) in callers {
        if TestEnv::of_the_executable_as(caller).is_none() {
            return;
        }
        for &fault in faults {
            let title = format!("{} as {who}", fault.word());
            let mut table = Table { caller, fault, title, wrong: Vec::new() };
            table.heading();
            table_of_operations().iter().filter(asked).for_each(|operation| table.row(operation));
            wrong.extend(table.wrong);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// How many points of an operation are looked at.
fn most(fault: Fault) -> usize {
    let counted = match (require::variable("SANDTABLE_FAULTS_POINTS").as_deref(), fault) {
        (Some("all"), _) => return usize::MAX,
        (Some(number), _) => number.parse().expect("SANDTABLE_FAULTS_POINTS is `all` or a number"),
        (None, Fault::Kill) => counts::of("kill-points"),
        (None, Fault::BrokenDisk | Fault::FullDisk) => counts::of("error-points"),
    };
    usize::try_from(counted).unwrap()
}

impl Table {
    fn heading(&self) {
        let title = &self.title;
        say(&format!("{title:<44} points before  after missed  wrong seconds"));
    }

    /// All points of an operation: of the process itself, and of its children.
    fn row(&mut self, operation: &Operation) {
        let (undisturbed, words) = self.scene(operation);
        let old = States::of(&undisturbed, operation);
        let points = trace::points(&undisturbed, &words, operation);
        let new = States::of(&undisturbed, operation);
        let nowhere = matches!(operation.shows, Shows::Nowhere);
        assert!(!nowhere || old.all == new.all, "{:?}", difference(&old.all, &new.all));
        for (who, whose) in [(Who::Process, ""), (Who::Child, ", in a child")] {
            let of = |point: &&Point| point.who == who && self.fault.concerns(point);
            let points: Vec<Point> = points.iter().filter(of).cloned().collect();
            if points.is_empty() {
                continue;
            }
            let began = Instant::now();
            let mut row = Row::default();
            for point in sample(&points, most(self.fault)) {
                row.add(self.point(operation, (&old, &new), &point));
            }
            self.told(&format!("{}{whose}", operation.name), row, began.elapsed());
        }
    }

    fn told(&mut self, name: &str, row: Row, took: Duration) {
        let Row { points, before, after, missed, wrong } = row;
        let (count, seconds) = (wrong.len(), took.as_secs());
        say(&format!("{name:<44} {points:>6} {before:>6} {after:>6} {missed:>6} {count:>6} {seconds:>7}"));
        self.wrong.extend(wrong.into_iter().map(|line| format!("{name}, {}: {line}", self.title)));
    }

    fn scene(&self, operation: &Operation) -> (Scene, Vec<String>) {
        let scene = Scene::new(TestEnv::of_the_executable_as(self.caller).unwrap(), operation.source);
        let words = (operation.prepare)(&scene);
        (scene, words)
    }

    fn point(&self, operation: &Operation, (old, new): (&States, &States), point: &Point) -> Looked {
        let (scene, words) = self.scene(operation);
        let trace = point.inject(&scene, self.fault);
        let ended = scene.ground.call(&scene.source, &words).through(trace).ended();
        let happened = trace::happened(&scene, self.fault);
        let check = Check { operation, scene: &scene, old, new };
        let now = if self.fault == Fault::Kill {
            check.afterwards(&words)
        } else {
            check.at_once(&ended).and_then(|()| check.afterwards(&words)).and_then(|now| {
                check.words_are_true(&ended, now)?;
                Ok(now)
            })
        };
        let now = now.map_err(|why| {
            let said = format!("{} {}", ended.stdout, ended.stderr).trim().replace('\n', " / ");
            format!("{point} (code {}): {why} [{said}]", ended.code)
        });
        Looked { happened, now }
    }
}

impl Row {
    fn add(&mut self, looked: Looked) {
        self.points += 1;
        self.missed += usize::from(!looked.happened);
        match looked.now {
            Ok(Now::New) => self.after += 1,
            Ok(Now::Old) => self.before += 1,
            Err(why) => {
                say(&format!("    {why}"));
                self.wrong.push(why);
            }
        }
    }
}

/// Every point, or as many as are asked for, spread over all of them.
fn sample(points: &[Point], most: usize) -> Vec<Point> {
    if points.len() <= most {
        return points.to_vec();
    }
    (0..most).map(|n| points[(2 * n + 1) * points.len() / (2 * most)].clone()).collect()
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
