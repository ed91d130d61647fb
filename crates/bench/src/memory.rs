//! What a sandbox that does nothing costs in memory: many of them held at once, and the proportional set size
//! of both processes that stay for each one. Pages that all share count once among them.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::catalogue::Place;
use super::outcome::{EntryOutcome, Judged, State, Verdict};
use super::stats::Summary;

/// Both processes, as the report names them.
const SUPERVISOR: &str = "supervisor";
const FIRST: &str = "PID 1";

/// The largest supervisor may have this much, in KiB.
const MOST: f64 = 4096.0;
/// How long the last of them may take to be there.
const READY: Duration = Duration::from_secs(30);

/// Holds `count` sandboxes, looks, and removes them again whatever happened.
pub(super) fn measure(place: &Place, count: u32) -> (Vec<EntryOutcome>, Vec<Judged>) {
    let names: Vec<_> = (0..count).map(|number| format!("bench-idle-{number:03}")).collect();
    let held = hold(place, &names);
    let gone = release(place, &names);
    let sizes = held.and_then(|sizes| gone.map(|()| sizes));
    let number = sizes.as_ref().ok().map(|sizes| sizes.supervisors.len());
    let (supervisors, firsts) = match sizes {
        Ok(sizes) => (state(sizes.supervisors), state(sizes.firsts)),
        Err(reason) => (State::Failed { reason: reason.clone() }, State::Failed { reason }),
    };
    let line = start(place, "NAME").line();
    let entry = |name: &str, state| EntryOutcome { name: name.to_owned(), command: None, state };
    let entries =
        vec![EntryOutcome { command: Some(line), ..entry(SUPERVISOR, supervisors) }, entry(FIRST, firsts)];
    let targets = judge(&entries, count, number);
    (entries, targets)
}

fn judge(entries: &[EntryOutcome], count: u32, held: Option<usize>) -> Vec<Judged> {
    let largest = entries.first().and_then(EntryOutcome::summary).map(|summary| summary.max);
    vec![
        Judged {
            promise: format!("largest {SUPERVISOR} ≤ {MOST:.0} KiB"),
            reached: largest.map(|size| format!("{size:.0} KiB")),
            verdict: Verdict::of(largest.map(|size| size <= MOST)),
        },
        Judged {
            promise: format!("{count} held at once, nothing left of them"),
            reached: held.map(|held| held.to_string()),
            verdict: Verdict::of(held.map(|held| u32::try_from(held) == Ok(count))),
        },
    ]
}

fn state(sizes: Vec<f64>) -> State {
    match Summary::of_values(&sizes) {
        Some(summary) => State::Measured { summary, samples: sizes },
        None => State::Failed { reason: "no process was found".to_owned() },
    }
}

fn start(place: &Place, name: &str) -> super::process::Invocation {
    place.ours("run -d -q --name", &[name, "--", "sleep", "600"])
}

/// KiB of each process.
struct Sizes {
    supervisors: Vec<f64>,
    firsts: Vec<f64>,
}

fn hold(place: &Place, names: &[String]) -> Result<Sizes, String> {
    for name in names {
        start(place, name).output()?;
    }
    let begun = Instant::now();
    loop {
        let pairs = pairs(&place.ours)?;
        if pairs.len() == names.len() {
            let size = |pid: &u32| pss(&Path::new("/proc").join(pid.to_string()).join("smaps_rollup"));
            let supervisors =
                pairs.iter().map(|(supervisor, _)| size(supervisor)).collect::<Result<_, _>>()?;
            let firsts = pairs.iter().map(|(_, first)| size(first)).collect::<Result<_, _>>()?;
            return Ok(Sizes { supervisors, firsts });
        }
        if begun.elapsed() >= READY {
            return Err(format!("{} of {} sandboxes are there", pairs.len(), names.len()));
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Ends and removes them; an error when a process stays.
fn release(place: &Place, names: &[String]) -> Result<(), String> {
    let all: Vec<_> = names.iter().map(String::as_str).collect();
    let stopped = place.ours("stop --grace 0", &all).output();
    let removed = place.ours("rm -f", &all).output();
    let left = look(&place.ours)?.0.len();
    if left > 0 {
        return Err(format!("{left} sandboxes still run"));
    }
    stopped.and(removed).map(drop)
}

/// Supervisors of our sandboxes, each with the first process inside.
fn pairs(executable: &str) -> Result<Vec<(u32, u32)>, String> {
    let (supervisors, children) = look(executable)?;
    Ok(supervisors.into_iter().filter_map(|pid| Some((pid, *children.get(&pid)?))).collect())
}

/// Supervisors of our sandboxes, and a child of every process that has one. The executable is a copy made for
/// this run, so nobody else's are among them.
fn look(executable: &str) -> Result<(Vec<u32>, BTreeMap<u32, u32>), String> {
    let mut children = BTreeMap::new();
    let mut supervisors = Vec::new();
    for entry in fs_err::read_dir("/proc").map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let Some(pid) = path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()) else {
            continue;
        };
        // Whatever ended meanwhile is not one of those that stay.
        let Ok(status) = fs_err::read_to_string(path.join("status")) else { continue };
        if let Some(parent) = field(&status, "PPid:") {
            children.insert(parent, pid);
        }
        let line = fs_err::read(path.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        if line.split('\0').next() == Some(executable) && line.contains("\0bench-idle-") {
            supervisors.push(pid);
        }
    }
    Ok((supervisors, children))
}

fn pss(file: &Path) -> Result<f64, String> {
    let text = fs_err::read_to_string(file).map_err(|error| error.to_string())?;
    let size = field(&text, "Pss:").ok_or_else(|| format!("no `Pss` in `{}`", file.display()))?;
    Ok(f64::from(size))
}

/// The number after a label at the beginning of a line.
fn field(text: &str, label: &str) -> Option<u32> {
    let value = text.lines().find_map(|line| line.strip_prefix(label))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_size_can_be_read() {
        assert!(pss(Path::new("/proc/self/smaps_rollup")).unwrap() > 0.0);
    }

    #[test]
    fn field_is_found_by_its_whole_label() {
        assert_eq!(field("Pss_Dirty: 1 kB\nPss:   12 kB\n", "Pss:"), Some(12));
        assert_eq!(field("Rss: 1 kB\n", "Pss:"), None);
    }

    #[test]
    fn one_large_supervisor_breaks_the_promise() {
        let verdicts = |sizes: Vec<f64>| {
            let state = state(sizes);
            let entries = [EntryOutcome { name: SUPERVISOR.into(), command: None, state }];
            judge(&entries, 2, Some(2)).into_iter().map(|judged| judged.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(vec![4096.0, 10.0]), [Verdict::Pass, Verdict::Pass]);
        assert_eq!(verdicts(vec![4097.0, 10.0]), [Verdict::Miss, Verdict::Pass]);
        assert_eq!(verdicts(Vec::new())[0], Verdict::Unmeasured);
    }
}
