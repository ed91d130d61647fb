//! Whether a snapshot that trusts the stat cache is ever another than one that reads everything.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use sandtable_store::dir::{open_named, stat_fd};
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::ignore::Rules;
use sandtable_store::object::{
    Memory, Object, ObjectKind, ReadError, ReadObjects, WriteError, WriteObjects, hash,
};
use sandtable_store::snapshot::{SnapshotOptions, SnapshotOutcome, Store, take};
use sandtable_store::statcache::{StatCache, Subject, Writer};
use sandtable_testkit::{counts, require};

/// Same-size edits within one tick of the clock, times set back, names exchanged; some of it while the walk that fills
/// the cache is under way. The next walk must see what one without a cache sees.
#[test]
fn a_warm_cache_never_misses_what_a_cold_one_sees() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..12 {
        fs_err::create_dir_all(dir.path().join(format!("d{}", number % 3))).unwrap();
        fs_err::write(file(dir.path(), number), "0000").unwrap();
    }
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    println!("seed {}", clock.as_nanos());
    let mut dice = Dice(u64::try_from(clock.as_nanos() & u128::from(u64::MAX)).unwrap() | 1);
    let memory = Memory::new(HashKind::Sha1);
    let mut cache: Option<StatCache> = None;
    let mut known = 0;
    for round in 0..counts::of("racy-rounds") {
        for _ in 0..dice.roll(4) {
            edit(dir.path(), &mut dice);
        }
        // With a writer beside it, which goes on until the walk is over.
        if dice.roll(2) == 0 {
            let stop = AtomicBool::new(false);
            cache = std::thread::scope(|scope| {
                let (stop, dir, seed) = (&stop, dir.path(), dice.next() | 1);
                scope.spawn(move || {
                    let mut dice = Dice(seed);
                    while !stop.load(Ordering::Relaxed) {
                        edit_content(dir, &mut dice);
                    }
                });
                let (_, new) = walk_with(&memory, dir, cache.as_ref());
                stop.store(true, Ordering::Relaxed);
                Some(new)
            });
        }
        let (outcome, new) = walk_with(&memory, dir.path(), cache.as_ref());
        let cold = snapshot(&memory, dir.path(), None, None);
        assert_eq!(outcome.state, cold.state, "round {round}");
        known += outcome.counts.files_known;
        cache = Some(new);
    }
    assert!(known > 0, "the cache was never of use");
}

/// Set in the process that is measured: it does nothing else.
const MEASURED: &str = "SANDTABLE_TEST_INSIDE";

#[test]
fn many_files_fit_into_little_memory() {
    if require::variable(MEASURED).is_none() {
        let name = "snapshots::many_files_fit_into_little_memory";
        return run_alone(name);
    }
    let dir = tempfile::tempdir().unwrap();
    let many = counts::of("many-files");
    // Half of them in one directory, the others in many.
    let flat = dir.path().join("flat");
    fs_err::create_dir(&flat).unwrap();
    for number in 0..many / 2 {
        fs_err::File::create(flat.join(format!("a file of number {number}"))).unwrap();
        if number % 100 == 0 {
            fs_err::create_dir_all(dir.path().join(format!("tree/{}/{number}", number % 7))).unwrap();
        }
        let below = dir.path().join(format!("tree/{}/{}", number / 100 * 100 % 7, number / 100 * 100));
        fs_err::File::create(below.join(format!("a file of number {number}"))).unwrap();
    }
    let before = peak();
    let sink = NamesOnly;
    let (cold, cache) = walk_with(&sink, dir.path(), None);
    let (warm, _) = walk_with(&sink, dir.path(), Some(&cache));
    assert_eq!(cold.counts.files_read, u64::from(many / 2 * 2));
    assert_eq!(warm.counts.files_known, cold.counts.files_read);
    assert_eq!(warm.state, cold.state);
    let after = peak();
    println!("{many} files: {before} kB before, {after} kB at most");
    assert!(after < 300_000, "{after} kB");
}

