//! The control group of a sandbox: how much of the machine everything inside may use together.
//!
//! A group is made below the group of the supervisor, so that the limits the supervisor itself is under go on
//! holding; version 2 forbids that for a group with processes of its own, where the nearest group above
//! that takes it is used. PID 1 enters before it does anything else and only then makes its cgroup
//! namespace, whose root is therefore the sandbox's own group. Nothing in here stops a launch: what could not
//! be done is a control that is absent, and what reads back as set is one that is enforced.
//!
//! A user without privileges needs a group that was delegated to it. Where systemd runs and ours was not, it
//! is asked for one (`systemd`), by root too: groups that systemd keeps for itself are not ours to divide.

mod cold;
mod foreign;
mod hierarchy;
mod knob;
mod place;
mod systemd;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err as fs;
use sandtable_protocol::constants::GROUP_PREFIX;
use sandtable_protocol::op::Limits;
use sandtable_protocol::report::{Control, Observed};
use sandtable_protocol::step::Step;
use sandtable_protocol::wire::Failure;

use crate::failpoint::skips;
use crate::step::Context as _;
use crate::sys::process::unshare;
pub use cold::cold;
pub(crate) use foreign::Foreign;
use hierarchy::{Hierarchy, Version};
use knob::{Knob, knobs};
use systemd::Settled;

/// How long the kernel may take to empty a group whose processes have ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// The group of one launch. Dropping it removes its directories, which must be empty by then.
#[derive(Debug)]
pub(crate) struct Group {
    journal: PathBuf,
    seats: Vec<Seat>,
    /// Limits that have no place, and why.
    refused: BTreeMap<Control, String>,
}

/// One directory of the group.
#[derive(Debug)]
struct Seat {
    directory: PathBuf,
    version: Version,
    /// Which limits it carries, and the values they consist of.
    carries: BTreeMap<Control, Vec<Knob>>,
    /// Open for writing before the clone: the kernel judges who opened it.
    entrance: Option<File>,
}

impl Group {
    /// Makes the directories and sets the limits, as far as this machine lets us.
    pub(crate) fn make(limits: &Limits) -> Self {
        let mut group = Self { journal: limits.journal.clone(), seats: Vec::new(), refused: BTreeMap::new() };
        let hierarchies = Hierarchy::all();
        let asked = Control::LIMITS.into_iter().filter(|control| knob::is_asked(*control, limits));
        let mut two = Vec::new();
        // One hierarchy of version 1 may have several controllers.
        let mut one: BTreeMap<&Path, Vec<Control>> = BTreeMap::new();
        for control in asked {
            match place::version_one(&hierarchies, control) {
                Some(hierarchy) => one.entry(&hierarchy.own).or_default().push(control),
                None => two.push(control),
            }
        }
        for (own, controls) in one {
            match place::below(own, limits) {
                Ok(directory) => {
                    group.seat(Version::One, directory, knobs_of(&controls, Version::One, limits));
                }
                Err(why) => group.refused.extend(controls.into_iter().map(|control| (control, why.clone()))),
            }
        }
        if !two.is_empty() {
            group.make_version_two(&hierarchies, limits, &two);
        }
        group
    }

    fn make_version_two(&mut self, hierarchies: &[Hierarchy], limits: &Limits, asked: &[Control]) {
        let found = match systemd::settle(limits, hierarchies) {
            Ok(Settled::WhereWeWere) => place::version_two(hierarchies, limits, asked),
            Ok(Settled::Moved) => place::version_two(&Hierarchy::all(), limits, asked),
            Err(error) => {
                let why = format!("systemd gives us no control group: {error}");
                self.refused.extend(asked.iter().map(|control| (*control, why.clone())));
                return;
            }
        };
        self.refused.extend(found.refused);
        if let Some(directory) = found.directory {
            self.seat(Version::Two, directory, knobs_of(&found.carried, Version::Two, limits));
        }
    }

    /// Sets the limits of a directory that was just made.
    fn seat(&mut self, version: Version, directory: PathBuf, carries: BTreeMap<Control, Vec<Knob>>) {
        for (control, knobs) in carries.iter().filter(|(control, _)| !skips(**control)) {
            if let Some(why) = knobs.iter().find_map(|knob| knob.set(&directory).err()) {
                self.refused.insert(*control, why);
            }
        }
        let entrance = fs::OpenOptions::new().write(true).open(directory.join("cgroup.procs"));
        let entrance = entrance.map(|file| file.into_parts().0).ok();
        self.seats.push(Seat { directory, version, carries, entrance });
    }

    /// Moves this process, which is PID 1 and has no child yet, into the group, and lets it see nothing above.
    pub(crate) fn enter(&self) -> Result<(), Failure> {
        for entrance in self.seats.iter().filter_map(|seat| seat.entrance.as_ref()) {
            // The read-back finds out if this failed.
            let _stays_outside = { entrance }.write_all(b"0");
        }
        if skips(Control::CgroupNamespace) {
            return Ok(());
        }
        unshare(libc::CLONE_NEWCGROUP as u64).context(|| Step::MakeCgroupNamespace)
    }

    /// Which limits hold for the process `pid`, as the kernel shows them.
    pub(crate) fn observe(&self, pid: i32) -> BTreeMap<Control, Observed> {
        let mut found = BTreeMap::new();
        for seat in &self.seats {
            let inside = seat.holds(pid);
            for (control, knobs) in &seat.carries {
                let loose = knobs.iter().find_map(|knob| knob.check(&seat.directory).err());
                let why =
                    (!inside).then(|| "the sandbox could not enter its control group".to_owned()).or(loose);
                let observed = why.map_or(Observed::Enforced, |why| Observed::Absent { why });
                found.insert(*control, observed);
            }
        }
        let refused =
            self.refused.iter().map(|(control, why)| (*control, Observed::Absent { why: why.clone() }));
        found.extend(refused);
        found
    }

    /// Whether the kernel killed something inside because memory had run out.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let mut memory = self.seats.iter().filter(|seat| seat.carries.contains_key(&Control::MemoryLimit));
        memory.any(|seat| knob::memory_kills(&seat.directory, seat.version) > 0)
    }
}

fn knobs_of(controls: &[Control], version: Version, limits: &Limits) -> BTreeMap<Control, Vec<Knob>> {
    controls.iter().map(|control| (*control, knobs(*control, version, limits))).collect()
}

impl Seat {
    fn holds(&self, pid: i32) -> bool {
        let inside = fs::read_to_string(self.directory.join("cgroup.procs")).unwrap_or_default();
        inside.lines().any(|line| line.parse() == Ok(pid))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The group that it was frozen in may lie below one of these.
        reap(&self.journal);
        for seat in self.seats.drain(..) {
            // The journal may be gone with the sandbox already. What stays busy is left to it if it is not.
            let _left = remove(&seat.directory);
        }
    }
}

/// Removes the groups that `journal` names and that nothing runs in any more; the journal goes with the last.
pub fn reap(journal: &Path) {
    let Ok(text) = fs::read_to_string(journal) else { return };
    let ours = |path: &&Path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(GROUP_PREFIX))
    };
    // What was made last may lie below what was made first.
    let named = text.lines().rev().map(Path::new);
    let left = named.filter(ours).filter(|directory| remove(directory).is_err());
    if left.count() == 0 {
        let _removed_by_another = fs::remove_file(journal);
    }
}

/// Removes an empty group; waits a little for one that is just becoming empty.
fn remove(directory: &Path) -> std::io::Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        match fs::remove_dir(directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}
