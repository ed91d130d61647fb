//! The control groups that a container engine has put a process in: looked at, never changed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sandtable_protocol::op::Limits;
use sandtable_protocol::report::{Control, Observed};

use super::hierarchy::{Hierarchy, Version};
use super::knob;

/// The groups of one process, as they are seen from outside.
#[derive(Debug)]
pub(crate) struct Foreign {
    places: BTreeMap<Control, (Version, PathBuf)>,
}

impl Foreign {
    /// The groups of the process `pid`.
    pub(crate) fn of(pid: i32) -> Self {
        let hierarchies = Hierarchy::of(pid);
        let place = |control: Control| {
            let controller = knob::controller(control);
            let one = hierarchies
                .iter()
                .find(|found| found.controllers.iter().any(|controlled| controlled == controller));
            let two = || hierarchies.iter().find(|found| found.version == Version::Two);
            one.or_else(two).map(|found| (control, (found.version, found.own.clone())))
        };
        Self { places: Control::LIMITS.into_iter().filter_map(place).collect() }
    }

    /// Which of `limits` the kernel shows as set.
    pub(crate) fn observe(&self, limits: &Limits) -> BTreeMap<Control, Observed> {
        let asked = Control::LIMITS.into_iter().filter(|control| knob::is_asked(*control, limits));
        let judge = |control: Control| {
            let Some((version, directory)) = self.places.get(&control) else {
                return Observed::Absent { why: "its control group cannot be seen".to_owned() };
            };
            // An engine kills one process for want of memory where we would kill all: that is no weaker limit.
            let knobs = knob::knobs(control, *version, limits).into_iter().filter(knob::Knob::is_limit);
            let loose = knobs.into_iter().find_map(|knob| knob.check(directory).err());
            loose.map_or(Observed::Enforced, |why| Observed::Absent { why })
        };
        asked.map(|control| (control, judge(control))).collect()
    }

    /// Whether the kernel killed something inside because memory had run out.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.places
            .get(&Control::MemoryLimit)
            .is_some_and(|(version, directory)| knob::memory_kills(directory, *version) > 0)
    }
}
