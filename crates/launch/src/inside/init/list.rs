//! Who is in the sandbox, as its own `/proc` says.

use std::collections::BTreeMap;

use rustix::process::{Pid, Signal, kill_process};

/// What is known of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) parent: i32,
    /// Whether none of its threads can run.
    pub(super) stopped: bool,
}

/// All processes of the sandbox that live, but this one.
pub(super) fn processes() -> BTreeMap<i32, Process> {
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

pub(super) fn depth(processes: &BTreeMap<i32, Process>, id: i32) -> usize {
    let parent = |id: &i32| processes.get(id).map(|process| process.parent);
    // Parents may change while they are read; there is no circle that is longer than the list.
    std::iter::successors(Some(id), parent).take(processes.len() + 1).count()
}

pub(super) fn signal(id: i32, signal: Signal) {
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
