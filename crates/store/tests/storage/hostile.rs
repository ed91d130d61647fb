//! Packs that lie, and files in which a bit has flipped: always an error with a name, never other content,
//! never a crash, never much memory.

use std::path::Path;

use proptest::prelude::*;
use sandtable_store::fsck::{Depth, Fault, fsck};
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::meta::Filter;
use sandtable_store::object::commit::SnapshotCommit;
use sandtable_store::object::{Hasher, ObjectKind, ReadError, ReadObjects as _, Tree, hash};
use sandtable_store::objects::{Loose, Objects};
use sandtable_store::pack::{self, BaseCache, EntryError, Index, Pack, PackWriter, Sync};
use sandtable_store::store::Store;

use crate::board::{Board, board, noise, snapshot};
use crate::forge::{BLOB, OFFSET, REFERENCE, back, forge, head, id, number, zlib};

/// What is said about the entry `number` of a forged pack.
fn read(entries: &[Vec<u8>], number: usize) -> Result<Vec<u8>, EntryError> {
    let dir = tempfile::tempdir().unwrap();
    let pack = Pack::open(&forge(dir.path(), entries), HashKind::Sha1).unwrap();
    let at = pack.index.find(&id(number)).unwrap().unwrap();
    let cache = BaseCache::default();
    let streamed = pack.stream(at, &cache, &mut |_, _| Ok(()));
    let object = pack.object(at, &cache);
    assert_eq!(streamed.is_ok(), object.is_ok(), "{streamed:?}");
    assert!(!pack::verify(&pack).unwrap().is_empty(), "no id fits");
    drop(pack.header(at));
    object.map(|object| object.data)
}

fn assert_damaged(entries: &[Vec<u8>], number: usize) {
    let found = read(entries, number);
    assert!(matches!(found, Err(EntryError::Damaged(_))), "{:?}", found.map(|data| data.len()));
}

#[test]
fn sizes_that_lie() {
    let content = zlib(b"hello");
    assert_eq!(read(&[[head(BLOB, 5), content.clone()].concat()], 0).unwrap(), b"hello");
    for size in [0, 4, 6, 1 << 20, 60 << 20] {
        assert_damaged(&[[head(BLOB, size), content.clone()].concat()], 0);
    }
    // By less, just as much and more than the room that is given to decompress in.
    let long = zlib(&noise(7, 3000));
    assert_eq!(read(&[[head(BLOB, 3000), long.clone()].concat()], 0).unwrap(), noise(7, 3000));
    for size in [1, 2000, 2679, 2680, 2681, 2999, 3001, 3319, 3320, 3321, 5000] {
        assert_damaged(&[[head(BLOB, size), long.clone()].concat()], 0);
    }
    // Too large to be read at once, and streamed it is found to be a lie; nothing is allocated for it.
    for size in [1 << 40, (1 << 60) - 1] {
        let dir = tempfile::tempdir().unwrap();
        let path = forge(dir.path(), &[[head(BLOB, size), content.clone()].concat()]);
        let pack = Pack::open(&path, HashKind::Sha1).unwrap();
        let cache = BaseCache::default();
        assert!(matches!(pack.object(12, &cache), Err(EntryError::TooLarge(found)) if found == size));
        assert!(matches!(pack.stream(12, &cache, &mut |_, _| Ok(())), Err(EntryError::Damaged(_))));
    }
    let endless = [vec![0xb0; 30], content.clone()].concat();
    assert_damaged(&[endless], 0);
    // Kinds that do not exist.
    for kind in [0, 5] {
        assert_damaged(&[[head(kind, 5), content.clone()].concat()], 0);
    }
    for cut in 0..content.len() {
        assert_damaged(&[[head(BLOB, 5), content[..cut].to_vec()].concat()], 0);
    }
}

