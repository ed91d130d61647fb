//! Handing a result over. Everything that could be known was known before; what is left is to write it, all of it or
//! nothing, while others may be writing too.

mod commit;
mod export;
mod files;
mod index_lock;
mod journal;
mod recover;
mod transfer;

use sandtable_store::id::ObjectId;

use super::error::Error;
use super::index::digest;
use super::outcome::{Outcome, Reason, Refusal};
use super::place::Place;
use super::plan::{Concurrency, Plan};
use super::request::{CommitText, Means, MergeRequest, Mode};
use super::target::{Head, Repository, Target, head};
use super::worktree::Worktree;
use crate::random::random;
use commit::Commit;
use files::Files;
use index_lock::IndexLock;
use journal::{Journal, RefStep};
pub(super) use recover::recover;
use transfer::Transfer;

/// Why a delivery was given up. Whatever had been written was put back.
#[derive(Debug)]
pub(super) enum Stop {
    Refused(Refusal),
    /// Something moved under our hands.
    RolledBack(String),
    Failed(Error),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// What an operation works with.
pub(super) struct Delivery<'a> {
    pub(super) means: &'a Means,
    pub(super) place: &'a Place,
    pub(super) plan: &'a Plan,
}

/// Delivers a plan in the way that was asked for.
pub(super) fn deliver(delivery: &Delivery<'_>, request: &MergeRequest) -> Result<Outcome, Stop> {
    match &request.mode {
        Mode::Merge => delivery.merge(request),
        Mode::Apply => delivery.files(None).map(|()| Outcome::Applied),
        Mode::Branch(name) => delivery.branch(request, name),
        Mode::Patch(file) => delivery.patch(file),
        Mode::Bundle { file, branch } => delivery.bundle(request, file, branch),
    }
}

/// Moves a branch to a commit that is already known, with index and files.
pub(super) struct Move {
    pub(super) new: ObjectId,
    pub(super) message: String,
}

