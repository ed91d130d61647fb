//! Everything that can be read: the packs of a directory of objects, and of those it borrows from.
//!
//! Packs are opened when the first object is asked for and stay open, so that what another process removes can
//! still be read; when something is missing the directory is looked at once more, since another process may
//! have added to it. A pack that cannot be used does not hide the others: it is named when something is not
//! found. Whatever is handed out was hashed and compared with its id.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::alternates;
use crate::id::{HashKind, ObjectId};
use crate::object::{
    Collision, Hasher, Object, ObjectKind, ReadError, ReadObjects, SizeOf, hash, hash_again, of_kind,
};
use crate::pack::{BaseCache, EntryError, Pack, PackError, loose};
use crate::regular;

/// As many borrow from each other at most; git allows five.
const BORROWING: usize = 5;
/// The largest list of directories to borrow from.
pub(crate) const LIST: u64 = 1 << 20;

/// Whether a directory may hold objects outside of packs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loose {
    /// As in a user's repository.
    Read,
    /// As in a store, which has none.
    None,
}

/// Where an object is.
#[derive(Clone, Debug)]
pub enum Located {
    Packed(Arc<Pack>),
    /// In a file of its own.
    Loose,
}

/// The objects of one directory.
#[derive(Debug)]
pub struct Objects {
    dir: PathBuf,
    hash: HashKind,
    loose: Loose,
    depth: usize,
    seen: RwLock<Option<Arc<Seen>>>,
    cache: BaseCache,
}

/// What was found when the directory was looked at last.
#[derive(Debug, Default)]
struct Seen {
    /// The newest first.
    packs: Vec<Arc<Pack>>,
    /// By name, with the reason.
    unusable: Vec<(String, String)>,
    others: Vec<Arc<Objects>>,
    /// Whether an index is not what was written; looked for once, when something is missing.
    broken: OnceLock<Option<String>>,
}

impl Seen {
    fn is_like(&self, other: &Self) -> bool {
        let same = |one: &[Arc<Pack>], two: &[Arc<Pack>]| {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| Arc::ptr_eq(one, two))
        };
        let borrowed = self.others.iter().map(|objects| &objects.dir);
        same(&self.packs, &other.packs)
            && self.unusable == other.unusable
            && borrowed.eq(other.others.iter().map(|objects| &objects.dir))
    }
}

impl Objects {
    /// For the directory `objects` of a repository. Nothing is opened yet.
    pub fn new(dir: &Path, hash: HashKind, loose: Loose) -> Self {
        Self::at_depth(dir, hash, loose, 0)
    }

    fn at_depth(dir: &Path, hash: HashKind, loose: Loose, depth: usize) -> Self {
        let (seen, cache) = (RwLock::new(None), BaseCache::default());
        Self { dir: dir.to_owned(), hash, loose, depth, seen, cache }
    }

    pub fn hash_kind(&self) -> HashKind {
        self.hash
    }

    /// The packs of this directory, without those it borrows.
    pub fn packs(&self) -> io::Result<Vec<Arc<Pack>>> {
        Ok(self.seen()?.packs.clone())
    }

    /// Packs that cannot be opened, and what is wrong with them.
    pub fn unusable(&self) -> io::Result<Vec<(String, String)>> {
        Ok(self.seen()?.unusable.clone())
    }

    /// Looks at the directory again: packs that were added are seen, packs that were removed forgotten.
    pub fn refresh(&self) -> io::Result<()> {
        let before = self.held().clone();
        let seen = self.look(before.as_deref())?;
        for other in &seen.others {
            other.refresh()?;
        }
        // What was found out about the same packs stays known.
        if !before.is_some_and(|before| before.is_like(&seen)) {
            *self.held() = Some(Arc::new(seen));
        }
        Ok(())
    }

    /// Whether an object is in one of the packs of this directory, as they are known.
    pub fn has_packed(&self, id: &ObjectId) -> bool {
        let Ok(seen) = self.seen() else { return false };
        seen.packs.iter().any(|pack| matches!(pack.index.find(id), Ok(Some(_))))
    }

    /// How large an object is that lies in a pack of this directory or of one it borrows from, as they are known.
    pub fn packed_size(&self, id: &ObjectId) -> Option<u64> {
        let seen = self.seen().ok()?;
        let size = |pack: &Arc<Pack>| pack.size(pack.index.find(id).ok()??).ok();
        seen.packs
            .iter()
            .find_map(size)
            .or_else(|| seen.others.iter().find_map(|other| other.packed_size(id)))
    }

