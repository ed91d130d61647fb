//! Runs the contenders of a row in turn, round by round. The order is rotated each round, so that nobody
//! always runs after the same neighbour, and a slow minute of the machine hits all alike.

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use super::outcome::{EntryOutcome, RowOutcome, State, judge};
use super::row::{Contender, Entry, Row};
use super::stats::{Summary, milliseconds};

/// How often.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    pub warm_up: usize,
    pub timed: usize,
}

impl Rounds {
    pub(super) fn at_most(self, other: Self) -> Self {
        Self { warm_up: self.warm_up.min(other.warm_up), timed: self.timed.min(other.timed) }
    }
}

/// How long a program in the background may take until it can be used.
const READY: Duration = Duration::from_secs(10);

/// Measures one row to its end. A contender that fails drops out with its reason; the others go on.
pub fn measure(row: &Row, rounds: Rounds) -> RowOutcome {
    let mut lanes: Vec<Lane<'_>> = row.entries.iter().map(Lane::enter).collect();
    for round in 0..rounds.warm_up + rounds.timed {
        let timed = round.checked_sub(rounds.warm_up);
        for position in rotation(lanes.len(), round) {
            lanes[position].take_part(timed);
        }
    }
    let entries: Vec<_> = lanes.into_iter().map(Lane::leave).collect();
    RowOutcome {
        id: row.id.clone(),
        title: row.title.clone(),
        note: row.note.map(str::to_owned),
        files: row.files,
        unit: "ms",
        targets: row.targets.iter().map(|target| judge(target, &entries)).collect(),
        entries,
    }
}

/// The order of one round.
fn rotation(count: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |index| (index + round) % count)
}

/// A contender on its way through the rounds.
struct Lane<'a> {
    entry: &'a Entry,
    background: Option<Child>,
    samples: Vec<Duration>,
    failure: Option<String>,
}

impl<'a> Lane<'a> {
    fn enter(entry: &'a Entry) -> Self {
        let mut lane = Self { entry, background: None, samples: Vec::new(), failure: None };
        if let Ok(contender) = &entry.contender
            && let Err(reason) = lane.prepare(contender)
        {
            lane.failure = Some(reason);
        }
        lane
    }

    fn prepare(&mut self, contender: &Contender) -> Result<(), String> {
        for step in &contender.setup {
            step.output()?;
        }
        if let Some(background) = &contender.background {
            self.background = Some(background.spawn_silent().map_err(|error| error.to_string())?);
        }
        // One run with its messages kept: a failure later would have nothing to say but its status.
        let patience = if self.background.is_some() { READY } else { Duration::ZERO };
        let begun = Instant::now();
        while let Err(reason) = contender.command.output() {
            if begun.elapsed() >= patience {
                return Err(reason);
            }
            thread::sleep(Duration::from_millis(50));
        }
        contender.after.as_ref().map_or(Ok(()), |after| after.output().map(drop))
    }

    fn take_part(&mut self, timed: Option<usize>) {
        let Ok(contender) = &self.entry.contender else { return };
        let due = timed.is_none_or(|round| round % contender.every == 0);
        if self.failure.is_some() || !due {
            return;
        }
        match sample(contender) {
            Ok(elapsed) if timed.is_some() => self.samples.push(elapsed),
            Ok(_) => {}
            Err(reason) => self.failure = Some(reason),
        }
    }

    fn leave(mut self) -> EntryOutcome {
        let name = self.entry.name.to_owned();
        let contender = match &self.entry.contender {
            Ok(contender) => contender,
            Err(reason) => return EntryOutcome { name, command: None, state: State::absent(reason) },
        };
        for step in &contender.teardown {
            // What teardown removes may never have come to be; the reason is in `failure` then.
            drop(step.output());
        }
        if let Some(mut child) = self.background.take() {
            drop(child.kill());
            drop(child.wait());
        }
        let state = match (self.failure.take(), Summary::of(&self.samples)) {
            (Some(reason), _) => State::Failed { reason },
            (None, Some(summary)) => State::Measured {
                summary,
                samples: self.samples.iter().map(|sample| milliseconds(*sample)).collect(),
            },
            (None, None) => State::Failed { reason: "no round was timed".to_owned() },
        };
        EntryOutcome { name, command: Some(contender.command.line()), state }
    }
}

