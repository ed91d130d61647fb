//! When a sandbox has used up its disk budget. Pure: readings go in, what to do next comes out.
//!
//! What is free is read often, which costs next to nothing. What the sandbox itself takes is counted only when it could
//! have passed its budget since the last count, as far as the free space tells, and from time to time anyway: somebody
//! else may have made room in the meantime. Counting is bounded to a share of the time.
//!
//! Two things end a sandbox. It has passed its *budget*; or hardly anything is left free (the *reserve*) and it grows.
//! Where not everything can be counted, because of a directory that may not be read, all that the file system lost since
//! the first count is taken to be the sandbox's. Files that are deleted and still open are in no tree: at the reserve the
//! sandbox is ended as well if half of what was free when it started is gone and no count explains it.

use std::time::Duration;

use sandtable_store::usage::Usage;

/// How fast a sandbox is taken to write: bytes in a millisecond.
const PACE: u64 = 4 << 20;
/// How soon and how late what is free is read again.
const SOONEST: Duration = Duration::from_millis(10);
const LATEST: Duration = Duration::from_secs(1);
/// So many readings later a sandbox is counted without a reason, if counting it is quick.
const READINGS: u32 = 20;
/// How much longer than a count the time between two is: without a reason, with one, and when little is free.
const SHARE_REGULAR: u32 = 100;
const SHARE_CALLED_FOR: u32 = 4;
const SHARE_AT_THE_RESERVE: u32 = 1;

/// Bytes and inodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) bytes: u64,
    pub(super) inodes: u64,
}

impl Amount {
    fn each(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self { bytes: combine(self.bytes, other.bytes), inodes: combine(self.inodes, other.inodes) }
    }

    fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    fn minus(self, other: Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    fn least(self, other: Self) -> Self {
        self.each(other, u64::min)
    }

    fn half(self) -> Self {
        Self { bytes: self.bytes / 2, inodes: self.inodes / 2 }
    }

    /// Whether it is more in one respect.
    fn exceeds(self, other: Self) -> bool {
        self.bytes > other.bytes || self.inodes > other.inodes
    }

    fn reaches(self, other: Self) -> bool {
        self.bytes >= other.bytes || self.inodes >= other.inodes
    }
}

impl From<Usage> for Amount {
    fn from(found: Usage) -> Self {
        Self { bytes: found.bytes, inodes: found.inodes }
    }
}

/// A file system at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// Since the watch began.
    pub(super) at: Duration,
    /// What is free. A file system that makes inodes as it needs them has as many as one can count.
    pub(super) free: Amount,
    /// What there is at all.
    pub(super) size: Amount,
}

/// How much a sandbox may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Budget {
    /// It may grow by half of what is free.
    Half,
    /// So many bytes in all.
    Bytes(u64),
    /// So many bytes in all, and no more growth than by half of what is free.
    AtMost(u64),
}

/// Whether the sandbox may have taken something before the watch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    Something,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Wait(Duration),
    Count,
}

/// Why a sandbox is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// It takes more than it may.
    Budget { used: Amount, budget: Amount },
    /// Less than the reserve is left, and it grows or may do so.
    Reserve { used: Amount, free: Amount },
}

/// What is known of one sandbox.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    asked: Budget,
    before: Before,
    start: Reading,
    reserve: Amount,
    counts: Option<Counts>,
}

#[derive(Clone, Copy, Debug)]
struct Counts {
    /// The first count: what it found and what was free.
    first: (Amount, Amount),
    budget: Amount,
    last: Amount,
    reading: Reading,
    took: Duration,
    /// What was free at the last reading, and all that it fell by since the count: room that somebody makes hides
    /// nothing of it.
    free: Amount,
    fallen: Amount,
}

impl Rule {
    pub(super) fn new(asked: Budget, before: Before, start: Reading) -> Self {
        let usual = Amount {
            bytes: (start.size.bytes / 100).clamp(16 << 20, 2 << 30),
            inodes: (start.size.inodes / 100).min(100_000),
        };
        // Where little is free already, something can still be done.
        let reserve = usual.least(start.free.half().half());
        Self { asked, before, start, reserve, counts: None }
    }

    /// What to do now.
    pub(super) fn next(&mut self, now: &Reading) -> Step {
        let Some(counts) = &mut self.counts else { return Step::Count };
        counts.fallen = counts.fallen.plus(counts.free.minus(now.free));
        counts.free = now.free;
        let since = now.at.saturating_sub(counts.reading.at);
        let rested = |share: u32| since >= counts.took.saturating_mul(share);
        let fallen = counts.fallen;
        let left = counts.budget.minus(counts.last);
        let room = left.minus(fallen).least(now.free.minus(self.reserve));
        let pause = Duration::from_millis(room.bytes / PACE).clamp(SOONEST, LATEST);
        let scarce = self.reserve.exceeds(now.free);
        let called_for = fallen.reaches(left) && fallen != NOTHING;
        let due = (scarce && rested(SHARE_AT_THE_RESERVE))
            || (called_for && rested(SHARE_CALLED_FOR))
            || (since >= pause * READINGS && rested(SHARE_REGULAR));
        if due && since >= SOONEST {
            return Step::Count;
        }
        Step::Wait(pause)
    }

    /// Takes the result of a count that began at `now` and took so long. Says whether the sandbox has to end.
    pub(super) fn counted(&mut self, now: Reading, found: Usage, took: Duration) -> Option<Passed> {
        let used = Amount::from(found);
        let earlier = self.counts;
        let first = earlier.map_or((used, now.free), |counts| counts.first);
        let budget = earlier.map_or_else(|| self.budget(used, now.free), |counts| counts.budget);
        let lost = first.1.minus(now.free);
        let charged = if found.complete { used } else { used.each(first.0.plus(lost), u64::max) };
        self.counts = Some(Counts {
            first,
            budget,
            last: charged,
            reading: now,
            took,
            free: now.free,
            fallen: NOTHING,
        });
        if charged.exceeds(budget) {
            return Some(Passed::Budget { used: charged, budget });
        }
        let grows = earlier.is_some_and(|earlier| charged.exceeds(earlier.last));
        let unexplained = self.start.free.minus(now.free).minus(charged.minus(first.0));
        let scarce = self.reserve.exceeds(now.free);
        let to_blame = grows || unexplained.reaches(self.start.free.half());
        (scarce && to_blame).then_some(Passed::Reserve { used: charged, free: now.free })
    }

    /// What the sandbox may take in all, as of the first count. One that takes more already may not grow.
    fn budget(&self, used: Amount, free: Amount) -> Amount {
        let grown = used.plus(free.half());
        let held = match self.before {
            Before::Nothing => NOTHING,
            Before::Something => used,
        };
        let most = |bytes: u64| Amount { bytes: bytes.max(held.bytes), inodes: grown.inodes };
        match self.asked {
            Budget::Half => grown,
            Budget::Bytes(bytes) => most(bytes),
            Budget::AtMost(bytes) => most(bytes).least(grown),
        }
    }
}

const NOTHING: Amount = Amount { bytes: 0, inodes: 0 };

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
