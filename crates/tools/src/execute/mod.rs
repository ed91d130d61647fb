//! What the steps of a plan come down to: a few things that are done to files from outside, by handle, and commands that
//! run inside a sandbox. Inert data; [`build`](crate::build) carries it out.
//!
//! Nothing of a recipe runs outside. What is done from outside is code of ours that reads no instruction from what it
//! handles: putting a checked download in place, unpacking, replacing a text, writing a small file.

mod base;
mod build;
mod lower;
mod missing;
#[cfg(test)]
mod tests;

pub use self::base::base_commands;
pub use self::lower::{Lowering, verification};
pub use self::missing::missing_commands;
use super::plan::step::ArchiveFormat;
use super::plan::{FileName, InnerPath};
pub use sandtable_sandbox::session::one_shot::Command;

/// Grows whenever the same plan would become something else.
pub const VERSION: u32 = 2;
/// Where the work directory stands inside.
pub const WORK: &str = "/build";
/// What the executor itself puts into the work directory.
pub const OWN: &str = ".sandtable";
/// The home directory of a step: in memory, and gone with it.
pub const HOME: &str = "/home/builder";
/// A directory of this name at the top of a tool is a compiler's cache. Steps see it copy-on-write: what the compiler
/// adds is seen until the plan is done and by nobody else.
pub const COMPILER_CACHE: &str = "cache";

/// One thing to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Puts a checked download into the work directory.
    Put { file: FileName, to: InnerPath },
    /// Unpacks an archive by handle.
    Unpack(Unpacking),
    /// Writes a small file.
    Write { area: Area, path: InnerPath, text: String, mode: u32 },
    /// Replaces a text in a file of the work directory.
    Replace { file: InnerPath, find: String, replace: String },
    /// Copies what matches in a directory of the work directory to a directory of the output.
    Collect { from: InnerPath, patterns: Vec<String>, to: InnerPath },
    /// Refuses to go on if one of these is not in the output.
    Require { outputs: Vec<InnerPath> },
    /// Runs inside.
    Run(Command),
}

/// An archive to be unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacking {
    pub from: Packed,
    pub format: ArchiveFormat,
    pub area: Area,
    pub to: InnerPath,
    pub strip: u32,
}

/// Where an archive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packed {
    Work(InnerPath),
    Download(FileName),
}

/// Which of the two directories of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    Work,
    Output,
}
