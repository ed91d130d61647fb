//! The files of a store.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::{FormatFault, StoreError};
use crate::id::HashKind;
use crate::meta::Meta;
use crate::owner::Owner;
use crate::regular;
use crate::workers::help;

/// What the file `format` begins with, before the number of the version.
const STORE: &str = "sandtable-store ";
pub(super) const VERSION: u32 = 1;

/// More than the file `format` has in any version.
const LONGEST: u64 = 4 << 10;

/// Between the name of a store and who makes it.
const NEW: &str = ".new-";

/// Two threads of one process may make the same store.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Makes the directory of a store: beside its place, then with one rename.
pub(super) fn create(dir: &Path, source: &Path, hash: HashKind) -> Result<(), StoreError> {
    let mut name = dir.file_name().ok_or_else(|| StoreError::Missing(dir.to_owned()))?.to_owned();
    name.push(format!("{NEW}{}-{}", Owner::current(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    let new = dir.with_file_name(name);
    if let Some(parent) = dir.parent() {
        private_dirs(parent)?;
        remove_abandoned(parent);
    }
    let made = fill(&new, source, hash).and_then(|()| {
        let rename = renameat_with(CWD, &new, CWD, dir, RenameFlags::NOREPLACE);
        match rename {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(StoreError::Exists(dir.to_owned())),
            // A file system without this kind of rename: one that is not empty is not replaced either.
            Err(Errno::INVAL | Errno::NOSYS) => match fs_err::rename(&new, dir) {
                Ok(()) => Ok(()),
                Err(_) if dir.exists() => Err(StoreError::Exists(dir.to_owned())),
                Err(error) => Err(error.into()),
            },
            Err(errno) => Err(std::io::Error::from(errno).into()),
        }
    });
    if made.is_err() {
        drop(fs_err::remove_dir_all(&new));
        return made;
    }
    if let Some(parent) = dir.parent() {
        fs_err::File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// Removes what others left who were killed while they made a store.
pub(super) fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs_err::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.split_once(NEW).and_then(|(_, owner)| owner.parse::<Owner>().ok());
        if owner.is_some_and(|owner| !owner.is_alive()) {
            let _tried_again_the_next_time = fs_err::remove_dir_all(entry.path());
        }
    }
}

/// What the file `format` says.
pub(super) fn format(dir: &Path) -> Result<HashKind, StoreError> {
    let fault = |fault| StoreError::Format { dir: dir.to_owned(), fault };
    let text = match regular::read(&dir.join("format"), LONGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // The last file that is written is the last to be missed.
            let is_one = Meta::FILES.iter().any(|name| dir.join(name).exists());
            return Err(if is_one {
                fault(FormatFault::Missing)
            } else {
                StoreError::Missing(dir.to_owned())
            });
        }
        Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(fault(FormatFault::Damaged)),
        Err(error) => return Err(error.into()),
    };
    let known = [HashKind::Sha1, HashKind::Sha256].into_iter().find(|hash| written(*hash).as_bytes() == text);
    known.ok_or_else(|| fault(other(&text).map_or(FormatFault::Damaged, FormatFault::Other)))
}

/// What stands in the file `format`.
fn written(hash: HashKind) -> String {
    format!("{STORE}{VERSION}\n{}\n", hash.name())
}

/// The version that such a file names, if it is another one.
fn other(text: &[u8]) -> Option<u32> {
    let line = str::from_utf8(text).ok()?.lines().next()?;
    line.strip_prefix(STORE)?.parse().ok().filter(|version| *version != VERSION)
}

fn fill(new: &Path, source: &Path, hash: HashKind) -> Result<(), StoreError> {
    for dir in ["git/objects/pack", "git/objects/info", "git/refs/heads", "cache", "journal", "tmp"] {
        private_dirs(&new.join(dir))?;
    }
    let config = format!(
        "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\tfilemode = true\n\
         [extensions]\n\tobjectFormat = {}\n\tpreciousObjects = true\n\
         [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n",
        hash.name()
    );
    fs_err::write(new.join("git/config"), config)?;
    fs_err::write(new.join("git/HEAD"), "ref: refs/heads/main\n")?;
    fs_err::write(new.join("source"), source.as_os_str().as_bytes())?;
    fs_err::write(new.join("lock"), "")?;
    let [database, log] = Meta::FILES;
    Meta::lay_out(&new.join(database))?;
    fs_err::write(new.join("format"), written(hash))?;
    Ok(write_out(new, &[database, log, "format", "source", "git/config", "git/HEAD", "git", ""])?)
}

/// Waits until all of these are on disk: for all at once, so that the file system does it in one go.
fn write_out(dir: &Path, paths: &[&str]) -> std::io::Result<()> {
    std::thread::scope(|scope| {
        let sync = |path: &str| fs_err::File::open(dir.join(path))?.sync_all();
        let waiting: Vec<_> = paths.iter().map(|path| (path, help(scope, move || sync(path)))).collect();
        waiting.into_iter().try_for_each(|(path, one)| match one {
            Some(one) => one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => sync(path),
        })
    })
}

fn private_dirs(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
