//! What a sandbox changed in a copy of the source, read from the copy.
//!
//! There are no marks as in an overlay's upper directory, so both trees are walked side by side. Time helps:
//! nobody can set a change time back, so whatever in the copy has one from before the copy was finished is
//! as it was made, and whatever the user does to the source afterwards is not taken for the sandbox's doing.
//! Only what was touched is compared by content, and what was not but has another size or time than the source
//! has there: it came with a directory that was renamed.
//!
//! The copy is foreign: it is reached by handle, nothing in it is followed, and no mount is entered.

use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::compare::{Comparer, Content, Site, links, specials};
use super::findings::Findings;
use super::outcome::{Change, ChangeKind, LayerOutcome, LayerSkipReason};
use super::{LayerError, LayerOptions, is_unreadable};
use crate::dir::{
    Kind, Meta, Mounts, Name, birth_at, names, open_below, open_below_with, open_file, stat_at, stat_fd,
};
use crate::path::RelPath;
use crate::source::Stamp;

/// The two trees, and when the copy was finished.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    pub copy: BorrowedFd<'a>,
    pub source: BorrowedFd<'a>,
    pub finished: Stamp,
    /// What was left out of the copy on purpose and is therefore not missing.
    pub left_out: &'a dyn Fn(&RelPath, Kind) -> bool,
}

impl fmt::Debug for Pair<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("finished", &self.finished).finish_non_exhaustive()
    }
}

/// What the copy shows that it did not when it was finished. To be called while nothing is at work in it.
pub fn compare(pair: Pair<'_>, options: &LayerOptions) -> Result<LayerOutcome, LayerError> {
    let mut walk = Walk {
        pair,
        comparer: Comparer::new(),
        findings: Findings::new(*options),
        pending: vec![Directory { path: RelPath::root(), past: Past::Known }],
        path: RelPath::root(),
    };
    while let Some(directory) = walk.pending.pop() {
        walk.directory(directory)?;
        if walk.findings.is_full() {
            break;
        }
    }
    Ok(walk.findings.into_outcome())
}

struct Walk<'a> {
    pair: Pair<'a>,
    comparer: Comparer,
    findings: Findings,
    pending: Vec<Directory>,
    /// The entry being judged.
    path: RelPath,
}

/// A directory of the copy that is still to be judged.
struct Directory {
    path: RelPath,
    past: Past,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    /// The source has one here.
    Known,
    /// The sandbox made it.
    New,
}

/// One directory of each tree, opened and listed.
struct Sides {
    copy: OwnedFd,
    copy_names: Vec<Name>,
    copy_touched: bool,
    past: Past,
    source: Option<SourceSide>,
}

struct SourceSide {
    dir: OwnedFd,
    names: Vec<Name>,
    /// Whether the user may have been at work in it since.
    touched: bool,
}