/// One timed run: from the first fork until the last copy has been waited for.
fn sample(contender: &Contender) -> Result<Duration, String> {
    let begun = Instant::now();
    let started: Vec<_> = (0..contender.copies).map(|_| contender.command.spawn_silent()).collect();
    let ended: Vec<_> = started.into_iter().map(|child| child.and_then(|mut child| child.wait())).collect();
    let elapsed = begun.elapsed();
    for status in ended {
        let status = status.map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("a timed run ended with {status}"));
        }
    }
    if let Some(after) = &contender.after {
        after.output()?;
    }
    Ok(elapsed)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::rc::Rc;

    use super::super::process::{Caller, Invocation};
    use super::*;

    const ROUNDS: Rounds = Rounds { warm_up: 1, timed: 4 };

    fn shell(directory: &Path, script: &str) -> Invocation {
        let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let caller = Rc::new(Caller { name: "user", ids: None, area: PathBuf::from("/"), environment });
        caller.invoke(directory, ["sh", "-c", script])
    }

    fn row(entries: Vec<Entry>) -> Row {
        Row { id: "t".into(), title: "t".into(), note: None, files: None, entries, targets: Vec::new() }
    }

    fn lines(file: PathBuf) -> Vec<String> {
        fs_err::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn order_rotates() {
        let orders: Vec<Vec<usize>> = (0..3).map(|round| rotation(3, round).collect()).collect();
        assert_eq!(orders, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
    }

    #[test]
    fn contenders_are_interleaved_and_warm_up_is_not_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut slow = Contender::new(shell(dir.path(), "echo slow >> log"));
        slow.every = 2;
        let fast = Contender::new(shell(dir.path(), "echo fast >> log"));
        let outcome = measure(
            &row(vec![
                Entry { name: "fast", contender: Ok(fast) },
                Entry { name: "slow", contender: Ok(slow) },
            ]),
            ROUNDS,
        );
        let samples: Vec<_> = outcome.entries.iter().map(|e| e.summary().unwrap().samples).collect();
        assert_eq!(samples, [4, 2]);
        // Two proofs, one warm-up, then rounds 1 to 4 with the slow one in the first and third.
        let expected = "fast slow fast slow slow fast fast slow fast fast";
        assert_eq!(lines(dir.path().join("log")).join(" "), expected);
    }

    #[test]
    fn steps_around_the_command_run_in_their_places() {
        let dir = tempfile::tempdir().unwrap();
        let say = |word: &str| shell(dir.path(), &format!("echo {word} >> log"));
        let mut contender = Contender::new(say("run"));
        contender.setup = vec![say("setup")];
        contender.copies = 2;
        contender.after = Some(say("after"));
        contender.teardown = vec![say("teardown")];
        measure(&row(vec![Entry { name: "x", contender: Ok(contender) }]), Rounds { warm_up: 0, timed: 1 });
        assert_eq!(lines(dir.path().join("log")).join(" "), "setup run after run run after teardown");
    }

    #[test]
    fn absent_and_failing_contenders_keep_their_reasons() {
        let dir = tempfile::tempdir().unwrap();
        let fails = Contender::new(shell(dir.path(), "echo sorry >&2; exit 9"));
        let fails_later = Contender::new(shell(dir.path(), "test ! -e ran && touch ran"));
        let outcome = measure(
            &row(vec![
                Entry { name: "absent", contender: Err("not installed".into()) },
                Entry { name: "fails", contender: Ok(fails) },
                Entry { name: "later", contender: Ok(fails_later) },
            ]),
            ROUNDS,
        );
        let reasons: Vec<_> = outcome.entries.iter().map(|entry| entry.state.reason().unwrap()).collect();
        assert_eq!(
            reasons,
            ["not installed", "`sh`: exit status: 9: sorry", "a timed run ended with exit status: 1"]
        );
    }

    #[test]
    fn background_program_lives_as_long_as_the_row() {
        let dir = tempfile::tempdir().unwrap();
        let mut contender = Contender::new(shell(dir.path(), "kill -0 $(cat pid)"));
        contender.background = Some(shell(dir.path(), "echo $$ > pid; exec sleep 60"));
        let outcome = measure(&row(vec![Entry { name: "x", contender: Ok(contender) }]), ROUNDS);
        assert!(outcome.entries[0].summary().is_some(), "{:?}", outcome.entries[0].state);
        let pid = fs_err::read_to_string(dir.path().join("pid")).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists());
    }
}
