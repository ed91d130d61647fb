//! Holding everything in the sandbox still while somebody reads its layer.
//!
//! PID 1 stops every other process and goes on serving. A process that was stopped already stays so afterwards.
//! Ancestors are stopped before their descendants and let go after them, so that no shell sees its job stop: and
//! a parent that waits in `vfork` has to get its child out of the way before it can stop at all. A last signal to
//! everything at once, which no fork can slip through, catches what hid from the list.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::kill_everything;
use crate::wire::FrozenBy;

/// How long descendants wait for their ancestors.
const POLITE: Duration = Duration::from_millis(200);
/// After that whatever does not stop, like a process that waits for a disk, is said to move.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked who stopped.
pub(super) const TICK: Duration = Duration::from_millis(1);

/// A freeze that is under way or holds.
#[derive(Debug)]
pub(super) struct Freeze {
    since: Instant,
    /// Stopped by somebody else: left as they are.
    before: BTreeSet<i32>,
    /// Signalled by us.
    ours: BTreeSet<i32>,
    /// Whether everything was signalled at once.
    swept: bool,
    /// What it came to, once it did.
    state: Option<Still>,
}

/// How still it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Still {
    pub(super) by: FrozenBy,
    /// Whether nothing at all moves.
    pub(super) complete: bool,
}

impl Freeze {
    pub(super) fn new() -> Self {
        let (before, ours) = (BTreeSet::new(), BTreeSet::new());
        Self { since: Instant::now(), before, ours, swept: false, state: None }
    }

    /// Whether it is still coming to something.
    pub(super) fn is_under_way(&self) -> bool {
        self.state.is_none()
    }

    /// Goes on stopping until it has come to something.
    pub(super) fn go_on(&mut self) -> Option<Still> {
        if self.state.is_none() {
            let moving = self.stop(&processes());
            let waited = self.since.elapsed();
            if self.swept && (moving == 0 || waited > PATIENCE) {
                self.state = Some(Still { by: FrozenBy::Signals, complete: moving == 0 });
            } else if moving == 0 || waited > POLITE {
                kill_everything(Signal::STOP);
                self.swept = true;
            }
        }
        self.state
    }

    /// Whether something moves that was still; it is stopped again.
    pub(super) fn has_moved(&mut self) -> bool {
        self.state.is_some() && self.stop(&processes()) > 0
    }

    /// Signals whoever moves and may be signalled by now; counts them.
    fn stop(&mut self, processes: &BTreeMap<i32, Process>) -> usize {
        let impatient = self.since.elapsed() > POLITE;
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
            if !parent_moves || impatient {
                self.ours.insert(*id);
                signal(*id, Signal::STOP);
            }
        }
        moving
    }

    /// Lets everything go on that was not stopped before, descendants first.
    pub(super) fn thaw(self) {
        let processes = processes();
        let mut ours: Vec<i32> = processes.keys().copied().filter(|id| !self.before.contains(id)).collect();
        ours.sort_by_key(|id| std::cmp::Reverse(depth(&processes, *id)));
        for id in ours {
            signal(id, Signal::CONT);
        }
    }
}

/// What is known of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: i32,
    /// Whether none of its threads can run.
    stopped: bool,
}

/// All processes of the sandbox that live, but this one.
fn processes() -> BTreeMap<i32, Process> {
    let ids = numbers("/proc").into_iter().filter(|id| *id != 1);
    ids.filter_map(|id| look(id).map(|process| (id, process))).collect()
}

fn look(id: i32) -> Option<Process> {
    let (_, parent) = stat(&format!("/proc/{id}/stat"))?;
    let threads = numbers(&format!("/proc/{id}/task")).into_iter();
    let states = threads.filter_map(|thread| stat(&format!("/proc/{id}/task/{thread}/stat")));
    let mut living = states.map(|(state, _)| state).filter(|state| !"ZXx".contains(*state)).peekable();
    living.peek()?;
    Some(Process { parent, stopped: living.all(|state| "Tt".contains(state)) })
}

fn numbers(directory: &str) -> Vec<i32> {
    let Ok(entries) = fs_err::read_dir(directory) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// State and parent of a process or thread.
fn stat(path: &str) -> Option<(char, i32)> {
    parse(&fs_err::read(path).ok()?)
}

/// The name, which may contain anything, ends at the last bracket.
fn parse(line: &[u8]) -> Option<(char, i32)> {
    let end = line.iter().rposition(|byte| *byte == b')')?;
    let mut words = std::str::from_utf8(&line[end + 1..]).ok()?.split_ascii_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

fn depth(processes: &BTreeMap<i32, Process>, id: i32) -> usize {
    let parent = |id: &i32| processes.get(id).map(|process| process.parent);
    // Parents may change while they are read; there is no circle that is longer than the list.
    std::iter::successors(Some(id), parent).take(processes.len() + 1).count()
}

fn signal(id: i32, signal: Signal) {
    if let Some(process) = Pid::from_raw(id) {
        let _gone = kill_process(process, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_pretend_a_state() {
        assert_eq!(parse(b"7 (a) T 1 (b) S 3 7 7"), Some(('S', 3)));
        assert_eq!(parse(b"7 (\xff) T 2 7"), Some(('T', 2)));
        assert_eq!(parse(b"7 (a"), None);
    }

    #[test]
    fn descendants_are_deeper_and_a_circle_ends() {
        let process = |parent| Process { parent, stopped: true };
        let tree = BTreeMap::from([(2, process(1)), (3, process(2)), (4, process(3))]);
        assert!(depth(&tree, 4) > depth(&tree, 3) && depth(&tree, 3) > depth(&tree, 2));
        let circle = BTreeMap::from([(2, process(3)), (3, process(2))]);
        assert_eq!(depth(&circle, 2), 3);
    }
}
