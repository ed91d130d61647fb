//! The outer side of a launch: clones PID 1, gives a root sandbox its ids and mounts, and waits for the
//! report.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use sandtable_protocol::op::{Ids, Plan};
use sandtable_protocol::report::{Control, Report};
use sandtable_protocol::step::Step;
use sandtable_protocol::terms::HostView;
use sandtable_protocol::wire::{Ask, Failure, Tell};

use crate::error::LaunchError;
use crate::failpoint::skips;
use crate::handles::{Handles, Namespaces};
use crate::inside::init;
use crate::inside::mount::{open_source, shifted_sources};
use crate::inside::setup::{range_map, set_up};
use crate::namespaces::NAMESPACES;
use crate::outside::cgroup::Group;
use crate::outside::host;
use crate::step::Context as _;
use crate::sys::mount::{Attributes, set_attributes};
use crate::sys::process::{Side, clone_into, exit_now, has_one_thread};
use crate::transport;

/// A sandbox whose PID 1 waits for its first command. Dropping it ends the sandbox.
#[derive(Debug)]
pub struct Sandbox {
    pid: Pid,
    socket: Option<OwnedFd>,
    report: Report,
    namespaces: Option<Namespaces>,
    /// Removed after the processes inside it are gone.
    group: Option<Group>,
}

/// How long a thread that was joined may take to be gone.
const JOINED: Duration = Duration::from_secs(1);

