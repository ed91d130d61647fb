//! The attacks as a table, and the runner that holds an engine against it.
//!
//! A [`Case`] says what is tried inside ([`sandtable_launch::inside::probe`]), with which options, and what must be
//! seen. The same table is run where nothing is enforced ([`null`]): a case that claims a control and does
//! not leak there proves nothing, and fails.

pub mod cases;
pub mod container;
pub mod native;
pub mod null;
pub mod scope;
mod stage;

use std::fmt::Write as _;

use sandtable_launch::inside::probe::{self, Probe};
use sandtable_protocol::probe::{Class, Line};
use sandtable_protocol::report::Control;

pub use stage::Stage;

/// One attempt and what must come of it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    /// The probe, with its arguments; `{…}` is filled in by the [`Stage`].
    pub probe: &'static str,
    pub args: &'static [&'static str],
    /// Options of `run`.
    pub options: &'static [&'static str],
    pub expect: Class,
}

/// Something that runs a probe, sandboxed or not.
pub trait Engine {
    fn name(&self) -> String;

    /// Runs the probe in the source of the stage: what it printed, or why there is no answer.
    fn attempt(&self, stage: &Stage, case: &Case, args: &[String]) -> Result<Line, String>;
}

/// What a case came to.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub case: Case,
    pub got: Result<Class, String>,
    pub detail: String,
}

impl Case {
    /// # Panics
    /// If the table names a probe that does not exist.
    pub fn probe(&self) -> &'static Probe {
        probe::find(self.probe).unwrap_or_else(|| panic!("case {}: no probe {}", self.name, self.probe))
    }

    /// The controls that stop it. None: the case is functional.
    pub fn claims(&self) -> &'static [Control] {
        self.probe().claims
    }
}

impl Verdict {
    pub fn is_as_expected(&self) -> bool {
        self.got.as_ref().is_ok_and(|class| *class == self.case.expect)
    }

    /// One line for people.
    pub fn describe(&self) -> String {
        let got = match &self.got {
            Ok(class) => format!("{class:?}"),
            Err(why) => format!("no answer: {why}"),
        };
        format!("{}: expected {:?}, got {got} ({})", self.case.name, self.case.expect, self.detail)
    }
}

/// Runs the cases that are about the network first, and no more than `most` of all.
pub fn run_some(engine: &dyn Engine, stage: &mut Stage, most: u32) -> Vec<Verdict> {
    let network = |case: &&Case| case.claims().contains(&Control::NetworkNamespace);
    let others = cases::ALL.iter().filter(|case| !network(case));
    let chosen = cases::ALL.iter().filter(network).chain(others).take(most as usize);
    chosen.map(|case| run_one(engine, stage, *case)).collect()
}

/// Runs every case.
pub fn run(engine: &dyn Engine, stage: &mut Stage) -> Vec<Verdict> {
    cases::ALL.iter().map(|case| run_one(engine, stage, *case)).collect()
}

/// Runs one case. A write that went through is harmless if nothing of the stage moved, else a leak.
fn run_one(engine: &dyn Engine, stage: &mut Stage, case: Case) -> Verdict {
    let args: Vec<String> = case.args.iter().map(|arg| stage.fill_in(arg)).collect();
    let answer = engine.attempt(stage, &case, &args);
    let moved = stage.moved();
    match answer {
        Err(why) => Verdict { case, got: Err(why), detail: String::new() },
        Ok(line) if !moved.is_empty() => {
            Verdict { case, got: Ok(Class::Leak), detail: format!("{}; {}", line.detail, moved.join("; ")) }
        }
        Ok(line) if line.class == Class::Works && !case.claims().is_empty() => {
            Verdict { case, got: Ok(Class::Harmless), detail: line.detail }
        }
        Ok(line) => Verdict { case, got: Ok(line.class), detail: line.detail },
    }
}

/// The closing count of an engine, and a line for each case that did not come out as expected.
pub fn summary(engine: &dyn Engine, verdicts: &[Verdict]) -> String {
    let failed: Vec<_> = verdicts.iter().filter(|verdict| !verdict.is_as_expected()).collect();
    let mut text = format!(
        "conformance {}: {} cases, {} as expected, {} not",
        engine.name(),
        verdicts.len(),
        verdicts.len() - failed.len(),
        failed.len()
    );
    for verdict in failed {
        write!(text, "\n  {}", verdict.describe()).expect("writing to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_control_is_claimed_by_a_case() {
        let claimed: BTreeSet<Control> = cases::ALL.iter().flat_map(Case::claims).copied().collect();
        // Limits hold only where they were asked for; their own tests ask. Nobody inside can see the disk budget.
        let own = |control: &&Control| Control::LIMITS.contains(control) || **control == Control::DiskLimit;
        let always = Control::ALL.iter().filter(|control| !own(control));
        let missing: Vec<_> = always.filter(|control| !claimed.contains(control)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn every_attack_is_a_case_or_out_of_scope() {
        let tried: BTreeSet<&str> =
            cases::ALL.iter().flat_map(|case| case.probe().attacks).copied().collect();
        let elsewhere: BTreeSet<String> = scope::table().attack.into_iter().map(|entry| entry.id).collect();
        let groups = (1..=25).map(|n| format!("box/F{n}")).chain((1..=23).map(|n| format!("box/P{n}")));
        let wanted = groups.chain(["box/N1", "box/N10", "box/N17", "box/N20"].map(String::from));
        let missing: Vec<_> =
            wanted.filter(|id| !tried.contains(id.as_str()) && !elsewhere.contains(id)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn every_probe_is_used_and_every_case_has_its_own_name() {
        let used: BTreeSet<&str> = cases::ALL.iter().map(|case| case.probe().name).collect();
        let unused: Vec<_> =
            probe::all().map(|probe| probe.name).filter(|name| !used.contains(name)).collect();
        assert!(unused.is_empty(), "{unused:?}");
        let names: BTreeSet<&str> = cases::ALL.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), cases::ALL.len());
    }
}
