//! Directories that a walk for another purpose has just looked at, so that a scan need not look again.
//!
//! A state of a source is recorded by a walk that asks the kernel the same questions as a [scan](super::scan()). What it
//! has seen of a directory is as good as what a scan would see, provided that it began after the moment from which the scan
//! speaks. So nothing is taken down before [`Sightings::begin`] was called, and a directory of which the walk missed
//! anything is left to the scan.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::listing::Settled;
use crate::dir::Meta;
use crate::path::RelPath;

/// What was seen, by directory.
#[derive(Debug, Default)]
pub struct Sightings {
    begun: AtomicBool,
    seen: Mutex<HashMap<RelPath, Sighting>>,
}

/// One directory, seen whole.
#[derive(Debug, Default)]
pub(crate) struct Sighting {
    /// One after the other.
    names: Vec<u8>,
    /// Sorted by name, each with the length of that.
    entries: Vec<(usize, Meta)>,
    pub(super) settled: Settled,
}

impl Sightings {
    /// From here on what is seen counts.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Release);
    }

    /// How many directories were seen.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// To be filled, if it counts. To be asked for before the directory is looked at.
    pub(crate) fn start(&self) -> Option<Sighting> {
        self.begun.load(Ordering::Acquire).then(Sighting::default)
    }

    pub(crate) fn add(&self, path: RelPath, sighting: Sighting) {
        self.lock().insert(path, sighting);
    }

    pub(super) fn take(&self, path: &RelPath) -> Option<Sighting> {
        self.lock().remove(path)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RelPath, Sighting>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sighting {
    pub(crate) fn entry(&mut self, name: &[u8], meta: &Meta) {
        self.names.extend_from_slice(name);
        self.entries.push((name.len(), *meta));
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&[u8], &Meta)> {
        let mut rest = self.names.as_slice();
        self.entries.iter().map(move |(length, meta)| {
            let (name, after) = rest.split_at(*length);
            rest = after;
            (name, meta)
        })
    }

    /// Makes room for as many entries.
    pub(crate) fn expect(&mut self, count: usize) {
        self.entries.reserve_exact(count);
    }

    /// `before` and `after` are the directory itself, looked at around its entries.
    pub(crate) fn framed(self, before: &Meta, after: &Meta) -> Self {
        let settled = if before.ctime_ns == after.ctime_ns { Settled::Yes } else { Settled::No };
        Self { settled, ..self }
    }
}
