//! What a row came to, and whether the promises were kept. A promise that could not be checked is neither
//! kept nor broken, and says so.

use serde::Serialize;

use super::row::{OURS, Target};
use super::stats::Summary;

/// A measured row.
#[derive(Clone, Debug, Serialize)]
pub struct RowOutcome {
    pub id: String,
    pub title: String,
    pub note: Option<String>,
    pub files: Option<u32>,
    /// Of every number in the entries: `ms`, or `KiB`.
    pub unit: &'static str,
    pub entries: Vec<EntryOutcome>,
    pub targets: Vec<Judged>,
}

impl RowOutcome {
    pub fn summary(&self, name: &str) -> Option<&Summary> {
        find(&self.entries, name)
    }
}

/// What one contender came to.
#[derive(Clone, Debug, Serialize)]
pub struct EntryOutcome {
    pub name: String,
    pub command: Option<String>,
    #[serde(flatten)]
    pub state: State,
}

impl EntryOutcome {
    pub fn summary(&self) -> Option<&Summary> {
        match &self.state {
            State::Measured { summary, .. } => Some(summary),
            State::Absent { .. } | State::Failed { .. } => None,
        }
    }
}

/// Numbers, or the reason why there are none.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    Measured { summary: Summary, samples: Vec<f64> },
    Absent { reason: String },
    Failed { reason: String },
}

impl State {
    pub fn absent(reason: &str) -> Self {
        Self::Absent { reason: reason.to_owned() }
    }

    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Measured { .. } => None,
            Self::Absent { reason } | Self::Failed { reason } => Some(reason),
        }
    }
}

/// A promise with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    pub promise: String,
    pub reached: Option<String>,
    pub verdict: Verdict,
}

/// Whether a promise was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    Miss,
    Unmeasured,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Miss => "**miss**",
            Self::Unmeasured => "not measured",
        }
    }

    pub(super) fn of(kept: Option<bool>) -> Self {
        match kept {
            Some(true) => Self::Pass,
            Some(false) => Self::Miss,
            None => Self::Unmeasured,
        }
    }
}

/// Compares the medians with a promise.
pub fn judge(target: &Target, entries: &[EntryOutcome]) -> Judged {
    let median = |name: &str| find(entries, name).map(|summary| summary.median);
    let ours = median(OURS);
    match *target {
        Target::Ratio { peer, at_most } => {
            let ratio = ours.zip(median(peer)).map(|(ours, peer)| ours / peer);
            at_most_times(format!("≤ {at_most:?} × {peer}"), ratio, at_most)
        }
        Target::Faster { peer, at_least } => {
            let ratio = ours.zip(median(peer)).map(|(ours, peer)| peer / ours);
            Judged {
                promise: format!("≥ {at_least} × faster than {peer}"),
                reached: ratio.map(|ratio| format!("{ratio:.2} × faster")),
                verdict: Verdict::of(ratio.map(|ratio| ratio >= at_least)),
            }
        }
        Target::Within { milliseconds } => Judged {
            promise: format!("≤ {milliseconds} ms"),
            reached: ours.map(|ours| format!("{ours:.1} ms")),
            verdict: Verdict::of(ours.map(|ours| ours <= milliseconds)),
        },
        Target::Over { floor, milliseconds } => {
            let over = ours.zip(median(floor)).map(|(ours, floor)| ours - floor);
            Judged {
                promise: format!("≤ {floor} + {milliseconds} ms"),
                reached: over.map(|over| format!("{floor} {over:+.1} ms")),
                verdict: Verdict::of(over.map(|over| over <= milliseconds)),
            }
        }
        Target::Added { unloaded, peer, peer_unloaded, at_most } => {
            let added = ours.zip(median(unloaded)).map(|(with, without)| with - without);
            let theirs = median(peer).zip(median(peer_unloaded)).map(|(with, without)| with - without);
            added_at_most(format!("adds ≤ {at_most:?} × what it adds to {peer}"), added.zip(theirs), at_most)
        }
    }
}

/// The verdict on a ratio that must stay small.
pub fn at_most_times(promise: String, ratio: Option<f64>, at_most: f64) -> Judged {
    Judged {
        promise,
        reached: ratio.map(|ratio| format!("{ratio:.2} ×")),
        verdict: Verdict::of(ratio.map(|ratio| ratio <= at_most)),
    }
}

fn added_at_most(promise: String, added: Option<(f64, f64)>, at_most: f64) -> Judged {
    Judged {
        promise,
        reached: added.map(|(ours, theirs)| format!("{ours:+.2} ms against {theirs:+.2} ms")),
        // A load that costs nobody anything is within any promise.
        verdict: Verdict::of(added.map(|(ours, theirs)| ours <= (theirs * at_most).max(0.0))),
    }
}

