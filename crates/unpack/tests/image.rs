//! Images from anywhere: what is well-formed is unpacked, what is hostile is refused, and nothing outside the
//! directory of images is ever touched.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

#[path = "../../testkit/src/archive.rs"]
#[expect(unreachable_pub, reason = "it is part of a library elsewhere")]
mod archive;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use archive::{Files, Header, Tar, gzip, layout, write_layout};
use proptest::prelude::*;
use sandtable_unpack::image::{Content, Error, Images, Limits, Reader};
use tempfile::TempDir;

/// A directory with an archive or layout in it, a place for images, and a file that must stay as it is.
struct World {
    place: TempDir,
    limits: Limits,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs_err::create_dir(place.path().join("outside")).unwrap();
        fs_err::write(place.path().join("outside/victim"), "as it was").unwrap();
        Self { place, limits: Limits { bytes: 1 << 20, entries: 1000 } }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn images(&self) -> Images<'_> {
        Images::new(self.path("images"), self.limits)
    }

    fn unpack(&self, bytes: &[u8]) -> Result<PathBuf, Error> {
        fs_err::write(self.path("image.tar"), bytes).unwrap();
        self.images().unpacked(&self.path("image.tar")).map(|kept| kept.root)
    }

    /// Unpacks it again; cancelled after this number of queries.
    fn unpack_until(&self, times: usize) -> Result<PathBuf, Error> {
        let asked = std::cell::Cell::new(0);
        let cancelled = || {
            asked.set(asked.get() + 1);
            asked.get() > times
        };
        self.images().unless(&cancelled).unpacked(&self.path("image.tar")).map(|kept| kept.root)
    }

    /// That the archive is refused, that nothing is left of it, and that nobody else lost anything.
    fn refuses(&self, bytes: &[u8]) -> String {
        let error = self.unpack(bytes).unwrap_err();
        assert_eq!(fs_err::read_to_string(self.path("outside/victim")).unwrap(), "as it was");
        assert_eq!(names(&self.path("outside")), ["victim"]);
        let left = names(&self.path("images"));
        assert!(left.iter().all(|name| name == "known" || name.contains(".lock")), "{left:?}");
        assert!(names(&self.path("images/known")).is_empty());
        error.to_string()
    }
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs_err::read_dir(path)
        .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
        .unwrap_or_default();
    names.sort();
    names
}

fn text(path: &Path) -> String {
    fs_err::read_to_string(path).unwrap()
}

#[test]
fn an_archive_becomes_a_directory_once() {
    let world = World::new();
    let long = format!("{}/deep", "long-name-".repeat(20));
    let bytes = Tar::default()
        .directory("./")
        .directory("./bin/")
        .file("./bin/tool", 0o4755, b"program")
        .symlink("sbin", "bin")
        .hard_link("bin/other", "bin/tool")
        .file("no/parent/listed", 0o600, b"x")
        .long(&long, b"deep")
        .entry(Header { name: b"dev/null", kind: b'3', mode: 0o666, size: 0, link: b"" }, b"")
        .finished();
    for (bytes, form) in [(bytes.clone(), "plain"), (gzip(&bytes), "gzip")] {
        let root = world.unpack(&bytes).unwrap();
        assert_eq!(text(&root.join("sbin/tool")), "program", "{form}");
        assert_eq!(text(&root.join("bin/other")), "program");
        assert_eq!(text(&root.join(&long)), "deep");
        assert_eq!(text(&root.join("no/parent/listed")), "x");
        assert!(!root.join("dev/null").exists());
        let mode = |path: &str| fs_err::metadata(root.join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("bin/tool"), mode("bin")), (0o555, 0o555), "neither set-uid nor writable");
        assert_eq!(world.unpack(&bytes).unwrap(), root, "the same image again");
    }
    assert_eq!(world.images().unpacked(&world.path("image.tar")).unwrap().meta.skipped, ["dev/null"]);
}