/// Refuses in a process that has more than one thread.
///
/// PID 1 is a fork that goes on with ordinary code: a lock that another thread holds, the allocator's for one, would never
/// be released there.
pub fn one_thread() -> Result<(), LaunchError> {
    let asked = Instant::now();
    while !has_one_thread() {
        if asked.elapsed() > JOINED {
            return Err(LaunchError::Threads);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Launches PID 1 and returns when it has reported what holds.
pub fn launch(plan: &Plan, handles: &Handles<'_>) -> Result<Sandbox, LaunchError> {
    one_thread()?;
    let host = host::look().context(|| Step::LookAtHost)?;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .context(|| Step::MakeSocket)?;
    let group = plan.limits.as_ref().map(Group::make);
    match clone_into(namespace_flags(plan)).map_err(LaunchError::Namespaces)? {
        Side::Child => {
            // The copy of the supervisor's end would keep the connection alive after its death.
            drop(ours);
            match group.as_ref().map_or(Ok(()), Group::enter) {
                Ok(()) => child(plan, &host, theirs, handles),
                Err(failure) => give_up(&theirs, failure),
            }
        }
        Side::Parent(pid) => {
            drop(theirs);
            let mut sandbox =
                Sandbox { pid, socket: Some(ours), report: Report::default(), namespaces: None, group };
            sandbox.report = sandbox.wait_ready(plan)?;
            if let Some(group) = &sandbox.group {
                let limits = Report { controls: group.observe(sandbox.pid()) };
                transport::send(sandbox.socket(), &Ask::Limits(limits.clone()), &[])
                    .map_err(LaunchError::Lost)?;
                sandbox.report.controls.extend(limits.controls);
            }
            Ok(sandbox)
        }
    }
}

/// Whether a test build leaves out what is behind `control`, for controls that are looked after outside this crate.
pub fn leaves_out(control: Control) -> bool {
    skips(control)
}

impl Sandbox {
    /// What holds.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The process id of PID 1 on the host.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether something inside was killed because memory had run out.
    pub fn ran_out_of_memory(&self) -> bool {
        self.group.as_ref().is_some_and(Group::ran_out_of_memory)
    }

    /// The connection to PID 1.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("open until the end").as_fd()
    }

    /// Begins to end the sandbox. Dropping it waits for the end.
    pub fn end(&mut self) {
        drop(self.socket.take());
        let _already_gone = kill_process(self.pid, Signal::KILL);
    }

    /// The namespaces of a sandbox that has a way out.
    pub fn namespaces(&self) -> Option<&Namespaces> {
        self.namespaces.as_ref()
    }

    fn wait_ready(&mut self, plan: &Plan) -> Result<Report, LaunchError> {
        loop {
            let frame = transport::receive::<Tell>(self.socket()).map_err(LaunchError::Lost)?;
            match frame.message {
                Tell::Namespaces => {
                    let mut handles = frame.descriptors.into_iter();
                    if let (Some(user), Some(network)) = (handles.next(), handles.next()) {
                        self.namespaces = Some(Namespaces { user, network });
                    }
                }
                Tell::NeedsIds => self.give_ids(plan)?,
                Tell::Ready(report) => return Ok(report),
                Tell::Failed(failure) => return Err(failure.into()),
                other => {
                    let step = Step::UnderstandInit(format!("{other:?}"));
                    return Err(LaunchError::Step { step, cause: None });
                }
            }
        }
    }

    /// Maps the private range and sends the mounts that are shifted by it.
    fn give_ids(&self, plan: &Plan) -> Result<(), LaunchError> {
        let Ids::Range { base, count } = plan.ids else { return Ok(()) };
        let proc = PathBuf::from(format!("/proc/{}", self.pid()));
        let map = range_map(base, count);
        for file in ["uid_map", "gid_map"] {
            let path = proc.join(file);
            std::fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .and_then(|mut file| std::io::Write::write_all(&mut file, map.as_bytes()))
                .context(|| Step::MapIds)?;
        }
        let namespace = open(proc.join("ns/user"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .context(|| Step::OpenUserNamespace)?;
        let mut mounts = Vec::new();
        for shifted in shifted_sources(plan) {
            let tree = open_source(shifted.source, shifted.pinned, shifted.depth)?;
            let wanted = Attributes { set: 0, id_map: Some(namespace.as_fd()) };
            set_attributes(&tree, wanted, shifted.depth)
                .context(|| Step::ShiftOwners(shifted.source.into()))?;
            mounts.push(tree);
        }
        let mounts: Vec<BorrowedFd<'_>> = mounts.iter().map(AsFd::as_fd).collect();
        transport::send(self.socket(), &Ask::Mounts, &mounts).map_err(LaunchError::Lost)
    }
}

impl Drop for Sandbox {
    /// Ends the sandbox and waits until the kernel has taken it down, so that its mounts are gone when the
    /// lock is released.
    fn drop(&mut self) {
        self.end();
        let _already_taken = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// PID 1, from the clone to its end.
fn child(plan: &Plan, host: &HostView, socket: OwnedFd, handles: &Handles<'_>) -> ! {
    let keep = [socket.as_fd(), handles.listener, handles.lock];
    match set_up(plan, host, &socket, &keep) {
        Ok(report) => {
            let listener = handles.listener.try_clone_to_owned();
            if let (Ok(listener), Ok(())) =
                (listener, transport::send(&socket, &Tell::Ready(report.clone()), &[]))
            {
                let environment = Vec::new();
                init::serve(init::Seat { supervisor: socket, listener, report, environment })
            }
            exit_now(125)
        }
        Err(failure) => give_up(&socket, failure),
    }
}

/// Tells the supervisor why there is no sandbox.
fn give_up(socket: &OwnedFd, failure: Failure) -> ! {
    let _unheard = transport::send(socket, &Tell::Failed(failure), &[]);
    exit_now(125)
}

/// The namespaces that are made by the clone. The one of control groups shows the group its first process is
/// in at that moment, so with a group of its own the child makes it after it has entered.
fn namespace_flags(plan: &Plan) -> u64 {
    let wanted = NAMESPACES.into_iter().filter(|(control, _, _)| {
        let own = match control {
            Control::NetworkNamespace => plan.network.is_own(),
            Control::CgroupNamespace => plan.limits.is_none(),
            _ => true,
        };
        own && !skips(*control)
    });
    wanted.map(|(_, _, flag)| flag).fold(0, |flags, flag| flags | flag)
}
