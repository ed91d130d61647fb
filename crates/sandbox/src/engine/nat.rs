//! The way out of a native sandbox: a program of the host that takes packets from a device in the sandbox's
//! network namespace and makes ordinary connections of them, as the caller. Nothing comes in, and the host's
//! loopback is not reachable through it.
//!
//! The program is started when the sandbox has reported what holds, and waited for: no command runs before it
//! carries packets. It ends with the [`WayOut`], and by itself when the supervisor is killed.

use std::fmt;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{getpid, getuid};
use sandtable_launch::handles::Namespaces;

use crate::model::path::{HostPath, PathError};
use crate::os;
use crate::process::{Cli, CliError};

/// How long the program may take until it carries packets.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// The device in the sandbox.
const DEVICE: &str = "tap0";

/// Why there is no way out.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error("the program's path is not usable")]
    Path(#[source] PathError),
    #[error(transparent)]
    Start(#[from] CliError),
    #[error("cannot prepare `{program}`")]
    Prepare {
        program: String,
        #[source]
        source: Errno,
    },
    #[error("`{program}` carries no packets: {said}")]
    NotReady { program: String, said: String },
}

/// The running program. Dropping it ends it.
pub(super) struct WayOut {
    child: Child,
    /// The program ends when nobody holds this any more.
    _held: OwnedFd,
}

impl fmt::Debug for WayOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WayOut").field("pid", &self.child.id()).finish_non_exhaustive()
    }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        let _already_gone = self.child.kill();
        let _already_taken = self.child.wait();
    }
}

/// Starts the program for a sandbox and waits until it is ready.
pub(super) fn start(program: &Path, namespaces: &Namespaces) -> Result<WayOut, NetworkError> {
    let named = || program.display().to_string();
    let prepare = |source| NetworkError::Prepare { program: named(), source };
    let path = HostPath::new(program).map_err(NetworkError::Path)?;
    let (ready, tells) = os::pipe().map_err(prepare)?;
    let (watched, held) = os::pipe().map_err(prepare)?;
    let words = os::memory_file("words").map_err(prepare)?;
    let heard = words.try_clone().map_err(|_| prepare(Errno::MFILE))?;
    // The one descriptor besides the standard ones that the program inherits.
    fcntl_setfd(&tells, FdFlags::empty()).map_err(prepare)?;
    let call = call(Cli::new(path), namespaces, tells.as_fd());
    let child = call.start(Stdio::from(watched), Stdio::from(words))?;
    drop(tells);
    let way_out = WayOut { child, _held: held };
    if is_ready(&ready) {
        return Ok(way_out);
    }
    drop(way_out);
    Err(NetworkError::NotReady { program: named(), said: last_words(heard) })
}

/// The call: a private network of its own, no way to the host's loopback, confined as far as the program can
/// confine itself, since it reads what hostile code sends.
fn call(program: Cli, namespaces: &Namespaces, tells: BorrowedFd<'_>) -> Cli {
    let handle = |fd: &OwnedFd| format!("/proc/{}/fd/{}", getpid().as_raw_nonzero(), fd.as_fd().as_raw_fd());
    let call = program.args(["--configure", "--mtu=65520", "--disable-host-loopback"]).args([
        "--enable-seccomp",
        "--exit-fd=0",
        "--netns-type=path",
    ]);
    let call = call.arg(format!("--ready-fd={}", tells.as_raw_fd()));
    // Root may enter the network namespace from where it is, and leave its own files behind. For others the
    // program wants to become root in the user namespace for that, where there is none.
    let call = if getuid().is_root() {
        call.arg("--enable-sandbox")
    } else {
        call.arg(format!("--userns-path={}", handle(&namespaces.user)))
    };
    call.args([handle(&namespaces.network), DEVICE.to_owned()])
}

/// Waits for the byte that says ready; an end without it says the contrary.
fn is_ready(ready: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(ready, PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(&PATIENCE)) {
            Err(Errno::INTR) => {}
            Ok(1..) => return rustix::io::read(ready, &mut [0_u8; 1][..]) == Ok(1),
            _ => return false,
        }
    }
}

/// What the program said last.
fn last_words(heard: OwnedFd) -> String {
    let mut text = Vec::new();
    let mut file = File::from(heard);
    let read = file.rewind().and_then(|()| file.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().rev().take(3).collect();
    match (read, lines.is_empty()) {
        (Ok(_), false) => lines.into_iter().rev().collect::<Vec<_>>().join("; "),
        _ => "it said nothing".to_owned(),
    }
}
