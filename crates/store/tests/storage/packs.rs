//! Packs held against git: what we write it reads, what it writes we read.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::git::Repository;
use proptest::prelude::*;
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::object::{EntryMode, Object, ObjectKind, Tree, TreeEntry, WriteError, hash};
use sandtable_store::pack::{self, BaseCache, Index, IndexEntry, Pack, PackWriter, Sync, write_index};

fn writer(dir: &Path, hash: HashKind) -> PackWriter {
    PackWriter::create(&dir.join("new.pack"), hash).unwrap()
}

fn add(writer: &PackWriter, kind: ObjectKind, data: &[u8]) -> ObjectId {
    let id = hash(writer.hash_kind(), kind, data).unwrap();
    writer.add(&id, kind, data).unwrap();
    id
}

fn packs(repository: &Repository) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(repository.objects().join("pack")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "pack")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn git_reads_what_we_write(
        blobs in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                (any::<u8>(), 0..60_000_usize).prop_map(|(byte, length)| vec![byte; length]),
                prop::collection::vec(any::<u8>(), 30_000..40_000),
            ],
            1..20,
        ),
        sha256 in any::<bool>(),
    ) {
        let kind = if sha256 { HashKind::Sha256 } else { HashKind::Sha1 };
        let repository = Repository::new(kind);
        let dir = repository.objects().join("pack");
        let writer = writer(&dir, kind);
        let ids: Vec<ObjectId> = blobs.iter().map(|blob| add(&writer, ObjectKind::Blob, blob)).collect();
        let entries = ids.iter().enumerate().map(|(number, id)| TreeEntry {
            mode: EntryMode::File,
            name: format!("{number}").into_bytes(),
            id: *id,
        });
        let tree = add(&writer, ObjectKind::Tree, &Tree::new(entries.collect()).unwrap().encode());
        for (id, blob) in ids.iter().zip(&blobs) {
            prop_assert_eq!(writer.read(id).unwrap().unwrap().data, blob.clone());
        }
        let written = writer.finish(&dir, Sync::Now).unwrap().unwrap();
        prop_assert!(repository.text(&["fsck", "--strict", "--no-dangling"]).is_empty());
        repository.run(&["verify-pack", dir.join(format!("{}.idx", written.name)).to_str().unwrap()], b"");
        for (id, blob) in ids.iter().zip(&blobs) {
            prop_assert_eq!(&repository.run(&["cat-file", "blob", &id.to_string()], b""), blob);
        }
        prop_assert_eq!(repository.text(&["cat-file", "-t", &tree.to_string()]), "tree");

        let pack = Pack::open(&dir.join(format!("{}.pack", written.name)), kind).unwrap();
        prop_assert_eq!(pack.index.count() as usize, written.objects);
        prop_assert!(pack::verify(&pack).unwrap().is_empty());
    }
}

/// A history of a file that grows and changes, so that git makes deltas of it.
fn repository_with_deltas(kind: HashKind) -> (Repository, BTreeMap<ObjectId, Object>) {
    let repository = Repository::new(kind);
    let mut objects = BTreeMap::new();
    let mut text: Vec<u8> =
        (0..4000_u32).flat_map(|line| format!("line {line} of it\n").into_bytes()).collect();
    for round in 0..60_usize {
        let at = round * 977 % text.len();
        text.splice(at..at, format!("inserted {round}").into_bytes());
        let id = repository.write(ObjectKind::Blob, &text);
        objects.insert(id, Object { kind: ObjectKind::Blob, data: text.clone() });
    }
    let list: Vec<String> = objects.keys().map(ToString::to_string).collect();
    let base = repository.objects().join("pack/pack");
    let arguments = ["pack-objects", "--depth=40", "--window=60", base.to_str().unwrap()];
    repository.run(&arguments, (list.join("\n") + "\n").as_bytes());
    (repository, objects)
}

