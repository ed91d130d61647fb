//! One line of an ignore file.

use super::{Effort, EntryKind, Verdict};
use crate::wildcard::{Syntax, Wildcard};

/// A longer line is no rule: no path is that long.
const LONGEST: usize = 4096;

/// A rule.
#[derive(Clone, Debug)]
pub struct Pattern {
    verdict: Verdict,
    directories_only: bool,
    subject: Subject,
    /// What the pattern begins with that has no wildcard.
    literal: Box<[u8]>,
    rest: Rest,
}

/// What a pattern is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// The last component, wherever it is.
    Name,
    /// The path from the directory of the file.
    Path,
}

/// What follows the literal beginning.
#[derive(Clone, Debug)]
enum Rest {
    Nothing,
    /// A star and then no more wildcards.
    EndsWith(Box<[u8]>),
    Wildcard(Wildcard),
}

impl Pattern {
    /// `None` for a line that is none.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line.is_empty() || line[0] == b'#' {
            return None;
        }
        let line = without_trailing_spaces(line);
        let (verdict, line) = match line {
            [b'!', line @ ..] => (Verdict::Kept, line),
            line => (Verdict::Ignored, line),
        };
        Self::rule(line, verdict)
    }

    /// A pattern of an attributes file: the same, without what only an ignore file has.
    pub(crate) fn plain(text: &[u8]) -> Option<Self> {
        Self::rule(text, Verdict::Ignored).filter(|pattern| !pattern.directories_only)
    }

    fn rule(line: &[u8], verdict: Verdict) -> Option<Self> {
        let (directories_only, line) = match line {
            [line @ .., b'/'] => (true, line),
            line => (false, line),
        };
        let subject = if line.contains(&b'/') { Subject::Path } else { Subject::Name };
        let line = line.strip_prefix(b"/").unwrap_or(line);
        if line.is_empty() || line.len() > LONGEST {
            return None;
        }
        let (literal, rest) = line.split_at(line.iter().position(is_special).unwrap_or(line.len()));
        let rest = match rest {
            [] => Rest::Nothing,
            [b'*', tail @ ..]
                if subject == Subject::Name && literal.is_empty() && !tail.iter().any(is_special) =>
            {
                Rest::EndsWith(tail.into())
            }
            // Git looks at what follows the literal part as if the pattern began there, and so must this.
            rest if subject == Subject::Path => Rest::Wildcard(Wildcard::of_git(rest, Syntax::GitPath)),
            rest => Rest::Wildcard(Wildcard::of_git(rest, Syntax::GitName)),
        };
        Some(Self { verdict, directories_only, subject, literal: literal.into(), rest })
    }

    pub(super) const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// `path` is relative to the directory of the file, `name` its last component. With no effort left a wildcard
    /// matches nothing.
    pub(crate) fn matches(&self, (path, name): (&[u8], &[u8]), kind: EntryKind, effort: &Effort) -> bool {
        if self.directories_only && kind != EntryKind::Directory {
            return false;
        }
        let subject = if self.subject == Subject::Name { name } else { path };
        let Some(rest) = subject.strip_prefix(&*self.literal) else { return false };
        match &self.rest {
            Rest::Nothing => rest.is_empty(),
            Rest::EndsWith(tail) => rest.ends_with(tail),
            Rest::Wildcard(_) if effort.is_spent() => false,
            Rest::Wildcard(wildcard) => {
                let (found, work) = wildcard.search(rest);
                effort.spend(work);
                found
            }
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "it is given to iterators over bytes")]
fn is_special(byte: &u8) -> bool {
    matches!(byte, b'*' | b'?' | b'[' | b'\\')
}

/// A space that follows a backslash stays.
fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b' ' => at += 1,
            b'\\' => {
                at += 2;
                end = at.min(line.len());
            }
            _ => {
                at += 1;
                end = at;
            }
        }
    }
    &line[..end]
}
