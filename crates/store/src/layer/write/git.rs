//! The layer of a git directory, put back as it was kept.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::upper::{Merge, Writing};
use super::{LayerWriteError, LayerWriteOptions, LayerWriteOutcome};
use crate::checkout::Way;
use crate::id::ObjectId;
use crate::layer::opaque::{LayerName, open};
use crate::object::ReadObjects;
use crate::state::{Entry, Own, StateError};

/// Writes the kept `layer` into the directory `upper`, in which nothing of it may be yet.
pub fn write_git(
    objects: &dyn ReadObjects,
    layer: &ObjectId,
    upper: BorrowedFd<'_>,
    options: &LayerWriteOptions<'_>,
) -> Result<LayerWriteOutcome, LayerWriteError> {
    let mut writing = Writing::new(objects, upper, options);
    let root = open(objects, layer)?.root().read_root(objects)?.entries;
    let mut pending: Vec<(Arc<Way>, Vec<Entry>)> = vec![(Way::root(), root)];
    let mut made: Vec<(Arc<Way>, Own)> = Vec::new();
    let mut left = options.limits.entries;
    while let Some((way, entries)) = pending.pop() {
        for Entry { name, node } in entries {
            left = left.checked_sub(1).ok_or(StateError::TooMany)?;
            let unfit = StateError::Unfit { id: *layer, what: "it has a name that was not written here" };
            match LayerName::parse(&name).ok_or(unfit)? {
                // Heeded when the directory was made.
                LayerName::Opaque => {}
                LayerName::Whiteout(name) => writing.whiteout(&way.below(name))?,
                LayerName::Entry(name) => match node.as_directory() {
                    None => writing.entry(&way.below(name), &node)?,
                    Some(directory) => {
                        let below = directory.read(objects)?;
                        let is_opaque = below
                            .iter()
                            .any(|entry| LayerName::parse(&entry.name) == Some(LayerName::Opaque));
                        let merge = if is_opaque { Merge::Nothing } else { Merge::Below };
                        let way = way.below(name);
                        writing.directory(&way, merge)?;
                        pending.push((Arc::clone(&way), below));
                        made.push((way, node.own));
                    }
                },
            }
        }
    }
    // Those below before those above: each is modified by what is written into it.
    for (way, own) in made.iter().rev() {
        writing.settle_one(way, own)?;
    }
    writing.outcome.skipped.sort_unstable();
    Ok(writing.outcome)
}
