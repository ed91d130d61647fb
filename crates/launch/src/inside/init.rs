//! PID 1 of a sandbox: starts commands for its clients, reaps what ends, and ends with its supervisor.
//!
//! It is confined like the workload and holds nothing but its sockets and the layer's lock. When it exits,
//! for whatever reason, the kernel kills every process of the sandbox.

mod cold;
mod freeze;
mod hold;
mod leader;
mod list;
mod spawn;
mod stop;

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::{Signal, WaitOptions, kill_process, kill_process_group, wait};
use sandtable_protocol::constants::GRACE;
use sandtable_protocol::report::Report;
use sandtable_protocol::wire::{Ask, Command, Status, Tell};

use crate::sys::process::exit_now;
use crate::sys::signal::{next_signal, signal_descriptor};
use crate::transport::{self, Frame};
use freeze::Freeze;
use hold::Hold;
use spawn::{NotSpawned, Patience, Process, Settled, Starting};

/// How much later than the supervisor PID 1 looks at the clock.
const LATER: Duration = Duration::from_millis(250);

/// What PID 1 starts with.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) supervisor: OwnedFd,
    /// Where further clients come from.
    pub(crate) listener: OwnedFd,
    pub(crate) report: Report,
    /// What every command has in its environment unless it brings its own.
    pub(crate) environment: Vec<OsString>,
}

/// Serves clients until the supervisor is gone.
pub(crate) fn serve(seat: Seat) -> ! {
    let Ok(signals) = signal_descriptor(&[libc::SIGCHLD]) else { exit_now(125) };
    let Seat { supervisor, listener, report, environment } = seat;
    let mut init = Init {
        report,
        environment,
        signals,
        listener: Some(listener),
        clients: vec![Client::new(supervisor)],
        finished: false,
        stopping: false,
        expiry: None,
        deadline: None,
        freeze: None,
    };
    loop {
        init.turn();
    }
}

struct Init {
    report: Report,
    environment: Vec<OsString>,
    signals: OwnedFd,
    /// Closed once the sandbox is about to end, so that late clients try again with a new sandbox.
    listener: Option<OwnedFd>,
    /// The first is the supervisor.
    clients: Vec<Client>,
    /// Whether the supervisor's command has ended.
    finished: bool,
    /// Whether somebody asked for the end.
    stopping: bool,
    /// When the sandbox's time is up and nobody else has said so.
    expiry: Option<Instant>,
    /// When whatever still runs is killed.
    deadline: Option<Instant>,
    /// While somebody wants everything held still.
    freeze: Option<Freeze>,
}

struct Client {
    socket: OwnedFd,
    command: Option<Process>,
    /// Its command, until it is known to run. Waiting for that here would let the workload, which can stop any
    /// process, keep all clients from being served.
    starting: Option<Starting>,
    hold: Hold,
    /// What it asked for while nothing may move.
    later: Vec<Frame<Ask>>,
}

impl Client {
    fn new(socket: OwnedFd) -> Self {
        Self { socket, command: None, starting: None, hold: Hold::No, later: Vec::new() }
    }

    fn is_busy(&self) -> bool {
        let waits = || self.later.iter().any(|frame| matches!(frame.message, Ask::Run(_)));
        self.command.is_some() || self.starting.is_some() || waits()
    }
}

/// What poll found ready.
enum Event {
    Signal,
    NewClient,
    Client(usize),
    Settled(usize),
}

impl Init {
    fn turn(&mut self) {
        let events = self.wait();
        // Clients are handled from the last to the first, so that removing one moves none still to come.
        for event in events.into_iter().rev() {
            match event {
                Event::Signal => self.reap(),
                Event::NewClient => self.accept(),
                Event::Settled(index) => self.settle(index, Patience::Some),
                Event::Client(index) => self.listen(index),
            }
        }
        self.settle_freeze();
        if self.expiry.is_some_and(|expiry| expiry <= Instant::now()) {
            self.stop(GRACE);
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            self.deadline = None;
            kill_everything(Signal::KILL);
        }
    }

