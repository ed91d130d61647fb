//! Wildcards in names and paths, matched in time proportional to pattern times text.
//!
//! A pattern is a row of steps. All places in it that the text read so far can lead to are carried along together: there is
//! nothing to go back to, and no pattern takes for ever. What stands before the first wildcard and after the last one is
//! compared before that, because most texts differ there.

mod bracket;
mod compile;
mod places;

use bracket::Set;
use places::Places;

/// What is special in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `*` stands for anything.
    Star,
    /// `*` stands for anything, `?` for one character.
    Name,
    /// `*` stands for anything without a slash, `**` for anything, `?` for one character but a slash.
    Path,
    /// As in an ignore file of git: bytes, `*`, `?`, brackets, and backslashes that make the next byte ordinary.
    GitName,
    /// The same, where a slash matches only a slash and what `**` stands for.
    GitPath,
}

/// Whether the case of ASCII letters counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Counts,
    Ignored,
}

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wildcard {
    /// What a text must begin and end with.
    begins: Box<[u8]>,
    ends: Box<[u8]>,
    between: Between,
    case: Case,
}

/// What a text must have between its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Between {
    Nothing,
    Anything,
    Bytes(Box<[Step]>),
    Characters(Box<[Step]>),
    /// The pattern is malformed: no text matches.
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A byte or a character, as [`units`] numbers them.
    Unit(u32),
    /// One unit, whatever it is.
    One,
    /// One unit but a slash.
    OneFlat,
    Set(Box<Set>),
    /// Any number of units.
    Stars,
    /// Any number of units without slashes.
    Star,
    /// Before `**/`, which may stand for nothing at all: goes on here or behind it.
    MayPass,
}

impl Wildcard {
    pub fn new(pattern: &str, syntax: Syntax) -> Self {
        compile::compile(pattern.as_bytes(), syntax, Case::Counts)
    }

    /// One for which the case of ASCII letters does not count.
    pub fn ignoring_case(pattern: &str, syntax: Syntax) -> Self {
        compile::compile(pattern.as_bytes(), syntax, Case::Ignored)
    }

    /// A pattern of git's, which may be any bytes.
    pub(crate) fn of_git(pattern: &[u8], syntax: Syntax) -> Self {
        compile::compile(pattern, syntax, Case::Counts)
    }

    /// Whether the whole of a text matches.
    pub fn matches(&self, text: impl AsRef<[u8]>) -> bool {
        self.search(text.as_ref()).0
    }

    /// Whether the whole of a text matches, and how much work it was to find out: at most pattern times text.
    pub(crate) fn search(&self, text: &[u8]) -> (bool, usize) {
        let Some(text) = self.between(text) else { return (false, 1) };
        match &self.between {
            Between::Nothing => (text.is_empty(), 1),
            Between::Anything => (true, 1),
            Between::Never => (false, 1),
            Between::Bytes(steps) => search(steps, text.iter().copied().map(u32::from)),
            Between::Characters(steps) => search(steps, units(text).map(|unit| self.folded(unit))),
        }
    }

    /// What a text has between the ends that it must have.
    fn between<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        let length = text.len().checked_sub(self.begins.len() + self.ends.len())?;
        let (begins, rest) = text.split_at(self.begins.len());
        let (between, ends) = rest.split_at(length);
        let same = |one: &[u8], other: &[u8]| match self.case {
            Case::Counts => one == other,
            Case::Ignored => one.eq_ignore_ascii_case(other),
        };
        (same(ends, &self.ends) && same(begins, &self.begins)).then_some(between)
    }

    fn folded(&self, unit: u32) -> u32 {
        match (self.case, u8::try_from(unit)) {
            (Case::Ignored, Ok(byte)) => byte.to_ascii_lowercase().into(),
            _ => unit,
        }
    }
}

/// Whether a text matches a pattern that is used once. Patterns without a wildcard, and those of other beginnings, cost nothing.
pub fn matches(pattern: &str, text: &str, syntax: Syntax) -> bool {
    let plain = pattern.find(['*', '?', '[', '\\']).unwrap_or(pattern.len());
    let Some(rest) = text.strip_prefix(&pattern[..plain]) else { return false };
    match syntax {
        _ if plain == pattern.len() => rest.is_empty(),
        // What `**` means depends on what stands before it.
        Syntax::GitPath => Wildcard::new(pattern, syntax).matches(text),
        _ => Wildcard::new(&pattern[plain..], syntax).matches(rest),
    }
}

const SLASH: u32 = b'/' as u32;

/// What the bytes that are no part of a character are numbered from: there are fewer characters.
const NO_CHARACTER: u32 = 0x11_0000;

/// The characters of a text, and the bytes that are part of none.
fn units(text: &[u8]) -> impl Iterator<Item = u32> {
    text.utf8_chunks().flat_map(|chunk| {
        let characters = chunk.valid().chars().map(u32::from);
        characters.chain(chunk.invalid().iter().map(|byte| NO_CHARACTER + u32::from(*byte)))
    })
}

fn search(steps: &[Step], units: impl Iterator<Item = u32>) -> (bool, usize) {
    let mut places = Places::new(steps);
    let mut read = 1;
    for unit in units {
        if !places.read(unit) {
            return (false, steps.len() * read);
        }
        read += 1;
    }
    (places.is_at_end(), steps.len() * read)
}

#[cfg(test)]
mod tests;
