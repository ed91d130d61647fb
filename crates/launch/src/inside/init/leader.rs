//! The leader of a terminal: a process between PID 1 and a command that has a terminal of its own.
//!
//! It leads the session, so that the command is a job like any job of a shell: a process group of its own with
//! a parent in the same session. Without that the kernel takes the group for an orphan and ignores Ctrl-Z.
//! The leader ends as the command ends, and stops when it stops; PID 1 sees both by waiting for it.

use std::convert::Infallible;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, ioctl_tiocsctty, kill_process, kill_process_group, setpgid, setsid,
    waitpid,
};
use rustix::termios::tcsetpgrp;
use sandtable_protocol::wire::StartStep;

use super::spawn::{NotSpawned, Word, tell};
use crate::sys::process::{Side, close_range, exit_now, fork};
use crate::sys::signal::{ignore_signals, reset_signals};

/// Meant for the command, or for everything, never for its leader. Left are those that end a session (the
/// hang-up) and those that nobody can ignore.
const IGNORED: [i32; 10] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGPIPE,
    libc::SIGALRM,
];

/// Becomes the leader of `terminal` and runs `command` in a child. Returns only on failure, and then in either
/// of the two processes.
pub(super) fn lead(
    terminal: BorrowedFd<'_>,
    teller: BorrowedFd<'_>,
    command: impl FnOnce() -> Result<Infallible, NotSpawned>,
) -> Result<Infallible, NotSpawned> {
    let failed = |errno| NotSpawned { step: StartStep::Process, errno };
    setsid().map_err(failed)?;
    ioctl_tiocsctty(terminal).map_err(failed)?;
    ignore_signals(&IGNORED);
    match fork().map_err(failed)? {
        Side::Child => {
            step_forward(terminal).map_err(failed)?;
            command()
        }
        Side::Parent(child) => {
            tell(teller, Word::Group, child.as_raw_nonzero().get());
            // The terminal too: it stays ours without a descriptor.
            close_range(3, None).map_err(failed)?;
            watch(child)
        }
    }
}

/// Puts this process into a group of its own and that into the foreground.
fn step_forward(terminal: BorrowedFd<'_>) -> Result<(), Errno> {
    setpgid(None, None)?;
    tcsetpgrp(terminal, getpid())
}

/// Does as the command does.
fn watch(command: Pid) -> ! {
    loop {
        let status = match waitpid(Some(command), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) => status,
            Ok(None) | Err(Errno::INTR) => continue,
            Err(_) => exit_now(125),
        };
        if let Some(code) = status.exit_status() {
            exit_now(code);
        }
        if let Some(signal) = status.terminating_signal() {
            die_by(signal);
        }
        if status.stopped() {
            let _always_possible = kill_process(getpid(), Signal::STOP);
            let _gone = kill_process_group(command, Signal::CONT);
        }
    }
}

fn die_by(signal: i32) -> ! {
    let _always_valid = reset_signals();
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _always_possible = kill_process(getpid(), signal);
    }
    exit_now(128 + signal)
}
