//! Making processes and becoming another program.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::os::fd::RawFd;

use rustix::io::{Errno, Result};
use rustix::process::Pid;

use super::check;

/// Which side of a fork this is.
#[derive(Debug)]
pub(crate) enum Side {
    Child,
    Parent(Pid),
}

/// Forks into the namespaces named by `flags` (`CLONE_NEW*`).
///
/// The process must have one thread: the child goes on with ordinary code, so no lock may be held by a
/// thread that does not exist there.
pub(crate) fn clone_into(flags: u64) -> Result<Side> {
    let flags = flags | u64::try_from(libc::SIGCHLD).expect("a small positive number");
    // SAFETY: without CLONE_VM and with no stack given the child has its own copy of memory and goes on
    // from here on its own stack. `clone` rather than `clone3`, because some containers filter the latter.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    check(pid).map(side)
}

/// Whether no thread but this one is left. The kernel counts a thread until it is gone entirely, which may be a moment
/// after it was joined.
pub(crate) fn has_one_thread() -> bool {
    // SAFETY: a process with one thread is what the flag asks for already, and for any other the call fails.
    check(unsafe { libc::unshare(libc::CLONE_THREAD) }.into()) != Err(Errno::INVAL)
}

/// An ordinary fork, of a process with one thread.
pub(crate) fn fork() -> Result<Side> {
    // SAFETY: the process has one thread, so the child may run ordinary code.
    let pid = unsafe { libc::fork() };
    check(pid.into()).map(side)
}

/// Moves this process into new namespaces (`CLONE_NEW*`).
pub(crate) fn unshare(flags: u64) -> Result<()> {
    let flags = libc::c_int::try_from(flags).expect("the flags of namespaces fit");
    // SAFETY: a process with one thread changes what it sees; no memory is touched, and without
    // CLONE_FILES no descriptor either.
    check(unsafe { libc::unshare(flags) }.into()).map(drop)
}

fn side(pid: libc::c_long) -> Side {
    let raw = i32::try_from(pid).expect("process ids are 32 bits wide");
    Pid::from_raw(raw).map_or(Side::Child, Side::Parent)
}

/// Becomes `program`. Returns only if that failed.
pub(crate) fn exec(program: &CStr, argv: &[CString], environment: &[CString]) -> Result<Infallible> {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, environment) = (pointers(argv), pointers(environment));
    // SAFETY: both arrays end in a null pointer and live, with the strings they point to, until the call
    // returns or the memory is replaced.
    let returned = unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), environment.as_ptr()) };
    match check(returned.into()) {
        Err(errno) => Err(errno),
        Ok(_) => unreachable!("execve returns only on failure"),
    }
}

/// Ends the process at once: no destructors, no buffers of the parent flushed twice.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` does not return and touches no memory.
    unsafe { libc::_exit(code) }
}

/// Whether this process leads its session. A leader outside of its pid namespace has no number here.
pub(crate) fn leads_session() -> bool {
    // SAFETY: both calls only return numbers.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// Closes every descriptor from `first` to `last`.
///
/// The caller must not use a closed one afterwards; owners of such descriptors must have been forgotten.
pub(crate) fn close_range(first: RawFd, last: Option<RawFd>) -> Result<()> {
    let first = libc::c_uint::try_from(first).expect("descriptors are not negative");
    let last = last.map_or(libc::c_uint::MAX, |last| last.try_into().expect("descriptors are not negative"));
    // SAFETY: closing descriptors touches no memory.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// Marks every descriptor from `first` on to be closed when the process becomes another program.
pub(crate) fn close_on_exec_from(first: RawFd) -> Result<()> {
    let first = libc::c_uint::try_from(first).expect("descriptors are not negative");
    // SAFETY: marking descriptors touches no memory.
    let returned =
        unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    check(returned).map(drop)
}

/// Makes `target` a copy of `source` that stays open across exec.
pub(crate) fn duplicate_onto(source: RawFd, target: RawFd) -> Result<()> {
    // SAFETY: duplicating descriptors touches no memory.
    check(unsafe { libc::dup3(source, target, 0) }.into()).map(drop)
}
