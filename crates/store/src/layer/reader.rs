//! The walk over an upper directory.
//!
//! One position in the upper directory, one in the merged lower layers, moved together; a stack of the names
//! still to be judged instead of recursion, so that a tree of any depth costs memory for its names only.

use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::io::Errno;

use super::attribute::{Hides, Marks, Place, marks};
use super::compare::{Comparer, Content, Site, links, specials};
use super::findings::Findings;
use super::lower::{Below, Lower, View, count_below};
use super::outcome::{Change, ChangeKind, LayerOutcome, LayerSkipReason};
use super::{LayerError, LayerOptions, is_unreadable};
use crate::dir::{Descent, Kind, Meta, Name, names, open_file, stat_at};
use crate::path::RelPath;

pub(super) struct Reader {
    upper: Descent,
    lower: View,
    comparer: Comparer,
    /// The entry being judged.
    path: RelPath,
    frames: Vec<Frame>,
    findings: Findings,
}

/// A directory of the upper that is being judged.
struct Frame {
    names: std::vec::IntoIter<Name>,
    ties: Ties,
    /// Where its entries are, for the meaning of their attributes.
    place: Place,
    /// For a directory that is new: how many changes there were before it. If there are no more at its
    /// end it is listed itself, otherwise what is in it speaks for it.
    new_since: Option<u64>,
}

/// What a directory of the upper has to do with the lower layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ties {
    /// There is no directory below.
    None,
    /// It shows what is below, except where it says otherwise.
    Merged,
    /// There is one below, of which nothing shows through.
    Hidden,
}

impl Reader {
    pub(super) fn new(
        upper: BorrowedFd<'_>,
        lower: &Lower,
        options: LayerOptions,
    ) -> Result<Self, LayerError> {
        let open = |errno: Errno| LayerError::Open(errno.into());
        Ok(Self {
            upper: Descent::new(upper, lower.handles_each()).map_err(open)?,
            lower: View::new(lower).map_err(open)?,
            comparer: Comparer::new(),
            path: RelPath::root(),
            frames: Vec::new(),
            findings: Findings::new(options),
        })
    }

    pub(super) fn run(mut self) -> Result<LayerOutcome, LayerError> {
        self.begin(Place::Top, Ties::Merged, None)?;
        while let Some(frame) = self.frames.last_mut() {
            match frame.names.next() {
                Some(name) => self.entry(&name.bytes)?,
                None => self.end()?,
            }
            if self.findings.is_full() {
                break;
            }
        }
        Ok(self.findings.into_outcome())
    }

    /// Starts judging the directory that was just entered.
    fn begin(&mut self, place: Place, mut ties: Ties, new_since: Option<u64>) -> Result<(), LayerError> {
        let Marks { hides, foreign, .. } =
            marks(self.upper.fd(), Kind::Directory, place).map_err(|errno| self.failed(errno))?;
        self.findings.foreign(&self.path, foreign);
        let names = names(self.upper.fd()).map_err(|errno| self.failed(errno))?;
        if ties == Ties::Merged && hides == Hides::Everything {
            ties = Ties::Hidden;
        }
        if ties == Ties::Hidden {
            self.hidden(&names)?;
        }
        let place = if hides == Hides::SomeNames { Place::AmongMarked } else { Place::Ordinary };
        self.frames.push(Frame { names: names.into_iter(), ties, place, new_since });
        Ok(())
    }

    /// Leaves the directory whose names are all judged.
    fn end(&mut self) -> Result<(), LayerError> {
        let frame = self.frames.pop().expect("a directory is left once");
        if frame.new_since == Some(self.findings.changes()) {
            self.change(ChangeKind::Added, Kind::Directory, 0);
        }
        if !self.frames.is_empty() {
            self.upper.leave()?;
            if frame.ties != Ties::None {
                self.lower.leave()?;
            }
            self.path.pop();
        }
        Ok(())
    }

    fn entry(&mut self, name: &[u8]) -> Result<(), LayerError> {
        self.path.push(name).expect("a directory lists single names");
        let depth = self.frames.len();
        match stat_at(self.upper.fd(), name) {
            Err(errno) => self.set_aside(errno)?,
            Ok(meta) if meta.is_mount => self.skip(LayerSkipReason::Mount),
            Ok(meta) => self.judge(name, &meta)?,
        }
        if self.frames.len() == depth {
            self.path.pop();
        }
        Ok(())
    }

