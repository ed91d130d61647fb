//! Trees: the entries of a directory, sorted as git sorts them.
//!
//! Whatever a tree names becomes a path some day, so a tree that is not exactly as git would write it is
//! refused as a whole: names out of order or twice (a file and a directory of one name too), names that are no
//! names or that git keeps for itself, unknown or padded modes, an id of nothing but zeros.

use std::cmp::Ordering;

use super::name;
use crate::id::{HashKind, ObjectId};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryMode {
    File,
    Executable,
    Symlink,
    Tree,
    /// A commit of another repository; nothing of it is in the store.
    Gitlink,
}

impl EntryMode {
    /// As git writes it in a tree.
    pub const fn octal(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Tree => "40000",
            Self::Gitlink => "160000",
        }
    }

    /// As a number, the way `stat` has it.
    pub const fn bits(self) -> u32 {
        match self {
            Self::File => 0o100_644,
            Self::Executable => 0o100_755,
            Self::Symlink => 0o120_000,
            Self::Tree => 0o040_000,
            Self::Gitlink => 0o160_000,
        }
    }

    /// `100664`, which git wrote in its first years, is a file; all else must be as git writes it today.
    fn parse(octal: &[u8]) -> Option<Self> {
        Some(match octal {
            b"100644" | b"100664" => Self::File,
            b"100755" => Self::Executable,
            b"120000" => Self::Symlink,
            b"40000" => Self::Tree,
            b"160000" => Self::Gitlink,
            _ => return None,
        })
    }
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    pub mode: EntryMode,
    pub name: Vec<u8>,
    pub id: ObjectId,
}

/// A directory: checked and sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(Vec<TreeEntry>);

/// Why something is not a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    #[error("the tree ends within an entry")]
    Truncated,
    #[error("the tree has an entry of mode `{}`", .0.escape_ascii())]
    Mode(Vec<u8>),
    #[error("the tree has an entry `{}`, which git does not allow", .0.escape_ascii())]
    Name(Vec<u8>),
    #[error("the tree is not sorted at `{}`", .0.escape_ascii())]
    Unsorted(Vec<u8>),
    #[error("the tree has `{}` twice", .0.escape_ascii())]
    Duplicate(Vec<u8>),
    #[error("the tree's entry `{}` names no object", .0.escape_ascii())]
    Null(Vec<u8>),
    #[error("the tree's entry `{}` has an id of another kind", .0.escape_ascii())]
    HashKind(Vec<u8>),
}

impl Tree {
    /// From entries in any order.
    pub fn new(mut entries: Vec<TreeEntry>) -> Result<Self, TreeError> {
        entries.sort_by(order);
        let tree = Self(entries);
        tree.check()?;
        Ok(tree)
    }

    /// From the bytes of a tree object.
    pub fn parse(hash: HashKind, data: &[u8]) -> Result<Self, TreeError> {
        let entry = |raw: RawEntry<'_>| TreeEntry { mode: raw.mode, name: raw.name.to_vec(), id: raw.id };
        let entries: Result<Vec<TreeEntry>, TreeError> =
            RawEntries { hash, data }.map(|raw| raw.map(entry)).collect();
        let tree = Self(entries?);
        tree.check()?;
        Ok(tree)
    }

    /// The bytes of the object.
    pub fn encode(&self) -> Vec<u8> {
        let one = |entry: &TreeEntry| entry.name.len() + 8 + entry.id.as_bytes().len();
        let mut data = Vec::with_capacity(self.0.iter().map(one).sum());
        for entry in &self.0 {
            data.extend_from_slice(entry.mode.octal().as_bytes());
            data.push(b' ');
            data.extend_from_slice(&entry.name);
            data.push(0);
            data.extend_from_slice(entry.id.as_bytes());
        }
        data
    }

    /// In git's order: a directory stands where its name followed by a slash would.
    pub fn entries(&self) -> &[TreeEntry] {
        &self.0
    }

    pub fn into_entries(self) -> Vec<TreeEntry> {
        self.0
    }

    pub fn get(&self, name: &[u8]) -> Option<&TreeEntry> {
        self.find(name, EntryMode::File).or_else(|| self.find(name, EntryMode::Tree))
    }

