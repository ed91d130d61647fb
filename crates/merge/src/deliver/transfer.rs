//! Objects on their way into the user's repository: checked in quarantine against what is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_sandbox::repository::{self, Failed};
use sandtable_store::id::ObjectId;
use sandtable_store::pack::{PackWriter, Sync};
use sandtable_store::regular;

use super::commit::Commit;
use super::{Delivery, Stop};
use crate::error::Error;
use crate::git::GitError;
use crate::or_git::or_git;
use crate::refusal::{Reason, Refusal};
use crate::scratch::Scratch;
use crate::target::Repository;

/// As many are what git itself would write in files of their own (`receive.unpackLimit`), and not force to disk.
const FEW: usize = 100;
/// More than this is packed by git, which does not hold it in memory.
const AT_ONCE: usize = 256 << 20;

/// Objects that passed.
#[derive(Debug)]
pub(super) struct Transfer {
    quarantine: Scratch,
    to: PathBuf,
    /// Below the directory of objects.
    names: Vec<String>,
}

impl Transfer {
    /// Packs what the result has and the branch has not, and lets git check it strictly where only the user's objects
    /// can be seen beside it. A few objects are not forced to disk, since git does not force them either.
    pub(super) fn prepare(
        delivery: &Delivery<'_>,
        repository: &Repository,
        commit: &Commit,
    ) -> Result<Self, Stop> {
        let plan = delivery.plan;
        let new = new_objects(delivery, commit)?;
        let pack = or_git(packed(&plan.scratch, &new), || packed_by_git(&plan.scratch, &new))?;
        let to = repository.objects();
        let path = delivery.place.scratch("quarantine");
        let quarantine = Scratch::new(&delivery.means.git, path, plan.scratch.format(), &[&to])?;
        let check = quarantine.call().args(["index-pack", "--stdin", "--strict", "--fsck-objects"]);
        let check = if new.len() < FEW { check.setting("core.fsync", "none") } else { check };
        match check.finished(Some(&pack), &[0]) {
            Ok(_) => {}
            Err(GitError::Call(error)) => {
                let text = format!("git's check of the objects failed: {error}");
                return Err(Refusal::new(Reason::Objects, text).into());
            }
            Err(error) => return Err(error.into()),
        }
        let mut names = arrived(&quarantine.path().join("objects"))?;
        names.retain(|name| !to.join(name).exists());
        Ok(Self { quarantine, to, names })
    }

    /// The files that will be new in the user's repository.
    pub(super) fn arriving(&self) -> Vec<PathBuf> {
        self.names.iter().map(|name| self.to.join(name)).collect()
    }

    pub(super) fn arrive(self) -> Result<(), Error> {
        for name in &self.names {
            let (from, to) = (self.quarantine.path().join("objects").join(name), self.to.join(name));
            let folder = to.parent().expect("it is below the directory");
            if !folder.exists() {
                fs::create_dir_all(folder)?;
            }
            // Within a file system names come to disk in order: an object before the reference that needs it.
            if fs::rename(&from, &to).is_err() {
                // Another file system: a copy under a name that git's own cleaning knows, then the rename.
                let draft = folder.join(format!("tmp_obj_sandtable_{}", name.replace('/', "_")));
                if let Err(error) = copied(&from, &draft).and_then(|()| fs::rename(&draft, &to)) {
                    drop(fs::remove_file(&draft));
                    return Err(error.into());
                }
                rustix::fs::fsync(fs::File::open(folder)?)?;
            }
        }
        Ok(())
    }
}

/// A new file on disk, with the permissions of the old one. What an interrupted copy left under its name goes.
fn copied(from: &Path, draft: &Path) -> std::io::Result<()> {
    drop(fs::remove_file(draft));
    let (mut old, mut new) = (regular::open(from)?, fs::File::create_new(draft)?);
    std::io::copy(&mut old, &mut new)?;
    new.set_permissions(old.metadata()?.permissions())?;
    new.sync_all()
}

/// What git left in a directory of objects, in the order in which it may become visible: what needs another object after
/// it does no harm, but an index without its pack would.
fn arrived(objects: &Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for folder in fs::read_dir(objects)? {
        let folder = folder?.file_name().into_string().unwrap_or_default();
        let is_loose = folder.len() == 2 && folder.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_loose && folder != "pack" {
            continue;
        }
        for entry in fs::read_dir(objects.join(&folder))? {
            let name = entry?.file_name().into_string().unwrap_or_default();
            if is_loose || name.starts_with("pack-") {
                names.push(format!("{folder}/{name}"));
            }
        }
    }
    names.sort_by_key(|name| Path::new(name).extension().is_some_and(|end| end == "idx"));
    Ok(names)
}

/// The objects as one pack.
fn packed(scratch: &Scratch, ids: &BTreeSet<ObjectId>) -> Result<Vec<u8>, Failed> {
    let draft = scratch.path().join("new.pack");
    drop(fs::remove_file(&draft));
    let writer = PackWriter::create(&draft, scratch.format()).map_err(repository::RepositoryError::from)?;
    let mut left = AT_ONCE;
    for id in ids {
        let object = scratch.trees().object(id)?;
        left = left.checked_sub(object.data.len()).ok_or(Failed::NotUnderstood)?;
        writer.add(id, object.kind, &object.data).map_err(repository::RepositoryError::from)?;
    }
    let written = writer.finish(scratch.path(), Sync::Later).map_err(repository::RepositoryError::from)?;
    let name = written.ok_or(Failed::NotUnderstood)?.name;
    Ok(fs::read(scratch.path().join(format!("{name}.pack"))).map_err(repository::RepositoryError::from)?)
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
