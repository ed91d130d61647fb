//! The one way into a container: a socket that is there until PID 1 has come through it.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat, stat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use rustix::process::{Pid, getuid};
use sandtable_protocol::op::Limits;
use sandtable_protocol::report::{Control, Observed, Report};
use sandtable_protocol::step::Step;
use sandtable_protocol::terms::Terms;
use sandtable_protocol::wire::{Ask, Failure, Tell};

use crate::error::DoorError;
use crate::inside::verify::private_ids;
use crate::outside::cgroup::Foreign;
use crate::sys::network::{Peer, peer};
use crate::transport;

/// The name of the socket in its directory.
const SOCKET: &str = "socket";
/// How often somebody else is asked whether waiting is of any use.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Where PID 1 of one container is expected. Dropping it removes the socket.
#[derive(Debug)]
pub struct Door {
    listener: OwnedFd,
    socket: PathBuf,
    /// The only program that may come through, by device and inode.
    expected: Option<(u64, u64)>,
}

/// A container whose PID 1 waits for commands. When the connection is closed PID 1 ends, and everything with
/// it.
#[derive(Debug)]
pub struct Contained {
    socket: Option<OwnedFd>,
    pid: Pid,
    report: Report,
    groups: Foreign,
    port: Option<OwnedFd>,
}

impl Door {
    /// Makes the socket in `directory`, which must be the caller's alone.
    pub fn make(directory: &Path) -> Result<Self, DoorError> {
        let socket = directory.join(SOCKET);
        let failed = |source| DoorError::Make { path: socket.clone(), source };
        let _stale = fs::remove_file(&socket);
        // Through a handle: the path itself may be longer than an address can be.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(CWD, directory, flags, Mode::empty()).map_err(failed)?;
        let address = SocketAddrUnix::new(format!("/proc/self/fd/{}/{SOCKET}", handle.as_fd().as_raw_fd()))
            .map_err(failed)?;
        let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(failed)?;
        bind(&listener, &address).map_err(failed)?;
        listen(&listener, 1).map_err(failed)?;
        Ok(Self { listener, socket, expected: None })
    }

    /// The same for one program alone. Whatever an engine has started in its place is nobody's PID 1.
    pub fn expecting(mut self, program: &Path) -> Result<Self, DoorError> {
        let found = stat(program).map_err(|source| DoorError::Make { path: program.to_owned(), source })?;
        self.expected = Some((found.st_dev, found.st_ino));
        Ok(self)
    }

    /// Waits for PID 1 of the container as long as `hope` says there is some, and closes the door behind it.
    pub fn wait(self, mut hope: impl FnMut() -> bool) -> Result<Option<OwnedFd>, DoorError> {
        loop {
            let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
            match poll(&mut fds, Some(&TICK)) {
                Ok(0) | Err(Errno::INTR) if !hope() => return Ok(None),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => {
                    let socket =
                        accept_with(&self.listener, SocketFlags::CLOEXEC).map_err(DoorError::Wait)?;
                    let Peer { pid, uid } = peer(&socket).map_err(DoorError::Wait)?;
                    if uid == getuid() && self.is_expected(pid.ok_or(DoorError::Apart)?)? {
                        return Ok(Some(socket));
                    }
                }
                Err(errno) => return Err(DoorError::Wait(errno)),
            }
        }
    }
}

