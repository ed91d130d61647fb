//! What no state holds, taken along from the old layer into the new one.
//!
//! A new layer is written from states, and would lose whatever no state could hold: pipes, files that may not be read or
//! are too large, the git directory of a repository within. Each such entry stays where it is. The new layer gets a
//! further name for the same file, so that the old one is whole until the two are exchanged, and nobody sees
//! an entry in neither. Directories are made anew around them.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::fs::{fchmod, fchown, fsetxattr, futimens, linkat, mkdirat, unlinkat};
use rustix::io::{Errno, Result as Done};

use super::{LayerWriteError, mark};
use crate::checkout::write_error;
use crate::dir::{How, Kind, Meta, Mounts, Resolver, attribute_names, attribute_value};
use crate::dir::{names, open_below, open_by, open_dir, stat_at, stat_fd};
use crate::layer::attribute::{Hides, hides};
use crate::os::{REFERENCE, let_owner_in};
use crate::path::RelPath;
use crate::state::manifest::is_kept;

/// From which layer to which, and what lies below both.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    pub old: BorrowedFd<'a>,
    pub new: BorrowedFd<'a>,
    pub lower: Option<BorrowedFd<'a>>,
}

/// Takes `paths` along, each with all that is in it. If something of the new state stands where one of them is, all such
/// paths are in [`LayerWriteError::InTheWay`].
pub fn carry(layers: Layers<'_>, paths: &[RelPath]) -> Result<(), LayerWriteError> {
    let mut carrying = Carrying { layers, opened: Opened::default(), in_the_way: Vec::new() };
    for path in paths {
        carrying.one(path)?;
    }
    if carrying.in_the_way.is_empty() { Ok(()) } else { Err(LayerWriteError::InTheWay(carrying.in_the_way)) }
}

struct Carrying<'a> {
    layers: Layers<'a>,
    opened: Opened,
    in_the_way: Vec<RelPath>,
}

/// Directories of the old layer whose owner had to be let in; they are closed again at the end.
#[derive(Default)]
struct Opened(Vec<(OwnedFd, u16)>);

impl Drop for Opened {
    fn drop(&mut self) {
        for (directory, bits) in self.0.drain(..).rev() {
            // The layer is about to go; one that stays after an error is still its owner's.
            let _left_open = fchmod(&directory, Mode::from_raw_mode(bits.into()));
        }
    }
}

/// What became of one entry.
enum Taken {
    Done,
    /// A directory, whose entries are still to come.
    Enter,
    InTheWay,
}

