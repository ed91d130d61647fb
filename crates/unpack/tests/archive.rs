//! Archives of every format are unpacked alike, and what is hostile in any of them is refused.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

#[path = "../../testkit/src/archive.rs"]
#[expect(unreachable_pub, dead_code, reason = "it is part of a library elsewhere")]
mod archive;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use archive::{Tar, gzip};
use flate2::write::DeflateEncoder;
use proptest::prelude::*;
use sandtable_store::RelPath;
use sandtable_store::dir::open_named;
use sandtable_unpack::archive::{Error, Limits, Options, Unpacked, unpack};
use tempfile::TempDir;

/// What the program `xz` made of an archive with `top/bin/tool` and `top/readme`.
const XZ: [&str; 5] = [
    "fd377a585a000004e6d6b4460200210116000000742fe5a3e027ff008e5d003a1bca632756a396a536fc62d2418d7e56",
    "ac7162045b531a557a071c5b541428be84c6f098dee192e21f4f40b94f7e5dd98184f7244a84366ba77cd6e1defe4c45",
    "bfaab5c7b1cba87d5cdb1f59ff61710b86726f9bed7ef6f8e842d4782930390a8e420a48e9ad28f755fee19dc828f6c6",
    "c1053917b75e10144117ff51b27e651c0388072deaa2ac88eebf9bcc1b000000d04d75d1f43f156e0001aa0180500000",
    "6e5757c7b1c467fb020000000004595a",
];

/// A directory with an archive in it, a directory to unpack into, and a file that must stay as it is.
struct World(TempDir);

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for name in ["outside", "into"] {
            fs_err::create_dir(place.path().join(name)).unwrap();
        }
        fs_err::write(place.path().join("outside/victim"), "as it was").unwrap();
        Self(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs_err::read_to_string(self.path("into").join(name)).unwrap()
    }

    fn unpack(&self, bytes: &[u8], options: &Options) -> Result<Unpacked, Error> {
        fs_err::write(self.path("archive"), bytes).unwrap();
        let file = fs_err::File::open(self.path("archive")).unwrap().into_file();
        let unpacked = unpack(file, open_named(&self.path("into")).unwrap(), options);
        assert_eq!(fs_err::read_to_string(self.path("outside/victim")).unwrap(), "as it was");
        assert_eq!(fs_err::read_dir(self.path("outside")).unwrap().count(), 1);
        unpacked
    }

    fn refuses(&self, bytes: &[u8]) -> String {
        self.unpack(bytes, &Options::default()).unwrap_err().to_string()
    }
}

/// One entry of a zip archive.
struct Zipped<'a> {
    name: &'a str,
    mode: u32,
    content: &'a [u8],
}

