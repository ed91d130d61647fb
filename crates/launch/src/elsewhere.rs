//! What stands in the place of `outside` on another system: the same names, and no sandbox.
//!
//! The types of things that run have no values here, so whoever holds one cannot exist and nothing has to be
//! pretended about it. What would make one says that it takes Linux.

use rustix::io::Errno;

/// What is asked for takes Linux.
const NEEDS_LINUX: Errno = Errno::NOSYS;

/// What there is none of.
#[derive(Clone, Copy, Debug)]
enum Never {}

/// The client's side of a command: there is no sandbox to be a client of.
pub mod attach {
    use std::os::fd::{BorrowedFd, OwnedFd};
    use std::time::{Duration, Instant};

    use super::Never;
    use sandtable_protocol::invocation::{AttachError, Ending, FreezeError, Held, Invocation};
    use sandtable_protocol::report::Report;
    use sandtable_protocol::wire::{FrozenBy, WireError};

    /// A sandbox in which nothing moves.
    #[derive(Debug)]
    pub struct Frozen(Never);

    impl Frozen {
        pub fn by(&self) -> FrozenBy {
            match self.0 {}
        }

        pub fn is_complete(&self) -> bool {
            match self.0 {}
        }

        pub fn thaw(self) -> Held {
            match self.0 {}
        }
    }

    /// Refuses.
    pub fn run(
        _socket: BorrowedFd<'_>,
        _invocation: Invocation,
        _started: impl FnOnce(&Report),
    ) -> Result<Ending, AttachError> {
        Err(AttachError::Streams(super::NEEDS_LINUX))
    }

    /// Nobody is there to be waited for.
    pub fn wait_for_others(_socket: BorrowedFd<'_>, _deadline: Option<Instant>, _waiting: impl FnMut(usize)) {
    }

    /// Refuses.
    pub fn stop(_socket: BorrowedFd<'_>, _grace: Duration) -> Result<(), WireError> {
        Err(super::NEEDS_LINUX.into())
    }

    /// Refuses.
    pub fn freeze(_socket: OwnedFd, _group: Option<&[OwnedFd; 3]>) -> Result<Frozen, FreezeError> {
        Err(WireError::Io(super::NEEDS_LINUX).into())
    }

    /// No command has the terminal.
    pub fn restore_terminal() {}

    /// There is no PID 1.
    pub fn add_to_report(_: BorrowedFd<'_>, _: &Report) -> Result<(), WireError> {
        Err(WireError::Closed)
    }

    /// Only a supervisor has to.
    pub fn outlive_file_limits() {}
}

/// Control groups: there are none.
pub mod cgroup {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    /// None.
    pub fn cold(_journal: &Path, _group: &str, _supervisor: i32) -> Option<[OwnedFd; 3]> {
        None
    }

    /// Nothing can have been left.
    pub fn reap(_journal: &Path) {}
}

/// The supervisor's side of a container, whose first process is reached through a socket of the same kernel.
pub mod door {
    use std::os::fd::{BorrowedFd, OwnedFd};
    use std::path::Path;

    use super::Never;
    use crate::error::DoorError;
    use sandtable_protocol::op::Limits;
    use sandtable_protocol::report::Report;
    use sandtable_protocol::terms::Terms;

    /// Where the first process of a container is expected.
    #[derive(Debug)]
    pub struct Door(Never);

    impl Door {
        /// Refuses.
        pub fn make(directory: &Path) -> Result<Self, DoorError> {
            Err(DoorError::Make { path: directory.to_owned(), source: super::NEEDS_LINUX })
        }

        pub fn expecting(self, _program: &Path) -> Result<Self, DoorError> {
            match self.0 {}
        }

        pub fn wait(self, _hope: impl FnMut() -> bool) -> Result<Option<OwnedFd>, DoorError> {
            match self.0 {}
        }
    }

    /// A container that waits for commands.
    #[derive(Debug)]
    pub struct Contained(Never);

    impl Contained {
        /// Refuses.
        pub fn adopt(
            _socket: OwnedFd,
            _terms: Terms,
            _descriptors: [BorrowedFd<'_>; 2],
            _limits: Option<&Limits>,
        ) -> Result<Self, DoorError> {
            Err(DoorError::Wait(super::NEEDS_LINUX))
        }

        pub fn take_port(&mut self) -> Option<OwnedFd> {
            match self.0 {}
        }

        pub fn report(&self) -> &Report {
            match self.0 {}
        }

        pub fn pid(&self) -> i32 {
            match self.0 {}
        }

        pub fn socket(&self) -> BorrowedFd<'_> {
            match self.0 {}
        }

        pub fn ran_out_of_memory(&self) -> bool {
            match self.0 {}
        }

        pub fn end(&mut self) {
            match self.0 {}
        }
    }
}

/// Going to the background.
pub mod detach {
    use super::Never;
    use rustix::io::Errno;

    /// Which of the two processes this is.
    #[derive(Debug)]
    pub enum Role {
        Caller(Caller),
        Background(Background),
    }

