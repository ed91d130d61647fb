//! Bytes from one end to the other. All connections share one buffer: memory of its own has only what a slow peer left over.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::time::Duration;

use rustix::net::Shutdown;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::together::both_or_error;

/// What is read at once, and so the most that waits for a slow peer in each direction.
const PIECE: usize = 32 * 1024;

const MOST_STUCK: Duration = Duration::from_mins(5);

pub(super) struct Scratch(RefCell<Box<[u8]>>);

impl Default for Scratch {
    fn default() -> Self {
        Self(RefCell::new(vec![0; PIECE].into()))
    }
}

/// Bytes that passed: from inside, and from outside.
#[derive(Default)]
pub(super) struct Passed {
    pub(super) sent: Cell<u64>,
    pub(super) received: Cell<u64>,
}

impl Scratch {
    /// Carries both directions until both have ended or one fails.
    pub(super) async fn both_ways(
        &self,
        client: &TcpStream,
        server: &TcpStream,
        passed: &Passed,
    ) -> io::Result<()> {
        let out = self.one_way(client, server, &passed.sent);
        let back = self.one_way(server, client, &passed.received);
        both_or_error(out, back).await
    }

    /// Carries one direction to its end, and tells the other side. An end that accepts nothing more ends this direction
    /// alone: what it said last may still be on its way back. An end that cannot be read is an error for both.
    pub(super) async fn one_way(
        &self,
        from: &TcpStream,
        to: &TcpStream,
        count: &Cell<u64>,
    ) -> io::Result<()> {
        loop {
            from.readable().await?;
            let Some((read, left)) = self.step(from, to)? else { continue };
            if read == 0 {
                // If the other side is gone already there is nobody to tell.
                rustix::net::shutdown(to, Shutdown::Write).ok();
                return Ok(());
            }
            count.set(count.get() + read as u64);
            match write(to, &left).await {
                Ok(()) => {}
                // Neither gone nor alive: nothing else would end this.
                Err(error) if error.kind() == ErrorKind::TimedOut => return Err(error),
                Err(_) => return Ok(()),
            }
        }
    }

    /// Reads once and writes what the other side takes at once. `None` if there was nothing to read.
    fn step(&self, from: &TcpStream, to: &TcpStream) -> io::Result<Option<(usize, Vec<u8>)>> {
        let mut scratch = self.0.borrow_mut();
        let read = match from.try_read(&mut scratch) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        // An error comes again with what is left.
        let written = to.try_write(&scratch[..read]).unwrap_or(0);
        Ok(Some((read, scratch[written..read].to_vec())))
    }
}

/// Writes everything. A peer that accepts nothing for minutes would hold its connection for ever, also after the other end is
/// gone: that shows only once it is read again.
pub(super) async fn write(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        timeout(MOST_STUCK, to.writable()).await??;
        match to.try_write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