#[test]
fn what_was_unpacked_is_not_unpacked_again() {
    let world = World::new();
    let root = world.unpack(&Tar::default().file("a", 0o644, b"1").finished()).unwrap();
    let before = fs_err::metadata(&root).unwrap().modified().unwrap();
    let again = world.images().unpacked(&world.path("image.tar")).unwrap();
    assert_eq!((&again.root, fs_err::metadata(&root).unwrap().modified().unwrap()), (&root, before));
    assert_ne!(world.unpack(&Tar::default().file("a", 0o644, b"2").finished()).unwrap(), root);
}

#[test]
fn unpacking_that_is_cancelled_at_any_moment_leaves_nothing() {
    let world = World::new();
    let bytes = Tar::default().file("usr/a", 0o644, b"1").file("usr/b", 0o644, b"2").finished();
    fs_err::write(world.path("image.tar"), gzip(&bytes)).unwrap();
    let mut times = 0;
    let root = loop {
        match world.unpack_until(times) {
            Ok(root) => break root,
            Err(error) => assert!(matches!(error, Error::Cancelled), "{error:?}"),
        }
        let left = names(&world.path("images"));
        assert!(left.iter().all(|name| name == "known" || name.contains(".lock")), "{left:?}");
        times += 1;
    };
    assert_eq!((text(&root.join("usr/a")), text(&root.join("usr/b"))), ("1".to_owned(), "2".to_owned()));
    assert!(times > 4, "it was asked {times} times only");
}

#[test]
fn a_name_that_leads_outside_is_refused() {
    let world = World::new();
    let outside = world.path("outside/victim");
    let absolute = outside.to_str().unwrap();
    let cases = [
        Tar::default().file("../outside/victim", 0o644, b"x"),
        Tar::default().file("a/../../outside/victim", 0o644, b"x"),
        Tar::default().file(absolute, 0o644, b"x"),
        Tar::default().long(&format!("a/../{}", "../".repeat(40)), b"x"),
        Tar::default().directory("../outside/more"),
        Tar::default().symlink("../outside/link", "/"),
        Tar::default().symlink("a", "../../outside").file("a/victim", 0o644, b"x"),
        Tar::default().symlink("a", world.path("outside").to_str().unwrap()).file("a/new", 0o644, b"x"),
        Tar::default().symlink("a", "../../outside").directory("a/new"),
        Tar::default().symlink("a", "../../outside").symlink("a/new", "/"),
        Tar::default().symlink("a", "../../outside").hard_link("b", "a/victim"),
        Tar::default().symlink("a", absolute).hard_link("b", "a"),
        Tar::default().hard_link("b", "../outside/victim"),
        Tar::default().hard_link("b", absolute),
        Tar::default().hard_link("b", "b"),
        Tar::default().directory("d").hard_link("b", "d"),
        Tar::default().file("f", 0o644, b"x").file("f/below", 0o644, b"x"),
        Tar::default().symlink(".", "/"),
    ];
    for (index, tar) in cases.into_iter().enumerate() {
        let said = world.refuses(&tar.finished());
        assert!(said.starts_with("entry `"), "case {index}: {said}");
    }
}

#[test]
fn a_file_in_the_place_of_a_link_does_not_follow_it() {
    let world = World::new();
    let absolute = world.path("outside/victim");
    let tar = Tar::default().symlink("a", absolute.to_str().unwrap()).file("a", 0o644, b"own");
    let root = world.unpack(&tar.finished()).unwrap();
    assert_eq!(text(&root.join("a")), "own");
    let tar = Tar::default().symlink("a", "../../outside").directory("a").file("a/victim", 0o644, b"own");
    let root = world.unpack(&tar.finished()).unwrap();
    assert_eq!((text(&root.join("a/victim")), text(&absolute)), ("own".to_owned(), "as it was".to_owned()));
}

#[test]
fn special_files_and_odd_kinds_are_refused() {
    let world = World::new();
    for kind in [b'3', b'4', b'6', b'S', b'D', b'Q'] {
        let header = Header { name: b"etc/thing", kind, mode: 0o666, size: 0, link: b"" };
        let said = world.refuses(&Tar::default().entry(header, b"").finished());
        assert!(said.starts_with("entry `etc/thing`"), "{said}");
    }
    let record = b"31 GNU.sparse.realsize=1048576\n";
    let header = Header { name: b"x", kind: b'x', mode: 0, size: record.len() as u64, link: b"" };
    assert!(
        world
            .refuses(&Tar::default().entry(header, record).file("f", 0o644, b"").finished())
            .contains("sparse")
    );
}

