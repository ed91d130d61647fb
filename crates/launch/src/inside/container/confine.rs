//! Giving up, inside a container, everything that can be given up without a privilege. What the engine has
//! done already is done again where that costs nothing; what only the engine could do is found missing by
//! the read-back, not here.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit, setsid};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use sandtable_protocol::report::{Control, Observed};
use sandtable_protocol::step::Step;
use sandtable_protocol::terms::Terms;
use sandtable_protocol::wire::Failure;

use crate::inside::confine::{close_descriptors, forget, leave_signals, nothing_remembered, step};
use crate::inside::{landlock, seccomp};
use crate::step::Context as _;
use crate::sys::privilege::{new_session_keyring, session_keyring};

/// What only the moment of a step can tell.
#[derive(Debug)]
pub(super) struct Confined {
    pub(super) landlock: Observed,
    pub(super) keyring: Keyring,
    pub(super) forgotten: bool,
    /// System call filters that were in force before ours.
    pub(super) filters: u64,
}

/// Which keyring the workload can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyring {
    Number(i32),
    /// The engine's own filter or the kernel refuses every call for one.
    None,
}

pub(super) fn confine(terms: &Terms, keep: &[BorrowedFd<'_>]) -> Result<Confined, Failure> {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let filters = crate::inside::verify::filters(&status).unwrap_or(0);
    step(Control::Keyring, || match new_session_keyring() {
        Ok(_) | Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => Ok(()),
        Err(errno) => Err(errno).context(|| Step::SessionKeyring),
    })?;
    let keyring = session_keyring().map_or(Keyring::None, Keyring::Number);
    step(Control::Session, || match setsid() {
        // The engine has made this process a leader already.
        Ok(_) | Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(errno).context(|| Step::StartSession),
    })?;
    step(Control::NoCoreDumps, || {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        setrlimit(Resource::Core, none).context(|| Step::NoCoreDumps)
    })?;
    leave_signals()?;
    step(Control::Descriptors, || close_descriptors(keep))?;
    step(Control::NoCapabilities, || {
        let none = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
            .context(|| Step::DropCapabilities)
    })?;
    step(Control::NoNewPrivileges, || set_no_new_privs(true).context(|| Step::NoNewPrivileges))?;
    step(Control::SealedInit, || {
        forget();
        Ok(())
    })?;
    let forgotten = nothing_remembered()?;
    step(Control::SealedInit, || {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).context(|| Step::SealInit)
    })?;
    let landlock = landlock::restrict(&terms.landlock, &terms.network)?;
    step(Control::Seccomp, || seccomp::install(terms.set_ids).context(|| Step::FilterSystemCalls))?;
    Ok(Confined { landlock, keyring, forgotten, filters })
}