#[test]
fn a_bomb_does_not_go_off() {
    // A few bytes that would become many: only as much comes out as the header says.
    let bomb = zlib(&vec![0; 4 << 20]);
    assert!(bomb.len() < 10_000);
    assert_damaged(&[[head(BLOB, 100), bomb.clone()].concat()], 0);
    let dir = tempfile::tempdir().unwrap();
    let file = [zlib(b"blob 5\0")[..5].to_vec(), bomb].concat();
    let path = pack::loose::path(dir.path(), &id(0));
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(&path, file).unwrap();
    assert!(pack::loose::read(dir.path(), &id(0)).is_err());
    let mut long = b"blob 5\0".to_vec();
    long.resize(4 << 20, b'x');
    for content in [
        long,
        b"blob 7\0hello".to_vec(),
        b"blob 05\0hello".to_vec(),
        b"blob +5\0hello".to_vec(),
        vec![b'x'; 200],
    ] {
        fs_err::write(&path, zlib(&content)).unwrap();
        assert!(matches!(pack::loose::read(dir.path(), &id(0)), Err(EntryError::Damaged(_))));
    }
}

/// A delta that copies the first `size` bytes of a base of `base` bytes `times` times.
fn repeat(base: u64, size: u64, times: u64) -> Vec<u8> {
    let mut delta = [number(base), number(size * times)].concat();
    for _ in 0..times {
        let length = size.to_le_bytes();
        delta.extend_from_slice(&[0xf0, length[0], length[1], length[2]]);
    }
    zlib_delta(&delta)
}

fn zlib_delta(delta: &[u8]) -> Vec<u8> {
    [(delta.len() as u64).to_be_bytes().to_vec(), zlib(delta)].concat()
}

/// An entry of a delta made by [`zlib_delta`].
fn delta(kind: u8, base: &[u8], packed: &[u8]) -> Vec<u8> {
    let (size, data) = packed.split_at(8);
    [head(kind, u64::from_be_bytes(size.try_into().unwrap())), base.to_vec(), data.to_vec()].concat()
}

#[test]
fn deltas_that_lie() {
    let base = [head(BLOB, 10), zlib(b"0123456789")].concat();
    let far = base.len() as u64;
    let good = delta(OFFSET, &back(far), &repeat(10, 10, 3));
    assert_eq!(read(&[base.clone(), good], 1).unwrap(), b"0123456789".repeat(3));
    let by_name = delta(REFERENCE, id(0).as_bytes(), &repeat(10, 10, 2));
    assert_eq!(read(&[base.clone(), by_name], 1).unwrap(), b"0123456789".repeat(2));
    for wrong in [
        delta(OFFSET, &back(far), &repeat(11, 10, 1)),
        delta(OFFSET, &back(far), &repeat(10, 11, 1)),
        delta(OFFSET, &back(far + 1), &repeat(10, 10, 1)),
        delta(OFFSET, &back(far + 100), &repeat(10, 10, 1)),
        delta(OFFSET, &back(0), &repeat(10, 10, 1)),
        delta(REFERENCE, id(9).as_bytes(), &repeat(10, 10, 1)),
        delta(OFFSET, &back(far), &zlib_delta(&[])),
        delta(OFFSET, &back(far), &zlib_delta(&[10])),
        delta(OFFSET, &back(far), &zlib_delta(&[10, 5, 0])),
        delta(OFFSET, &back(far), &zlib_delta(&[0xff; 30])),
    ] {
        assert_damaged(&[base.clone(), wrong], 1);
    }
    // On itself, and in a circle.
    assert_damaged(&[delta(REFERENCE, id(0).as_bytes(), &repeat(10, 10, 1))], 0);
    let circle = [
        delta(REFERENCE, id(1).as_bytes(), &repeat(10, 10, 1)),
        delta(REFERENCE, id(0).as_bytes(), &repeat(10, 10, 1)),
    ];
    assert_damaged(&circle, 0);
}