    fn wait(&self) -> Vec<Event> {
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        let mut meanings = vec![Event::Signal];
        if let Some(listener) = &self.listener {
            fds.push(PollFd::new(listener, PollFlags::IN));
            meanings.push(Event::NewClient);
        }
        for (index, client) in self.clients.iter().enumerate() {
            fds.push(PollFd::new(&client.socket, PollFlags::IN));
            meanings.push(Event::Client(index));
            // Judged before its client is listened to, which may remove it: events are taken from the last.
            if let Some(starting) = &client.starting {
                fds.push(PollFd::new(&starting.told, PollFlags::IN));
                meanings.push(Event::Settled(index));
            }
        }
        let ends = self.deadline.into_iter().chain(self.expiry);
        let ends = ends.map(|end| end.saturating_duration_since(Instant::now()));
        let tick = self.freeze.as_ref().and_then(Freeze::tick);
        let left = ends.chain(tick).min().map(timespec);
        match poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => exit_now(125),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        meanings.into_iter().zip(ready).filter_map(|(meaning, ready)| ready.then_some(meaning)).collect()
    }

    fn accept(&mut self) {
        let Some(listener) = &self.listener else { return };
        if let Ok(socket) = accept_with(listener, SocketFlags::CLOEXEC) {
            self.clients.push(Client::new(socket));
        }
    }

    fn listen(&mut self, index: usize) {
        match transport::receive::<Ask>(&self.clients[index].socket) {
            Ok(frame) => self.answer(index, frame),
            Err(_) => self.leave(index),
        }
    }

    fn answer(&mut self, index: usize, frame: Frame<Ask>) {
        match frame.message {
            // One command at a time for each client.
            Ask::Run(_) if self.clients[index].is_busy() => self.leave(index),
            // Nothing may start, stop or go on now.
            Ask::Run(_) | Ask::Signal { .. } if self.freeze.is_some() => self.put_off(index, frame),
            Ask::Run(mut command) => {
                if let (0, Some(time)) = (index, command.time_ms) {
                    // A little later than the supervisor's own bell.
                    self.expiry = Instant::now().checked_add(Duration::from_millis(time) + LATER);
                }
                match spawn::spawn(self.completed(&mut command), frame.descriptors) {
                    Ok(starting) => self.clients[index].starting = Some(starting),
                    Err(failure) => self.not_started(index, failure),
                }
            }
            Ask::Signal { number } => {
                if let (Some(command), Some(signal)) =
                    (self.clients[index].command, Signal::from_named_raw(number))
                {
                    signal_command(command, signal);
                }
            }
            Ask::Freeze if self.stopping => self.leave(index),
            Ask::Freeze => self.hold(index, frame.descriptors),
            Ask::Thaw => self.let_go(index),
            Ask::Stop { grace_ms } => self.stop(Duration::from_millis(grace_ms)),
            Ask::Limits(limits) if index == 0 => self.report.controls.extend(limits.controls),
            // Only meaningful during set-up, and from the supervisor.
            Ask::Mounts | Ask::Adopt(_) | Ask::Limits(_) => self.leave(index),
        }
    }

