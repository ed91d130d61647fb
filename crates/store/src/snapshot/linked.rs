//! Files with several names.
//!
//! A state knows no hard links: each name stands for a file of its own. So one file of 32 MiB with thousands of names takes
//! 32 MiB on disk, and the time and the room of thousands of files wherever its state is looked at or written out. Its content
//! is read once, whatever it is called. Of a layer a state takes further names up to a sum of bytes, and a name that does
//! not fit any more is listed and left out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::file::Given;
use crate::dir::Meta;
use crate::id::ObjectId;
use crate::state::Attributes;

/// As many bytes the further names of all files stand for. [`super::SkipReason::Names`] names it to people.
const LIMIT: u64 = 1 << 30;
/// A smaller file is hardly more work than a name.
const SMALLEST: u64 = 4096;
/// As many files are remembered; if there are more, the larger ones.
const MOST: usize = 1 << 16;

/// The files with several names that were met.
#[derive(Debug)]
pub(crate) struct Linked(Mutex<Met>);

#[derive(Debug)]
struct Met {
    files: HashMap<((u32, u32), u64), File>,
    /// Files below this size are not remembered.
    smallest: u64,
    /// What is left of the sum.
    left: u64,
}

#[derive(Debug)]
struct File {
    size: u64,
    content: Option<Content>,
}

#[derive(Debug)]
struct Content {
    mtime_ns: i64,
    ctime_ns: i64,
    id: ObjectId,
    attributes: Attributes,
    attributes_cut: bool,
}

impl Default for Linked {
    fn default() -> Self {
        Self(Mutex::new(Met { files: HashMap::new(), smallest: SMALLEST, left: LIMIT }))
    }
}

impl Linked {
    /// Whether a name may stand for this file. The first one may, and a further one is counted.
    pub(crate) fn fits(&self, meta: &Meta) -> bool {
        let mut met = self.lock();
        if !met.is_of_interest(meta) {
            return true;
        }
        match met.files.entry(key(meta)) {
            Entry::Vacant(first) => {
                first.insert(File { size: meta.size, content: None });
                met.shrink();
                true
            }
            Entry::Occupied(_) => match met.left.checked_sub(meta.size) {
                Some(left) => {
                    met.left = left;
                    true
                }
                None => false,
            },
        }
    }

    /// What was read of this file under another name. Nothing if it has changed since: a change moves the change time or, within
    /// a tick of the clock, is one during the snapshot, which is noticed as for a file with one name.
    pub(super) fn read_before(&self, meta: &Meta) -> Option<Given> {
        let met = self.lock();
        let content = met.files.get(&key(meta)).filter(|file| file.size == meta.size)?.content.as_ref()?;
        ((content.mtime_ns, content.ctime_ns) == (meta.mtime_ns, meta.ctime_ns)).then(|| Given {
            id: content.id,
            attributes: content.attributes.clone(),
            meta: *meta,
            torn: false,
            attributes_cut: content.attributes_cut,
            read: 0,
        })
    }

    /// Remembers what was read of a file.
    pub(super) fn remember(&self, given: &Given) {
        let Given { id, attributes, meta, torn, attributes_cut, .. } = given;
        let mut met = self.lock();
        if *torn || !met.is_of_interest(meta) {
            return;
        }
        let content = Content {
            mtime_ns: meta.mtime_ns,
            ctime_ns: meta.ctime_ns,
            id: *id,
            attributes: attributes.clone(),
            attributes_cut: *attributes_cut,
        };
        met.files.insert(key(meta), File { size: meta.size, content: Some(content) });
        met.shrink();
    }

    fn lock(&self) -> MutexGuard<'_, Met> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Met {
    fn is_of_interest(&self, meta: &Meta) -> bool {
        meta.links > 1 && meta.size >= self.smallest
    }

    fn shrink(&mut self) {
        while self.files.len() > MOST {
            self.smallest = self.smallest.saturating_mul(2);
            let smallest = self.smallest;
            self.files.retain(|_, file| file.size >= smallest);
        }
    }
}

const fn key(meta: &Meta) -> ((u32, u32), u64) {
    (meta.dev, meta.ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::Kind;
    use crate::id::HashKind;

    fn meta(ino: u64, size: u64) -> Meta {
        Meta {
            kind: Kind::File,
            mode: 0o644,
            size,
            mtime_ns: 1,
            ctime_ns: 2,
            ino,
            links: 3,
            dev: (8, 1),
            rdev: (0, 0),
            uid: 0,
            gid: 0,
            is_mount: false,
        }
    }

    fn given(meta: Meta) -> Given {
        let id = ObjectId::from_bytes(&[7; 20]).unwrap();
        assert_eq!(id.kind(), HashKind::Sha1);
        Given {
            id,
            attributes: Attributes::default(),
            meta,
            torn: false,
            attributes_cut: false,
            read: meta.size,
        }
    }

    #[test]
    fn further_names_are_counted_and_first_ones_are_not() {
        let linked = Linked::default();
        for ino in 0..4 {
            assert!(linked.fits(&meta(ino, LIMIT)), "the first name of a file");
        }
        assert!(linked.fits(&meta(0, LIMIT / 2)) && linked.fits(&meta(0, LIMIT / 2)), "up to the sum");
        assert!(!linked.fits(&meta(1, SMALLEST)), "and no further");
        assert!(linked.fits(&meta(1, SMALLEST - 1)), "a small file costs nothing");
        assert!(linked.fits(&Meta { links: 1, ..meta(1, SMALLEST) }), "nor does one with one name");
    }

    #[test]
    fn only_what_still_looks_the_same_is_known() {
        let (linked, seen) = (Linked::default(), meta(1, SMALLEST));
        assert!(linked.read_before(&seen).is_none());
        linked.remember(&Given { torn: true, ..given(seen) });
        assert!(linked.read_before(&seen).is_none(), "it changed while it was read");
        linked.remember(&given(seen));
        assert_eq!(linked.read_before(&seen).unwrap().read, 0);
        let others = [
            Meta { ctime_ns: 3, ..seen },
            Meta { mtime_ns: 3, ..seen },
            Meta { size: 5000, ..seen },
            Meta { ino: 2, ..seen },
            Meta { dev: (8, 2), ..seen },
        ];
        for other in others {
            assert!(linked.read_before(&other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn of_very_many_files_the_larger_ones_are_remembered() {
        let linked = Linked::default();
        linked.remember(&given(meta(0, 1 << 20)));
        for ino in 1..=MOST as u64 {
            linked.remember(&given(meta(ino, SMALLEST)));
        }
        assert!(linked.read_before(&meta(0, 1 << 20)).is_some());
        assert!(linked.read_before(&meta(1, SMALLEST)).is_none());
        assert!(linked.lock().files.len() <= MOST);
    }
}
