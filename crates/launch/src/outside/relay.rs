//! Carries bytes between the clients of one socket and another socket, for a sandbox whose processes may reach the
//! first but not the second: to an ssh-agent they would be strangers, and a proxy lies in another network.
//!
//! Nothing is read into the bytes, and descriptors sent along are dropped by the kernel. One thread serves
//! everybody, with a fixed number of clients and one small buffer per direction, so that whoever is inside can
//! neither use up our memory nor our descriptors. Further clients wait to be accepted.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, connect, listen, recv, send, shutdown, socket_with,
};
use rustix::pipe::{PipeFlags, pipe_with};
use sandtable_protocol::op::{self, Owner};

use crate::handles::Far;

/// Whether the socket at `path` accepts a connection, as an exit code.
pub fn reach_main(path: Option<&Path>) -> u8 {
    u8::from(path.is_none_or(|path| reach(path).is_err()))
}

/// How many clients are served at once.
const MOST: usize = 64;
/// How much is under way in one direction of one connection.
const BUFFER: usize = 16 << 10;

/// A socket that clients can connect to already, though nobody answers yet.
#[derive(Debug)]
pub struct Listening {
    listener: OwnedFd,
    /// The socket's file, if it has one.
    at: Option<PathBuf>,
    to: Far,
}

/// A relay at work. Dropping it ends every connection and removes the socket.
#[derive(Debug)]
pub struct Relay {
    /// Closed to end the thread.
    held: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    at: Option<PathBuf>,
}

impl Listening {
    /// Makes the socket of `relay` for clients that are to reach the other one.
    pub fn new(relay: &op::Relay) -> io::Result<Self> {
        Self::toward(&relay.at, relay.owner, Far::Unix(relay.to.clone()))
    }

    /// Makes a socket at `at` whose clients are to reach `to`.
    pub fn toward(at: &Path, owner: Owner, to: Far) -> io::Result<Self> {
        let mode = if owner == Owner::Everybody { 0o666 } else { 0o600 };
        match fs_err::remove_file(at) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let (parent, name) = (at.parent().unwrap_or(Path::new("/")), at.file_name().unwrap_or_default());
        // The path itself may be longer than an address can be.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, parent, flags, Mode::empty())?;
        let place = Path::new("/proc/self/fd").join(directory.as_fd().as_raw_fd().to_string()).join(name);
        let listener = stream_socket()?;
        bind(&listener, &SocketAddrUnix::new(&place)?)?;
        fs_err::set_permissions(at, std::fs::Permissions::from_mode(mode))?;
        listen(&listener, 64)?;
        Ok(Self { listener, at: Some(at.to_owned()), to })
    }

    /// Takes over a socket that listens already, and does not wait when it is asked for a client.
    pub fn adopted(listener: OwnedFd, to: Far) -> Self {
        Self { listener, at: None, to }
    }

    /// Begins to serve.
    pub fn start(self) -> io::Result<Relay> {
        let (stop, held) = pipe_with(PipeFlags::CLOEXEC)?;
        let Self { listener, at, to } = self;
        let mut work = Work { listener, stop, to, pairs: Vec::new() };
        let thread = std::thread::Builder::new()
            .name("relay".to_owned())
            .spawn(move || while work.turn().is_ok_and(|turn| turn == Turn::Next) {})?;
        Ok(Relay { held: Some(held), thread: Some(thread), at })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.held.take());
        let _ended = self.thread.take().map(JoinHandle::join);
        let _gone = self.at.as_ref().map(fs_err::remove_file);
    }
}

struct Work {
    listener: OwnedFd,
    stop: OwnedFd,
    to: Far,
    pairs: Vec<Pair>,
}

#[derive(PartialEq, Eq)]
enum Turn {
    Next,
    Stop,
}

/// A client and its connection to the other socket.
struct Pair {
    near: OwnedFd,
    far: OwnedFd,
    out: Stream,
    back: Stream,
}

/// One direction.
#[derive(Default)]
struct Stream {
    waiting: Vec<u8>,
    /// Whether the sender has said that nothing more comes, and the receiver was told so.
    ended: bool,
    told: bool,
}

