//! A merge or an apply that is in a log, taken back or done again.

use sandtable_sandbox::model::path::HostPath;

use super::error::Error;
use super::recorded::Recorded;
use super::request::{Log, Means, MergeRequest, Way};
use super::story::{self, Turn};
use super::way_back::Undo;

impl Recorded {
    /// Takes it back, or does it again, and enters that into the log.
    pub fn turn(
        &self,
        means: &Means,
        place: (&HostPath, &HostPath),
        (way, log): (Way, Log),
    ) -> Result<Turn, Error> {
        let log = Some(log);
        let undo = |commit, log| {
            let (target, branch) = (place.0.clone(), self.branch.clone());
            Undo { target, commit, branch, first: self.first, log }
        };
        match (self.commit, way) {
            (Some(commit), Way::Back) => story::undo(means, &undo(commit, log)),
            (Some(commit), Way::There) => story::redo(means, &undo(commit, log)),
            (None, _) => {
                let beyond_git = self.beyond_git(place.1, way);
                let request = MergeRequest { beyond_git, log, ..self.request(place, way) };
                let done = story::merge(means, &request)?;
                Ok(Turn { outcome: done.outcome, notes: done.notes, interrupted: done.interrupted })
            }
        }
    }
}
