//! Holding everything still by a control group: it is frozen first, and then every process is put into it. Nobody
//! inside sees anything of it. Afterwards they stay there; it has no limits of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use rustix::io::{Errno, pread, write};

use super::list::Process;

/// The files of the group.
#[derive(Debug)]
pub(super) struct Cold {
    procs: OwnedFd,
    freeze: OwnedFd,
    events: OwnedFd,
    inside: BTreeSet<i32>,
    /// The last process number that was given away when nobody new was found.
    last: Option<Vec<u8>>,
}

impl Cold {
    /// Freezes the group. `None` without its files, or if it does not freeze.
    pub(super) fn new(files: Vec<OwnedFd>) -> Option<Self> {
        let [procs, freeze, events] = <[OwnedFd; 3]>::try_from(files).ok()?;
        write(&freeze, b"1").ok()?;
        // Whoever was held before stays in the group. To enter it again changes nothing, and takes milliseconds.
        let inside = members(&procs);
        Some(Self { procs, freeze, events, inside, last: None })
    }

    /// Puts everybody into the group who is not there yet. True once all are there, none was made in the
    /// meantime, and the kernel says that they are still.
    pub(super) fn take(&mut self, processes: &BTreeMap<i32, Process>) -> Result<bool, Errno> {
        let mut new = false;
        for id in processes.keys().filter(|id| !self.inside.contains(id)) {
            match write(&self.procs, id.to_string().as_bytes()) {
                Ok(_) | Err(Errno::SRCH) => new = true,
                Err(errno) => return Err(errno),
            }
        }
        self.inside.extend(processes.keys());
        // The list is not read in one moment. If no process was made between two looks that found nobody new,
        // nobody can have hidden from the second.
        let last = last_number();
        let closed = !new && last.is_some() && last == self.last;
        self.last = last.filter(|_| !new);
        Ok(closed && self.is_frozen())
    }

    fn is_frozen(&self) -> bool {
        let mut text = [0; 256];
        let count = pread(&self.events, &mut text, 0).unwrap_or(0);
        text[..count].split(|byte| *byte == b'\n').any(|line| line == b"frozen 1")
    }

    pub(super) fn thaw(self) {
        let _gone = write(&self.freeze, b"0");
    }
}

/// Who is in the group; nobody if that cannot be read, so that all are put there.
fn members(procs: &OwnedFd) -> BTreeSet<i32> {
    let mut text = Vec::new();
    let mut block = [0; 4096];
    while let Ok(count @ 1..) = pread(procs, &mut block, text.len() as u64) {
        text.extend_from_slice(&block[..count]);
    }
    let numbers = text.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    numbers.filter_map(|line| line.parse().ok()).collect()
}

/// The number of the youngest process there ever was in the sandbox.
fn last_number() -> Option<Vec<u8>> {
    let line = fs_err::read("/proc/loadavg").ok()?;
    line.trim_ascii_end().split(|byte| *byte == b' ').next_back().map(<[u8]>::to_vec)
}
