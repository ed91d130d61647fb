//! What happens while something is done for a caller, and whether it shall go on.
//!
//! One trait for everything that takes its time: the library prints nothing, and what a surface shows of it, it learns here.

use std::fmt;

use super::id::SandboxName;

/// Something that happened. Kinds will be added: whoever observes passes over those that it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A source is being copied, and so much of it is there. Comes often, and from any thread.
    Copying { files: u64, bytes: u64 },
    /// The copy is complete or was given up.
    Copied,
    /// A state is being recorded, and so much of it was looked at. Comes often, and from any thread.
    Recording { entries: u64, bytes: u64 },
    /// It is recorded, or will not be.
    Recorded,
    /// A container engine fetches or builds an image, and printed this line.
    Pulling { image: &'a str, line: &'a str },
    /// The command runs, in this sandbox.
    Started(&'a SandboxName),
    /// So many paths of the source have changed since the sandbox was made; inside they are as they were.
    Pinned { paths: usize },
    /// The source is gone, or another directory by now; inside is its recorded state.
    SourceReplaced,
    /// The source could not be compared with the base: what changed there is seen inside.
    NotCompared { why: &'a str },
    /// The command has ended, and this many commands of others still run in its sandbox. They are waited for.
    Waiting { others: usize },
    /// A file for a tool is being fetched, and so much of it is there. Comes often, and from any thread.
    Fetching { tool: &'a str, bytes: u64, size: Option<u64> },
    /// A file for a tool is there, complete and checked. Comes from any thread.
    Fetched { file: &'a str, size: Option<u64>, came: Came },
    /// A tool is one step further.
    Tool { tool: ToolPlace<'a>, step: ToolStep },
}

/// Where a file came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It was there already.
    Cached,
    Fetched,
}

/// A tool among all that one call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolPlace<'a> {
    /// Name and version.
    pub title: &'a str,
    /// From one, dependencies first.
    pub number: usize,
    pub of: usize,
}

/// What became of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolStep {
    /// It was there.
    Kept,
    /// Another process makes it and is waited for.
    Awaited,
    /// A step of its plan begins; steps count from one.
    Begun { number: usize, of: usize, action: &'static str },
    /// It is complete and shown to work.
    Made,
}

/// Learns what happens, and says whether it shall go on. `()` learns nothing and lets everything go on.
pub trait Observer: fmt::Debug + Sync {
    fn event(&self, _event: &Event<'_>) {}

    /// Whether nobody wants the result any more. Asked often, from any thread; once it was `true` it stays so. What is under way
    /// is given up where nothing half-done is left, and what was made for it is removed. A command that runs is not ended
    /// by it.
    fn cancelled(&self) -> bool {
        false
    }
}

impl Observer for () {}