    /// Where an object is.
    pub fn locate(&self, id: &ObjectId) -> io::Result<Option<Located>> {
        let seen = self.seen()?;
        let holds = |pack: &&Arc<Pack>| matches!(pack.index.find(id), Ok(Some(_)));
        if let Some(pack) = seen.packs.iter().find(holds) {
            return Ok(Some(Located::Packed(Arc::clone(pack))));
        }
        if self.loose == Loose::Read && loose::path(&self.dir, id).is_file() {
            return Ok(Some(Located::Loose));
        }
        for other in &seen.others {
            if let Some(found) = other.locate(id)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn held(&self) -> std::sync::RwLockWriteGuard<'_, Option<Arc<Seen>>> {
        self.seen.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> io::Result<Arc<Seen>> {
        if let Some(seen) = &*self.seen.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(seen));
        }
        let mut held = self.held();
        if let Some(seen) = &*held {
            return Ok(Arc::clone(seen));
        }
        let seen = Arc::new(self.look(None)?);
        *held = Some(Arc::clone(&seen));
        Ok(seen)
    }

    fn look(&self, before: Option<&Seen>) -> io::Result<Seen> {
        let known = before.map(|seen| seen.packs.as_slice()).unwrap_or_default();
        let known: HashMap<&Path, &Arc<Pack>> = known.iter().map(|pack| (pack.path(), pack)).collect();
        let mut packs = Vec::new();
        let mut unusable = Vec::new();
        for path in pack_files(&self.dir.join("pack"))? {
            if let Some(pack) = known.get(path.as_path()) {
                packs.push(Arc::clone(pack));
                continue;
            }
            match Pack::open(&path, self.hash) {
                Ok(pack) => packs.push(Arc::new(pack)),
                // Removed between the look and the opening.
                Err(PackError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    unusable.push((name, error.to_string()));
                }
            }
        }
        let others = self.others(before.map(|seen| seen.others.as_slice()).unwrap_or_default())?;
        Ok(Seen { packs, unusable, others, broken: OnceLock::new() })
    }

    /// The directories that this one borrows from.
    fn others(&self, known: &[Arc<Self>]) -> io::Result<Vec<Arc<Self>>> {
        let list = match regular::read(&self.dir.join("info/alternates"), LIST) {
            Ok(list) if self.depth < BORROWING => list,
            Ok(_) => return Ok(vec![]),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(error),
        };
        let open = |dir: PathBuf| {
            let dir = self.dir.join(dir);
            let known = known.iter().find(|known| known.dir == dir).cloned();
            known.unwrap_or_else(|| Arc::new(Self::at_depth(&dir, self.hash, Loose::Read, self.depth + 1)))
        };
        Ok(alternates::listed(&list).map(open).collect())
    }

    /// Goes through all places that may have the object until `found` gives something; an error of one place is
    /// given only if no other place has the object.
    fn search<T>(&self, id: &ObjectId, found: &mut Found<'_, T>) -> Result<T, ReadError> {
        let io_error = |source| ReadError::Io { id: *id, source };
        let mut first_error = None;
        for attempt in 0..2 {
            let seen = self.seen().map_err(io_error)?;
            for pack in &seen.packs {
                match pack.index.find(id) {
                    Ok(None) => {}
                    Ok(Some(at)) => match found(Place::Packed(pack, at, &self.cache)) {
                        Ok(Some(value)) => return Ok(value),
                        Ok(None) => {}
                        Err(error) => first_error = first_error.or(Some(error)),
                    },
                    Err(error) => {
                        let damaged = ReadError::Damaged { id: *id, what: error.to_string() };
                        first_error = first_error.or(Some(damaged));
                    }
                }
            }
            if self.loose == Loose::Read {
                match found(Place::Loose(&self.dir)) {
                    Ok(Some(value)) => return Ok(value),
                    Ok(None) => {}
                    Err(error) => first_error = first_error.or(Some(error)),
                }
            }
            for other in &seen.others {
                match other.search(id, found) {
                    Ok(value) => return Ok(value),
                    Err(ReadError::Missing(_)) => {}
                    Err(error) => first_error = first_error.or(Some(error)),
                }
            }
            if let Some(error) = first_error {
                return Err(error);
            }
            if attempt == 0 {
                self.refresh().map_err(io_error)?;
            }
        }
        Err(self.why_missing(id))
    }

    /// A whole object, compared with its id by a hash.
    fn read_by(&self, hash: Hash, id: &ObjectId) -> Result<Object, ReadError> {
        self.search(id, &mut |place| {
            let object = match place {
                Place::Packed(pack, at, cache) => pack.object(at, cache).map(Some),
                Place::Loose(dir) => loose::read(dir, id),
            };
            let Some(object) = object.map_err(|error| named(id, error))? else { return Ok(None) };
            check(id, hash(id.kind(), object.kind, &object.data))?;
            Ok(Some(object))
        })
    }

