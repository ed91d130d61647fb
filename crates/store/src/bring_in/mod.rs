//! Bringing in what the user's repository has already, so that it need not be read, hashed and written again.
//!
//! Packs are shared where the file system can do it, linked where it can do that, and copied as far as needed
//! where it can do neither. Where that would be too much the store borrows: then snapshots are labelled, since a
//! clean-up in the user's repository may take something from them. The user's repository is only read; a
//! link changes nothing of a pack there but its number of links.

mod share;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::id::ObjectId;
use crate::meta::{Origin, PackRow};
use crate::object::{ReadError, ReadObjects as _, WriteObjects as _};
use crate::objects::{LIST, Located, Loose, Objects};
use crate::pack::{BaseCache, Pack, Place};
use crate::reach::{History, Reached, Wanted};
use crate::regular;
use crate::store::{Batch, StoreError};
use crate::workers::help;

/// How something came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Two files with the same blocks on disk.
    Reflink,
    /// One file with two names.
    HardLink,
    /// Only what was needed.
    Copy,
    /// Not at all: it is read where it is.
    Borrow,
}

/// Which ways may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BringInOptions {
    pub first: Way,
    /// More than this is not copied.
    pub copy_limit: u64,
}

impl Default for BringInOptions {
    fn default() -> Self {
        Self { first: Way::Reflink, copy_limit: 4 << 30 }
    }
}

/// What was brought in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroughtIn {
    /// The least of the ways that were taken; none if everything was there already.
    pub way: Option<Way>,
    /// Packs that were shared or linked.
    pub packs: usize,
    /// Objects that were copied, one by one.
    pub copied: usize,
    /// Objects that can be reached from the roots.
    pub objects: usize,
}

/// Makes everything that can be reached from `roots` (trees, blobs, or commits without their history) readable in
/// the store. It is safe from collection as long as the batch lives, and then by its snapshot.
pub fn bring_in(
    batch: &Batch<'_>,
    from: &Path,
    roots: &[ObjectId],
    options: &BringInOptions,
) -> Result<BroughtIn, StoreError> {
    let source = Objects::new(from, batch.hash_kind(), Loose::Read);
    let mut reached = Reached::default();
    for root in roots {
        reached.follow(&source, (*root, Wanted::Root), History::Leave);
    }
    if let Some((_, error)) = reached.faults.pop() {
        return Err(error.into());
    }
    let mut ids: Vec<ObjectId> = reached.objects.into_iter().collect();
    ids.sort_unstable();
    bring(batch, (from, &source), &ids, options)
}

/// Makes these objects readable in the store, and nothing that trees and commits among them name. None of them is looked
/// at before it is there.
pub fn bring_in_exactly(
    batch: &Batch<'_>,
    from: &Path,
    objects: &[ObjectId],
    options: &BringInOptions,
) -> Result<BroughtIn, StoreError> {
    let source = Objects::new(from, batch.hash_kind(), Loose::Read);
    let mut ids = objects.to_vec();
    ids.sort_unstable();
    ids.dedup();
    bring(batch, (from, &source), &ids, options)
}

/// Brings in exactly these, which are sorted.
fn bring(
    batch: &Batch<'_>,
    (from, source): (&Path, &Objects),
    ids: &[ObjectId],
    options: &BringInOptions,
) -> Result<BroughtIn, StoreError> {
    let wanted = Wanting::sort(batch, source, ids)?;
    let mut outcome = BroughtIn { way: None, packs: 0, copied: 0, objects: ids.len() };
    for (pack, needed) in &wanted.packed {
        let way = bring_pack(batch, (pack, needed), options)?;
        match way {
            Some(Way::Reflink | Way::HardLink) => outcome.packs += 1,
            Some(Way::Copy) => outcome.copied += needed.len(),
            Some(Way::Borrow) | None => {
                borrow(batch, from)?;
                outcome.way = Some(Way::Borrow);
                return Ok(outcome);
            }
        }
        outcome.way = outcome.way.max(way);
    }
    if !wanted.loose.is_empty() {
        copy_loose(batch, source, &wanted.loose)?;
        outcome.copied += wanted.loose.len();
        outcome.way = outcome.way.max(Some(Way::Copy));
    }
    batch.store().objects().refresh()?;
    Ok(outcome)
}

/// What is not in the store yet, by where it is; sorted.
#[derive(Default)]
struct Wanting {
    packed: Vec<(Arc<Pack>, Vec<ObjectId>)>,
    loose: Vec<ObjectId>,
}