impl Work {
    fn turn(&mut self) -> rustix::io::Result<Turn> {
        let mut fds = vec![PollFd::new(&self.stop, PollFlags::IN)];
        if self.pairs.len() < MOST {
            fds.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        let wishes = self.pairs.iter().flat_map(|pair| {
            let (near, far) = pair.wishes();
            [(&pair.near, near), (&pair.far, far)]
        });
        // A connection of which nothing is wanted would still report its end, over and over.
        fds.extend(wishes.filter(|(_, wish)| !wish.is_empty()).map(|(fd, wish)| PollFd::new(fd, wish)));
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Turn::Next),
            Err(errno) => return Err(errno),
        }
        if !fds[0].revents().is_empty() {
            return Ok(Turn::Stop);
        }
        // Every connection is looked at: what is not ready says so.
        self.pairs.retain_mut(|pair| pair.carry() == Fate::Stays);
        self.accept();
        Ok(Turn::Next)
    }

    fn accept(&mut self) {
        while self.pairs.len() < MOST {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let Ok(near) = accept_with(&self.listener, flags) else { return };
            // A client that cannot be connected sees its connection end.
            let Ok(far) = self.to.connection() else { continue };
            self.pairs.push(Pair { near, far, out: Stream::default(), back: Stream::default() });
        }
    }
}

#[derive(PartialEq, Eq)]
enum Fate {
    Stays,
    Goes,
}

impl Pair {
    fn wishes(&self) -> (PollFlags, PollFlags) {
        let wish = |from: &Stream, to: &Stream| {
            let read =
                if from.waiting.is_empty() && !from.ended { PollFlags::IN } else { PollFlags::empty() };
            let write = if to.waiting.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            read | write
        };
        (wish(&self.out, &self.back), wish(&self.back, &self.out))
    }

    fn carry(&mut self) -> Fate {
        let done =
            self.out.carry(&self.near, &self.far).and_then(|()| self.back.carry(&self.far, &self.near));
        match done {
            Ok(()) if !(self.out.told && self.back.told) => Fate::Stays,
            _ => Fate::Goes,
        }
    }
}

impl Stream {
    /// Moves what can be moved without waiting.
    fn carry(&mut self, from: &OwnedFd, to: &OwnedFd) -> rustix::io::Result<()> {
        if self.waiting.is_empty() && !self.ended {
            let mut bytes = [0_u8; BUFFER];
            match unhurried(recv(from, &mut bytes[..], RecvFlags::empty()).map(|(_, length)| length))? {
                Some(0) => self.ended = true,
                Some(length) => self.waiting.extend_from_slice(&bytes[..length]),
                None => {}
            }
        }
        if !self.waiting.is_empty()
            && let Some(sent) = unhurried(send(to, &self.waiting, SendFlags::NOSIGNAL))?
        {
            self.waiting.drain(..sent);
        }
        if self.ended && self.waiting.is_empty() && !self.told {
            self.told = true;
            // Who has gone altogether need not be told.
            let _gone = shutdown(to, Shutdown::Write);
        }
        Ok(())
    }
}