    fn judge(&mut self, name: &[u8], meta: &Meta) -> Result<(), LayerError> {
        let old = self.old(name)?;
        match meta.kind {
            Kind::Directory => self.directory(name, meta, old.as_ref()),
            Kind::File => self.file(name, meta, old.as_ref()),
            Kind::Symlink => self.symlink(name, meta, old.as_ref()),
            Kind::Character if meta.is_null_device() => self.whiteout(name, old.as_ref()),
            Kind::Fifo | Kind::Socket | Kind::Character | Kind::Block => {
                self.special(name, meta, old.as_ref())
            }
        }
    }

    /// What is under this name in the lower layers.
    fn old(&mut self, name: &[u8]) -> Result<Option<Below>, LayerError> {
        if self.frame().ties == Ties::None {
            return Ok(None);
        }
        match self.lower.lookup(name) {
            Ok(Some(below)) if below.meta.is_mount && below.meta.kind != Kind::Directory => {
                self.skip(LayerSkipReason::LowerMount);
                Ok(None)
            }
            Ok(below) => Ok(below),
            Err(errno) if is_unreadable(errno) => {
                self.skip(LayerSkipReason::LowerUnreadable);
                Ok(None)
            }
            Err(errno) => Err(self.failed_below(errno)),
        }
    }

    fn directory(&mut self, name: &[u8], meta: &Meta, old: Option<&Below>) -> Result<(), LayerError> {
        let (ties, new_since) = match old {
            None => (Ties::None, Some(self.findings.changes())),
            Some(old) if old.meta.kind == Kind::Directory => {
                self.compare_mode(meta, old);
                (self.frame().ties, None)
            }
            Some(old) => {
                self.replaced(name, meta, old)?;
                (Ties::None, None)
            }
        };
        if let Err(errno) = self.upper.enter(name) {
            if new_since.is_some() {
                self.change(ChangeKind::Added, Kind::Directory, 0);
            }
            return self.set_aside(errno);
        }
        if ties != Ties::None {
            let trouble = self.lower.enter(name).map_err(|errno| self.failed_below(errno))?;
            if let Some(why) = trouble {
                self.skip(why);
            }
        }
        self.begin(self.frame().place, ties, new_since)
    }

    fn file(&mut self, name: &[u8], meta: &Meta, old: Option<&Below>) -> Result<(), LayerError> {
        let file = match open_file(self.upper.fd(), name, meta) {
            Ok(file) => Some(file),
            Err(errno) => {
                self.set_aside(errno)?;
                None
            }
        };
        if let Some(file) = &file {
            let place = self.frame().place;
            let marks = marks(file.as_fd(), meta.kind, place).map_err(|errno| self.failed(errno))?;
            self.findings.foreign(&self.path, marks.foreign);
            if marks.whiteout && meta.size == 0 {
                return self.whiteout(name, old);
            }
        }
        let Some(old) = old else {
            self.change(ChangeKind::Added, meta.kind, 0);
            return Ok(());
        };
        if old.meta.kind != Kind::File {
            return self.replaced(name, meta, old);
        }
        let content = match file {
            Some(file) => {
                let lower = Site { dir: self.lower.holder(old), name, meta: &old.meta };
                self.comparer.files(&file, meta.size, lower).map_err(|errno| self.failed(errno))?
            }
            None if meta.size != old.meta.size => Content::Different,
            None => Content::Same,
        };
        self.compared(content, meta, old);
        Ok(())
    }

    fn symlink(&mut self, name: &[u8], meta: &Meta, old: Option<&Below>) -> Result<(), LayerError> {
        let Some(old) = old else {
            self.change(ChangeKind::Added, meta.kind, 0);
            return Ok(());
        };
        if old.meta.kind != Kind::Symlink {
            return self.replaced(name, meta, old);
        }
        let upper = Site { dir: self.upper.fd(), name, meta };
        let lower = Site { dir: self.lower.holder(old), name, meta: &old.meta };
        match links(upper, lower) {
            Ok(content) => self.compared(content, meta, old),
            Err(errno) => self.set_aside(errno)?,
        }
        Ok(())
    }

