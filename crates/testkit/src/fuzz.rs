//! Broken input for parsers of foreign bytes, made from sound input. It runs on the stable toolchain and needs
//! nothing installed; in return it does not see which branches an input reached. So it starts from real files
//! of each format, breaks them in small ways, and leaves it to the caller to mend a checksum that would
//! otherwise refuse everything at once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::counts;
use crate::require::{say, variable};

/// Numbers that parsers get wrong.
const EDGES: [u64; 10] = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
/// What is kept of an input that grew.
const LONGEST: usize = 1 << 16;

/// A source of numbers that gives the same ones for the same seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Less than `end`; 0 if there is nothing below it.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.roll() % end).expect("it is less than a `usize`")
    }
}

/// Gives a target broken versions of its seeds, as many as the table says. Whatever panics is a failure, and
/// the input that did it is printed; `SANDTABLE_FUZZ_SEED` plays a run again. The long run looks for what is new, the
/// sampled one always does the same, so that it fails for a change and not for a day.
///
/// # Panics
/// If the target does.
pub fn fuzz(name: &str, seeds: &[Vec<u8>], target: impl Fn(&[u8])) {
    assert!(!seeds.is_empty(), "{name}: nothing to begin with");
    for seed in seeds {
        target(seed);
    }
    let seed = seed();
    let mut dice = Dice::new(seed);
    for round in 0..counts::of("fuzz-rounds") {
        let input = broken(seeds, &mut dice);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&input))) {
            say(&format!("{name}: seed {seed}, round {round}: {}", input.escape_ascii()));
            std::panic::resume_unwind(panic);
        }
    }
}

/// What the dice begin with in this run.
pub fn seed() -> u64 {
    let asked = variable("SANDTABLE_FUZZ_SEED").and_then(|text| text.parse().ok());
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs());
    asked.unwrap_or_else(|| if counts::is_long() { now() } else { 1 })
}

/// One of the seeds, broken in one to six places.
pub fn broken(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seeds[dice.below(seeds.len())].clone();
    for _ in 0..=dice.below(6) {
        break_once(&mut bytes, seeds, dice);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn break_once(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], dice: &mut Dice) {
    let (at, other) = (dice.below(bytes.len()), dice.below(bytes.len()));
    let (from, to) = (at.min(other), at.max(other));
    match dice.below(8) {
        _ if bytes.is_empty() => bytes.push(dice.roll().to_le_bytes()[0]),
        0 => bytes[at] ^= 1 << dice.below(8),
        1 => bytes[at] = dice.roll().to_le_bytes()[0],
        2 => edge(&mut bytes[at..], dice),
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(from..to.min(from + 64))),
        5 => {
            let piece = bytes[from..to.min(from + 64)].to_vec();
            bytes.splice(at..at, piece);
        }
        6 => {
            let donor = &seeds[dice.below(seeds.len())];
            let start = dice.below(donor.len());
            let piece = donor[start..donor.len().min(start + 64)].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => bytes.insert(at, dice.roll().to_le_bytes()[0]),
    }
}

/// Writes a number over the next one, two, four or eight bytes, in either order.
fn edge(bytes: &mut [u8], dice: &mut Dice) {
    let value = EDGES[dice.below(EDGES.len())];
    let width = (1 << dice.below(4)).min(bytes.len());
    let (big, little) = (value.to_be_bytes(), value.to_le_bytes());
    let digits = if dice.below(2) == 0 { &big[8 - width..] } else { &little[..width] };
    bytes[..width].copy_from_slice(digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_breaking_is_met_and_repeats_itself() {
        let seeds = [b"abcdefgh".to_vec(), Vec::new()];
        let run = |seed| {
            let mut dice = Dice::new(seed);
            (0..500).map(|_| broken(&seeds, &mut dice)).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        let found = run(7);
        assert!(found.iter().any(|bytes| bytes.len() > 8));
        assert!(found.iter().any(Vec::is_empty) || found.iter().any(|bytes| bytes.len() < 8));
        assert!(found.iter().any(|bytes| bytes.len() == 8 && bytes != b"abcdefgh"));
    }

    #[test]
    #[should_panic(expected = "found")]
    fn a_parser_that_panics_is_found() {
        fuzz("test", &[b"abc".to_vec()], |bytes| assert!(bytes.first() != Some(&b'b'), "found"));
    }
}
