//! Packing: several threads, each with a stretch of the list and a window of its own.
//!
//! A stretch ends where a path does, so that a delta and its base are packed by the same thread, the base first.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::order::{Entry, NOWHERE};
use super::window::{About, SMALLEST, Window};
use super::{Part, Watch};
use crate::object::{Object, WriteError};
use crate::pack::{BaseCache, CopyError, Delta, PackWriter};
use crate::store::{Room, StoreError};
use crate::workers::help;

/// What is larger is taken over as it stands.
const LARGE: u64 = 32 << 20;
/// A stretch has at least so many objects, or so many bytes of them.
const OBJECTS: usize = 256;
const BYTES: u64 = 4 << 20;
/// What the windows of all threads take together.
const MEMORY: usize = 256 << 20;
/// More threads would have too small a window each.
const THREADS: usize = 8;

pub(super) struct Work<'a> {
    parts: &'a [Part],
    writer: &'a PackWriter,
    watch: Watch<'a>,
    room: Room,
    cache: BaseCache,
    next: AtomicUsize,
    objects: AtomicU64,
    bytes: AtomicU64,
    failed: Mutex<Option<StoreError>>,
}

impl<'a> Work<'a> {
    pub(super) fn new(parts: &'a [Part], writer: &'a PackWriter, room: Room, watch: Watch<'a>) -> Self {
        let (objects, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        let (cache, next, failed) = (BaseCache::default(), AtomicUsize::new(0), Mutex::new(None));
        Self { parts, writer, watch, room, cache, next, objects, bytes, failed }
    }

    /// Packs all of `entries`, which are in order.
    pub(super) fn all(self, entries: &[Entry]) -> Result<(), StoreError> {
        let stretches = stretches(entries);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        let threads = threads.min(stretches.len()).max(1);
        let go_on = || {
            while let Some(stretch) = stretches.get(self.next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = self.stretch(&entries[stretch.clone()], MEMORY / threads) {
                    // The others find nothing more to do.
                    self.next.store(stretches.len(), Ordering::Relaxed);
                    self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                help(scope, go_on);
            }
            go_on();
        });
        self.failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn stretch(&self, entries: &[Entry], memory: usize) -> Result<(), StoreError> {
        let mut window = Window::new(memory);
        for entry in entries {
            self.pack(entry, &mut window)?;
            let objects = self.objects.fetch_add(1, Ordering::Relaxed) + 1;
            let bytes = self.bytes.fetch_add(entry.size, Ordering::Relaxed) + entry.size;
            (self.watch)(objects, bytes);
        }
        self.has_room()
    }

    fn has_room(&self) -> Result<(), StoreError> {
        let Room { used, quota, free, kept } = self.room;
        let written = self.writer.bytes();
        if let Some(quota) = quota.filter(|quota| used.saturating_add(written) > *quota) {
            return Err(WriteError::Quota { have: used, quota }.into());
        }
        if written > free.saturating_sub(kept) {
            return Err(WriteError::NoSpace { free, kept }.into());
        }
        Ok(())
    }

    fn pack(&self, entry: &Entry, window: &mut Window) -> Result<(), StoreError> {
        let (part, place) = (entry.part(self.parts), entry.place(self.parts));
        if entry.size > LARGE {
            return Ok(self.writer.copy(&part.pack, place, &self.cache)?);
        }
        let object = part.pack.checked(place, &self.cache)?;
        let about = About { id: place.id, kind: entry.kind, path: entry.path, ending: entry.ending };
        if object.data.len() < SMALLEST {
            return self.whole(entry, &object);
        }
        let mut depth = 0;
        if let Some(found) = window.best(&about, &object.data) {
            let delta = Delta::new(&found.orders);
            if self.is_clearly_smaller(entry, &delta)? {
                self.writer.add_delta(&place.id, &found.base, &delta).map_err(CopyError::Write)?;
                window.was_used(&found);
                depth = found.depth;
            }
        }
        if depth == 0 {
            self.whole(entry, &object)?;
        }
        window.push(about, Arc::unwrap_or_clone(object).data, depth);
        Ok(())
    }

    fn whole(&self, entry: &Entry, object: &Object) -> Result<(), StoreError> {
        let (part, place) = (entry.part(self.parts), entry.place(self.parts));
        if part.compact && part.pack.is_whole(place)? {
            return Ok(self.writer.copy(&part.pack, place, &self.cache)?);
        }
        Ok(self.writer.add_small(&place.id, object.kind, &object.data).map_err(CopyError::Write)?)
    }

    /// Whether a delta takes less than half of what the whole object takes, barely compressed: better compression alone
    /// may save a third.
    fn is_clearly_smaller(&self, entry: &Entry, delta: &Delta) -> Result<bool, StoreError> {
        let (part, place) = (entry.part(self.parts), entry.place(self.parts));
        let now = place.end.saturating_sub(place.offset);
        Ok(delta.length() * 2 < now || !part.pack.is_whole(place)?)
    }
}

/// Stretches of entries; each ends with a path.
fn stretches(entries: &[Entry]) -> Vec<Range<usize>> {
    let mut stretches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, entry) in entries.iter().enumerate() {
        let is_enough = at - start >= OBJECTS || bytes >= BYTES;
        let is_end = at
            .checked_sub(1)
            .is_some_and(|before| entries[before].path != entry.path || entry.path == NOWHERE);
        if is_enough && is_end {
            stretches.push(start..at);
            (start, bytes) = (at, 0);
        }
        bytes += entry.size;
    }
    if start < entries.len() {
        stretches.push(start..entries.len());
    }
    stretches
}
