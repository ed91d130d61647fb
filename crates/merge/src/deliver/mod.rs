//! Handing a result over. Everything that could be known was known before; what is left is to write it, all of it or
//! nothing, while others may be writing too.

mod commit;
mod export;
mod files;
mod index_lock;
mod journal;
mod log;
mod new_file;
mod recover;
mod reference;
mod staged;
mod transfer;
mod word;

use sandtable_sandbox::attention::Attention;
use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;

use super::error::Error;
use super::index::{digest, read_index};
use super::outcome::Outcome;
use super::place::Place;
use super::plan::{Concurrency, Plan};
use super::recorded::{Made, Recorded};
use super::refusal::{Reason, Refusal};
use super::request::{CommitText, Log, Means, MergeRequest, Mode};
use super::target::{Head, Repository, Target, head};
use super::worktree::Worktree;
use commit::Commit;
use files::Files;
use index_lock::IndexLock;
use journal::{Journal, Phase};
use log::LogEntry;
pub use recover::Recovery;
use recover::When;
pub(super) use recover::recover;
use reference::RefStep;
use staged::Staged;
use transfer::Transfer;

/// Why a delivery was given up. Whatever had been written was put back.
#[derive(Debug)]
pub(super) enum Stop {
    Refused(Refusal),
    /// Something moved under our hands.
    RolledBack(String),
    /// A signal came.
    Interrupted,
    Failed(Error),
    /// Not everything could be put back: the journal is still there.
    Unfinished(Error),
    /// Whatever it was, with paths that are as somebody else left them, or under a new name beside the file.
    LeftAlone(Box<Stop>, Vec<RelPath>),
}

/// What there is to tell of a delivery that stands.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// What somebody wrote meanwhile to files that were replaced, under new names beside them.
    pub(super) beside: Vec<RelPath>,
    /// What kept the last steps from being done: the journal is still there then.
    pub(super) failed: Option<Error>,
}

/// What was delivered, and what else there is to tell.
pub(super) type Standing<T> = (T, Rest);

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
    /// Its name, in the journal and in the log.
    pub(super) id: &'a str,
    pub(super) means: &'a Means,
    pub(super) place: &'a Place,
    pub(super) plan: &'a Plan,
    /// What was not brought because the snapshot does not hold what is there: nor is it taken back.
    pub(super) spared: &'a [RelPath],
    pub(super) attention: &'a Attention,
}

/// Delivers a plan in the way that was asked for.
pub(super) fn deliver(delivery: &Delivery<'_>, request: &MergeRequest) -> Result<Standing<Outcome>, Stop> {
    let log = |made: Option<&Made<'_>>| {
        request.log.as_ref().map(|log| LogEntry::new(log, &Recorded::of(request, delivery.spared, made)))
    };
    match &request.mode {
        Mode::Merge => delivery.merge(request, &log),
        Mode::Apply => Ok((Outcome::Applied, delivery.files(None, log(None))?)),
        Mode::Branch(name) => delivery.branch(request, name),
        Mode::Patch(file) => Ok((delivery.patch(file)?, Rest::default())),
        Mode::Bundle { file, branch } => Ok((delivery.bundle(request, file, branch)?, Rest::default())),
    }
}

