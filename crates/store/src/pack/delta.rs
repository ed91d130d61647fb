//! Deltas: an object told as pieces of another and new bytes between them.

/// The sizes that a delta announces: of its base, and of what it makes.
pub(super) fn sizes(delta: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (base, rest) = number(delta)?;
    let (made, rest) = number(rest)?;
    Some((base, made, rest))
}

/// What `delta` makes of `base`; `None` if it does not fit it. Makes at most what it announced, which the caller
/// has found acceptable.
pub(super) fn apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let (expected, size, mut rest) = sizes(delta)?;
    if expected != base.len() as u64 {
        return None;
    }
    let size = usize::try_from(size).ok()?;
    let mut made = Vec::new();
    while let Some((order, after)) = rest.split_first() {
        rest = after;
        let piece = if order & 0x80 != 0 {
            let (offset, length);
            (offset, rest) = field(rest, order & 0x0f)?;
            (length, rest) = field(rest, order >> 4 & 0x07)?;
            let length = if length == 0 { 0x1_0000 } else { length };
            base.get(offset..offset.checked_add(length)?)?
        } else {
            // An order of zero is reserved.
            let piece;
            (piece, rest) = rest.split_at_checked(usize::from(*order)).filter(|_| *order != 0)?;
            piece
        };
        if made.len() + piece.len() > size {
            return None;
        }
        made.extend_from_slice(piece);
    }
    (made.len() == size).then_some(made)
}

/// A number whose bytes are there only where `mask` has a bit.
fn field(mut data: &[u8], mask: u8) -> Option<(usize, &[u8])> {
    let mut value = 0;
    for bit in (0..4).filter(|bit| mask >> bit & 1 != 0) {
        let (byte, rest) = data.split_first()?;
        value |= usize::from(*byte) << (8 * bit);
        data = rest;
    }
    Some((value, data))
}

fn number(mut data: &[u8]) -> Option<(u64, &[u8])> {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let (byte, rest) = data.split_first()?;
        data = rest;
        if shift > 56 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some((value, data));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_and_new_bytes() {
        let delta = [10, 8, 0x91, 2, 3, 2, b'x', b'y', 0x90, 3];
        assert_eq!(apply(b"0123456789", &delta).unwrap(), b"234xy012");
        assert!(apply(b"012345678", &delta).is_none(), "another base");
        for end in 0..delta.len() {
            assert!(apply(b"0123456789", &delta[..end]).is_none(), "{end}");
        }
        assert!(apply(b"", &[0, 0, 0]).is_none(), "the reserved order");
        assert!(apply(b"ab", &[2, 1, 0x90, 2]).is_none(), "more than announced");
        assert!(apply(b"ab", &[2, 2, 0x91, 1, 2]).is_none(), "beyond the base");
    }

    proptest! {
        #[test]
        fn never_more_than_announced(delta in prop::collection::vec(any::<u8>(), 0..80)) {
            let base = [b'x'; 40];
            if let Some(made) = apply(&base, &delta) {
                prop_assert_eq!(made.len() as u64, sizes(&delta).unwrap().1);
            }
        }
    }
}
