//! Two texts, line by line.

use std::iter::once;
use std::ops::Range;

use super::compare::{Changed, changes};

/// How much of a file is looked at to tell text from other things, as git does it.
const SNIFFED: usize = 8000;

/// Whether it has a zero byte early on.
pub(super) fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(SNIFFED)].contains(&0)
}

/// A text and where its lines begin: a file may be nothing but line feeds, so a line costs four bytes.
pub(super) struct Lines<'a> {
    text: &'a [u8],
    /// One more than there are lines.
    starts: Vec<u32>,
}

/// Which lines went and which came.
pub(super) struct Comparison<'a> {
    old: Lines<'a>,
    new: Lines<'a>,
    changes: Vec<Changed>,
}

/// Changes that are near enough to be shown together, with the lines around them.
pub(super) struct Group {
    pub(super) old: Range<u32>,
    pub(super) new: Range<u32>,
    changes: Vec<Changed>,
}

/// One line of a group. It ends in a line feed, unless it is the last of its file and that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Both(&'a [u8]),
    Old(&'a [u8]),
    New(&'a [u8]),
}

impl<'a> Lines<'a> {
    fn of(text: &'a [u8]) -> Self {
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let last = text.last().filter(|byte| **byte != b'\n').map(|_| text.len());
        let place = |at: usize| u32::try_from(at).expect("larger files are not compared");
        Self { text, starts: once(0).chain(ends).chain(last).map(place).collect() }
    }

    pub(super) fn all(&self) -> Range<u32> {
        0..u32::try_from(self.starts.len() - 1).expect("a line has a byte at least")
    }

    pub(super) fn line(&self, number: u32) -> &'a [u8] {
        let number = number as usize;
        &self.text[self.starts[number] as usize..self.starts[number + 1] as usize]
    }

    pub(super) fn some(&self, range: Range<u32>) -> impl Iterator<Item = &'a [u8]> {
        range.map(|number| self.line(number))
    }
}

impl<'a> Comparison<'a> {
    pub(super) fn new(old: &'a [u8], new: &'a [u8]) -> Self {
        let (old, new) = (Lines::of(old), Lines::of(new));
        let changes = changes(&old, &new);
        Self { old, new, changes }
    }

    pub(super) fn added(&self) -> u64 {
        self.changes.iter().map(|(_, new)| new.len() as u64).sum()
    }

    pub(super) fn removed(&self) -> u64 {
        self.changes.iter().map(|(old, _)| old.len() as u64).sum()
    }

    /// The changes in order, with `context` lines around each; those that would touch are one group.
    pub(super) fn groups(&self, context: u32) -> Vec<Group> {
        let (old_end, new_end) = (self.old.all().end, self.new.all().end);
        let mut groups: Vec<Group> = Vec::new();
        for (before, after) in self.changes.iter().cloned() {
            let stop = |at: u32, end: u32| at.saturating_add(context).min(end);
            let (old, new) = (stop(before.end, old_end), stop(after.end, new_end));
            match groups.last_mut() {
                Some(group) if before.start.saturating_sub(context) <= group.old.end => {
                    (group.old.end, group.new.end) = (old, new);
                    group.changes.push((before, after));
                }
                _ => groups.push(Group {
                    old: before.start.saturating_sub(context)..old,
                    new: after.start.saturating_sub(context)..new,
                    changes: vec![(before, after)],
                }),
            }
        }
        groups
    }

    /// The lines of a group, as a patch has them.
    pub(super) fn lines(&self, group: &Group) -> impl Iterator<Item = Line<'a>> {
        let from = once(group.old.start).chain(group.changes.iter().map(|(old, _)| old.end));
        let to = group.changes.iter().map(|(old, _)| old.start).chain(once(group.old.end));
        let changed = group.changes.iter().cloned().chain(once((0..0, 0..0)));
        from.zip(to).zip(changed).flat_map(|((from, to), (old, new))| {
            let both = self.old.some(from..to).map(Line::Both);
            both.chain(self.old.some(old).map(Line::Old)).chain(self.new.some(new).map(Line::New))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes the old text through all groups.
    fn apply(old: &[u8], new: &[u8], context: u32) -> Vec<u8> {
        let compared = Comparison::new(old, new);
        let lines: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
        let (mut made, mut at) = (Vec::new(), 0);
        for group in compared.groups(context) {
            made.extend(lines[at..group.old.start as usize].concat());
            let mut sizes = (0, 0);
            for line in compared.lines(&group) {
                match line {
                    Line::Both(text) => {
                        made.extend(text);
                        sizes = (sizes.0 + 1, sizes.1 + 1);
                    }
                    Line::New(text) => {
                        made.extend(text);
                        sizes.1 += 1;
                    }
                    Line::Old(_) => sizes.0 += 1,
                }
            }
            assert_eq!(sizes, (group.old.len(), group.new.len()), "the header counts what is shown");
            at = group.old.end as usize;
        }
        made.extend(lines[at..].concat());
        made
    }

    proptest! {
        #[test]
        fn the_groups_turn_old_into_new(old in "[ab\n]{0,40}", new in "[ab\n]{0,40}", context in 0_u32..4) {
            let made = apply(old.as_bytes(), new.as_bytes(), context);
            prop_assert_eq!(made, new.into_bytes());
        }
    }

    #[test]
    fn counts_and_binary() {
        let compared = Comparison::new(b"a\nb\nc\n", b"a\nB\nc\nd");
        assert_eq!((compared.added(), compared.removed()), (2, 1));
        assert!(is_binary(b"a\0b") && !is_binary(b"\xff\xfe") && !is_binary(b""));
        assert!(!is_binary(&[vec![b'x'; SNIFFED], vec![0]].concat()));
    }
}
