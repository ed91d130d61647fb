use std::collections::BTreeMap;

use proptest::prelude::*;

use super::edit::apply;
use super::*;
use crate::id::HashKind;
use crate::object::Memory;

/// A state as a plain map; directories are there for themselves.
type Plain = BTreeMap<RelPath, (char, Vec<u8>, u16, Option<i64>)>;

fn read(objects: &Memory, state: &State) -> Plain {
    let mut plain = Plain::new();
    let mut walk = Walk::new(objects, state, Limits::default()).unwrap();
    while let Some(Visit { path, node }) = walk.next().unwrap() {
        assert_eq!(state.lookup(objects, path).unwrap().as_ref(), Some(node));
        let blob = |id| objects.read_kind(&id, ObjectKind::Blob).unwrap();
        let (kind, data) = match node.what {
            What::File(id) => ('f', blob(id)),
            What::Symlink(id) => ('l', blob(id)),
            What::Directory(_) => ('d', Vec::new()),
            What::Gitlink(id) => ('g', id.as_bytes().to_vec()),
        };
        plain.insert(path.clone(), (kind, data, node.own.bits, node.own.mtime_ns));
    }
    plain
}

/// Does to a plain map what an edit does to a state.
fn edit(plain: &mut Plain, path: &RelPath, change: Option<(char, Vec<u8>, u16, Option<i64>)>) {
    let is_below = |key: &RelPath, top: &RelPath| {
        key.as_bytes().strip_prefix(top.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
    };
    plain.retain(|key, _| key != path && !is_below(key, path));
    let Some(new) = change else { return };
    let mut above = path.parent();
    while let Some(dir) = above.filter(|dir| !dir.is_root()) {
        if plain.get(&dir).is_none_or(|old| old.0 != 'd') {
            plain.insert(dir.clone(), ('d', Vec::new(), 0o755, None));
        }
        above = dir.parent();
    }
    plain.insert(path.clone(), new);
}

fn node(objects: &Memory, of: &(char, Vec<u8>, u16, Option<i64>)) -> Node {
    let id = objects.write(ObjectKind::Blob, &of.1).unwrap();
    let what = match of.0 {
        'f' => What::File(id),
        'l' => What::Symlink(id),
        'd' => What::Directory(Box::default()),
        _ => What::Gitlink(id),
    };
    Node { what, own: Own { bits: of.2, attributes: Attributes::default(), mtime_ns: of.3 } }
}

fn any_path() -> impl Strategy<Value = RelPath> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "a!", "a0", "c\n", "="]), 1..4)
        .prop_map(|parts| RelPath::new(parts.join("/")).unwrap())
}