fn find<'a>(entries: &'a [EntryOutcome], name: &str) -> Option<&'a Summary> {
    entries.iter().find(|entry| entry.name == name)?.summary()
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;

    pub(in super::super) fn measured(name: &str, ms: u64) -> EntryOutcome {
        let samples = [Duration::from_millis(ms)];
        let summary = Summary::of(&samples).unwrap();
        let state = State::Measured { summary, samples: vec![summary.median] };
        EntryOutcome { name: name.into(), command: Some(format!("{name} it")), state }
    }

    pub(in super::super) fn absent(name: &str, reason: &str) -> EntryOutcome {
        EntryOutcome { name: name.into(), command: None, state: State::absent(reason) }
    }

    fn verdict(target: &Target, entries: &[EntryOutcome]) -> (Option<String>, Verdict) {
        let judged = judge(target, entries);
        (judged.reached, judged.verdict)
    }

    #[test]
    fn ratio_is_kept_up_to_its_limit() {
        let target = Target::Ratio { peer: "bwrap", at_most: 1.0 };
        let at = |ours| verdict(&target, &[measured(OURS, ours), measured("bwrap", 10)]);
        assert_eq!(at(10), (Some("1.00 ×".into()), Verdict::Pass));
        assert_eq!(at(11), (Some("1.10 ×".into()), Verdict::Miss));
    }

    #[test]
    fn faster_counts_the_other_way_round() {
        let target = Target::Faster { peer: "docker", at_least: 30.0 };
        let at = |ours| verdict(&target, &[measured(OURS, ours), measured("docker", 300)]);
        assert_eq!(at(10), (Some("30.00 × faster".into()), Verdict::Pass));
        assert_eq!(at(11).1, Verdict::Miss);
    }

    #[test]
    fn a_promise_is_shown_as_it_was_made() {
        let shown = |target| judge(&target, &[]).promise;
        let faster = |at_least| shown(Target::Faster { peer: "git", at_least });
        assert_eq!(faster(1.3), "≥ 1.3 × faster than git");
        assert_eq!(faster(30.0), "≥ 30 × faster than git");
        assert_eq!(shown(Target::Within { milliseconds: 2.5 }), "≤ 2.5 ms");
        assert_eq!(shown(Target::Over { floor: "syncs", milliseconds: 10.0 }), "≤ syncs + 10 ms");
        // One that misses by little does not look as if it had been reached.
        let near = [measured(OURS, 100), measured("git", 126)];
        let judged = judge(&Target::Faster { peer: "git", at_least: 1.3 }, &near);
        assert_eq!((judged.reached, judged.verdict), (Some("1.26 × faster".into()), Verdict::Miss));
    }

    #[test]
    fn absolute_times_need_no_peer() {
        let target = Target::Within { milliseconds: 1000.0 };
        assert_eq!(verdict(&target, &[measured(OURS, 1000)]).1, Verdict::Pass);
        assert_eq!(verdict(&target, &[measured(OURS, 1001)]).1, Verdict::Miss);
    }

    #[test]
    fn what_nobody_can_do_without_is_not_counted() {
        let target = Target::Over { floor: "syncs", milliseconds: 10.0 };
        let at = |ours| verdict(&target, &[measured(OURS, ours), measured("syncs", 5)]);
        assert_eq!(at(15), (Some("syncs +10.0 ms".into()), Verdict::Pass));
        assert_eq!(at(16).1, Verdict::Miss);
    }

    #[test]
    fn added_cost_is_compared_with_added_cost() {
        let target = Target::Added { unloaded: "ours", peer: "b", peer_unloaded: "b0", at_most: 1.0 };
        let at = |loaded| {
            let entries =
                [measured(OURS, loaded), measured("ours", 5), measured("b", 20), measured("b0", 10)];
            verdict(&target, &entries)
        };
        assert_eq!(at(15), (Some("+10.00 ms against +10.00 ms".into()), Verdict::Pass));
        assert_eq!(at(16).1, Verdict::Miss);
    }

    #[test]
    fn absent_peer_or_subject_is_never_a_pass() {
        let target = Target::Ratio { peer: "bwrap", at_most: 1.0 };
        let without_peer = [measured(OURS, 1), absent("bwrap", "not installed")];
        assert_eq!(verdict(&target, &without_peer), (None, Verdict::Unmeasured));
        let without_us = [absent(OURS, "not built"), measured("bwrap", 1)];
        assert_eq!(verdict(&target, &without_us), (None, Verdict::Unmeasured));
    }
}
