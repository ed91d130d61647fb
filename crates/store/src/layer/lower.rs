//! What the overlay saw below its upper directory: one or more layers, merged.
//!
//! The rules are the kernel's. A name is looked up from the topmost layer down; the first layer that has it
//! decides, a whiteout says it does not exist. Directories merge with those of the layers below until one
//! of them is something else, is hidden by a whiteout, or is opaque. A layer that does not have a directory
//! has nothing below it either, which is what makes the walk simple: each layer is a [`Descent`] of its
//! own, and takes part exactly while it is as deep as the walk.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::io::{Errno, Result};

use super::attribute::{Hides, hides, is_marked_whiteout};
use super::outcome::LayerSkipReason;
use super::{LayerError, is_unreadable};
use crate::dir::{Descent, Kind, Meta, Moved, names, open_file, reopen, stat_at};
use crate::path::RelPath;

/// Handles kept open over all layers and levels.
const HANDLES: usize = 96;

/// The layers below an upper directory, topmost first.
#[derive(Debug)]
pub struct Lower(Vec<OwnedFd>);

impl Lower {
    pub fn new(layers: Vec<OwnedFd>) -> Self {
        Self(layers)
    }

    /// How many handles each of the walks, one per layer and one for the upper, may keep.
    pub(super) fn handles_each(&self) -> usize {
        (HANDLES / (self.0.len() + 1)).max(2)
    }
}

/// A position in the merged lower layers.
#[derive(Debug)]
pub(super) struct View {
    layers: Vec<Layer>,
    depth: usize,
}

#[derive(Debug)]
struct Layer {
    at: Descent,
    /// One for the top and one for each level entered.
    hides: Vec<Hides>,
}

/// An entry of the merged view.
#[derive(Debug)]
pub(super) struct Below {
    layer: usize,
    pub(super) meta: Meta,
}

impl View {
    pub(super) fn new(lower: &Lower) -> Result<Self> {
        let open = |fd: &OwnedFd| {
            let at = Descent::new(fd.as_fd(), lower.handles_each())?;
            let hides = vec![hides(at.fd())?];
            Ok(Layer { at, hides })
        };
        Ok(Self { layers: lower.0.iter().map(open).collect::<Result<_>>()?, depth: 0 })
    }

    /// The entry that is seen under this name in the current directory.
    pub(super) fn lookup(&self, name: &[u8]) -> Result<Option<Below>> {
        for (index, layer) in self.present() {
            match stat_at(layer.at.fd(), name) {
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
                Ok(meta) if layer.is_whiteout(name, &meta)? => return Ok(None),
                Ok(meta) => return Ok(Some(Below { layer: index, meta })),
            }
        }
        Ok(None)
    }

    /// The directory handle that holds an entry found by [`View::lookup`] in the current directory.
    pub(super) fn holder(&self, below: &Below) -> BorrowedFd<'_> {
        self.layers[below.layer].at.fd()
    }

    /// Goes down, with every layer that merges there. What could not be entered is left out and named.
    pub(super) fn enter(&mut self, name: &[u8]) -> Result<Option<LayerSkipReason>> {
        let mut trouble = None;
        let depth = self.depth;
        self.depth += 1;
        for layer in self.layers.iter_mut().filter(|layer| layer.at.depth() == depth) {
            match layer.enter(name) {
                Ok(Entered::Merges) => {}
                Ok(Entered::Ends) => break,
                Ok(Entered::Mount) => trouble = Some(LayerSkipReason::LowerMount),
                Err(errno) if is_unreadable(errno) => trouble = Some(LayerSkipReason::LowerUnreadable),
                Err(errno) => return Err(errno),
            }
        }
        Ok(trouble)
    }

    pub(super) fn leave(&mut self) -> std::result::Result<(), Moved> {
        for layer in self.layers.iter_mut().filter(|layer| layer.at.depth() == self.depth) {
            layer.at.leave()?;
            layer.hides.pop();
        }
        self.depth -= 1;
        Ok(())
    }

    /// The names of the current directory, sorted, each with its kind.
    pub(super) fn entries(&self) -> Result<Vec<(Vec<u8>, Kind)>> {
        let mut merged: BTreeMap<Vec<u8>, Option<Kind>> = BTreeMap::new();
        for (_, layer) in self.present() {
            for name in names(reopen(layer.at.fd())?.as_fd())? {
                if merged.contains_key(&name.bytes) {
                    continue;
                }
                let kind = layer.visible_kind(&name.bytes, name.kind)?;
                merged.insert(name.bytes, kind);
            }
        }
        Ok(merged.into_iter().filter_map(|(name, kind)| Some((name, kind?))).collect())
    }

    fn present(&self) -> impl Iterator<Item = (usize, &Layer)> {
        self.layers.iter().enumerate().filter(|(_, layer)| layer.at.depth() == self.depth)
    }
}

