//! Collects what is found besides the state, within limits.

use super::outcome::{Changed, Counts};
use super::{SkipReason, Skipped};
use crate::path::RelPath;

/// How many paths a list holds.
const PATHS: usize = 100_000;
/// How many bytes they have together: a deep tree has long ones.
const PATH_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) counts: Counts,
    skipped: Vec<Skipped>,
    changed: Changed,
    room: usize,
    bytes: usize,
}

impl Default for Findings {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            skipped: Vec::new(),
            changed: Changed::default(),
            room: PATHS,
            bytes: PATH_BYTES,
        }
    }
}

impl Findings {
    pub(crate) fn skip(&mut self, path: RelPath, why: SkipReason) {
        self.counts.skipped += 1;
        if why == SkipReason::Moved {
            self.changed.count += 1;
        }
        if self.has_room(&path) {
            self.skipped.push(Skipped { path, why });
        }
    }

    pub(crate) fn changed(&mut self, path: RelPath) {
        self.changed.count += 1;
        if self.has_room(&path) {
            self.changed.paths.push(path);
        }
    }

    /// Takes over what was found elsewhere.
    pub(crate) fn add(&mut self, other: Self) {
        let Counts { entries, files_read, bytes_read, files_known, ignored, skipped, newest_ns } =
            other.counts;
        self.counts.entries += entries;
        self.counts.files_read += files_read;
        self.counts.bytes_read += bytes_read;
        self.counts.files_known += files_known;
        self.counts.ignored += ignored;
        self.counts.skipped += skipped;
        self.counts.newest_ns = self.counts.newest_ns.max(newest_ns);
        self.changed.count += other.changed.count;
        for skipped in other.skipped {
            if self.has_room(&skipped.path) {
                self.skipped.push(skipped);
            }
        }
        for path in other.changed.paths {
            if self.has_room(&path) {
                self.changed.paths.push(path);
            }
        }
    }

    pub(crate) fn into_lists(mut self) -> (Counts, Vec<Skipped>, Changed) {
        self.skipped.sort_unstable();
        self.changed.paths.sort_unstable();
        (self.counts, self.skipped, self.changed)
    }

    fn has_room(&mut self, path: &RelPath) -> bool {
        let room = self.room.checked_sub(1);
        let bytes = self.bytes.checked_sub(path.as_bytes().len());
        let (Some(room), Some(bytes)) = (room, bytes) else { return false };
        (self.room, self.bytes) = (room, bytes);
        true
    }
}