impl Door {
    /// Whether who came is the one that is waited for. One that has ended already is as good as nobody: why it did is the
    /// container's to say.
    fn is_expected(&self, pid: Pid) -> Result<bool, DoorError> {
        let Some(expected) = self.expected else { return Ok(true) };
        match stat(format!("/proc/{}/exe", pid.as_raw_nonzero())) {
            Ok(found) if expected == (found.st_dev, found.st_ino) => Ok(true),
            Ok(_) => Err(DoorError::Stranger(None)),
            Err(Errno::NOENT | Errno::SRCH) => Ok(false),
            Err(errno) => Err(DoorError::Stranger(Some(errno))),
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _already_gone = fs::remove_file(&self.socket);
    }
}

impl Contained {
    /// Hands `terms` to the PID 1 behind `socket`, with where it takes further clients from and the layer's
    /// lock, and returns when it has reported what holds. `limits` are looked for from outside.
    pub fn adopt(
        socket: OwnedFd,
        terms: Terms,
        descriptors: [BorrowedFd<'_>; 2],
        limits: Option<&Limits>,
    ) -> Result<Self, DoorError> {
        let pid = peer(&socket).map_err(DoorError::Wait)?.pid.ok_or(DoorError::Apart)?;
        transport::send(&socket, &Ask::Adopt(terms), &descriptors).map_err(DoorError::Lost)?;
        let frame = transport::receive::<Tell>(&socket).map_err(DoorError::Lost)?;
        let port = frame.descriptors.into_iter().next();
        let mut report = match frame.message {
            Tell::Ready(report) => report,
            Tell::Failed(failure) => return Err(DoorError::Step(failure)),
            other => {
                let step = Step::UnderstandInit(format!("{other:?}"));
                return Err(DoorError::Step(Failure { step, errno: 0 }));
            }
        };
        let groups = Foreign::of(pid.as_raw_nonzero().get());
        let mut controls = limits.map(|limits| groups.observe(limits)).unwrap_or_default();
        controls.insert(Control::PrivateIds, ids(pid));
        let found = Report { controls };
        transport::send(&socket, &Ask::Limits(found.clone()), &[]).map_err(DoorError::Lost)?;
        report.controls.extend(found.controls);
        Ok(Self { socket: Some(socket), pid, report, groups, port })
    }

    /// What listens at the port of the terms, once.
    pub fn take_port(&mut self) -> Option<OwnedFd> {
        self.port.take()
    }

    /// What holds.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The process id of PID 1 on this machine.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The connection to PID 1.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("open until the end").as_fd()
    }

    /// Whether something inside was killed because memory had run out.
    pub fn ran_out_of_memory(&self) -> bool {
        self.groups.ran_out_of_memory()
    }

    /// Ends everything inside: PID 1 finds the connection closed.
    pub fn end(&mut self) {
        drop(self.socket.take());
    }
}

/// Whether an id inside is root for the kernel. Inside, a user namespace within another one shows only the
/// numbers of the one around it.
fn ids(pid: Pid) -> Observed {
    let map = fs::read_to_string(format!("/proc/{}/uid_map", pid.as_raw_nonzero())).unwrap_or_default();
    match private_ids(&map) {
        Observed::Absent { .. } if getuid().is_root() => Observed::Absent {
            why: "the command is root for the kernel, though without any capability".to_owned(),
        },
        Observed::Absent { .. } => Observed::Partial {
            why: "the command is not root, but the container has no ids of its own".to_owned(),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::connect;

    #[test]
    fn the_door_is_gone_once_somebody_came_through() {
        let directory = tempfile::tempdir().unwrap();
        let door = Door::make(directory.path()).unwrap();
        let inside = connect(&directory.path().join(SOCKET)).unwrap();
        let outside = door.wait(|| true).unwrap().expect("somebody came");
        assert!(!directory.path().join(SOCKET).exists());
        assert_eq!(connect(&directory.path().join(SOCKET)).unwrap_err(), Errno::NOENT);
        transport::send(&inside, &Tell::NeedsIds, &[]).unwrap();
        assert_eq!(transport::receive::<Tell>(&outside).unwrap().message, Tell::NeedsIds);
    }

    #[test]
    fn only_the_expected_program_comes_through() {
        let directory = tempfile::tempdir().unwrap();
        let came = |program: &Path| {
            let door = Door::make(directory.path()).unwrap().expecting(program).unwrap();
            let _inside = connect(&directory.path().join(SOCKET)).unwrap();
            door.wait(|| true).map(|socket| socket.is_some())
        };
        assert!(came(Path::new("/proc/self/exe")).unwrap());
        assert!(matches!(came(Path::new("/bin/sh")), Err(DoorError::Stranger(None))));
    }

    #[test]
    fn one_that_has_ended_is_nobody_and_no_stranger() {
        let directory = tempfile::tempdir().unwrap();
        let door = Door::make(directory.path()).unwrap().expecting(Path::new("/bin/sh")).unwrap();
        #[expect(clippy::disallowed_methods, reason = "any process will do")]
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!door.is_expected(Pid::from_child(&child)).unwrap());
    }

    #[test]
    fn without_hope_nobody_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Door::make(directory.path()).unwrap().wait(|| false).unwrap().is_none());
    }
}
