//! Files that somebody else may have put there, by name.
//!
//! A git directory belongs to the user, but what lies in it may come from anywhere. A named pipe in the place of a file
//! would hold whoever opens it up for ever, and a device may do anything. So such a file is opened without waiting, must
//! be a regular one, and has a largest size. Links are followed, as git does.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file; anything else is an error of the kind [`io::ErrorKind::InvalidInput`].
pub fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(named(path))?;
    if file.metadata().map_err(named(path))?.is_file() {
        return Ok(file);
    }
    Err(wrong(path, "is no regular file"))
}

/// All of a regular file that has at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(named(path))?;
    if bytes.len() as u64 > limit {
        return Err(wrong(path, "is too large"));
    }
    Ok(bytes)
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
    fn a_file_is_read_up_to_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs_err::write(&file, "ten bytes.").unwrap();
        assert_eq!(read_to_string(&file, 10).unwrap(), "ten bytes.");
        assert_eq!(read(&file, 9).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