/// Nothing, where one would have to wait.
fn unhurried(result: rustix::io::Result<usize>) -> rustix::io::Result<Option<usize>> {
    match result {
        Ok(length) => Ok(Some(length)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

impl Far {
    /// A connection, which may not be complete yet: then nothing can be carried for the moment.
    fn connection(&self) -> rustix::io::Result<OwnedFd> {
        match self {
            Self::Unix(path) => reach(path),
            Self::Foreign(path) => open_and_connect(path, OFlags::NOFOLLOW),
            Self::Tcp(address) => {
                let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
                let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
                let socket = socket_with(family, SocketType::STREAM, flags, None)?;
                match connect(&socket, address) {
                    Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
                    Err(errno) => Err(errno),
                }
            }
        }
    }
}

/// A connection to the socket at `path`, made without waiting.
fn reach(path: &Path) -> rustix::io::Result<OwnedFd> {
    open_and_connect(path, OFlags::empty())
}

fn open_and_connect(path: &Path, how: OFlags) -> rustix::io::Result<OwnedFd> {
    let handle = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC | how, Mode::empty())?;
    let socket = stream_socket()?;
    connect(&socket, &SocketAddrUnix::new(format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd()))?)?;
    Ok(socket)
}

fn stream_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    /// A server that answers everything a client says, when it has said all of it, with twice the same.
    fn twice(listener: UnixListener, clients: usize) -> JoinHandle<()> {
        std::thread::spawn(move || {
            for stream in listener.incoming().take(clients) {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut said = Vec::new();
                    stream.read_to_end(&mut said).unwrap();
                    said.extend_from_within(..);
                    stream.write_all(&said).unwrap();
                });
            }
        })
    }

    fn listening(at: &Path, to: &Path, owner: Owner) -> Listening {
        Listening::new(&op::Relay { at: at.to_owned(), to: to.to_owned(), owner }).unwrap()
    }

    fn ask(at: &Path, words: &[u8]) -> Vec<u8> {
        let mut stream = UnixStream::connect(at).unwrap();
        let (mut half, words) = (stream.try_clone().unwrap(), words.to_owned());
        let writer = std::thread::spawn(move || {
            half.write_all(&words).unwrap();
            half.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        writer.join().unwrap();
        answer
    }

    #[test]
    fn every_byte_arrives_in_both_directions_whatever_the_size() {
        let dir = tempfile::tempdir().unwrap();
        let (at, to) = (dir.path().join("near"), dir.path().join("far"));
        let server = twice(UnixListener::bind(&to).unwrap(), 3);
        let relay = listening(&at, &to, Owner::Workload).start().unwrap();
        for size in [0, 1, 1 << 20] {
            let words: Vec<u8> = (0..=250).cycle().take(size).collect();
            let answer = ask(&at, &words);
            assert!(answer == words.repeat(2), "{size} bytes became {}", answer.len());
        }
        server.join().unwrap();
        drop(relay);
        assert!(!at.exists());
    }

    #[test]
    fn a_link_in_place_of_a_foreign_socket_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let (at, to, link) = (dir.path().join("near"), dir.path().join("far"), dir.path().join("link"));
        let server = twice(UnixListener::bind(&to).unwrap(), 1);
        std::os::unix::fs::symlink(&to, &link).unwrap();
        let toward =
            |far: &Path| Listening::toward(&at, Owner::Workload, Far::Foreign(far.to_owned())).unwrap();
        let relay = toward(&link).start().unwrap();
        let mut stream = UnixStream::connect(&at).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
        drop(relay);
        let _relay = toward(&to).start().unwrap();
        assert_eq!(ask(&at, b"x"), b"xx");
        server.join().unwrap();
    }

    #[test]
    fn a_port_is_reached_and_one_without_a_listener_ends_the_connection() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("near");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let relay = Listening::toward(&at, Owner::Workload, Far::Tcp(address)).unwrap().start().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut said = Vec::new();
            stream.read_to_end(&mut said).unwrap();
            stream.write_all(&said).unwrap();
        });
        assert_eq!(ask(&at, b"hello"), b"hello");
        server.join().unwrap();
        let mut stream = UnixStream::connect(&at).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
        drop(relay);
    }

    #[test]
    fn clients_beyond_the_number_wait_for_their_turn() {
        let dir = tempfile::tempdir().unwrap();
        let (at, to) = (dir.path().join("near"), dir.path().join("far"));
        let server = twice(UnixListener::bind(&to).unwrap(), MOST + 1);
        let _relay = listening(&at, &to, Owner::Workload).start().unwrap();
        let idle: Vec<UnixStream> = (0..MOST).map(|_| UnixStream::connect(&at).unwrap()).collect();
        let late = {
            let at = at.clone();
            std::thread::spawn(move || ask(&at, b"x"))
        };
        drop(idle);
        assert_eq!(late.join().unwrap(), b"xx");
        server.join().unwrap();
    }

    #[test]
    fn nobody_at_the_other_end_is_the_end_of_the_connection() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("near");
        let _relay = listening(&at, &dir.path().join("none"), Owner::Workload).start().unwrap();
        let mut stream = UnixStream::connect(&at).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    }

    #[test]
    fn only_who_is_meant_may_connect_and_a_stale_socket_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("near");
        drop(UnixListener::bind(&at).unwrap());
        for (owner, mode) in [(Owner::Workload, 0o600), (Owner::Everybody, 0o666)] {
            let _listening = listening(&at, Path::new("/none"), owner);
            assert_eq!(fs_err::metadata(&at).unwrap().permissions().mode() & 0o777, mode);
        }
    }
}