impl Delivery<'_> {
    fn merge(&self, request: &MergeRequest) -> Result<Outcome, Stop> {
        let repository = self.repository();
        let commit = self.commit(repository, request)?;
        let transfer = Transfer::prepare(self, repository, &commit)?;
        let message = format!("sandtable: merge of {}", request.snapshot.short(12));
        self.files(Some((&Move { new: commit.id, message }, Some(transfer))))?;
        let (branch, commit) = (repository.head.short(), Some(commit.id));
        Ok(match self.plan.concurrency {
            Concurrency::FastForward => Outcome::FastForward { branch, commit },
            Concurrency::Merged => Outcome::Merged { branch, commit },
        })
    }

    /// The branch goes back or forth to a commit that the repository has.
    pub(super) fn move_branch(&self, to: &Move) -> Result<(), Stop> {
        self.files(Some((to, None)))
    }

    fn repository(&self) -> &Repository {
        match &self.plan.target {
            Target::Repository(repository) => repository,
            Target::Plain { .. } => unreachable!("preflight refuses to commit where there is no repository"),
        }
    }

    fn commit(&self, repository: &Repository, request: &MergeRequest) -> Result<Commit, Stop> {
        let CommitText { author, committer, .. } = &request.commit;
        let author = author.clone().unwrap_or_else(super::request::Identity::ours);
        let committer =
            committer.clone().or_else(|| repository.settings.identity()).unwrap_or_else(|| author.clone());
        let tip = self.plan.history.as_ref().map(|history| &history.tip);
        Ok(Commit::make(self.plan, request, (&author, &committer), tip)?)
    }

    /// Writes the files and, with a branch, index and reference, as one step.
    fn files(&self, branch: Option<(&Move, Option<Transfer>)>) -> Result<(), Stop> {
        let id = format!("{:016x}", random());
        let root = self.plan.target.root().expect("preflight looked").clone();
        let worktree = Worktree::open(root.as_path())?;
        let mut journal = Journal::new(id, root.as_path(), self.git_dir());
        let files = Files::plan(self.plan, &worktree, &mut journal)?;
        if let Some((to, _)) = &branch {
            let repository = self.repository();
            journal.reference = Some(RefStep {
                git_dir: repository.git_dir.clone(),
                name: repository.head.branch().expect("preflight looked").to_owned(),
                old: repository.head.tip().copied(),
                new: to.new,
            });
            journal.index = Some(IndexLock::planned(&journal.id, &repository.git_dir));
            let packs = branch.as_ref().and_then(|(_, transfer)| transfer.as_ref());
            journal.packs = packs.map(Transfer::arriving).unwrap_or_default();
        }
        journal.write(&self.place.journal())?;
        let written = self.write(&mut journal, (&files, &worktree), branch);
        match written {
            Ok(()) => Ok(recover::finish(&self.place.journal(), &journal)?),
            Err(stop) => {
                recover::undo(&self.place.journal(), &journal)?;
                Err(stop)
            }
        }
    }

    /// Up to the moment from which the result stands.
    fn write(
        &self,
        journal: &mut Journal,
        (files, worktree): (&Files, &Worktree),
        branch: Option<(&Move, Option<Transfer>)>,
    ) -> Result<(), Stop> {
        if let Some(lock) = &journal.index {
            lock.take()?;
            self.nothing_moved()?;
        }
        files.stage(self.plan, journal)?;
        journal.write(&self.place.journal())?;
        Files::swap(worktree, journal)?;
        let Some((to, transfer)) = branch else {
            Files::verify(worktree, journal)?;
            journal.done();
            journal.write(&self.place.journal())?;
            return Ok(());
        };
        let index = self.plan.index.as_ref().expect("preflight copied it");
        let lock = journal.index.as_ref().expect("a branch moves with its index");
        lock.prepare(self.plan, index, &Files::written(worktree, journal))?;
        if let Some(transfer) = transfer {
            transfer.arrive()?;
        }
        Files::verify(worktree, journal)?;
        self.nothing_moved()?;
        self.move_reference(journal.reference.as_ref().expect("set with the index"), to)
    }

    /// Under the lock of the index: everything is as the plan saw it.
    fn nothing_moved(&self) -> Result<(), Stop> {
        let repository = self.repository();
        if head(&self.means.git, &repository.git_dir, &repository.common_dir)? != repository.head {
            return Err(Stop::RolledBack("`HEAD` or its branch moved meanwhile".to_owned()));
        }
        let now = match fs_err::read(repository.git_dir.join("index")) {
            Ok(bytes) => Some(digest(&bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        if now != self.plan.index.as_ref().and_then(|index| index.digest) {
            return Err(Stop::RolledBack("the index was changed meanwhile".to_owned()));
        }
        Ok(())
    }

    /// Compare and swap. Git gets our lock as its standard input: should we die, nobody recovers before it has ended.
    fn move_reference(&self, step: &RefStep, to: &Move) -> Result<(), Stop> {
        let old = step.old.map_or_else(|| "0".repeat(to.new.kind().bytes() * 2), |id| id.to_string());
        let who = self.repository().settings.identity().unwrap_or_else(super::request::Identity::ours);
        let call = self.means.git.call(&step.git_dir).variable("GIT_COMMITTER_NAME", &who.name);
        let call = call.variable("GIT_COMMITTER_EMAIL", &who.email);
        let call = call.args(["update-ref", "-m", &to.message, &step.name, &to.new.to_string(), &old]);
        let held = rustix::io::fcntl_dupfd_cloexec(self.place.held(), 3)?;
        if call.succeeds_holding(held)? {
            return Ok(());
        }
        Err(Stop::RolledBack(format!("the branch `{}` moved meanwhile", step.name)))
    }

    fn git_dir(&self) -> Option<&std::path::Path> {
        match &self.plan.target {
            Target::Repository(repository) => Some(&repository.git_dir),
            Target::Plain { .. } => None,
        }
    }

    fn refuse_name(&self, name: &str) -> Result<String, Stop> {
        let full = format!("refs/heads/{name}");
        let check = self.plan.scratch.call().args(["check-ref-format", &full]);
        let odd = name.starts_with('-') || name == "HEAD" || name.len() > 200;
        if odd || !check.finished(None, &[0, 1])?.status.success() {
            let text = format!("`{name}` cannot be the name of a branch");
            return Err(Refusal::new(Reason::BranchName, text).into());
        }
        Ok(full)
    }
}

/// The tip of the target, as a parent.
pub(super) fn parent(repository: &Repository) -> Option<&ObjectId> {
    match &repository.head {
        Head::Branch { tip, .. } | Head::Detached { tip } => Some(tip),
        Head::Unborn { .. } => None,
    }
}
