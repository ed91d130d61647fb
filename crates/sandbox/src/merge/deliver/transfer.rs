//! Objects on their way into the user's repository: one pack, checked in quarantine against what is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_store::id::ObjectId;
use sandtable_store::pack::{PackWriter, Sync};

use super::commit::Commit;
use super::{Delivery, Stop};
use crate::merge::error::Error;
use crate::merge::git::GitError;
use crate::merge::outcome::{Reason, Refusal};
use crate::merge::scratch::Scratch;
use crate::merge::target::Repository;
use crate::merge::trees::{Failed, or_git};

/// More than this is packed by git, which does not hold it in memory.
const AT_ONCE: usize = 256 << 20;

/// A pack that passed.
#[derive(Debug)]
pub(super) struct Transfer {
    quarantine: Scratch,
    to: PathBuf,
    names: Vec<String>,
}

impl Transfer {
    /// Packs what the result has and the branch has not, and lets git check it strictly where only the user's objects
    /// can be seen beside it.
    pub(super) fn prepare(
        delivery: &Delivery<'_>,
        repository: &Repository,
        commit: &Commit,
    ) -> Result<Self, Stop> {
        let plan = delivery.plan;
        let new = new_objects(delivery, commit)?;
        let pack = or_git(packed(&plan.scratch, &new), || packed_by_git(&plan.scratch, &new))?;
        let objects = repository.objects();
        let path = delivery.place.scratch("quarantine");
        let quarantine = Scratch::new(&delivery.means.git, path, plan.scratch.format(), &[&objects])?;
        let check = quarantine.call().args(["index-pack", "--stdin", "--strict", "--fsck-objects"]);
        match check.finished(Some(&pack), &[0]) {
            Ok(_) => {}
            Err(GitError::Call(error)) => {
                let text = format!("git's check of the objects failed: {error}");
                return Err(Refusal::new(Reason::Objects, text).into());
            }
            Err(error) => return Err(error.into()),
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(quarantine.path().join("objects/pack"))? {
            names.extend(entry?.file_name().into_string().ok().filter(|name| name.starts_with("pack-")));
        }
        // The index makes a pack visible, so it comes last.
        names.sort_by_key(|name| Path::new(name).extension().is_some_and(|end| end == "idx"));
        let to = objects.join("pack");
        names.retain(|name| !to.join(name).exists());
        Ok(Self { quarantine, to, names })
    }

    /// The files that will be new in the user's repository.
    pub(super) fn arriving(&self) -> Vec<PathBuf> {
        self.names.iter().map(|name| self.to.join(name)).collect()
    }

    pub(super) fn arrive(self) -> Result<(), Error> {
        fs::create_dir_all(&self.to)?;
        for name in &self.names {
            let from = self.quarantine.path().join("objects/pack").join(name);
            let draft = self.to.join(format!("tmp_sandtable_{name}"));
            // Within a file system names come to disk in order: the pack before the reference that needs it.
            if fs::rename(&from, self.to.join(name)).is_err() {
                // Another file system: a copy under a name that git's own cleaning knows, then the rename.
                let copied = fs::copy(&from, &draft).and_then(|_| fs::File::open(&draft)?.sync_all());
                if let Err(error) = copied.and_then(|()| fs::rename(&draft, self.to.join(name))) {
                    drop(fs::remove_file(&draft));
                    return Err(error.into());
                }
                rustix::fs::fsync(fs::File::open(&self.to)?)?;
            }
        }
        Ok(())
    }
}

/// The objects as one pack.
fn packed(scratch: &Scratch, ids: &BTreeSet<ObjectId>) -> Result<Vec<u8>, Failed> {
    let draft = scratch.path().join("new.pack");
    drop(fs::remove_file(&draft));
    let writer = PackWriter::create(&draft, scratch.format()).map_err(Error::from)?;
    let mut left = AT_ONCE;
    for id in ids {
        let object = scratch.trees().object(id)?;
        left = left.checked_sub(object.data.len()).ok_or(Failed::NotUnderstood)?;
        writer.add(id, object.kind, &object.data).map_err(Error::from)?;
    }
    let written = writer.finish(scratch.path(), Sync::Later).map_err(Error::from)?;
    let name = written.ok_or(Failed::NotUnderstood)?.name;
    Ok(fs::read(scratch.path().join(format!("{name}.pack"))).map_err(Error::from)?)
}

fn packed_by_git(scratch: &Scratch, ids: &BTreeSet<ObjectId>) -> Result<Vec<u8>, Error> {
    let list: Vec<u8> = ids.iter().flat_map(|id| format!("{id}\n").into_bytes()).collect();
    let call = scratch.call().args(["pack-objects", "--stdout", "-q", "--delta-base-offset"]);
    Ok(call.output_with(&list)?)
}

/// Commit, trees and blobs that are new.
fn new_objects(delivery: &Delivery<'_>, commit: &Commit) -> Result<BTreeSet<ObjectId>, Error> {
    let plan = delivery.plan;
    let arrivals = plan.scratch.trees().arrivals(&plan.ours, &plan.result);
    let ids = or_git(arrivals, || arrivals_by_git(&plan.scratch, (&plan.ours, &plan.result)))?;
    let history = plan.history.iter().flat_map(|history| history.objects.iter().copied());
    Ok(ids.into_iter().chain([commit.id]).chain(history).collect())
}

fn arrivals_by_git(scratch: &Scratch, (from, to): (&ObjectId, &ObjectId)) -> Result<Vec<ObjectId>, Error> {
    let mut ids = vec![*to];
    let call = scratch.call().args(["diff-tree", "-r", "-t", "-z", "--raw", "--no-renames", "--no-abbrev"]);
    let answer = call.id(from).id(to).output()?;
    for head in answer.split(|byte| *byte == 0).filter(|field| field.starts_with(b":")) {
        let text = String::from_utf8_lossy(head);
        let words: Vec<&str> = text.split(' ').collect();
        if let [_, mode, _, id, _] = words[..]
            && !matches!(mode, "000000" | "160000")
        {
            ids.push(id.parse().map_err(GitError::from)?);
        }
    }
    Ok(ids)
}
