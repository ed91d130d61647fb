//! Bytes sorted into ASCII, which may steer the terminal, and the rest, which may not: control characters of
//! the upper set, written as one byte or as two, are taken out here.

/// One byte and what kind of byte it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Ascii(u8),
    Text(u8),
}

/// Where in a character the stream is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Text {
    /// A first byte that is held back, because with the next one it may be a control character.
    held: Option<u8>,
    /// How many bytes the character still has, and between which bounds the next one is.
    left: u8,
    bounds: (u8, u8),
}

/// The first byte of characters U+0080 to U+00BF.
const LATIN: u8 = 0xc2;

impl Text {
    /// Takes one byte; what may go on, in order.
    pub(super) fn take(&mut self, byte: u8) -> impl Iterator<Item = Unit> + use<> {
        let before = self.held.take();
        let now = match (before, byte) {
            (Some(_), 0x80..=0x9f) => return [None, None].into_iter().flatten(),
            (Some(_), 0xa0..=0xbf) => Some(Unit::Text(byte)),
            _ => self.fresh(byte),
        };
        [before.map(Unit::Text), now].into_iter().flatten()
    }

    fn fresh(&mut self, byte: u8) -> Option<Unit> {
        if self.left > 0 && (self.bounds.0..=self.bounds.1).contains(&byte) {
            self.left -= 1;
            self.bounds = (0x80, 0xbf);
            return Some(Unit::Text(byte));
        }
        self.left = 0;
        match byte {
            0..=0x7f => Some(Unit::Ascii(byte)),
            0x80..=0x9f => None,
            LATIN => {
                self.held = Some(byte);
                None
            }
            _ => {
                (self.left, self.bounds) = follow(byte);
                Some(Unit::Text(byte))
            }
        }
    }
}

/// How many bytes follow a first byte, and the bounds of the second: those that make a well-formed character.
/// Anything else a terminal may take for the start of something new, and so do we.
fn follow(first: u8) -> (u8, (u8, u8)) {
    match first {
        0xc3..=0xdf => (1, (0x80, 0xbf)),
        0xe0 => (2, (0xa0, 0xbf)),
        0xed => (2, (0x80, 0x9f)),
        0xe1..=0xef => (2, (0x80, 0xbf)),
        0xf0 => (3, (0x90, 0xbf)),
        0xf1..=0xf3 => (3, (0x80, 0xbf)),
        0xf4 => (3, (0x80, 0x8f)),
        _ => (0, (0, 0)),
    }
}
