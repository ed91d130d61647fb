//! Measures us and the peers on the same work in the same run, and writes a report that says for each target
//! whether it was reached. Nothing is left out in silence: a peer that is absent or fails is in the report
//! with the reason. Everything happens in one directory that the wrapper `bench/run` makes and removes.
//!
//! It calls the executables that are compared as their users do, and knows none of our other crates.

#![forbid(unsafe_code)]

pub mod board;
pub mod catalogue;
pub mod growth;
pub mod jobs;
pub mod lab;
pub mod machine;
pub mod measure;
pub mod memory;
pub mod merging;
pub mod outcome;
pub mod peers;
pub mod process;
pub mod report;
pub mod row;
pub mod size;
pub mod stats;
pub mod tree;

use std::io;

use catalogue::{Extent, catalogue, outcome};
use lab::{Lab, Site};
use machine::{Machine, load};
use measure::Rounds;
use report::{Report, SCHEMA};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    Full,
    /// Few rounds and no large tree: shows that everything works, not how fast it is.
    Quick,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    pub site: Site,
    pub scale: Scale,
    pub rounds: Option<usize>,
    /// Sandboxes of the memory row.
    pub idle: Option<u32>,
    /// Only rows whose id is one of these, separated by commas, or starts with one of them and a slash.
    pub only: Option<String>,
}

impl Options {
    fn rounds(&self) -> Rounds {
        let (warm_up, timed) = match self.scale {
            Scale::Full => (3, 40),
            Scale::Quick => (1, 5),
        };
        Rounds { warm_up, timed: self.rounds.unwrap_or(timed) }
    }

    fn extent(&self) -> Extent {
        let idle = self.idle.unwrap_or(50);
        match self.scale {
            Scale::Full => {
                Extent { files: &[1000, 10_000, catalogue::LARGEST], megabytes: 1024, idle, snapshots: 100 }
            }
            Scale::Quick => Extent { files: &[1000, 10_000], megabytes: 256, idle, snapshots: 20 },
        }
    }

    fn wants(&self, id: &str) -> bool {
        let is =
            |name: &str| id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.only.as_deref().is_none_or(|only| only.split(',').any(is))
    }

    fn scale_in_words(&self) -> String {
        let scale = match (self.scale, &self.site.large) {
            (Scale::Full, None) => "full",
            (Scale::Full, Some(_)) => "full, and `78k` is a tree that was given",
            (Scale::Quick, _) => "quick: few rounds, no 78k tree; not for quoting",
        };
        self.only.as_ref().map_or_else(|| scale.to_owned(), |only| format!("{scale}; only `{only}`"))
    }
}

/// Measures every wanted row; `progress` hears each id before its row begins.
pub fn run(options: &Options, progress: &mut dyn FnMut(&str)) -> io::Result<Report> {
    let mut items = catalogue(options.extent());
    items.retain(|item| options.wants(&item.id));
    if items.is_empty() {
        let only = options.only.as_deref().unwrap_or_default();
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no row `{only}`")));
    }
    let mut lab = Lab::open(options.site.clone())?;
    let mut machine = Machine::look(&lab);
    let versions = peers::versions(&lab, &options.site.docker);
    let rounds = options.rounds();
    let mut rows = Vec::new();
    for item in &items {
        progress(&item.id);
        rows.push(outcome(&mut lab, item, rounds));
    }
    machine.load_after = load();
    Ok(Report {
        schema: SCHEMA,
        machine,
        warm_up: rounds.warm_up,
        rounds: rounds.timed,
        scale: options.scale_in_words(),
        versions,
        growth: growth::growth(&rows),
        rows,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn options(only: Option<&str>) -> Options {
        let site = Site {
            base: PathBuf::from("/nonexistent"),
            sandtable: PathBuf::from("/nonexistent"),
            large: None,
            user: None,
            docker: Err("no daemon".into()),
        };
        Options { site, scale: Scale::Quick, rounds: None, idle: None, only: only.map(str::to_owned) }
    }

    #[test]
    fn rows_are_chosen_by_whole_parts_of_their_id() {
        assert!(options(None).wants("start/root/1k"));
        assert!(options(Some("start")).wants("start/root/1k"));
        assert!(options(Some("start/root")).wants("start/root/1k"));
        assert!(!options(Some("start/r")).wants("start/root/1k"));
        assert!(!options(Some("exec")).wants("exec-running/root"));
        assert!(options(Some("diff,start/root")).wants("start/root/1k"));
        assert!(!options(Some("diff,start/root")).wants("start/user/1k"));
    }

    #[test]
    fn unknown_row_is_an_error_before_anything_is_made() {
        let error = run(&options(Some("stat")), &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "there is no row `stat`");
    }
}