impl Wanting {
    fn sort(batch: &Batch<'_>, source: &Objects, ids: &[ObjectId]) -> Result<Self, StoreError> {
        let mut wanting = Self::default();
        for id in ids.iter().filter(|id| !batch.contains(id)) {
            let mut found = source.locate(id)?;
            if found.is_none() {
                // Git may have packed it meanwhile.
                source.refresh()?;
                found = source.locate(id)?;
            }
            match found {
                Some(Located::Packed(pack)) => wanting.add(pack, *id),
                Some(Located::Loose) => wanting.loose.push(*id),
                None => return Err(ReadError::Missing(*id).into()),
            }
        }
        Ok(wanting)
    }

    /// There are few packs, and most of what is needed is in one of them.
    fn add(&mut self, pack: Arc<Pack>, id: ObjectId) {
        match self.packed.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &pack)) {
            Some((_, ids)) => ids.push(id),
            None => self.packed.push((pack, vec![id])),
        }
    }
}

/// Brings in a pack, or what is needed of it, in the best way there is; `None` if that would be too much.
fn bring_pack(
    batch: &Batch<'_>,
    (pack, needed): (&Pack, &[ObjectId]),
    options: &BringInOptions,
) -> Result<Option<Way>, StoreError> {
    let path = pack.path();
    if options.first <= Way::HardLink
        && let Some((way, bytes)) = share::share(batch.store(), path, options.first)?
    {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let objects = u64::from(pack.index.count());
        let row = PackRow { name, origin: Origin::Source, objects, bytes, unsynced: None };
        batch.store().meta().adopt(&row)?;
        return Ok(Some(way));
    }
    if options.first == Way::Borrow {
        return Ok(None);
    }
    let is_needed = |place: &Place| needed.binary_search(&place.id).is_ok();
    let places: Vec<_> = pack.places()?.into_iter().filter(is_needed).collect();
    let bytes: u64 = places.iter().map(|place| place.end.saturating_sub(place.offset)).sum();
    if bytes > options.copy_limit || bytes > batch.store().room()?.left() {
        return Ok(None);
    }
    let cache = BaseCache::default();
    for place in &places {
        batch.copy(pack, place, &cache)?;
    }
    Ok(Some(Way::Copy))
}

/// Copies objects that are files of their own, two at a time: most of the work is to unpack, hash and pack.
fn copy_loose(batch: &Batch<'_>, source: &Objects, ids: &[ObjectId]) -> Result<(), StoreError> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), StoreError> {
        while let Some(id) = ids.get(next.fetch_add(1, Ordering::Relaxed)) {
            copy_one(batch, source, id).inspect_err(|_| next.store(ids.len(), Ordering::Relaxed))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let other = help(scope, work);
        let own = work();
        let joined = other.map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        own.and(joined.unwrap_or(Ok(())))
    })
}

fn copy_one(batch: &Batch<'_>, source: &Objects, id: &ObjectId) -> Result<(), StoreError> {
    let object = match source.read(id) {
        Err(ReadError::TooLarge { .. }) => return copy_large(batch, source, id),
        object => object?,
    };
    Ok(batch.write_as(id, object.kind, &object.data)?)
}

/// One that is not held in memory goes through a file.
fn copy_large(batch: &Batch<'_>, source: &Objects, id: &ObjectId) -> Result<(), StoreError> {
    let path = batch.store().temporary("loose");
    let mut file = fs_err::File::create_new(&path)?;
    let copied = source.stream(id, &mut file).map_err(StoreError::from).and_then(|size| {
        let mut file = fs_err::File::open(&path)?;
        Ok(batch.write_blob(size, &mut file)?)
    });
    fs_err::remove_file(&path)?;
    copied?;
    Ok(())
}

/// Lets the store read in the user's repository.
fn borrow(batch: &Batch<'_>, from: &Path) -> Result<(), StoreError> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = from.as_os_str().as_bytes();
    if !from.is_absolute() || path.contains(&b'\n') {
        let what = "the path of the repository cannot be written into a list of repositories";
        return Err(io::Error::other(what).into());
    }
    let store = batch.store();
    let list = store.git_dir().join("objects/info/alternates");
    let mut lines = match regular::read(&list, LIST) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => vec![],
        Err(error) => return Err(error.into()),
    };
    if !lines.split(|byte| *byte == b'\n').any(|line| line == path) {
        lines.extend_from_slice(path);
        lines.push(b'\n');
        let temporary = store.temporary("alternates");
        fs_err::write(&temporary, lines)?;
        fs_err::File::open(&temporary)?.sync_all()?;
        fs_err::rename(&temporary, &list)?;
    }
    Ok(store.objects().refresh()?)
}
