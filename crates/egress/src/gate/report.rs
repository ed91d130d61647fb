//! Events on their way out. What the other end has not read waits in memory, up to a limit, and while anything waits no new
//! connection is accepted.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::net::UnixStream;

use crate::event::GateEvent;

use super::together::first;

/// Enough for the ends of all connections that can be open.
const MOST_WAITING: usize = 256 * 1024;
const TICK: Duration = Duration::from_millis(100);

pub(super) struct Reports {
    stream: UnixStream,
    waiting: RefCell<Vec<u8>>,
    refused: Cell<u64>,
    unanswered: Cell<u64>,
}

impl Reports {
    pub(super) fn new(stream: OwnedFd) -> io::Result<Self> {
        let stream = std::os::unix::net::UnixStream::from(stream);
        stream.set_nonblocking(true)?;
        let (refused, unanswered) = (Cell::new(0), Cell::new(0));
        Ok(Self { stream: UnixStream::from_std(stream)?, waiting: RefCell::default(), refused, unanswered })
    }

    /// Whether everything so far has arrived: only then may something new begin.
    pub(super) fn are_current(&self) -> bool {
        self.flush();
        self.waiting.borrow().is_empty()
    }

    pub(super) fn send(&self, event: &GateEvent) {
        let line = event.to_line();
        {
            let mut waiting = self.waiting.borrow_mut();
            // A whole line or none, so that what arrives is always readable.
            if waiting.len() + line.len() <= MOST_WAITING {
                waiting.extend(line);
            }
        }
        self.flush();
    }

    /// A connection that was refused without a look.
    pub(super) fn count_refused(&self) {
        self.refused.set(self.refused.get() + 1);
    }

    /// A question without an answer.
    pub(super) fn count_unanswered(&self) {
        self.unanswered.set(self.unanswered.get() + 1);
    }

    fn flush(&self) {
        let mut waiting = self.waiting.borrow_mut();
        while !waiting.is_empty() {
            match self.stream.try_write(&waiting) {
                Ok(written) => drop(waiting.drain(..written)),
                Err(_) => return,
            }
        }
    }

    /// Sends what waits and what was counted, until the other end is closed.
    pub(super) async fn until_closed(&self) {
        loop {
            let tick = async {
                tokio::time::sleep(TICK).await;
                false
            };
            if first(self.is_closed(), tick).await {
                return;
            }
            self.send_counts();
            self.flush();
        }
    }

    fn send_counts(&self) {
        let (connections, questions) = (self.refused.get(), self.unanswered.get());
        if connections + questions > 0 && self.are_current() {
            self.refused.set(0);
            self.unanswered.set(0);
            self.send(&GateEvent::Refused { connections, questions });
        }
    }

    /// Nothing is expected from the other end but its end.
    async fn is_closed(&self) -> bool {
        let mut nothing = [0; 64];
        loop {
            if self.stream.readable().await.is_err() {
                return true;
            }
            match self.stream.try_read(&mut nothing) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return true,
            }
        }
    }
}
