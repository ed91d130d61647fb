//! Wildcards, matched in time proportional to pattern times text.
//!
//! The pattern is a row of steps; all places in it that the text read so far can lead to are carried along together. So
//! there is nothing to go back to, and no pattern that takes for ever.

use super::Effort;

/// Whether a slash in the text is more than a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slash {
    /// Only `**` goes over it.
    Separates,
    Ordinary,
}

/// A compiled pattern; one that cannot match anything has no steps.
#[derive(Clone, Debug)]
pub(super) struct Glob(Option<Box<[Step]>>);

#[derive(Clone, Debug)]
enum Step {
    Byte(u8),
    /// `?`
    One,
    Set(Box<Set>),
    /// Any number of bytes, without slashes.
    Star,
    /// Any number of bytes.
    Stars,
    /// Before `**/`, which may stand for nothing at all: goes on here or behind it.
    MayPass,
}

/// A set of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Set([u64; 4]);

impl Glob {
    pub(super) fn new(pattern: &[u8], slash: Slash) -> Self {
        Self(compile(pattern, slash).map(Vec::into_boxed_slice))
    }

    pub(super) fn matches(&self, text: &[u8], effort: &Effort) -> bool {
        let Some(steps) = self.0.as_ref().filter(|_| !effort.is_spent()) else { return false };
        let mut places = vec![false; steps.len() + 1];
        places[0] = true;
        reach(steps, &mut places);
        let mut next = vec![false; steps.len() + 1];
        for (read, byte) in text.iter().enumerate() {
            next.fill(false);
            for (at, step) in steps.iter().enumerate().filter(|(at, _)| places[*at]) {
                match step {
                    Step::Byte(wanted) => next[at + 1] |= wanted == byte,
                    Step::One => next[at + 1] |= *byte != b'/',
                    Step::Set(set) => next[at + 1] |= set.has(*byte),
                    Step::Star => next[at] |= *byte != b'/',
                    Step::Stars => next[at] = true,
                    Step::MayPass => {}
                }
            }
            reach(steps, &mut next);
            std::mem::swap(&mut places, &mut next);
            if !places.contains(&true) {
                effort.spend(steps.len() * (read + 1));
                return false;
            }
        }
        effort.spend(steps.len() * text.len());
        places[steps.len()]
    }
}

/// Adds the places that are reached without reading anything.
fn reach(steps: &[Step], places: &mut [bool]) {
    for (at, step) in steps.iter().enumerate() {
        if places[at] {
            match step {
                Step::Star | Step::Stars => places[at + 1] = true,
                Step::MayPass => {
                    places[at + 1] = true;
                    places[at + 3] = true;
                }
                _ => {}
            }
        }
    }
}

fn compile(pattern: &[u8], slash: Slash) -> Option<Vec<Step>> {
    let mut steps = Vec::with_capacity(pattern.len());
    let mut at = 0;
    while let Some(byte) = pattern.get(at) {
        at += 1;
        match byte {
            b'?' => steps.push(Step::One),
            b'*' => {
                let first = at - 1;
                at += pattern[at..].iter().take_while(|byte| **byte == b'*').count();
                star(pattern, first..at, slash, &mut steps);
            }
            b'[' => {
                let (set, length) = bracket(&pattern[at..], slash)?;
                at += length;
                steps.push(Step::Set(Box::new(set)));
            }
            b'\\' => {
                steps.push(Step::Byte(*pattern.get(at)?));
                at += 1;
            }
            byte => steps.push(Step::Byte(*byte)),
        }
    }
    Some(steps)
}

fn star(pattern: &[u8], stars: std::ops::Range<usize>, slash: Slash, steps: &mut Vec<Step>) {
    if slash == Slash::Ordinary {
        return steps.push(Step::Stars);
    }
    let after = &pattern[stars.end..];
    let begins = stars.start == 0 || pattern[stars.start - 1] == b'/';
    let ends = after.is_empty() || after.starts_with(b"/") || after.starts_with(b"\\/");
    if stars.len() == 1 || !begins || !ends {
        return steps.push(Step::Star);
    }
    if after.starts_with(b"/") {
        steps.push(Step::MayPass);
    }
    steps.push(Step::Stars);
}

/// What stands in brackets, and how long it is with the closing one.
fn bracket(text: &[u8], slash: Slash) -> Option<(Set, usize)> {
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

    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }
}