    /// Never opened. A new one is only named as skipped; one that took the place of something else is also
    /// a change, since that something is gone.
    fn special(&mut self, name: &[u8], meta: &Meta, old: Option<&Below>) -> Result<(), LayerError> {
        if let Some(old) = old {
            if old.meta.kind == meta.kind && specials(meta, &old.meta) == Content::Same {
                self.compare_mode(meta, old);
                return Ok(());
            }
            self.replaced(name, meta, old)?;
        }
        self.skip(match meta.kind {
            Kind::Fifo => LayerSkipReason::Fifo,
            Kind::Socket => LayerSkipReason::Socket,
            _ => LayerSkipReason::Device,
        });
        Ok(())
    }

    fn whiteout(&mut self, name: &[u8], old: Option<&Below>) -> Result<(), LayerError> {
        match old {
            Some(old) => self.removed(name, old.meta.kind),
            None => Ok(()),
        }
    }

    /// Names every entry of the lower directory that an opaque upper one does not have.
    fn hidden(&mut self, shown: &[Name]) -> Result<(), LayerError> {
        let entries = match self.lower.entries() {
            Err(errno) if is_unreadable(errno) => {
                self.skip(LayerSkipReason::LowerUnreadable);
                return Ok(());
            }
            result => result.map_err(|errno| self.failed_below(errno))?,
        };
        for (name, kind) in entries {
            if shown.binary_search_by(|shown| shown.bytes.as_slice().cmp(&name)).is_err() {
                self.path.push(&name).expect("a directory lists single names");
                self.removed(&name, kind)?;
                self.path.pop();
            }
        }
        Ok(())
    }

    fn removed(&mut self, name: &[u8], kind: Kind) -> Result<(), LayerError> {
        let below = self.count(name, kind)?;
        self.change(ChangeKind::Removed, kind, below);
        Ok(())
    }

    fn replaced(&mut self, name: &[u8], meta: &Meta, old: &Below) -> Result<(), LayerError> {
        let below = self.count(name, old.meta.kind)?;
        let kind = if meta.kind == old.meta.kind { ChangeKind::Modified } else { ChangeKind::TypeChanged };
        self.change(kind, meta.kind, below);
        Ok(())
    }

    fn compared(&mut self, content: Content, meta: &Meta, old: &Below) {
        match content {
            Content::Different => return self.change(ChangeKind::Modified, meta.kind, 0),
            Content::Same => {}
            Content::LowerUnreadable => self.skip(LayerSkipReason::LowerUnreadable),
            Content::LowerMoved => self.skip(LayerSkipReason::Moved),
        }
        self.compare_mode(meta, old);
    }

    fn compare_mode(&mut self, meta: &Meta, old: &Below) {
        if meta.mode != old.meta.mode {
            self.change(ChangeKind::ModeChanged, meta.kind, 0);
        }
    }

    fn count(&mut self, name: &[u8], kind: Kind) -> Result<u64, LayerError> {
        if kind != Kind::Directory {
            return Ok(0);
        }
        let Self { lower, path, findings, .. } = self;
        count_below(lower, name, path, &mut |why| findings.skip(path, why))
    }

    /// Sorts an error about one entry of the upper: named and passed over, or the end of the walk.
    fn set_aside(&mut self, errno: Errno) -> Result<(), LayerError> {
        match errno {
            errno if is_unreadable(errno) => self.skip(LayerSkipReason::Unreadable),
            Errno::NOENT | Errno::STALE | Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::NXIO => {
                self.skip(LayerSkipReason::Moved);
            }
            errno => return Err(self.failed(errno)),
        }
        Ok(())
    }

    fn change(&mut self, kind: ChangeKind, entry: Kind, below: u64) {
        self.findings.change(Change { path: self.path.clone(), kind, entry: entry.into(), below });
    }

    fn skip(&mut self, why: LayerSkipReason) {
        self.findings.skip(&self.path, why);
    }

    fn frame(&self) -> &Frame {
        self.frames.last().expect("an entry is judged inside a directory")
    }

    fn failed(&self, errno: Errno) -> LayerError {
        LayerError::Upper { path: self.path.clone(), source: errno.into() }
    }

    fn failed_below(&self, errno: Errno) -> LayerError {
        LayerError::Lower { path: self.path.clone(), source: errno.into() }
    }
}
