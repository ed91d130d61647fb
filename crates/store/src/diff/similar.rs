//! How much of one file is in another: what a rename with an edit is recognised by.
//!
//! A file is a bag of lines (long ones cut in pieces, so that a file without line feeds counts too); two files are as
//! alike as the bytes of the lines they share are to the larger of both.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};

/// The longest piece that counts as one.
const PIECE: usize = 64;

/// From this share in percent on, a removed file and an added one are taken for the same.
pub(super) const ALIKE: u8 = 50;

/// What a file consists of, without order.
#[derive(Debug, Default)]
pub(super) struct Bag {
    /// Bytes by hash of the piece.
    pieces: HashMap<u64, u64>,
    size: u64,
}

impl Bag {
    pub(super) fn new(content: &[u8]) -> Self {
        let mut bag = Self { pieces: HashMap::new(), size: content.len() as u64 };
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            for piece in line.chunks(PIECE) {
                // Keys that never change: the answer must be the same tomorrow.
                let mut hasher = DefaultHasher::new();
                hasher.write(piece);
                *bag.pieces.entry(hasher.finish()).or_default() += piece.len() as u64;
            }
        }
        bag
    }

    /// How many different pieces it has.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The likeness in percent; empty files are like nothing.
    pub(super) fn likeness(&self, other: &Self) -> u8 {
        if !could_be_alike(self.size, other.size) {
            return 0;
        }
        let shared =
            |(piece, bytes): (&u64, &u64)| other.pieces.get(piece).map_or(0, |there| *bytes.min(there));
        let common: u64 = self.pieces.iter().map(shared).sum();
        u8::try_from(common.saturating_mul(100) / self.size.max(other.size)).unwrap_or(100)
    }
}

/// Whether sizes alone rule it out.
pub(super) fn could_be_alike(one: u64, two: u64) -> bool {
    let (small, large) = (one.min(two), one.max(two));
    large > 0 && small.saturating_mul(100) / large >= u64::from(ALIKE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_is_the_share_of_common_bytes() {
        let of = |one: &[u8], two: &[u8]| Bag::new(one).likeness(&Bag::new(two));
        assert_eq!(of(b"a\nb\nc\nd\n", b"d\na\nb\nX\n"), 75);
        assert_eq!(of(b"same\n", b"same\n"), 100);
        assert_eq!(of(b"", b""), 0);
        assert_eq!(of(b"a\n", b"a\nlonger line\n"), 0);
        let long = vec![b'x'; 1000];
        assert!(of(&long, &[&long[..], b"tail"].concat()) > 90);
    }
}
