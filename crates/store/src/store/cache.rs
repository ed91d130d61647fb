//! The stat caches of a store: files that can be thrown away at any time, one for each name.

use std::io;
use std::path::PathBuf;

use sha2::Digest as _;

use super::Store;
use crate::id::ObjectId;
use crate::regular;
use crate::statcache::{PackName, StatCache, Subject, Writer};

/// A stat cache being written. Dropping it leaves the one before.
#[derive(Debug)]
pub struct NewCache {
    pub writer: Writer,
    temporary: Temporary,
    place: PathBuf,
}

/// A file that goes when nobody has given it its name.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _renamed_or_removed_later = fs_err::remove_file(&self.0);
    }
}

impl Store {
    /// The cache of that name, if there is one for this directory that can be trusted.
    pub fn cache(&self, name: &str, subject: Subject) -> Option<StatCache> {
        let file = regular::open(&self.cache_path(name)).ok()?;
        Some(StatCache::open(file, self.hash, subject)?.with_packs(&self.pack_names()))
    }

    /// A new one, to be filled and kept. `old` is the one before.
    pub fn new_cache(&self, name: &str, subject: Subject, old: Option<&StatCache>) -> io::Result<NewCache> {
        let generation = old.map_or(0, |old| old.generation().wrapping_add(1));
        let temporary = Temporary(self.temporary("stat"));
        let file = fs_err::File::create_new(&temporary.0)?;
        let writer = Writer::new(Box::new(file), self.hash, subject, generation)?;
        Ok(NewCache { writer, temporary, place: self.cache_path(name) })
    }

    /// Throws all of them away: they name files.
    pub fn drop_caches(&self) {
        let entries = fs_err::read_dir(self.dir.join("cache")).into_iter().flatten().flatten();
        for entry in entries {
            let _costs_time_only = fs_err::remove_file(entry.path());
        }
    }

    /// The packs as they are known, which is where [`ReadObjects::keeps`] looks.
    ///
    /// [`ReadObjects::keeps`]: crate::object::ReadObjects::keeps
    fn pack_names(&self) -> Vec<PackName> {
        use std::os::unix::ffi::OsStrExt as _;
        let packs = self.objects.packs().unwrap_or_default();
        let name = |path: &std::path::Path| path.file_stem().unwrap_or_default().as_bytes().to_vec();
        packs.iter().map(|pack| PackName::new(&name(pack.path()))).collect()
    }

    fn cache_path(&self, name: &str) -> PathBuf {
        let digest = ObjectId::from_bytes(&sha2::Sha256::digest(name)).expect("a SHA-256 has 32 bytes");
        self.dir.join("cache").join(digest.short(32))
    }
}

impl NewCache {
    /// Puts it in the place of the one before. It is not waited for: a lost cache costs time only. `store` is the one that
    /// was asked what is in it, and nothing may have been deleted since.
    pub fn keep(mut self, store: &Store) -> io::Result<()> {
        self.writer.name_packs(&store.pack_names());
        self.writer.finish()?;
        fs_err::rename(&self.temporary.0, &self.place)
    }
}
