//! What a native sandbox is made of, as data.
//!
//! A [`Plan`] is made without touching the machine, can be printed, compared and stored, and holds every
//! decision: the code that executes it decides nothing. Paths on the host are
//! called `source`, paths inside the sandbox `target`.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything PID 1 of a native sandbox does before it runs a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The name the sandbox sees as its host name.
    pub hostname: String,
    pub ids: Ids,
    pub network: Network,
    /// The file system, parents before children.
    pub ops: Vec<Op>,
    /// Where Landlock lets the workload do what; everything else is refused.
    pub landlock: Vec<Beneath>,
    #[serde(default)]
    pub set_ids: SetIds,
    /// How much of the machine everything inside may use together, if somebody asked for a limit.
    pub limits: Option<Limits>,
    /// A socket of ours that stands for one the workload may not reach, if there is one.
    #[serde(default)]
    pub relay: Option<Relay>,
}

/// A socket whose clients are connected to another one by the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    pub at: PathBuf,
    pub to: PathBuf,
    /// Who may connect. The directory around it lets nobody but the caller through.
    pub owner: Owner,
}

/// The control group of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The name of its directory in each hierarchy that is used.
    pub group: String,
    /// A file that names the directories before they are made, so that those of a supervisor that was
    /// killed can be found and removed.
    pub journal: PathBuf,
    /// Bytes, swap included.
    pub memory: Option<u64>,
    /// Thousandths of a processor.
    pub cpus: Option<u32>,
    /// Processes and threads, PID 1 included.
    pub pids: Option<u64>,
    /// Whom to ask for a group, where those of version 2 are somebody's already.
    #[serde(default)]
    pub systemd: Option<Systemd>,
}

/// A systemd that hands out control groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Systemd {
    /// Its private socket.
    pub socket: PathBuf,
    pub whose: Whose,
}

/// Whom a systemd works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// The whole machine: its first process.
    System,
    /// One user.
    User { uid: u32 },
}

/// Who the workload is, inside and for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ids {
    /// An ordinary user keeps its own ids; no other id exists inside.
    Same { uid: u32, gid: u32 },
    /// Root gets a private range: ids `0..count` inside are `base..base + count` for the kernel, so that
    /// the workload never is kernel uid 0. Files reach it through idmapped mounts.
    Range { base: u32, count: u32 },
}

/// Which network the sandbox has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// A namespace of its own with nothing but loopback.
    Own,
    /// A namespace of its own with a way out, by a program outside that carries packets.
    Nat { program: PathBuf },
    /// The host's network.
    Host,
}

impl Network {
    /// Whether the sandbox has a namespace of its own.
    pub fn is_own(&self) -> bool {
        *self != Self::Host
    }
}

/// One step of building the file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// An empty directory in the sandbox's root.
    Directory { target: PathBuf },
    /// A symbolic link in the sandbox's root.
    Symlink { target: PathBuf, to: PathBuf },
    /// A small read-only file with contents of our own.
    File { target: PathBuf, contents: String },
    /// A directory or file of the host.
    Bind { source: PathBuf, target: PathBuf, access: Access, shift: Shift, pinned: Option<Identity> },
    /// A copy-on-write view of `lower`. The changes go to `NAME.upper` in the directory `layers`, which also
    /// holds `NAME.work` and, when `pins` is set, a `NAME.pins` that covers parts of `lower`.
    Overlay {
        lower: PathBuf,
        layers: PathBuf,
        name: String,
        target: PathBuf,
        pins: bool,
        pinned: Option<Identity>,
    },
    /// An empty, writable, private file system in memory.
    Tmpfs { target: PathBuf, size: u64, owner: Owner },
    /// The processes of the sandbox, with everything about the host masked or read-only.
    Proc { target: PathBuf },
    /// The few devices that every program may have, private terminals, shared memory.
    Dev { target: PathBuf },
    /// Hides a file or directory that a mount above brought in.
    Mask { target: PathBuf },
}

/// What may be done beneath a bind mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read,
    Write,
}

/// Who may use a file system in memory, or a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// Everybody, each their own files, as in `/tmp`.
    Everybody,
    /// The workload.
    Workload,
}

/// Whether the owners of files are shifted into the private id range of a root sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shift {
    /// Files keep their owners: root's files belong to nobody inside.
    Keep,
    /// Root's files belong to the workload. Without effect for an ordinary user.
    Shift,
}

/// A file or directory as it was when it was checked; a mount of anything else is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

/// Whether a command may set the bits with which a program runs as its owner or group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetIds {
    /// Nobody outside can reach what is written.
    #[default]
    Allowed,
    /// A directory of the host can be written.
    Refused,
}

/// One Landlock rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beneath {
    pub target: PathBuf,
    pub allow: Allow,
}

/// What Landlock lets the workload do beneath a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allow {
    /// Read and execute.
    Read,
    /// Read, execute and every kind of change.
    Write,
    /// Read and write existing files, and control devices; make nothing.
    Devices,
}

impl fmt::Display for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same { uid, gid } => write!(f, "own ids ({uid}:{gid})"),
            Self::Range { base, count } => write!(f, "private range of {count} from {base}"),
        }
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory.map(|bytes| format!("{bytes} bytes of memory"));
        let cpus = self.cpus.map(|part| format!("{}.{:03} processors", part / 1000, part % 1000));
        let pids = self.pids.map(|most| format!("{most} processes"));
        let all: Vec<String> = [memory, cpus, pids].into_iter().flatten().collect();
        write!(f, "{} in control group {}", all.join(", "), self.group)?;
        match &self.systemd {
            Some(manager) => write!(f, ", in a scope of systemd ({})", manager.socket.display()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { target } => write!(f, "empty     {}", target.display()),
            Self::Symlink { target, to } => write!(f, "link      {} -> {}", target.display(), to.display()),
            Self::File { target, contents } => {
                write!(f, "file      {} ({} bytes)", target.display(), contents.len())
            }
            Self::Bind { source, target, access, .. } => {
                let word = match access {
                    Access::Read => "read",
                    Access::Write => "write",
                };
                write!(f, "{word:<9} {}", target.display())?;
                if source == target { Ok(()) } else { write!(f, " from {}", source.display()) }
            }
            Self::Overlay { lower, layers, name, target, .. } => {
                write!(f, "overlay   {}", target.display())?;
                if lower != target {
                    write!(f, " over {}", lower.display())?;
                }
                write!(f, ", changes to {}", layers.join(format!("{name}.upper")).display())
            }
            Self::Tmpfs { target, .. } => write!(f, "scratch   {}", target.display()),
            Self::Proc { target } => write!(f, "processes {}", target.display()),
            Self::Dev { target } => write!(f, "devices   {}", target.display()),
            Self::Mask { target } => write!(f, "masked    {}", target.display()),
        }
    }
}
