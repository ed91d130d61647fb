//! Goes through two states side by side, down only where they differ.

use super::{Change, ChangeKind, Diff, DiffError, DiffOptions, EntryType, Flag, Side};
use crate::object::ReadObjects;
use crate::path::RelPath;
use crate::state::{Directory, Entry, Node, Own, State, What};

/// For each change that may be listed, so many entries may be looked at: a tree can be made that names itself
/// ten times at each of ten levels.
const LOOKS: usize = 20;

/// Everything that differs, without renames, lines and sizes.
pub(super) fn changes(
    objects: &dyn ReadObjects,
    from: &State,
    to: &State,
    options: &DiffOptions,
) -> Result<Diff, DiffError> {
    let mut walk = Walk { diff: Diff::default(), waiting: Vec::new(), path_bytes: options.path_bytes };
    if from.root().same(&to.root()) {
        return Ok(walk.diff);
    }
    let (old, new) = (from.root().read_root(objects)?, to.root().read_root(objects)?);
    walk.itself(&RelPath::root(), &old.own, &new.own);
    walk.entries(&RelPath::root(), old.entries, new.entries);
    let mut looks = options.changes.saturating_mul(LOOKS);
    while let Some(Pair { path, old, new }) = walk.waiting.pop() {
        let read = |side: Option<Directory>| side.map_or(Ok(Vec::new()), |directory| directory.read(objects));
        let (old, new) = (read(old)?, read(new)?);
        looks = looks.saturating_sub(1 + old.len() + new.len());
        walk.entries(&path, old, new);
        if looks == 0 || walk.path_bytes == 0 || walk.diff.changes.len() > options.changes {
            walk.diff.changes.truncate(options.changes);
            walk.diff.truncated = true;
            break;
        }
    }
    Ok(walk.diff)
}

struct Walk {
    diff: Diff,
    waiting: Vec<Pair>,
    /// How many more there may be.
    path_bytes: usize,
}

/// A directory that differs.
struct Pair {
    path: RelPath,
    old: Option<Directory>,
    new: Option<Directory>,
}

/// What was there and what is there.
type Sides<'a> = (Option<&'a Node>, Option<&'a Node>);

impl Walk {
    /// Both lists are sorted by name.
    fn entries(&mut self, at: &RelPath, old: Vec<Entry>, new: Vec<Entry>) {
        for (name, old, new) in side_by_side(old, new) {
            let path = at.join(&name).expect("a state has names only");
            if self.path_bytes == 0 {
                return;
            }
            self.entry(path, old.as_ref(), new.as_ref());
        }
    }

    fn entry(&mut self, path: RelPath, old: Option<&Node>, new: Option<&Node>) {
        if let (Some(old), Some(new)) = (old, new)
            && old.same(new)
        {
            return;
        }
        self.path_bytes = self.path_bytes.saturating_sub(path.as_bytes().len());
        let below = |node: Option<&Node>| node.and_then(Node::as_directory).copied();
        let (old_below, new_below) = (below(old), below(new));
        match (old, new) {
            (Some(old), Some(new)) if old_below.is_some() && new_below.is_some() => {
                self.itself(&path, &old.own, &new.own);
            }
            (Some(old), Some(new)) => self.push(kind(old, new), &path, (Some(old), Some(new))),
            (Some(node), None) if is_worth_a_word(node) => {
                self.push(ChangeKind::Removed, &path, (Some(node), None));
            }
            (None, Some(node)) if is_worth_a_word(node) => {
                self.push(ChangeKind::Added, &path, (None, Some(node)));
            }
            _ => {}
        }
        let differ = match (&old_below, &new_below) {
            (Some(one), Some(two)) => !one.same(two),
            (one, two) => one.is_some() || two.is_some(),
        };
        if differ {
            self.waiting.push(Pair { path, old: old_below, new: new_below });
        }
    }

    /// A directory that is on both sides.
    fn itself(&mut self, path: &RelPath, old: &Own, new: &Own) {
        if (old.bits, &old.attributes) != (new.bits, &new.attributes) {
            let node = |own: &Own| Node { what: What::Directory(Box::default()), own: own.clone() };
            self.push(ChangeKind::ModeChanged, path, (Some(&node(old)), Some(&node(new))));
        }
    }

    fn push(&mut self, kind: ChangeKind, path: &RelPath, sides: Sides<'_>) {
        let (old, new) = (sides.0.map(side), sides.1.map(side));
        let flags = flags(old.as_ref(), new.as_ref());
        self.diff.changes.push(Change {
            kind,
            path: path.clone(),
            old_path: None,
            old,
            new,
            binary: false,
            added_lines: 0,
            removed_lines: 0,
            likeness: None,
            flags,
        });
    }
}

/// Joins two lists that are sorted by name.
pub(crate) fn side_by_side(
    old: Vec<Entry>,
    new: Vec<Entry>,
) -> impl Iterator<Item = (Box<[u8]>, Option<Node>, Option<Node>)> {
    let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
    std::iter::from_fn(move || {
        let names = [old.peek().map(|entry| &entry.name), new.peek().map(|entry| &entry.name)];
        let name = names.into_iter().flatten().min()?.clone();
        let old = old.next_if(|entry| entry.name == name).map(|entry| entry.node);
        let new = new.next_if(|entry| entry.name == name).map(|entry| entry.node);
        Some((name, old, new))
    })
}

/// A directory that came or went is named only if its entries do not say so.
fn is_worth_a_word(node: &Node) -> bool {
    match &node.what {
        What::Directory(below) => {
            node.own.bits != 0o755
                || !node.own.attributes.is_empty()
                || (below.tree.is_none() && below.manifest.is_none())
        }
        _ => true,
    }
}

fn kind(old: &Node, new: &Node) -> ChangeKind {
    match (&old.what, &new.what) {
        (What::File(one), What::File(two))
        | (What::Symlink(one), What::Symlink(two))
        | (What::Gitlink(one), What::Gitlink(two)) => {
            if one == two {
                ChangeKind::ModeChanged
            } else {
                ChangeKind::Modified
            }
        }
        _ => ChangeKind::TypeChanged,
    }
}

fn side(node: &Node) -> Side {
    let (entry, id) = match &node.what {
        What::File(id) => (EntryType::File, Some(*id)),
        What::Symlink(id) => (EntryType::Symlink, Some(*id)),
        What::Gitlink(id) => (EntryType::Repository, Some(*id)),
        What::Directory(_) => (EntryType::Directory, None),
    };
    let attributes =
        node.own.attributes.iter().map(|attribute| (attribute.name.to_vec(), attribute.value.to_vec()));
    Side { entry, id, mode: node.own.bits, size: 0, attributes: attributes.collect() }
}

/// What the kind of a change does not say.
pub(super) fn flags(old: Option<&Side>, new: Option<&Side>) -> Vec<Flag> {
    let (Some(old), Some(new)) = (old, new) else { return Vec::new() };
    let mut flags = Vec::new();
    let has_mode = |side: &Side| matches!(side.entry, EntryType::File | EntryType::Directory);
    if old.entry == new.entry && has_mode(old) && old.mode != new.mode {
        flags.push(Flag::Mode);
    }
    if old.attributes != new.attributes {
        flags.push(Flag::Attributes);
    }
    flags
}