    /// Waits for the answer from the background.
    #[derive(Debug)]
    pub struct Caller(Never);

    impl Caller {
        pub fn answer(self) -> Vec<u8> {
            match self.0 {}
        }
    }

    /// Gives the answer.
    #[derive(Debug)]
    pub struct Background(Never);

    impl Background {
        pub fn answer(self, _answer: &[u8]) {
            match self.0 {}
        }
    }

    /// Refuses.
    pub fn detach() -> Result<Role, Errno> {
        Err(super::NEEDS_LINUX)
    }
}

/// Another process that acts for this one.
pub mod delegate {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::process::{Child, Command};

    use super::Never;
    use sandtable_protocol::wire::WireError;

    /// One end of a connection.
    #[derive(Debug)]
    pub struct Line(Never);

    impl Line {
        pub fn send<T>(&self, _message: &T) -> Result<(), WireError> {
            match self.0 {}
        }

        pub fn receive<T>(&self) -> Result<T, WireError> {
            match self.0 {}
        }

        pub fn close(&self) {
            match self.0 {}
        }

        pub fn is_closed(&self) -> bool {
            match self.0 {}
        }

        pub fn closed(&self) {
            match self.0 {}
        }
    }

    /// Refuses.
    pub fn start<T>(_: Command, _: Option<OwnedFd>, _request: &T) -> io::Result<(Child, Line)> {
        Err(super::NEEDS_LINUX.into())
    }

    /// Refuses.
    pub fn accept<T>() -> Result<(Line, T), WireError> {
        Err(WireError::Io(super::NEEDS_LINUX))
    }

    /// Refuses.
    pub fn release_output() -> io::Result<()> {
        Err(super::NEEDS_LINUX.into())
    }
}

/// The host, as the supervisor of a container tells it.
pub mod host {
    use sandtable_protocol::terms::HostView;

    /// Refuses.
    pub fn look() -> rustix::io::Result<HostView> {
        Err(super::NEEDS_LINUX)
    }
}

/// What only the kernel can say.
pub mod machine {
    /// There is no Landlock.
    pub fn landlock_version() -> rustix::io::Result<u32> {
        Err(super::NEEDS_LINUX)
    }
}

/// Ctrl-C as a question, which takes signals that can be read like a file.
pub mod interrupt {
    use super::Never;
    use rustix::io::Errno;

    /// Holds signals back.
    #[derive(Debug)]
    pub struct Interrupt(Never);

    impl Interrupt {
        /// Refuses.
        pub fn hold() -> Result<Self, Errno> {
            Err(super::NEEDS_LINUX)
        }

        pub fn signal(&self) -> Option<i32> {
            match self.0 {}
        }
    }
}

/// Carrying bytes between a sandbox and a socket outside.
pub mod relay {
    use std::io;
    use std::os::fd::OwnedFd;

    use super::Never;
    use crate::handles::Far;
    use sandtable_protocol::op;

    /// A socket that clients can connect to.
    #[derive(Debug)]
    pub struct Listening(Never);

    impl Listening {
        /// Refuses.
        pub fn new(_relay: &op::Relay) -> io::Result<Self> {
            Err(super::NEEDS_LINUX.into())
        }

        /// Takes over what only a container of this kernel can have handed out.
        pub fn adopted(_listener: OwnedFd, _to: Far) -> Self {
            unreachable!("no container hands out a socket here")
        }

        pub fn start(self) -> io::Result<Relay> {
            match self.0 {}
        }
    }

    /// A relay at work.
    #[derive(Debug)]
    pub struct Relay(Never);
}

/// The outer side of a launch.
pub mod supervisor {
    use std::os::fd::BorrowedFd;

    use super::Never;
    use crate::error::LaunchError;
    use crate::handles::{Handles, Namespaces};
    use sandtable_protocol::op::Plan;
    use sandtable_protocol::report::{Control, Report};

    /// A sandbox that waits for its first command.
    #[derive(Debug)]
    pub struct Sandbox(Never);

    /// Nothing is launched here, whatever threads there are.
    pub fn one_thread() -> Result<(), LaunchError> {
        Ok(())
    }

    /// Refuses.
    pub fn launch(_plan: &Plan, _handles: &Handles<'_>) -> Result<Sandbox, LaunchError> {
        Err(LaunchError::Namespaces(super::NEEDS_LINUX))
    }

    /// Nothing is left out here.
    pub fn leaves_out(_: Control) -> bool {
        false
    }

    impl Sandbox {
        pub fn report(&self) -> &Report {
            match self.0 {}
        }

        pub fn ran_out_of_memory(&self) -> bool {
            match self.0 {}
        }

        pub fn socket(&self) -> BorrowedFd<'_> {
            match self.0 {}
        }

        pub fn end(&mut self) {
            match self.0 {}
        }

        pub fn namespaces(&self) -> Option<&Namespaces> {
            match self.0 {}
        }
    }
}
