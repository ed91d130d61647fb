//! The caller's terminal: handed over byte by byte while a command has it, and put back afterwards, whatever
//! ends us.

use std::os::fd::OwnedFd;
use std::sync::Mutex;

use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_current_process_group, kill_process};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{
    OptionalActions, Termios, Winsize, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

use crate::sys::signal::{hold_signals, release_signals};

/// What the terminal was like, for a way out that drops nothing.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Puts the caller's terminal back if a command has it now. For a panic, which runs no destructors.
pub fn restore() {
    if let Ok(mut before) = BEFORE.try_lock()
        && let Some(before) = before.take()
    {
        // Without waiting for output: nobody may be reading any more.
        let _terminal_gone = tcsetattr(stdin(), OptionalActions::Now, &before);
    }
}

/// The terminal passes every byte on uninterpreted; put back when dropped.
#[derive(Debug)]
pub(super) struct RawMode {
    before: Termios,
}

impl RawMode {
    /// Nothing to do where standard input is no terminal.
    pub(super) fn enter() -> Result<Option<Self>, Errno> {
        if !isatty(stdin()) {
            return Ok(None);
        }
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        keep(Some(&before));
        tcsetattr(stdin(), OptionalActions::Drain, &raw)?;
        Ok(Some(Self { before }))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _terminal_gone = tcsetattr(stdin(), OptionalActions::Drain, &self.before);
        keep(None);
    }
}

fn keep(before: Option<&Termios>) {
    if let Ok(mut kept) = BEFORE.lock() {
        *kept = before.cloned();
    }
}

/// How large the terminal is; a usual size where there is none.
pub(super) fn size() -> Winsize {
    let usual = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcgetwinsize(stdin()).or_else(|_| tcgetwinsize(stdout())).unwrap_or(usual)
}

/// Gives the terminal inside the size of ours.
pub(super) fn resize(inside: &OwnedFd) {
    let _gone = tcsetwinsize(inside, size());
}

/// Who stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// Everybody in our process group, as after Ctrl-Z at a terminal that is not raw.
    Group,
    Ourselves,
}

/// Stops as by Ctrl-Z and returns when somebody lets us go on. Where nobody could (no shell with job control
/// above us) the kernel ignores it, and this returns at once.
pub(super) fn suspend(who: Who) {
    release_signals(&[libc::SIGTSTP]);
    let _always_possible = match who {
        Who::Group => kill_current_process_group(Signal::TSTP),
        Who::Ourselves => kill_process(getpid(), Signal::TSTP),
    };
    hold_signals(&[libc::SIGTSTP]);
}
