//! A store: the states of one source, in a directory that only Sandtable writes.
//!
//! The form and all orders are in `docs/store-format.md`. Whatever a call leaves unfinished, the next one to
//! open the store puts right.

mod batch;
mod cache;
mod commit;
mod extra;
mod layout;
mod lost;
mod recover;
pub(crate) mod refs;
mod room;

use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use batch::Batch;
pub use cache::NewCache;
pub use commit::SnapshotDraft;
pub(crate) use commit::row as pack_row;
pub use extra::{read_extra, write_extra};
pub use room::Room;

use crate::id::{HashKind, ObjectId};
use crate::lock::{FileLock, LockError};
use crate::meta::{Meta, MetaError, Snapshot};
use crate::object::{ReadError, WriteError};
use crate::objects::{Loose, Objects};
use crate::owner::Owner;
use crate::pack::{CopyError, PackError};
use crate::regular;

/// A store that is open.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    hash: HashKind,
    source: PathBuf,
    meta: Meta,
    objects: Objects,
    /// What keeps held snapshots where no lease can be written.
    shared: Mutex<Option<FileLock>>,
}

/// Why a store could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no store in `{}`", .0.display())]
    Missing(PathBuf),
    #[error("there is a store in `{}` already", .0.display())]
    Exists(PathBuf),
    #[error("the store in `{}` cannot be read: {fault}", dir.display())]
    Format { dir: PathBuf, fault: FormatFault },
    #[error("the file `source` of the store in `{}` is damaged, so nobody knows whose states it has", .0.display())]
    Source(PathBuf),
    #[error("the snapshot cannot be made: {0}")]
    Draft(String),
    #[error("the extra tree `{id}` cannot be used: {what}")]
    Extra { id: ObjectId, what: String },
    #[error(transparent)]
    Meta(#[from] MetaError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Pack(#[from] PackError),
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot use the store")]
    Io(#[from] io::Error),
}

/// What is wrong with the file that says how a store is to be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatFault {
    #[error("its file `format` is missing")]
    Missing,
    #[error("its file `format` is damaged")]
    Damaged,
    #[error("it is of format {0}, and this version knows format {VERSION} only", VERSION = layout::VERSION)]
    Other(u32),
}

/// More than any path has.
const LONGEST_PATH: u64 = 64 << 10;

static TEMPORARY: AtomicU64 = AtomicU64::new(0);

impl Store {
    /// Makes a store for the source at `source`. Of two that do so at once, one is told that it is there.
    pub fn create(dir: &Path, source: &Path, hash: HashKind) -> Result<Self, StoreError> {
        layout::create(dir, source, hash)?;
        Self::open(dir)
    }

    /// Opens a store and puts right what others left unfinished.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let hash = layout::format(dir)?;
        let source =
            PathBuf::from(std::ffi::OsString::from_vec(regular::read(&dir.join("source"), LONGEST_PATH)?));
        let meta = Meta::open(&dir.join("meta.db"), hash)?;
        let objects = Objects::new(&dir.join("git/objects"), hash, Loose::None);
        let store = Self { dir: dir.to_owned(), hash, source, meta, objects, shared: Mutex::default() };
        recover::recover(&store)?;
        Ok(store)
    }

    /// Writes down anew whose store it is, and opens it.
    pub fn name_source(dir: &Path, source: &Path) -> Result<Self, StoreError> {
        Self::open(dir)?.note_source(source)?;
        Self::open(dir)
    }

    fn note_source(&self, source: &Path) -> io::Result<()> {
        let temporary = self.temporary("source");
        fs_err::write(&temporary, source.as_os_str().as_bytes())?;
        fs_err::File::open(&temporary)?.sync_all()?;
        fs_err::rename(&temporary, self.dir.join("source"))
    }

    /// Removes what others left in a directory of stores who were killed while they made one.
    pub fn remove_abandoned(stores: &Path) {
        layout::remove_abandoned(stores);
    }

    /// Opens the store, or makes it if there is none.
    pub fn open_or_create(dir: &Path, source: &Path, hash: HashKind) -> Result<Self, StoreError> {
        match Self::open(dir) {
            Err(StoreError::Missing(_)) => match Self::create(dir, source, hash) {
                Err(StoreError::Exists(_)) => Self::open(dir),
                other => other,
            },
            other => other,
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where stock git can read it: a bare repository.
    pub fn git_dir(&self) -> PathBuf {
        self.dir.join("git")
    }

    pub fn hash_kind(&self) -> HashKind {
        self.hash
    }

    /// The real path of the source.
    pub fn source(&self) -> &Path {
        &self.source
    }

    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Operations, snapshots, heads, leases and settings.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// A snapshot that is not collected as long as this store is open: to be asked for before anything is done with it.
    pub fn hold(&self, snapshot: &ObjectId) -> Result<Snapshot, StoreError> {
        // Who is about to delete has read the leases already.
        let lock = self.share()?;
        let found = self.meta.snapshot(snapshot)?;
        if self.meta.lease(snapshot).is_err() {
            // Where nothing can be written, nobody deletes as long as the lock is held.
            *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        }
        Ok(found)
    }

    /// Starts to write. As long as the batch lives nothing is removed from the store.
    pub fn begin(&self) -> Result<Batch<'_>, StoreError> {
        Batch::begin(self)
    }

    /// Waits until everything that was written is on disk: once, after many batched snapshots.
    pub fn sync(&self) -> Result<(), StoreError> {
        let waiting: Vec<String> = self
            .meta
            .packs()?
            .into_iter()
            .filter(|pack| pack.unsynced.is_some())
            .map(|pack| pack.name)
            .collect();
        let dir = fs_err::File::open(&self.dir)?;
        crate::os::write_out(&dir).map_err(io::Error::from)?;
        if !waiting.is_empty() {
            self.meta.synced(&waiting)?;
        }
        Ok(())
    }

    pub(crate) fn pack_dir(&self) -> PathBuf {
        self.dir.join("git/objects/pack")
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.dir.join("lock")
    }

    pub(crate) fn share(&self) -> Result<FileLock, StoreError> {
        Ok(FileLock::shared(&self.lock_path())?)
    }

    /// The exclusive lock, if those who write come to an end in time.
    pub(crate) fn exclusive(&self, wait: Duration) -> Result<Option<FileLock>, StoreError> {
        let end = Instant::now() + wait;
        loop {
            match FileLock::try_exclusive(&self.lock_path())? {
                None if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                other => return Ok(other),
            }
        }
    }

    /// The path of a new temporary file, with its owner in its name.
    pub(crate) fn temporary(&self, extension: &str) -> PathBuf {
        let number = TEMPORARY.fetch_add(1, Ordering::Relaxed);
        self.dir.join(format!("tmp/{}-{number}.{extension}", Owner::current()))
    }
}

/// Which start of the machine this is: what was written in another and not waited for may be lost.
pub(crate) fn boot() -> String {
    let id = fs_err::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map_or_else(|_| "unknown".to_owned(), |id| id.trim().to_owned())
}