#[test]
fn a_delta_bomb_does_not_go_off() {
    // Each makes a hundred times of the one before: a thousand bytes, then ten to the power of eleven.
    let mut entries = vec![[head(BLOB, 1000), zlib(&[7; 1000])].concat()];
    let mut size = 1000_u64;
    for _ in 0..4 {
        let before = entries.last().unwrap().len() as u64;
        entries.push(delta(OFFSET, &back(before), &repeat(size, size.min(0xff_ffff), 100)));
        size *= 100;
    }
    let found = read(&entries, 4);
    assert!(matches!(found, Err(EntryError::TooLarge(_) | EntryError::Damaged(_))));
    // A chain with no end in sight.
    let mut entries = vec![[head(BLOB, 10), zlib(b"0123456789")].concat()];
    for _ in 0..5000 {
        let before = entries.last().unwrap().len() as u64;
        entries.push(delta(OFFSET, &back(before), &repeat(10, 10, 1)));
    }
    let dir = tempfile::tempdir().unwrap();
    let pack = Pack::open(&forge(dir.path(), &entries), HashKind::Sha1).unwrap();
    let at = |number| pack.index.find(&id(number)).unwrap().unwrap();
    let cache = BaseCache::default();
    assert!(matches!(pack.object(at(5000), &cache), Err(EntryError::Damaged(_))));
    assert_eq!(pack.object(at(4000), &cache).unwrap().data, b"0123456789");
}

/// A pack of some objects, and a copy of the directory for each change.
struct Sample {
    dir: tempfile::TempDir,
    pack: std::path::PathBuf,
    ids: Vec<(ObjectId, Vec<u8>)>,
}

fn sample() -> Sample {
    let dir = tempfile::tempdir().unwrap();
    fs_err::create_dir(dir.path().join("pack")).unwrap();
    let writer = PackWriter::create(&dir.path().join("new.pack"), HashKind::Sha1).unwrap();
    let contents = [b"".to_vec(), b"short".to_vec(), noise(1, 300), b"text and more text. ".repeat(30)];
    let add = |data: Vec<u8>| {
        let id = hash(HashKind::Sha1, ObjectKind::Blob, &data).unwrap();
        writer.add(&id, ObjectKind::Blob, &data).unwrap();
        (id, data)
    };
    let ids = contents.into_iter().map(add).collect();
    let written = writer.finish(&dir.path().join("pack"), Sync::Later).unwrap().unwrap();
    let pack = dir.path().join(format!("pack/{}.pack", written.name));
    Sample { dir, pack, ids }
}

/// Flips each bit of a file in turn and looks at what is said.
fn flip_each(path: &Path, look: impl Fn(usize)) {
    let good = fs_err::read(path).unwrap();
    let mut permissions = fs_err::metadata(path).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
    fs_err::set_permissions(path, permissions).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        fs_err::write(path, &bad).unwrap();
        look(at);
    }
    fs_err::write(path, &good).unwrap();
}

#[test]
fn a_flipped_bit_in_a_pack_or_index_is_found() {
    let sample = sample();
    for file in [sample.pack.clone(), sample.pack.with_extension("idx")] {
        flip_each(&file, |at| {
            let objects = Objects::new(sample.dir.path(), HashKind::Sha1, Loose::None);
            for (id, content) in &sample.ids {
                let whole = objects.read(id).map(|object| object.data);
                assert_eq!(objects.recorded(id).ok(), whole.ok(), "byte {at}");
                let mut out = Vec::new();
                match (objects.read(id), objects.stream(id, &mut out)) {
                    (Ok(object), Ok(_)) => assert_eq!((&object.data, &out), (content, content), "byte {at}"),
                    (
                        Err(ReadError::Damaged { id: named, .. }),
                        Err(ReadError::Damaged { .. } | ReadError::Kind { .. }),
                    ) => {
                        assert_eq!(named, *id, "byte {at}");
                    }
                    (Err(ReadError::TooLarge { id: named, .. }), _) => assert_eq!(named, *id, "byte {at}"),
                    (read, streamed) => panic!("byte {at} of {}: {read:?} {streamed:?}", file.display()),
                }
            }
            let found = match Pack::open(&sample.pack, HashKind::Sha1) {
                Ok(pack) => pack::verify(&pack).map(|faults| faults.is_empty()),
                Err(error) => Err(error),
            };
            assert!(!matches!(found, Ok(true)), "byte {at} of {} was not noticed", file.display());
        });
    }
}

