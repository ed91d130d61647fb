//! The two terminal requests that put words into somebody else's mouth, on a terminal made for the purpose.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::tcgetsid;
use sandtable_protocol::report::Control;

use super::finding::describe;
use super::{Attempt, Finding, Probe};
use crate::sys::probe::{console_shift_state, push_input};

pub(super) const PROBES: &[Probe] = &[
    probe("tiocsti", |_| on_a_terminal(push_input)),
    probe("tioclinux", |_| on_a_terminal(console_shift_state)),
    Probe {
        name: "host-terminal",
        attacks: &["box/P4"],
        claims: &[],
        attempt: Attempt::Steps(|_| host_terminal()),
    },
];

const fn probe(name: &'static str, steps: fn(&[OsString]) -> Finding) -> Probe {
    Probe { name, attacks: &["box/P4"], claims: &[Control::Seccomp], attempt: Attempt::Steps(steps) }
}

/// The controlling terminal may only be one of the sandbox's own, which its `/dev/pts` has.
fn host_terminal() -> Finding {
    if let Err(error) = File::open("/dev/tty") {
        return Finding::blocked(describe(&error));
    }
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NOCTTY;
    let own = Path::new("/dev/pts").read_dir().into_iter().flatten().flatten().any(|entry| {
        // The kernel tells the session of a terminal only to those whose controlling terminal it is.
        rustix::fs::open(entry.path(), flags, rustix::fs::Mode::empty()).and_then(tcgetsid).is_ok()
    });
    if own { Finding::blocked("only a terminal of its own") } else { Finding::leak("a terminal of the host") }
}

fn on_a_terminal(request: fn(BorrowedFd<'_>) -> Result<i64, i32>) -> Finding {
    let made = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).and_then(|master| {
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        Ok((rustix::fs::open(name, flags, rustix::fs::Mode::empty())?, master))
    });
    match made {
        Ok((terminal, _master)) => Finding::of_call(request(terminal.as_fd())),
        Err(error) => Finding::unsupported(describe(&error.into())),
    }
}
