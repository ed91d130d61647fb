//! The changes of one file, each to be taken or left.
//!
//! A hunk is what a patch shows as one: changes that are near each other, with the lines around them. For the same two
//! texts there are always the same hunks, so a choice is a set of their numbers.

use std::collections::BTreeSet;
use std::io::Write;

use super::render::{RenderError, RenderOptions, hunk};
use super::text::{Comparison, Group, Line, is_binary};

/// Texts above this are taken as a whole.
const LONGEST: usize = 8 << 20;
/// Lines around a change, as in a patch.
const CONTEXT: u32 = 3;

/// What turns one text into another.
pub struct Hunks<'a> {
    old: &'a [u8],
    compared: Comparison<'a>,
    groups: Vec<Group>,
}

impl std::fmt::Debug for Hunks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hunks").field("count", &self.groups.len()).finish_non_exhaustive()
    }
}

impl<'a> Hunks<'a> {
    /// None for what is no text, or too long.
    pub fn of(old: &'a [u8], new: &'a [u8]) -> Option<Self> {
        if old.len().max(new.len()) > LONGEST || is_binary(old) || is_binary(new) {
            return None;
        }
        let compared = Comparison::new(old, new);
        let groups = compared.groups(CONTEXT);
        Some(Self { old, compared, groups })
    }

    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// Writes one of them as a patch has it.
    pub fn show(
        &self,
        number: usize,
        out: &mut dyn Write,
        options: &RenderOptions,
    ) -> Result<(), RenderError> {
        let Some(group) = self.groups.get(number) else { return Ok(()) };
        hunk(out, &self.compared, group, options)
    }

    /// The old text with these changes and no others.
    pub fn taken(&self, numbers: &BTreeSet<usize>) -> Vec<u8> {
        let lines: Vec<&[u8]> = self.old.split_inclusive(|byte| *byte == b'\n').collect();
        let (mut made, mut at) = (Vec::with_capacity(self.old.len()), 0);
        for (number, group) in self.groups.iter().enumerate() {
            made.extend(lines[at..group.old.start as usize].concat());
            let is_taken = numbers.contains(&number);
            for line in self.compared.lines(group) {
                match line {
                    Line::Both(text) => made.extend_from_slice(text),
                    Line::New(text) if is_taken => made.extend_from_slice(text),
                    Line::Old(text) if !is_taken => made.extend_from_slice(text),
                    _ => {}
                }
            }
            at = group.old.end as usize;
        }
        made.extend(lines[at..].concat());
        made
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_of_two_changes_is_taken_alone() {
        let old: Vec<u8> = (0..30).flat_map(|line| format!("{line}\n").into_bytes()).collect();
        let text = String::from_utf8(old.clone()).unwrap();
        let new = text.replace("\n3\n", "\nthree\n").replace("\n25\n", "\ntwenty-five\n");
        let hunks = Hunks::of(&old, new.as_bytes()).unwrap();
        assert_eq!(hunks.count(), 2);
        let second = hunks.taken(&BTreeSet::from([1]));
        assert_eq!(second, text.replace("\n25\n", "\ntwenty-five\n").into_bytes());
        let mut shown = Vec::new();
        hunks.show(0, &mut shown, &RenderOptions::default()).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.starts_with("@@ -1,7 +1,7 @@\n") && shown.contains("+three\n"), "{shown}");
        assert!(Hunks::of(b"a\0", b"b").is_none());
    }

    proptest! {
        #[test]
        fn none_is_the_old_text_and_all_the_new_one(old in "[ab\n]{0,60}", new in "[ab\n]{0,60}") {
            let hunks = Hunks::of(old.as_bytes(), new.as_bytes()).unwrap();
            prop_assert_eq!(hunks.taken(&BTreeSet::new()), old.as_bytes());
            prop_assert_eq!(hunks.taken(&(0..hunks.count()).collect()), new.as_bytes());
        }
    }
}