#[test]
fn content_under_the_name_of_other_content_is_not_handed_out() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::create_dir(dir.path().join("pack")).unwrap();
    forge(&dir.path().join("pack"), &[[head(BLOB, 5), zlib(b"hello")].concat()]);
    let objects = Objects::new(dir.path(), HashKind::Sha1, Loose::None);
    assert!(objects.contains(&id(0)));
    for found in [objects.recorded(&id(0)), objects.read_kind(&id(0), ObjectKind::Blob)] {
        assert!(matches!(found, Err(ReadError::Damaged { id: named, .. }) if named == id(0)), "{found:?}");
    }
}

#[test]
fn a_cut_off_pack_or_index_is_found() {
    let sample = sample();
    for file in [sample.pack.clone(), sample.pack.with_extension("idx")] {
        let good = fs_err::read(&file).unwrap();
        for length in (0..good.len()).step_by(7) {
            fs_err::remove_file(&file).unwrap();
            fs_err::write(&file, &good[..length]).unwrap();
            assert!(Pack::open(&sample.pack, HashKind::Sha1).is_err(), "{length}");
            let objects = Objects::new(sample.dir.path(), HashKind::Sha1, Loose::None);
            let found = objects.read(&sample.ids[0].0);
            assert!(matches!(found, Err(ReadError::Damaged { .. })), "{length}: {found:?}");
        }
        fs_err::write(&file, &good).unwrap();
    }
}

/// What a check says, without the words that differ.
fn faults(store: &Store) -> Vec<Fault> {
    fsck(store, Depth::Deep).unwrap().faults
}

#[test]
fn a_changed_row_is_named() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    for number in 0..4_u8 {
        snapshot(&store, "s", &[("a", &[number])]).unwrap();
    }
    assert_eq!(faults(&store), []);
    let database = store.dir().join("meta.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    for (change, named) in [
        ("UPDATE operations SET kind = 'x' WHERE number = 2", "operation 2"),
        ("UPDATE operations SET at = at + 1 WHERE number = 3", "operation 3"),
        ("UPDATE operations SET details = 'x' WHERE number = 1", "operation 1"),
        ("UPDATE operations SET subject = 't' WHERE number = 4", "operation 4"),
        ("UPDATE operations SET before = NULL WHERE number = 3", "operation 3"),
        ("UPDATE operations SET after = x'00' WHERE number = 4", "operation 4"),
        ("UPDATE operations SET target = 1 WHERE number = 4", "operation 4"),
        ("UPDATE operations SET link = NULL WHERE number = 4", "operation 4"),
        ("UPDATE operations SET hash = x'00' WHERE number = 4", "operation 4"),
        ("DELETE FROM operations WHERE number = 2", "operation 2"),
        ("DELETE FROM operations WHERE number = 4", "operation 4"),
        ("UPDATE operations SET number = 9 WHERE number = 4", "operation 4"),
        ("UPDATE operations SET number = -number; UPDATE operations SET number = 5 + number", "operation 1"),
        ("UPDATE heads SET snapshot = (SELECT id FROM snapshots WHERE operation = 1)", "head"),
        ("UPDATE snapshots SET tree = extra", "snapshot"),
        ("UPDATE snapshots SET state = zeroblob(32)", "snapshot"),
        ("UPDATE snapshots SET consistency = 'frozen'", "snapshot"),
        ("UPDATE snapshots SET consistency = 'x'", "database"),
        ("DELETE FROM snapshots", "head"),
        ("UPDATE packs SET objects = objects + 1", "pack"),
        ("UPDATE packs SET name = name || 'x'", "pack"),
        ("UPDATE packs SET origin = 'x'", "database"),
        ("UPDATE settings SET value = value || '0' WHERE key = 'chain'", "operation 5"),
        ("DELETE FROM settings WHERE key = 'chain'", "operation 5"),
    ] {
        let copy = store.dir().join("copy.db");
        connection.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
        connection.execute_batch(change).unwrap();
        let found = faults(&store);
        assert!(found.iter().any(|fault| fault.to_string().contains(named)), "{change}: {found:?}");
        restore(&connection, &copy);
        assert_eq!(faults(&store), [], "{change}");
    }
}

