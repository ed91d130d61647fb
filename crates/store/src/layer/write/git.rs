//! The layer of a git directory, put back as it was kept.

use std::os::fd::BorrowedFd;

use super::upper::{Merge, Writing};
use super::{Error, Options, Outcome};
use crate::id::ObjectId;
use crate::layer::opaque::{LayerName, open};
use crate::object::ReadObjects;
use crate::path::RelPath;
use crate::state::{Entry, Node, StateError};

/// Writes the kept `layer` into the directory `upper`, in which nothing of it may be yet.
pub fn write_git(
    objects: &dyn ReadObjects,
    layer: &ObjectId,
    upper: BorrowedFd<'_>,
    options: &Options<'_>,
) -> Result<Outcome, Error> {
    let mut writing = Writing::new(objects, upper, options);
    let root = open(objects, layer)?.root().read_root(objects)?.entries;
    let mut pending: Vec<(RelPath, Vec<Entry>)> = vec![(RelPath::root(), root)];
    let mut made: Vec<(RelPath, Node)> = Vec::new();
    let mut left = options.limits.entries;
    while let Some((path, entries)) = pending.pop() {
        for Entry { name, node } in entries {
            left = left.checked_sub(1).ok_or(StateError::TooMany)?;
            let unfit = StateError::Unfit { id: *layer, what: "it has a name that was not written here" };
            let at = |name: &[u8]| path.join(name).expect("a state has names only");
            match LayerName::parse(&name).ok_or(unfit)? {
                // Heeded when the directory was made.
                LayerName::Opaque => {}
                LayerName::Whiteout(name) => writing.whiteout(&at(name))?,
                LayerName::Entry(name) => match node.as_directory() {
                    None => writing.entry(&at(name), &node)?,
                    Some(directory) => {
                        let below = directory.read(objects)?;
                        let is_opaque = below
                            .iter()
                            .any(|entry| LayerName::parse(&entry.name) == Some(LayerName::Opaque));
                        let merge = if is_opaque { Merge::Nothing } else { Merge::Below };
                        writing.directory(&at(name), merge)?;
                        pending.push((at(name), below));
                        made.push((at(name), node));
                    }
                },
            }
        }
    }
    // Those below before those above: each is modified by what is written into it.
    made.sort_unstable_by(|one, two| two.0.cmp(&one.0));
    for (path, node) in &made {
        writing.settle_one(path, node)?;
    }
    writing.outcome.skipped.sort_unstable();
    Ok(writing.outcome)
}