impl Carrying<'_> {
    fn one(&mut self, path: &RelPath) -> Result<(), LayerWriteError> {
        let mut above = RelPath::root();
        let length = path.components().count();
        for name in path.components().take(length.saturating_sub(1)) {
            above.push(name).expect("a component of a path is a name");
            if !self.make_way(&above).map_err(at(&above))? {
                self.in_the_way.push(path.clone());
                return Ok(());
            }
        }
        let mut made = Vec::new();
        let mut pending = vec![path.clone()];
        while let Some(path) = pending.pop() {
            match self.take(&path).map_err(at(&path))? {
                Taken::Done => {}
                Taken::InTheWay => self.in_the_way.push(path),
                Taken::Enter => {
                    let old = open_below(self.layers.old, &path).map_err(at(&path))?;
                    let below = names(old.as_fd()).map_err(at(&path))?;
                    pending.extend(below.iter().map(|name| path.join(&name.bytes).expect("a single name")));
                    made.push(path);
                }
            }
        }
        // Those below before those above: each is modified by what is put into it.
        for path in made.iter().rev() {
            self.dress_like_old(path).map_err(at(path))?;
        }
        Ok(())
    }

    /// Sees to it that the new layer has a directory there.
    fn make_way(&self, path: &RelPath) -> Done<bool> {
        let (parent, name) = place(self.layers.new, path)?;
        let hidden = match stat_at(parent.as_fd(), name) {
            Ok(meta) if meta.kind == Kind::Directory => return Ok(true),
            Ok(meta) if meta.is_null_device() => true,
            Ok(_) => return Ok(false),
            Err(Errno::NOENT) => false,
            Err(errno) => return Err(errno),
        };
        if hidden {
            unlinkat(&parent, name, AtFlags::empty())?;
        }
        mkdirat(&parent, name, Mode::RWXU)?;
        let new = open_dir(parent.as_fd(), name)?;
        // One that merges is what the tree below says, unless the layer says otherwise.
        let lower = self.layers.lower.filter(|_| !hidden).and_then(|lower| open_below(lower, path).ok());
        let model = match lower {
            Some(lower) => lower,
            None => open_below(self.layers.old, path)?,
        };
        if hidden {
            mark::opaque(new.as_fd())?;
        }
        dress(new.as_fd(), model.as_fd(), stat_fd(model.as_fd())?.mode)?;
        Ok(true)
    }

    fn take(&mut self, path: &RelPath) -> Done<Taken> {
        let (from, name) = match place(self.layers.old, path) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Taken::Done),
            found => found?,
        };
        let (to, _) = place(self.layers.new, path)?;
        let meta = match stat_at(from.as_fd(), name) {
            Err(Errno::NOENT) => return Ok(Taken::Done),
            found => found?,
        };
        let there = match stat_at(to.as_fd(), name) {
            Err(Errno::NOENT) => None,
            found => Some(found?),
        };
        let hidden = there.as_ref().is_some_and(Meta::is_null_device);
        match (&there, meta.kind) {
            (Some(one), _) if one.ino == meta.ino && one.dev == meta.dev => return Ok(Taken::Done),
            (Some(one), Kind::Directory) if one.kind == Kind::Directory => {}
            (Some(_), _) if hidden && meta.is_null_device() => return Ok(Taken::Done),
            (Some(_), _) if !hidden => return Ok(Taken::InTheWay),
            _ => {}
        }
        if hidden {
            unlinkat(&to, name, AtFlags::empty())?;
        }
        if meta.is_null_device() {
            // The mark may be a container engine's, of which an ordinary user may make no further name.
            mark::whiteout(to.as_fd(), name)?;
            return Ok(Taken::Done);
        }
        if meta.kind != Kind::Directory {
            linkat(&from, name, &to, name, AtFlags::empty())?;
            return Ok(Taken::Done);
        }
        self.let_in(from.as_fd(), name, &meta)?;
        if there.is_none() || hidden {
            mkdirat(&to, name, Mode::RWXU)?;
        }
        if hidden {
            mark::opaque(open_dir(to.as_fd(), name)?.as_fd())?;
        }
        Ok(Taken::Enter)
    }

    /// Lets the owner into a directory of the old layer that may not be read.
    fn let_in(&mut self, parent: BorrowedFd<'_>, name: &[u8], meta: &Meta) -> Done<()> {
        if meta.mode & 0o700 == 0o700 {
            return Ok(());
        }
        let how = How { flags: REFERENCE | OFlags::DIRECTORY, mounts: Mounts::Refuse };
        let_owner_in(&open_by(Resolver::here(), parent, name, how)?)?;
        self.opened.0.push((open_dir(parent, name)?, meta.mode));
        Ok(())
    }

    fn dress_like_old(&self, path: &RelPath) -> Done<()> {
        let (new, old) = (open_below(self.layers.new, path)?, open_below(self.layers.old, path)?);
        let meta = stat_fd(old.as_fd())?;
        let was = |(directory, _): &&(OwnedFd, u16)| {
            stat_fd(directory.as_fd()).is_ok_and(|one| one.ino == meta.ino)
        };
        let bits = self.opened.0.iter().find(was).map_or(meta.mode, |(_, bits)| *bits);
        if hides(old.as_fd())? == Hides::Everything {
            mark::opaque(new.as_fd())?;
        }
        dress(new.as_fd(), old.as_fd(), bits)
    }
}

fn place<'p>(root: BorrowedFd<'_>, path: &'p RelPath) -> Done<(OwnedFd, &'p [u8])> {
    let name = path.name().ok_or(Errno::INVAL)?;
    Ok((open_below(root, &path.parent().unwrap_or_default())?, name))
}

/// Gives a directory owner, attributes, mode and times of another.
fn dress(directory: BorrowedFd<'_>, model: BorrowedFd<'_>, bits: u16) -> Done<()> {
    let meta = stat_fd(model)?;
    match fchown(directory, Some(Uid::from_raw(meta.uid)), Some(Gid::from_raw(meta.gid))) {
        Err(Errno::PERM | Errno::INVAL) => {}
        done => done?,
    }
    for name in attribute_names(model)?.into_iter().filter(|name| is_kept(name)) {
        if let Some(value) = attribute_value(model, &name)? {
            fsetxattr(directory, name.as_slice(), &value, XattrFlags::empty())?;
        }
    }
    fchmod(directory, Mode::from_raw_mode(bits.into()))?;
    let modified = Timespec {
        tv_sec: meta.mtime_ns.div_euclid(1_000_000_000),
        tv_nsec: meta.mtime_ns.rem_euclid(1_000_000_000),
    };
    futimens(directory, &Timestamps { last_access: modified, last_modification: modified })
}

fn at(path: &RelPath) -> impl Fn(Errno) -> LayerWriteError {
    move |errno| write_error(path, errno).into()
}
