//! Objects on their way into the user's repository: one pack, checked in quarantine against what is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_store::id::ObjectId;

use super::commit::Commit;
use super::{Delivery, Stop};
use crate::merge::error::Error;
use crate::merge::git::GitError;
use crate::merge::outcome::{Reason, Refusal};
use crate::merge::scratch::Scratch;
use crate::merge::target::Repository;

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
        let list: Vec<String> = new_objects(delivery, commit)?.iter().map(ToString::to_string).collect();
        let list = list.join("\n") + "\n";
        let pack = plan.scratch.call().args(["pack-objects", "--stdout", "-q", "--delta-base-offset"]);
        let pack = pack.output_with(list.as_bytes())?;
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
            if fs::rename(&from, self.to.join(name)).is_err() {
                // Another file system: a copy under a name that git's own cleaning knows, then the rename.
                let copied = fs::copy(&from, &draft).and_then(|_| fs::File::open(&draft)?.sync_all());
                if let Err(error) = copied.and_then(|()| fs::rename(&draft, self.to.join(name))) {
                    drop(fs::remove_file(&draft));
                    return Err(error.into());
                }
            }
        }
        rustix::fs::fsync(fs::File::open(&self.to)?)?;
        Ok(())
    }
}

/// Commit, trees and blobs that are new.
fn new_objects(delivery: &Delivery<'_>, commit: &Commit) -> Result<BTreeSet<ObjectId>, Error> {
    let plan = delivery.plan;
    let mut ids = BTreeSet::from([commit.id, plan.result]);
    let call =
        plan.scratch.call().args(["diff-tree", "-r", "-t", "-z", "--raw", "--no-renames", "--no-abbrev"]);
    let answer = call.id(&plan.ours).id(&plan.result).output()?;
    for head in answer.split(|byte| *byte == 0).filter(|field| field.starts_with(b":")) {
        let text = String::from_utf8_lossy(head);
        let words: Vec<&str> = text.split(' ').collect();
        if let [_, mode, _, id, _] = words[..]
            && !matches!(mode, "000000" | "160000")
        {
            ids.insert(id.parse().map_err(GitError::from)?);
        }
    }
    Ok(ids)
}
