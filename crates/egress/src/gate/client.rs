//! One connection from inside, with what of it has been read and not used.

use std::io::{self, ErrorKind};
use std::time::Duration;

use rustix::net::Shutdown;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// What a client may still send while its connection ends.
const LINGER: Duration = Duration::from_millis(500);
const MOST_LINGERING: usize = 1 << 20;
const PIECE: usize = 4096;

pub(super) struct Client {
    pub(super) stream: TcpStream,
    /// Read and not used.
    pub(super) buffer: Vec<u8>,
    /// Until it has said what it wants.
    pub(super) deadline: Instant,
}

/// Why a client did not say what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// It ended the connection.
    Gone,
    Timeout,
}

impl Client {
    pub(super) fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, buffer: Vec::new(), deadline: Instant::now() + patience }
    }

    /// Reads more, until the deadline.
    pub(super) async fn fill(&mut self) -> Result<(), Silence> {
        let read = timeout_at(self.deadline, more(&self.stream, &mut self.buffer)).await;
        match read {
            Ok(Ok(0) | Err(_)) => Err(Silence::Gone),
            Ok(Ok(_)) => Ok(()),
            Err(_) => Err(Silence::Timeout),
        }
    }

    /// The first byte, which stays in the buffer.
    pub(super) async fn first_byte(&mut self) -> Result<u8, Silence> {
        while self.buffer.is_empty() {
            self.fill().await?;
        }
        Ok(self.buffer[0])
    }

    /// Ends the connection after the client had a chance to read what was written last: closing while it still sends would
    /// throw that away.
    pub(super) async fn finish(self) {
        if rustix::net::shutdown(&self.stream, Shutdown::Write).is_err() {
            return;
        }
        let (mut rest, mut total) = (Vec::new(), 0);
        let drain = async {
            while let Ok(read @ 1..) = more(&self.stream, &mut rest).await {
                rest.clear();
                total += read;
                if total > MOST_LINGERING {
                    return;
                }
            }
        };
        tokio::time::timeout(LINGER, drain).await.ok();
    }

    /// Ends it at once, with a reset.
    pub(super) fn reset(self) {
        reset(&self.stream);
    }
}

/// Lets the kernel answer with a reset when the stream is closed.
pub(super) fn reset(stream: &TcpStream) {
    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO)).ok();
}

/// Appends what can be read; 0 at the end.
pub(super) async fn more(stream: &TcpStream, buffer: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        let start = buffer.len();
        buffer.resize(start + PIECE, 0);
        let read = stream.try_read(&mut buffer[start..]);
        buffer.truncate(start + read.as_ref().copied().unwrap_or(0));
        match read {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}
