//! Names, trees and commits held against git itself.

use crate::git::Repository;
use proptest::prelude::*;
use sandtable_store::id::HashKind;
use sandtable_store::object::commit::{Consistency, SnapshotCommit, State};
use sandtable_store::object::name::{git_refuses, git_refuses_symlink};
use sandtable_store::object::{EntryMode, ObjectKind, Tree, TreeEntry, hash};

/// Names near those that are refused: pieces of them in random order and case.
fn names() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&'static [u8]> = vec![
        b".git",
        b".GIT",
        b"git",
        b"Git",
        b"modules",
        b".gitmodules",
        b"gitmod",
        b"gi7eba",
        b"gi7",
        b"~1",
        b"~4",
        b"~9",
        b"~12345",
        b"~",
        b".",
        b"..",
        b" ",
        b":",
        b"::$INDEX_ALLOCATION",
        b"\\",
        b"g",
        b"i",
        b"t",
        b"a",
        b"\xe2\x80\x8c",
        b"\xe2\x80\x8f",
        b"\xe2\x80\xaa",
        b"\xe2\x81\xaa",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xc4\xb1",
        b"\xef\xbf\xbe",
        b"\xed\xa0\x80",
        b"1",
        b"0",
    ];
    let known = prop::collection::vec(prop::sample::select(pieces), 1..5).prop_map(|pieces| pieces.concat());
    let random = prop::collection::vec(1..=255_u8, 1..6);
    prop_oneof![4 => known, 1 => random]
        .prop_filter("no separator: git cannot be asked", |name| !name.contains(&b'/'))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_names_are_refused(names in prop::collection::vec(names(), 200)) {
        let repository = Repository::new(HashKind::Sha1);
        let blob = repository.write(ObjectKind::Blob, b"x");
        for mode in [EntryMode::File, EntryMode::Symlink] {
            let line = |name: &Vec<u8>| {
                [format!("{} blob {blob}\t", mode.octal()).as_bytes(), name.as_slice(), b"\0\0"].concat()
            };
            let input: Vec<u8> = names.iter().flat_map(line).collect();
            let trees = repository.run(&["mktree", "-z", "--batch"], &input);
            let trees: Vec<&str> = str::from_utf8(&trees).unwrap().lines().collect();
            let (_, said) = repository.try_run(&["fsck", "--strict", "--no-dangling"], b"");
            for (name, tree) in names.iter().zip(trees) {
                let refused = said.lines().any(|line| {
                    line.contains(&format!("in tree {tree}"))
                        && ["hasDot", "gitmodulesSymlink"].iter().any(|word| line.contains(word))
                });
                let ours = if mode == EntryMode::Symlink { git_refuses_symlink(name) } else { git_refuses(name) };
                prop_assert_eq!(ours, refused, "{} `{}`: {}", mode.octal(), name.escape_ascii(), said);
            }
        }
    }

    #[test]
    fn trees_have_git_s_ids(names in prop::collection::btree_set("[a-c.-]{1,4}", 1..30)) {
        for kind in [HashKind::Sha1, HashKind::Sha256] {
            let repository = Repository::new(kind);
            let blob = repository.write(ObjectKind::Blob, b"x");
            let empty = repository.write(ObjectKind::Tree, b"");
            let entries: Vec<TreeEntry> = names
                .iter()
                .enumerate()
                .filter(|(_, name)| !git_refuses(name.as_bytes()))
                .map(|(index, name)| {
                    let mode = [EntryMode::File, EntryMode::Tree, EntryMode::Executable][index % 3];
                    let id = if mode == EntryMode::Tree { empty } else { blob };
                    TreeEntry { mode, name: name.clone().into_bytes(), id }
                })
                .collect();
            let line = |entry: &TreeEntry| {
                let what = if entry.mode == EntryMode::Tree { "tree" } else { "blob" };
                [format!("{} {what} {}\t", entry.mode.octal(), entry.id).as_bytes(), &entry.name, b"\0"].concat()
            };
            let input: Vec<u8> = entries.iter().flat_map(line).collect();
            let expected = repository.run(&["mktree", "-z"], &input);
            let data = Tree::new(entries).unwrap().encode();
            let id = hash(kind, ObjectKind::Tree, &data).unwrap();
            prop_assert_eq!(id.to_string(), str::from_utf8(&expected).unwrap().trim());
        }
    }
}

#[test]
fn git_takes_our_commits() {
    for kind in [HashKind::Sha1, HashKind::Sha256] {
        let repository = Repository::new(kind);
        let tree = repository.write(ObjectKind::Tree, b"");
        for (message, seconds) in
            [("", 0), ("two\n\nlines\n\n\n", 1_700_000_000), ("nul\0 here", u64::MAX), ("é", 1)]
        {
            let commit = SnapshotCommit {
                tree,
                parents: vec![],
                seconds,
                message: message.to_owned(),
                extra: tree,
                state: State::of(&tree, &tree),
                consistency: Consistency::Frozen,
            };
            let data = commit.encode();
            let id = repository.write(ObjectKind::Commit, &data);
            assert_eq!(hash(kind, ObjectKind::Commit, &data).unwrap(), id);
            let trailers = repository.run(&["log", "-1", "--format=%(trailers:only)", &id.to_string()], b"");
            let expected = format!(
                "Sandtable-Extra: {tree}\nSandtable-State: {}\nSandtable-Consistency: frozen",
                State::of(&tree, &tree)
            );
            assert_eq!(str::from_utf8(&trailers).unwrap().trim(), expected);
        }
        repository.run(&["fsck", "--strict"], b"");
    }
}