#[test]
fn a_claim_is_refused_before_a_byte_is_written() {
    let world = World::new();
    for size in [1 << 21, 1 << 40, u64::MAX] {
        let header = Header { name: b"huge", kind: b'0', mode: 0o644, size, link: b"" };
        let said = world.refuses(&Tar::default().entry(header, b"").finished());
        assert!(said.contains("too large"), "{said}");
    }
    let header = Header { name: b"x", kind: b'x', mode: 0o644, size: 1 << 30, link: b"" };
    assert!(world.refuses(&Tar::default().entry(header, b"").finished()).contains("too long"));
    let many = (0..1001).fold(Tar::default(), |tar, index| tar.file(&format!("f{index}"), 0o644, b""));
    assert!(world.refuses(&many.finished()).contains("1000 entries"));
}

#[test]
fn a_damaged_archive_is_refused() {
    let world = World::new();
    let good = Tar::default().file("a", 0o644, &[7; 2000]).file("b", 0o644, b"x").finished();
    for cut in [0, 100, 512, 1000, 2560, 3000, good.len() - 1024] {
        assert!(world.refuses(&good[..cut]).contains("damaged"), "cut at {cut}");
    }
    let mut flipped = good.clone();
    flipped[3] ^= 1;
    assert!(world.refuses(&flipped).contains("checksum"));
    let squeezed = gzip(&good);
    world.refuses(&squeezed[..squeezed.len() / 2]);
    assert!(world.refuses(&[b"BZh9", &good[..]].concat()).contains("bzip2"));
    for magic in [&b"\x28\xb5\x2f\xfd"[..], b"\xfd7zXZ\0"] {
        world.refuses(&[magic, &good].concat());
    }
    let old = Tar::default().file("manifest.json", 0o644, b"[]").file("abc/layer.tar", 0o644, b"");
    assert!(world.refuses(&old.finished()).contains("docker save"));
}

#[test]
fn layers_cover_and_remove() {
    let world = World::new();
    let lower = Tar::default()
        .file("etc/kept", 0o644, b"lower")
        .file("etc/gone", 0o644, b"lower")
        .file("etc/changed", 0o644, b"lower")
        .file("opaque/old", 0o644, b"lower")
        .directory("tree")
        .file("tree/a/b", 0o644, b"lower")
        .symlink("lib", "etc");
    // The marks come after what the same layer brings, and must not remove it.
    let upper = Tar::default()
        .file("etc/changed", 0o644, b"upper")
        .file("opaque/new", 0o644, b"upper")
        .file("opaque/.wh..wh..opq", 0o644, b"")
        .file("etc/.wh.gone", 0o644, b"")
        .file("etc/.wh.never-there", 0o644, b"")
        .file("no/such/.wh.directory", 0o644, b"")
        .file(".wh.tree", 0o644, b"")
        .file(".wh..wh.plnk", 0o644, b"")
        .directory("lib")
        .file("lib/own", 0o644, b"upper");
    let files = layout(&[gzip(&lower.finished()), upper.finished()], &["PATH=/odd/bin:/bin", "LANG=C"]);
    write_layout(&world.path("layout"), &files);
    let kept = world.images().unpacked(&world.path("layout")).unwrap();
    let root = &kept.root;
    assert_eq!(text(&root.join("etc/kept")), "lower");
    assert_eq!(text(&root.join("etc/changed")), "upper");
    assert_eq!(names(&root.join("etc")), ["changed", "kept"]);
    assert_eq!(names(&root.join("opaque")), ["new"]);
    assert_eq!(names(&root.join("lib")), ["own"]);
    assert_eq!(names(root), ["etc", "lib", "opaque"]);
    assert_eq!(kept.meta.environment, ["PATH=/odd/bin:/bin", "LANG=C"]);

    // The same layout in an archive is the same image.
    let tar = files.iter().fold(Tar::default(), |tar, (name, bytes)| tar.file(name, 0o644, bytes));
    assert_eq!(world.unpack(&tar.finished()).unwrap(), kept.root);
    assert_eq!(names(&world.path("images")).iter().filter(|name| name.ends_with(".partial")).count(), 0);
}