    /// The entry of this name that sorts as `mode` does.
    fn find(&self, name: &[u8], mode: EntryMode) -> Option<&TreeEntry> {
        let place = self.0.binary_search_by(|entry| compare((&entry.name, entry.mode), (name, mode)));
        place.ok().map(|index| &self.0[index])
    }

    fn check(&self) -> Result<(), TreeError> {
        let hash = self.0.first().map(|entry| entry.id.kind());
        for entry in &self.0 {
            let refused = match entry.mode {
                EntryMode::Symlink => name::git_refuses_symlink(&entry.name),
                _ => name::git_refuses(&entry.name),
            };
            if refused {
                return Err(TreeError::Name(entry.name.clone()));
            }
            if entry.id.as_bytes().iter().all(|byte| *byte == 0) {
                return Err(TreeError::Null(entry.name.clone()));
            }
            if Some(entry.id.kind()) != hash {
                return Err(TreeError::HashKind(entry.name.clone()));
            }
        }
        for pair in self.0.windows(2) {
            match order(&pair[0], &pair[1]) {
                Ordering::Less => {}
                Ordering::Equal => return Err(TreeError::Duplicate(pair[1].name.clone())),
                Ordering::Greater => return Err(TreeError::Unsorted(pair[1].name.clone())),
            }
        }
        // `a` and the directory `a` need not be neighbours: `a.b` sorts between them.
        let both = |entry: &&TreeEntry| {
            entry.mode == EntryMode::Tree && self.find(&entry.name, EntryMode::File).is_some()
        };
        self.0.iter().find(both).map_or(Ok(()), |entry| Err(TreeError::Duplicate(entry.name.clone())))
    }
}

/// What a tree refers to, for walks over everything that is there: unlike [`Tree::parse`] it takes the trees
/// of a long history as they are, since nothing is ever written under these names.
pub fn references(
    hash: HashKind,
    data: &[u8],
) -> impl Iterator<Item = Result<(EntryMode, ObjectId), TreeError>> {
    named(hash, data).map(|entry| entry.map(|(mode, _, id)| (mode, id)))
}

/// The same with names, which may be any.
pub(crate) fn named(
    hash: HashKind,
    data: &[u8],
) -> impl Iterator<Item = Result<(EntryMode, &[u8], ObjectId), TreeError>> {
    RawEntries { hash, data }.map(|raw| raw.map(|raw| (raw.mode, raw.name, raw.id)))
}

struct RawEntry<'a> {
    mode: EntryMode,
    name: &'a [u8],
    id: ObjectId,
}

struct RawEntries<'a> {
    hash: HashKind,
    data: &'a [u8],
}

impl<'a> Iterator for RawEntries<'a> {
    type Item = Result<RawEntry<'a>, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.data.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.data = &[];
        }
        Some(entry)
    }
}

impl<'a> RawEntries<'a> {
    fn entry(&mut self) -> Result<RawEntry<'a>, TreeError> {
        let (octal, rest) = split(self.data, b' ').ok_or(TreeError::Truncated)?;
        let mode =
            EntryMode::parse(octal).ok_or_else(|| TreeError::Mode(octal[..octal.len().min(16)].to_vec()))?;
        let (name, rest) = split(rest, 0).ok_or(TreeError::Truncated)?;
        let (id, rest) = rest.split_at_checked(self.hash.bytes()).ok_or(TreeError::Truncated)?;
        self.data = rest;
        Ok(RawEntry { mode, name, id: ObjectId::from_bytes(id).expect("the length is that of the hash") })
    }
}

fn split(data: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let end = data.iter().position(|byte| *byte == at)?;
    Some((&data[..end], &data[end + 1..]))
}

fn order(one: &TreeEntry, other: &TreeEntry) -> Ordering {
    compare((&one.name, one.mode), (&other.name, other.mode))
}

