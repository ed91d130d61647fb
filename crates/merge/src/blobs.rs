//! Many blobs at once: read here, and by one call of git where that does not work.

use std::collections::BTreeMap;

use sandtable_sandbox::repository::Failed;
use sandtable_store::id::ObjectId;
use sandtable_store::object::ObjectKind;

use super::error::Error;
use super::git::GitError;
use super::or_git::or_git;
use super::scratch::Scratch;

/// How large each is.
pub(super) fn sizes(scratch: &Scratch, ids: &[ObjectId]) -> Result<BTreeMap<ObjectId, u64>, Error> {
    let trees = scratch.trees();
    let size = |id: &ObjectId| {
        scratch.attention().heed()?;
        Ok((*id, trees.blob_size(id)?))
    };
    let ours: Result<_, Failed> = ids.iter().map(size).collect();
    or_git(ours, || sizes_by_git(scratch, ids))
}

fn sizes_by_git(scratch: &Scratch, ids: &[ObjectId]) -> Result<BTreeMap<ObjectId, u64>, Error> {
    let call = scratch.call().args(["cat-file", "--buffer", "--batch-check=%(objectname) %(objectsize)"]);
    let answer = call.output_with(&listed(ids))?;
    let mut found = BTreeMap::new();
    for line in String::from_utf8_lossy(&answer).lines() {
        let wrong = || GitError::Answer(line.to_owned());
        let (id, size) = line.split_once(' ').ok_or_else(wrong)?;
        found.insert(id.parse().map_err(GitError::from)?, size.parse().map_err(|_| wrong())?);
    }
    Ok(found)
}

/// The bytes of each.
pub(super) fn contents(scratch: &Scratch, ids: &[ObjectId]) -> Result<BTreeMap<ObjectId, Vec<u8>>, Error> {
    let trees = scratch.trees();
    let read = |id: &ObjectId| {
        scratch.attention().heed()?;
        Ok((*id, trees.read(id, ObjectKind::Blob)?))
    };
    let ours: Result<_, Failed> = ids.iter().map(read).collect();
    or_git(ours, || contents_by_git(scratch, ids))
}

fn contents_by_git(scratch: &Scratch, ids: &[ObjectId]) -> Result<BTreeMap<ObjectId, Vec<u8>>, Error> {
    let call = scratch.call().args(["cat-file", "--buffer", "--batch=%(objectname) %(objectsize)"]);
    let answer = call.output_with(&listed(ids))?;
    let (mut found, mut rest) = (BTreeMap::new(), answer.as_slice());
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        let wrong = || GitError::Answer(line.clone());
        let (id, size) = line.split_once(' ').ok_or_else(wrong)?;
        let size: usize = size.parse().map_err(|_| wrong())?;
        let bytes = rest.get(end + 1..end + 1 + size).ok_or_else(wrong)?;
        found.insert(id.parse().map_err(GitError::from)?, bytes.to_vec());
        rest = rest.get(end + size + 2..).ok_or_else(wrong)?;
    }
    Ok(found)
}

fn listed(ids: &[ObjectId]) -> Vec<u8> {
    ids.iter().flat_map(|id| format!("{id}\n").into_bytes()).collect()
}
