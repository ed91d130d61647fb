//! What differs between two states.
//!
//! [`diff`] compares the trees and the manifests of two states, going down only where they differ, pairs what was
//! removed with what was added where one became the other, and counts lines. The answer is data; [`render`] makes
//! text of it, [`Record`] what `--json` prints.
//!
//! A directory is named only if something is to be said of it itself: it came or went and is empty or has a mode or
//! attributes of its own, or these changed. Times and owners are no difference. States are foreign: the number of
//! changes, the size of what is read and the time it takes are bounded, and an answer that is not whole says so.

mod compare;
mod hunks;
mod record;
mod rename;
pub mod render;
mod similar;
mod text;
mod walk;

use std::time::{Duration, Instant};

pub use hunks::Hunks;
pub use record::{Record, RecordedChange, RecordedSide, SCHEMA};
pub(crate) use walk::side_by_side;

pub use crate::change::ChangeKind;
use crate::id::ObjectId;
use crate::object::{ObjectKind, ReadError, ReadObjects};
use crate::path::RelPath;
use crate::state::{LeftOut, State, StateError};

/// How long lines are counted and contents compared, unless somebody says otherwise.
const TIME: Duration = Duration::from_secs(8);

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub struct DiffOptions {
    /// Whether removed and added files are paired.
    pub renames: Renames,
    /// Contents larger than this are not compared line by line; with 0 none is looked at, and no lines are counted.
    pub file_bytes: u64,
    /// After how many changes to stop.
    pub changes: usize,
    /// After how many bytes of paths: with the depth of a tree they grow by its square.
    pub path_bytes: usize,
    /// How many pairs of contents may be read to find renames with an edit.
    pub pairs: usize,
    /// After this moment nothing more is counted or compared.
    pub until: Option<Instant>,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            renames: Renames::Find,
            file_bytes: 8 << 20,
            changes: 1_000_000,
            path_bytes: 32 << 20,
            pairs: 20_000,
            until: Some(Instant::now() + TIME),
        }
    }
}

impl DiffOptions {
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Whether removed and added files are paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renames {
    Find,
    Ignore,
}

/// Everything that differs, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    pub changes: Vec<Change>,
    /// There may be more, or lines that were not counted.
    pub truncated: bool,
}

impl Diff {
    /// Without what seems to be removed because the second state does not hold what is there.
    #[must_use]
    pub fn beside(mut self, left_out: &LeftOut) -> Self {
        self.changes.retain(|change| change.new.is_some() || !left_out.may_have(&change.path));
        self
    }
}

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: ChangeKind,
    pub path: RelPath,
    /// Where it was, if it was renamed.
    pub old_path: Option<RelPath>,
    pub old: Option<Side>,
    pub new: Option<Side>,
    pub binary: bool,
    pub added_lines: u64,
    pub removed_lines: u64,
    /// How much of a renamed file is the same, in percent.
    pub likeness: Option<u8>,
    pub flags: Vec<Flag>,
}

/// What an entry of a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryType {
    File,
    Directory,
    Symlink,
    /// A commit of another repository.
    Repository,
}

impl EntryType {
    /// The word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Repository => "repository",
        }
    }
}

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub entry: EntryType,
    /// Of the content; a directory has none here.
    pub id: Option<ObjectId>,
    /// Permission bits.
    pub mode: u16,
    pub size: u64,
    /// Names and values.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What else is to be known of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// Permissions changed.
    Mode,
    /// Attributes changed.
    Attributes,
    /// Not compared line by line: larger than the limit.
    TooLarge,
    /// Not compared line by line: the time was up.
    OutOfTime,
    /// A side's content is not in the store.
    Missing,
}

/// Why two states could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// What differs between two states.
pub fn diff(
    objects: &dyn ReadObjects,
    from: &State,
    to: &State,
    options: &DiffOptions,
) -> Result<Diff, DiffError> {
    let mut diff = walk::changes(objects, from, to, options)?;
    if options.renames == Renames::Find {
        rename::pair(objects, &mut diff, options)?;
    }
    diff.changes.sort_by(|one, two| one.path.cmp(&two.path));
    if options.file_bytes > 0 {
        for change in &mut diff.changes {
            diff.truncated |= measure(objects, change, options)? == Measured::InPart;
        }
    }
    Ok(diff)
}

impl Change {
    /// What it is now, or was.
    pub fn entry(&self) -> EntryType {
        self.new.as_ref().or(self.old.as_ref()).map_or(EntryType::File, |side| side.entry)
    }

    /// Whether the content differs, or is there on one side only.
    fn touches_content(&self) -> bool {
        let id = |side: &Option<Side>| side.as_ref().and_then(|side| side.id);
        id(&self.old) != id(&self.new)
    }
}

impl Side {
    /// The content's id, if it has content that can be shown.
    fn content(&self) -> Option<&ObjectId> {
        self.id.as_ref().filter(|_| matches!(self.entry, EntryType::File | EntryType::Symlink))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Measured {
    Whole,
    InPart,
}

/// Sizes, whether it is text, and how many lines came and went.
fn measure(
    objects: &dyn ReadObjects,
    change: &mut Change,
    options: &DiffOptions,
) -> Result<Measured, DiffError> {
    for side in [&mut change.old, &mut change.new].into_iter().flatten() {
        if let Some(id) = side.content() {
            match objects.header(id) {
                Ok((_, size)) => side.size = size,
                Err(ReadError::Missing(_)) => change.flags.push(Flag::Missing),
                Err(error) => return Err(error.into()),
            }
        }
    }
    if !change.touches_content() || change.flags.contains(&Flag::Missing) {
        return Ok(Measured::Whole);
    }
    if options.is_over() {
        change.flags.push(Flag::OutOfTime);
        return Ok(Measured::InPart);
    }
    let (Some(old), Some(new)) =
        (content(objects, change.old.as_ref(), options)?, content(objects, change.new.as_ref(), options)?)
    else {
        change.flags.push(Flag::TooLarge);
        return Ok(Measured::InPart);
    };
    change.binary = text::is_binary(&old) || text::is_binary(&new);
    if !change.binary {
        let compared = text::Comparison::new(&old, &new);
        (change.added_lines, change.removed_lines) = (compared.added(), compared.removed());
    }
    Ok(Measured::Whole)
}

/// The content of a side, empty if it has none; nothing if it is too large.
fn content(
    objects: &dyn ReadObjects,
    side: Option<&Side>,
    options: &DiffOptions,
) -> Result<Option<Vec<u8>>, ReadError> {
    let Some((side, id)) = side.and_then(|side| Some((side, side.content()?))) else {
        return Ok(Some(Vec::new()));
    };
    if side.size > options.file_bytes {
        return Ok(None);
    }
    match objects.read_kind(id, ObjectKind::Blob) {
        Ok(data) => Ok(Some(data)),
        Err(ReadError::TooLarge { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
