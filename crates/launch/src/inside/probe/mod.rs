//! One attack at a time, tried from inside a sandbox: the hidden subcommand `__probe CASE [ARG…]`.
//!
//! A probe takes the smallest step that shows whether the attack would work (opens for writing and does not
//! write, asks for a signal number 0, passes flags that are refused after the permission check), so that it
//! is harmless even where nothing is enforced. It judges only what it sees itself and says so in one line
//! of JSON; whether a write that `works` reached the host is for the caller to find out.

mod again;
mod each;
mod files;
mod finding;
mod identity;
mod kernel;
mod network;
mod procfs;
mod shared;
mod terminal;

use std::ffi::OsString;
use std::io::Write;

use sandtable_protocol::probe::Line;
use sandtable_protocol::report::Control;

use crate::sys::probe::Call;
pub use finding::Finding;

/// One thing that can be tried.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    pub name: &'static str,
    /// Which attacks of the threat model it stands for, as `box/F13`.
    pub attacks: &'static [&'static str],
    /// Which controls stop it. None: it checks that something works.
    pub claims: &'static [Control],
    attempt: Attempt,
}

/// How a probe is made.
#[derive(Clone, Copy, Debug)]
enum Attempt {
    /// One system call.
    Call(Call),
    /// Anything longer; the arguments are those after the case's name.
    Steps(fn(&[OsString]) -> Finding),
}

/// Every probe that shows something by itself, in the order of the threat model.
pub fn all() -> impl Iterator<Item = &'static Probe> {
    [
        files::PROBES,
        shared::PROBES,
        procfs::PROBES,
        identity::PROBES,
        kernel::PROBES,
        terminal::PROBES,
        network::PROBES,
    ]
    .into_iter()
    .flatten()
}

/// The probe of that name, those for the next start of a sandbox among them.
pub fn find(name: &str) -> Option<&'static Probe> {
    all().chain(again::PROBES).find(|probe| probe.name == name)
}

/// `__probe CASE [ARG…]`, `__probe --list`, or `__probe --each CASES ANSWERS` for many at once. The exit status is 0 if the probe could be made at all.
pub fn main(args: &[OsString]) -> u8 {
    let mut out = std::io::stdout().lock();
    let written = match args.split_first().map(|(name, rest)| (name.to_str().unwrap_or_default(), rest)) {
        Some(("--list", _)) => all().try_for_each(|probe| writeln!(out, "{}", probe.describe())),
        Some(("--each", [cases, answers])) => each::run(cases.as_ref(), answers.as_ref()),
        Some((name, rest)) => match find(name) {
            Some(probe) => writeln!(out, "{}", probe.line(rest)),
            None => return 2,
        },
        None => return 2,
    };
    u8::from(written.is_err())
}

impl Probe {
    /// Makes the attempt, here and now.
    pub fn run(&self, args: &[OsString]) -> Finding {
        match self.attempt {
            Attempt::Call(call) => Finding::of_call(call.attempt()),
            Attempt::Steps(steps) => steps(args),
        }
    }

    fn line(&self, args: &[OsString]) -> String {
        let Finding { class, detail } = self.run(args);
        let line = Line { case: self.name.to_owned(), class, detail };
        serde_json::to_string(&line).expect("strings and a word are always JSON")
    }

    fn describe(&self) -> String {
        let claims: Vec<_> = self.claims.iter().map(|control| control.name()).collect();
        format!("{}\t{}\t{}", self.name, self.attacks.join(" "), claims.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_attacks_are_cited_with_their_list() {
        let mut seen = std::collections::BTreeSet::new();
        for probe in all() {
            assert!(seen.insert(probe.name), "{} twice", probe.name);
            assert!(probe.attacks.iter().all(|id| id.starts_with("box/")), "{}", probe.name);
        }
    }

    #[test]
    fn an_unknown_case_is_refused() {
        assert_eq!(main(&["no-such-case".into()]), 2);
        assert_eq!(main(&[]), 2);
    }
}