#[test]
fn a_layout_is_what_its_digests_say() {
    let layer = || Tar::default().file("a", 0o644, b"1").finished();
    let spoil = |change: &dyn Fn(&mut Files)| {
        let world = World::new();
        let mut files = layout(&[layer(), gzip(&layer())], &[]);
        change(&mut files);
        write_layout(&world.path("layout"), &files);
        let said = world.images().unpacked(&world.path("layout")).unwrap_err().to_string();
        let left = names(&world.path("images"));
        assert!(left.iter().all(|name| name == "known" || name.contains(".lock")), "{left:?}");
        said
    };
    for blob in 0..4 {
        let said = spoil(&|files| *files[blob].1.last_mut().unwrap() ^= 1);
        assert!(said.contains("digest") || said.contains("damaged"), "blob {blob}: {said}");
        assert!(spoil(&|files| files[blob].1.push(0)).contains("digest"), "blob {blob}");
    }
    let replaced = |files: &mut Files, from: &str, to: &str| {
        let text = String::from_utf8(files[4].1.clone()).unwrap();
        assert!(text.contains(from));
        files[4].1 = text.replace(from, to).into_bytes();
    };
    assert!(spoil(&|files| replaced(files, "sha256:", "sha256:../../")).contains("no SHA-256"));
    assert!(
        spoil(&|files| replaced(files, "\"manifests\":[", "\"manifests\":[],\"x\":[")).contains("no image")
    );
    assert!(spoil(&|files| files[4].1 = b"{".to_vec()).contains("index.json"));
    assert!(
        spoil(&|files| replaced(files, "}]}", r#","platform":{"os":"linux","architecture":"s390x"}}]}"#))
            .contains("s390x")
    );
}

#[test]
fn a_blob_that_is_a_link_is_not_followed() {
    let world = World::new();
    let layer = Tar::default().file("a", 0o644, b"1").finished();
    let files = layout(std::slice::from_ref(&layer), &[]);
    write_layout(&world.path("layout"), &files);
    let blob = world.path("layout").join(&files[0].0);
    fs_err::rename(&blob, world.path("outside-blob")).unwrap();
    fs_err::os::unix::fs::symlink(world.path("outside-blob"), &blob).unwrap();
    assert!(world.images().unpacked(&world.path("layout")).is_err());
}

#[test]
fn one_builder_at_a_time_and_leftovers_are_reaped() {
    let world = World::new();
    let bytes = Tar::default().file("a", 0o644, &vec![1; 100_000]).finished();
    fs_err::create_dir_all(world.path("images/sha256-dead.partial/root/x")).unwrap();
    fs_err::write(world.path("image.tar"), &bytes).unwrap();
    let roots: Vec<PathBuf> = std::thread::scope(|scope| {
        let build = || world.images().unpacked(&world.path("image.tar")).unwrap().root;
        let builders: Vec<_> = (0..8).map(|_| scope.spawn(build)).collect();
        builders.into_iter().map(|builder| builder.join().unwrap()).collect()
    });
    assert!(roots.iter().all(|root| *root == roots[0]));
    assert_eq!(fs_err::read(roots[0].join("a")).unwrap().len(), 100_000);
    assert!(!world.path("images/sha256-dead.partial").exists());
}

/// An entry that an attacker might write.
fn hostile_entry() -> impl Strategy<Value = (u8, String, String, Vec<u8>)> {
    let part =
        prop::sample::select(vec!["a", "b", "c", "..", ".", "", "dev", ".wh.a", ".wh...", ".wh..wh..opq"]);
    let name = prop::collection::vec(part, 1..5).prop_map(|parts| parts.join("/"));
    let kind = prop::sample::select(vec![b'0', b'1', b'2', b'2', b'5', b'5', b'3', b'7', b'x', b'L', b'S']);
    let target = prop_oneof![
        name.clone(),
        Just("/outside".to_owned()),
        Just("../../outside".to_owned()),
        Just("../../../outside/victim".to_owned())
    ];
    (kind, name, target, prop::collection::vec(any::<u8>(), 0..40))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the entries are, unpacking ends and touches nothing outside.
    #[test]
    fn no_archive_gets_out(entries in prop::collection::vec(hostile_entry(), 1..12), layered in any::<bool>()) {
        let world = World::new();
        let tar = entries.iter().fold(Tar::default(), |tar, (kind, name, target, content)| {
            let size = if matches!(kind, b'0' | b'7' | b'x' | b'L') { content.len() as u64 } else { 0 };
            let content = &content[..usize::try_from(size).unwrap()];
            tar.entry(Header { name: name.as_bytes(), kind: *kind, mode: 0o7777, size, link: target.as_bytes() }, content)
        });
        let lower = Tar::default().symlink("b", "../../outside").file("a/x", 0o644, b"1");
        if layered {
            write_layout(&world.path("layout"), &layout(&[lower.finished(), tar.finished()], &[]));
            let _either = world.images().unpacked(&world.path("layout"));
        } else {
            let _either = world.unpack(&tar.finished());
        }
        prop_assert_eq!(text(&world.path("outside/victim")), "as it was");
        prop_assert_eq!(names(&world.path("outside")), ["victim"]);
        let victim = std::os::unix::fs::MetadataExt::nlink(&fs_err::metadata(world.path("outside/victim")).unwrap());
        prop_assert_eq!(victim, 1);
        let expected = if layered { vec!["images", "layout", "outside"] } else { vec!["image.tar", "images", "outside"] };
        prop_assert_eq!(names(world.place.path()), expected);
    }

    /// A layout with one byte changed is refused, unless the byte meant nothing; never is anything else unpacked.
    #[test]
    fn a_changed_layout_is_noticed(which in 0_usize..5, at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let world = World::new();
        let layer = Tar::default().file("a", 0o644, b"1").symlink("b", "a").finished();
        let mut files = layout(&[layer.clone(), gzip(&layer)], &["PATH=/bin"]);
        write_layout(&world.path("layout"), &files);
        let whole = world.images().unpacked(&world.path("layout")).unwrap();
        let (name, bytes) = &mut files[which];
        let place = at.index(bytes.len());
        prop_assume!(bytes[place] != value);
        bytes[place] = value;
        let name = name.clone();
        let other = World::new();
        write_layout(&other.path("layout"), &files);
        if let Ok(kept) = other.images().unpacked(&other.path("layout")) {
            prop_assert_eq!(name, "index.json");
            prop_assert_eq!(kept.digest, whole.digest);
            prop_assert_eq!(text(&kept.root.join("a")), "1");
        } else {
            let left = names(&other.path("images"));
            prop_assert!(left.iter().all(|name| name == "known" || name.contains(".lock")), "{:?}", left);
        }
    }

    /// Any bytes are read to an end or an error, and what was promised about entries holds.
    #[test]
    fn any_bytes_are_survived(
        bytes in prop::collection::vec(any::<u8>(), 0..4096),
        flips in prop::collection::vec((0_usize..3000, any::<u8>()), 0..6),
        real in any::<bool>(),
    ) {
        let mut bytes = if real {
            Tar::default().file("a", 0o644, &[3; 600]).long(&"n".repeat(150), b"x").symlink("s", "t").finished()
        } else {
            bytes
        };
        for (at, value) in flips {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        let limits = Limits { bytes: 10_000, entries: 50 };
        let mut reader = Reader::new(&bytes[..], limits);
        let mut total = 0;
        while let Ok(Some(entry)) = reader.next_entry() {
            prop_assert!(entry.path.components().all(|part| part != b".." && part != b"."));
            if let Content::File { size } = entry.content {
                total += size;
            }
        }
        prop_assert!(total <= limits.bytes);
    }
}