fn compare(one: (&[u8], EntryMode), other: (&[u8], EntryMode)) -> Ordering {
    let end = |mode| if mode == EntryMode::Tree { &b"/"[..] } else { b"" };
    one.0.iter().chain(end(one.1)).cmp(other.0.iter().chain(end(other.1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(mode: EntryMode, name: &[u8]) -> TreeEntry {
        TreeEntry { mode, name: name.to_vec(), id: ObjectId::from_bytes(&[7; 20]).unwrap() }
    }

    #[test]
    fn a_directory_sorts_with_its_slash() {
        let tree = Tree::new(vec![
            entry(EntryMode::Tree, b"a"),
            entry(EntryMode::File, b"a.b"),
            entry(EntryMode::File, b"a0"),
        ])
        .unwrap();
        let names: Vec<&[u8]> = tree.entries().iter().map(|entry| entry.name.as_slice()).collect();
        assert_eq!(names, [&b"a.b"[..], b"a", b"a0"]);
        assert_eq!(tree.get(b"a").unwrap().mode, EntryMode::Tree);
        assert_eq!(tree.get(b"a.b").unwrap().mode, EntryMode::File);
        assert!(tree.get(b"b").is_none());
        assert_eq!(Tree::parse(HashKind::Sha1, &tree.encode()).unwrap(), tree);
    }

    #[test]
    fn one_name_is_one_entry() {
        let twice = vec![
            entry(EntryMode::Tree, b"a"),
            entry(EntryMode::File, b"a.b"),
            entry(EntryMode::Symlink, b"a"),
        ];
        assert_eq!(Tree::new(twice), Err(TreeError::Duplicate(b"a".to_vec())));
        let twice = vec![entry(EntryMode::File, b"a"), entry(EntryMode::Executable, b"a")];
        assert_eq!(Tree::new(twice), Err(TreeError::Duplicate(b"a".to_vec())));
    }

    #[test]
    fn only_what_git_writes_is_read() {
        let id = [7; 20];
        let parse = |entries: &[(&str, &[u8])]| {
            let one = |(mode, name): &(&str, &[u8])| [mode.as_bytes(), b" ", *name, b"\0", &id].concat();
            Tree::parse(HashKind::Sha1, &entries.iter().flat_map(one).collect::<Vec<u8>>())
        };
        assert!(parse(&[("100644", b"a"), ("40000", b"b")]).is_ok());
        assert_eq!(parse(&[("100664", b"a")]).unwrap().entries()[0].mode, EntryMode::File);
        for mode in ["040000", "100600", "0", "", "10064", "100645", "abc"] {
            assert!(matches!(parse(&[(mode, b"a")]), Err(TreeError::Mode(_))), "{mode}");
        }
        for name in [&b""[..], b".", b"..", b"a/b", b".GIT", b"git~1"] {
            assert_eq!(parse(&[("100644", name)]), Err(TreeError::Name(name.to_vec())));
        }
        assert!(parse(&[("100644", b".gitmodules")]).is_ok());
        assert!(parse(&[("120000", b".gitmodules")]).is_err());
        assert_eq!(parse(&[("100644", b"b"), ("100644", b"a")]), Err(TreeError::Unsorted(b"a".to_vec())));
        let whole = parse(&[("100644", b"a")]).unwrap().encode();
        for end in 1..whole.len() {
            assert!(Tree::parse(HashKind::Sha1, &whole[..end]).is_err(), "{end}");
        }
        assert!(Tree::parse(HashKind::Sha256, &whole).is_err());
        assert_eq!(Tree::parse(HashKind::Sha1, b"100644 a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), {
            Err(TreeError::Null(b"a".to_vec()))
        });
    }

    proptest! {
        #[test]
        fn there_and_back(names in prop::collection::btree_map("[a-c.]{1,4}", 0..5_usize, 0..20)) {
            let modes = [EntryMode::File, EntryMode::Executable, EntryMode::Symlink, EntryMode::Tree, EntryMode::Gitlink];
            let names = names.iter().filter(|(name, _)| !name::git_refuses(name.as_bytes()));
            let entries = names.map(|(name, mode)| entry(modes[*mode], name.as_bytes())).collect();
            let tree = Tree::new(entries).unwrap();
            prop_assert_eq!(&Tree::parse(HashKind::Sha1, &tree.encode()).unwrap(), &tree);
            for entry in tree.entries() {
                prop_assert_eq!(tree.get(&entry.name), Some(entry));
            }
        }

        #[test]
        fn any_bytes_are_refused_or_come_back(data in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(tree) = Tree::parse(HashKind::Sha1, &data) {
                prop_assert_eq!(tree.encode().len(), data.len());
            }
            prop_assert!(references(HashKind::Sha256, &data).count() <= data.len());
        }
    }
}