/// A zip archive whose entries are deflated.
fn zip(entries: &[Zipped<'_>]) -> Vec<u8> {
    let (mut bytes, mut list) = (Vec::new(), Vec::new());
    for entry in entries {
        let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(entry.content).unwrap();
        let packed = encoder.finish().unwrap();
        let mut crc = flate2::Crc::new();
        crc.update(entry.content);
        let at = u32::try_from(bytes.len()).unwrap();
        let mut common = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
        common.extend(crc.sum().to_le_bytes());
        common.extend(u32::try_from(packed.len()).unwrap().to_le_bytes());
        common.extend(u32::try_from(entry.content.len()).unwrap().to_le_bytes());
        common.extend(u16::try_from(entry.name.len()).unwrap().to_le_bytes());
        common.extend([0, 0]);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(entry.name.as_bytes());
        bytes.extend(&packed);
        list.extend(b"PK\x01\x02\x14\x03");
        list.extend(&common);
        list.extend([0; 6]);
        list.extend((entry.mode << 16).to_le_bytes());
        list.extend(at.to_le_bytes());
        list.extend(entry.name.as_bytes());
    }
    let (start, count) = (u32::try_from(bytes.len()).unwrap(), u16::try_from(entries.len()).unwrap());
    bytes.extend(&list);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    bytes.extend(u32::try_from(list.len()).unwrap().to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

/// A Debian package with these members.
fn deb(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in members {
        bytes.extend(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, content.len()).bytes(),
        );
        bytes.extend(*content);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

fn xz() -> Vec<u8> {
    let digits = XZ.concat();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn every_format_is_unpacked_alike() {
    let tar = Tar::default()
        .directory("top/")
        .file("top/bin/tool", 0o4755, b"program\n")
        .file("top/readme", 0o644, &b"words\n".repeat(50))
        .finished();
    let wheel = zip(&[
        Zipped { name: "top/bin/tool", mode: 0o100_755, content: b"program\n" },
        Zipped { name: "top/readme", mode: 0o100_644, content: &b"words\n".repeat(50) },
    ]);
    let package =
        |data: &[u8], name| deb(&[("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), (name, data)]);
    for (form, bytes) in [
        ("tar", tar.clone()),
        ("tar.gz", gzip(&tar)),
        ("tar.xz", xz()),
        ("tar.zst", zstd(&tar)),
        ("zip", wheel),
        ("deb with xz", package(&xz(), "data.tar.xz")),
        ("deb with zstd", package(&zstd(&tar), "data.tar.zst/")),
    ] {
        let world = World::new();
        let done = world
            .unpack(&bytes, &Options { strip: 1, ..Options::default() })
            .unwrap_or_else(|error| panic!("{form}: {error}"));
        assert_eq!((done.bytes, done.entries), (308, 2), "{form}");
        assert_eq!(
            (world.text("bin/tool").as_str(), world.text("readme").len()),
            ("program\n", 300),
            "{form}"
        );
        let mode = fs_err::metadata(world.path("into/bin/tool")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755, "{form}: writable for its owner, and no more than that");
    }
}

#[test]
fn only_what_is_asked_for() {
    let world = World::new();
    let tar =
        Tar::default().file("a/one", 0o644, b"1").file("ab", 0o644, b"2").file("c", 0o644, b"3").finished();
    let only = |name: &str| Options { only: vec![RelPath::new(name).unwrap()], ..Options::default() };
    world.unpack(&tar, &only("a")).unwrap();
    assert_eq!(world.text("a/one"), "1");
    assert!(!world.path("into/ab").exists() && !world.path("into/c").exists());
    assert!(world.unpack(&tar, &only("none")).unwrap_err().to_string().contains("`none`"));
}

#[test]
fn what_leads_out_is_refused_in_every_format() {
    let world = World::new();
    let outside = world.path("outside").to_str().unwrap().to_owned();
    let victim = format!("{outside}/victim");
    for name in ["../outside/victim", "a/../../outside/victim", &victim] {
        assert!(world.refuses(&Tar::default().file(name, 0o644, b"x").finished()).contains("entry"));
        let entry = Zipped { name, mode: 0o100_644, content: b"x" };
        assert!(world.refuses(&zip(&[entry])).contains("entry"), "{name}");
    }
    for to in ["../outside", &outside, "a/../../outside", "x/s/../../outside", "./../outside"] {
        let why = world.refuses(&Tar::default().symlink("link", to).finished());
        assert!(why.contains("leads out"), "{to}: {why}");
        let entry = Zipped { name: "link", mode: 0o120_777, content: to.as_bytes() };
        assert!(world.refuses(&zip(&[entry])).contains("leads out"), "{to}");
    }
    let through = Tar::default().directory("d/").symlink("s", "d").file("s/below", 0o644, b"x").finished();
    assert!(world.refuses(&through).contains("below a symbolic link"));
    let hard = Tar::default().hard_link("victim", "../outside/victim").finished();
    assert!(world.refuses(&hard).contains("leads out"));
}

/// A link up and down again is no way out; one through a link that leads up is.
#[test]
fn links_within_the_tree_are_kept() {
    let world = World::new();
    let tar = Tar::default().file("lib/x/real", 0o644, b"1").symlink("bin/link", "../lib/x/real").finished();
    world.unpack(&tar, &Options::default()).unwrap();
    assert_eq!(world.text("bin/link"), "1");
    let trick = Tar::default()
        .directory("x/y/")
        .symlink("x/y/s", "../..")
        .symlink("l", "x/y/s/../outside")
        .finished();
    assert!(world.refuses(&trick).contains("leads out"));
}

#[test]
fn devices_are_refused() {
    let world = World::new();
    let entry = Zipped { name: "pipe", mode: 0o010_644, content: b"" };
    assert!(world.refuses(&zip(&[entry])).contains("device"));
}

#[test]
fn what_grows_too_much_is_refused() {
    let world = World::new();
    let zeros = vec![0; 20 << 20];
    let bomb = gzip(&Tar::default().file("zeros", 0o644, &zeros).finished());
    assert!(bomb.len() < 1 << 20);
    assert!(world.refuses(&bomb).contains("too large"));
    let entry = Zipped { name: "zeros", mode: 0o100_644, content: &zeros };
    assert!(world.refuses(&zip(&[entry])).contains("too large"));
    let few = Options { limits: Limits { bytes: 10, entries: 1 }, ..Options::default() };
    let two = Tar::default().file("a", 0o644, b"x").file("b", 0o644, b"x").finished();
    assert!(world.unpack(&two, &few).unwrap_err().to_string().contains("1 entries"));
    let large = Tar::default().file("a", 0o644, b"more than ten").finished();
    assert!(world.unpack(&large, &few).unwrap_err().to_string().contains("10 bytes"));
}

#[test]
fn lies_of_a_zip_are_found() {
    let world = World::new();
    let good = zip(&[Zipped { name: "a", mode: 0o100_644, content: b"some content" }]);
    let list = good.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    assert!(world.refuses(&with(list + 24, 3)).contains("cannot be written"), "larger than the list says");
    assert!(world.refuses(&with(list + 16, good[list + 16] ^ 1)).contains("cannot be written"), "checksum");
    assert!(world.refuses(&with(list + 42, 9)).contains("not where the list says"));
    assert!(world.refuses(&with(list + 8, 1)).contains("encrypted"));
    for cut in 0..good.len() {
        world.refuses(&good[..cut]);
    }
}

#[test]
fn a_package_without_files_is_refused() {
    let world = World::new();
    assert!(world.refuses(&deb(&[("debian-binary", b"2.0\n")])).contains("data.tar"));
    assert!(world.refuses(&deb(&[("data.tar.bz2", b"BZh9....")])).contains("bzip2"));
    let cut = deb(&[("control.tar", &[0; 100])]);
    assert!(world.refuses(&cut[..100]).contains("damaged"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is flipped or cut: an answer, nothing outside touched, no endless reading.
    #[test]
    fn damage_is_survived(which in 0..4usize, flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in any::<prop::sample::Index>()) {
        let tar = Tar::default().file("d/a", 0o644, b"content").symlink("d/l", "a").hard_link("h", "d/a").finished();
        let mut bytes = match which {
            0 => zip(&[Zipped { name: "d/a", mode: 0o100_644, content: b"content" }]),
            1 => xz(),
            2 => zstd(&tar),
            _ => deb(&[("data.tar", &tar)]),
        };
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        let _either = World::new().unpack(&bytes, &Options::default());
    }
}
