//! Whether git may have changed a file's bytes on the way into its object store.
//!
//! Line ends, keywords, encodings and filters make a blob differ from the file. This does not work out what git would do;
//! it works out where git would certainly do nothing, and errs on the other side: a rule that is overruled by
//! a later one still counts, and so does one that is not understood.

use std::sync::Arc;

use crate::ignore::{Effort, EntryKind, Pattern};

/// The name of the file with the attributes of a directory.
pub const FILE: &[u8] = b".gitattributes";

/// A larger file is taken to convert everything.
pub const FILE_LIMIT: u64 = 1 << 20;

/// More rules than this are taken to convert everything.
const RULES: usize = 50_000;

/// What may have happened to the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conversion {
    #[default]
    None,
    /// Line ends only, which makes a blob shorter or leaves it as it is: of equal size means equal.
    LineEnds,
    Anything,
}

/// The attributes in force in one directory.
#[derive(Clone, Debug, Default)]
pub struct Conversions {
    everywhere: Conversion,
    level: Option<Arc<Level>>,
}

#[derive(Debug)]
struct Level {
    above: Option<Arc<Level>>,
    base: usize,
    rules: Vec<(Pattern, Conversion)>,
    /// Names of groups of attributes, as `[attr]` makes them.
    groups: Vec<(Vec<u8>, Conversion)>,
    count: usize,
    effort: Arc<Effort>,
}

impl Conversions {
    /// What git's configuration does to every file.
    pub const fn everywhere(conversion: Conversion) -> Self {
        Self { everywhere: conversion, level: None }
    }

    /// These and those in `text`, which is the file of the directory `base`: a path with a slash at its end, or nothing for
    /// the root.
    #[must_use]
    pub fn and(&self, text: &[u8], base: &[u8]) -> Self {
        let above = self.level.clone();
        let effort = above.as_ref().map_or_else(Arc::default, |level| Arc::clone(&level.effort));
        let (rules, groups) = (Vec::new(), Vec::new());
        let mut level = Level { count: 0, above, base: base.len(), rules, groups, effort };
        let mut everywhere = self.everywhere;
        for line in text.split(|byte| *byte == b'\n') {
            everywhere = everywhere.max(level.line(line.trim_ascii()));
        }
        if level.rules.is_empty() && level.groups.is_empty() {
            return Self { everywhere, level: self.level.clone() };
        }
        level.count = level.rules.len() + level.above.as_ref().map_or(0, |above| above.count);
        if level.count > RULES {
            return Self { everywhere: Conversion::Anything, level: None };
        }
        Self { everywhere, level: Some(Arc::new(level)) }
    }

    /// What may have happened to the file at `path`.
    pub fn of(&self, path: &[u8]) -> Conversion {
        let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let mut worst = self.everywhere;
        let mut level = self.level.as_ref();
        while let Some(at) = level {
            at.effort.spend(at.rules.len());
            let names = (&path[at.base..], &path[start..]);
            for (pattern, conversion) in &at.rules {
                if *conversion > worst && pattern.matches(names, EntryKind::Other, &at.effort) {
                    worst = *conversion;
                }
            }
            if at.effort.is_spent() {
                return Conversion::Anything;
            }
            level = at.above.as_ref();
        }
        worst
    }
}

impl Level {
    /// Takes a line in. What it says where its pattern is not understood holds everywhere, and is given back.
    fn line(&mut self, line: &[u8]) -> Conversion {
        if line.is_empty() || line.starts_with(b"#") {
            return Conversion::None;
        }
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        if line.starts_with(b"\"") {
            // A name in quotes may have spaces, so any word may be an attribute.
            return words.map(|word| self.attribute(word)).max().unwrap_or_default();
        }
        let Some(first) = words.next() else { return Conversion::None };
        let conversion = words.map(|word| self.attribute(word)).max().unwrap_or_default();
        if conversion == Conversion::None {
            return Conversion::None;
        }
        if let Some(group) = first.strip_prefix(b"[attr]") {
            self.groups.push((group.to_vec(), conversion));
        } else if let Some(pattern) = Pattern::plain(first) {
            self.rules.push((pattern, conversion));
        }
        Conversion::None
    }

    fn attribute(&self, word: &[u8]) -> Conversion {
        let name = word.split(|byte| *byte == b'=').next().unwrap_or(word);
        match name {
            b"text" | b"eol" | b"crlf" => Conversion::LineEnds,
            b"filter" | b"ident" | b"working-tree-encoding" => Conversion::Anything,
            // What is taken away does nothing.
            [b'-' | b'!', ..] => Conversion::None,
            name => self.group(name),
        }
    }

    fn group(&self, name: &[u8]) -> Conversion {
        let mut level = Some(self);
        let mut worst = Conversion::None;
        while let Some(at) = level {
            let named =
                at.groups.iter().filter(|(group, _)| group == name).map(|(_, conversion)| *conversion);
            worst = named.fold(worst, Conversion::max);
            level = at.above.as_deref();
        }
        worst
    }
}

impl Drop for Level {
    /// One after the other: a foreign tree may have rules at ten thousand levels, too many for the stack.
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(mut level) = above.and_then(Arc::into_inner) {
            above = level.above.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_surely_left_alone_is_none() {
        let top = b"*.txt text\n*.psd filter=lfs diff=lfs\n*.png binary\n*.c -text\n[attr]big filter=x\n*.iso big\n";
        let all = Conversions::default().and(top, b"");
        for (path, expected) in [
            ("a/x.txt", Conversion::LineEnds),
            ("x.psd", Conversion::Anything),
            ("x.png", Conversion::None),
            ("x.c", Conversion::None),
            ("x.iso", Conversion::Anything),
            ("readme", Conversion::None),
        ] {
            assert_eq!(all.of(path.as_bytes()), expected, "{path}");
        }
        let below = all.and(b"/only ident\n*.bin big\n", b"d/");
        assert_eq!(below.of(b"d/only"), Conversion::Anything);
        assert_eq!(below.of(b"d/e/only"), Conversion::None);
        assert_eq!(below.of(b"d/x.bin"), Conversion::Anything);
        assert_eq!(below.of(b"d/x.txt"), Conversion::LineEnds);
        assert_eq!(all.and(b"\"a b\" text=auto\n", b"").of(b"z"), Conversion::LineEnds);
        assert_eq!(Conversions::everywhere(Conversion::LineEnds).of(b"z"), Conversion::LineEnds);
    }

    #[test]
    fn too_many_rules_convert_everything() {
        let many = "x text\n".repeat(RULES + 1);
        assert_eq!(Conversions::default().and(many.as_bytes(), b"").of(b"y"), Conversion::Anything);
    }
}
