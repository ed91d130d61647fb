//! System calls that hand out kernel surface or undo the sandbox from inside.

use std::ffi::OsString;

use sandtable_protocol::report::Control::{self, NoCapabilities, SealedInit, Seccomp};

use super::finding::name;
use super::{Attempt, Finding, Probe};
use crate::sys::probe::{Call, ChildEnd, clone_into_user_namespace, getpid_through_int80};

const FILTER: &[Control] = &[Seccomp];
const MOUNTS: &[Control] = &[Seccomp, NoCapabilities];

pub(super) const PROBES: &[Probe] = &[
    call("mount-tmpfs", &["box/F14"], MOUNTS, Call::MountTmpfs),
    call("mount-proc", &["box/F14", "box/F11"], MOUNTS, Call::MountProc),
    call("umount-proc", &["box/F14"], MOUNTS, Call::UmountProc),
    call("fsopen", &["box/F14"], MOUNTS, Call::Fsopen),
    call("open-tree", &["box/F14"], MOUNTS, Call::OpenTree),
    call("move-mount", &["box/F14"], MOUNTS, Call::MoveMount),
    call("mount-setattr", &["box/F14", "box/F16"], MOUNTS, Call::MountSetattr),
    call("pivot-root", &["box/F15"], MOUNTS, Call::PivotRoot),
    call("chroot", &["box/F15"], MOUNTS, Call::Chroot),
    call("remount-rw", &["box/F16"], MOUNTS, Call::RemountProc),
    call("bind-over", &["box/F16"], MOUNTS, Call::BindEtc),
    call("open-by-handle", &["box/F13"], MOUNTS, Call::OpenByHandle),
    call("mknod-device", &["box/F18"], &[NoCapabilities], Call::MknodDevice),
    call("overlay-xattr", &["box/F23"], &[NoCapabilities], Call::TrustedXattr),
    call("ptrace-init", &["box/P1"], &[SealedInit], Call::PtraceInit),
    call("vm-read-init", &["box/P1"], &[SealedInit], Call::ReadInitMemory),
    call("asynchronous-io", &["box/P16"], FILTER, Call::IoSetup),
    call("io-uring", &["box/P6"], FILTER, Call::IoUringSetup),
    call("io-uring-enter", &["box/P6"], FILTER, Call::IoUringEnter),
    call("io-uring-register", &["box/P6"], FILTER, Call::IoUringRegister),
    steps("int80", &["box/P7"], FILTER, int80),
    call("x32", &["box/P7"], FILTER, Call::X32Getpid),
    call("unshare-user", &["box/P8", "box/F14"], FILTER, Call::UnshareUser),
    call("unshare-net", &["box/P8", "box/P21"], MOUNTS, Call::UnshareNet),
    call("unshare-mount", &["box/P8", "box/F15"], MOUNTS, Call::UnshareMount),
    call("unshare-pid", &["box/P8"], MOUNTS, Call::UnsharePid),
    call("setns", &["box/P8"], FILTER, Call::Setns),
    steps("clone-newuser", &["box/P8", "box/P21"], FILTER, clone_newuser),
    call("clone3", &["box/P8"], FILTER, Call::Clone3),
    call("bpf", &["box/P9"], FILTER, Call::Bpf),
    call("perf", &["box/P9"], FILTER, Call::PerfEventOpen),
    call("userfaultfd", &["box/P9"], FILTER, Call::Userfaultfd),
    call("keyctl", &["box/P9"], &[Seccomp, Control::Keyring], Call::Keyctl),
    call("add-key", &["box/P9"], FILTER, Call::AddKey),
    call("request-key", &["box/P9"], FILTER, Call::RequestKey),
    call("kexec", &["box/P9"], MOUNTS, Call::KexecLoad),
    call("init-module", &["box/P9"], MOUNTS, Call::InitModule),
    call("finit-module", &["box/P9"], MOUNTS, Call::FinitModule),
    call("fanotify", &["box/P9"], MOUNTS, Call::FanotifyInit),
    call("swapon", &["box/P9"], MOUNTS, Call::Swapon),
    call("reboot", &["box/P9"], MOUNTS, Call::Reboot),
    call("set-hostname", &["box/P18"], MOUNTS, Call::Sethostname),
    call("dmesg", &["box/P18"], FILTER, Call::Syslog),
    steps("unknown-syscall", &["box/P7"], &[], unknown),
];

const fn call(
    name: &'static str,
    attacks: &'static [&'static str],
    claims: &'static [Control],
    call: Call,
) -> Probe {
    Probe { name, attacks, claims, attempt: Attempt::Call(call) }
}

const fn steps(
    name: &'static str,
    attacks: &'static [&'static str],
    claims: &'static [Control],
    steps: fn(&[OsString]) -> Finding,
) -> Probe {
    Probe { name, attacks, claims, attempt: Attempt::Steps(steps) }
}

/// The 32-bit gate. A filter that checks the architecture kills or refuses; a kernel without the gate
/// answers with a fault.
fn int80(_: &[OsString]) -> Finding {
    match getpid_through_int80() {
        ChildEnd::Exited(0) => Finding::leak("the 32-bit system call table is reachable"),
        ChildEnd::Signalled(libc::SIGSEGV) => Finding::unsupported("this kernel has no 32-bit gate"),
        ChildEnd::Signalled(signal) => Finding::blocked(format!("killed by signal {signal}")),
        ChildEnd::Exited(errno) => Finding::of_call(Err(errno)),
        ChildEnd::NotStarted(errno) => Finding::unsupported(name(errno)),
    }
}

fn clone_newuser(_: &[OsString]) -> Finding {
    match clone_into_user_namespace() {
        ChildEnd::NotStarted(errno) => Finding::of_call(Err(errno)),
        end => Finding::leak(format!("a child ran in a user namespace of its own: {end:?}")),
    }
}

/// A number beyond every table is answered like one the kernel does not know, so that programs fall back.
fn unknown(_: &[OsString]) -> Finding {
    match Call::Unknown.attempt() {
        Err(libc::ENOSYS) => Finding::works("ENOSYS"),
        Err(errno) => Finding::blocked(name(errno)),
        Ok(value) => Finding::leak(format!("returned {value}")),
    }
}
