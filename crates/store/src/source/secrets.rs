//! Finding what is to be hidden, before a start: names that say *secret*, and what the user lists.
//!
//! This stands between the user and the first command, and runs while the process must have a single
//! thread: it reads names only and asks about an entry just where the directory does not say what it is.

use std::path::Path;

use rustix::io::Errno;

use super::SourceError;
use crate::dir::{Descent, Kind, each_name, open_named, stat_at};
use crate::name_pattern::{Pattern, listed};
use crate::path::RelPath;

/// Handles kept open at once.
const HANDLES: usize = 64;

/// The files and symlinks below `root` whose name is listed, sorted. The top-level `.git` is left out.
///
/// Directories that may not be read are passed over: what cannot be read here cannot be read inside.
pub fn find_secrets(
    root: &Path,
    patterns: &[Pattern],
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<RelPath>, SourceError> {
    find_chosen(root, &|path, kind| is_secret(patterns, path, kind), cancelled)
}

/// Whether an entry is a file or symlink whose name is listed.
pub fn is_secret(patterns: &[Pattern], path: &RelPath, kind: Kind) -> bool {
    let named = || path.name().is_some_and(|name| listed(patterns, name));
    matches!(kind, Kind::File | Kind::Symlink) && named()
}

/// Everything below `root` that `choose` picks, sorted; what lies in a directory that is picked is not asked
/// for. The top-level `.git` can be picked, but nothing in it is looked at.
pub fn find_chosen(
    root: &Path,
    choose: &dyn Fn(&RelPath, Kind) -> bool,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<RelPath>, SourceError> {
    let open = |errno: Errno| SourceError::Open { path: root.to_owned(), source: errno.into() };
    let fd = open_named(root).map_err(open)?;
    let mut walk = Walk {
        at: Descent::new(std::os::fd::AsFd::as_fd(&fd), HANDLES).map_err(open)?,
        path: RelPath::root(),
        choose,
        chosen: Vec::new(),
    };
    let mut pending = vec![walk.list()?];
    while let Some(directories) = pending.last_mut() {
        if cancelled() {
            return Err(SourceError::Cancelled);
        }
        if let Some(name) = directories.pop() {
            pending.extend(walk.enter(&name)?);
        } else {
            pending.pop();
            walk.leave()?;
        }
    }
    walk.chosen.sort_unstable();
    Ok(walk.chosen)
}

struct Walk<'a> {
    at: Descent,
    path: RelPath,
    choose: &'a dyn Fn(&RelPath, Kind) -> bool,
    chosen: Vec<RelPath>,
}

impl Walk<'_> {
    /// Notes what is chosen in the current directory; gives its other directories.
    fn list(&mut self) -> Result<Vec<Vec<u8>>, SourceError> {
        let mut directories = Vec::new();
        let mut unknown = Vec::new();
        let Self { at, path, choose, chosen } = self;
        let mut sort = |name: &[u8], kind: Kind| {
            path.push(name).expect("a directory lists single names");
            if choose(path, kind) {
                chosen.push(path.clone());
            } else if kind == Kind::Directory && path.as_bytes() != b".git" {
                directories.push(name.to_vec());
            }
            path.pop();
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

    fn enter(&mut self, name: &[u8]) -> Result<Option<Vec<Vec<u8>>>, SourceError> {
        self.path.push(name).expect("a directory lists single names");
        match self.at.enter(name) {
            Ok(()) => return self.list().map(Some),
            Err(Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => return Err(self.failed(errno)),
        }
        self.path.pop();
        Ok(None)
    }

    fn leave(&mut self) -> Result<(), SourceError> {
        self.path.pop();
        self.at.leave().map_err(|moved| SourceError::Read { path: moved.path, source: moved.source.into() })
    }

    fn failed(&self, errno: Errno) -> SourceError {
        SourceError::Read { path: self.path.clone(), source: errno.into() }
    }
}
