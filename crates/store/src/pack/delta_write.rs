//! Making deltas: what an object has in common with another is told as pieces of that one.
//!
//! Most objects that are told as deltas are the next state of their base, so what both begin and end with is taken
//! first. What lies between is looked for in the base by blocks: a rolling hash finds at any place of the
//! object a block that stands at a round place of the base, and the piece is grown from there.

use std::sync::OnceLock;

/// What is found again at once; a shorter piece is hardly worth its order.
const BLOCK: usize = 16;
/// So many blocks of one hash are tried.
const TRIES: usize = 24;
/// A piece of this length is not compared with others.
const LONG: usize = 4 << 10;
/// Git reads no longer piece out of a pack of version 2.
const LONGEST: usize = 0x1_0000;
/// New bytes per order.
const NEW: usize = 0x7f;

/// An object that others may be told by.
#[derive(Debug)]
pub struct Base {
    data: Vec<u8>,
    /// Made when something is looked for that is neither at the start nor at the end.
    blocks: OnceLock<Blocks>,
}

impl Base {
    /// `data` must be shorter than a place in a delta can say, which is 4 GiB.
    pub fn new(data: Vec<u8>) -> Self {
        debug_assert!(u32::try_from(data.len()).is_ok());
        Self { data, blocks: OnceLock::new() }
    }

    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// About how much memory it takes, with its blocks.
    pub fn weight(&self) -> usize {
        self.data.len() + self.data.len() / 2
    }

    /// `target` told by this one in at most `most` bytes.
    pub fn delta(&self, target: &[u8], most: usize) -> Option<Vec<u8>> {
        let common = |length: usize| if length < BLOCK { 0 } else { length };
        let start = common(same_start(&self.data, target));
        let end = common(same_end(&self.data[start..], &target[start..]));
        let mut orders = Orders { bytes: Vec::with_capacity(64), most };
        orders.number(self.data.len());
        orders.number(target.len());
        orders.copy(0, start)?;
        self.between(&target[start..target.len() - end], &mut orders)?;
        orders.copy(self.data.len() - end, end)?;
        Some(orders.bytes)
    }

    fn between(&self, target: &[u8], orders: &mut Orders) -> Option<()> {
        // Up to here everything is told.
        let mut told = 0;
        let mut at = 0;
        let mut rolling = Rolling::at(target, 0);
        while let Some(hash) = rolling {
            let Some((place, length)) = self.piece(hash.0, &target[at..]) else {
                if !orders.has_room_for(at - told) {
                    return None;
                }
                rolling = hash.next(target, at);
                at += 1;
                continue;
            };
            let back = same_end(&self.data[..place], &target[told..at]);
            orders.new_bytes(&target[told..at - back])?;
            orders.copy(place - back, length + back)?;
            at += length;
            told = at;
            rolling = Rolling::at(target, at);
        }
        orders.new_bytes(&target[told..])
    }

    /// The longest piece that `target` starts with, where `hash` is that of its first block.
    fn piece(&self, hash: u32, target: &[u8]) -> Option<(usize, usize)> {
        let blocks = self.blocks.get_or_init(|| Blocks::of(&self.data));
        let mut best = None;
        let mut longest = BLOCK - 1;
        for place in blocks.places(hash).take(TRIES) {
            let length = same_start(&self.data[place..], target);
            if length > longest {
                (best, longest) = (Some((place, length)), length);
            }
            if length >= LONG {
                break;
            }
        }
        best
    }
}

/// The blocks at round places of a base, by hash.
#[derive(Debug)]
struct Blocks {
    /// The first block of each slot, counted from 1; 0 for none.
    slots: Vec<u32>,
    /// The next block of the same slot.
    next: Vec<u32>,
    shift: u32,
}

impl Blocks {
    fn of(data: &[u8]) -> Self {
        let count = data.len() / BLOCK;
        let bits = count.max(2).next_power_of_two().trailing_zeros();
        let shift = u32::BITS - bits;
        let (mut slots, mut next) = (vec![0_u32; 1 << bits], vec![0_u32; count]);
        let block = |index: usize| &data[index * BLOCK..(index + 1) * BLOCK];
        // Backwards, so that the first is found first: from there a piece can become the longest.
        for index in (0..count).rev() {
            let slot = &mut slots[slot(Rolling::of(block(index)).0, shift)];
            let number = u32::try_from(index + 1).expect("a base is less than 4 GiB");
            // Of a run of equal blocks one place is enough: the piece grows over the others.
            let follows = *slot == number + 1 && block(index) == block(index + 1);
            next[index] = if follows { next[index + 1] } else { *slot };
            *slot = number;
        }
        Self { slots, next, shift }
    }

