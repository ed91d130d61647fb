//! What a caller wants to hear while its command runs. The library prints nothing itself.

use std::fmt;

use crate::model::id::SandboxName;

/// How far a copy of the source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyNews {
    Going {
        files: u64,
        bytes: u64,
    },
    /// There will be no more news.
    Over,
}

/// Hears of what happens during a run.
pub trait Watcher: fmt::Debug + Sync {
    /// The source is being copied. Called from any thread, and often.
    fn copying(&self, news: CopyNews);

    /// Whether nobody waits for the command any more: what is made for it is given up as long as it does not run.
    fn is_alone(&self) -> bool {
        false
    }

    /// An image is fetched; a line of what the engine says about it.
    fn fetching(&self, image: &str, line: &str);

    /// The command runs, in this sandbox.
    fn started(&self, name: &SandboxName);

    /// So many paths of the source have moved since the sandbox was made; inside they are as they were.
    fn pinned(&self, _paths: usize) {}

    /// The source is gone, or another directory by now; inside is its recorded state.
    fn source_replaced(&self) {}

    /// The source could not be compared with what the sandbox stands on: what moved there is seen inside.
    fn unsettled(&self, _why: &str) {}

    /// The command has ended, and the state of the source is still being recorded. Called often.
    fn recording(&self, _entries: u64, _bytes: u64) {}

    /// It is recorded, or will not be.
    fn recorded(&self) {}

    /// The command has ended, and this many commands of others still run in its sandbox. They are waited for.
    fn waiting(&self, others: usize);
}

/// Hears nothing.
#[derive(Clone, Copy, Debug)]
pub struct Deaf;

impl Watcher for Deaf {
    fn copying(&self, _: CopyNews) {}

    fn fetching(&self, _: &str, _: &str) {}

    fn started(&self, _: &SandboxName) {}

    fn waiting(&self, _: usize) {}
}
