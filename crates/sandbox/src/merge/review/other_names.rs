//! Other names of the place where a tree of files is: `/tmp/r` for `/private/tmp/r`, or a link in the home directory to the
//! disk that it lies on. A link with such a name in its text leads into the tree like one with the real name.
//!
//! Only links of the host are followed, those beside the tree and beside the directories above it, and in the home directory.
//! What the text of a link in the tree says is compared with their names and never looked up.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use fs_err as fs;
use sandtable_store::RelPath;

use crate::model::path::HostPath;

/// As many entries of one directory are looked at.
const ENTRIES: usize = 4096;

/// Links of the host that lead to a tree, to a directory above it or into it.
#[derive(Clone, Debug, Default)]
pub struct OtherNames {
    root: PathBuf,
    /// Each with the real place.
    names: Vec<(PathBuf, PathBuf)>,
}

impl OtherNames {
    pub fn of(root: &Path, home: Option<&HostPath>) -> Self {
        let folders = root.ancestors().skip(1).chain(home.map(HostPath::as_path));
        let names =
            folders.flat_map(links).filter(|(_, real)| root.starts_with(real) || real.starts_with(root));
        Self { root: root.to_owned(), names: names.collect() }
    }

    /// The text of a link with real names in the place of others.
    pub(super) fn respelled(&self, link: &RelPath, text: &[u8]) -> Vec<Vec<u8>> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let above = self.root.join(OsStr::from_bytes(link.as_bytes()));
        let leads = plain(&above.parent().unwrap_or(&self.root).join(OsStr::from_bytes(text)));
        if leads.starts_with(&self.root) {
            return Vec::new();
        }
        let real = |(name, real): &(PathBuf, PathBuf)| Some(real.join(leads.strip_prefix(name).ok()?));
        self.names.iter().filter_map(real).map(|path| path.into_os_string().into_vec()).collect()
    }
}

/// The links in a directory, and where they lead.
fn links(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES);
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.filter_map(|entry| Some((entry.path(), fs::canonicalize(entry.path()).ok()?))).collect()
}

/// A path without `.` and `..`, by its words.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
