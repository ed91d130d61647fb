//! The real executable with a container engine, and how far it keeps the promises of the native one.

use std::fmt::Write as _;

use sandtable_protocol::probe::{Class, Line};
use serde::Deserialize;

use super::native::{answer, provoked};
use super::{Case, Engine, Stage, Verdict};
use crate::container::{Contained, Kind};
use crate::env::Caller;

/// `sandtable run --engine docker|podman --image …`.
#[derive(Debug)]
pub struct Container {
    pub kind: Kind,
    pub caller: Caller,
    pub image: String,
    /// Whether it has a way out.
    pub network: Network,
}

/// The network of a sandbox under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    None,
    Nat,
}

/// A case that comes out differently where a container engine builds the sandbox, and why that is so.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    pub case: String,
    /// Which engines: names as [`Engine::name`] gives them.
    pub engines: Vec<String>,
    /// What comes out there.
    pub got: Class,
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    difference: Vec<Difference>,
}

/// Every known difference.
///
/// # Panics
/// If the table is broken.
pub fn differences() -> Vec<Difference> {
    let table: Table = toml::from_str(include_str!("differences.toml")).expect("a table of differences");
    table.difference
}

impl Container {
    pub fn of(world: &Contained) -> Self {
        let network = if world.outside_address().is_some() { Network::Nat } else { Network::None };
        Self { kind: world.kind, caller: world.env.caller(), image: world.image.clone(), network }
    }
}

impl Engine for Container {
    fn name(&self) -> String {
        let nat = if self.network == Network::Nat { " with nat" } else { "" };
        match self.caller {
            Caller::Same => format!("{}{nat}", self.kind.word()),
            Caller::Ordinary { .. } => format!("{}{nat} (ordinary user)", self.kind.word()),
        }
    }

    fn attempt(&self, stage: &Stage, case: &Case, args: &[String]) -> Result<Line, String> {
        let run = stage.run().directory(stage.source());
        let run = run.args(["run", "--rm", "-q", "--engine", self.kind.word(), "--image", &self.image]);
        let network = if self.network == Network::Nat { ["--network", "nat"] } else { ["--network", "none"] };
        let run = run
            .args(network)
            .args(stage.options(case))
            .args(["--", "./probe-bin", "__probe", case.probe])
            .args(args);
        answer(&provoked(run, stage).ended())
    }
}

/// Whether a verdict is as the table promises for this engine, differences included.
pub fn is_as_known(engine: &dyn Engine, verdict: &Verdict) -> bool {
    let name = engine.name();
    // What a way out does not change is as without one.
    let names = [name.clone(), name.replace(" with nat", "")];
    let mut table = differences().into_iter().filter(|known| known.case == verdict.case.name);
    let known = table.find(|known| names.iter().any(|name| known.engines.contains(name)));
    match known {
        Some(known) => verdict.got.as_ref().is_ok_and(|class| *class == known.got),
        None => verdict.is_as_expected(),
    }
}

/// The table of differences for people.
pub fn table() -> String {
    let mut text = String::from("| case | engines | what comes out | why |\n|---|---|---|---|\n");
    for known in differences() {
        let Difference { case, engines, got, reason } = known;
        writeln!(text, "| {case} | {} | {got:?} | {reason} |", engines.join(", "))
            .expect("writing to a string");
    }
    text
}
