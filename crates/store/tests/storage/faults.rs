//! Processes that are killed, many at once, and disks that are full.
//!
//! The other processes are this very test executable, told what to do by a file `role` in its directory.

#![expect(clippy::disallowed_methods, reason = "a test starts itself again, and asks for programs it needs")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sandtable_store::fsck::{Depth, fsck};
use sandtable_store::full::is_read_only;
use sandtable_store::gc::{self, GcOptions, MOST_PACKS};
use sandtable_store::id::HashKind;
use sandtable_store::meta::Filter;
use sandtable_store::object::{ObjectKind, ReadObjects as _, WriteError, WriteObjects as _};
use sandtable_store::store::{Store, StoreError};

use crate::board::{Board, board, noise, remove, snapshot};
use crate::git::Repository;

/// Starts this executable in `dir`, where it does what `role` says.
fn start(dir: &Path, role: &str) -> Child {
    let place = dir.join(format!("at-{}", role.replace(' ', "-")));
    fs_err::create_dir_all(&place).unwrap();
    fs_err::write(place.join("role"), role).unwrap();
    command(&std::env::current_exe().unwrap(), &place).spawn().unwrap()
}

fn command(program: &Path, place: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", "faults::another_process", "--nocapture"]);
    command.current_dir(place).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

#[test]
fn another_process() {
    let Ok(role) = fs_err::read_to_string("role") else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let dir = Path::new("../store");
    match words[..] {
        ["writer", name, count] => write(&Store::open(dir).unwrap(), name, count.parse().unwrap()),
        ["endless", name] => write(&Store::open(dir).unwrap(), name, u32::MAX),
        ["collector"] => loop {
            collect(&Store::open(dir).unwrap());
        },
        ["filler"] => fill(),
        ["maker"] => make(),
        ["reader"] => read_only(),
        _ => panic!("no role is called `{role}`"),
    }
}

/// Makes snapshots, forgets what it made, makes them again.
fn write(store: &Store, name: &str, count: u32) {
    for number in 0..count {
        let own = format!("{name} {number}");
        let large = noise(u64::from(number % 5), 20_000);
        // What is told as a delta when packs are made compact.
        let alike = [&large[..5000], own.as_bytes()].concat();
        let files: [(&str, &[u8]); 3] = [("alike", &alike), ("own", own.as_bytes()), ("shared", &large)];
        snapshot(store, name, &files).unwrap();
        if number % 7 == 6 {
            gc::roll_up(store).unwrap();
        }
        if number % 10 == 9 {
            remove(store, name);
        }
    }
}

fn collect(store: &Store) {
    let options = GcOptions { wait: Duration::from_millis(200), copy_below: 80, ..GcOptions::default() };
    gc::collect(store, &options).unwrap();
    gc::compact(store, &options, &|_, _| {}).unwrap();
    gc::roll_up(store).unwrap();
}

fn assert_whole(dir: &Path) {
    let store = Store::open(dir).unwrap();
    let report = fsck(&store, Depth::Deep).unwrap();
    assert_eq!(report.faults, []);
    for (subject, head) in store.meta().heads().unwrap() {
        assert!(store.objects().read(&head.snapshot).is_ok(), "{subject}");
    }
}

fn operations(store: &Path) -> usize {
    Store::open(store).unwrap().meta().operations(&Filter::default()).unwrap().len()
}

fn assert_git_agrees(store: &Path) {
    let said = Repository::at(&store.join("git")).run(&["fsck", "--strict", "--full", "--no-dangling"], b"");
    assert_eq!(String::from_utf8(said).unwrap(), "");
}

#[test]
fn killed_at_any_moment() {
    let Board { store, dir } = board(HashKind::Sha1);
    snapshot(&store, "first", &[("a", b"x")]).unwrap();
    drop(store);
    let store = dir.path().join("store");
    for round in 0..20_u64 {
        let mut children = vec![
            start(dir.path(), "endless one"),
            start(dir.path(), "endless two"),
            start(dir.path(), "collector"),
        ];
        // They are well under way, and then it may be any moment.
        let begun = operations(&store);
        while operations(&store) < begun + 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(round * 37 % 160));
        for child in &mut children {
            child.kill().unwrap();
        }
        for child in children {
            let said = child.wait_with_output().unwrap().stderr;
            let said = String::from_utf8_lossy(&said);
            assert!(!said.contains("panicked"), "{said}");
        }
        assert_whole(&store);
        assert_eq!(fs_err::read_dir(store.join("tmp")).unwrap().count(), 0, "what the dead left is gone");
    }
    let opened = Store::open(&store).unwrap();
    snapshot(&opened, "one", &[("a", b"and on it goes")]).unwrap();
    collect(&opened);
    assert_whole(&store);
    assert_git_agrees(&store);
    let report = fsck(&opened, Depth::Fast).unwrap();
    assert_eq!(report.left_over, Vec::<String>::new());
}

