//! One directory of a state, written to its three trees at once.

use super::directory::{BELOW, RECORDS};
use super::manifest::{self, ROOT, Record, RecordKind};
use super::times;
use super::{Directory, Entry, Own, What};
use crate::id::ObjectId;
use crate::object::{EntryMode, ObjectKind, WriteError, WriteObjects};

/// Writes a directory with these entries, which are sorted by name. `root` is what the root says of itself.
///
/// The objects are put together as bytes at once: a directory may have a million entries.
pub(crate) fn write_directory(
    sink: &dyn WriteObjects,
    entries: &[Entry],
    root: Option<&Own>,
) -> Result<Directory, WriteError> {
    Ok(Directory {
        tree: write_tree(sink, entries)?,
        manifest: write_side(sink, records(entries, root), entries, |below| below.manifest)?,
        times: write_side(sink, moments(entries, root), entries, |below| below.times)?,
    })
}

fn write_tree(sink: &dyn WriteObjects, entries: &[Entry]) -> Result<Option<ObjectId>, WriteError> {
    let parts = || {
        entries.iter().filter_map(|Entry { name, node }| {
            node.id().map(|id| Part { mode: node.mode(), prefix: b"", name, id })
        })
    };
    // Only a directory can stand elsewhere than in the order of names, and most entries are files.
    if entries.iter().any(|entry| entry.node.as_directory().is_some()) {
        return write_parts(sink, parts().collect());
    }
    write_sorted(sink, parts)
}

fn write_side(
    sink: &dyn WriteObjects,
    blob: Vec<u8>,
    entries: &[Entry],
    side: impl Fn(&Directory) -> Option<ObjectId>,
) -> Result<Option<ObjectId>, WriteError> {
    let mut parts = Vec::new();
    if !blob.is_empty() {
        let id = sink.write(ObjectKind::Blob, &blob)?;
        parts.push(Part { mode: EntryMode::File, prefix: b"", name: RECORDS, id });
    }
    drop(blob);
    for Entry { name, node } in entries {
        let below = node.as_directory().and_then(&side);
        parts.extend(below.map(|id| Part { mode: EntryMode::Tree, prefix: &[BELOW], name, id }));
    }
    write_parts(sink, parts)
}

/// One entry of a tree object.
#[derive(Clone, Copy)]
struct Part<'a> {
    mode: EntryMode,
    prefix: &'static [u8],
    name: &'a [u8],
    id: ObjectId,
}

impl Part<'_> {
    /// Git sorts a directory as if its name ended with a slash.
    fn key(&self) -> impl Iterator<Item = &u8> {
        let end: &[u8] = if self.mode == EntryMode::Tree { b"/" } else { b"" };
        self.prefix.iter().chain(self.name).chain(end)
    }
}

/// `None` where there is nothing to write.
fn write_parts(sink: &dyn WriteObjects, mut parts: Vec<Part<'_>>) -> Result<Option<ObjectId>, WriteError> {
    parts.sort_by(|one, two| one.key().cmp(two.key()));
    write_sorted(sink, || parts.iter().copied())
}

fn write_sorted<'a, I: Iterator<Item = Part<'a>>>(
    sink: &dyn WriteObjects,
    parts: impl Fn() -> I,
) -> Result<Option<ObjectId>, WriteError> {
    let length = |part: Part<'_>| {
        part.mode.octal().len() + part.prefix.len() + part.name.len() + 2 + part.id.as_bytes().len()
    };
    let mut data = Vec::with_capacity(parts().map(length).sum());
    for part in parts() {
        data.extend_from_slice(part.mode.octal().as_bytes());
        data.push(b' ');
        data.extend_from_slice(part.prefix);
        data.extend_from_slice(part.name);
        data.push(0);
        data.extend_from_slice(part.id.as_bytes());
    }
    if data.is_empty() {
        return Ok(None);
    }
    sink.write(ObjectKind::Tree, &data).map(Some)
}

fn records(entries: &[Entry], root: Option<&Own>) -> Vec<u8> {
    let mut blob = Vec::new();
    let mut root = root.filter(|own| own.bits != 0o755 || !own.attributes.is_empty());
    for entry in entries {
        if *entry.name > *ROOT {
            append_root(root.take(), &mut blob);
        }
        if let Some(record) = record(entry) {
            manifest::append(&record, &mut blob);
        }
    }
    append_root(root, &mut blob);
    blob
}

fn append_root(root: Option<&Own>, blob: &mut Vec<u8>) {
    if let Some(Own { bits, attributes, .. }) = root {
        let attributes = attributes.clone();
        let record = Record { kind: RecordKind::Directory, bits: *bits, name: ROOT.into(), attributes };
        manifest::append(&record, blob);
    }
}

/// What must be said about an entry that git does not say.
fn record(entry: &Entry) -> Option<Record> {
    let Own { bits, attributes, .. } = &entry.node.own;
    let is_usual = *bits == Own::usual(entry.node.mode()).bits;
    let (kind, is_needed) = match &entry.node.what {
        What::File(_) => (RecordKind::File, !is_usual),
        What::Symlink(_) => (RecordKind::Symlink, false),
        What::Directory(below) => {
            (RecordKind::Directory, !is_usual || (below.tree, below.manifest) == (None, None))
        }
        What::Gitlink(_) => return None,
    };
    (is_needed || !attributes.is_empty()).then(|| Record {
        kind,
        bits: *bits,
        name: entry.name.clone(),
        attributes: attributes.clone(),
    })
}

fn moments(entries: &[Entry], root: Option<&Own>) -> Vec<u8> {
    let mut blob = Vec::new();
    let mut root = root.and_then(|own| own.mtime_ns);
    let mut append_root = |blob: &mut Vec<u8>| {
        if let Some(nanoseconds) = root.take() {
            times::append(nanoseconds, ROOT, blob);
        }
    };
    for Entry { name, node } in entries {
        if **name > *ROOT {
            append_root(&mut blob);
        }
        if let Some(nanoseconds) = node.own.mtime_ns {
            times::append(nanoseconds, name, &mut blob);
        }
    }
    append_root(&mut blob);
    blob
}