#[test]
fn we_read_git_s_deltas() {
    for kind in [HashKind::Sha1, HashKind::Sha256] {
        let (repository, objects) = repository_with_deltas(kind);
        let [path] = &packs(&repository)[..] else { panic!("one pack was made") };
        assert!(fs_err::metadata(path).unwrap().len() < 200_000, "deltas were made");
        let pack = Pack::open(path, kind).unwrap();
        assert!(pack::verify(&pack).unwrap().is_empty());
        let cache = BaseCache::default();
        for (id, object) in &objects {
            let at = pack.index.find(id).unwrap().unwrap();
            assert_eq!(&pack.object(at, &cache).unwrap(), object);
            assert_eq!(pack.header(at).unwrap(), (ObjectKind::Blob, object.data.len() as u64));
            let mut data = Vec::new();
            pack.stream(at, &cache, &mut |_, block| {
                data.extend_from_slice(block);
                Ok(())
            })
            .unwrap();
            assert_eq!(data, object.data);
        }
    }
}

#[test]
fn our_index_is_git_s() {
    for kind in [HashKind::Sha1, HashKind::Sha256] {
        let (repository, _) = repository_with_deltas(kind);
        let path = packs(&repository).remove(0);
        let index = Index::open(&path.with_extension("idx"), kind).unwrap();
        index.verify().unwrap();
        let mut entries: Vec<IndexEntry> = index
            .all()
            .unwrap()
            .map(|located| located.unwrap())
            .map(|located| IndexEntry { id: located.id, offset: located.offset, crc: located.crc })
            .collect();
        entries.reverse();
        let mut ours = Vec::new();
        write_index(&mut ours, kind, &mut entries, &index.pack_checksum().unwrap()).unwrap();
        assert_eq!(ours, fs_err::read(path.with_extension("idx")).unwrap());
    }
}

#[test]
fn places_beyond_two_gigabytes_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.idx");
    let id = |byte| ObjectId::from_bytes(&[byte; 20]).unwrap();
    let offsets = [12, (1 << 31) - 1, 1 << 31, u64::from(u32::MAX) + 7, 1 << 45];
    let one = |(number, offset): (usize, &u64)| IndexEntry {
        id: id(200 - u8::try_from(number).unwrap()),
        offset: *offset,
        crc: 3,
    };
    let mut entries: Vec<IndexEntry> = offsets.iter().enumerate().map(one).collect();
    let expected = entries.clone();
    write_index(&mut fs_err::File::create(&path).unwrap(), HashKind::Sha1, &mut entries, &[1; 20]).unwrap();
    let index = Index::open(&path, HashKind::Sha1).unwrap();
    index.verify().unwrap();
    for entry in expected {
        assert_eq!(index.find(&entry.id).unwrap(), Some(entry.offset));
    }
    assert_eq!(index.find(&id(1)).unwrap(), None);
    assert_eq!(index.between(&id(199), &id(200), 9).unwrap(), [id(199), id(200)]);
    assert_eq!(index.between(&id(0), &id(255), 2).unwrap().len(), 2);
}

#[test]
fn an_index_answers_alike_from_the_disk_and_from_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.idx");
    // Many share their first byte, so that a question to the disk has to narrow them down.
    let id = |number: u32| {
        let mut bytes = [0; 20];
        bytes[0] = u8::try_from(number % 3).unwrap();
        bytes[1..5].copy_from_slice(&(number * 2).to_be_bytes());
        ObjectId::from_bytes(&bytes).unwrap()
    };
    let absent = |number: u32| {
        let mut bytes = id(number).as_bytes().to_vec();
        bytes[19] = 1;
        ObjectId::from_bytes(&bytes).unwrap()
    };
    let count = 9000;
    let one = |number| IndexEntry { id: id(number), offset: u64::from(number) + 12, crc: 1 };
    let mut entries: Vec<IndexEntry> = (0..count).map(one).collect();
    let mut file = std::io::BufWriter::new(fs_err::File::create(&path).unwrap());
    write_index(&mut file, HashKind::Sha1, &mut entries, &[1; 20]).unwrap();
    drop(file);
    for number in (0..count).step_by(100) {
        // Asked once, it looks at the disk.
        let index = Index::open(&path, HashKind::Sha1).unwrap();
        assert_eq!(index.find(&id(number)).unwrap(), Some(u64::from(number) + 12));
        assert_eq!(index.find(&absent(number)).unwrap(), None);
    }
    let index = Index::open(&path, HashKind::Sha1).unwrap();
    for number in 0..count {
        assert_eq!(index.find(&id(number)).unwrap(), Some(u64::from(number) + 12));
        assert_eq!(index.find(&absent(number)).unwrap(), None);
    }
}

