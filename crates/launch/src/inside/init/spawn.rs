//! Starting one command inside the sandbox.

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, chdir, getrlimit, kill_process, setrlimit, setsid, umask,
};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use sandtable_protocol::wire::{Command, StartStep, Stdio};

use super::leader;
use crate::sys::process::{Side, close_on_exec_from, duplicate_onto, exec, exit_now, fork};
use crate::sys::signal::reset_signals;

/// What programs can count on: less would break them.
const USUAL_DESCRIPTORS: u64 = 1024;

/// A child on its way from the fork to the command. It may take for ever: the workload can stop it.
#[derive(Debug)]
pub(super) struct Starting {
    pub(super) pid: Pid,
    /// Closed when it became the command; what it says before is in `heard`.
    pub(super) told: OwnedFd,
    heard: Vec<u8>,
    terminal: Option<OwnedFd>,
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) process: Process,
    /// The master end of its terminal, if it has one.
    pub(super) terminal: Option<OwnedFd>,
}

/// The processes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// The child of PID 1 that ends when the command ends: itself, or the leader of its terminal.
    pub(super) child: Pid,
    /// Its process group.
    pub(super) group: Pid,
}

impl Process {
    /// The leader of its terminal, if it has one.
    pub(super) fn leader(self) -> Option<Pid> {
        (self.child != self.group).then_some(self.child)
    }
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
            let Err(failure) = match &streams {
                Streams::Three(_) => become_command(command, &streams),
                Streams::Terminal { inner, .. } => {
                    leader::lead(inner.as_fd(), teller.as_fd(), || become_command(command, &streams))
                }
            };
            tell(teller.as_fd(), failure.step.into(), failure.errno.raw_os_error());
            exit_now(127)
        }
        Side::Parent(pid) => {
            drop(teller);
            fcntl_setfl(&told, OFlags::NONBLOCK).map_err(failed)?;
            Ok(Starting { pid, told, heard: Vec::new(), terminal: streams.into_master() })
        }
    }
}

/// What became of a start.
#[derive(Debug)]
pub(super) enum Settled {
    Runs(Spawned),
    Failed(NotSpawned),
    NotYet(Starting),
}

/// Whether something that is not settled may become so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    Some,
    /// The child has ended: nobody is left who could settle it.
    None,
}

impl Starting {
    /// What became of it, as far as that can be said without waiting.
    pub(super) fn settled(mut self, patience: Patience) -> Settled {
        let mut word = [0; 64];
        let over = loop {
            match rustix::io::read(&self.told, &mut word) {
                Ok(0) => break true,
                Ok(count) => self.heard.extend(&word[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break false,
                Err(_) => break true,
            }
        };
        match understood(&self.heard) {
            Err(failure) => Settled::Failed(failure),
            Ok(_) if !over && patience == Patience::Some => Settled::NotYet(self),
            Ok(_) if !over => {
                self.kill();
                Settled::Failed(NotSpawned { step: StartStep::Process, errno: Errno::SRCH })
            }
            Ok(group) => {
                let process = Process { child: self.pid, group: group.unwrap_or(self.pid) };
                Settled::Runs(Spawned { process, terminal: self.terminal })
            }
        }
    }

    /// Ends whatever there is of it.
    pub(super) fn kill(&self) {
        let _gone = kill_process(self.pid, Signal::KILL);
        if let Ok(Some(command)) = understood(&self.heard) {
            let _gone = kill_process(command, Signal::KILL);
        }
    }
}

/// What a child says before it becomes the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The leader of a terminal names the process of the command.
    Group,
    Failed(StartStep),
}

impl From<StartStep> for Word {
    fn from(step: StartStep) -> Self {
        Self::Failed(step)
    }
}

const WORDS: [(u8, Word); 4] = [
    (b'g', Word::Group),
    (b'd', Word::Failed(StartStep::Directory)),
    (b'x', Word::Failed(StartStep::Program)),
    (b'p', Word::Failed(StartStep::Process)),
];

/// Sends one word with a number: so short that the kernel writes it in one piece.
pub(super) fn tell(teller: BorrowedFd<'_>, word: Word, number: i32) {
    let letter = WORDS.iter().find(|(_, known)| *known == word).map_or(b'p', |(letter, _)| *letter);
    let [a, b, c, d] = number.to_le_bytes();
    let _unheard = rustix::io::write(teller, &[letter, a, b, c, d]);
}

/// What the children said: the process of a command below a leader, or why it failed.
fn understood(words: &[u8]) -> Result<Option<Pid>, NotSpawned> {
    let mut group = None;
    for word in words.as_chunks::<5>().0 {
        let [letter, a, b, c, d] = *word;
        let number = i32::from_le_bytes([a, b, c, d]);
        match WORDS.iter().find(|(known, _)| *known == letter) {
            Some((_, Word::Group)) => group = Pid::from_raw(number),
            Some((_, Word::Failed(step))) => {
                return Err(NotSpawned { step: *step, errno: Errno::from_raw_os_error(number) });
            }
            None => {}
        }
    }
    Ok(group)
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
    if let Streams::Three(_) = streams {
        setsid().map_err(process)?;
    }
    streams.install().map_err(process)?;
    reset_signals().map_err(process)?;
    leave_descriptors(command.descriptors).map_err(process)?;
    umask(Mode::from_raw_mode(0o022));
    close_on_exec_from(3).map_err(process)?;
    chdir(&command.directory).map_err(|errno| NotSpawned { step: StartStep::Directory, errno })?;
    let program = |errno| NotSpawned { step: StartStep::Program, errno };
    let argv = c_strings(&command.argv).map_err(program)?;
    let environment = c_strings(&command.environment).map_err(program)?;
    let candidates = candidates(command).map_err(program)?;
    Err(program(first_executable(&candidates, &argv, &environment)))
}

/// Descriptors under way in sockets are counted for the user, and whoever sends one is held against its own limit. So a
/// command may have three quarters of what its client and PID 1 may have: then these can always send theirs.
fn leave_descriptors(of_client: Option<u64>) -> Result<(), Errno> {
    let own = getrlimit(Resource::Nofile);
    let Some(most) = own.maximum.into_iter().chain(of_client).min() else { return Ok(()) };
    let share = if most > USUAL_DESCRIPTORS { (most / 4 * 3).max(USUAL_DESCRIPTORS) } else { most };
    let current = own.current.map_or(share, |current| current.min(share));
    setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: Some(share) })
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
