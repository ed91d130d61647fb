//! Files that somebody else may have put there, by name.
//!
//! A git directory belongs to the user, but what lies in it may come from anywhere; and what lies in our own directories may
//! have been put back from somewhere. A named pipe in the place of a file
//! would hold whoever opens it up for ever, and a device may do anything. So such a file is opened without waiting, must
//! be a regular one, and has a largest size. Links are followed, as git does.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Opens a regular file; anything else is an error of the kind [`io::ErrorKind::InvalidInput`].
pub fn open(path: &Path) -> io::Result<File> {
    opened(path, OpenOptions::new().read(true), OFlags::empty())
}

/// What becomes of a file that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Made,
    /// An error of the kind [`io::ErrorKind::NotFound`].
    Left,
}

/// Opens a regular file to read it and to add to its end. A link is refused here: what is written goes to no other place.
pub fn open_to_append(path: &Path, missing: Missing) -> io::Result<File> {
    let mut options = OpenOptions::new();
    opened(path, options.read(true).append(true).create(missing == Missing::Made), OFlags::NOFOLLOW)
}

/// The same for a file of our own that nobody else may read.
pub fn open_private_to_append(path: &Path, missing: Missing) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600).create(missing == Missing::Made);
    opened(path, &mut options, OFlags::NOFOLLOW)
}

fn opened(path: &Path, options: &mut OpenOptions, more: OFlags) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | more).bits().cast_signed();
    let file = match options.custom_flags(flags).open(path) {
        Err(error) if is_of_another_kind(&error) => return Err(wrong(path, "is no regular file")),
        opened => opened.map_err(named(path))?,
    };
    if file.metadata().map_err(named(path))?.is_file() {
        return Ok(file);
    }
    Err(wrong(path, "is no regular file"))
}

/// A link where none is followed, a directory that is to be written, a socket.
fn is_of_another_kind(error: &io::Error) -> bool {
    let kinds = [Errno::LOOP, Errno::ISDIR, Errno::NXIO].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| kinds.contains(&code))
}

/// Whether a file ends with these bytes. Nothing else of it is read.
pub fn ends_with(file: &File, end: &[u8]) -> io::Result<bool> {
    let Some(at) = file.metadata()?.len().checked_sub(end.len() as u64) else { return Ok(false) };
    let mut bytes = vec![0; end.len()];
    match file.read_exact_at(&mut bytes, at) {
        // It became shorter meanwhile.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| bytes == end),
    }
}

/// All of a regular file that has at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    copy(path, &mut bytes, limit)?;
    Ok(bytes)
}

/// Writes all of such a file somewhere. Of one that is too large from the start nothing is read.
pub fn copy(path: &Path, to: &mut impl Write, limit: u64) -> io::Result<()> {
    let file = open(path)?;
    let size = file.metadata().map_err(named(path))?.len();
    if size > limit || io::copy(&mut file.take(limit.saturating_add(1)), to).map_err(named(path))? > limit {
        return Err(wrong(path, "is too large"));
    }
    Ok(())
}

/// The same as text.
pub fn read_to_string(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read(path, limit)?).map_err(|_| wrong(path, "is no text"))
}

fn wrong(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` {what}", path.display()))
}

/// The kind stays what it was; a reader asks whether there is nothing.
fn named(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("cannot read `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        std::os::unix::fs::symlink("pipe", dir.path().join("link")).unwrap();
        for name in ["pipe", "link", "."] {
            let refused = read(&dir.path().join(name), 10).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{name}: {refused}");
        }
        assert_eq!(read(Path::new("/dev/zero"), 10).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(read(&dir.path().join("none"), 10).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_a_regular_file_is_added_to() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        fs_err::write(at("file"), "one\n").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        for (name, missing) in ["pipe", "socket", "link", "."]
            .into_iter()
            .flat_map(|name| [(name, Missing::Made), (name, Missing::Left)])
        {
            let refused = open_to_append(&at(name), missing).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{name}: {refused}");
        }
        let none = open_to_append(&at("none"), Missing::Left).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
        open_to_append(&at("none"), Missing::Made).unwrap().write_all(b"two\n").unwrap();
        let mut file = open_to_append(&at("file"), Missing::Left).unwrap();
        assert!(!ends_with(&file, b"two\n").unwrap() && !ends_with(&file, b"long: one\n").unwrap());
        file.write_all(b"two\n").unwrap();
        assert!(ends_with(&file, b"two\n").unwrap());
        assert_eq!(fs_err::read(at("file")).unwrap(), b"one\ntwo\n");
        assert_eq!(fs_err::read(at("none")).unwrap(), b"two\n");
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs_err::write(&file, "ten bytes.").unwrap();
        assert_eq!(read_to_string(&file, 10).unwrap(), "ten bytes.");
        assert_eq!(read(&file, 9).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let mut copied = Vec::new();
        assert!(copy(&file, &mut copied, 9).is_err() && copied.is_empty(), "nothing is read of it");
    }
}
