//! Handing over without touching index and files: a branch, a patch, a bundle.

use fs_err as fs;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::random::random;
use sandtable_store::regular;

use super::journal::Journal;
use super::reference::RefStep;
use super::transfer::Transfer;
use super::{Delivery, Standing, Stop, new_file};
use crate::history::SHALLOW;
use crate::outcome::Outcome;
use crate::refusal::{Reason, Refusal};
use crate::request::MergeRequest;

impl Delivery<'_> {
    /// A branch that did not exist.
    pub(super) fn branch(&self, request: &MergeRequest, name: &str) -> Result<Standing<Outcome>, Stop> {
        let full = self.refuse_name(name)?;
        let repository = self.repository();
        if let Some(refusal) = repository.odd_branch(&full) {
            return Err(refusal.into());
        }
        let exists = self.means.git.call(&repository.git_dir).args(["rev-parse", "-q", "--verify", &full]);
        let taken = || Refusal::new(Reason::BranchExists, format!("a branch `{name}` exists already"));
        if exists.finished(None, &[0, 1, 128])?.status.success() {
            return Err(taken().into());
        }
        let commit = self.commit(repository, request)?;
        let transfer = Transfer::prepare(self, repository, &commit)?;
        let root = repository.root.as_ref().map_or(repository.git_dir.as_path(), |root| root.as_path());
        let mut journal = Journal::new(format!("{:016x}", random()), root, Some(&repository.git_dir));
        let message = "sandtable: export";
        journal.reference =
            Some(RefStep { old: None, ..RefStep::new(repository, &full, commit.id, message) });
        journal.packs = transfer.arriving();
        self.heed()?;
        journal.write(&self.place.journal())?;
        let moved = transfer.arrive().map_err(Stop::from);
        let moved = moved.and_then(|()| self.move_reference(&journal, message, &|| Ok(())));
        let moved = moved.map_err(|stop| match stop {
            Stop::RolledBack(_) => taken().into(),
            stop => stop,
        });
        let left = self.end(&mut journal, moved)?;
        let outcome =
            Outcome::Exported { branch: Some(name.to_owned()), file: None, commit: Some(commit.id) };
        Ok((outcome, left))
    }

    /// A new file with the difference between base and snapshot. Programs named by attributes take no part in it.
    pub(super) fn patch(&self, file: &HostPath) -> Result<Outcome, Stop> {
        let call = self.plan.scratch.call().args(["diff-tree", "-p", "--binary", "--full-index", "-r"]);
        let call = call.args(["--no-ext-diff", "--no-textconv", "--no-color", "-M"]);
        let text = call.attributes(&self.plan.base).id(&self.plan.base).id(&self.plan.theirs).output()?;
        new_file::write(file, &text)?;
        Ok(Outcome::Exported { branch: None, file: Some(file.clone()), commit: None })
    }

    /// A new file with one branch in it, on top of what the target has.
    pub(super) fn bundle(
        &self,
        request: &MergeRequest,
        file: &HostPath,
        branch: &str,
    ) -> Result<Outcome, Stop> {
        let full = self.refuse_name(branch)?;
        let repository = self.repository();
        let commit = self.commit(repository, request)?;
        // The check of a strict transfer holds for a bundle as well.
        drop(Transfer::prepare(self, repository, &commit)?);
        let shallow = repository.common_dir.join("shallow");
        if shallow.exists() {
            let mut copy = fs::File::create(self.plan.scratch.path().join("shallow"))?;
            regular::copy(&shallow, &mut copy, SHALLOW)?;
        }
        let scratch = &self.plan.scratch;
        scratch.call().args(["update-ref", &full, &commit.id.to_string()]).output()?;
        let mut call = scratch.call().args(["bundle", "create", "-q", "-", &full]);
        if let Some(tip) = repository.head.tip() {
            call = call.arg(format!("^{tip}"));
        }
        let bytes = call.output()?;
        new_file::write(file, &bytes)?;
        Ok(Outcome::Exported {
            branch: Some(branch.to_owned()),
            file: Some(file.clone()),
            commit: Some(commit.id),
        })
    }
}
