//! Two texts, line by line.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, Token};

/// How much of a file is looked at to tell text from other things, as git does it.
const SNIFFED: usize = 8000;

/// Whether it has a zero byte early on.
pub(super) fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(SNIFFED)].contains(&0)
}

/// Which lines went and which came.
pub(super) struct Comparison<'a> {
    input: InternedInput<&'a [u8]>,
    diff: Diff,
}

/// Changes that are near enough to be shown together, with the lines around them.
pub(super) struct Group {
    pub(super) old: Range<u32>,
    pub(super) new: Range<u32>,
    changes: Vec<(Range<u32>, Range<u32>)>,
}

/// One line of a group. It ends in a line feed, unless it is the last of its file and that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Both(&'a [u8]),
    Old(&'a [u8]),
    New(&'a [u8]),
}

impl<'a> Comparison<'a> {
    pub(super) fn new(old: &'a [u8], new: &'a [u8]) -> Self {
        let input = InternedInput::new(old, new);
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        Self { input, diff }
    }

    pub(super) fn added(&self) -> u64 {
        self.diff.count_additions().into()
    }

    pub(super) fn removed(&self) -> u64 {
        self.diff.count_removals().into()
    }

    /// The changes in order, with `context` lines around each; those that would touch are one group.
    pub(super) fn groups(&self, context: u32) -> Vec<Group> {
        let length = |tokens: &[Token]| u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let (old_end, new_end) = (length(&self.input.before), length(&self.input.after));
        let mut groups: Vec<Group> = Vec::new();
        for hunk in self.diff.hunks() {
            let stop = |at: u32, end: u32| at.saturating_add(context).min(end);
            let (old, new) = (stop(hunk.before.end, old_end), stop(hunk.after.end, new_end));
            match groups.last_mut() {
                Some(group) if hunk.before.start.saturating_sub(context) <= group.old.end => {
                    (group.old.end, group.new.end) = (old, new);
                    group.changes.push((hunk.before, hunk.after));
                }
                _ => groups.push(Group {
                    old: hunk.before.start.saturating_sub(context)..old,
                    new: hunk.after.start.saturating_sub(context)..new,
                    changes: vec![(hunk.before, hunk.after)],
                }),
            }
        }
        groups
    }

    /// The lines of a group, as a patch has them.
    pub(super) fn lines(&self, group: &Group) -> impl Iterator<Item = Line<'a>> {
        let mut lines = Vec::new();
        let mut at = group.old.start;
        for (old, new) in &group.changes {
            lines.extend(self.old(at..old.start).map(Line::Both));
            lines.extend(self.old(old.clone()).map(Line::Old));
            lines.extend(self.new_side(new.clone()).map(Line::New));
            at = old.end;
        }
        lines.extend(self.old(at..group.old.end).map(Line::Both));
        lines.into_iter()
    }

    fn old(&self, range: Range<u32>) -> impl Iterator<Item = &'a [u8]> {
        range.map(|line| self.input.interner[self.input.before[line as usize]])
    }

    fn new_side(&self, range: Range<u32>) -> impl Iterator<Item = &'a [u8]> {
        range.map(|line| self.input.interner[self.input.after[line as usize]])
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
