//! Starting one command inside the sandbox.

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, chdir, ioctl_tiocsctty, setsid, umask};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::sys::process::{Side, close_on_exec_from, duplicate_onto, exec, exit_now, fork};
use crate::sys::signal::reset_signals;
use crate::wire::{Command, StartStep, Stdio};

/// A child on its way from the fork to the command. It may take for ever: the workload can stop it.
#[derive(Debug)]
pub(super) struct Starting {
    pub(super) pid: Pid,
    /// Closed when it became the command, readable when it failed.
    pub(super) told: OwnedFd,
    terminal: Option<OwnedFd>,
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) pid: Pid,
    /// The master end of its terminal, if it has one.
    pub(super) terminal: Option<OwnedFd>,
}

/// Why a command did not run.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotSpawned {
    pub(super) step: StartStep,
    pub(super) errno: Errno,
}

/// Starts `command` in a session of its own.
pub(super) fn spawn(command: &Command, descriptors: Vec<OwnedFd>) -> Result<Starting, NotSpawned> {
    let failed = |errno| NotSpawned { step: StartStep::Process, errno };
    let streams = Streams::new(command.stdio, descriptors).map_err(failed)?;
    let (told, teller) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
    match fork().map_err(failed)? {
        Side::Child => {
            let Err(failure) = become_command(command, &streams);
            let step = match failure.step {
                StartStep::Directory => b'd',
                StartStep::Program => b'x',
                StartStep::Process => b'p',
            };
            let [a, b, c, d] = failure.errno.raw_os_error().to_le_bytes();
            let _unheard = std::fs::File::from(teller).write_all(&[step, a, b, c, d]);
            exit_now(127)
        }
        Side::Parent(pid) => {
            drop(teller);
            Ok(Starting { pid, told, terminal: streams.into_master() })
        }
    }
}

impl Starting {
    /// What became of it. To be asked when `told` can be read or the child has ended, else it waits.
    pub(super) fn settled(self) -> Result<Spawned, NotSpawned> {
        match failure(self.told) {
            Some(failure) => Err(failure),
            None => Ok(Spawned { pid: self.pid, terminal: self.terminal }),
        }
    }
}

/// What the child said before it ended, or nothing when it became the command.
fn failure(told: OwnedFd) -> Option<NotSpawned> {
    let mut words = [0; 5];
    std::fs::File::from(told).read_exact(&mut words).ok()?;
    let [step, a, b, c, d] = words;
    let step = match step {
        b'd' => StartStep::Directory,
        b'x' => StartStep::Program,
        _ => StartStep::Process,
    };
    Some(NotSpawned { step, errno: Errno::from_raw_os_error(i32::from_le_bytes([a, b, c, d])) })
}

enum Streams {
    Three(Vec<OwnedFd>),
    Terminal { master: OwnedFd, inner: OwnedFd, errors: Option<OwnedFd> },
}

impl Streams {
    fn new(stdio: Stdio, descriptors: Vec<OwnedFd>) -> Result<Self, Errno> {
        match stdio {
            Stdio::Descriptors if descriptors.len() == 3 => Ok(Self::Three(descriptors)),
            Stdio::Descriptors => Err(Errno::BADF),
            Stdio::Terminal { rows, columns } => {
                let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
                let master = openpt(flags)?;
                unlockpt(&master)?;
                let inner = ioctl_tiocgptpeer(&master, flags)?;
                let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
                tcsetwinsize(&master, size)?;
                Ok(Self::Terminal { master, inner, errors: descriptors.into_iter().next() })
            }
        }
    }

    fn into_master(self) -> Option<OwnedFd> {
        match self {
            Self::Three(_) => None,
            Self::Terminal { master, .. } => Some(master),
        }
    }

    /// Makes these the standard streams of this process.
    fn install(&self) -> Result<(), Errno> {
        let sources = match self {
            Self::Three(three) => [three[0].as_raw_fd(), three[1].as_raw_fd(), three[2].as_raw_fd()],
            Self::Terminal { inner, errors, .. } => {
                ioctl_tiocsctty(inner.as_fd())?;
                let errors = errors.as_ref().unwrap_or(inner);
                [inner.as_raw_fd(), inner.as_raw_fd(), errors.as_raw_fd()]
            }
        };
        for (source, target) in sources.into_iter().zip(0..) {
            duplicate_onto(source, target)?;
        }
        Ok(())
    }
}

/// The child's way from the fork to the command.
fn become_command(command: &Command, streams: &Streams) -> Result<Infallible, NotSpawned> {
    let process = |errno| NotSpawned { step: StartStep::Process, errno };
    setsid().map_err(process)?;
    streams.install().map_err(process)?;
    reset_signals().map_err(process)?;
    umask(Mode::from_raw_mode(0o022));
    close_on_exec_from(3).map_err(process)?;
    chdir(&command.directory).map_err(|errno| NotSpawned { step: StartStep::Directory, errno })?;
    let program = |errno| NotSpawned { step: StartStep::Program, errno };
    let argv = c_strings(&command.argv).map_err(program)?;
    let environment = c_strings(&command.environment).map_err(program)?;
    let candidates = candidates(command).map_err(program)?;
    Err(program(first_executable(&candidates, &argv, &environment)))
}

/// Tries one file after the other. Returns the error that says most: a file that is there but cannot be
/// executed counts more than one that is not there.
fn first_executable(candidates: &[CString], argv: &[CString], environment: &[CString]) -> Errno {
    let mut found = Errno::NOENT;
    for candidate in candidates {
        let Err(errno) = exec(candidate, argv, environment);
        match errno {
            Errno::NOENT | Errno::NOTDIR => {}
            Errno::ACCESS => found = errno,
            other => return other,
        }
    }
    found
}

/// The files that may be meant by the command's first word.
fn candidates(command: &Command) -> Result<Vec<CString>, Errno> {
    let name = command.argv.first().filter(|name| !name.is_empty()).ok_or(Errno::NOENT)?;
    if name.as_bytes().contains(&b'/') {
        return c_string(name).map(|path| vec![path]);
    }
    let path = command.environment.iter().find_map(|pair| pair.as_bytes().strip_prefix(b"PATH="));
    let directories =
        path.unwrap_or(b"/usr/bin:/bin").split(|byte| *byte == b':').filter(|part| !part.is_empty());
    directories
        .map(|directory| {
            let file: PathBuf = Path::new(OsStr::from_bytes(directory)).join(name);
            c_string(file.as_os_str())
        })
        .collect()
}

fn c_strings(texts: &[OsString]) -> Result<Vec<CString>, Errno> {
    texts.iter().map(|text| c_string(text)).collect()
}

fn c_string(text: &OsStr) -> Result<CString, Errno> {
    CString::new(text.as_bytes()).map_err(|_| Errno::INVAL)
}
