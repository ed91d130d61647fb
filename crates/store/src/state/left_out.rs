//! What a state does not hold, and by which rule: a text beside the trees.
//!
//! A state that was recorded without the files that git ignores says nothing about them, and an entry that could not be
//! recorded is not there either. Going to such a state must not remove what it never spoke of, and a person who looks at
//! it must be able to learn what is missing. States of earlier versions have no such text: then nothing is known.

use super::{SkipReason, Skipped, escape};
use crate::id::ObjectId;
use crate::object::{ObjectKind, ReadObjects, WriteError, WriteObjects};
use crate::path::RelPath;

const HEADER: &[u8] = b"sandtable-left-out 1";
/// How many entries are written down, and how many bytes their paths have together.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 1 << 20;

/// What to do with files that the repository ignores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ignored {
    All,
    /// Only those that came or changed since the stat cache was written; without one, none.
    #[default]
    Changed,
    None,
}

/// What a state does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// What was done with files that the repository ignores.
    pub ignored: Ignored,
    /// The rules in force at the root that are not in the tree.
    pub exclude: Vec<u8>,
    /// How many entries could not be recorded.
    pub count: u64,
    /// The first of them, sorted by path.
    pub skipped: Vec<Skipped>,
}

impl LeftOut {
    /// What is written down of it: as many entries as there is room for.
    pub fn new(ignored: Ignored, exclude: Vec<u8>, (count, skipped): (u64, &[Skipped])) -> Self {
        let mut room = MOST_BYTES;
        let fits = |entry: &&Skipped| match room.checked_sub(entry.path.as_bytes().len()) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        };
        let skipped = skipped.iter().take(MOST).take_while(fits).cloned().collect();
        Self { ignored, exclude, count, skipped }
    }

    /// Whether something may be at `path`, or at a path above it, that the state does not hold: then that the state has
    /// nothing there does not mean that it was removed. The list may be cut off, and ends where the paths do.
    pub fn may_have(&self, path: &RelPath) -> bool {
        let listed = |path: &RelPath| self.skipped.binary_search_by(|entry| entry.path.cmp(path)).is_ok();
        let unlisted = self.count > self.skipped.len() as u64
            && self.skipped.last().is_none_or(|last| *path > last.path);
        unlisted || std::iter::successors(Some(path.clone()), RelPath::parent).any(|above| listed(&above))
    }

    /// Writes it; the name belongs into [`State::left_out`](super::State::left_out).
    pub fn write(&self, sink: &dyn WriteObjects) -> Result<ObjectId, WriteError> {
        sink.write(ObjectKind::Blob, self.to_text().as_bytes())
    }

    /// What was written; `None` if it is not there, or not as it would be written.
    pub fn read(objects: &dyn ReadObjects, id: &ObjectId) -> Option<Self> {
        Self::from_text(str::from_utf8(&objects.read_kind(id, ObjectKind::Blob).ok()?).ok()?)
    }

    /// As a text, for whoever keeps it elsewhere.
    pub fn to_text(&self) -> String {
        let mut text = [HEADER, b"\nignored ", name(self.ignored).as_bytes(), b"\nexclude "].concat();
        escape::write(&self.exclude, &mut text);
        text.extend(format!("\nskipped {}\n", self.count).into_bytes());
        for Skipped { path, why } in &self.skipped {
            text.extend(why.name().as_bytes());
            text.push(b' ');
            escape::write(path.as_bytes(), &mut text);
            text.push(b'\n');
        }
        String::from_utf8(text).expect("what is not ASCII is escaped")
    }

    /// What was written; `None` if that is not as it would be written.
    pub fn from_text(text: &str) -> Option<Self> {
        let header = str::from_utf8(HEADER).expect("it is ASCII");
        let mut lines = text.strip_prefix(header)?.strip_prefix('\n')?.lines();
        let ignored = lines.next()?.strip_prefix("ignored ")?;
        let ignored =
            [Ignored::All, Ignored::Changed, Ignored::None].into_iter().find(|one| name(*one) == ignored)?;
        let exclude = escape::read(lines.next()?.strip_prefix("exclude ")?.as_bytes())?;
        let count = lines.next()?.strip_prefix("skipped ")?.parse().ok()?;
        let entry = |line: &str| {
            let (why, path) = line.split_once(' ')?;
            let path = RelPath::new(escape::read(path.as_bytes())?).ok()?;
            Some(Skipped { path, why: SkipReason::from_name(why)? })
        };
        let skipped = lines.map(entry).collect::<Option<Vec<_>>>()?;
        Some(Self { ignored, exclude, count, skipped }).filter(|read| read.to_text() == text)
    }
}

const fn name(ignored: Ignored) -> &'static str {
    match ignored {
        Ignored::All => "all",
        Ignored::Changed => "changed",
        Ignored::None => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_or_nothing() {
        let skip = |path: &[u8], why| Skipped { path: RelPath::new(path).unwrap(), why };
        let all = [skip(b"a\n%b/\xff", SkipReason::Fifo), skip(b"nested/.git", SkipReason::Repository)];
        for ignored in [Ignored::All, Ignored::Changed, Ignored::None] {
            let left = LeftOut::new(ignored, b"*.o\n!x =\n".to_vec(), (7, &all));
            let text = left.to_text();
            assert_eq!(LeftOut::from_text(&text), Some(left));
            for end in 0..text.len() {
                let cut = LeftOut::from_text(&text[..end]);
                assert!(cut.is_none_or(|cut| cut.skipped.len() < 2), "{end}");
            }
            assert_eq!(LeftOut::from_text(&format!("{text}else x\n")), None);
        }
    }

    #[test]
    fn every_reason_has_a_name_of_its_own() {
        for why in SkipReason::ALL {
            assert_eq!(SkipReason::from_name(why.name()), Some(why));
        }
    }

    #[test]
    fn a_flood_of_paths_is_counted_and_cut() {
        let many: Vec<Skipped> = (0..20_000)
            .map(|number| Skipped {
                path: RelPath::new(format!("{number:05}")).unwrap(),
                why: SkipReason::Socket,
            })
            .collect();
        let left = LeftOut::new(Ignored::All, Vec::new(), (20_000, &many));
        assert_eq!((left.count, left.skipped.len()), (20_000, MOST));
    }
}
