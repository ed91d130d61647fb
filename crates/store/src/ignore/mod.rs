//! Which files a git repository leaves alone: `.gitignore`, `info/exclude` and the user's own list.
//!
//! The rules are git's, read here without git and without following anything. They come out of foreign trees, so a
//! pattern costs time in proportion to its length and that of the name, whatever its stars, and the number of rules that
//! are in force at once is bounded, as is the work for all paths together: once that is done, nothing more is ignored.

mod effort;
mod pattern;

use std::sync::Arc;

pub(crate) use effort::Effort;
pub use pattern::Pattern;

/// The name of the file with the rules of a directory.
pub const FILE: &[u8] = b".gitignore";

/// A longer file is not obeyed; git itself takes any.
pub const FILE_LIMIT: u64 = 1 << 20;

/// More rules than this are not in force at once.
const RULES: usize = 200_000;

/// The rules in force in one directory: its own, and those of the directories above it.
#[derive(Clone, Debug, Default)]
pub struct Rules(Option<Arc<Level>>);

#[derive(Debug)]
struct Level {
    above: Rules,
    /// How many bytes of a path lead to the directory the patterns speak of, with the slash.
    base: usize,
    patterns: Vec<Pattern>,
    /// How many there are with those above.
    count: usize,
    /// Shared with those above and all beside them.
    effort: Arc<Effort>,
}

/// What the rules say about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Ignored,
    Kept,
}

/// Whether the entry that is asked about is a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Directory,
    Other,
}

impl Rules {
    /// These rules and, with more weight, those in `text`, which is the file of the directory `base`: a path with a slash
    /// at its end, or nothing for the root. `None` if there are too many.
    pub fn and(&self, text: &[u8], base: &[u8]) -> Option<Self> {
        let patterns: Vec<Pattern> = lines(text).filter_map(Pattern::parse).collect();
        if patterns.is_empty() {
            return Some(self.clone());
        }
        let count = patterns.len() + self.0.as_ref().map_or(0, |level| level.count);
        let effort = self.0.as_ref().map_or_else(Arc::default, |level| Arc::clone(&level.effort));
        let level = Level { above: self.clone(), base: base.len(), patterns, count, effort };
        (count <= RULES).then(|| Self(Some(Arc::new(level))))
    }

    /// What becomes of the entry at `path`, if nothing above it is ignored already.
    pub fn verdict(&self, path: &[u8], kind: EntryKind) -> Verdict {
        let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let mut rules = self;
        while let Some(level) = &rules.0 {
            if level.effort.is_spent() {
                return Verdict::Kept;
            }
            level.effort.spend(level.patterns.len());
            let (effort, names) = (&*level.effort, (&path[level.base..], &path[start..]));
            let last = level.patterns.iter().rev().find(|pattern| pattern.matches(names, kind, effort));
            if let Some(pattern) = last {
                return pattern.verdict();
            }
            rules = &level.above;
        }
        Verdict::Kept
    }
}

impl Drop for Level {
    /// One after the other: a foreign tree may have rules at ten thousand levels, too many for the stack.
    fn drop(&mut self) {
        let mut above = self.above.0.take();
        while let Some(mut level) = above.and_then(Arc::into_inner) {
            above = level.above.0.take();
        }
    }
}

/// Without a byte order mark, and without the carriage return of a line's end.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    text.split_inclusive(|byte| *byte == b'\n').map(|line| match line {
        [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] | line => line,
    })
}

#[cfg(test)]
mod tests;
