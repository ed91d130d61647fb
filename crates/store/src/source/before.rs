//! What a source was before somebody went on working in it, as far as that can be proven.
//!
//! A state is recorded beside a command, and takes a while. What the user changes meanwhile would be recorded as it has
//! become. So git's index is read first, which is quick, and the looks of everything are taken meanwhile. A file that looked
//! then as the index says, and was older than the command, had the content that git has for it; what was not there then came later. Of
//! everything else that moved nothing is known, and it is recorded as it is found.

use std::collections::BTreeMap;
use std::path::Path;

use super::index::Index;
use super::repository::Repository;
use super::{Listing, Stamp};
use crate::dir::{Kind, Meta};
use crate::id::{HashKind, ObjectId};
use crate::object::SizeOf;
use crate::path::RelPath;
use crate::state::{Attributes, Node, Own, What};

/// Two ticks of the slowest clock that files are stamped with.
const TICKS_NS: i64 = 20_000_000;

/// The index of a source.
#[derive(Debug)]
pub struct Before {
    index: Index,
    moment: Stamp,
}

/// The looks of a source, and its index.
struct Known<'a> {
    before: &'a Before,
    listing: &'a Listing,
    after: &'a Listing,
}

impl Before {
    /// Reads the index now. `moment` is when the command began; `None` where nothing can be proven.
    pub fn look(root: &Path, moment: Stamp, hash: HashKind) -> Option<Self> {
        let repository = Repository::find(root).ok()??;
        let index = repository.index(hash).ok()??.ok()?;
        // With attributes a file may be another than its blob.
        let plain = repository.attributes().is_ok_and(|text| text.is_empty())
            && index.entries().all(|entry| !entry.path.ends_with(b".gitattributes"));
        plain.then_some(Self { index, moment })
    }

    /// The index that was read.
    pub const fn index(&self) -> &Index {
        &self.index
    }

    /// Whether something that changed at this time may have changed since.
    pub fn is_since(&self, ctime_ns: i64) -> bool {
        ctime_ns >= self.moment.as_nanoseconds() - TICKS_NS
    }

    /// What must be different in a state that was recorded between two listings: a path that was another file, or was
    /// not there (`None`). The first listing was begun after the moment. The blobs are in the user's repository, which
    /// `sizes` asks.
    pub fn corrections(
        &self,
        (listing, after): (&Listing, &Listing),
        sizes: &dyn SizeOf,
    ) -> BTreeMap<RelPath, Option<Node>> {
        let mut found = BTreeMap::new();
        for (path, _) in after.entries().filter(|(path, _)| listing.get(path).is_none()) {
            // Where what it lies in is new as well, that goes as a whole.
            if path.parent().is_none_or(|above| above.is_root() || listing.get(&above).is_some()) {
                found.insert(path, None);
            }
        }
        let known = Known { before: self, listing, after };
        for entry in self.index.entries() {
            let Ok(path) = RelPath::new(entry.path) else { continue };
            if let Some(node) = known.proven(&path, sizes) {
                found.insert(path, Some(node));
            }
        }
        found
    }
}

impl Known<'_> {
    /// The file at a path that has moved, if git has what it was.
    fn proven(&self, path: &RelPath, sizes: &dyn SizeOf) -> Option<Node> {
        let then = self.listing.get(path)?;
        let now = self.after.get(path);
        let same = now.is_some_and(|now| (now.ino, now.ctime_ns) == (then.ino, then.ctime_ns));
        if same || then.kind != Kind::File || self.before.is_since(then.ctime_ns) {
            return None;
        }
        let meta = Meta {
            kind: then.kind,
            mode: then.mode,
            size: then.size,
            mtime_ns: then.mtime_ns,
            ctime_ns: then.ctime_ns,
            ino: then.ino,
            links: 1,
            dev: (0, 0),
            rdev: (0, 0),
            uid: then.uid,
            gid: then.gid,
            is_mount: false,
        };
        let id: ObjectId = self.before.index.id_of(path.as_bytes(), &meta)?;
        let own = Own { bits: then.mode, attributes: Attributes::default(), mtime_ns: Some(then.mtime_ns) };
        (sizes.size_of(&id) == Some(then.size)).then_some(Node { what: What::File(id), own })
    }
}