    fn places(&self, hash: u32) -> impl Iterator<Item = usize> {
        let index = |number: u32| (number as usize).checked_sub(1);
        let first = index(self.slots[slot(hash, self.shift)]);
        std::iter::successors(first, move |at| index(self.next[*at])).map(|at| at * BLOCK)
    }
}

/// The upper bits say most, after a multiplication that mixes the lower ones in.
fn slot(hash: u32, shift: u32) -> usize {
    (hash.wrapping_mul(0x7feb_352d) >> shift) as usize
}

/// The hash of a block, which goes on byte by byte.
#[derive(Clone, Copy)]
struct Rolling(u32);

impl Rolling {
    const FACTOR: u32 = 0x0100_0193;
    /// What the first byte of a block was multiplied with, by the time the last came.
    const FIRST: u32 = {
        assert!(BLOCK == 16);
        Self::FACTOR.wrapping_pow(15)
    };

    fn of(block: &[u8]) -> Self {
        let step = |hash: u32, byte: &u8| hash.wrapping_mul(Self::FACTOR).wrapping_add(u32::from(*byte));
        Self(block.iter().fold(0, step))
    }

    /// Of the block at `at`, if there is a whole one.
    fn at(data: &[u8], at: usize) -> Option<Self> {
        data.get(at..at + BLOCK).map(Self::of)
    }

    /// Of the block after the one at `at`.
    fn next(self, data: &[u8], at: usize) -> Option<Self> {
        let new = data.get(at + BLOCK)?;
        let without = self.0.wrapping_sub(u32::from(data[at]).wrapping_mul(Self::FIRST));
        Some(Self(without.wrapping_mul(Self::FACTOR).wrapping_add(u32::from(*new))))
    }
}

/// A delta that is being written; `None` once it is too long.
struct Orders {
    bytes: Vec<u8>,
    most: usize,
}

impl Orders {
    fn has_room_for(&self, more: usize) -> bool {
        self.bytes.len() + more <= self.most
    }

    fn fits(&self) -> Option<()> {
        self.has_room_for(0).then_some(())
    }

    fn number(&mut self, mut value: usize) {
        while value > 0x7f {
            self.bytes.push(low(value) | 0x80);
            value >>= 7;
        }
        self.bytes.push(low(value));
    }

    fn new_bytes(&mut self, bytes: &[u8]) -> Option<()> {
        if !self.has_room_for(bytes.len()) {
            return None;
        }
        for piece in bytes.chunks(NEW) {
            self.bytes.push(low(piece.len()));
            self.bytes.extend_from_slice(piece);
        }
        self.fits()
    }

    fn copy(&mut self, mut place: usize, mut length: usize) -> Option<()> {
        while length > 0 {
            let piece = length.min(LONGEST);
            let order = self.bytes.len();
            self.bytes.push(0x80);
            self.field(order, (place, 0));
            // The longest is written as none at all.
            self.field(order, (piece % LONGEST, 4));
            place += piece;
            length -= piece;
            self.fits()?;
        }
        Some(())
    }

    /// Those bytes of a number that are not zero, and a bit in the order for each, from `bit` on.
    fn field(&mut self, order: usize, (value, bit): (usize, u32)) {
        for (index, byte) in (0..).zip(value.to_le_bytes()) {
            if byte != 0 {
                self.bytes.push(byte);
                self.bytes[order] |= 1 << (bit + index);
            }
        }
    }
}

/// The lowest seven bits.
fn low(value: usize) -> u8 {
    u8::try_from(value & 0x7f).expect("seven bits are less than a byte")
}

