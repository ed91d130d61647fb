//! A call that is killed at a random moment: the process, one of its children, its group, or everything below it. Only
//! processes are meant that descend from the call, in a process namespace of the test's own where that can be.

use std::io::Read as _;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use sandtable_testkit::fuzz::Dice;
use sandtable_testkit::process::Run;

/// Nothing here takes so long; a call that does hangs.
const PATIENCE: Duration = Duration::from_mins(2);

/// Whom the signal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Aim {
    Process,
    Child,
    Group,
    Tree,
}

/// How many calls are killed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Odds {
    /// Five of six.
    Most,
    All,
}

/// A call and what is to happen to it.
pub(crate) struct Victim {
    pub(crate) words: Vec<String>,
    child: Child,
    began: Instant,
    kill: Option<(Duration, Aim, Signal)>,
    pub(crate) hit: Option<Aim>,
}

/// How it ended.
pub(crate) struct Fate {
    pub(crate) words: Vec<String>,
    pub(crate) hit: Option<Aim>,
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Victim {
    /// Starts a call as the leader of a group of its own, to be killed within the given time.
    pub(crate) fn start(run: Run, words: Vec<String>, within: (Duration, Odds), dice: &mut Dice) -> Self {
        let (longest, odds) = within;
        let aims = [Aim::Process, Aim::Child, Aim::Group, Aim::Tree];
        let signals = [Signal::KILL, Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP];
        let (aim, signal) = (aims[dice.below(4)], signals[dice.below(5)]);
        let share = u32::try_from(dice.below(1000)).unwrap();
        let spared = dice.below(6) == 0 && odds == Odds::Most;
        let kill = (!spared).then(|| (longest * share / 1000, aim, signal));
        Self { words, child: run.through(["setsid"]).started(), began: Instant::now(), kill, hit: None }
    }

    /// Kills it if its time has come; whether it goes on.
    pub(crate) fn goes_on(&mut self, dice: &mut Dice) -> bool {
        if self.child.try_wait().unwrap().is_some() {
            return false;
        }
        if self.began.elapsed() > PATIENCE {
            let all = descendants(self.child.id());
            all.into_iter().chain([self.child.id()]).for_each(|id| send(id, Signal::KILL));
            self.words.push("(it never ended)".to_owned());
        }
        if let Some((_, aim, signal)) = self.kill.take_if(|(at, ..)| self.began.elapsed() >= *at) {
            self.shoot(aim, signal, dice);
        }
        true
    }

    fn shoot(&mut self, aim: Aim, signal: Signal, dice: &mut Dice) {
        let id = self.child.id();
        let below = descendants(id);
        match aim {
            Aim::Process => send(id, signal),
            Aim::Child if below.is_empty() => return,
            Aim::Child => send(below[dice.below(below.len())], signal),
            Aim::Group => {
                // It may have ended by itself a moment ago.
                pid(id).and_then(|id| kill_process_group(id, signal).ok());
            }
            Aim::Tree => below.into_iter().chain([id]).for_each(|id| send(id, signal)),
        }
        self.hit = Some(aim);
    }

    pub(crate) fn fate(mut self) -> Fate {
        let status = self.child.wait().unwrap();
        let took = self.began.elapsed();
        let mut stderr = Vec::new();
        self.child.stderr.take().unwrap().read_to_end(&mut stderr).ok();
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Fate { words: self.words, hit: self.hit, code: status.code(), stderr, took }
    }
}

fn pid(id: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(id).ok()?)
}

fn send(id: u32, signal: Signal) {
    // It may have ended by itself a moment ago.
    pid(id).and_then(|id| kill_process(id, signal).ok());
}

/// A process of this namespace.
pub(crate) struct Process {
    pub(crate) id: u32,
    parent: u32,
    pub(crate) name: String,
}

impl Process {
    /// Whether it runs this executable.
    pub(crate) fn runs(&self, executable: &Path) -> bool {
        fs_err::read_link(format!("/proc/{}/exe", self.id)).is_ok_and(|exe| exe == executable)
    }
}

/// Every process that has not ended.
pub(crate) fn processes() -> Vec<Process> {
    let entries =
        fs_err::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    entries.filter_map(|name| name.parse().ok()).filter_map(process).collect()
}

fn process(id: u32) -> Option<Process> {
    let stat = fs_err::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(") ")?;
    let mut fields = tail.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let name = head.split_once('(')?.1.to_owned();
    (state != "Z").then_some(Process { id, parent, name })
}

fn descendants(of: u32) -> Vec<u32> {
    let all = processes();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(all.iter().filter(|process| process.parent == parent).map(|process| process.id));
        next += 1;
    }
    found.split_off(1)
}
