//! Finding names that say *secret*, before a start.
//!
//! This stands between the user and the first command, and runs while the process must have a single
//! thread: it reads names only and asks about an entry just where the directory does not say what it is.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::Error;
use crate::dir::{Descent, Kind, each_name, open_named, stat_at};
use crate::name_pattern::{Pattern, listed};
use crate::path::RelPath;

/// Handles kept open at once.
const HANDLES: usize = 64;

/// The files and symlinks below `root` whose name is listed, sorted. The top-level `.git` is left out.
///
/// Directories that may not be read are passed over: what cannot be read here cannot be read inside.
pub fn find_secrets(root: &Path, patterns: &[Pattern], cancel: &AtomicBool) -> Result<Vec<RelPath>, Error> {
    let open = |errno: Errno| Error::Open { path: root.to_owned(), source: errno.into() };
    let fd = open_named(root).map_err(open)?;
    let mut walk = Walk {
        at: Descent::new(std::os::fd::AsFd::as_fd(&fd), HANDLES).map_err(open)?,
        path: RelPath::root(),
        patterns,
        secrets: Vec::new(),
    };
    let mut pending = vec![walk.list()?];
    while let Some(directories) = pending.last_mut() {
        if cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        if let Some(name) = directories.pop() {
            pending.extend(walk.enter(&name)?);
        } else {
            pending.pop();
            walk.leave()?;
        }
    }
    walk.secrets.sort_unstable();
    Ok(walk.secrets)
}

struct Walk<'a> {
    at: Descent,
    path: RelPath,
    patterns: &'a [Pattern],
    secrets: Vec<RelPath>,
}

impl Walk<'_> {
    /// Notes the secrets of the current directory; gives its directories.
    fn list(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        let mut directories = Vec::new();
        let mut unknown = Vec::new();
        let Self { at, path, patterns, secrets } = self;
        let mut sort = |name: &[u8], kind: Kind| match kind {
            Kind::Directory if path.is_root() && name == b".git" => {}
            Kind::Directory => directories.push(name.to_vec()),
            Kind::File | Kind::Symlink if listed(patterns, name) => {
                secrets.push(path.join(name).expect("a directory lists single names"));
            }
            _ => {}
        };
        let read = each_name(at.fd(), |name, kind| match kind {
            Some(kind) => sort(name, kind),
            None => unknown.push(name.to_vec()),
        });
        for name in unknown {
            match stat_at(at.fd(), &name) {
                Ok(meta) => sort(&name, meta.kind),
                Err(Errno::NOENT | Errno::ACCESS) => {}
                Err(errno) => return Err(self.failed(errno)),
            }
        }
        read.map_err(|errno| self.failed(errno))?;
        Ok(directories)
    }

    fn enter(&mut self, name: &[u8]) -> Result<Option<Vec<Vec<u8>>>, Error> {
        self.path.push(name).expect("a directory lists single names");
        match self.at.enter(name) {
            Ok(()) => return self.list().map(Some),
            Err(Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => return Err(self.failed(errno)),
        }
        self.path.pop();
        Ok(None)
    }

    fn leave(&mut self) -> Result<(), Error> {
        self.path.pop();
        self.at.leave().map_err(|moved| Error::Read { path: moved.path, source: moved.source.into() })
    }

    fn failed(&self, errno: Errno) -> Error {
        Error::Read { path: self.path.clone(), source: errno.into() }
    }
}
