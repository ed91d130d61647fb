//! Commits of a command that contain what the user changed in the source while it ran.

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;

use sandtable_store::layer::covers;
use sandtable_store::path::RelPath;
use sandtable_store::source::repository::Repository;
use sandtable_store::source::{Drift, DriftKind};

use super::super::directory::SandboxDirectory;
use super::super::record::Record;
use super::keep::Kept;
use super::{open, state};
use crate::model::layer::LayerName;
use crate::model::layout::{COMMITS, LayerPart};
use crate::model::resolved::Warning;
use crate::repository::{Ended, Mixed, note_mixed};

/// How many commits and paths a warning names.
const NAMED: usize = 5;

/// Looks at the commits of a command that has ended. What they have of the user's is written down for merges, and told.
pub(in crate::session) fn mixed(
    directory: &SandboxDirectory,
    record: &Record,
    (kept, drift): (&Kept, &[Drift]),
) -> Option<Warning> {
    let layer = kept.outcome.state.layer.as_ref()?;
    let moved: BTreeMap<&RelPath, DriftKind> =
        drift.iter().filter(|drift| !is_of_git(&drift.path)).map(|drift| (&drift.path, drift.kind)).collect();
    if moved.is_empty() || !record.sees_source() {
        return None;
    }
    let unknown = || {
        let text = "the source moved while the command ran, and the commits made inside could not be read: \
                    they may contain some of that";
        Warning::new("commits-unknown", text)
    };
    let found = (|| {
        let (stands_on, store) = directory.standing(record).ok()?;
        let base = state(&store, &stands_on.snapshot).ok()?;
        let repository = Repository::find(record.resolved.source.root.as_path()).ok()??;
        let upper = open(directory.layer(&LayerName::Workspace, LayerPart::Upper).as_path()).ok()?;
        let ended = Ended {
            store: &store,
            base: (stands_on.snapshot, &base),
            layer,
            head: &stands_on.head.unwrap_or_default(),
            theirs: &repository.objects(),
            place: directory.path().join(COMMITS).as_path().to_owned(),
            is_theirs: &|path| has_moved(&moved, path) && !covers(upper.as_fd(), path),
        };
        let found = ended.mixed()?;
        if !found.is_empty() {
            note_mixed(&store, &found).ok()?;
        }
        Some(found)
    })();
    match found {
        None => Some(unknown()),
        Some(found) => told(&found),
    }
}

/// Whether what is at a path, or was, is among what moved.
fn has_moved(moved: &BTreeMap<&RelPath, DriftKind>, path: &RelPath) -> bool {
    let parent = path.parent();
    let mut at = Some(path.clone());
    while let Some(way) = at {
        match moved.get(&way) {
            Some(DriftKind::Contents) if parent.as_ref() == Some(&way) => return true,
            None | Some(DriftKind::Contents) => {}
            Some(DriftKind::Added | DriftKind::Modified | DriftKind::Removed) => return true,
        }
        at = way.parent();
    }
    false
}

fn is_of_git(path: &RelPath) -> bool {
    path.components().next() == Some(b".git")
}

fn told(found: &[Mixed]) -> Option<Warning> {
    let mut commits: Vec<String> = Vec::new();
    for chunk in found.chunk_by(|one, next| one.commit == next.commit) {
        let mut paths: Vec<String> =
            chunk.iter().take(NAMED).map(|mixed| format!("`{}`", mixed.path)).collect();
        if chunk.len() > NAMED {
            paths.push(format!("and {} more", chunk.len() - NAMED));
        }
        commits.push(format!("{} ({})", chunk.first()?.commit.short(12), paths.join(", ")));
    }
    let more = commits.len().saturating_sub(NAMED);
    commits.truncate(NAMED);
    if more > 0 {
        commits.push(format!("and {more} more commits"));
    }
    let text = format!(
        "commits made inside contain changes that were made in the source while the command ran: {}; `merge` leaves these changes \
         out, `merge --history` refuses the commits, and a sandbox with `--base store` does not see such changes",
        commits.join(", ")
    );
    (!found.is_empty()).then(|| Warning::new("mixed-commits", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_something_that_moved_has_moved() {
        let path = |text: &str| RelPath::new(text).expect("a path");
        let paths = [path("file"), path("new"), path("some")];
        let kinds = [DriftKind::Modified, DriftKind::Added, DriftKind::Contents];
        let moved: BTreeMap<&RelPath, DriftKind> = paths.iter().zip(kinds).collect();
        for (text, has) in [
            ("file", true),
            ("new/x/y", true),
            ("some/x", true),
            ("some/x/y", false),
            ("some", false),
            ("other", false),
            ("files", false),
        ] {
            assert_eq!(has_moved(&moved, &path(text)), has, "{text}");
        }
    }
}
