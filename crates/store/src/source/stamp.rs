//! A moment of the clock that the kernel stamps files with.

use rustix::time::{ClockId, clock_gettime};

use crate::os::FILE_CLOCK;

const SECOND: i64 = 1_000_000_000;

/// A moment to compare change times with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(i64);

impl Stamp {
    /// Now, by the coarse clock: nothing that changes from here on has an earlier change time.
    pub fn now() -> Self {
        let now = clock_gettime(FILE_CLOCK);
        Self(now.tv_sec.saturating_mul(SECOND).saturating_add(now.tv_nsec))
    }

    /// A moment that nothing changed so far can have as its change time, and everything changed from here on
    /// has or exceeds. Waits for it, a tick at most.
    ///
    /// The coarse clock may lag by more than a tick while the machine idles, and newer kernels stamp files that
    /// were just looked at by the exact clock: so the exact time is taken, and waited for on the coarse clock.
    pub fn after_all() -> Self {
        Moment::now().passed()
    }

    /// From nanoseconds since 1970. A finer clock than that of [`Stamp::now`] must be set back by one tick
    /// (ten milliseconds at most) first.
    pub const fn from_nanoseconds(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    /// The moment as a number that [`Stamp::from_nanoseconds`] takes.
    pub const fn as_nanoseconds(self) -> i64 {
        self.0
    }

    /// Whether something with this change time may have changed at or after this moment.
    pub const fn may_precede(self, ctime_ns: i64) -> bool {
        let whole_seconds = ctime_ns % SECOND == 0;
        ctime_ns >= self.0 || (whole_seconds && ctime_ns.saturating_add(SECOND) > self.0)
    }
}

/// A moment of the exact clock, from which on it is waited for the clock of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(i64);

impl Moment {
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Realtime);
        Self(now.tv_sec.saturating_mul(SECOND).saturating_add(now.tv_nsec))
    }

    /// What [`Stamp::after_all`] gives, for all that changed before this moment; after a tick nothing is waited for. What
    /// changed between the moment and this call may be on either side.
    pub fn passed(self) -> Stamp {
        loop {
            let now = Stamp::now();
            if now.0 > self.0 {
                return now;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;
    use crate::dir::{open_named, stat_at};

    #[test]
    fn no_later_change_has_an_earlier_time() {
        let dir = tempfile::tempdir().unwrap();
        let root = open_named(dir.path()).unwrap();
        for round in 0..2000 {
            let before = Stamp::now();
            fs_err::write(dir.path().join("f"), round.to_string()).unwrap();
            let ctime = stat_at(root.as_fd(), b"f").unwrap().ctime_ns;
            assert!(before.may_precede(ctime), "round {round}: {before:?} is after {ctime}");
        }
    }

    #[test]
    fn a_moment_that_has_passed_lies_after_what_was_before_and_not_after_what_follows() {
        let dir = tempfile::tempdir().unwrap();
        let root = open_named(dir.path()).unwrap();
        let write = |name: &str| {
            fs_err::write(dir.path().join(name), name).unwrap();
            stat_at(root.as_fd(), name.as_bytes()).unwrap().ctime_ns
        };
        for _ in 0..20 {
            let before = write("before");
            let moment = Moment::now();
            write("between");
            let stamp = moment.passed();
            let after = write("after");
            assert!(!stamp.may_precede(before) || before % SECOND == 0, "{stamp:?} is not after {before}");
            assert!(stamp.may_precede(after), "{stamp:?} is after {after}");
        }
    }

    #[test]
    fn a_time_without_fraction_is_anywhere_in_its_second() {
        let moment = Stamp::from_nanoseconds(7 * SECOND + 5);
        assert!(moment.may_precede(7 * SECOND));
        assert!(moment.may_precede(7 * SECOND + 5));
        assert!(!moment.may_precede(7 * SECOND + 4));
        assert!(!moment.may_precede(6 * SECOND));
    }
}
