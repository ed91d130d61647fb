//! Sets of bytes in brackets, as git reads them.

/// Whether a slash in the text is more than a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slash {
    /// Only `**` goes over it.
    Separates,
    Ordinary,
}

/// A set of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set([u64; 4]);

/// What stands in brackets, and how long it is with the closing one.
pub(super) fn bracket(text: &[u8], slash: Slash) -> Option<(Set, usize)> {
    let mut at = 0;
    let negated = matches!(text.first(), Some(b'!' | b'^'));
    at += usize::from(negated);
    let mut set = Set([0; 4]);
    let mut before: Option<u8> = None;
    let start = at;
    loop {
        let byte = *text.get(at)?;
        at += 1;
        match byte {
            b']' if at - 1 > start => break,
            b'-' if before.is_some() && text.get(at).is_some_and(|next| *next != b']') => {
                let mut last = *text.get(at)?;
                at += 1;
                if last == b'\\' {
                    last = *text.get(at)?;
                    at += 1;
                }
                (before?..=last).for_each(|byte| set.add(byte));
                before = None;
            }
            b'[' if text.get(at) == Some(&b':') => match class(&text[at + 1..]) {
                Class::Known(is_in, length) => {
                    (0..=u8::MAX).filter(is_in).for_each(|byte| set.add(byte));
                    at += 1 + length;
                    before = None;
                }
                Class::None => {
                    set.add(b'[');
                    before = Some(b'[');
                }
                Class::Unknown => return None,
            },
            _ => {
                let byte = if byte == b'\\' {
                    at += 1;
                    *text.get(at - 1)?
                } else {
                    byte
                };
                set.add(byte);
                before = Some(byte);
            }
        }
    }
    if negated {
        set.0.iter_mut().for_each(|word| *word = !*word);
    }
    if slash == Slash::Separates {
        set.remove(b'/');
    }
    Some((set, at))
}

/// What follows `[:`.
enum Class {
    /// Its test, and how long it is with the closing `:]`.
    Known(fn(&u8) -> bool, usize),
    Unknown,
    /// It does not end: an ordinary bracket.
    None,
}

fn class(text: &[u8]) -> Class {
    let Some(end) = text.iter().position(|byte| *byte == b']') else { return Class::Unknown };
    let Some(name) = text[..end].strip_suffix(b":") else { return Class::None };
    let is_in: fn(&u8) -> bool = match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return Class::Unknown,
    };
    Class::Known(is_in, end + 1)
}

impl Set {
    fn add(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] &= !(1 << (byte & 63));
    }

    /// Whether a unit is one of these bytes.
    pub(super) fn has(&self, unit: u32) -> bool {
        u8::try_from(unit).is_ok_and(|byte| self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1)
    }
}
