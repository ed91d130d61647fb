//! What the child tells: which controls it found to hold, measured after every step was done.
//!
//! The ledger of a run is made from this and from nothing else. A control is observed by reading the
//! kernel's own view back (`/proc/self/status`, namespace inodes, mount flags), so that a step which was
//! skipped or had no effect shows up as absent.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A promise about the sandbox that the launched child can check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// Own user namespace.
    UserNamespace,
    /// The workload is not root for the kernel.
    PrivateIds,
    /// Own mount namespace.
    MountNamespace,
    /// The host's root is gone; only planned mounts are there.
    RootView,
    /// System directories and the root itself cannot be written.
    ReadOnlySystem,
    /// Own process ids; host processes are invisible.
    PidNamespace,
    /// Kernel settings under `/proc` are masked or read-only.
    ProcMasks,
    /// Only harmless devices.
    MinimalDev,
    /// Own System V and POSIX message queues.
    IpcNamespace,
    /// Own host name.
    UtsNamespace,
    /// Own view of control groups.
    CgroupNamespace,
    /// Own network: loopback only.
    NetworkNamespace,
    /// Own session keyring.
    Keyring,
    /// Own session, no terminal of the host.
    Session,
    /// No core dumps.
    NoCoreDumps,
    /// No descriptor of the host is open but standard input, output and error.
    Descriptors,
    /// Every capability set is empty, and stays so.
    NoCapabilities,
    /// No program can gain privileges.
    NoNewPrivileges,
    /// Landlock rules are in force.
    Landlock,
    /// The system call filter is in force.
    Seccomp,
    /// PID 1 cannot be inspected by the workload and carries no host environment.
    SealedInit,
    /// Memory is limited. Observed only when a limit was asked for, as the next two.
    MemoryLimit,
    /// Processor time is limited.
    CpuLimit,
    /// The number of processes is limited.
    PidsLimit,
    /// What the sandbox's own directories take on disk is limited. Looked after from outside.
    DiskLimit,
}

impl Control {
    /// Every control, in the order of the ledger.
    pub const ALL: [Self; 25] = [
        Self::UserNamespace,
        Self::PrivateIds,
        Self::MountNamespace,
        Self::RootView,
        Self::ReadOnlySystem,
        Self::PidNamespace,
        Self::ProcMasks,
        Self::MinimalDev,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::CgroupNamespace,
        Self::NetworkNamespace,
        Self::Keyring,
        Self::Session,
        Self::NoCoreDumps,
        Self::Descriptors,
        Self::NoCapabilities,
        Self::NoNewPrivileges,
        Self::Landlock,
        Self::Seccomp,
        Self::SealedInit,
        Self::MemoryLimit,
        Self::CpuLimit,
        Self::PidsLimit,
        Self::DiskLimit,
    ];

    /// The limits of a control group, which exist only where somebody asked for them.
    pub const LIMITS: [Self; 3] = [Self::MemoryLimit, Self::CpuLimit, Self::PidsLimit];

    /// The stable name, as written in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserNamespace => "user-namespace",
            Self::PrivateIds => "private-ids",
            Self::MountNamespace => "mount-namespace",
            Self::RootView => "root-view",
            Self::ReadOnlySystem => "read-only-system",
            Self::PidNamespace => "pid-namespace",
            Self::ProcMasks => "proc-masks",
            Self::MinimalDev => "minimal-dev",
            Self::IpcNamespace => "ipc-namespace",
            Self::UtsNamespace => "uts-namespace",
            Self::CgroupNamespace => "cgroup-namespace",
            Self::NetworkNamespace => "network-namespace",
            Self::Keyring => "keyring",
            Self::Session => "session",
            Self::NoCoreDumps => "no-core-dumps",
            Self::Descriptors => "descriptors",
            Self::NoCapabilities => "no-capabilities",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::SealedInit => "sealed-init",
            Self::MemoryLimit => "memory-limit",
            Self::CpuLimit => "cpu-limit",
            Self::PidsLimit => "pids-limit",
            Self::DiskLimit => "disk-limit",
        }
    }

    /// The control of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|control| control.name() == name)
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far a control holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Observed {
    Enforced,
    /// Nothing in the kernel holds it. It is looked at again and again, and what passes it is ended.
    Watched {
        how: String,
    },
    Partial {
        why: String,
    },
    Absent {
        why: String,
    },
}

impl Observed {
    /// `Enforced` if it holds, else absent for the reason given.
    #[expect(clippy::fn_params_excessive_bools, reason = "the parameter is the finding itself")]
    pub fn when(holds: bool, why: &str) -> Self {
        if holds { Self::Enforced } else { Self::Absent { why: why.to_owned() } }
    }
}

/// What the child found, control by control.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub controls: BTreeMap<Control, Observed>,
}