#[test]
fn a_large_index_is_looked_into_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.idx");
    let id = |number: u64| {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        ObjectId::from_bytes(&bytes).unwrap()
    };
    let count = 620_000;
    let one = |number| IndexEntry { id: id(number), offset: number * 9000, crc: 1 };
    let mut entries: Vec<IndexEntry> = (0..count).map(one).collect();
    let mut file = std::io::BufWriter::new(fs_err::File::create(&path).unwrap());
    write_index(&mut file, HashKind::Sha1, &mut entries, &[1; 20]).unwrap();
    drop(file);
    assert!(fs_err::metadata(&path).unwrap().len() > 16 << 20);
    let index = Index::open(&path, HashKind::Sha1).unwrap();
    for number in (0..count).step_by(9973) {
        assert_eq!(index.find(&id(number)).unwrap(), Some(number * 9000));
        assert_eq!(index.find(&id(number + count)).unwrap(), None);
    }
    assert!(index.all().unwrap().zip(&entries).all(|(found, entry)| found.unwrap().offset == entry.offset));
    index.verify().unwrap();
}

#[test]
fn large_blobs_are_streamed_and_torn_ones_leave_nothing() {
    let repository = Repository::new(HashKind::Sha1);
    let dir = repository.objects().join("pack");
    let writer = writer(&dir, HashKind::Sha1);
    let size: u64 = (9 << 20) + 5;
    let data: Vec<u8> = (0..size).map(|at| u8::try_from(at / 1000 % 251).unwrap()).collect();
    let never = |_: &ObjectId| false;
    for wrong in [size - 1, size + 1] {
        assert!(matches!(writer.add_blob(wrong, &mut data.as_slice(), &never), Err(WriteError::Torn)));
        assert_eq!((writer.objects(), writer.bytes()), (0, 12));
    }
    let id = writer.add_blob(size, &mut data.as_slice(), &never).unwrap();
    assert_eq!(writer.add_blob(size, &mut data.as_slice(), &never).unwrap(), id);
    assert_eq!(writer.objects(), 1);
    let other = writer.add_blob(size, &mut std::io::repeat(7).take(size), &|_| true).unwrap();
    assert!(!writer.contains(&other), "what is known is not written");
    writer.finish(&dir, Sync::Later).unwrap().unwrap();
    assert_eq!(repository.run(&["cat-file", "blob", &id.to_string()], b""), data);
    assert_eq!(fs_err::read_dir(&dir).unwrap().count(), 2, "only pack and index are left");
}

#[test]
fn many_threads_write_one_pack() {
    let repository = Repository::new(HashKind::Sha1);
    let dir = repository.objects().join("pack");
    let writer = writer(&dir, HashKind::Sha1);
    std::thread::scope(|scope| {
        for thread in 0..8_u32 {
            let writer = &writer;
            scope.spawn(move || {
                for number in 0..200_u32 {
                    // Half of them are written by every thread.
                    let owner = if number % 2 == 0 { 0 } else { thread };
                    add(writer, ObjectKind::Blob, format!("{owner} {number}").repeat(20).as_bytes());
                }
            });
        }
    });
    let written = writer.finish(&dir, Sync::Later).unwrap().unwrap();
    assert_eq!(written.objects, 100 + 8 * 100);
    let all = repository.text(&["cat-file", "--batch-all-objects", "--batch-check"]);
    assert_eq!(all.lines().count(), 900);
    repository.run(&["fsck", "--strict"], b"");
}

#[test]
fn an_empty_pack_is_none() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(writer(dir.path(), HashKind::Sha1).finish(dir.path(), Sync::Now).unwrap(), None);
    drop(writer(dir.path(), HashKind::Sha1));
    assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn loose_objects_are_read() {
    for kind in [HashKind::Sha1, HashKind::Sha256] {
        let repository = Repository::new(kind);
        for data in [&b""[..], b"x", &vec![7; 100_000]] {
            let id = repository.write(ObjectKind::Blob, data);
            let object = pack::loose::read(&repository.objects(), &id).unwrap().unwrap();
            assert_eq!(object, Object { kind: ObjectKind::Blob, data: data.to_vec() });
            let header = pack::loose::header(&repository.objects(), &id).unwrap().unwrap();
            assert_eq!(header, (ObjectKind::Blob, data.len() as u64));
        }
        let absent = hash(kind, ObjectKind::Blob, b"absent").unwrap();
        assert!(pack::loose::read(&repository.objects(), &absent).unwrap().is_none());
    }
}
