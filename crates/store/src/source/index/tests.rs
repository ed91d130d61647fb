use proptest::prelude::*;

use super::*;

const ZERO: [u32; 6] = [0; 6];

/// An index as git would write it, with these extensions.
fn made(version: u32, entries: &[(&str, u32)], extensions: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut data = b"DIRC".to_vec();
    data.extend(version.to_be_bytes());
    data.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    let mut before = "";
    for (path, mode) in entries {
        let start = data.len();
        for number in [1, 2, 3, 4] {
            data.extend(u32::to_be_bytes(number));
        }
        let [_, _, _, uid, gid, size] = ZERO;
        for number in [9, 7, *mode, uid, gid, size] {
            data.extend(u32::to_be_bytes(number));
        }
        data.extend([5; 20]);
        data.extend(u16::try_from(path.len().min(0xfff)).unwrap().to_be_bytes());
        if version == 4 {
            let keep = path.bytes().zip(before.bytes()).take_while(|(one, two)| one == two).count();
            data.push(u8::try_from(before.len() - keep).unwrap());
            data.extend(&path.as_bytes()[keep..]);
            data.push(0);
            before = path;
        } else {
            data.extend(path.as_bytes());
            let length = data.len() - start;
            data.resize(start + (length + 8) / 8 * 8, 0);
        }
    }
    for (name, content) in extensions {
        data.extend(*name);
        data.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
        data.extend(*content);
    }
    seal(&data)
}

/// A number as the fourth version has it.
fn offset(mut value: u64) -> Vec<u8> {
    let mut bytes = vec![value.to_le_bytes()[0] & 0x7f];
    while value > 0x7f {
        value = (value >> 7) - 1;
        bytes.insert(0, value.to_le_bytes()[0] & 0x7f | 0x80);
    }
    bytes
}

/// An index of the fourth version: of each path, what is cut from the end of the one before, and what follows.
fn fourth(entries: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut data = b"DIRC\0\0\0\x04".to_vec();
    data.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    for (cut, end) in entries {
        data.extend([0; 62]);
        data.extend(offset(*cut));
        data.extend(end);
        data.push(0);
    }
    seal(&data)
}

fn seal(data: &[u8]) -> Vec<u8> {
    let mut hasher = Hasher::bare(HashKind::Sha1);
    hasher.update(data);
    [data, hasher.finish().unwrap().as_bytes()].concat()
}

fn parse(data: &[u8]) -> Result<Index, Unusable> {
    Index::parse(data, HashKind::Sha1, 0)
}

#[test]
fn every_version_is_read() {
    let entries = [("a", 0o100_644), ("d/b", 0o100_755), ("d/bcd", 0o120_000), ("dd", 0o160_000)];
    for version in 2..=4 {
        let index = parse(&made(version, &entries, &[(b"TREE", b"xyz"), (b"REUC", b"")])).unwrap();
        let paths: Vec<_> = index.entries().map(|entry| entry.path.to_vec()).collect();
        assert_eq!(paths, [&b"a"[..], b"d/b", b"d/bcd", b"dd"]);
        assert_eq!(index.find(b"d/b").unwrap().mode, 0o100_755);
        assert!(index.find(b"d").is_none() && index.has_below(b"d") && !index.has_below(b"a"));
        assert!(index.gitlink(b"dd").is_some() && index.gitlink(b"a").is_none());
    }
}

proptest! {
    #[test]
    fn a_cursor_finds_what_is_there_in_whatever_order_it_is_asked(
        paths in prop::collection::btree_set("[ab]{1,3}(/[ab]{1,2})?", 0..40),
        asked in prop::collection::vec("[abc]{1,3}(/[abc]{1,2})?", 0..60),
    ) {
        let entries: Vec<(&str, u32)> = paths.iter().map(|path| (path.as_str(), 0o100_644)).collect();
        let index = parse(&made(2, &entries, &[])).unwrap();
        let mut cursor = crate::source::cursor::Cursor::new(&index);
        for path in asked.iter().chain(&paths) {
            let found = cursor.find(path.as_bytes()).map(|entry| entry.path);
            prop_assert_eq!(found, paths.contains(path).then_some(path.as_bytes()));
            prop_assert_eq!(index.find(path.as_bytes()).is_some(), paths.contains(path));
        }
    }
}

/// Version 4 says how much of the path before is kept: a few bytes stand for a path as long as the one before.
#[test]
fn paths_that_grow_beyond_all_measure_are_refused() {
    let long = vec![b'a'; 1 << 20];
    let numbers: Vec<String> = (0..200).map(|number: u32| format!("{number:03}")).collect();
    let of = |count: usize| {
        let others = numbers[1..=count].iter().map(|number| (3, number.as_bytes().to_vec()));
        let entries: Vec<_> = std::iter::once((0, [&long[..], b"000"].concat())).chain(others).collect();
        fourth(&entries)
    };
    assert!(of(199).len() < 2 << 20, "it is small");
    assert_eq!(parse(&of(10)).unwrap().len(), 11);
    assert_eq!(parse(&of(199)).unwrap_err(), Unusable::TooLarge);
}

#[test]
fn what_is_not_complete_in_itself_is_refused() {
    for name in [b"link", b"sdir", b"FSMN", b"abcd"] {
        assert_eq!(parse(&made(2, &[], &[(name, b"")])).unwrap_err(), Unusable::Extension(*name));
    }
    assert_eq!(parse(&made(2, &[("d/", 0o040_000)], &[])).unwrap_err(), Unusable::Extension(*b"sdir"));
    assert_eq!(parse(&made(5, &[], &[])).unwrap_err(), Unusable::Version(5));
    let mut flipped = made(2, &[("a", 0o100_644)], &[]);
    flipped[20] ^= 1;
    assert!(matches!(parse(&flipped), Err(Unusable::Damaged(_))));
    assert!(parse(&made(2, &[("b", 0o100_644), ("a", 0o100_644)], &[])).is_err());
    assert!(parse(&made(2, &[("a", 0o100_644), ("a", 0o100_644)], &[])).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        version in 2..5u32,
        at in 0..200usize,
        bytes in prop::collection::vec(any::<u8>(), 0..8),
        cut in 0..250usize,
    ) {
        let mut data = made(version, &[("a", 0o100_644), ("a/b", 0o100_755), ("a/bc", 0o100_755)], &[(b"TREE", b"x")]);
        data.truncate(data.len() - 20);
        for (offset, byte) in bytes.into_iter().enumerate() {
            let length = data.len();
            data[(at + offset) % length] = byte;
        }
        data.truncate(cut.max(12));
        if let Ok(index) = parse(&seal(&data)) {
            for entry in index.entries() {
                prop_assert!(index.find(entry.path).is_some());
            }
        }
    }

    /// Numbers of the fourth version that keep much or more than there is of the path before, and paths of any bytes.
    #[test]
    fn nor_do_any_paths_of_the_fourth_version(
        entries in prop::collection::vec((0..1_u64 << 36, prop::collection::vec(1..=u8::MAX, 0..40)), 0..30),
    ) {
        let entries: Vec<_> = entries.into_iter().map(|(cut, end)| (cut >> (cut % 36), end)).collect();
        if let Ok(index) = parse(&fourth(&entries)) {
            prop_assert_eq!(index.len(), entries.len());
            for entry in index.entries() {
                prop_assert!(index.find(entry.path).is_some());
            }
        }
    }

    #[test]
    fn nor_do_any_others(data in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse(&data).is_err());
        drop(parse(&seal(&[b"DIRC\0\0\0\x04", data.as_slice()].concat())));
    }
}
