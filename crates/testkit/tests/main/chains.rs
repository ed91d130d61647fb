//! Long ways back and forth over a sandbox in which there are entries that no state holds. Such an entry stays where it
//! is, and is no work of its own: `undo` and `redo` move over what was done, and over nothing else.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use sandtable_testkit::container::Contained;
use sandtable_testkit::counts;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::fuzz::{Dice, seed};
use sandtable_testkit::process::{Ended, Run};
use serde_json::Value;

/// Files of the source that git ignores; each is removed once at most.
const IGNORED: u32 = 60;

/// What no state holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Odd {
    Pipe,
    TooLarge,
    Nested,
    /// Of a file that git ignores: the state of the source does not have it.
    Removed,
    /// A bit that is never set from data, so that a state is not written exactly.
    SpecialBit,
}

const ODDS: [Odd; 5] = [Odd::Pipe, Odd::TooLarge, Odd::Nested, Odd::Removed, Odd::SpecialBit];

/// Where it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Top,
    /// A directory that the source has.
    Old,
    /// A directory that comes with it.
    New,
}

const PLACES: [Place; 3] = [Place::Top, Place::Old, Place::New];

impl Place {
    fn below(self, number: u32) -> String {
        match self {
            Self::Top => String::new(),
            Self::Old => "src/".to_owned(),
            Self::New => format!("d{number}/"),
        }
    }
}

/// One command: what it does beside its line in `work`.
#[derive(Clone, Copy, Debug)]
struct Job {
    number: u32,
    odd: Odd,
    place: Place,
}

impl Job {
    fn script(self) -> String {
        let Self { number, odd, place } = self;
        let at = place.below(number);
        let new = if place == Place::New {
            format!("mkdir d{number}; echo f > d{number}/f; ")
        } else {
            String::new()
        };
        let odd = match odd {
            Odd::Pipe => format!("mkfifo {at}p{number}"),
            Odd::TooLarge => format!("truncate -s 5368709120 {at}h{number}"),
            Odd::Nested => format!("mkdir -p {at}n{number}/.git; echo x > {at}n{number}/.git/HEAD"),
            Odd::Removed => format!("rm ignored{number}"),
            Odd::SpecialBit => format!("echo s > {at}s{number}; chmod 1755 {at}s{number}"),
        };
        format!("set -e; echo {number} >> work; {new}{odd}")
    }

    /// Whether it is as it should be where these commands are done, and no others.
    fn look(self, done: &BTreeSet<u32>, ignored: Ignored) -> String {
        let is_done = done.contains(&self.number);
        let Self { number, odd, place } = self;
        let at = place.below(number);
        let not = if is_done { "" } else { "! " };
        let new = if place == Place::New { format!("test {not}-e d{number}/f; ") } else { String::new() };
        let odd = match odd {
            Odd::Pipe => format!("test -p {at}p{number}"),
            Odd::TooLarge => format!("test $(stat -c %s {at}h{number}) = 5368709120"),
            Odd::Nested => format!("test -f {at}n{number}/.git/HEAD"),
            Odd::Removed if is_done || ignored == Ignored::Unheld => format!("test ! -e ignored{number}"),
            Odd::Removed => format!("test -e ignored{number}"),
            Odd::SpecialBit => format!("test {not}-e {at}s{number}"),
        };
        format!("{new}{odd}; ")
    }
}

/// Whether states of the sandbox have files that git ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ignored {
    Held,
    Unheld,
}

/// What a recorded state is known to be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    id: String,
    done: Vec<u32>,
}