#[test]
fn many_write_while_one_collects() {
    let Board { store, dir } = board(HashKind::Sha1);
    let mut children: Vec<Child> =
        (0..32).map(|number| start(dir.path(), &format!("writer w{number} 12"))).collect();
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        collect(&store);
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let heads = store.meta().heads().unwrap();
    assert_eq!(heads.len(), 32);
    for (subject, head) in heads {
        let tree = store.meta().snapshot(&head.snapshot).unwrap().tree;
        let tree = store.objects().read_kind(&tree, ObjectKind::Tree).unwrap();
        let tree = sandtable_store::object::Tree::parse(HashKind::Sha1, &tree).unwrap();
        let own = store.objects().read_kind(&tree.get(b"own").unwrap().id, ObjectKind::Blob).unwrap();
        assert_eq!(String::from_utf8(own).unwrap(), format!("{subject} 11"));
    }
    collect(&store);
    assert_whole(store.dir());
    assert_git_agrees(store.dir());
    let report = fsck(&store, Depth::Fast).unwrap();
    assert!(report.packs <= MOST_PACKS, "{}", report.packs);
}

#[test]
fn a_check_beside_all_the_others_finds_nothing() {
    let Board { store, dir } = board(HashKind::Sha1);
    snapshot(&store, "first", &[("a", b"x")]).unwrap();
    let mut children = ["endless one", "endless two", "collector"].map(|role| start(dir.path(), role));
    let begun = operations(store.dir());
    let mut wrong = Vec::new();
    // On a busy machine the others may need longer to begin.
    for round in 0..400 {
        if round >= 40 && operations(store.dir()) > begun + 20 {
            break;
        }
        let opened = Store::open(store.dir()).unwrap();
        wrong.extend(fsck(&opened, Depth::Fast).unwrap().faults.into_iter().map(|fault| (round, fault)));
    }
    let made = operations(store.dir()) - begun;
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(wrong, []);
    assert!(made > 20, "only {made} operations were made meanwhile");
    assert_whole(store.dir());
}

/// Fills a small disk, which only this process sees.
fn fill() {
    let store = Store::create(Path::new("disk/store"), "/s".as_ref(), HashKind::Sha1).unwrap();
    let usual = store.begin().unwrap().write(ObjectKind::Blob, b"x");
    assert!(matches!(usual, Err(WriteError::NoSpace { .. })), "that little is kept free: {usual:?}");
    store.set_kept_free(Some(0)).unwrap();
    let before = snapshot(&store, "s", &[("a", b"x")]).unwrap();
    for round in 0..2_u64 {
        let failed = (0..40).find_map(|number| {
            let large = noise(round * 100 + number, 300_000);
            let batch = store.begin().unwrap();
            batch.write(ObjectKind::Blob, &large).err().or_else(|| {
                let tree = crate::board::tree(&batch, &[("a", &large)]);
                let extra = crate::board::extra(&batch, "x");
                let done = store.commit(batch, &crate::board::draft("s", tree, extra));
                done.err().map(|error| match error {
                    StoreError::Write(error) => error,
                    other => WriteError::Io(std::io::Error::other(other)),
                })
            })
        });
        assert!(failed.is_some(), "the disk was never full");
        assert!(store.objects().read(&before.tree).is_ok());
    }
    // Not a byte is left: what is there can be held all the same, and nobody removes it meanwhile.
    let filling = fs_err::File::create("disk/fill").unwrap();
    let blocks = std::iter::repeat([1; 4096]);
    assert!(blocks.take(2000).try_for_each(|block| (&filling).write_all(&block)).is_err());
    let holder = Store::open(store.dir()).unwrap();
    assert_eq!(holder.hold(&before.id).unwrap(), before);
    drop(filling);
    fs_err::remove_file("disk/fill").unwrap();
    remove(&store, "s");
    let options = GcOptions { wait: Duration::ZERO, ..GcOptions::default() };
    gc::collect(&store, &options).unwrap();
    assert!(store.objects().read(&before.tree).is_ok());
    drop(holder);
    snapshot(&store, "s", &[("a", b"x")]).unwrap();
    drop(store);
    assert_whole(Path::new("disk/store"));
    let tmp = fs_err::read_dir("disk/store/tmp").unwrap().count();
    assert_eq!(tmp, 0, "nothing is left of what failed");
    // What is removed makes room again.
    let store = Store::open(Path::new("disk/store")).unwrap();
    remove(&store, "s");
    let freed = gc::collect(&store, &GcOptions::default()).unwrap().bytes_freed;
    assert!(freed > 2_000_000, "{freed}");
    snapshot(&store, "s", &[("a", &noise(1, 300_000))]).unwrap();
    assert_whole(Path::new("disk/store"));
    fs_err::write("done", "").unwrap();
}

