//! Everything about a tree that a user could notice: every path with its kind, mode, owner, modification
//! time to the nanosecond and contents. Two equal fingerprints mean that nothing was touched, not even
//! rewritten with the same bytes. Links to files in a git directory are not counted: a sandbox makes some.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A tree at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    mode: u32,
    owner: (u32, u32),
    links: u64,
    modified: (i64, i64),
    contents: u64,
}

impl Fingerprint {
    /// Reads the whole tree below `root`, without the paths in `except`.
    ///
    /// # Panics
    /// If something cannot be read.
    pub fn of(root: &Path, except: &[&Path]) -> Self {
        let mut entries = BTreeMap::new();
        let mut waiting = vec![root.to_owned()];
        while let Some(path) = waiting.pop() {
            if except.contains(&path.as_path()) {
                continue;
            }
            let data = fs_err::symlink_metadata(&path).expect("listed a moment ago, in a tree of our own");
            if data.is_dir() {
                let children = fs_err::read_dir(&path).expect("a directory of our own");
                waiting.extend(children.map(|child| child.expect("a directory of our own").path()));
            }
            let name = path.strip_prefix(root).expect("found below the root").to_owned();
            entries.insert(name, Entry::of(&path, &data));
        }
        Self { entries }
    }

    /// What differs, one line per path; nothing when nothing was touched.
    pub fn differences(&self, later: &Self) -> Vec<String> {
        let gone = self.entries.keys().filter(|path| !later.entries.contains_key(*path));
        let mut lines: Vec<String> = gone.map(|path| format!("gone: {}", path.display())).collect();
        for (path, entry) in &later.entries {
            match self.entries.get(path) {
                None => lines.push(format!("new: {}", path.display())),
                Some(before) if before != entry => {
                    lines.push(format!("changed: {}: {before:?} -> {entry:?}", path.display()));
                }
                Some(_) => {}
            }
        }
        lines
    }
}

impl Entry {
    fn of(path: &Path, data: &std::fs::Metadata) -> Self {
        let mut hasher = DefaultHasher::new();
        if data.is_symlink() {
            hasher.write(fs_err::read_link(path).expect("a link of our own").as_os_str().as_bytes());
        } else if data.is_file() {
            hasher.write(&fs_err::read(path).expect("a file of our own"));
        }
        Self {
            mode: data.mode(),
            owner: (data.uid(), data.gid()),
            // A sandbox holds what a git directory says by links to it, for as long as it lives.
            links: if data.is_file() && in_git_directory(path) { 1 } else { data.nlink() },
            modified: (data.mtime(), data.mtime_nsec()),
            contents: hasher.finish(),
        }
    }
}

fn in_git_directory(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_touch_shows() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs_err::write(&file, "one").unwrap();
        let before = Fingerprint::of(root.path(), &[]);
        assert_eq!(before.differences(&Fingerprint::of(root.path(), &[])), [""; 0]);

        fs_err::write(&file, "one").unwrap();
        let rewritten = Fingerprint::of(root.path(), &[]);
        assert_eq!(before.differences(&rewritten).len(), 1, "same bytes, other time");

        fs_err::write(root.path().join("more"), "").unwrap();
        fs_err::remove_file(&file).unwrap();
        let lines = rewritten.differences(&Fingerprint::of(root.path(), &[]));
        assert!(lines.iter().any(|line| line == "gone: file"), "{lines:?}");
        assert!(lines.iter().any(|line| line == "new: more"), "{lines:?}");
    }
}
