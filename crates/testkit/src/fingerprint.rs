//! Everything about a tree that a user could notice: every path with its kind, mode, owner, modification
//! time to the nanosecond, number of links and contents. Two equal fingerprints mean that nothing was touched, not
//! even rewritten with the same bytes, and that no file got a name somewhere else.
//!
//! A sandbox holds files of a git directory by hard links, and a store shares packs that way. [`Fingerprint::beside`]
//! takes off exactly the links that it finds below our own data directory; a link anywhere else still counts.

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

#[derive(Clone, Debug)]
struct Entry {
    /// Device and number. Not compared: a file that is replaced by its like has another time.
    inode: (u64, u64),
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

    /// The same, without the links that lie below `data`, the directory of our own files. Nothing is taken off once the
    /// sandboxes that held them are removed.
    ///
    /// # Panics
    /// If something cannot be read.
    pub fn beside(root: &Path, except: &[&Path], data: &Path) -> Self {
        let mut seen = Self::of(root, except);
        let held = links_below(data);
        for entry in seen.entries.values_mut() {
            entry.links = entry.links.saturating_sub(held.get(&entry.inode).copied().unwrap_or(0));
        }
        seen
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

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        let all = |entry: &Self| (entry.mode, entry.owner, entry.links, entry.modified, entry.contents);
        all(self) == all(other)
    }
}

impl Eq for Entry {}

impl Entry {
    fn of(path: &Path, data: &std::fs::Metadata) -> Self {
        let mut hasher = DefaultHasher::new();
        if data.is_symlink() {
            hasher.write(fs_err::read_link(path).expect("a link of our own").as_os_str().as_bytes());
        } else if data.is_file() {
            hasher.write(&fs_err::read(path).expect("a file of our own"));
        }
        Self {
            inode: (data.dev(), data.ino()),
            mode: data.mode(),
            owner: (data.uid(), data.gid()),
            links: data.nlink(),
            modified: (data.mtime(), data.mtime_nsec()),
            contents: hasher.finish(),
        }
    }
}

/// How many names each file has below a directory. Sandboxes may come and go meanwhile, and what only root may enter
/// is empty; a link that is missed here shows as one too many.
fn links_below(data: &Path) -> BTreeMap<(u64, u64), u64> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![data.to_owned()];
    while let Some(directory) = waiting.pop() {
        for child in fs_err::read_dir(&directory).into_iter().flatten().flatten() {
            match child.metadata() {
                Ok(data) if data.is_dir() => waiting.push(child.path()),
                Ok(data) if data.nlink() > 1 => *found.entry((data.dev(), data.ino())).or_insert(0) += 1,
                _ => {}
            }
        }
    }
    found
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

    #[test]
    fn a_link_counts_unless_it_lies_below_our_own_files() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for directory in ["source/.git", "data/sandboxes/box/pins"] {
            fs_err::create_dir_all(at(directory)).unwrap();
        }
        fs_err::write(at("source/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let seen = || Fingerprint::beside(&at("source"), &[], &at("data"));
        let before = seen();
        for held in ["data/sandboxes/box/pins/HEAD", "data/sandboxes/box/again"] {
            fs_err::hard_link(at("source/.git/HEAD"), at(held)).unwrap();
            assert_eq!(before.differences(&seen()), [""; 0]);
        }
        assert_ne!(before, Fingerprint::of(&at("source"), &[]), "the true number is another");
        fs_err::hard_link(at("source/.git/HEAD"), at("stray")).unwrap();
        let lines = before.differences(&seen());
        assert!(lines.len() == 1 && lines[0].starts_with("changed: .git/HEAD: "), "{lines:?}");
    }
}
