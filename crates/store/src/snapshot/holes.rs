//! What is not there costs time too.
//!
//! A hole takes no room on disk, but its zeros are hashed like any other bytes: a sandbox makes hundreds of files of
//! gigabytes in a second. So a state takes holes up to a sum, and a file that does not fit any more is named and left out.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{SeekFrom, fstat, seek};

/// As many bytes of holes are in one state: about a second of hashing. [`super::SkipReason::Holes`] names it to people.
const LIMIT: u64 = 256 << 20;
/// Smaller files are not asked for holes.
const SMALLEST: u64 = 1 << 20;
/// After so many stretches of data the rest of a file counts as data: then it is not made of holes.
const STRETCHES: usize = 4096;

/// What is left of the sum.
#[derive(Debug)]
pub(crate) struct Holes(AtomicU64);

impl Default for Holes {
    fn default() -> Self {
        Self(AtomicU64::new(LIMIT))
    }
}

impl Holes {
    /// Whether the holes of a file fit; then they are counted.
    pub(crate) fn fit(&self, file: BorrowedFd<'_>, size: u64) -> bool {
        let holes = if size < SMALLEST { 0 } else { holes(file, size) };
        let less = |left: u64| left.checked_sub(holes);
        self.0.try_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// The bytes of a file that are in no stretch of data. A file system that packs its data knows fewer blocks than bytes, so
/// it is asked where they are.
fn holes(file: BorrowedFd<'_>, size: u64) -> u64 {
    let blocks = fstat(file).map_or(0, |found| found.st_blocks.cast_unsigned());
    if blocks.saturating_mul(512) >= size {
        return 0;
    }
    let (mut holes, mut at) = (0, 0);
    for _ in 0..STRETCHES {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.min(size),
            Err(rustix::io::Errno::NXIO) => size,
            // It knows of no holes.
            Err(_) => return holes,
        };
        holes += data.saturating_sub(at);
        at = seek(file, SeekFrom::Hole(data)).unwrap_or(size);
        if at >= size || data >= size {
            break;
        }
    }
    holes
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn holes_are_counted_and_data_is_not() {
        let file = tempfile::tempfile().unwrap();
        let fits = |holes: &Holes, size: u64| {
            file.set_len(size).unwrap();
            holes.fit(file.as_fd(), size)
        };
        let holes = Holes::default();
        assert!(fits(&holes, LIMIT / 2) && fits(&holes, LIMIT / 2), "up to the sum");
        assert!(!fits(&holes, SMALLEST), "and no further");
        assert!(fits(&holes, SMALLEST - 1), "a small file costs nothing");
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![1; 4 << 20], 0).unwrap();
        assert!(fits(&holes, 4 << 20), "data costs nothing here");
        assert!(!fits(&Holes::default(), 1 << 40));
    }
}
