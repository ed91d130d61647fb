//! What the tests of this crate share.

#![expect(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod git;

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, XattrFlags, mkdirat, mknodat, renameat, setxattr, unlinkat};
use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use sandtable_store::dir::{open_dir, open_named, stat_at};
use sandtable_store::layer::{self, LayerOptions, LayerOutcome, Lower};

/// Makes a chain of directories of one name below `root`, with an empty file `leaf` at its end.
pub(crate) fn make_chain(root: &Path, name: &[u8], depth: usize) {
    let mut at = open_named(root).unwrap();
    for _ in 0..depth {
        mkdirat(&at, name, Mode::RWXU).unwrap();
        at = open_dir(at.as_fd(), name).unwrap();
    }
    mknodat(&at, "leaf", FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Takes such a chain away from its top: removing it recursively would need a descriptor for each level.
pub(crate) fn remove_chain(root: &Path, name: &[u8]) {
    let top = open_named(root).unwrap();
    loop {
        let dir = open_dir(top.as_fd(), name).unwrap();
        if stat_at(dir.as_fd(), name).is_err() {
            return;
        }
        renameat(&dir, name, &top, "next").unwrap();
        unlinkat(&top, name, AtFlags::REMOVEDIR).unwrap();
        renameat(&top, "next", &top, name).unwrap();
    }
}

/// Holds this process to few descriptors, so that a walk that needs one per level fails.
pub(crate) fn few_descriptors() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(400), ..limit }).unwrap();
}

/// Does something as somebody whom permissions hold back, as they do an ordinary user: in a thread without the rights that let
/// root into everything.
pub(crate) fn held_back<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let held_back = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
            set_capabilities(None, sets).unwrap();
            act()
        });
        held_back.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

pub(crate) fn whiteout(path: &Path) {
    mknodat(rustix::fs::CWD, path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
}

pub(crate) fn set(path: &Path, attribute: &str, value: &str) {
    setxattr(path, attribute, value.as_bytes(), XattrFlags::empty()).unwrap();
}

/// Reads the layer `upper` on the given lower directories.
pub(crate) fn read(upper: &Path, lower: &[&Path], options: &LayerOptions) -> LayerOutcome {
    let lower: Vec<OwnedFd> = lower.iter().map(|path| open_named(path).unwrap()).collect();
    layer::read(open_named(upper).unwrap().as_fd(), &Lower::new(lower), options).unwrap()
}

/// The changes, one line each: `A path`, and the number below in parentheses.
pub(crate) fn lines(outcome: &LayerOutcome) -> Vec<String> {
    outcome.changes.iter().map(line).collect()
}

pub(crate) fn line(change: &layer::Change) -> String {
    let kind = change.kind.letter();
    let entry = match change.entry {
        layer::EntryType::File => "",
        layer::EntryType::Directory => "/",
        layer::EntryType::Symlink => "@",
        layer::EntryType::Special => "!",
    };
    let below = if change.below > 0 { format!(" ({})", change.below) } else { String::new() };
    format!("{kind} {}{entry}{below}", change.path.display_escaped())
}

pub(crate) fn skipped(outcome: &LayerOutcome) -> Vec<String> {
    outcome
        .skipped
        .iter()
        .map(|skipped| format!("{:?} {}", skipped.why, skipped.path.display_escaped()))
        .collect()
}

/// A number from the environment.
#[expect(clippy::disallowed_methods, reason = "a test has no command line of its own")]
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Random enough, and the same again for the same seed (xorshift).
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// From the clock, or from `SANDTABLE_SEED`; printed, so that a failure can be repeated.
    #[expect(clippy::print_stdout, reason = "the seed is shown with a failure")]
    pub(crate) fn any() -> Self {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = setting("SANDTABLE_SEED", clock.as_secs());
        println!("SANDTABLE_SEED={seed}");
        Self::new(seed)
    }

    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % sides
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}
