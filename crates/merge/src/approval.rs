//! Approvals are of contents, not of names alone.
//!
//! What was last told of a piece of work is remembered beside the journal of its target: an approval that names a path only is
//! one of what was told then. What contents are called is in [`seal`](super::seal).

use std::collections::BTreeSet;

use fs_err as fs;
use sandtable_store::RelPath;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::named::Named;
use super::place::Place;
use super::refusal::{Reason, Refusal};
use super::request::Binding;
use super::review::Finding;

/// What was last told about a piece of work, as paths with the names of their contents.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shown(BTreeSet<(Vec<u8>, String)>);

impl Shown {
    pub(super) fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let pair = |finding: &Finding| (finding.rel_path().as_bytes().to_vec(), finding.id.clone());
        Self(findings.into_iter().map(pair).collect())
    }

    /// What is remembered; nothing when nothing was told, or it cannot be read.
    pub(super) fn read(place: &Place, work: &str) -> Option<Self> {
        serde_json::from_slice(&fs::read(place.shown(work)).ok()?).ok()
    }

    pub(super) fn write(&self, place: &Place, work: &str) -> Result<(), Error> {
        let path = place.shown(work);
        let fresh = path.with_extension("new");
        fs::write(&fresh, serde_json::to_vec(self).map_err(std::io::Error::other)?)?;
        Ok(fs::rename(fresh, path)?)
    }

    /// After a delivery there is nothing left to approve.
    pub(super) fn forget(place: &Place, work: &str) {
        // What stays is replaced by the next answer.
        drop(fs::remove_file(place.shown(work)));
    }

    fn ids(&self, path: &RelPath) -> Vec<&str> {
        let mine = self.0.iter().filter(|(shown, _)| shown == path.as_bytes());
        mine.map(|(_, id)| id.as_str()).collect()
    }
}

/// Whether what was approved is what was told, or what the approval names.
pub(super) fn check(
    binding: &Binding,
    approved: &[Finding],
    (plan, shown): (&str, Option<&Shown>),
) -> Result<(), Refusal> {
    if let Some(named) = binding.plan.as_ref().filter(|named| *named != plan) {
        let text = format!("the plan `{named}` was approved, and it is `{plan}` now");
        return Err(Refusal::new(Reason::Approval, text));
    }
    let mut moved: Vec<Named> = Vec::new();
    for finding in approved {
        let path = finding.rel_path();
        let expected: Vec<&str> = match (binding.contents.get(path), &binding.plan, shown) {
            (Some(ids), ..) => ids.iter().map(String::as_str).collect(),
            (None, None, Some(shown)) => shown.ids(path),
            _ => continue,
        };
        if expected.contains(&finding.id.as_str()) {
            continue;
        }
        let why = match expected.as_slice() {
            [] => format!("it is new since the last answer: `{}`", finding.id),
            ids => format!("it was `{}` and is `{}` now", ids.join("`, `"), finding.id),
        };
        let named = Named::new(path, why);
        if !moved.contains(&named) {
            moved.push(named);
        }
    }
    if moved.is_empty() {
        return Ok(());
    }
    Err(Refusal::of(Reason::Approval, "what was approved is not what is there now", moved))
}