    /// That an object is not found may be the fault of a damaged index.
    fn why_missing(&self, id: &ObjectId) -> ReadError {
        let Ok(seen) = self.seen() else { return ReadError::Missing(*id) };
        let broken = seen.broken.get_or_init(|| {
            let damaged = seen.packs.iter().find_map(|pack| pack.index.verify().err());
            damaged.map(|error| error.to_string())
        });
        match seen.unusable.first().map(|(_, what)| what).or(broken.as_ref()) {
            Some(what) => ReadError::Damaged { id: *id, what: format!("it was not found, and {what}") },
            None => ReadError::Missing(*id),
        }
    }
}

type Hash = fn(HashKind, ObjectKind, &[u8]) -> Result<ObjectId, Collision>;
type Found<'f, T> = dyn FnMut(Place<'_>) -> Result<Option<T>, ReadError> + 'f;

/// Where an object may be.
enum Place<'a> {
    Packed(&'a Pack, u64, &'a BaseCache),
    /// Perhaps in a file of its own below this directory.
    Loose(&'a Path),
}

impl SizeOf for Objects {
    fn size_of(&self, id: &ObjectId) -> Option<u64> {
        self.contains(id).then(|| self.header(id).ok().map(|(_, size)| size))?
    }

    fn has_packed(&self, id: &ObjectId) -> bool {
        Self::has_packed(self, id)
    }

    fn packed_size_of(&self, id: &ObjectId) -> Option<u64> {
        self.packed_size(id)
    }
}

impl ReadObjects for Objects {
    fn read(&self, id: &ObjectId) -> Result<Object, ReadError> {
        self.read_by(hash, id)
    }

    fn recorded(&self, id: &ObjectId) -> Result<Vec<u8>, ReadError> {
        of_kind(id, self.read_by(hash_again, id)?, ObjectKind::Blob)
    }

    fn stream(&self, id: &ObjectId, to: &mut dyn Write) -> Result<u64, ReadError> {
        let mut begun = false;
        let size = self.search(id, &mut |place| {
            // What was written cannot be taken back, so a second place is of no use.
            if begun {
                return Ok(None);
            }
            let header = match &place {
                Place::Packed(pack, at, _) => pack.header(*at).map(Some),
                Place::Loose(dir) => loose::header(dir, id),
            };
            let Some((kind, size)) = header.map_err(|error| named(id, error))? else { return Ok(None) };
            if kind != ObjectKind::Blob {
                return Err(ReadError::Kind { id: *id, found: kind, wanted: ObjectKind::Blob });
            }
            begun = true;
            let mut hasher = Hasher::new(id.kind(), kind, size);
            let mut pass = |_: ObjectKind, block: &[u8]| {
                hasher.update(block);
                to.write_all(block)
            };
            let read = match place {
                Place::Packed(pack, at, cache) => pack.stream(at, cache, &mut pass).map(Some),
                Place::Loose(dir) => loose::stream(dir, id, &mut pass),
            };
            let read = read.map_err(|error| named(id, error))?;
            check(id, hasher.finish())?;
            Ok(read)
        })?;
        Ok(size)
    }

    fn header(&self, id: &ObjectId) -> Result<(ObjectKind, u64), ReadError> {
        self.search(id, &mut |place| {
            let header = match place {
                Place::Packed(pack, at, _) => pack.header(at).map(Some),
                Place::Loose(dir) => loose::header(dir, id),
            };
            header.map_err(|error| named(id, error))
        })
    }

    /// Looks only at what is known already: that something is new is the usual answer here.
    fn contains(&self, id: &ObjectId) -> bool {
        let Ok(seen) = self.seen() else { return false };
        seen.packs.iter().any(|pack| matches!(pack.index.find(id), Ok(Some(_))))
            || self.loose == Loose::Read && loose::path(&self.dir, id).is_file()
            || seen.others.iter().any(|other| other.contains(id))
    }
}

fn named(id: &ObjectId, error: EntryError) -> ReadError {
    match error {
        EntryError::Io(source) => ReadError::Io { id: *id, source },
        EntryError::Damaged(what) => ReadError::Damaged { id: *id, what },
        EntryError::TooLarge(size) => ReadError::TooLarge { id: *id, size },
    }
}

fn check(id: &ObjectId, found: Result<ObjectId, Collision>) -> Result<(), ReadError> {
    match found {
        Ok(found) if found == *id => Ok(()),
        Ok(found) => Err(ReadError::Damaged { id: *id, what: format!("its content is that of `{found}`") }),
        Err(error) => Err(ReadError::Damaged { id: *id, what: error.to_string() }),
    }
}

/// The packs in a directory that have an index, the newest first.
fn pack_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = match fs_err::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "idx") {
            let modified = fs_err::metadata(&path).and_then(|metadata| metadata.modified());
            // One that is being removed at this moment.
            let Ok(modified) = modified else { continue };
            found.push((modified, path.with_extension("pack")));
        }
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(found.into_iter().map(|(_, path)| path).collect())
}
