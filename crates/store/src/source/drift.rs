//! What moved in a source since a moment; the reasoning is in the [module's](super) description.

use std::path::Path;

use super::listing::{Entry, Listing, Notes, ROOT, Settled, pair};
use super::stamp::Stamp;
use super::{SourceError, SourceOptions, scan};
pub use crate::change::DriftKind;
use crate::dir::Kind;
use crate::path::RelPath;

/// A path of the source that moved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drift {
    pub path: RelPath,
    pub kind: DriftKind,
}

/// What moved below `root` since `moment`, sorted by path. To be called after the command has ended.
///
/// `before` is a scan that was started after `moment`, if one was completed; without it, what was removed
/// can only be told by the directory it was in.
pub fn drift(
    before: Option<&Listing>,
    root: &Path,
    moment: Stamp,
    options: &SourceOptions<'_>,
) -> Result<Vec<Drift>, SourceError> {
    Ok(compare(before, &scan(root, options)?, moment))
}

/// The same from a scan that was made after the command had ended.
pub fn compare(before: Option<&Listing>, after: &Listing, moment: Stamp) -> Vec<Drift> {
    let mut comparison = Comparison { before, after, moment, drift: Vec::new() };
    comparison.root();
    comparison.drift.sort_unstable();
    comparison.drift
}

struct Comparison<'a> {
    before: Option<&'a Listing>,
    after: &'a Listing,
    moment: Stamp,
    drift: Vec<Drift>,
}

/// A directory to compare: its block then, if it was read then, and its block now.
type Pair = (Option<u32>, u32);

/// The times of a directory, then (if it was seen then) and now.
struct Times {
    then: Option<DirectoryTimes>,
    now: DirectoryTimes,
    /// Whether a change of its mode or owner was listed, which moves its change time.
    access: Access,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct DirectoryTimes {
    ctime: i64,
    mtime: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Same,
    Listed,
}

impl<'a> Comparison<'a> {
    fn root(&mut self) {
        let of =
            |listing: &Listing| DirectoryTimes { ctime: listing.root.ctime_ns, mtime: listing.root.mtime_ns };
        let times = Times { then: self.before.map(of), now: of(self.after), access: Access::Same };
        let top = (self.before.map(|_| ROOT), ROOT);
        let mut pending = Vec::new();
        self.directory(top, &times, &mut pending);
        while let Some((pair, times)) = pending.pop() {
            self.directory(pair, &times, &mut pending);
        }
    }

    fn directory(&mut self, (then, now): Pair, times: &Times, pending: &mut Vec<(Pair, Times)>) {
        let listed = self.drift.len();
        let after = self.after;
        match self.before.zip(then) {
            Some((before, block)) => {
                let sides = pair((before, before.block_entries(block)), (after, after.block_entries(now)));
                for (old, new) in sides {
                    self.entry(old, new, pending);
                }
            }
            None => after.block_entries(now).iter().for_each(|new| self.unknown(new, pending)),
        }
        if self.is_unexplained(times, then, listed) {
            let path = after.block_path(now);
            self.drift.push(Drift { path, kind: DriftKind::Contents });
        }
    }

    /// Whether names may have come or gone in a directory that no difference between the scans shows.
    fn is_unexplained(&self, times: &Times, then: Option<u32>, listed: usize) -> bool {
        let Some(((before, block), then)) = self.before.zip(then).zip(times.then) else {
            return self.moment.may_precede(times.now.ctime);
        };
        let seen_late = self.moment.may_precede(then.ctime);
        let torn = before.blocks[block as usize].settled == Settled::No;
        let moved = match times.access {
            Access::Same => then != times.now,
            Access::Listed => then.mtime != times.now.mtime,
        };
        seen_late || torn || (moved && self.drift.len() == listed)
    }

    fn entry(&mut self, old: Option<&'a Entry>, new: Option<&'a Entry>, pending: &mut Vec<(Pair, Times)>) {
        match (old, new) {
            (None, None) => {}
            (None, Some(new)) => self.push(new, self.after, DriftKind::Added),
            (Some(old), None) => {
                if let Some(before) = self.before {
                    self.push(old, before, DriftKind::Removed);
                }
            }
            (Some(old), Some(new)) => self.both(old, new, pending),
        }
    }

    fn both(&mut self, old: &Entry, new: &Entry, pending: &mut Vec<(Pair, Times)>) {
        if old.notes.has(Notes::MOUNT) && new.notes.has(Notes::MOUNT) {
            return;
        }
        let moved = if new.kind == Kind::Directory {
            !old.same_access(new)
        } else {
            !old.same(new) || self.moment.may_precede(new.ctime_ns)
        };
        let moved = moved || (self.is_git(new) && self.git_moved());
        if moved {
            self.push(new, self.after, DriftKind::Modified);
        }
        if let Some(now) = new.child() {
            let access = if moved { Access::Listed } else { Access::Same };
            let times = Times { then: Some(times(old)), now: times(new), access };
            pending.push(((old.child(), now), times));
        }
    }

    /// An entry of a directory that was not read before.
    fn unknown(&mut self, new: &Entry, pending: &mut Vec<(Pair, Times)>) {
        if new.notes.has(Notes::MOUNT) {
            return;
        }
        if let Some(now) = new.child() {
            let times = Times { then: None, now: times(new), access: Access::Same };
            pending.push(((None, now), times));
        } else if self.is_git(new) {
            if self.git_moved() {
                self.push(new, self.after, DriftKind::Modified);
            }
        } else if self.moment.may_precede(new.ctime_ns) {
            let is_directory = new.kind == Kind::Directory;
            let kind = if is_directory { DriftKind::Contents } else { DriftKind::Modified };
            self.push(new, self.after, kind);
        }
    }

    fn is_git(&self, entry: &Entry) -> bool {
        self.after.git.is_some()
            && entry.kind == Kind::Directory
            && self.after.path(entry).as_bytes() == b".git"
    }

    fn git_moved(&self) -> bool {
        let now = self.after.git;
        let differs = self.before.is_some_and(|before| before.git != now);
        differs || now.is_some_and(|git| git.moved_since(self.moment))
    }

    fn push(&mut self, entry: &Entry, listing: &Listing, kind: DriftKind) {
        self.drift.push(Drift { path: listing.path(entry), kind });
    }
}

fn times(entry: &Entry) -> DirectoryTimes {
    DirectoryTimes { ctime: entry.ctime_ns, mtime: entry.mtime_ns }
}
