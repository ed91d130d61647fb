//! What can go wrong in the life of a sandbox.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use sandtable_protocol::invocation::{AttachError, FreezeError};
use sandtable_store::full::is_full;
use sandtable_store::id::ObjectId;
use sandtable_store::path::RelPath;

use crate::board::{self, FULL};
use crate::engine::LaunchError;
use crate::engine::enforcement::Refusal;
use crate::model::diagnosis::{Diagnose, Fault};
use crate::model::id::SandboxName;
use crate::resolve;

use super::proof::ProofError;

/// Where the work of a sandbox is that no state holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// What it changed, as an overlay keeps that.
    Layer(PathBuf),
    /// All its files.
    Files(PathBuf),
}

/// Why an operation on a sandbox failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("a sandbox named `{0}` exists already")]
    NameTaken(SandboxName),
    #[error("there is no sandbox named `{0}`")]
    Unknown(SandboxName),
    #[error("the sandbox `{name}` has lost its record, or could not be removed completely")]
    Damaged { name: SandboxName, path: PathBuf },
    #[error("the sandbox `{0}` is running")]
    StillRunning(SandboxName),
    #[error("the sandbox `{0}` is not running")]
    NotRunning(SandboxName),
    #[error("the sandbox `{0}` is busy and does not answer")]
    Busy(SandboxName),
    #[error("the sandbox `{0}` has no log: its command was not detached")]
    NoLog(SandboxName),
    #[error("cannot {what} `{}`", path.display())]
    State {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot remove all of `{}`", path.display())]
    Remains {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is not a record this version understands", path.display())]
    Record {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("`{}` has schema {found}, this version knows {known}", path.display())]
    Schema { path: PathBuf, found: u32, known: u32 },
    #[error(transparent)]
    Meaning(#[from] resolve::ResolveError),
    #[error(transparent)]
    Launch(LaunchError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Lost(#[from] AttachError),
    #[error("command not found: `{program}`")]
    CommandNotFound { program: String },
    #[error("cannot execute `{program}`")]
    CommandNotExecutable {
        program: String,
        #[source]
        cause: Errno,
    },
    #[error("cannot start in `{directory}`, which must exist inside the sandbox")]
    Directory {
        directory: String,
        #[source]
        cause: Errno,
    },
    #[error("cannot make a process or a terminal for the command")]
    Process(#[source] Errno),
    #[error("the command ran, but its changes could not be read; the sandbox `{name}` keeps them")]
    Capture {
        name: SandboxName,
        #[source]
        source: sandtable_store::layer::LayerError,
    },
    #[error("nothing is recorded of what the sandbox `{0}` stands on")]
    NoBase(SandboxName),
    #[error("what the sandbox `{name}` was made on is not recorded, and cannot be recorded any more")]
    Groundless { name: SandboxName, work: Work },
    #[error("the sandbox `{name}` holds work that is not recorded, and it cannot be recorded now")]
    Behind {
        name: SandboxName,
        #[source]
        cause: Box<SessionError>,
    },
    #[error("the sandbox `{name}` holds work that cannot be recorded, and it would be lost")]
    Unkept {
        name: SandboxName,
        #[source]
        cause: Box<SessionError>,
    },
    #[error("a state needs a workspace of its own, and there is none here: {reason}")]
    NoOverlay { reason: String },
    #[error("snapshot `{snapshot}` is of another source than the sandbox `{name}`")]
    OtherSource { name: SandboxName, snapshot: ObjectId },
    #[error("cannot record the state of the sandbox `{name}`; it keeps its changes")]
    Snapshot {
        name: SandboxName,
        #[source]
        source: sandtable_store::snapshot::SnapshotError,
    },
    #[error("cannot write the layer of the sandbox `{name}`")]
    Layer {
        name: SandboxName,
        #[source]
        source: sandtable_store::layer::write::LayerWriteError,
    },
    /// No state holds these, so that they cannot be replaced without being lost.
    #[error(
        "{} in `{name}` would be lost: no state holds it, and the other state has something in its place",
        named(paths)
    )]
    InTheWay { name: SandboxName, paths: Vec<RelPath> },
    #[error("`{name}` has {count} entries that no state can hold, more than can be taken along")]
    TooManyUnheld { name: SandboxName, count: u64 },
    #[error(transparent)]
    Board(board::BoardError),
    #[error("the sandbox `{name}` could not be held still")]
    Freeze {
        name: SandboxName,
        #[source]
        source: FreezeError,
    },
    #[error("cannot find what is to be hidden")]
    Secrets(#[source] sandtable_store::source::SourceError),
    #[error("cannot hide a file")]
    Hide(#[source] sandtable_store::layer::pins::PinsError),
    #[error("cannot copy `{}`", path.display())]
    Copy {
        path: PathBuf,
        #[source]
        source: sandtable_store::copy::CopyError,
    },
    #[error("cannot unpack the image `{}`", path.display())]
    Image {
        path: PathBuf,
        #[source]
        source: sandtable_unpack::image::Error,
    },
    #[error("{0}")]
    Overfull(String),
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// Cancelled by the observer or a signal.
    #[error("interrupted before it was complete; nothing is kept of it")]
    Interrupted,
}

impl From<board::BoardError> for SessionError {
    fn from(error: board::BoardError) -> Self {
        match error {
            board::BoardError::Cancelled(_) => Self::Interrupted,
            error => Self::Board(error),
        }
    }
}

impl From<LaunchError> for SessionError {
    fn from(error: LaunchError) -> Self {
        if error.is_interrupted() { Self::Interrupted } else { Self::Launch(error) }
    }
}

impl SessionError {
    /// A failed operation on a file of ours.
    pub(super) fn state(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::State { what, path, source }
    }

    /// A sandbox without its record.
    pub(super) fn damaged(directory: &super::directory::SandboxDirectory) -> Self {
        Self::Damaged { name: directory.name(), path: directory.path().as_path().to_owned() }
    }

    /// Whether it is certain that no command of ours ran, so that the sandbox holds nothing.
    pub(super) fn nothing_ran(&self) -> bool {
        match self {
            Self::Lost(error) => matches!(error, AttachError::DirectoryStream | AttachError::Crowded(_)),
            Self::Capture { .. } | Self::Overfull(_) => false,
            _ => true,
        }
    }

    /// What to do about it, and what else can be said.
    fn remedy_and(&self, more: &str) -> String {
        self.remedy().map_or_else(|| more.to_owned(), |remedy| format!("{remedy}\n{more}"))
    }

    /// What opens again what a command of the sandbox may have closed.
    fn opening(&self) -> Option<String> {
        let is_closed = |source: &io::Error| source.kind() == io::ErrorKind::PermissionDenied;
        match self {
            Self::State { what: "open", path, source } if is_closed(source) => Some(format!(
                "if a command of the sandbox has taken the permissions from it, `chmod u+rwx {}` gives them back",
                path.display()
            )),
            Self::Capture { name, source: sandtable_store::layer::LayerError::Open(source) }
                if is_closed(source) =>
            {
                Some(format!(
                    "if a command has taken the permissions from the workspace, `chmod u+rwx` gives them back to \
                     `sandtable/sandboxes/{name}/workspace.upper` below `XDG_DATA_HOME` or `~/.local/share`; `sandtable snapshot \
                     {name}` records the changes then"
                ))
            }
            _ => None,
        }
    }
}

impl Diagnose for SessionError {
    fn fault(&self) -> Fault {
        match self {
            Self::Meaning(error) => error.fault(),
            Self::NameTaken(_)
            | Self::Unknown(_)
            | Self::Damaged { .. }
            | Self::StillRunning(_)
            | Self::NotRunning(_)
            | Self::NoLog(_)
            | Self::CommandNotFound { .. }
            | Self::CommandNotExecutable { .. }
            | Self::Directory { .. }
            | Self::NoBase(_)
            | Self::Groundless { .. }
            | Self::NoOverlay { .. }
            | Self::OtherSource { .. }
            | Self::InTheWay { .. }
            | Self::TooManyUnheld { .. }
            | Self::Lost(AttachError::DirectoryStream) => Fault::Input,
            Self::Behind { cause, .. } | Self::Unkept { cause, .. } => cause.fault(),
            Self::Launch(error) => error.fault(),
            Self::Board(error) => error.fault(),
            Self::Proof(error) => error.fault(),
            Self::Image { source, .. } => image_fault(source),
            _ => Fault::Machine,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::NameTaken(_) => "name-taken",
            Self::Unknown(_) => "unknown-sandbox",
            Self::StillRunning(_) => "still-running",
            Self::NotRunning(_) => "not-running",
            Self::NoLog(_) => "no-log",
            Self::Busy(_) => "busy",
            Self::State { .. } | Self::Remains { .. } => "state",
            Self::Record { .. } | Self::Schema { .. } | Self::Damaged { .. } => "record",
            Self::Meaning(error) => error.code(),
            Self::Launch(error) => error.code(),
            Self::Refused(_) => "control-missing",
            Self::Lost(_) => "lost",
            Self::CommandNotFound { .. } => "command-not-found",
            Self::CommandNotExecutable { .. } => "command-not-executable",
            Self::Directory { .. } => "directory",
            Self::Process(_) => "process",
            Self::Overfull(_) => "disk-budget",
            Self::Capture { .. } => "capture",
            Self::Secrets(_) | Self::Hide(_) => "secrets",
            Self::Copy { .. } => "copy",
            Self::Image { .. } => "image",
            Self::Freeze { .. } => "freeze",
            Self::NoBase(_) | Self::Groundless { .. } => "no-base",
            Self::Behind { .. } | Self::Unkept { .. } => "not-recorded",
            Self::NoOverlay { .. } => "no-overlay",
            Self::OtherSource { .. } => "other-source",
            Self::Snapshot { .. } => "snapshot",
            Self::Layer { .. } => "layer",
            Self::InTheWay { .. } => "in-the-way",
            Self::TooManyUnheld { .. } => "too-many-unheld",
            Self::Board(error) => error.code(),
            Self::Proof(error) => error.code(),
            Self::Interrupted => "interrupted",
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::State { .. } | Self::Layer { .. } if is_full(self) => Some(FULL.to_owned()),
            Self::NameTaken(name) => Some(format!(
                "choose another `--name`, go on in it with `sandtable exec {name} -- …`, or `sandtable rm {name}`"
            )),
            Self::Unknown(_) => Some("`sandtable ls` lists the sandboxes".to_owned()),
            Self::Damaged { name, path } => Some(format!(
                "what it changed is below `{}`; `sandtable log` lists its recorded states; `sandtable rm {name}` removes it",
                path.display()
            )),
            Self::Remains { path, source } if source.kind() == io::ErrorKind::PermissionDenied => Some(format!(
                "something in it belongs to another user, as container engines with older versions left it; remove it with that \
                 user's rights, such as `sudo rm -r {0}` or, with rootless Podman, `podman unshare rm -r {0}`",
                path.display()
            )),
            Self::StillRunning(name) => {
                Some(format!("`sandtable stop {name}` first, or `sandtable rm -f {name}`"))
            }
            Self::NoLog(_) => Some("`sandtable run -d` keeps what a command writes".to_owned()),
            Self::Busy(_) => {
                Some("end the `sandtable` process that supervises it, and it ends too".to_owned())
            }
            Self::Lost(error) => lost_remedy(error).map(str::to_owned),
            Self::Process(Errno::NOSPC) => Some(
                "all pseudo-terminals are taken, 256 in one sandbox or those of the machine: end programs that have some, or say `-T`"
                    .to_owned(),
            ),
            Self::Meaning(error) => error.remedy(),
            Self::Board(error) => error.remedy(),
            Self::NoBase(name) => {
                Some(format!("`sandtable snapshot {name}` records it when no command runs in it"))
            }
            Self::Groundless { work: Work::Layer(layer), .. } => {
                Some(format!("what it changed is in `{}`, as the kernel's overlay keeps it", layer.display()))
            }
            Self::Groundless { work: Work::Files(files), .. } => {
                Some(format!("all its files, with what it changed, are in `{}`", files.display()))
            }
            Self::Behind { name, cause } => Some(cause.remedy_and(&format!(
                "the sandbox keeps the work; `sandtable log {name}` lists the states that are recorded, and each can be \
                 named by its id instead of the sandbox"
            ))),
            Self::Unkept { name, cause } => Some(cause.remedy_and(&format!(
                "`sandtable rm -f {name}` removes the sandbox with that work"
            ))),
            Self::OtherSource { .. } => Some("`sandtable fork` makes a sandbox of it".to_owned()),
            Self::InTheWay { name, .. } => Some(format!(
                "move or remove it inside: `sandtable exec {name} -- mv …`; or `sandtable fork` the other state"
            )),
            Self::TooManyUnheld { .. } => {
                Some("`sandtable fork` the other state, and keep this sandbox".to_owned())
            }
            Self::Image { source, .. } => source.remedy().map(str::to_owned),
            Self::Launch(error) => error.remedy(),
            Self::Refused(refusal) => Some(refusal.remedy()),
            _ => self.opening(),
        }
    }
}

fn lost_remedy(error: &AttachError) -> Option<&'static str> {
    match error {
        AttachError::DirectoryStream => Some("redirect it, for example with `< /dev/null`"),
        AttachError::Crowded(_) => Some(
            "a program sends descriptors that nobody takes, perhaps in a sandbox: `sandtable ls` lists those that run, \
             and `sandtable stop` ends them",
        ),
        _ => None,
    }
}

/// The first few paths, for a sentence.
fn named(paths: &[RelPath]) -> String {
    const NAMED: usize = 5;
    let mut names: Vec<String> =
        paths.iter().take(NAMED).map(|path| format!("`{}`", path.display_escaped())).collect();
    if paths.len() > NAMED {
        names.push(format!("{} more", paths.len() - NAMED));
    }
    names.join(", ")
}

/// An image that cannot be read or written is the machine's matter; one that is refused has to change.
fn image_fault(error: &sandtable_unpack::image::Error) -> Fault {
    use sandtable_unpack::archive::Error::{Read, Write};
    use sandtable_unpack::image::Error::{Archive, File};
    match error {
        File { .. } | Archive(Read(_) | Write { .. }) => Fault::Machine,
        _ => Fault::Input,
    }
}
