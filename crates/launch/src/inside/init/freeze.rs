//! Holding everything in the sandbox still while somebody reads its layer: by a control group that is frozen
//! where there is one, else by signals. PID 1 itself goes on serving.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use sandtable_protocol::wire::FrozenBy;

use super::cold::Cold;
use super::list::processes;
use super::stop::Stops;

/// After that whatever does not stop, like a process that waits for a disk, is said to move.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked who stopped, and how often in the first moments: most stop at once, and somebody waits.
const TICK: Duration = Duration::from_millis(1);
const FIRST_TICK: Duration = Duration::from_micros(100);
const FIRST: Duration = Duration::from_millis(5);

/// A freeze that is under way or holds.
#[derive(Debug)]
pub(super) struct Freeze {
    since: Instant,
    way: Way,
    /// What it came to, once it did.
    still: Option<Still>,
}

#[derive(Debug)]
enum Way {
    Group(Cold),
    Signals(Stops),
}

/// How still it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Still {
    pub(super) by: FrozenBy,
    /// Whether nothing at all moves.
    pub(super) complete: bool,
}

impl Freeze {
    /// Begins. Without the files of a group, or where it does not take us, there are always signals.
    pub(super) fn new(group: Vec<OwnedFd>) -> Self {
        let way = Cold::new(group).map_or_else(|| Way::Signals(Stops::default()), Way::Group);
        Self { since: Instant::now(), way, still: None }
    }

    /// How long to wait before going on; nothing if it has come to something.
    pub(super) fn tick(&self) -> Option<Duration> {
        let tick = if self.since.elapsed() < FIRST { FIRST_TICK } else { TICK };
        self.still.is_none().then_some(tick)
    }

    /// Goes on until it has come to something.
    pub(super) fn go_on(&mut self) -> Option<Still> {
        if self.still.is_none() {
            let quiet = self.push();
            if quiet || self.since.elapsed() > PATIENCE {
                let by = match self.way {
                    Way::Group(_) => FrozenBy::ControlGroup,
                    Way::Signals(_) => FrozenBy::Signals,
                };
                self.still = Some(Still { by, complete: quiet });
            }
        }
        self.still
    }

    /// Whether something moves that was still; it is stopped again.
    pub(super) fn has_moved(&mut self) -> bool {
        self.still.is_some() && !self.push()
    }

    pub(super) fn thaw(self) {
        match self.way {
            Way::Group(cold) => cold.thaw(),
            Way::Signals(stops) => stops.undo(),
        }
    }

    /// Stops what moves, as far as that is possible at once. True if nothing did.
    fn push(&mut self) -> bool {
        let processes = processes();
        let refused = match &mut self.way {
            Way::Signals(stops) => return stops.push(&processes, self.since.elapsed()),
            Way::Group(cold) => match cold.take(&processes) {
                Ok(quiet) => return quiet,
                Err(_) => std::mem::replace(&mut self.way, Way::Signals(Stops::default())),
            },
        };
        if let Way::Group(cold) = refused {
            cold.thaw();
        }
        false
    }
}
