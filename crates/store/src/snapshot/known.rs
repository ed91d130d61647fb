//! What is known of a file before it is read: from the stat cache of the last time, or from git's index.

use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::io::Errno;

use super::file::{Nothing, attributes, judge};
use super::{Ignored, SnapshotOptions, Store};
use crate::dir::{Kind, Meta, Mounts, open_unseen, still};
use crate::id::ObjectId;
use crate::ignore::{EntryKind, FILE, Rules, Verdict};
use crate::source::attributes::{Conversion, Conversions};
use crate::source::cursor::Cursor;
use crate::statcache::{Cached, InStore};
use crate::state::Attributes;

/// What a file is known to hold.
#[derive(Clone)]
pub(super) struct KnownFile {
    pub(super) id: ObjectId,
    pub(super) attributes: Attributes,
    pub(super) in_store: InStore,
}

/// A name and what was seen there.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) name: &'a [u8],
    pub(super) meta: &'a Meta,
}

/// The directory that entries are in.
pub(super) struct Inside<'a> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) rules: &'a Rules,
    pub(super) conversions: &'a Conversions,
    pub(super) ignored: bool,
}

/// Who can say what is in the files of one directory. Paths are those from the root.
pub(super) struct Knowing<'a> {
    store: Store<'a>,
    options: &'a SnapshotOptions<'a>,
    /// Where git's index was asked last: a directory lists its names in the order that the index has them in.
    cursor: Option<Cursor<'a>>,
    /// What only the user's repository has.
    pub(super) borrowed: Vec<ObjectId>,
}

impl<'a> Knowing<'a> {
    pub(super) fn new(store: Store<'a>, options: &'a SnapshotOptions<'a>) -> Self {
        let cursor = options.index.map(|known| Cursor::new(known.index));
        Self { store, options, cursor, borrowed: Vec::new() }
    }

    /// What the stat cache or git's index vouch for.
    pub(super) fn known(
        &mut self,
        inside: &Inside<'_>,
        (path, Found { name, meta }): (&[u8], Found<'_>),
        cached: Option<Cached>,
    ) -> Result<Option<KnownFile>, Nothing> {
        if let Some(cached) = cached.filter(|cached| cached.is_clean(meta))
            && let Some((id, attributes)) = cached.content
        {
            let is_vouched = self.options.cache.is_some_and(|cache| cache.vouches(cached.in_store));
            if is_vouched || self.store.objects.contains(&id) {
                let in_store = if is_vouched { InStore::Yes } else { self.in_store(&id) };
                return Ok(Some(KnownFile { id, attributes, in_store }));
            }
        }
        let Some((known, cursor)) = self.options.index.zip(self.cursor.as_mut()) else { return Ok(None) };
        let Some(id) = cursor.id_of(path, meta) else { return Ok(None) };
        let is_same = match inside.conversions.of(path) {
            Conversion::None => true,
            Conversion::LineEnds => {
                known.objects.and_then(|objects| objects.packed_size_of(&id)) == Some(meta.size)
            }
            Conversion::Anything => false,
        };
        if !is_same {
            return Ok(None);
        }
        let file = match open_unseen(inside.dir, name, Mounts::Refuse) {
            Ok(file) => file,
            // Git could read it once; what it holds is known.
            Err(Errno::ACCESS | Errno::PERM) => return Ok(Some(self.borrow(id, Attributes::default()))),
            Err(_) => return Ok(None),
        };
        let (attributes, is_cut) = attributes(file.as_fd()).map_err(judge)?;
        // Hardly a file has any. That there are none needs no second look: of one that was exchanged since, the directory
        // says that it changed meanwhile, and the next state has what it has.
        if is_cut || !attributes.is_empty() && still(file.as_fd(), meta).is_err() {
            return Ok(None);
        }
        Ok(Some(self.borrow(id, attributes)))
    }

    /// What is in the store already, or on its way there, is left out when the rest is brought in.
    fn borrow(&mut self, id: ObjectId, attributes: Attributes) -> KnownFile {
        let in_store = self.in_store(&id);
        if in_store == InStore::Perhaps {
            self.borrowed.push(id);
        }
        KnownFile { id, attributes, in_store }
    }

    fn in_store(&self, id: &ObjectId) -> InStore {
        if self.store.objects.keeps(id) { InStore::Yes } else { InStore::Perhaps }
    }

    pub(super) fn is_ignored(&mut self, inside: &Inside<'_>, path: &[u8], meta: &Meta) -> bool {
        if self.options.ignored == Ignored::All {
            return false;
        }
        let is_directory = meta.kind == Kind::Directory;
        // Git keeps what it knows, whatever the rules say, and to ask it is quicker than to ask them.
        if !is_directory && self.cursor.as_mut().is_some_and(|cursor| cursor.find(path).is_some()) {
            return false;
        }
        // A list of rules that is obeyed belongs to the state, even where it ignores itself: it says what the state is
        // silent about.
        if !inside.ignored
            && meta.kind == Kind::File
            && path.rsplit(|byte| *byte == b'/').next() == Some(FILE)
        {
            return false;
        }
        let kind = if is_directory { EntryKind::Directory } else { EntryKind::Other };
        inside.ignored || inside.rules.verdict(path, kind) == Verdict::Ignored
    }

    pub(super) fn tracks_below(&self, path: &[u8]) -> bool {
        self.cursor.is_some_and(|cursor| cursor.has_below(path))
    }

    /// The commit of another repository that git knows here.
    pub(super) fn gitlink(&mut self, path: &[u8]) -> Option<ObjectId> {
        let entry = self.cursor.as_mut()?.find(path)?;
        entry.is_gitlink().then_some(entry.id)
    }

    /// Whether an ignored file is left alone: it was there before and is what it was.
    pub(super) fn is_left_out(&self, cached: Option<&Cached>, meta: &Meta) -> bool {
        match (self.options.ignored, self.options.cache, cached) {
            (Ignored::All, ..) | (Ignored::Changed, Some(_), None) => false,
            (Ignored::None, ..) | (Ignored::Changed, None, _) => true,
            (Ignored::Changed, Some(_), Some(cached)) => cached.content.is_none() && cached.is_clean(meta),
        }
    }
}