fn make() {
    let store = Store::create(Path::new("disk/store"), "/s".as_ref(), HashKind::Sha1).unwrap();
    store.set_kept_free(Some(0)).unwrap();
    snapshot(&store, "s", &[("a", b"x")]).unwrap();
}

/// Looks at a store that cannot be written.
fn read_only() {
    let store = Store::open(Path::new("disk/store")).unwrap();
    let [made] = store.meta().snapshots().unwrap().try_into().unwrap();
    assert_eq!(store.hold(&made.id).unwrap(), made);
    assert!(store.objects().read(&made.tree).is_ok());
    assert_eq!(fsck(&store, Depth::Deep).unwrap().faults, []);
    let refused = snapshot(&store, "s", &[("a", b"y")]).unwrap_err();
    assert!(is_read_only(&refused), "{refused:?}");
    fs_err::write("done", "").unwrap();
}

#[test]
fn what_is_recorded_can_be_read_where_nothing_can_be_written() {
    let script = "\"$@\" && mount -o remount,ro disk && echo -n reader > role && exec \"$@\"";
    if let Err(said) = on_a_small_disk("maker", script) {
        eprintln!("skipped: no mount namespace can be had here: {said}");
    }
}

#[test]
fn a_full_disk_is_said_and_nothing_is_lost() {
    if let Err(said) = on_a_small_disk("filler", "exec \"$@\"") {
        eprintln!("skipped: no mount namespace can be had here: {said}");
    }
}

/// Starts this executable beside the mount of a small disk, as `script` says. An error where there can be no such mount.
fn on_a_small_disk(role: &str, script: &str) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("at-disk");
    fs_err::create_dir_all(place.join("disk")).unwrap();
    fs_err::write(place.join("role"), role).unwrap();
    // Only in a mount namespace of its own, as root of a user namespace where need be.
    let script = &format!("mount -t tmpfs -o size=4m none disk && {script}");
    let executable = std::env::current_exe().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(executable);
    command.args(["--exact", "faults::another_process", "--nocapture"]).current_dir(&place);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare failed") || said.contains("mount:") {
        return Err(said.into_owned());
    }
    assert!(output.status.success(), "{said}");
    assert!(place.join("done").exists());
    Ok(())
}

/// How often a process that makes `count` snapshots waits for a disk; `None` if that cannot be seen here.
fn waits(count: u32) -> Option<usize> {
    let Board { store, dir } = board(HashKind::Sha1);
    drop(store);
    let place = dir.path().join("at-traced");
    fs_err::create_dir_all(&place).unwrap();
    fs_err::write(place.join("role"), format!("writer w {count}")).unwrap();
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "trace", "-e", "trace=fsync,fdatasync,syncfs,sync,msync,sync_file_range"]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "faults::another_process"]).current_dir(&place);
    let output = command.output().ok()?;
    let trace = fs_err::read_to_string(place.join("trace")).ok()?;
    output.status.success().then(|| trace.lines().filter(|line| line.contains("sync")).count())
}

#[test]
fn a_snapshot_waits_for_the_disk_five_times_at_most() {
    let (Some(few), Some(many)) = (waits(1), waits(5)) else {
        eprintln!("skipped: no process can be traced here");
        return;
    };
    assert!(few <= 5, "the first snapshot waits {few} times");
    assert!(many - few <= 4 * 4, "four more wait {} times", many - few);
    assert!(many > few, "they do wait");
}
