//! What every command took on every tree, and what of it was too much.

use std::fmt::Write as _;
use std::time::Duration;

use sandtable_testkit::require::say;

use super::trees::Tree;
use super::watch::Taken;
use super::{Command, KILOBYTES, Names, SECONDS};

pub(super) struct Table {
    who: String,
    all: String,
    wrong: Vec<String>,
    /// Of the tree that is looked at: the longest work, with its command, and the most memory.
    longest: (Duration, &'static str),
    kilobytes: (u64, &'static str),
}

impl Table {
    pub(super) fn of(who: &str) -> Self {
        say(&format!("{who}: tree | longest command | seconds | most memory | MiB"));
        let all = String::from("tree | command | code | seconds | of work | MiB\n");
        Self {
            who: who.to_owned(),
            all,
            wrong: Vec::new(),
            longest: Default::default(),
            kilobytes: Default::default(),
        }
    }

    pub(super) fn note(&mut self, tree: &Tree, (command, codes): Command, taken: Taken) -> Taken {
        let code = taken.code.map_or_else(|| "killed".to_owned(), |code| code.to_string());
        let (seconds, work) = (taken.time.as_secs_f64(), taken.work.as_secs_f64());
        let mib = taken.kilobytes >> 10;
        writeln!(self.all, "{} | {command} | {code} | {seconds:.2} | {work:.2} | {mib}", tree.name)
            .expect("text takes text");
        let in_time = taken.work < Duration::from_secs(SECONDS);
        let expected = taken.code.is_some_and(|code| codes.contains(&code));
        let held = command.contains("APPROVED") && taken.said.contains("held until approved");
        if !expected || held || !in_time || taken.kilobytes > KILOBYTES {
            let took = format!("{seconds:.2} s, {work:.2} s of work, {mib} MiB");
            self.fail(format!("{}: `{command}`: {code}, {took}\n{}", tree.name, taken.said));
        }
        self.longest = self.longest.max((taken.work, command));
        self.kilobytes = self.kilobytes.max((taken.kilobytes, command));
        taken
    }

    /// The worst of a tree, and whether its source is what it was.
    pub(super) fn close(&mut self, tree: &Tree, before: &Names, after: &Names) {
        let (work, longest) = std::mem::take(&mut self.longest);
        let (kilobytes, most) = std::mem::take(&mut self.kilobytes);
        let (who, name, seconds, mib) = (&self.who, tree.name, work.as_secs_f64(), kilobytes >> 10);
        say(&format!("{who}: {name} | {longest} | {seconds:.2} | {most} | {mib}"));
        let differ: Vec<_> = before.symmetric_difference(after).take(5).collect();
        if !differ.is_empty() {
            self.fail(format!("{name}: the source is not what it was: {differ:?}"));
        }
    }

    fn fail(&mut self, line: String) {
        say(&format!("{}: {line}", self.who));
        self.wrong.push(line);
    }

    pub(super) fn end(self) {
        say(&self.all);
        assert!(self.wrong.is_empty(), "\n{}", self.wrong.join("\n"));
    }
}