/// The most memory this process had so far, in kilobytes.
fn peak() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the test starts itself again")]
fn run_alone(test: &str) {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", test, "--nocapture"]).env(MEASURED, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Names objects and forgets them: what is measured is the walk.
struct NamesOnly;

impl WriteObjects for NamesOnly {
    fn hash_kind(&self) -> HashKind {
        HashKind::Sha1
    }

    fn write(&self, kind: ObjectKind, data: &[u8]) -> Result<ObjectId, WriteError> {
        Ok(hash(HashKind::Sha1, kind, data)?)
    }

    fn write_blob(&self, size: u64, content: &mut dyn std::io::Read) -> Result<ObjectId, WriteError> {
        let mut data = Vec::new();
        content.take(size).read_to_end(&mut data).map_err(WriteError::Content)?;
        self.write(ObjectKind::Blob, &data)
    }
}

impl ReadObjects for NamesOnly {
    fn read(&self, id: &ObjectId) -> Result<Object, ReadError> {
        Err(ReadError::Missing(*id))
    }

    fn stream(&self, id: &ObjectId, _: &mut dyn std::io::Write) -> Result<u64, ReadError> {
        Err(ReadError::Missing(*id))
    }

    fn header(&self, id: &ObjectId) -> Result<(ObjectKind, u64), ReadError> {
        Err(ReadError::Missing(*id))
    }

    fn contains(&self, _: &ObjectId) -> bool {
        true
    }
}

fn walk_with<T: ReadObjects + WriteObjects>(
    objects: &T,
    dir: &Path,
    cache: Option<&StatCache>,
) -> (SnapshotOutcome, StatCache) {
    let root = open_named(dir).unwrap();
    let subject = Subject::new(&stat_fd(root.as_fd()).unwrap());
    let file = tempfile::tempfile().unwrap();
    let generation = cache.map_or(0, StatCache::generation) + 1;
    let mut writer =
        Writer::new(Box::new(file.try_clone().unwrap()), HashKind::Sha1, subject, generation).unwrap();
    let outcome = snapshot(objects, dir, cache, Some(&mut writer));
    writer.finish().unwrap();
    (outcome, StatCache::open(file, HashKind::Sha1, subject).unwrap().with_packs(&[]))
}

fn snapshot<T: ReadObjects + WriteObjects>(
    objects: &T,
    dir: &Path,
    cache: Option<&StatCache>,
    writer: Option<&mut Writer>,
) -> SnapshotOutcome {
    let rules = Rules::default();
    let options = SnapshotOptions { cache, ..SnapshotOptions::all(&rules, &|| false) };
    take(open_named(dir).unwrap().as_fd(), Store { objects, sink: objects }, &options, writer).unwrap()
}

fn file(dir: &Path, number: usize) -> std::path::PathBuf {
    dir.join(format!("d{}/f{number}", number % 3))
}

/// Same inode, same size, as close to the last change as can be.
fn edit_content(dir: &Path, dice: &mut Dice) {
    let path = file(dir, dice.roll(12));
    if let Ok(file) = std::fs::OpenOptions::new().write(true).open(path) {
        file.write_all_at(&[b'0' + u8::try_from(dice.roll(10)).unwrap()], dice.roll(4) as u64).unwrap();
    }
}

fn edit(dir: &Path, dice: &mut Dice) {
    let (path, other) = (file(dir, dice.roll(12)), file(dir, dice.roll(12)));
    // Some of it is not possible where it is tried.
    match dice.roll(10) {
        0..=3 => edit_content(dir, dice),
        4 => {
            let modified = path.symlink_metadata().and_then(|meta| meta.modified());
            edit_content(dir, dice);
            if let (Ok(modified), Ok(file)) = (modified, std::fs::OpenOptions::new().write(true).open(&path))
            {
                file.set_modified(modified).unwrap();
            }
        }
        5 => drop(fs_err::rename(&path, &other)),
        6 => {
            drop(
                fs_err::copy(&path, dir.join("copy")).and_then(|_| fs_err::rename(dir.join("copy"), &other)),
            );
        }
        7 => drop(fs_err::set_permissions(&path, PermissionsExt::from_mode([0o600, 0o755][dice.roll(2)]))),
        8 => drop(fs_err::remove_file(&path).and_then(|()| symlink("0000", &path))),
        _ => drop(fs_err::remove_file(&path).and_then(|()| fs_err::write(&path, "1111"))),
    }
}

/// Random enough (xorshift).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn roll(&mut self, sides: usize) -> usize {
        usize::try_from(self.next() >> 11).unwrap() % sides
    }
}
