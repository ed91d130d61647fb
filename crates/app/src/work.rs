//! The work of a sandbox, or of a snapshot, on its way to where it belongs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use sandtable_merge::outcome::{MergeOutcome, Note};
use sandtable_merge::{
    Approvals, BaseHead, Beyond, Binding, Come, CommitText, Effect, History, Identity, MergeRequest, Mode,
    Planned, RelPath, Way, beyond_git, merge_watched, policy_name,
};
use sandtable_sandbox::board::{self, LeftOut, Snapshot, Store, diff};
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::repository::mixed_since;
use sandtable_sandbox::session;

use crate::back;
use crate::caller::{Caller, CallerError, real};
use crate::target::{Tell, ends, newest, sandbox};

/// From which state to which, and what moved in the source meanwhile.
#[derive(Debug)]
pub struct Work {
    /// What it is called, for what is remembered of it.
    pub name: String,
    pub store: Store,
    pub base: Snapshot,
    pub newest: Snapshot,
    /// What it is called by people.
    pub title: String,
    head: Option<BaseHead>,
    drifted: BTreeSet<RelPath>,
    /// What of it no state holds.
    left_out: LeftOut,
    trailers: Vec<(String, String)>,
}

/// How work is to be brought over.
#[derive(Clone, Debug)]
pub struct Bring {
    pub mode: Mode,
    /// Where to, instead of the source it came from.
    pub into: Option<PathBuf>,
    pub effect: Effect,
    pub along: Along,
    pub only: Vec<RelPath>,
    pub exclude: Vec<RelPath>,
    pub approvals: Approvals,
    pub binding: Binding,
    /// What the commit says; the title of the work if there is nothing.
    pub message: Option<String>,
    pub author: Option<Identity>,
    pub committer: Option<Identity>,
}

/// Whether commits made inside come along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    Nothing,
    History,
}

impl Caller {
    /// Brings the work of a sandbox or of a snapshot to where it belongs, and `sandtable undo` takes it back. What needs an
    /// approval is in the answer, and then nothing was done.
    pub fn bring(&self, name: &str, bring: Bring) -> Result<MergeOutcome, CallerError> {
        self.recover(&mut |_| {});
        let work = Work::of(self, Some(name), &mut |_| {})?;
        work.bring(self, &work.request(self, bring)?, &mut |_| {})
    }
}

impl Bring {
    /// A merge into the repository, as a commit on its branch.
    pub fn merge() -> Self {
        Self::by(Mode::Merge)
    }

    /// All of the work, with nothing approved.
    pub fn by(mode: Mode) -> Self {
        Self {
            mode,
            into: None,
            effect: Effect::Deliver,
            along: Along::Nothing,
            only: Vec::new(),
            exclude: Vec::new(),
            approvals: Approvals::None,
            binding: Binding::default(),
            message: None,
            author: None,
            committer: None,
        }
    }
}

impl Work {
    /// The work of a sandbox or of a snapshot, whichever the word means; nothing means the newest sandbox of the source
    /// around the current directory.
    pub fn of(caller: &Caller, word: Option<&str>, tell: Tell<'_>) -> Result<Self, CallerError> {
        match word {
            None => Self::of_sandbox(caller, &newest(caller)?, tell),
            Some(word) => match sandbox(caller, word)? {
                Some(name) => Self::of_sandbox(caller, &name, tell),
                None => Self::of_snapshot(caller, word),
            },
        }
    }

    fn of_snapshot(caller: &Caller, word: &str) -> Result<Self, CallerError> {
        let board = caller.board()?;
        let found = board.snapshot(word)?;
        let base = board.base(&found)?.snapshot;
        let left_out = board::left_out(&found)?;
        Ok(Self {
            name: found.snapshot.id.to_string(),
            title: format!("Work of snapshot {}", found.snapshot.id.short(12)),
            store: found.store,
            base,
            newest: found.snapshot,
            head: None,
            drifted: BTreeSet::new(),
            left_out,
            trailers: Vec::new(),
        })
    }

