//! The proxy command of a sandbox: a program of the same image, in a container of its own with a network of its own.
//! The sandbox has no network at all. Whoever connects to the proxy's port inside is taken over by the supervisor,
//! which carries the bytes to a Unix socket of the proxy's container: no port of the host is involved, and no name
//! or address that another sandbox could have as well.

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sandtable_launch::handles::Far;
use sandtable_launch::outside::door::Door;
use sandtable_launch::outside::relay::{Listening, Relay};
use sandtable_protocol::constants::{OUTPOST, READY};

use super::Dialect;
use super::image::engine_of;
use super::launch::{ContainerError, last_words};
use super::lower::{USER_MODE, Words, container_name, ids, labels, own_network, walls};
use super::mounts::{self, Write};
use super::own::{DOOR, INIT, SOCKET};
use super::plan::{ContainerPlan, Part, Proxy};
use crate::engine::Place;
use crate::model::container::PROXY_PORT;
use crate::model::image::ResolvedImage;
use crate::model::layout;
use crate::model::resolved::ResolvedSpec;
use crate::os;

/// How long the program may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long its container may take to go.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(10);
/// How often the engine's program is looked at.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The socket in the directory in which the two meet.
const OUT: &str = "out";

/// The words for the container, if there is a proxy.
pub(super) fn lower(dialect: Dialect, spec: &ResolvedSpec, place: &Place) -> Option<Proxy> {
    let container = spec.container.as_ref()?;
    let command = container.proxy.as_ref()?;
    let name = format!("{}-proxy", container_name(place));
    let directory = place.directory.join(layout::PROXY);
    let mut words = Words::new();
    words.add(["run", "--rm", "--pull=never", "--sig-proxy=false", "--log-driver=none"]);
    words.add(["--name", &name, "--hostname", "proxy"]);
    labels(&mut words, place);
    let root = spec.source.root.to_string();
    words.add(["--entrypoint", INIT, "--workdir", &root]);
    walls(&mut words, dialect);
    words.begin(Part::Network);
    let network = own_network(dialect, container, place);
    words.add_for(&spec.network.origin, ["--network", network.as_deref().unwrap_or(USER_MODE)]);
    words.begin(Part::Mounts);
    for value in [
        mounts::bind(&container.init.to_string(), INIT, Write::No),
        mounts::bind(&directory.to_string(), DOOR, Write::Yes),
        // What it runs may lie in the project: as it is outside, not as a command inside has left it.
        mounts::bind(&root, &root, Write::No),
    ] {
        words.add(["--mount", &value]);
    }
    words.add(["--tmpfs", "/tmp:rw,nosuid,nodev,mode=1777"]);
    words.begin(Part::Environment);
    words.add(["--env", "HOME=/tmp", "--env", "GIT_DISCOVERY_ACROSS_FILESYSTEM=1"]);
    words.begin(Part::Identity);
    let (uid, gid) = ids(dialect, spec, container);
    if network.is_none() {
        words.add(["--userns=keep-id"]);
    }
    words.add(["--user", &format!("{uid}:{gid}")]);
    words.begin(Part::Image);
    if let Some(ResolvedImage::Named { name, origin, id, .. }) = &spec.image {
        words.add_for(origin, [id.as_deref().unwrap_or(name.as_str())]);
    }
    words.begin(Part::Command);
    words.add([OUTPOST, SOCKET, &format!("{DOOR}/{OUT}"), &PROXY_PORT.to_string()]);
    for word in &command.value {
        words.add_for(&command.origin, [word]);
    }
    let directory = directory.into();
    Some(Proxy { name, command: command.value.join(" "), directory, argv: words.argv })
}

/// A proxy at work. Dropping it ends its container.
#[derive(Debug)]
pub(super) struct Guard {
    client: Child,
    /// The container ends when nobody holds this any more.
    connection: Option<OwnedFd>,
    out: PathBuf,
    way: RefCell<Way>,
}

#[derive(Debug)]
enum Way {
    Closed,
    Ready(Listening),
    Open { _relay: Relay },
}

/// Starts the container and returns when the program listens.
pub(super) fn start(plan: &ContainerPlan) -> Result<Option<Guard>, ContainerError> {
    let Some(proxy) = &plan.proxy else { return Ok(None) };
    let door = Door::make(&proxy.directory)?.expecting(&plan.init)?;
    let words = os::memory_file("words").map_err(ContainerError::Host)?;
    let heard = File::from(words.try_clone().map_err(|_| ContainerError::Host(Errno::MFILE))?);
    let argv = proxy.argv.iter().map(|arg| arg.value.as_str());
    let client = engine_of(plan)?
        .args(argv)
        .start_apart(Stdio::null(), Stdio::from(words))
        .map_err(ContainerError::Call)?;
    let out = proxy.directory.join(OUT);
    let mut guard = Guard { client, connection: None, out, way: RefCell::new(Way::Closed) };
    let end = Instant::now() + PATIENCE;
    let client = &mut guard.client;
    guard.connection = door.wait(|| matches!(client.try_wait(), Ok(None)) && Instant::now() < end)?;
    if guard.listens(end) {
        return Ok(Some(guard));
    }
    let late = Instant::now() >= end;
    drop(guard);
    let said = last_words(heard);
    let when = if late { format!(" within {} seconds", PATIENCE.as_secs()) } else { String::new() };
    let said = format!("it does not listen at port {PROXY_PORT}{when}: {said}");
    Err(ContainerError::Proxy { command: proxy.command.clone(), said })
}

impl Guard {
    /// Waits for the word that the program listens.
    fn listens(&self, end: Instant) -> bool {
        let Some(connection) = &self.connection else { return false };
        while Instant::now() < end {
            let mut fds = [PollFd::new(connection, PollFlags::IN)];
            match poll(&mut fds, Some(&TICK)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => {
                    let mut word = [0_u8];
                    return rustix::io::read(connection, &mut word[..]) == Ok(1) && word[0] == READY;
                }
                Err(_) => return false,
            }
        }
        false
    }

    /// Takes over whoever connects to the port inside. They wait until something is carried. The proxy reads what
    /// hostile code sends: should it be taken over, a link that it leaves is not followed.
    pub(super) fn take(&mut self, port: OwnedFd) {
        *self.way.borrow_mut() = Way::Ready(Listening::adopted(port, Far::Foreign(self.out.clone())));
    }

    /// Begins to carry, once: the command runs. Where no thread can be started nobody gets out.
    pub(super) fn carry(&self) {
        let mut way = self.way.borrow_mut();
        *way = match std::mem::replace(&mut *way, Way::Closed) {
            Way::Ready(listening) => {
                listening.start().map_or(Way::Closed, |relay| Way::Open { _relay: relay })
            }
            other => other,
        };
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.connection.take());
        let end = Instant::now() + PATIENCE_AT_THE_END;
        while matches!(self.client.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _already_ended = self.client.kill();
        let _already_taken = self.client.wait();
    }
}