/// A sandbox, what was done in it, and what should be there.
struct Chain<'a> {
    call: &'a dyn Fn() -> Run,
    source: &'a Path,
    ignored: Ignored,
    dice: Dice,
    jobs: Vec<Job>,
    now: Known,
    /// Each with its kind, and where it led from and to.
    done: Vec<(&'static str, Known, Known)>,
    undone: Vec<(&'static str, Known, Known)>,
    said: String,
}

impl<'a> Chain<'a> {
    fn new(call: &'a dyn Fn() -> Run, source: &'a Path, ignored: Ignored) -> Self {
        Self {
            call,
            source,
            ignored,
            dice: Dice::new(seed()),
            jobs: Vec::new(),
            now: Known { id: String::new(), done: Vec::new() },
            done: Vec::new(),
            undone: Vec::new(),
            said: String::new(),
        }
    }

    fn ended(&mut self, args: &[&str]) -> Ended {
        let ended = (self.call)().directory(self.source).args(args).ended();
        writeln!(self.said, "{args:?}: {}\n{}{}", ended.code, ended.stdout, ended.stderr).unwrap();
        ended
    }

    /// The newest states, and every operation by its kind, as the log has them.
    fn logged(&mut self) -> (Vec<String>, Vec<String>) {
        let log: Value = serde_json::from_str(&self.ended(&["log", "a", "--json"]).stdout).unwrap();
        let all = log["operations"].as_array().unwrap().clone();
        let states = all.iter().filter_map(|one| one["after"].as_str()).map(str::to_owned).collect();
        (states, all.iter().map(|one| one["operation"].as_str().unwrap().to_owned()).collect())
    }

    /// A command was done.
    fn began(&mut self, jobs: &[Job]) {
        let mut done = self.now.done.clone();
        done.extend(jobs.iter().map(|job| job.number));
        self.jobs.extend(jobs);
        let kind = if self.done.is_empty() && self.undone.is_empty() { "run" } else { "exec" };
        let (all, _) = self.logged();
        if kind == "run" {
            self.now.id.clone_from(&all[1]);
        }
        self.went(kind, Known { id: all[0].clone(), done });
    }

    fn went(&mut self, kind: &'static str, to: Known) {
        self.undone.clear();
        self.done.push((kind, self.now.clone(), to.clone()));
        self.now = to;
    }

    fn job(&mut self) -> Job {
        let number = u32::try_from(self.jobs.len()).unwrap();
        let (odd, place) = (ODDS[self.dice.below(ODDS.len())], PLACES[self.dice.below(PLACES.len())]);
        Job { number, odd, place }
    }

    fn exec(&mut self) {
        let job = self.job();
        let ended = self.ended(&["exec", "-q", "a", "--", "sh", "-c", &job.script()]);
        assert_eq!(ended.code, 0, "{}", self.said);
        self.began(&[job]);
    }

    fn rollback(&mut self) {
        // To the state where it is there is no way.
        let known = self.done.iter().chain(&self.undone).flat_map(|one| [&one.1, &one.2]);
        let known: Vec<Known> = known.filter(|one| one.id != self.now.id).cloned().collect();
        let to = known[self.dice.below(known.len())].clone();
        assert_eq!(self.ended(&["rollback", &to.id, "a"]).code, 0, "{}", self.said);
        self.went("rollback", to);
    }

    fn undo(&mut self) {
        let ended = self.ended(&["undo", "a"]);
        let Some((kind, from, to)) = self.done.pop() else {
            return assert_eq!(ended.code, 2, "nothing is left to undo\n{}", self.said);
        };
        let says = format!("`{kind}` in sandbox a was undone");
        assert!(ended.code == 0 && ended.stderr.contains(&says), "{says}\n{}", self.said);
        self.now = from.clone();
        self.undone.push((kind, from, to));
    }

    fn redo(&mut self) {
        let ended = self.ended(&["redo", "a"]);
        let Some((kind, from, to)) = self.undone.pop() else {
            return assert_eq!(ended.code, 2, "nothing is left to redo\n{}", self.said);
        };
        let says = format!("`{kind}` in sandbox a was done again");
        assert!(ended.code == 0 && ended.stderr.contains(&says), "{says}\n{}", self.said);
        self.now = to.clone();
        self.done.push((kind, from, to));
    }

    /// Everything is as it should be; to look is no work either.
    fn look(&mut self) {
        let done: BTreeSet<u32> = self.now.done.iter().copied().collect();
        let tests: String = self.jobs.iter().map(|job| job.look(&done, self.ignored)).collect();
        let script = format!("set -ex; test ! -e work || cat work; {tests}");
        let ended = self.ended(&["exec", "-q", "a", "--", "sh", "-c", &script]);
        let lines: Vec<u32> = ended.stdout.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!((ended.code, &lines), (0, &self.now.done), "{}", self.said);
    }

    /// The steps that are always taken, and some more.
    fn go(&mut self, more: u32) {
        let sure =
            [Self::undo, Self::redo, Self::undo, Self::undo, Self::redo, Self::exec, Self::exec, Self::undo];
        let sure = sure.into_iter().chain([Self::undo, Self::redo, Self::redo, Self::rollback, Self::undo]);
        for step in sure {
            step(self);
        }
        self.look();
        for _ in 0..more {
            let step = match self.dice.below(8) {
                0 | 1 => Self::exec,
                2 => Self::rollback,
                3..6 => Self::undo,
                _ => Self::redo,
            };
            step(self);
            self.look();
        }
        let (_, kinds) = self.logged();
        assert!(!kinds.contains(&"snapshot".to_owned()), "{kinds:?}\n{}", self.said);
    }
}

/// All of it at once, for the first command.
fn first() -> Vec<Job> {
    let all = ODDS.into_iter().flat_map(|odd| PLACES.map(|place| (odd, place)));
    (0..).zip(all).map(|(number, (odd, place))| Job { number, odd, place }).collect()
}

fn prepare(env: &TestEnv, source: &Path) {
    env.file(&source.join(".gitignore"), "ignored*\n");
    env.git(source, &["add", "-A"]);
    env.git(source, &["commit", "-q", "-m", "rules"]);
    for number in 0..IGNORED {
        env.file(&source.join(format!("ignored{number}")), "mine\n");
    }
}

fn script(jobs: &[Job]) -> String {
    jobs.iter().map(|job| job.script()).collect::<Vec<_>>().join("; ")
}

#[test]
fn what_no_state_holds_is_no_work_of_its_own() {
    let ways: [(&[&str], Ignored); 3] = [
        (&["--name", "a"], Ignored::Unheld),
        (&["--name", "a", "--base", "store"], Ignored::Held),
        (&["--name", "a", "--mode", "copy"], Ignored::Held),
    ];
    for (options, ignored) in ways {
        for caller in [Caller::Same, Caller::ordinary()] {
            let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
            let source = env.repository("r");
            prepare(&env, &source);
            let call = || env.sandtable();
            let mut chain = Chain::new(&call, &source, ignored);
            let jobs = first();
            drop(env.run_script(&source, options, &script(&jobs)).expect_code(0));
            chain.began(&jobs);
            chain.go(counts::of("chain-steps"));
        }
    }
}

#[test]
fn nor_is_it_on_a_container_engine() {
    Contained::each(Contained::new, |world, source| {
        prepare(&world.env, &source);
        let call = || world.sandtable();
        let mut chain = Chain::new(&call, &source, Ignored::Unheld);
        let jobs = first();
        drop(world.run_script(&source, &["--name", "a"], &script(&jobs)).expect_code(0));
        chain.began(&jobs);
        chain.go(counts::of("chain-steps") / 6);
    });
}