fn any_node() -> impl Strategy<Value = (char, Vec<u8>, u16, Option<i64>)> {
    let bits = prop::sample::select(vec![0o644u16, 0o755, 0o600, 0o4711, 0]);
    (0..4usize, any::<u8>(), bits, any::<Option<i64>>()).prop_map(|(kind, byte, bits, time)| {
        match ['f', 'l', 'd', 'g'][kind] {
            'l' => ('l', vec![byte], 0o777, time),
            'd' => ('d', Vec::new(), bits, time),
            'g' => ('g', Vec::new(), 0o755, time),
            _ => ('f', vec![byte], bits, time),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn edits_in_steps_and_at_once_are_what_a_map_says(
        edits in prop::collection::vec((any_path(), prop::option::weighted(0.8, any_node())), 0..14)
    ) {
        let objects = Memory::new(HashKind::Sha1);
        let mut plain = Plain::new();
        let mut state = State::empty(&objects).unwrap();
        for (path, change) in &edits {
            edit(&mut plain, path, change.clone());
            let mut editor = Editor::new(&objects, &objects, &state).unwrap();
            apply(&mut editor, BTreeMap::from([(path.clone(), change.as_ref().map(|of| node(&objects, of)))])).unwrap();
            state = editor.finish().unwrap();
        }
        for entry in plain.values_mut().filter(|entry| entry.0 == 'g') {
            entry.1 = node(&objects, &('g', Vec::new(), 0, None)).id().unwrap().as_bytes().to_vec();
        }
        prop_assert_eq!(read(&objects, &state), plain.clone());
        // The same, made from nothing at once, has the same name.
        let all = plain.iter().map(|(path, of)| (path.clone(), match of.0 {
            'g' => Some(node(&objects, &('g', Vec::new(), of.2, of.3))),
            _ => Some(node(&objects, of)),
        }));
        let (directories, leaves): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.partition(|(_, node)| node.as_ref().unwrap().as_directory().is_some());
        let mut fresh = State::empty(&objects).unwrap();
        for (path, node) in directories {
            let mut editor = Editor::new(&objects, &objects, &fresh).unwrap();
            apply(&mut editor, BTreeMap::from([(path, node)])).unwrap();
            fresh = editor.finish().unwrap();
        }
        let mut editor = Editor::new(&objects, &objects, &fresh).unwrap();
        apply(&mut editor, leaves).unwrap();
        prop_assert_eq!(editor.finish().unwrap(), state);
    }
}

#[test]
fn passing_through_writes_nothing() {
    let objects = Memory::new(HashKind::Sha1);
    let path = RelPath::new("a/b/f").unwrap();
    let file = node(&objects, &('f', b"x".to_vec(), 0o600, Some(5)));
    let mut editor = Editor::new(&objects, &objects, &State::empty(&objects).unwrap()).unwrap();
    apply(&mut editor, BTreeMap::from([(path, Some(file.clone()))])).unwrap();
    let state = editor.finish().unwrap();
    let before = objects.ids().len();
    let mut editor = Editor::new(&objects, &objects, &state).unwrap();
    editor.enter(b"a", Below::Keep).unwrap();
    editor.enter(b"b", Below::Keep).unwrap();
    assert_eq!(editor.get(b"f"), Some(&file));
    assert_eq!(editor.finish().unwrap(), state);
    assert_eq!(objects.ids().len(), before);
}

#[test]
fn times_take_no_part_in_the_identity() {
    let objects = Memory::new(HashKind::Sha256);
    let at = |time| {
        let file = node(&objects, &('f', b"x".to_vec(), 0o600, time));
        let mut editor = Editor::new(&objects, &objects, &State::empty(&objects).unwrap()).unwrap();
        editor.set(b"f", file);
        editor.finish().unwrap()
    };
    let (one, two) = (at(Some(1)), at(None));
    assert_ne!(one, two);
    assert_eq!(one.hash(), two.hash());
    assert_ne!(one.hash(), State::empty(&objects).unwrap().hash());
}

#[test]
fn a_tree_that_names_itself_ten_times_has_an_end() {
    let objects = Memory::new(HashKind::Sha1);
    let mut editor = Editor::new(&objects, &objects, &State::empty(&objects).unwrap()).unwrap();
    editor.set(b"f", node(&objects, &('f', Vec::new(), 0o644, None)));
    let mut state = editor.finish().unwrap();
    for _ in 0..10 {
        let mut editor = Editor::new(&objects, &objects, &State::empty(&objects).unwrap()).unwrap();
        for name in b'0'..=b'9' {
            let what =
                What::Directory(Box::new(Directory { tree: Some(state.tree), ..Directory::default() }));
            editor.set(&[name], Node { what, own: Own::usual(EntryMode::Tree) });
        }
        state = editor.finish().unwrap();
    }
    let mut walk = Walk::new(&objects, &state, Limits { entries: 10_000, depth: 100 }).unwrap();
    let end = loop {
        match walk.next() {
            Ok(Some(_)) => {}
            other => break other.map(drop),
        }
    };
    assert!(matches!(end, Err(StateError::TooMany)));
}

#[test]
fn a_manifest_that_does_not_fit_is_refused() {
    let objects = Memory::new(HashKind::Sha1);
    let file = objects.write(ObjectKind::Blob, b"x").unwrap();
    let entry = |mode, name: &str, id| crate::object::TreeEntry { mode, name: name.into(), id };
    let tree = |entries| {
        objects.write(ObjectKind::Tree, &crate::object::Tree::new(entries).unwrap().encode()).unwrap()
    };
    let contents = tree(vec![entry(EntryMode::File, "f", file)]);
    let unfit = |records: &str| {
        let blob = objects.write(ObjectKind::Blob, records.as_bytes()).unwrap();
        let manifest = tree(vec![entry(EntryMode::File, "+", blob)]);
        Directory { tree: Some(contents), manifest: Some(manifest), times: None }.read(&objects).is_err()
    };
    assert!(!unfit("f 0600 f\n"));
    for records in ["d 0700 f\n", "f 0700 f\n", "l 0777 f user.a=1\n", "f 0600 g\n", "d 0700 .\n", "nonsense"]
    {
        assert!(unfit(records), "{records}");
    }
    for name in ["-", "=", "=..", "x"] {
        let manifest = tree(vec![entry(EntryMode::Tree, name, contents)]);
        let directory = Directory { tree: Some(contents), manifest: Some(manifest), times: None };
        assert!(directory.read(&objects).is_err(), "{name}");
    }
    let below = tree(vec![entry(EntryMode::Tree, "=f", tree(vec![]))]);
    assert!(Directory { tree: Some(contents), manifest: Some(below), times: None }.read(&objects).is_err());
}
