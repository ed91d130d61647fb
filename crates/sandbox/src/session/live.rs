//! What a command changed in a source that it worked on directly: all that moved there while it ran, whoever
//! moved it, since nothing tells the two apart.

use std::os::fd::AsFd as _;
use std::path::Path;

use sandtable_store::dir::{Kind, open_below, open_named, stat_at};
use sandtable_store::path::RelPath;
use sandtable_store::source::Drift;

use super::record::{ChangeEntry, ChangeKind, Changes, EntryType, GitState};

/// The drift of the source as changes.
pub(super) fn changes(root: &Path, drift: &[Drift]) -> Changes {
    let mut changes = Changes {
        added: 0,
        modified: 0,
        removed: 0,
        entries: Vec::new(),
        git: GitState::Untouched,
        skipped: Vec::new(),
    };
    // That something moved at the top is said by what moved.
    for moved in drift.iter().filter(|moved| !moved.path.is_root()) {
        if moved.path.components().next() == Some(b".git") {
            changes.git = GitState::Changed;
            continue;
        }
        let kind = moved.kind.change();
        let count = match kind {
            ChangeKind::Added => &mut changes.added,
            ChangeKind::Removed => &mut changes.removed,
            _ => &mut changes.modified,
        };
        *count += 1;
        let (path, path_hex) = moved.path.to_text();
        let entry = entry_type(root, &moved.path);
        changes.entries.push(ChangeEntry { kind, path, path_hex, entry, below: 0, mount: None });
    }
    changes
}

/// What is there now; what is gone counts as a file.
fn entry_type(root: &Path, path: &RelPath) -> EntryType {
    let kind = || {
        let top = open_named(root).ok()?;
        let holder = open_below(top.as_fd(), &path.parent()?).ok()?;
        Some(stat_at(holder.as_fd(), path.name()?).ok()?.kind)
    };
    match kind() {
        Some(Kind::Directory) => EntryType::Directory,
        Some(Kind::Symlink) => EntryType::Symlink,
        Some(Kind::File) | None => EntryType::File,
        Some(_) => EntryType::Special,
    }
}
