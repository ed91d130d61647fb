//! A new file of the user's: the whole of it or nothing, whatever ends the process, and nothing is written over.

use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{AtFlags, CWD, RenameFlags, linkat, renameat_with, unlinkat};
use rustix::io::Errno;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::os;
use sandtable_sandbox::random::random;
use sandtable_store::regular;

use super::Stop;
use crate::refusal::{Reason, Refusal};

/// Writes a file that is not there yet. One that has these very bytes is as good: an earlier call wrote it, and was ended before
/// it could say so.
pub(super) fn write(file: &HostPath, bytes: &[u8]) -> Result<(), Stop> {
    match write_new(file.as_path(), bytes) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let known = regular::read(file.as_path(), bytes.len() as u64);
            if known.is_ok_and(|known| known == bytes) {
                return Ok(());
            }
            Err(Refusal::new(Reason::FileExists, format!("`{file}` exists already")).into())
        }
        written => Ok(written?),
    }
}

fn write_new(file: &Path, bytes: &[u8]) -> io::Result<()> {
    // Nothing is made for a name that is taken.
    if file.symlink_metadata().is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    match unnamed(file, bytes) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => named(file, bytes),
        written => written,
    }
}

/// The file has no name before it is complete, so that a process that is killed leaves none.
fn unnamed(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let mut made = std::fs::File::from(os::unnamed_file(folder, 0o666)?);
    made.write_all(bytes)?;
    made.sync_all()?;
    Ok(os::give_name(&made, file)?)
}

/// Where every file has a name: under another one beside it first.
fn named(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(file);
    let mut made = fs::OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let written = made.write_all(bytes).and_then(|()| made.sync_all());
    let put = written.and_then(|()| Ok(put(&beside, file)?));
    if put.is_err() {
        drop(fs::remove_file(&beside));
    }
    put
}

fn put(from: &Path, to: &Path) -> rustix::io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        done => return done,
    }
    linkat(CWD, from, CWD, to, AtFlags::empty())?;
    unlinkat(CWD, from, AtFlags::empty())
}

fn beside(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(50).collect();
    file.with_file_name(format!(".{name}.sandtable-{:016x}", random()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_new_or_the_same_and_nothing_lies_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = HostPath::new(folder.path().join("work.patch")).unwrap();
        write(&file, b"one").unwrap();
        write(&file, b"one").unwrap();
        for other in [&b"on"[..], b"two", b"one and more", b""] {
            assert!(matches!(write(&file, other), Err(Stop::Refused(_))), "{other:?}");
        }
        assert_eq!(fs::read(file.as_path()).unwrap(), b"one");
        let second = folder.path().join("second");
        named(&second, b"two").unwrap();
        let taken = named(&second, b"three").unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&second).unwrap(), b"two");
        let link = HostPath::new(folder.path().join("link")).unwrap();
        fs_err::os::unix::fs::symlink("nowhere", link.as_path()).unwrap();
        assert!(matches!(write(&link, b"one"), Err(Stop::Refused(_))), "no link is written through");
        assert!(write(&HostPath::new(folder.path().join("no/such")).unwrap(), b"one").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
