//! Progress and events of long operations, and their cancellation.
//!
//! The library prints nothing: user interfaces show the events that they receive here.

use std::fmt;

use super::id::SandboxName;

/// An event. Later versions add kinds; an observer ignores the kinds that it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Progress of a copy of the source. Frequent, from any thread.
    Copying { files: u64, bytes: u64 },
    /// The copy is complete or cancelled.
    Copied,
    /// Progress of the recording of a state. Frequent, from any thread.
    Recording { entries: u64, bytes: u64 },
    /// The recording is complete or cancelled.
    Recorded,
    /// A line of output of a container engine that fetches or builds an image.
    Pulling { image: &'a str, line: &'a str },
    /// The command runs in this sandbox.
    Started(&'a SandboxName),
    /// The number of paths that changed in the source since the sandbox was made. Inside they are unchanged.
    Pinned { paths: usize },
    /// The source was removed or replaced. Inside is its recorded state.
    SourceReplaced,
    /// The git directory of the source was replaced. Its objects are not visible inside.
    ObjectsReplaced,
    /// The source could not be compared with the base: its changes are visible inside.
    NotCompared { why: &'a str },
    /// The command has ended. The sandbox waits for this number of other commands.
    Waiting { others: usize },
    /// Progress of the download of a file for a tool. Frequent, from any thread.
    Fetching { tool: &'a str, bytes: u64, size: Option<u64> },
    /// A file for a tool is complete and checked. From any thread.
    Fetched { file: &'a str, size: Option<u64>, came: Came },
    /// Progress of a tool.
    Tool { tool: ToolPlace<'a>, step: ToolStep },
}

/// The origin of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It was in the cache.
    Cached,
    Fetched,
}

/// A tool and its place among all tools that an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolPlace<'a> {
    /// Name and version.
    pub title: &'a str,
    /// From one, dependencies first.
    pub number: usize,
    pub of: usize,
}

/// A step of obtaining a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolStep {
    /// It exists already.
    Kept,
    /// Another process makes it; this one waits.
    Awaited,
    /// A step of its plan begins; steps count from one.
    Begun { number: usize, of: usize, action: &'static str },
    /// It is complete and was tested.
    Made,
}

/// Receives events and can cancel the operation. `()` ignores all events and never cancels.
pub trait Observer: fmt::Debug + Sync {
    fn event(&self, _event: &Event<'_>) {}

    /// Whether to cancel the operation. Called often, from any thread. Once `true`, it must stay `true`. A cancelled operation
    /// removes its incomplete results. A running command is not affected.
    fn cancelled(&self) -> bool {
        false
    }
}

impl Observer for () {}
