//! The mixed killer: operations of every kind, one to three at once on one source, most of them killed at a random
//! moment. After each round the source is whole, and nothing is left of what was killed. `SANDTABLE_FAULTS_SEED` plays a
//! run again; when a process is killed depends on the machine, so a run repeats the calls, not every moment.
//! `SANDTABLE_FAULTS_ROUNDS` is the number of rounds, and `SANDTABLE_FAULTS_KEEP` names a directory for copies of what was
//! wrong.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime};

use sandtable_testkit::container::{Contained, Kind};
use sandtable_testkit::counts;
use sandtable_testkit::env::{Caller, PATH, TestEnv};
use sandtable_testkit::fuzz::Dice;
use sandtable_testkit::process::Run;
use sandtable_testkit::require::{self, say, skip};

use crate::ground::Ground;
use crate::victim::{Aim, Fate, Odds, Victim};
use crate::yard::Yard;

/// Codes by which a call says that it failed for a reason of ours: a panic, an abort, a machine that must change.
const FAILURES: [i32; 3] = [101, 134, 125];

/// How many rounds are added at most until something was killed. Each kills every call that does not end too soon.
const AFTER: u64 = 20;

/// How many rounds there are between two lines about how far it is.
const BETWEEN: u64 = 25;

/// Variables of the tests that the namespace needs too.
const PASSED_ON: [&str; 7] = [
    "CI",
    "SANDTABLE_BIN",
    "SANDTABLE_FAULTS_KEEP",
    "SANDTABLE_LONG",
    "SANDTABLE_TEST_DOCKER",
    "SANDTABLE_TEST_USER",
    "TMPDIR",
];

fn ground(which: &str) -> Option<Ground> {
    let contained =
        |kind, caller| Contained::new(kind, caller).map(|world| Ground::Contained(Box::new(world)));
    match which {
        "docker" => contained(Kind::Docker, Caller::Same),
        "podman" => contained(Kind::Podman, Caller::Same),
        "user" => TestEnv::of_the_executable_as(Caller::ordinary()).map(Ground::Native),
        _ => TestEnv::of_the_executable().map(Ground::Native),
    }
}

#[test]
fn killed_at_any_moment_as_root() {
    in_a_namespace("root", counts::of("mixed-kills-root"));
}

#[test]
fn killed_at_any_moment_as_an_ordinary_user() {
    in_a_namespace("user", counts::of("mixed-kills-user"));
}

#[test]
fn killed_at_any_moment_in_docker() {
    in_a_namespace("docker", counts::of("mixed-kills-container"));
}

#[test]
fn killed_at_any_moment_in_podman() {
    in_a_namespace("podman", counts::of("mixed-kills-container"));
}

/// Calls this executable again where every process is its own.
fn in_a_namespace(which: &str, rounds: u32) {
    if !require::is_root() {
        return skip("a process namespace for kills needs root");
    }
    let seed = require::variable("SANDTABLE_FAULTS_SEED").unwrap_or_else(|| {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        if counts::is_long() { now.to_string() } else { "1".to_owned() }
    });
    let rounds = require::variable("SANDTABLE_FAULTS_ROUNDS").unwrap_or_else(|| rounds.to_string());
    say(&format!("{which}: {rounds} rounds with SANDTABLE_FAULTS_SEED={seed}"));
    // The shell is the first process there and waits for those whose parents were killed. Docker's daemon is outside, and
    // so must be who wants to see its containers: there only what is below our own calls is killed.
    let apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let apart = if which == "docker" { &[] } else { &apart[..] };
    let mut run = Run::new("sh", &std::env::temp_dir()).variable("PATH", PATH).through(apart);
    run = run.args(["-c", "\"$@\" >&2; exit $?", "sh"]).arg(std::env::current_exe().unwrap());
    run = run.args(["--exact", "mixed::rounds_of_kills", "--nocapture"]);
    for name in PASSED_ON {
        if let Some(value) = require::variable(name) {
            run = run.variable(name, value);
        }
    }
    let mut child = run.variable("ST_KILLS", format!("{which} {rounds} {seed}")).started();
    let mut text = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap) {
        if line.starts_with(which) || line.starts_with("killed") || line.starts_with("skipped") {
            say(&line);
        }
        text.push_str(&line);
        text.push('\n');
    }
    assert!(child.wait().unwrap().success(), "{text}");
}