/// How many bytes both begin with.
fn same_start(one: &[u8], other: &[u8]) -> usize {
    const STEP: usize = 32;
    let steps = one.chunks_exact(STEP).zip(other.chunks_exact(STEP)).take_while(|(one, other)| one == other);
    let done = steps.count() * STEP;
    done + one[done..].iter().zip(&other[done..]).take_while(|(one, other)| one == other).count()
}

/// How many bytes both end with.
fn same_end(one: &[u8], other: &[u8]) -> usize {
    const STEP: usize = 32;
    let steps =
        one.rchunks_exact(STEP).zip(other.rchunks_exact(STEP)).take_while(|(one, other)| one == other);
    let done = steps.count() * STEP;
    let (one, other) = (&one[..one.len() - done], &other[..other.len() - done]);
    done + one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::delta::apply;
    use super::*;

    fn told(base: &[u8], target: &[u8]) -> Vec<u8> {
        let delta = Base::new(base.to_vec()).delta(target, usize::MAX).unwrap();
        assert_eq!(apply(base, &delta).as_deref(), Some(target));
        delta
    }

    /// Bytes of which no block is like another.
    fn noise(seed: u64, length: usize) -> Vec<u8> {
        let mut state = seed.wrapping_mul(2).wrapping_add(1);
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn what_is_there_costs_little() {
        let base = noise(1, 300_000);
        assert!(told(&base, &base).len() < 40, "the same");
        assert!(told(&base, &base[..250_000]).len() < 40, "cut off");
        assert!(told(&base, &[&base[..], b"more"].concat()).len() < 40, "added to");
        let moved = [&base[100_003..200_001], b"new", &base[5..90_000]].concat();
        assert!(told(&base, &moved).len() < 80, "pieces at other places");
        let changed = [&base[..1000], b"x", &base[1001..]].concat();
        assert!(told(&base, &changed).len() < 50, "one byte");
        assert!(told(&base, &noise(2, 1000)).len() > 1000, "nothing in common");
    }

    #[test]
    fn edges() {
        for (base, target) in [("", ""), ("", "a"), ("a", ""), ("0123456789abcdef", "0123456789abcdef")] {
            told(base.as_bytes(), target.as_bytes());
        }
        let same = vec![7; 1 << 17];
        assert!(told(&same, &same[..LONGEST]).len() < 12, "the longest piece");
        assert!(told(&same, &vec![7; 1 << 20]).len() < 120, "a run that is longer than the base");
        // What is not at either end is found in the base's only place, however often others repeat.
        let base = [&same[..], &noise(3, 64), &same[..]].concat();
        let target = [b"start".as_slice(), &noise(3, 64), b"end"].concat();
        assert!(told(&base, &target).len() < 40);
    }

    #[test]
    fn no_longer_than_asked() {
        let (base, target) = (noise(1, 5000), [&noise(1, 3000)[..], &noise(2, 500)].concat());
        let base = Base::new(base);
        let length = base.delta(&target, usize::MAX).unwrap().len();
        assert!(base.delta(&target, length).is_some());
        for most in 0..length {
            assert!(base.delta(&target, most).is_none(), "{most} of {length}");
        }
    }

    /// How something is changed: at which thousandth of its length, how much goes, what comes.
    type Edit = (usize, usize, Vec<u8>);

    fn edited(mut data: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
        for (part, gone, new) in edits {
            let at = data.len() * part / 1000;
            data.splice(at..(at + gone).min(data.len()), new.iter().copied());
        }
        data
    }

    proptest! {
        #[test]
        fn random_edits(
            seed: u64,
            length in 0_usize..20_000,
            edits in prop::collection::vec((0_usize..=1000, 0_usize..400, prop::collection::vec(any::<u8>(), 0..60)), 0..8),
        ) {
            let base = noise(seed, length);
            let target = edited(base.clone(), &edits);
            let delta = told(&base, &target);
            let new: usize = edits.iter().map(|(_, _, new)| new.len()).sum();
            // Around each edit less than two blocks may be lost, and an order is at most eight bytes.
            prop_assert!(delta.len() <= 16 + new + (edits.len() + 1) * 60, "{} bytes", delta.len());
        }

        #[test]
        fn few_different_bytes(
            base in prop::collection::vec(0_u8..3, 0..400),
            target in prop::collection::vec(0_u8..3, 0..400),
        ) {
            told(&base, &target);
        }
    }
}
