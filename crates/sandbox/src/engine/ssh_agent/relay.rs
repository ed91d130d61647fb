//! The relay for a workload that the agent would not answer: it answers nobody but its own user and root. We, who
//! may speak to it, listen on the workload's behalf.

use std::cell::RefCell;
use std::path::PathBuf;

use sandtable_launch::outside::relay::{Listening, Relay};
use sandtable_protocol::op;

/// The relay could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at `{}` for the ssh-agent", at.display())]
pub struct RelayError {
    at: PathBuf,
    source: std::io::Error,
}

/// A relay that is ready, works, or has ended. Dropping it removes the socket.
#[derive(Debug)]
pub struct Guard(RefCell<State>);

#[derive(Debug)]
enum State {
    Ready(Listening),
    Works { _relay: Relay },
    Ended,
}

impl Guard {
    /// Makes the socket that is mounted inside.
    pub(in crate::engine) fn prepare(relay: &op::Relay) -> Result<Self, RelayError> {
        let listening = Listening::new(relay);
        let listening = listening.map_err(|source| RelayError { at: relay.at.clone(), source })?;
        Ok(Self(RefCell::new(State::Ready(listening))))
    }

    /// Begins to carry, once: no thread may be there before the command runs. Where none can be started the
    /// socket refuses, which its clients will say.
    pub(in crate::engine) fn start(&self) {
        let mut state = self.0.borrow_mut();
        *state = match std::mem::replace(&mut *state, State::Ended) {
            State::Ready(listening) => {
                listening.start().map_or(State::Ended, |relay| State::Works { _relay: relay })
            }
            other => other,
        };
    }
}
