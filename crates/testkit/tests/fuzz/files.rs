//! Archives.

use sandtable_testkit::archive::Tar;
use sandtable_testkit::fuzz::fuzz;
use sandtable_unpack::image::{Limits, Reader};

/// One of each kind of entry.
fn sample() -> Vec<u8> {
    let tar = Tar::default().directory("a").file("a/f", 0o755, b"content").symlink("a/l", "../x");
    tar.hard_link("h", "a/f").long(&"long/".repeat(40), b"x").finished()
}

/// With right checksums, else no broken header would get any further.
fn mended(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let (blocks, _) = bytes.as_chunks_mut::<512>();
    for block in blocks.iter_mut().filter(|block| block[257..].starts_with(b"ustar")) {
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    }
    bytes
}

#[test]
fn tar_archives() {
    fuzz("tar", &[sample()], |bytes| {
        let limits = Limits { bytes: 1 << 20, entries: 1000 };
        let bytes = mended(bytes);
        let mut reader = Reader::new(&bytes[..], limits);
        let mut entries = 0;
        while let Ok(Some(entry)) = reader.next_entry() {
            entries += 1;
            assert!(entries <= limits.entries, "the limit holds");
            let path = entry.path.as_bytes();
            assert!(!path.starts_with(b"/") && path.split(|byte| *byte == b'/').all(|part| part != b".."));
        }
    });
}
