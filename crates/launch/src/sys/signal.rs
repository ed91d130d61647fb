//! Signals as descriptors: blocked, then read.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use rustix::io::Result;

use super::{check, last_errno};

/// Blocks `signals` for this process and gives a descriptor to read them from.
pub(crate) fn signal_descriptor(signals: &[i32]) -> Result<OwnedFd> {
    let set = set_of(signals);
    change_mask(libc::SIG_BLOCK, &set)?;
    // SAFETY: the set is initialised; the kernel gives a new descriptor that nobody else owns.
    unsafe {
        let raw = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if raw < 0 { Err(last_errno()) } else { Ok(OwnedFd::from_raw_fd(raw)) }
    }
}

/// The next signal waiting in `descriptor`, if there is one.
pub(crate) fn next_signal(descriptor: BorrowedFd<'_>) -> Option<i32> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the buffer has the size given; it is read only if the kernel filled all of it.
    let signal = unsafe {
        let count = libc::read(descriptor.as_raw_fd(), info.as_mut_ptr().cast(), size);
        (usize::try_from(count) == Ok(size)).then(|| info.assume_init().ssi_signo)
    };
    signal.and_then(|number| i32::try_from(number).ok())
}

/// Back to the signal state a program expects at its start: nothing blocked, everything default.
pub(crate) fn reset_signals() -> Result<()> {
    for signal in 1..=64 {
        // SAFETY: setting the default disposition runs no code of ours. Signals that cannot be changed
        // (KILL, STOP, those the C library keeps) answer with an error that does not matter.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    change_mask(libc::SIG_SETMASK, &set_of(&[]))
}

/// Makes this process deaf to `signals`.
pub(crate) fn ignore_signals(signals: &[i32]) {
    for signal in signals {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { libc::signal(*signal, libc::SIG_IGN) };
    }
}

/// Lets `signals` through again.
pub(crate) fn release_signals(signals: &[i32]) {
    let _always_valid = change_mask(libc::SIG_UNBLOCK, &set_of(signals));
}

/// Holds `signals` back.
pub(crate) fn hold_signals(signals: &[i32]) {
    let _always_valid = change_mask(libc::SIG_BLOCK, &set_of(signals));
}

fn change_mask(how: libc::c_int, set: &libc::sigset_t) -> Result<()> {
    // SAFETY: `set` is initialised, no old mask is asked for.
    check(unsafe { libc::sigprocmask(how, set, std::ptr::null_mut()) }.into()).map(drop)
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set, `sigaddset` changes an initialised one.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// Sends `signal` to every process this one may signal. Only for PID 1 of a pid namespace.
pub(crate) fn signal_all(signal: i32) {
    assert!(rustix::process::getpid().as_raw_nonzero().get() == 1, "only PID 1 may signal everything");
    // SAFETY: sending signals touches no memory.
    unsafe { libc::kill(-1, signal) };
}
