//! Holding everything still by signals.
//!
//! A process that was stopped already stays so afterwards. Ancestors are stopped before their descendants and let
//! go after them, so that no shell sees its job stop: and a parent that waits in `vfork` has to get its child out
//! of the way before it can stop at all. A last signal to everything at once, which no fork can slip through,
//! catches what hid from the list.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::Signal;

use super::kill_everything;
use super::list::{Process, depth, processes, signal};

/// How long descendants wait for their ancestors.
const POLITE: Duration = Duration::from_millis(200);

/// Who was stopped.
#[derive(Debug, Default)]
pub(super) struct Stops {
    /// By somebody else: left as they are.
    before: BTreeSet<i32>,
    /// By us.
    ours: BTreeSet<i32>,
    /// Whether everything was signalled at once.
    swept: bool,
}

impl Stops {
    /// Signals whoever moves and may be signalled by now. True if nothing moves any more.
    pub(super) fn push(&mut self, processes: &BTreeMap<i32, Process>, waited: Duration) -> bool {
        let moving = self.stop(processes, waited);
        if self.swept {
            return moving == 0;
        }
        if moving == 0 || waited > POLITE {
            kill_everything(Signal::STOP);
            self.swept = true;
        }
        false
    }

    fn stop(&mut self, processes: &BTreeMap<i32, Process>, waited: Duration) -> usize {
        let mut moving = 0;
        for (id, process) in processes {
            if process.stopped {
                if !self.ours.contains(id) && !self.swept {
                    self.before.insert(*id);
                }
                continue;
            }
            moving += 1;
            // Somebody let it go in the meantime, so it is ours from now on.
            self.before.remove(id);
            let parent_moves = processes.get(&process.parent).is_some_and(|parent| !parent.stopped);
            if !parent_moves || waited > POLITE {
                self.ours.insert(*id);
                signal(*id, Signal::STOP);
            }
        }
        moving
    }

    /// Lets everything go on that was not stopped before, descendants first.
    pub(super) fn undo(self) {
        let processes = processes();
        let mut ours: Vec<i32> = processes.keys().copied().filter(|id| !self.before.contains(id)).collect();
        ours.sort_by_key(|id| Reverse(depth(&processes, *id)));
        for id in ours {
            signal(id, Signal::CONT);
        }
    }
}
