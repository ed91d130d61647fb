//! Which sandboxes can go. Removing them is [`super::remove`]'s business, one by one.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::directory::Sandboxes;
use super::error::SessionError;
use super::manage::{ListedSandbox, State, list};
use super::record::{Changes, GitState};
use crate::model::choice::choice;

choice! {
    /// Which sandboxes that do not run are meant.
    Scope { Unchanged = "unchanged", All = "all" }
}

/// What to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prune {
    pub scope: Scope,
    /// Only those that nobody used for so long.
    pub idle_for: Duration,
}

/// Sandboxes that do not run and that `prune` means. Without `Scope::All` only those go whose last command is
/// known to have changed nothing.
pub fn prunable(sandboxes: &Sandboxes, prune: Prune) -> Result<Vec<ListedSandbox>, SessionError> {
    let mut found = Vec::new();
    for entry in list(sandboxes)?.entries {
        if entry.state == State::Running || idle(sandboxes, &entry) < prune.idle_for {
            continue;
        }
        if prune.scope == Scope::All || is_unchanged(sandboxes, &entry) {
            found.push(entry);
        }
    }
    Ok(found)
}

/// How long ago the sandbox was used: when its last outcome was written, or when it was made.
fn idle(sandboxes: &Sandboxes, entry: &ListedSandbox) -> Duration {
    let made = SystemTime::UNIX_EPOCH + Duration::from_secs(entry.created_at);
    let used = sandboxes.at(&entry.name).last_outcome().unwrap_or(made);
    SystemTime::now().duration_since(used.max(made)).unwrap_or_default()
}

/// An outcome that cannot be read says nothing.
fn is_unchanged(sandboxes: &Sandboxes, entry: &ListedSandbox) -> bool {
    let outcome = sandboxes.at(&entry.name).read_outcome().ok().flatten();
    let known = outcome.filter(|_| entry.state == State::Stopped).and_then(|outcome| outcome.changes);
    known.is_some_and(|changes| is_empty(&changes))
}

fn is_empty(changes: &Changes) -> bool {
    changes.entries.is_empty() && changes.skipped.is_empty() && changes.git == GitState::Untouched
}
