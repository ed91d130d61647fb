//! Making a state from another by saying what changed.
//!
//! An [`Editor`] is a position in a state. It goes down into directories and up again, and writes each that was
//! changed when it leaves it, to all three trees: so a change costs what its directory and those above it cost, and a
//! directory that was only passed through costs nothing. Memory is that of the directories on the way down.

use std::collections::BTreeMap;

use super::{Directory, Entry, Node, Own, State, StateError, What, write_directory};
use crate::object::{EntryMode, ReadObjects, WriteObjects};
use crate::path::RelPath;

/// What becomes of the entries that a directory had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    Keep,
    Drop,
}

/// A position in a state that is being made.
pub struct Editor<'a> {
    objects: &'a dyn ReadObjects,
    sink: &'a dyn WriteObjects,
    frames: Vec<Frame>,
    base: State,
}

impl std::fmt::Debug for Editor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Editor").field("frames", &self.frames).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Frame {
    name: Box<[u8]>,
    own: Own,
    /// As it was.
    base: Directory,
    entries: Vec<Entry>,
    /// What is different; `None` is gone.
    changes: BTreeMap<Box<[u8]>, Option<Node>>,
    /// It must be written even without changes: something was dropped, or it is new.
    touched: bool,
}

impl<'a> Editor<'a> {
    pub fn new(
        objects: &'a dyn ReadObjects,
        sink: &'a dyn WriteObjects,
        base: &State,
    ) -> Result<Self, StateError> {
        let contents = base.root().read_root(objects)?;
        let root = Frame {
            name: Box::default(),
            own: contents.own,
            base: base.root(),
            entries: contents.entries,
            changes: BTreeMap::new(),
            touched: false,
        };
        Ok(Self { objects, sink, frames: vec![root], base: *base })
    }

    /// What is under this name in the directory it is at, with the changes made so far.
    pub fn get(&self, name: &[u8]) -> Option<&Node> {
        let frame = self.frame();
        if let Some(change) = frame.changes.get(name) {
            return change.as_ref();
        }
        let at = frame.entries.binary_search_by(|entry| (*entry.name).cmp(name)).ok()?;
        Some(&frame.entries[at].node)
    }

    /// Puts something there, in place of whatever was.
    pub fn set(&mut self, name: &[u8], node: Node) {
        self.frame_mut().changes.insert(name.into(), Some(node));
    }

    /// Takes away what was there, if anything was.
    pub fn remove(&mut self, name: &[u8]) {
        if self.get(name).is_some() {
            self.frame_mut().changes.insert(name.into(), None);
        }
    }

    /// What the directory it is at says of itself.
    pub fn own(&self) -> &Own {
        &self.frame().own
    }

    /// Lets the directory it is at say something else of itself.
    pub fn set_own(&mut self, own: Own) {
        let is_root = self.frames.len() == 1;
        let frame = self.frame_mut();
        // Only the root's is in its own records; that of any other is in those of the directory above.
        frame.touched |= is_root && frame.own != own;
        frame.own = own;
    }

    /// How far below the root it is.
    pub fn depth(&self) -> usize {
        self.frames.len() - 1
    }

    /// Goes down into a directory. If there is none of that name it is made, in place of what was there.
    pub fn enter(&mut self, name: &[u8], below: Below) -> Result<(), StateError> {
        let old = self.get(name).and_then(|node| Some((*node.as_directory()?, node.own.clone())));
        let is_new = old.is_none();
        let (base, own) = old.unwrap_or_else(|| (Directory::default(), Own::usual(EntryMode::Tree)));
        let entries = if below == Below::Keep { base.read(self.objects)? } else { Vec::new() };
        let touched = is_new || below == Below::Drop;
        self.frames.push(Frame { name: name.into(), own, base, entries, changes: BTreeMap::new(), touched });
        Ok(())
    }

    /// Goes up again. At the root it does nothing.
    pub fn leave(&mut self) -> Result<(), StateError> {
        if self.frames.len() == 1 {
            return Ok(());
        }
        let frame = self.frames.pop().expect("there are at least two");
        let name = frame.name.clone();
        let own = frame.own.clone();
        let directory = frame.write(self.sink, None)?;
        let node = Node { what: What::Directory(Box::new(directory)), own };
        if self.get(&name) != Some(&node) {
            self.set(&name, node);
        }
        Ok(())
    }

    /// The state as it is now.
    pub fn finish(mut self) -> Result<State, StateError> {
        while self.frames.len() > 1 {
            self.leave()?;
        }
        let root = self.frames.pop().expect("the root is never left");
        let own = root.own.clone();
        let written = root.write(self.sink, Some(&own))?;
        Ok(State { layer: self.base.layer, ..State::from_root(&written, self.sink)? })
    }

    fn frame(&self) -> &Frame {
        self.frames.last().expect("the root is never left")
    }

    fn frame_mut(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the root is never left")
    }
}

impl Frame {
    fn write(self, sink: &dyn WriteObjects, root: Option<&Own>) -> Result<Directory, StateError> {
        if !self.touched && self.changes.is_empty() {
            return Ok(self.base);
        }
        Ok(write_directory(sink, &merged(self.entries, self.changes), root)?)
    }
}

/// Both are sorted by name.
fn merged(entries: Vec<Entry>, changes: BTreeMap<Box<[u8]>, Option<Node>>) -> Vec<Entry> {
    let mut all = Vec::with_capacity(entries.len() + changes.len());
    let mut entries = entries.into_iter().peekable();
    for (name, change) in changes {
        while let Some(entry) = entries.next_if(|entry| entry.name < name) {
            all.push(entry);
        }
        entries.next_if(|entry| entry.name == name);
        all.extend(change.map(|node| Entry { name, node }));
    }
    all.extend(entries);
    all
}

/// Changes single paths: `None` removes. A directory in `edits` is put there with all that it holds; directories that are
/// missing on the way are made.
pub fn apply(editor: &mut Editor<'_>, edits: BTreeMap<RelPath, Option<Node>>) -> Result<(), StateError> {
    // By components: `a/b` must not come between `a` and `a!`, which the order of bytes would allow.
    let mut edits: Vec<_> = edits.into_iter().collect();
    edits.sort_by(|one, two| one.0.components().cmp(two.0.components()));
    let mut at: Vec<Box<[u8]>> = Vec::new();
    for (path, change) in edits {
        let Some(name) = path.name() else { continue };
        let mut way: Vec<&[u8]> = path.components().collect();
        way.pop();
        let shared = at.iter().zip(&way).take_while(|(one, two)| ***one == ***two).count();
        while at.len() > shared {
            editor.leave()?;
            at.pop();
        }
        for part in &way[shared..] {
            // To take something away, no directory has to be made.
            if change.is_none() && editor.get(part).is_none_or(|node| node.as_directory().is_none()) {
                break;
            }
            editor.enter(part, Below::Keep)?;
            at.push((*part).into());
        }
        if at.len() == way.len() {
            match change {
                Some(node) => editor.set(name, node),
                None => editor.remove(name),
            }
        }
    }
    for _ in at {
        editor.leave()?;
    }
    Ok(())
}
