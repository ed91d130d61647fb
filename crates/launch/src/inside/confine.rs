//! Giving up everything the workload must not have. The order matters: what needs a privilege comes before
//! that privilege is dropped, and the filter comes last because it forbids most of the rest.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit, setsid,
};
use rustix::system::sethostname;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set, no_new_privs,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
};
use sandtable_protocol::op::Plan;
use sandtable_protocol::report::{Control, Observed};
use sandtable_protocol::step::Step;
use sandtable_protocol::wire::Failure;

use crate::failpoint::skips;
use crate::inside::{landlock, seccomp};
use crate::step::Context as _;
use crate::sys::memory::{scrub_arguments, scrub_environment};
use crate::sys::network::loopback_up;
use crate::sys::privilege::{new_session_keyring, session_keyring};
use crate::sys::process::{close_range, duplicate_onto};

type Done<T = ()> = Result<T, Failure>;

/// How many signals may be pending, timers among them. They are counted for the user that made the sandbox, whose own are
/// as many as the machine has memory for, some tens of thousands: without a bound inside, `timeout` on the host would not
/// limit anything.
const PENDING_SIGNALS: u64 = 4096;

/// What only the moment of a step can tell.
#[derive(Debug)]
pub(crate) struct Confined {
    pub(crate) landlock: Observed,
    pub(crate) keyring: Option<i32>,
    /// Whether the kernel shows nothing of the supervisor's environment and arguments any more. Once PID 1 is
    /// sealed it cannot look itself.
    pub(crate) forgotten: bool,
}

/// Confines this process, which is PID 1, to what `plan` leaves it. Descriptors in `keep` stay open.
pub(crate) fn confine(plan: &Plan, keep: &[BorrowedFd<'_>]) -> Done<Confined> {
    sethostname(plan.hostname.as_bytes()).context(|| Step::SetHostName)?;
    if plan.network.is_own() {
        loopback_up().context(|| Step::Loopback)?;
    }
    step(Control::Keyring, || match new_session_keyring() {
        Ok(_) | Err(rustix::io::Errno::NOSYS) => Ok(()),
        Err(errno) => Err(errno).context(|| Step::SessionKeyring),
    })?;
    let keyring = session_keyring().ok();
    step(Control::Session, || setsid().map(drop).context(|| Step::StartSession))?;
    step(Control::NoCoreDumps, || {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        setrlimit(Resource::Core, none).context(|| Step::NoCoreDumps)
    })?;
    leave_signals()?;
    step(Control::Descriptors, || close_descriptors(keep))?;
    step(Control::NoCapabilities, drop_capabilities)?;
    step(Control::NoNewPrivileges, || set_no_new_privs(true).context(|| Step::NoNewPrivileges))?;
    step(Control::SealedInit, || {
        forget();
        Ok(())
    })?;
    let forgotten = nothing_remembered()?;
    step(Control::SealedInit, || {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).context(|| Step::SealInit)
    })?;
    if no_new_privs() != Ok(true) {
        return Err(Failure { step: Step::Enforce(Control::NoNewPrivileges), errno: 0 });
    }
    let landlock = if skips(Control::Landlock) {
        Observed::Absent { why: "the step was skipped".to_owned() }
    } else {
        landlock::restrict(&plan.landlock, &plan.network)?
    };
    step(Control::Seccomp, || seccomp::install(plan.set_ids).context(|| Step::FilterSystemCalls))?;
    Ok(Confined { landlock, keyring, forgotten })
}

/// Leaves most of its user's pending signals to the others.
pub(crate) fn leave_signals() -> Done {
    let own = getrlimit(Resource::Sigpending);
    let most = own.maximum.map_or(PENDING_SIGNALS, |maximum| maximum.min(PENDING_SIGNALS));
    let least = own.current.map_or(most, |current| current.min(most));
    setrlimit(Resource::Sigpending, Rlimit { current: Some(least), maximum: Some(most) })
        .context(|| Step::LimitSignals)
}

/// Forgets what this process was started with.
pub(crate) fn forget() {
    scrub_environment();
    scrub_arguments();
}

pub(crate) fn step(control: Control, run: impl FnOnce() -> Done) -> Done {
    if skips(control) { Ok(()) } else { run() }
}

/// Standard streams become `/dev/null`, everything else but `keep` is closed. Owners of the closed
/// descriptors still exist in this copy of the supervisor's memory, but PID 1 never returns to drop them.
pub(crate) fn close_descriptors(keep: &[BorrowedFd<'_>]) -> Done {
    let what = || Step::CloseDescriptors;
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).context(what)?;
    // Above the standard streams, one of which it may have become.
    let null = fcntl_dupfd_cloexec(null, 3).context(what)?;
    for standard in 0..3 {
        duplicate_onto(null.as_raw_fd(), standard).context(what)?;
    }
    drop(null);
    let mut kept: Vec<RawFd> = keep.iter().map(AsRawFd::as_raw_fd).collect();
    kept.sort_unstable();
    let mut first = 3;
    for fd in kept {
        if fd > first {
            close_range(first, Some(fd - 1)).context(what)?;
        }
        first = fd + 1;
    }
    close_range(first, None).context(what)
}

fn drop_capabilities() -> Done {
    let what = || Step::DropCapabilities;
    clear_ambient_capability_set().context(what)?;
    for bit in 0..64 {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            Ok(()) => {}
            // The first number this kernel does not know.
            Err(rustix::io::Errno::INVAL) => break,
            Err(errno) => return Err(errno).context(what),
        }
    }
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    set_capabilities_secure_bits(bits).context(what)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .context(what)
}

/// Whether the kernel shows only zeros for the environment and the arguments of this process.
pub(crate) fn nothing_remembered() -> Done<bool> {
    // The change of ids of a root sandbox has closed these files already.
    set_dumpable_behavior(DumpableBehavior::Dumpable).context(|| Step::LookAtInit)?;
    let zero = |file: &&str| fs_err::read(file).is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0));
    Ok(["/proc/self/environ", "/proc/self/cmdline"].iter().all(zero))
}
