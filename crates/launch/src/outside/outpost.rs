//! The first process of a container beside a sandbox: it runs one program, which listens at a port, and
//! forwards to it every connection that comes through a Unix socket. So the sandbox needs no network to reach the program,
//! and the program's own is not the sandbox's.
//!
//! It connects to its supervisor once, says one byte when the program listens, and ends when the supervisor or
//! the program does. Being PID 1, it takes everything in the container along.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};
use sandtable_protocol::constants::READY;
use sandtable_protocol::op::Owner;

use crate::handles::Far;
use crate::outside::relay::Listening;
use crate::sys::process::exit_now;
use crate::transport::connect;

/// How often the program is looked at.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How long a try to reach the program may take.
const TRY: Duration = Duration::from_millis(200);
/// How much of what the program says is remembered.
const TAIL: usize = 2048;

/// What to run, and where it is reached.
#[derive(Clone, Copy, Debug)]
pub struct Post<'a> {
    /// The supervisor's socket.
    pub door: &'a Path,
    /// The socket to make.
    pub at: &'a Path,
    /// Where the program listens.
    pub port: u16,
    pub command: &'a [OsString],
}

impl<'a> Post<'a> {
    /// Door, socket, port, program and its arguments.
    pub fn of(words: &'a [OsString]) -> Option<Self> {
        let [door, at, port, command @ ..] = words else { return None };
        let port = port.to_str()?.parse().ok()?;
        (!command.is_empty()).then(|| Self { door: Path::new(door), at: Path::new(at), port, command })
    }
}

/// Is the first process until somebody ends. Whatever it says is for the supervisor's error message.
pub fn serve(post: &Post<'_>) -> ! {
    let words = match run(post) {
        Ok(words) => words,
        Err(errno) => format!("no supervisor at `{}`: {errno}", post.door.display()),
    };
    let _unheard = rustix::io::write(rustix::stdio::stderr(), format!("{words}\n").as_bytes());
    exit_now(125)
}

/// Returns why it is over.
fn run(post: &Post<'_>) -> Result<String, Errno> {
    let supervisor = connect(post.door)?;
    let program = SocketAddr::from(([127, 0, 0, 1], post.port));
    let relay = Listening::toward(post.at, Owner::Workload, Far::Tcp(program)).and_then(Listening::start);
    let _relay = match relay {
        Ok(relay) => relay,
        Err(error) => return Ok(format!("cannot listen at `{}`: {error}", post.at.display())),
    };
    let name = post.command[0].to_string_lossy().into_owned();
    #[expect(clippy::disallowed_methods, reason = "the program is the user's own, in a container")]
    let mut command = Command::new(&post.command[0]);
    let started = io::pipe().and_then(|(heard, words)| {
        command.args(&post.command[1..]).stdin(Stdio::null()).stdout(words.try_clone()?).stderr(words);
        // Before the program: there may be no room for another thread.
        let tail = listen(heard)?;
        let child = command.spawn()?;
        // It holds the pipe open.
        drop(command);
        Ok((child, tail))
    });
    let (mut child, tail) = match started {
        Ok(started) => started,
        Err(error) => return Ok(format!("cannot run `{name}`: {error}")),
    };
    let mut said = false;
    loop {
        if let Some(status) = ended(&mut child) {
            return Ok(format!("{}`{name}` ended with {status}", last_words(&tail)));
        }
        if is_gone(&supervisor) {
            return Ok(format!("{}`{name}` was given up", last_words(&tail)));
        }
        if !said && TcpStream::connect_timeout(&program, TRY).is_ok() {
            said = true;
            rustix::io::write(&supervisor, &[READY])?;
        }
    }
}

/// Hears everything that the program says, and remembers the end of it.
fn listen(mut heard: io::PipeReader) -> io::Result<Arc<Mutex<Vec<u8>>>> {
    let tail = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&tail);
    std::thread::Builder::new().spawn(move || {
        let mut bytes = [0_u8; 4096];
        while let Ok(length @ 1..) = heard.read(&mut bytes) {
            let Ok(mut kept) = kept.lock() else { return };
            kept.extend_from_slice(&bytes[..length]);
            let excess = kept.len().saturating_sub(TAIL);
            kept.drain(..excess);
        }
    })?;
    Ok(tail)
}

/// The last line that the program said.
fn last_words(tail: &Mutex<Vec<u8>>) -> String {
    let text = tail.lock().map(|tail| String::from_utf8_lossy(&tail).into_owned()).unwrap_or_default();
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.map(|line| format!("{}\n", line.trim())).unwrap_or_default()
}

/// How the program ended, if it has. Whatever else ended in the container is taken away.
fn ended(child: &mut Child) -> Option<String> {
    if let Ok(Some(status)) = child.try_wait() {
        return Some(status.to_string());
    }
    let mut reaped = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if u32::try_from(pid.as_raw_nonzero().get()) == Ok(child.id()) {
            reaped = Some(status.exit_status().map_or("a signal".to_owned(), |code| format!("code {code}")));
        }
    }
    reaped
}

/// Waits a moment, and says whether the supervisor has closed its end.
fn is_gone(supervisor: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(supervisor, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&TICK)), Ok(1..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_has_a_place_a_port_and_a_program() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let full = words("/door /at 8877 proxy -v");
        let post = Post::of(&full).expect("all there");
        assert_eq!((post.port, post.command), (8877, &full[3..]));
        for bad in ["/door /at 8877", "/door /at port proxy", "/door"] {
            assert!(Post::of(&words(bad)).is_none(), "{bad}");
        }
    }
}