    /// `command` with what every command has in its environment.
    fn completed<'c>(&self, command: &'c mut Command) -> &'c Command {
        let name = |pair: &OsString| pair.as_bytes().split(|byte| *byte == b'=').next().map(<[u8]>::to_vec);
        let given: Vec<Option<Vec<u8>>> = command.environment.iter().map(name).collect();
        let added = self.environment.iter().filter(|pair| !given.contains(&name(pair)));
        command.environment.extend(added.cloned());
        command
    }

    /// Begins to end everything.
    fn stop(&mut self, grace: Duration) {
        self.break_freeze();
        kill_everything(Signal::TERM);
        // What is stopped hears nothing.
        kill_everything(Signal::CONT);
        self.stopping = true;
        self.expiry = None;
        self.deadline = Instant::now().checked_add(grace);
    }

    /// Tells a client what became of the start of its command, once that is known.
    fn settle(&mut self, index: usize, patience: Patience) {
        let Some(starting) = self.clients[index].starting.take() else { return };
        match starting.settled(patience) {
            Settled::NotYet(starting) => self.clients[index].starting = Some(starting),
            Settled::Runs(spawned) => {
                self.clients[index].command = Some(spawned.process);
                let terminal: Vec<BorrowedFd<'_>> = spawned.terminal.iter().map(AsFd::as_fd).collect();
                self.tell(index, &Tell::Started(self.report.clone()), &terminal);
            }
            Settled::Failed(failure) => self.not_started(index, failure),
        }
    }

    fn not_started(&mut self, index: usize, failure: NotSpawned) {
        self.finished |= index == 0;
        let told = Tell::NotStarted { step: failure.step, errno: failure.errno.raw_os_error() };
        self.tell(index, &told, &[]);
        self.tell_supervisor_of_others();
    }

    /// A client that cannot be told is gone, which the next look at its socket will find: it is not removed here,
    /// in the middle of events that go by its place.
    fn tell(&self, index: usize, message: &Tell, descriptors: &[BorrowedFd<'_>]) {
        let _gone = transport::send(&self.clients[index].socket, message, descriptors);
    }

    /// A client is gone. Its command ends with it; the supervisor's absence ends everything.
    fn leave(&mut self, index: usize) {
        if index == 0 {
            exit_now(0);
        }
        let client = self.clients.remove(index);
        if let Some(starting) = client.starting {
            starting.kill();
        }
        if let Some(command) = client.command {
            signal_command(command, Signal::KILL);
        }
        self.thaw_if_nobody_holds();
        self.tell_supervisor_of_others();
    }

    /// Takes every process that ended, tells the client whose command it was.
    fn reap(&mut self) {
        while next_signal(self.signals.as_fd()).is_some() {}
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            let starting = |client: &Client| client.starting.as_ref().is_some_and(|child| child.pid == pid);
            if let Some(index) = self.clients.iter().position(starting)
                && !status.stopped()
            {
                self.settle(index, Patience::None);
            }
            // Stopped by us, for a while.
            if status.stopped() && self.freeze.is_some() {
                continue;
            }
            let of_this = |client: &Client| client.command.is_some_and(|command| command.child == pid);
            let Some(index) = self.clients.iter().position(of_this) else {
                continue;
            };
            let told = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Tell::Ended(Status::Exited { code }),
                (None, Some(number)) => Tell::Ended(Status::Signalled { number }),
                (None, None) => Tell::Stopped,
            };
            self.report(index, &told);
        }
        self.recheck_freeze();
        // Whoever asked for the end must not wait for a supervisor that is stopped itself.
        if self.stopping && !self.clients.iter().any(Client::is_busy) {
            exit_now(0);
        }
    }

    /// Tells a client what became of its command. Without a terminal a stop is nobody's business.
    fn report(&mut self, index: usize, told: &Tell) {
        if let Tell::Ended(_) = told {
            self.clients[index].command = None;
            self.finished |= index == 0;
        } else if self.clients[index].command.and_then(Process::leader).is_none() {
            return;
        }
        self.tell(index, told, &[]);
        self.tell_supervisor_of_others();
    }

    /// After the supervisor's own command: how many commands others still have. With none left nobody is
    /// let in any more, so that no command can be lost between this message and the end.
    fn tell_supervisor_of_others(&mut self) {
        if !self.finished {
            return;
        }
        let running = self.clients.iter().skip(1).filter(|client| client.is_busy()).count();
        if running == 0 {
            self.listener = None;
        }
        if transport::send(&self.clients[0].socket, &Tell::Others { running }, &[]).is_err() {
            exit_now(0);
        }
    }
}

/// Signals the command. Its leader hears only what it must: the end, and that it goes on.
fn signal_command(command: Process, signal: Signal) {
    // The group may be gone already, which is what was wanted.
    let _gone = kill_process_group(command.group, signal);
    if let (Some(leader), Signal::KILL | Signal::CONT) = (command.leader(), signal) {
        let _gone = kill_process(leader, signal);
    }
}

/// Signals every process of the sandbox but this one.
fn kill_everything(signal: Signal) {
    crate::sys::signal::signal_all(signal.as_raw());
}

fn timespec(duration: Duration) -> Timespec {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: i64::from(duration.subsec_nanos()) }
}
