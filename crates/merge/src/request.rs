//! What is asked of a merge.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use sandtable_sandbox::model::path::HostPath;
use sandtable_store::id::ObjectId;
use sandtable_store::meta::Direction;
use sandtable_store::{RelPath, state};
use serde::Serialize;

use super::beyond::Beyond;
use super::git::Git;
pub use sandtable_sandbox::repository::BaseHead;

/// Bring what happened between two snapshots into a directory of the user's.
#[derive(Clone, Debug)]
pub struct MergeRequest {
    /// The directory the work goes to. The user named it, or it is the recorded source.
    pub target: HostPath,
    /// The bare git directory of the store that has both snapshots.
    pub store: HostPath,
    /// The state the work started from: a commit in the store.
    pub base: ObjectId,
    /// The state that is brought over: a commit in the store.
    pub snapshot: ObjectId,
    /// The commit that the source's `HEAD` was at when the base was taken, where that is known.
    pub base_head: Option<ObjectId>,
    pub mode: Mode,
    pub effect: Effect,
    /// Only these paths and what is below them; all when empty.
    pub only: Vec<RelPath>,
    /// Not these paths nor what is below them.
    pub exclude: Vec<RelPath>,
    /// Of these files only these hunks, by the numbers that [`Hunks`](sandtable_store::diff::Hunks) gives them.
    pub hunks: BTreeMap<RelPath, BTreeSet<usize>>,
    /// The commits made inside, and what of them comes along.
    pub history: Option<History>,
    pub way: Way,
    pub approvals: Approvals,
    /// What the approvals are held against.
    pub binding: Binding,
    /// Paths that somebody changed in the source while the sandbox ran: no side is taken on them.
    pub drifted: BTreeSet<RelPath>,
    pub commit: CommitText,
    /// What was there and the snapshot does not hold: that is no reason to remove what the target has there.
    pub unrecorded: state::LeftOut,
    /// What of the work git cannot hold, in the order of paths. A plain directory gets it; else it is named in the answer.
    pub beyond_git: Vec<Beyond>,
    /// Where it is written down, as a part of it; nowhere for a caller who keeps no log.
    pub log: Option<Log>,
}

/// The log that a delivery is entered into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The directory of the store that has the log.
    pub store: HostPath,
    /// What the target is called there.
    pub subject: String,
    /// For one that takes another back, or does it again.
    pub over: Option<Over>,
}

/// The operation that is moved over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    pub direction: Direction,
    pub number: i64,
}

impl MergeRequest {
    /// The way back from an apply: the same difference the other way round, merged with what the files are by now. What is
    /// taken away again needs no approval.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let (approvals, binding) = (Approvals::All, Binding::default());
        Self { way: Way::Back, approvals, binding, ..self.clone() }
    }

    /// Whether commits made inside come along, and not only what they say of submodules.
    pub fn brings_commits(&self) -> bool {
        self.history.as_ref().is_some_and(|history| history.come == Come::Commits)
    }

    /// Whether a path is among those that were asked for.
    pub(super) fn asks_for(&self, path: &RelPath) -> bool {
        let named = |list: &[RelPath]| list.iter().any(|above| path.is_within(above));
        (self.only.is_empty() || named(&self.only)) && !named(&self.exclude)
    }
}

/// Whether work is brought over or taken back again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    #[default]
    There,
    Back,
}

/// Where the commits that were made inside are found, and what they stand on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    pub come: Come,
    /// What the sandbox changed in its git directory, as the snapshot has it.
    pub layer: Option<ObjectId>,
    /// Where `HEAD` was when the sandbox was made.
    pub head: BaseHead,
    /// What commits of sandboxes on this base have that the user wrote, by path; see [`mixed_since`](sandtable_sandbox::repository::mixed_since).
    pub mixed: BTreeSet<(String, Option<ObjectId>)>,
}

/// What of the commits made inside comes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Come {
    /// All of them.
    Commits,
    /// None, but the submodules that they move are moved by the merge. No state knows of that.
    Submodules,
}

/// How the work is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One commit on the current branch, with index and files.
    Merge,
    /// Changed files, nothing else.
    Apply,
    /// A new branch with that commit; index and files stay.
    Branch(String),
    /// A file that `git apply` reads, from base to snapshot.
    Patch(HostPath),
    /// A file that `git fetch` reads, with one branch in it.
    Bundle { file: HostPath, branch: String },
}

impl Mode {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Apply => "apply",
            Self::Branch(_) => "branch",
            Self::Patch(_) => "patch",
            Self::Bundle { .. } => "bundle",
        }
    }

    /// Whether files of the user are written.
    pub(super) const fn writes_files(&self) -> bool {
        matches!(self, Self::Merge | Self::Apply)
    }
}

/// Whether it is done or only told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Plan,
    Deliver,
}

/// What of the held changes may pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Approvals {
    #[default]
    None,
    Paths(BTreeSet<RelPath>),
    All,
}

impl Approvals {
    pub fn includes(&self, path: &RelPath) -> bool {
        match self {
            Self::None => false,
            Self::Paths(paths) => paths.contains(path),
            Self::All => true,
        }
    }
}

/// What approvals are held against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// What the work is called, so that the last answer about it is known. Without a name nothing is remembered.
    pub work: Option<String>,
    /// Contents that approvals name.
    pub contents: BTreeMap<RelPath, BTreeSet<String>>,
    /// The plan that an approval of everything names.
    pub plan: Option<String>,
}

/// What the commit says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitText {
    pub message: String,
    /// Who did the work; `Sandtable` when nobody is named.
    pub author: Option<Identity>,
    /// Who brought it over; the identity in the repository's configuration when nobody is named, else the author.
    pub committer: Option<Identity>,
    /// `Key: value` lines at the end, besides the one that names the snapshot.
    pub trailers: Vec<(String, String)>,
}

/// A name and an address, as git writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    pub name: String,
    pub email: String,
}

impl Identity {
    pub(super) fn ours() -> Self {
        Self { name: "Sandtable".to_owned(), email: "sandtable@localhost".to_owned() }
    }
}

/// The variables, or beginnings of their names, that say which configuration git has. No other one gets to git.
pub const CONFIGURING: [&str; 8] = [
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_VALUE_",
    "GIT_CONFIG_PARAMETERS",
];

/// What an operation works with, the same for every target.
#[derive(Clone, Debug)]
pub struct Means {
    pub git: Git,
    /// A private directory on the user's disk for journals and scratch repositories, the same at every call.
    pub state: HostPath,
    /// Where the user's own git configuration is, which is read as data.
    pub home: Option<HostPath>,
    /// What the user's variables say about that configuration ([`CONFIGURING`]), with absolute paths.
    pub git_variables: Vec<(OsString, OsString)>,
}

impl Means {
    /// Where programs of the user keep their settings.
    pub(super) fn config_home(&self) -> Option<PathBuf> {
        let named = self.variable("XDG_CONFIG_HOME").map(PathBuf::from);
        named.or_else(|| Some(self.home.as_ref()?.as_path().join(".config")))
    }

    /// The files that git reads as the user's own configuration, whether they are there or not.
    pub(super) fn own_configuration(&self) -> Vec<PathBuf> {
        if let Some(named) = self.variable("GIT_CONFIG_GLOBAL") {
            return vec![named.into()];
        }
        let home = self.home.as_ref().map(|home| home.as_path().join(".gitconfig"));
        home.into_iter().chain(self.config_home().map(|place| place.join("git/config"))).collect()
    }

    fn variable(&self, name: &str) -> Option<&OsString> {
        self.git_variables.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}