/// Puts the tables back as they were in a copy.
fn restore(connection: &rusqlite::Connection, copy: &Path) {
    connection.execute("ATTACH ?1 AS copy", [copy.to_str().unwrap()]).unwrap();
    for table in ["operations", "snapshots", "heads", "packs", "settings"] {
        let sql = format!("DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM copy.{table};");
        connection.execute_batch(&sql).unwrap();
    }
    connection.execute_batch("DETACH copy").unwrap();
    fs_err::remove_file(copy).unwrap();
}

#[test]
fn a_flipped_bit_in_the_database_does_no_harm() {
    let Board { store, dir } = board(HashKind::Sha1);
    for number in 0..3_u8 {
        snapshot(&store, "s", &[("a", &[number])]).unwrap();
    }
    let expected = store.meta().operations(&Filter::default()).unwrap();
    let snapshots = store.meta().snapshots().unwrap();
    let path = store.dir().join("meta.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(store);
    let good = fs_err::read(&path).unwrap();
    for at in (0..good.len()).step_by(61) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        fs_err::write(&path, &bad).unwrap();
        for rest in ["-wal", "-shm"] {
            drop(fs_err::remove_file(dir.path().join(format!("store/meta.db{rest}"))));
        }
        let Ok(store) = Store::open(&dir.path().join("store")) else { continue };
        let same = matches!(store.meta().operations(&Filter::default()), Ok(found) if found == expected)
            && matches!(store.meta().snapshots(), Ok(found) if found == snapshots);
        let found = fsck(&store, Depth::Fast);
        assert!(same || !matches!(&found, Ok(report) if report.faults.is_empty()), "byte {at}: {found:?}");
    }
}

/// Whatever a pack and its index say, nothing panics and every answer comes.
fn exercise(dir: &Path) {
    let path = dir.join("pack-x.pack");
    if let Ok(index) = Index::open(&path.with_extension("idx"), HashKind::Sha1) {
        drop(index.verify());
    }
    let Ok(pack) = Pack::open(&path, HashKind::Sha1) else { return };
    let cache = BaseCache::default();
    let Ok(all) = pack.index.all() else { return };
    for located in all.take(200) {
        let Ok(located) = located else { continue };
        drop(pack.index.find(&located.id));
        drop(pack.header(located.offset));
        drop(pack.object(located.offset, &cache));
        drop(pack.stream(located.offset, &cache, &mut |_, _| Ok(())));
    }
    drop(pack::verify(&pack));
}