    /// The work of a sandbox up to its newest state.
    pub fn of_sandbox(caller: &Caller, name: &SandboxName, tell: Tell<'_>) -> Result<Self, CallerError> {
        let ends = ends(caller, name, tell)?;
        let (base, head, moved) = (ends.base.clone(), ends.head.clone(), ends.moved.clone());
        let found = ends.into_newest();
        let left_out = board::left_out(&found)?;
        let inspected = session::inspect(&caller.sandboxes()?, name)?;
        let drift = inspected.outcome.into_iter().flat_map(|outcome| outcome.drift).chain(moved);
        let resolved = serde_json::to_vec(&inspected.record.resolved);
        let resolved = resolved.map_err(|source| CallerError::Policy { name: name.clone(), source })?;
        Ok(Self {
            // Another sandbox of the same name, made later, is other work.
            name: inspected.record.sandbox,
            title: format!("Work of sandbox {name}"),
            store: found.store,
            base,
            newest: found.snapshot,
            head,
            // A name that had to be escaped is compared by its content alone.
            drifted: drift.filter_map(|entry| RelPath::new(entry.path.into_bytes()).ok()).collect(),
            left_out,
            trailers: vec![
                ("Sandtable-Sandbox".to_owned(), name.to_string()),
                ("Sandtable-Policy".to_owned(), policy_name(&resolved)),
            ],
        })
    }

    /// Whether there is something at this path, before or after.
    pub fn has(&self, path: &RelPath) -> Result<bool, CallerError> {
        for snapshot in [&self.base, &self.newest] {
            let state = self.store.state(&snapshot.id).map_err(board::BoardError::from)?;
            if state.lookup(self.store.objects(), path).map_err(board::BoardError::from)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What was done, between the two states.
    pub fn changes(&self, options: &diff::DiffOptions) -> Result<diff::Diff, CallerError> {
        let state = |snapshot: &Snapshot| self.store.state(&snapshot.id).map_err(board::BoardError::from);
        let found = diff::diff(self.store.objects(), &state(&self.base)?, &state(&self.newest)?, options);
        Ok(found.map_err(board::BoardError::from)?.beside(&self.left_out))
    }

    /// The request that brings it over, which [`undo`](crate::back) can take back. A target in which something is half done
    /// is refused.
    pub fn request(&self, caller: &Caller, bring: Bring) -> Result<MergeRequest, CallerError> {
        let target = match &bring.into {
            Some(directory) => real(directory)?,
            None => self.store.source().to_owned(),
        };
        caller.whole(&target)?;
        let target = HostPath::new(target).map_err(CallerError::HostPath)?;
        Ok(MergeRequest {
            store: HostPath::new(self.store.git_dir()).map_err(CallerError::HostPath)?,
            base: self.base.id,
            snapshot: self.newest.id,
            base_head: self.head.as_ref().and_then(|head| head.commit),
            effect: bring.effect,
            only: bring.only,
            exclude: bring.exclude,
            hunks: BTreeMap::new(),
            history: self.history(bring.along, &bring.mode)?,
            mode: bring.mode,
            way: Way::There,
            approvals: bring.approvals,
            binding: Binding { work: Some(self.name.clone()), ..bring.binding },
            drifted: self.drifted.clone(),
            commit: CommitText {
                message: bring.message.unwrap_or_else(|| self.title.clone()),
                author: bring.author,
                committer: bring.committer,
                trailers: self.trailers.clone(),
            },
            log: Some(back::log(&self.store, &target)),
            beyond_git: self.beyond_git()?,
            unrecorded: self.left_out.clone(),
            target,
        })
    }

    /// What git cannot hold of it, without what seems to be removed because no state holds what is there.
    fn beyond_git(&self) -> Result<Vec<Beyond>, CallerError> {
        let mut found = beyond_git(&self.store, &self.base.id, &self.newest.id)?;
        found.retain(|beyond| beyond.new.is_some() || !self.left_out.may_have(&beyond.path));
        Ok(found)
    }

    fn history(&self, along: Along, mode: &Mode) -> Result<Option<History>, CallerError> {
        let come = match (along, mode) {
            (Along::History, _) => Come::Commits,
            // What a submodule is at is the affair of a commit.
            (Along::Nothing, Mode::Merge | Mode::Branch(_) | Mode::Bundle { .. }) => Come::Submodules,
            (Along::Nothing, Mode::Apply | Mode::Patch(_)) => return Ok(None),
        };
        Ok(Some(History {
            come,
            layer: self.store.state(&self.newest.id).map_err(board::BoardError::from)?.layer,
            head: self.head.clone().unwrap_or_default(),
            mixed: mixed_since(&self.store, &self.base.id),
        }))
    }

    /// Brings it over; `shown` sees the plan before anything is done.
    pub fn bring(
        &self,
        caller: &Caller,
        request: &MergeRequest,
        shown: &mut dyn FnMut(&Planned<'_>),
    ) -> Result<MergeOutcome, CallerError> {
        let mut outcome = merge_watched(&caller.means()?, request, shown)?;
        outcome.recovered = outcome.recovered.or_else(|| caller.recovered(&request.target));
        let missing = board::told_left_out(self.left_out.count, &self.left_out.skipped);
        outcome.notes.extend(missing.map(|text| Note { code: "left-out", text }));
        Ok(outcome)
    }
}
