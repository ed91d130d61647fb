//! A row of the report as data: which programs do the same work, and what we promised about their times.
//! Building a row measures nothing, measuring it decides nothing.

use super::process::Invocation;

/// The name our own contender has in every row.
pub const OURS: &str = "sandtable";

/// Programs that do the same work, and the promises about it.
#[derive(Debug)]
pub struct Row {
    /// `kind/caller[/files]`.
    pub id: String,
    pub title: String,
    /// What a reader must know to read the numbers.
    pub note: Option<&'static str>,
    /// Files in the workspace.
    pub files: Option<u32>,
    pub entries: Vec<Entry>,
    pub targets: Vec<Target>,
}

/// One competitor.
#[derive(Debug)]
pub struct Entry {
    pub name: &'static str,
    /// Or the reason why it cannot take part.
    pub contender: Result<Contender, String>,
}

/// How a competitor is measured.
#[derive(Debug)]
pub struct Contender {
    /// Run once before, in this order; not timed.
    pub setup: Vec<Invocation>,
    /// Kept running while the row is measured.
    pub background: Option<Invocation>,
    /// What is timed.
    pub command: Invocation,
    /// How many of them at once.
    pub copies: usize,
    /// Run after each sample; not timed.
    pub after: Option<Invocation>,
    /// Run once at the end, whatever happened.
    pub teardown: Vec<Invocation>,
    /// Takes part in every n-th round.
    pub every: usize,
}

impl Contender {
    pub fn new(command: Invocation) -> Self {
        Self {
            setup: Vec::new(),
            background: None,
            command,
            copies: 1,
            after: None,
            teardown: Vec::new(),
            every: 1,
        }
    }
}

/// A promise about our median.
#[derive(Clone, Debug)]
pub enum Target {
    /// At most so many times the peer's.
    Ratio { peer: &'static str, at_most: f64 },
    /// So many times faster than the peer.
    Faster { peer: &'static str, at_least: f64 },
    /// An absolute time.
    Within { milliseconds: f64 },
    /// At most so much more than the peer, which does what nobody can do without.
    Over { floor: &'static str, milliseconds: f64 },
    /// What the load adds to us, against what it adds to the peer.
    Added { unloaded: &'static str, peer: &'static str, peer_unloaded: &'static str, at_most: f64 },
}
