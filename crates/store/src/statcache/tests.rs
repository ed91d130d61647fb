use std::io::Write as _;

use super::write::Block;
use super::*;
use crate::id::HashKind;
use crate::state::Attribute;

/// What the directory `d` was written as.
fn whole() -> Whole {
    let id = |byte| Some(ObjectId::from_bytes(&[byte; 20]).unwrap());
    Whole { directory: Directory { tree: id(1), manifest: None, times: id(3) }, in_store: InStore::Yes }
}

const SUBJECT: Subject = Subject { dev: (1, 2), ino: 3 };

fn cached(seed: u8) -> Cached {
    let look = Look {
        kind: if seed.is_multiple_of(5) { Kind::Symlink } else { Kind::File },
        mode: 0o644,
        size: seed.into(),
        mtime_ns: -5,
        ctime_ns: 9,
        ino: 4,
        dev: (1, 2),
    };
    let id = ObjectId::from_bytes(&[seed; 20]).unwrap();
    let attribute = Attribute { name: (*b"user.a").into(), value: [seed].into() };
    let content = (seed.is_multiple_of(2)).then(|| (id, Attributes::new(vec![attribute])));
    let settled = if seed.is_multiple_of(3) { Settled::No } else { Settled::Yes };
    let in_store = if seed.is_multiple_of(7) { InStore::Yes } else { InStore::Perhaps };
    Cached { look, settled, content, in_store }
}

/// A cache with files `1` to `9` in the root and in `d`.
fn written() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::new(Box::new(file.reopen().unwrap()), HashKind::Sha1, SUBJECT, 7).unwrap();
    for (key, add) in [(Key::ROOT.below(b"d"), 100), (Key::ROOT, 0)] {
        let mut block = Block::default();
        for seed in 1..10 {
            block.add(&[b'0' + seed], &cached(seed + add));
        }
        if add == 100 {
            block.complete(whole());
        }
        writer.directory(key, &mut block).unwrap();
    }
    writer.name_packs(&[PackName::new(b"one"), PackName::new(b"two")]);
    writer.finish().unwrap();
    file
}

fn open(file: &tempfile::NamedTempFile) -> Option<StatCache> {
    StatCache::open(file.reopen().unwrap(), HashKind::Sha1, SUBJECT)
}

#[test]
fn what_was_written_is_found() {
    let cache = open(&written()).unwrap();
    assert_eq!(cache.generation(), 7);
    let mut root = cache.directory(Key::ROOT).unwrap();
    for (name, seed) in [(b"0", None), (b"1", Some(1)), (b"3", Some(3)), (b"9", Some(9)), (b"a", None)] {
        assert_eq!(root.get(name), seed.map(cached));
    }
    let mut below = cache.directory(Key::ROOT.below(b"d")).unwrap();
    assert_eq!(below.get(b"5"), Some(cached(105)));
    assert!(cache.directory(Key::ROOT.below(b"e")).is_none());
}

#[test]
fn a_directory_is_whole_as_long_as_no_pack_is_gone() {
    let file = written();
    let [one, two, three] = [b"one".as_slice(), b"two", b"three"].map(PackName::new);
    let found = |packs: &[PackName], name: &[u8]| {
        let cache = open(&file).unwrap().with_packs(packs);
        let directory = cache.directory(Key::ROOT.below(name)).unwrap_or_default();
        directory.whole().map(|(directory, _)| directory)
    };
    assert_eq!(found(&[three, two, one], b"d"), Some(whole().directory));
    assert_eq!(found(&[three, two], b"d"), None);
    assert_eq!(found(&[], b"d"), None);
    assert_eq!(found(&[one, two], b"e"), None);
    let cache = open(&file).unwrap();
    assert!(cache.directory(Key::ROOT.below(b"d")).unwrap().whole().is_none(), "nobody has looked");
    let cache = cache.with_packs(&[one, two]);
    assert!(cache.directory(Key::ROOT).unwrap().whole().is_none(), "that is not known");
    assert!(cache.vouches(InStore::Yes) && !cache.vouches(InStore::Perhaps));
}

#[test]
fn a_cache_of_something_else_is_none() {
    let file = written();
    let other = Subject { ino: 4, ..SUBJECT };
    assert!(StatCache::open(file.reopen().unwrap(), HashKind::Sha1, other).is_none());
    assert!(StatCache::open(file.reopen().unwrap(), HashKind::Sha256, SUBJECT).is_none());
}

#[test]
fn no_flipped_byte_and_no_cut_is_believed() {
    let whole = fs_err::read(written().path()).unwrap();
    let looks = |bytes: &[u8]| -> Vec<Option<Cached>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let Some(cache) = open(&file) else { return Vec::new() };
        let mut all = Vec::new();
        for key in [Key::ROOT, Key::ROOT.below(b"d")] {
            let mut directory = cache.directory(key).unwrap_or_default();
            all.extend((b'0'..=b'9').map(|name| directory.get(&[name])));
        }
        all
    };
    let right = looks(&whole);
    assert_eq!(right.iter().flatten().count(), 18);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        for (found, right) in looks(&bytes).iter().zip(&right) {
            assert!(found.is_none() || found == right, "byte {at}");
        }
        assert!(looks(&whole[..at]).is_empty(), "cut at {at}");
    }
}

#[test]
fn a_large_directory_is_kept_in_pieces() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::new(Box::new(file.reopen().unwrap()), HashKind::Sha1, SUBJECT, 7).unwrap();
    let mut block = Block::default();
    let mut pieces = 0;
    let name = |number: u32| format!("{number:0>200}").into_bytes();
    for number in 0..60_000 {
        block.add(&name(number), &cached(4));
        if block.is_full() {
            pieces += 1;
            writer.directory(Key::ROOT, &mut block).unwrap();
        }
    }
    writer.directory(Key::ROOT, &mut block).unwrap();
    assert!(pieces > 2);
    writer.finish().unwrap();
    let cache = open(&file).unwrap();
    let mut directory = cache.directory(Key::ROOT).unwrap();
    for number in (0..60_000).step_by(7) {
        assert_eq!(directory.get(&name(number)), Some(cached(4)), "{number}");
    }
    assert_eq!(directory.get(b"x"), None);
    assert_eq!(directory.get(b"y"), None);
}