impl Walk<'_> {
    fn directory(&mut self, directory: Directory) -> Result<(), LayerError> {
        let past = directory.past;
        self.path = directory.path;
        let Some(sides) = self.open(past)? else { return Ok(()) };
        if past == Past::New && sides.copy_names.is_empty() {
            self.change(ChangeKind::Added, Kind::Directory, 0);
        }
        for name in &sides.copy_names {
            self.path.push(&name.bytes).expect("a directory lists single names");
            self.entry(&sides, &name.bytes)?;
            self.path.pop();
        }
        if let Some(source) = &sides.source
            && sides.copy_touched
        {
            for name in &source.names {
                if sides.copy_names.binary_search_by(|other| other.bytes.cmp(&name.bytes)).is_err() {
                    self.path.push(&name.bytes).expect("a directory lists single names");
                    self.missing(source.dir.as_fd(), &name.bytes)?;
                    self.path.pop();
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, past: Past) -> Result<Option<Sides>, LayerError> {
        let opened = open_below(self.pair.copy, &self.path).and_then(|copy| {
            let (meta, copy_names) = (stat_fd(copy.as_fd())?, names(copy.as_fd())?);
            Ok((copy, meta, copy_names))
        });
        let (copy, meta, copy_names) = match opened {
            Ok(opened) => opened,
            Err(errno) => return self.set_aside(errno).map(|()| None),
        };
        let copy_touched = self.touched(&meta);
        if past == Past::New {
            return Ok(Some(Sides { copy, copy_names, copy_touched, past, source: None }));
        }
        let source = open_below_with(self.pair.source, &self.path, Mounts::Cross).and_then(|dir| {
            let (meta, names) = (stat_fd(dir.as_fd())?, names(dir.as_fd())?);
            Ok(SourceSide { dir, names, touched: self.touched(&meta) })
        });
        let source = match source {
            Ok(source) => Some(source),
            Err(errno) if is_unreadable(errno) => {
                self.skip(LayerSkipReason::LowerUnreadable);
                None
            }
            // The user removed or exchanged it meanwhile.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
            Err(errno) => return Err(LayerError::Lower { path: self.path.clone(), source: errno.into() }),
        };
        Ok(Some(Sides { copy, copy_names, copy_touched, past, source }))
    }

    fn entry(&mut self, sides: &Sides, name: &[u8]) -> Result<(), LayerError> {
        let meta = match stat_at(sides.copy.as_fd(), name) {
            Ok(meta) if meta.is_mount => {
                self.skip(LayerSkipReason::Mount);
                return Ok(());
            }
            Ok(meta) => meta,
            Err(errno) => return self.set_aside(errno),
        };
        let source = sides.source.as_ref();
        let old = source.and_then(|side| Some((&side.dir, stat_at(side.dir.as_fd(), name).ok()?)));
        // What was left out was never there: a file of that name is the sandbox's own.
        let old = old.filter(|(_, old)| !(self.pair.left_out)(&self.path, old.kind));
        let Some((dir, old)) = old else {
            let removed_outside = source.is_none_or(|side| side.touched) && sides.past == Past::Known;
            if self.touched(&meta) || !removed_outside {
                self.added(&meta);
            } else if meta.kind == Kind::Directory {
                self.walk_later(Past::Known);
            }
            return Ok(());
        };
        if meta.kind == Kind::Directory {
            self.walk_later(if old.kind == Kind::Directory { Past::Known } else { Past::New });
        }
        if !self.touched(&meta) && (self.touched(&old) || looks_copied(&meta, &old)) {
            return Ok(());
        }
        if old.kind != meta.kind {
            self.change(ChangeKind::TypeChanged, meta.kind, 0);
            return Ok(());
        }
        let ours = Site { dir: sides.copy.as_fd(), name, meta: &meta };
        self.compare(ours, Site { dir: dir.as_fd(), name, meta: &old })
    }

    fn walk_later(&mut self, past: Past) {
        self.pending.push(Directory { path: self.path.clone(), past });
    }

    fn added(&mut self, meta: &Meta) {
        match meta.kind {
            // Listed when it is walked: what is in it speaks for it.
            Kind::Directory => self.walk_later(Past::New),
            Kind::File | Kind::Symlink => self.change(ChangeKind::Added, meta.kind, 0),
            Kind::Fifo => self.skip(LayerSkipReason::Fifo),
            Kind::Socket => self.skip(LayerSkipReason::Socket),
            Kind::Character | Kind::Block => self.skip(LayerSkipReason::Device),
        }
    }

    fn compare(&mut self, ours: Site<'_>, theirs: Site<'_>) -> Result<(), LayerError> {
        let content = match ours.meta.kind {
            Kind::Directory => Ok(Content::Same),
            Kind::File => open_file(ours.dir, ours.name, ours.meta)
                .and_then(|file| self.comparer.files(&file, ours.meta.size, theirs)),
            Kind::Symlink => links(ours, theirs),
            _ => Ok(specials(ours.meta, theirs.meta)),
        };
        match content {
            Ok(Content::Different) => {
                self.change(ChangeKind::Modified, ours.meta.kind, 0);
                return Ok(());
            }
            Ok(Content::Same) => {}
            Ok(Content::LowerUnreadable) => self.skip(LayerSkipReason::LowerUnreadable),
            Ok(Content::LowerMoved) => self.skip(LayerSkipReason::Moved),
            Err(errno) => return self.set_aside(errno),
        }
        if ours.meta.mode != theirs.meta.mode {
            self.change(ChangeKind::ModeChanged, ours.meta.kind, 0);
        }
        Ok(())
    }

    /// An entry of the source that the copy has not: gone from the copy, unless it came to the source later,
    /// was left out, or is of a kind that is not copied.
    fn missing(&mut self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<(), LayerError> {
        let Ok(meta) = stat_at(dir, name) else { return Ok(()) };
        let never_copied = matches!(meta.kind, Kind::Socket | Kind::Character | Kind::Block);
        // Where the user was at work since, its birth tells whether it was there before.
        let is_older = || birth_at(dir, name).is_some_and(|birth| !self.pair.finished.may_precede(birth));
        let came_later = self.touched(&meta) && !is_older();
        if never_copied || came_later || (self.pair.left_out)(&self.path, meta.kind) {
            return Ok(());
        }
        let below = if meta.kind == Kind::Directory { self.count()? } else { 0 };
        self.change(ChangeKind::Removed, meta.kind, below);
        Ok(())
    }

    /// How many files, symlinks and the like lie below the source's directory at the current path.
    fn count(&self) -> Result<u64, LayerError> {
        let (mut count, mut pending) = (0, vec![self.path.clone()]);
        while let Some(path) = pending.pop() {
            let listed = open_below_with(self.pair.source, &path, Mounts::Cross)
                .and_then(|dir| names(dir.as_fd()).map(|names| (dir, names)));
            let (dir, names) = match listed {
                Ok(listed) => listed,
                Err(errno) if is_unreadable(errno) || errno == Errno::NOENT => continue,
                Err(errno) => return Err(LayerError::Lower { path, source: errno.into() }),
            };
            for name in names {
                match stat_at(dir.as_fd(), &name.bytes).map(|meta| meta.kind) {
                    Ok(Kind::Directory) => {
                        pending.push(path.join(&name.bytes).expect("a directory lists single names"));
                    }
                    Ok(_) => count += 1,
                    Err(_) => {}
                }
            }
        }
        Ok(count)
    }

    fn touched(&self, meta: &Meta) -> bool {
        self.pair.finished.may_precede(meta.ctime_ns)
    }

    fn set_aside(&mut self, errno: Errno) -> Result<(), LayerError> {
        match errno {
            errno if is_unreadable(errno) => self.skip(LayerSkipReason::Unreadable),
            Errno::NOENT | Errno::STALE | Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::NXIO => {
                self.skip(LayerSkipReason::Moved);
            }
            errno => return Err(LayerError::Upper { path: self.path.clone(), source: errno.into() }),
        }
        Ok(())
    }

    fn change(&mut self, kind: ChangeKind, entry: Kind, below: u64) {
        self.findings.change(Change { path: self.path.clone(), kind, entry: entry.into(), below });
    }

    fn skip(&mut self, why: LayerSkipReason) {
        self.findings.skip(&self.path, why);
    }
}

/// Whether an entry that nobody touched is the copy of what the source has, or one that came by a rename of
/// the directory it lies in.
fn looks_copied(ours: &Meta, theirs: &Meta) -> bool {
    ours.kind == theirs.kind
        && (ours.kind == Kind::Directory || (ours.size, ours.mtime_ns) == (theirs.size, theirs.mtime_ns))
}

#[cfg(test)]
mod tests;