enum Entered {
    /// The layers below are looked at too.
    Merges,
    /// The layers below are hidden.
    Ends,
    Mount,
}

impl Layer {
    fn enter(&mut self, name: &[u8]) -> Result<Entered> {
        let meta = match stat_at(self.at.fd(), name) {
            Err(Errno::NOENT) => return Ok(Entered::Merges),
            result => result?,
        };
        if meta.kind != Kind::Directory {
            return Ok(Entered::Ends);
        }
        if meta.is_mount {
            return Ok(Entered::Mount);
        }
        self.at.enter(name)?;
        // A directory that could be opened for reading also gives its attributes.
        let hides = hides(self.at.fd()).unwrap_or_default();
        self.hides.push(hides);
        Ok(if hides == Hides::Everything { Entered::Ends } else { Entered::Merges })
    }

    fn is_whiteout(&self, name: &[u8], meta: &Meta) -> Result<bool> {
        if meta.is_null_device() {
            return Ok(true);
        }
        let may_be =
            self.hides.last() == Some(&Hides::SomeNames) && meta.kind == Kind::File && meta.size == 0;
        if !may_be {
            return Ok(false);
        }
        match open_file(self.at.fd(), name, meta) {
            Ok(file) => is_marked_whiteout(file.as_fd()),
            Err(errno) if is_unreadable(errno) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// `None` for a whiteout. Only what could be one is looked at.
    fn visible_kind(&self, name: &[u8], kind: Option<Kind>) -> Result<Option<Kind>> {
        let certain = match kind {
            Some(Kind::File) => self.hides.last() != Some(&Hides::SomeNames),
            Some(Kind::Character) | None => false,
            Some(_) => true,
        };
        if certain {
            return Ok(kind);
        }
        let meta = match stat_at(self.at.fd(), name) {
            Err(Errno::NOENT) => return Ok(None),
            result => result?,
        };
        Ok((!self.is_whiteout(name, &meta)?).then_some(meta.kind))
    }
}

/// Counts what is not a directory below `name`; directories that cannot be read are reported to `skip`.
pub(super) fn count_below(
    view: &mut View,
    name: &[u8],
    path: &RelPath,
    skip: &mut impl FnMut(LayerSkipReason),
) -> std::result::Result<u64, LayerError> {
    let failed = |errno: Errno| LayerError::Lower { path: path.clone(), source: errno.into() };
    let mut count = 0;
    let mut pending: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut next = Some(name.to_vec());
    loop {
        if let Some(name) = next {
            view.enter(&name).map_err(failed)?.map(&mut *skip);
            let entries = match view.entries() {
                Err(errno) if is_unreadable(errno) => {
                    skip(LayerSkipReason::LowerUnreadable);
                    Vec::new()
                }
                result => result.map_err(failed)?,
            };
            let (directories, others): (Vec<_>, Vec<_>) =
                entries.into_iter().partition(|(_, kind)| *kind == Kind::Directory);
            count += others.len() as u64;
            pending.push(directories.into_iter().map(|(name, _)| name).collect());
        } else {
            view.leave()?;
            pending.pop();
        }
        let Some(siblings) = pending.last_mut() else { return Ok(count) };
        next = siblings.pop();
    }
}