/// Runs only when a test above calls it, in a process namespace.
#[test]
fn rounds_of_kills() {
    let Some(asked) = require::variable("ST_KILLS") else { return };
    let mut asked = asked.split(' ');
    let which = asked.next().unwrap();
    let [rounds, seed] = [asked.next(), asked.next()].map(|word| word.unwrap().parse::<u64>().unwrap());
    let Some(first) = ground(which) else { return };
    let mut game = Game::new(Yard::new(first), Dice::new(seed));
    let mut round = 0;
    // A few rounds may happen to kill nothing. Then they go on, and every call is killed, until one was hit in time.
    while round < rounds || game.kills.is_empty() && round < rounds + AFTER {
        // A call that has to work, and does not, is one more thing that is wrong.
        let odds = if round + 1 < rounds || !game.kills.is_empty() { Odds::Most } else { Odds::All };
        let wrong = catch_unwind(AssertUnwindSafe(|| game.round(round, odds))).unwrap_or_else(|panic| {
            vec![panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a call failed".to_owned())]
        });
        if !wrong.is_empty() {
            game.yard.keep(round);
            let text = format!("{which}, seed {seed}, round {round}: {}", wrong.join("\n    "));
            say(&text);
            game.flagged.push(text);
            // What comes next is judged by itself.
            game.checked_out += game.yard.checked_out;
            game.yard = Yard::new(ground(which).unwrap());
        }
        round += 1;
        if round % BETWEEN == 0 {
            let (kills, flagged) = (game.kills.values().sum::<usize>(), game.flagged.len());
            say(&format!(
                "{which}: {round} of {rounds} rounds, {kills} kills, {flagged} flagged, seed {seed}"
            ));
        }
    }
    let wrong = game.yard.close();
    if !wrong.is_empty() {
        game.yard.keep(round);
    }
    game.flagged.extend(wrong);
    let Game { calls, kills, flagged, .. } = &game;
    say(&format!(
        "killed, {which}: {round} rounds, {calls} operations, {} kills {kills:?}, {} states checked out, {} flagged, seed {seed}",
        kills.values().sum::<usize>(),
        game.checked_out + game.yard.checked_out,
        flagged.len()
    ));
    assert!(flagged.is_empty(), "{}", flagged.join("\n"));
    assert!(!kills.is_empty(), "nothing was killed in {round} rounds");
}

struct Game {
    yard: Yard,
    dice: Dice,
    /// How long each kind of call was seen to take.
    longest: BTreeMap<String, Duration>,
    calls: usize,
    kills: BTreeMap<Aim, usize>,
    checked_out: usize,
    flagged: Vec<String>,
}

impl Game {
    fn new(yard: Yard, dice: Dice) -> Self {
        let (longest, kills, flagged) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { yard, dice, longest, calls: 0, kills, checked_out: 0, flagged }
    }

    /// One round, and everything that is wrong after it.
    fn round(&mut self, number: u64, odds: Odds) -> Vec<String> {
        let at = usize::from(number % 3 == 2);
        self.yard.prepare(at, &mut self.dice);
        let source = self.yard.sources[at].path.clone();
        // All are chosen before one begins: a sandbox that is asked about is not removed meanwhile.
        let calls: Vec<_> = (0..=self.dice.below(3)).map(|_| self.yard.choose(at, &mut self.dice)).collect();
        let mut victims = Vec::new();
        for words in calls {
            let run = self.yard.ground.call(&source, &words);
            let longest = self.longest.get(&words[0]).copied().unwrap_or(self.yard.ground.usual());
            victims.push(Victim::start(run, words, (longest, odds), &mut self.dice));
        }
        let mut fates = Vec::new();
        while !victims.is_empty() {
            let mut going_on = Vec::new();
            for mut victim in victims {
                if victim.goes_on(&mut self.dice) {
                    going_on.push(victim);
                } else {
                    fates.push(victim.fate());
                }
            }
            victims = going_on;
            std::thread::sleep(Duration::from_micros(500));
        }
        self.remember(&fates);
        let mut wrong = self.yard.check(at, &mut self.dice);
        let failed = fates.iter().filter(|fate| failed(fate) && !lost_with_another(fate, &fates));
        wrong.extend(failed.map(|fate| format!("failed: {}", fate.stderr)));
        if !wrong.is_empty() {
            wrong.extend(fates.iter().map(told));
        }
        wrong
    }

    fn remember(&mut self, fates: &[Fate]) {
        for fate in fates {
            self.calls += 1;
            match fate.hit {
                Some(aim) => *self.kills.entry(aim).or_default() += 1,
                // A little less than that, so that most kills come in time.
                None => drop(self.longest.insert(fate.words[0].clone(), fate.took * 7 / 10)),
            }
        }
    }
}

/// Whether a call failed that nobody interfered with, for a reason that is not in what it was asked for.
fn failed(fate: &Fate) -> bool {
    let never_ended = fate.words.last().is_some_and(|word| word.starts_with('('));
    never_ended || fate.hit.is_none() && fate.code.is_none_or(|code| FAILURES.contains(&code))
}

/// Whether a command ended because somebody killed the call that had started its sandbox. A command that joins a running
/// sandbox ends with it, and says so.
fn lost_with_another(fate: &Fate, fates: &[Fate]) -> bool {
    let [verb, sandbox, ..] = fate.words.as_slice() else { return false };
    let same =
        |other: &Fate| other.hit.is_some() && other.words[0] == "exec" && other.words.get(1) == Some(sandbox);
    verb == "exec" && fate.stderr.contains("[lost]") && fates.iter().any(same)
}

fn told(fate: &Fate) -> String {
    let last = fate.stderr.lines().find(|line| line.contains("error")).unwrap_or_default();
    format!("{:?} hit {:?} code {:?} {last}", fate.words.join(" "), fate.hit, fate.code)
}
