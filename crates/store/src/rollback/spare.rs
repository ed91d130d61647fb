//! What stays although the state to come does not have it.
//!
//! A state that was recorded without ignored files says nothing about them: that one is missing in it does not mean that
//! it was not there. So such a file is never removed on the way to that state. The rules are those of both states: a
//! list of rules may ignore itself, and then only the state to leave has it.

use crate::id::ObjectId;
use crate::ignore::{self, EntryKind, Rules, Verdict};
use crate::object::{ObjectKind, ReadObjects};
use crate::path::RelPath;
use crate::state::{Entry, Ignored, LeftOut, Node, State, What};

/// What to make of a state that does not say how it was recorded: earlier versions wrote such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// It may have been recorded without ignored files.
    Partial,
    /// It holds everything.
    Whole,
}

/// The rules in force in one directory, of the state to leave and of the one to come.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    old: Rules,
    new: Rules,
    /// Whether the directory itself is ignored, and with it all that is in it.
    is_ignored: bool,
}

impl Scope {
    /// For the root. `None` if the state to come holds everything, so that nothing is to be spared.
    pub(super) fn new(
        objects: &dyn ReadObjects,
        (from, to): (&State, &State),
        unknown: Unknown,
    ) -> Option<Self> {
        let read = |state: &State| state.left_out.and_then(|id| LeftOut::read(objects, &id));
        let left_out = read(to);
        let is_whole = match &left_out {
            Some(left_out) => left_out.ignored == Ignored::All,
            None => unknown == Unknown::Whole,
        };
        let rules = |left_out: Option<LeftOut>| {
            let exclude = left_out.map(|left_out| left_out.exclude).unwrap_or_default();
            Rules::default().and(&exclude, b"").unwrap_or_default()
        };
        (!is_whole).then(|| Self { old: rules(read(from)), new: rules(left_out), is_ignored: false })
    }

    /// With the rules that the directory itself has on either side.
    pub(super) fn with(
        mut self,
        objects: &dyn ReadObjects,
        at: &RelPath,
        sides: (&[Entry], &[Entry]),
    ) -> Self {
        if self.is_ignored {
            return self;
        }
        for (rules, entries) in [(&mut self.old, sides.0), (&mut self.new, sides.1)] {
            let Some(text) = own_rules(objects, entries) else { continue };
            let mut base = at.as_bytes().to_vec();
            if !base.is_empty() {
                base.push(b'/');
            }
            if let Some(more) = rules.and(&text, &base) {
                *rules = more;
            }
        }
        self
    }

    /// The same for a directory in this one.
    pub(super) fn below(&self, path: &RelPath) -> Self {
        Self { is_ignored: self.ignores(path, EntryKind::Directory), ..self.clone() }
    }

    /// Whether the entry, which the state to come does not have, stays.
    pub(super) fn spares(&self, path: &RelPath, node: &Node) -> bool {
        let kind = if node.as_directory().is_some() { EntryKind::Directory } else { EntryKind::Other };
        self.ignores(path, kind)
    }

    fn ignores(&self, path: &RelPath, kind: EntryKind) -> bool {
        let says = |rules: &Rules| rules.verdict(path.as_bytes(), kind) == Verdict::Ignored;
        self.is_ignored || says(&self.new) || says(&self.old)
    }
}

/// The rules in a directory's own list. One that was too long to be obeyed is not obeyed here either.
fn own_rules(objects: &dyn ReadObjects, entries: &[Entry]) -> Option<Vec<u8>> {
    let at = entries.binary_search_by(|entry| (*entry.name).cmp(ignore::FILE)).ok()?;
    let What::File(id) = entries[at].node.what else { return None };
    let fits = |id: &ObjectId| objects.header(id).is_ok_and(|(_, size)| size <= ignore::FILE_LIMIT);
    fits(&id).then(|| objects.read_kind(&id, ObjectKind::Blob).ok())?
}