/// Puts a right checksum on a changed pack, so that what is behind it is looked at.
fn seal(pack: &mut [u8], index: &mut [u8]) {
    let sum = |bytes: &[u8]| {
        let mut hasher = Hasher::bare(HashKind::Sha1);
        hasher.update(bytes);
        hasher.finish().unwrap()
    };
    if pack.len() > 20 && index.len() > 40 {
        let end = pack.len() - 20;
        let checksum = sum(&pack[..end]);
        pack[end..].copy_from_slice(checksum.as_bytes());
        let end = index.len() - 40;
        index[end..end + 20].copy_from_slice(checksum.as_bytes());
        let end = index.len() - 20;
        let checksum = sum(&index[..end]);
        index[end..].copy_from_slice(checksum.as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_packs_are_only_ever_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let base = [head(BLOB, 10), zlib(b"0123456789")].concat();
        let far = base.len() as u64;
        let entries = [
            base,
            delta(OFFSET, &back(far), &repeat(10, 10, 3)),
            delta(REFERENCE, id(1).as_bytes(), &repeat(30, 20, 4)),
            [head(2, 0), zlib(b"")].concat(),
        ];
        let made = forge(dir.path(), &entries);
        let (mut pack, mut index) = (fs_err::read(&made).unwrap(), fs_err::read(made.with_extension("idx")).unwrap());
        for (place, value, in_pack) in changes {
            let file = if in_pack { &mut pack } else { &mut index };
            let at = place.index(file.len());
            file[at] = value;
        }
        if let Some(cut) = cut {
            let file = if cut.index(2) == 0 { &mut pack } else { &mut index };
            file.truncate(cut.index(file.len()));
        }
        seal(&mut pack, &mut index);
        fs_err::write(dir.path().join("pack-x.pack"), pack).unwrap();
        fs_err::write(dir.path().join("pack-x.idx"), index).unwrap();
        exercise(dir.path());
    }

    #[test]
    fn any_bytes_are_only_ever_refused(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        let dir = tempfile::tempdir().unwrap();
        let index = [&[0xff, b't', b'O', b'c', 0, 0, 0, 2][..], &bytes].concat();
        fs_err::write(dir.path().join("pack-x.pack"), [&b"PACK\0\0\0\x02"[..], &bytes].concat()).unwrap();
        fs_err::write(dir.path().join("pack-x.idx"), index).unwrap();
        exercise(dir.path());
        let loose = pack::loose::path(dir.path(), &id(0));
        fs_err::create_dir_all(loose.parent().unwrap()).unwrap();
        for content in [bytes.clone(), zlib(&bytes)] {
            fs_err::write(&loose, content).unwrap();
            drop(pack::loose::read(dir.path(), &id(0)));
            drop(pack::loose::header(dir.path(), &id(0)));
        }
        drop(Tree::parse(HashKind::Sha1, &bytes));
        drop(SnapshotCommit::parse(&bytes));
    }
}

#[test]
fn content_made_to_collide_is_refused() {
    // The two files of the first public collision differ only within these blocks; their hashes are equal.
    let shared = shattered();
    for body in shared {
        let mut hasher = Hasher::bare(HashKind::Sha1);
        hasher.update(&body);
        assert!(hasher.finish().is_err(), "a block of the attack is recognised");
    }
}

/// The first 320 bytes of both files.
fn shattered() -> [Vec<u8>; 2] {
    let prefix = "255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f4865696768742033203020522f547970652034203020522f537562747970652035203020522f46696c7465722036203020522f436f6c6f7253706163652037203020522f4c656e6774682038203020522f42697473506572436f6d706f6e656e7420383e3e0a73747265616d0affd8fffe00245348412d3120697320646561642121212121852fec092339759c39b1a1c63c4c97e1fffe01";
    let first = "7f46dc93a6b67e013b029aaa1db2560b45ca67d688c7f84b8c4c791fe02b3df614f86db1690901c56b45c1530afedfb76038e972722fe7ad728f0e4904e046c230570fe9d41398abe12ef5bc942be33542a4802d98b5d70f2a332ec37fac3514e74ddc0f2cc1a874cd0c78305a21566461309789606bd0bf3f98cda8044629a1";
    let second = "7346dc9166b67e118f029ab621b2560ff9ca67cca8c7f85ba84c79030c2b3de218f86db3a90901d5df45c14f26fedfb3dc38e96ac22fe7bd728f0e45bce046d23c570feb141398bb552ef5a0a82be331fea48037b8b5d71f0e332edf93ac3500eb4ddc0decc1a864790c782c76215660dd309791d06bd0af3f98cda4bc4629b1";
    let bytes = |text: &str| -> Vec<u8> {
        text.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    };
    [[bytes(prefix), bytes(first)].concat(), [bytes(prefix), bytes(second)].concat()]
}