/// The entry in the log of a delivery that makes this commit.
type Logged<'a> = &'a dyn Fn(Option<&Made<'_>>) -> Option<LogEntry>;

/// Moves a branch to a commit that is already known, with index and files.
pub(super) struct Move {
    pub(super) new: ObjectId,
    pub(super) message: String,
}

impl Delivery<'_> {
    fn merge(&self, request: &MergeRequest, log: Logged<'_>) -> Result<Standing<Outcome>, Stop> {
        let repository = self.repository();
        let commit = self.commit(repository, request)?;
        let transfer = Transfer::prepare(self, repository, &commit)?;
        let message = format!("sandtable: merge of {}", request.snapshot.short(12));
        let name = repository.head.branch().expect("preflight looked");
        let to = Move { new: commit.id, message };
        let made = Made { commit: commit.id, branch: name, first: repository.head.tip().is_none() };
        let left = self.files(Some((&to, Some(transfer))), log(Some(&made)))?;
        let (branch, commit) = (repository.head.short(), Some(commit.id));
        let outcome = match self.plan.concurrency {
            Concurrency::FastForward => Outcome::FastForward { branch, commit },
            Concurrency::Merged => Outcome::Merged { branch, commit },
        };
        Ok((outcome, left))
    }

    /// The branch goes back or forth to a commit that the repository has.
    pub(super) fn move_branch(&self, to: &Move, log: Option<&Log>) -> Result<Standing<()>, Stop> {
        Ok(((), self.files(Some((to, None)), log.and_then(LogEntry::over))?))
    }

    /// Whether a signal asks us to stop. Not to be asked once the result stands.
    fn heed(&self) -> Result<(), Stop> {
        if self.attention.signal().is_some() { Err(Stop::Interrupted) } else { Ok(()) }
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
    fn files(&self, branch: Option<(&Move, Option<Transfer>)>, log: Option<LogEntry>) -> Result<Rest, Stop> {
        let id = self.id.to_owned();
        let root = self.plan.target.root().expect("preflight looked").clone();
        let worktree = Worktree::open(root.as_path())?;
        let mut journal = Journal::new(id, root.as_path(), self.git_dir());
        let files = Files::plan(self.plan, &worktree, &mut journal)?;
        journal.log = log;
        if let Target::Repository(repository) = &self.plan.target {
            journal.staged = Staged::take_down(&repository.git_dir, repository.format, &mut journal.steps);
        }
        if let Some((to, transfer)) = &branch {
            let repository = self.repository();
            let name = repository.head.branch().expect("preflight looked");
            journal.reference = Some(RefStep::new(repository, name, to.new, &to.message));
            journal.index = Some(IndexLock::planned(&journal.id, &repository.git_dir));
            journal.packs = transfer.as_ref().map(Transfer::arriving).unwrap_or_default();
        }
        self.heed()?;
        journal.write(&self.place.journal())?;
        let written = self.write(&mut journal, (&files, &worktree), branch);
        self.end(&mut journal, written)
    }

    /// Finishes what stands and undoes what does not.
    fn end(&self, journal: &mut Journal, written: Result<(), Stop>) -> Result<Rest, Stop> {
        let path = self.place.journal();
        let Err(stop) = written else { return Ok(recover::finish(&path, journal)) };
        if journal.phase == Phase::Done {
            // The word that it stands may be on disk though writing it failed; it must not be while files go back.
            journal.phase = Phase::Staged;
            journal.write(&path).map_err(Stop::Unfinished)?;
        }
        // Whatever moved the branch may have failed only after it.
        if recover::stands(&self.means.git, journal).map_err(Stop::Unfinished)? {
            return Ok(recover::finish(&path, journal));
        }
        let left = recover::undo(&path, journal, When::AtOnce).map_err(Stop::Unfinished)?;
        Err(if left.is_empty() { stop } else { Stop::LeftAlone(Box::new(stop), left) })
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
        files.stage(self, journal)?;
        journal.write(&self.place.journal())?;
        Files::swap(self, worktree, journal)?;
        let Some((to, transfer)) = branch else {
            Files::verify(worktree, journal)?;
            self.heed()?;
            journal.done();
            return Ok(journal.write(&self.place.journal())?);
        };
        let index = self.plan.index.as_ref().expect("preflight copied it");
        let lock = journal.index.as_ref().expect("a branch moves with its index");
        lock.prepare(self.plan, index, &Files::written(worktree, journal))?;
        if let Some(transfer) = transfer {
            transfer.arrive()?;
        }
        Files::verify(worktree, journal)?;
        self.heed()?;
        self.move_reference(journal, &to.message, &|| self.nothing_moved())
    }

    /// Under the lock of the index: everything is as the plan saw it.
    fn nothing_moved(&self) -> Result<(), Stop> {
        let repository = self.repository();
        if head(&self.means.git, &repository.git_dir, &repository.common_dir)? != repository.head {
            return Err(Stop::RolledBack("`HEAD` or its branch moved meanwhile".to_owned()));
        }
        let now = read_index(&repository.git_dir.join("index"))?.as_deref().map(digest);
        if now != self.plan.index.as_ref().and_then(|index| index.digest) {
            return Err(Stop::RolledBack("the index was changed meanwhile".to_owned()));
        }
        Ok(())
    }

    /// Compare and swap, by us where references are plain files. Else git does it, out of reach of what a terminal sends to
    /// our group and with our lock as its standard input: should we die, nobody recovers before it has ended.
    fn move_reference(
        &self,
        journal: &Journal,
        message: &str,
        check: &dyn Fn() -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let step = journal.reference.as_ref().expect("only what has one moves it");
        if step.plain.is_some() {
            step.lock(&journal.word(&step.git_dir))?;
            check()?;
            return step.rename(&journal.id);
        }
        check()?;
        let new = step.new.to_string();
        let old = step.old.map_or_else(|| "0".repeat(new.len()), |id| id.to_string());
        let who = self.repository().settings.identity().unwrap_or_else(super::request::Identity::ours);
        let call = self.means.git.call(&step.git_dir).variable("GIT_COMMITTER_NAME", &who.name);
        let call = call.variable("GIT_COMMITTER_EMAIL", &who.email);
        let call = call.args(["update-ref", "-m", message, &step.name, &new, &old]);
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
