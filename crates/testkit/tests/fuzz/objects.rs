//! Git's objects and files, and our own blobs.

use std::path::Path;
use std::sync::LazyLock;

use sandtable_store::id::HashKind;
use sandtable_store::object::{Hasher, commit, tree};
use sandtable_store::pack::{BaseCache, Pack, verify};
use sandtable_store::source::index::Index;
use sandtable_store::state::{manifest, times};
use sandtable_testkit::env::PATH;
use sandtable_testkit::fuzz::fuzz;
use sandtable_testkit::process::Run;

const HASH: HashKind = HashKind::Sha1;

/// A repository with a bit of everything, packed, and the files that git made of it.
struct Samples {
    trees: Vec<Vec<u8>>,
    commits: Vec<Vec<u8>>,
    indexes: Vec<Vec<u8>>,
    pack: Vec<u8>,
    pack_index: Vec<u8>,
}

static SAMPLES: LazyLock<Samples> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let script = "git init -q . && mkdir -p a/b && for n in 1 2 3 4 5 6 7 8; do seq $n 400 > a/f$n; done \
        && ln -s /nowhere a/link && printf x > a/b/run && chmod +x a/b/run && git add -A && git commit -q -m one \
        && cp .git/index i2 && git update-index --index-version 4 && cp .git/index i4 && rm -f i2.lock \
        && seq 1 401 > a/f1 && git add a && git commit -q -m 'two' && git tag -a -m note t && git repack -q -a -d -f \
        && git cat-file tree HEAD^{tree} > t1 && git cat-file tree HEAD:a > t2 && git cat-file commit HEAD > c1 \
        && git cat-file commit HEAD~1 > c2 && git cat-file tag t > c3 \
        && cp .git/objects/pack/*.pack p.pack && cp .git/objects/pack/*.idx p.idx";
    let run = Run::new("sh", dir.path()).args(["-c", script]).variable("PATH", PATH);
    let identity = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
    let run = identity.iter().fold(run, |run, name| run.variable(name, "fuzz@example.invalid"));
    let _made = run.variable("HOME", dir.path()).ended().expect_code(0);
    let read = |name: &str| fs_err::read(dir.path().join(name)).unwrap();
    Samples {
        trees: vec![read("t1"), read("t2")],
        commits: vec![read("c1"), read("c2"), read("c3")],
        indexes: vec![read("i2"), read("i4")],
        pack: read("p.pack"),
        pack_index: read("p.idx"),
    }
});

/// A checksum over everything before it, as all of git's files end with.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let content = &bytes[..bytes.len().saturating_sub(HASH.bytes())];
    let mut hasher = Hasher::checksum(HASH);
    hasher.update(content);
    [content, hasher.finish().unwrap().as_bytes()].concat()
}

#[test]
fn trees() {
    fuzz("tree", &SAMPLES.trees, |bytes| {
        let _all = tree::references(HASH, bytes).count();
        if let Ok(tree) = tree::Tree::parse(HASH, bytes) {
            // Old modes are read and not written, so the bytes need not be the same.
            assert_eq!(tree::Tree::parse(HASH, &tree.encode()), Ok(tree));
        }
    });
}

#[test]
fn commits_and_tags() {
    fuzz("commit", &SAMPLES.commits, |bytes| {
        let (_references, _target) = (commit::references(bytes).is_ok(), commit::tag_target(bytes).is_ok());
        if let Ok(commit) = commit::SnapshotCommit::parse(bytes) {
            assert_eq!(commit::SnapshotCommit::parse(&commit.encode()), Ok(commit));
        }
    });
}

#[test]
fn indexes() {
    fuzz("index", &SAMPLES.indexes, |bytes| {
        if let Ok(index) = Index::parse(&sealed(bytes), HASH, 0) {
            for entry in index.entries() {
                assert!(index.find(entry.path).is_some() || !entry.path.is_empty());
            }
        }
    });
}

#[test]
fn packs() {
    let dir = tempfile::tempdir().unwrap();
    let (path, index) = (dir.path().join("p.pack"), dir.path().join("p.idx"));
    fs_err::write(&index, &SAMPLES.pack_index).unwrap();
    let trailer = &SAMPLES.pack[SAMPLES.pack.len() - HASH.bytes()..];
    fuzz("pack", std::slice::from_ref(&SAMPLES.pack), |bytes| {
        // The index knows the old checksum, so the pack keeps it: the objects are what is foreign.
        let content = &bytes[..bytes.len().saturating_sub(HASH.bytes())];
        fs_err::write(&path, [content, trailer].concat()).unwrap();
        read_all(&path);
    });
}

#[test]
fn indexes_of_packs() {
    let dir = tempfile::tempdir().unwrap();
    let (path, index) = (dir.path().join("p.pack"), dir.path().join("p.idx"));
    fs_err::write(&path, &SAMPLES.pack).unwrap();
    fuzz("pack index", std::slice::from_ref(&SAMPLES.pack_index), |bytes| {
        fs_err::write(&index, sealed(bytes)).unwrap();
        read_all(&path);
    });
}

/// Reads everything there is in a pack, by each way there is.
fn read_all(path: &Path) {
    let Ok(pack) = Pack::open(path, HASH) else { return };
    let cache = BaseCache::default();
    for place in pack.places().unwrap_or_default() {
        let _header = pack.header(place.offset);
        let _object = pack.object(place.offset, &cache);
    }
    drop(verify(&pack));
}

#[test]
fn manifests() {
    let sample = b"d 0750 dir user.a=b\nf 4755 file with\\x20space security.x=\\x00\nl 0777 link\n".to_vec();
    fuzz("manifest", &[sample, b"f 0600 a\n".to_vec()], |bytes| {
        if let Ok(records) = manifest::parse(bytes) {
            assert_eq!(manifest::encode(&records), bytes, "there is one way to write it");
        }
    });
}

#[test]
fn recorded_times() {
    fuzz("times", &[b"-5 a\n1700000000123456789 b\\x0a\n".to_vec(), b"0 a\n".to_vec()], |bytes| {
        if let Ok(found) = times::parse(bytes) {
            assert_eq!(times::encode(&found), bytes, "there is one way to write it");
        }
    });
}
