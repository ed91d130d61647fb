//! How much may still be written: the quota of the store, and what is left free on its disk.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Store, StoreError};
use crate::object::WriteError;

/// The setting that limits the bytes of a store.
const QUOTA: &str = "quota";
/// The setting that says how many bytes of the disk are left free.
const KEPT: &str = "keep-free";
/// The disk is asked again after so many bytes.
const STEP: u64 = 16 << 20;

/// What a store uses and may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of all packs and indexes.
    pub used: u64,
    pub quota: Option<u64>,
    /// Bytes that are free on its disk, and how many of them are not taken.
    pub free: u64,
    pub kept: u64,
}

impl Room {
    /// How many bytes may be written.
    pub fn left(&self) -> u64 {
        let disk = self.free.saturating_sub(self.kept);
        self.quota.map_or(disk, |quota| disk.min(quota.saturating_sub(self.used)))
    }
}

impl Store {
    /// What the store uses and may use, to be asked before much is written.
    pub fn room(&self) -> Result<Room, StoreError> {
        let mut used = 0;
        for entry in fs_err::read_dir(self.pack_dir())? {
            used += entry?.metadata().map_or(0, |metadata| metadata.len());
        }
        let number = |key| -> Result<Option<u64>, StoreError> {
            Ok(self.meta.setting(key)?.and_then(|value| value.parse().ok()))
        };
        let (free, size) = disk(self)?;
        // A hundredth is left to others, within reason.
        let kept = number(KEPT)?.unwrap_or((size / 100).clamp(16 << 20, 2 << 30));
        Ok(Room { used, quota: number(QUOTA)?, free, kept })
    }

    /// What all of the store takes on disk, the database and the caches too.
    pub fn on_disk(&self) -> u64 {
        crate::size::measure(&self.dir, usize::MAX).bytes
    }

    /// Limits the bytes of all packs; `None` for no limit.
    pub fn set_quota(&self, bytes: Option<u64>) -> Result<(), StoreError> {
        Ok(self.meta.set_setting(QUOTA, bytes.map(|bytes| bytes.to_string()).as_deref())?)
    }

    /// How much of the disk is left free; `None` for what is usual.
    pub fn set_kept_free(&self, bytes: Option<u64>) -> Result<(), StoreError> {
        Ok(self.meta.set_setting(KEPT, bytes.map(|bytes| bytes.to_string()).as_deref())?)
    }
}

/// Watches over what one batch writes.
#[derive(Debug)]
pub(super) struct Budget {
    room: Room,
    /// How much had been written when the disk was asked last.
    asked: AtomicU64,
}

impl Budget {
    pub(super) fn new(room: Room) -> Self {
        Self { room, asked: AtomicU64::new(0) }
    }

    /// Whether `more` bytes may follow those that were written.
    pub(super) fn check(&self, store: &Store, written: u64, more: u64) -> Result<(), WriteError> {
        let Room { used, quota, free, kept } = self.room;
        if let Some(quota) = quota.filter(|quota| used.saturating_add(written).saturating_add(more) > *quota)
        {
            return Err(WriteError::Quota { have: used + written, quota });
        }
        if written.saturating_add(more) > free.saturating_sub(kept) {
            return Err(WriteError::NoSpace { free: free.saturating_sub(written), kept });
        }
        let asked = self.asked.load(Ordering::Relaxed);
        if written >= asked + STEP || more >= STEP {
            self.asked.store(written, Ordering::Relaxed);
            let (free, _) = disk(store).map_err(WriteError::Io)?;
            if free.saturating_sub(kept) < more {
                return Err(WriteError::NoSpace { free, kept });
            }
        }
        Ok(())
    }
}

/// Free bytes and size of the disk.
fn disk(store: &Store) -> std::io::Result<(u64, u64)> {
    let found = rustix::fs::statvfs(&store.dir)?;
    Ok((found.f_bavail.saturating_mul(found.f_frsize), found.f_blocks.saturating_mul(found.f_frsize)))
}
