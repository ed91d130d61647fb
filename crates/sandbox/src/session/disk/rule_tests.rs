//! Readings in, decisions out.

use super::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A file system of 100 GiB with 40 GiB free, after so many milliseconds.
fn reading(ms: u64, free: u64) -> Reading {
    let inodes = 1_000_000;
    Reading {
        at: Duration::from_millis(ms),
        free: Amount { bytes: free, inodes },
        size: Amount { bytes: 100 * GIB, inodes: 4_000_000 },
    }
}

fn usage(bytes: u64) -> Usage {
    Usage { bytes, inodes: 10, complete: true }
}

const MOMENT: Duration = Duration::from_millis(1);

/// A rule after its first count at 10 ms, which found `used`.
fn counted(asked: Budget, before: Before, used: u64) -> Rule {
    let mut rule = Rule::new(asked, before, reading(0, 40 * GIB));
    assert_eq!(rule.next(&reading(10, 40 * GIB)), Step::Count, "nothing is known yet");
    assert_eq!(rule.counted(reading(10, 40 * GIB), usage(used), MOMENT), None);
    rule
}

#[test]
fn by_default_a_sandbox_may_grow_by_half_of_what_is_free() {
    for before in [Before::Nothing, Before::Something] {
        let mut rule = counted(Budget::Half, before, 30 * GIB);
        assert_eq!(rule.counted(reading(20, 20 * GIB), usage(50 * GIB), MOMENT), None);
        let passed = rule.counted(reading(30, 20 * GIB), usage(50 * GIB + 1), MOMENT);
        assert!(
            matches!(passed, Some(Passed::Budget { used, .. }) if used.bytes == 50 * GIB + 1),
            "{passed:?}"
        );
    }
}

#[test]
fn a_budget_in_bytes_is_for_all_of_it() {
    let mut rule = counted(Budget::Bytes(20 * MIB), Before::Nothing, 15 * MIB);
    assert_eq!(rule.counted(reading(20, 40 * GIB), usage(20 * MIB), MOMENT), None);
    assert!(rule.counted(reading(30, 40 * GIB), usage(20 * MIB + 1), MOMENT).is_some());
    // A new sandbox that has passed it when it is first looked at has passed it.
    let mut rule = Rule::new(Budget::Bytes(20 * MIB), Before::Nothing, reading(0, 40 * GIB));
    assert!(rule.counted(reading(10, 40 * GIB), usage(21 * MIB), MOMENT).is_some());
}

#[test]
fn one_that_was_over_its_budget_before_may_be_cleaned_up() {
    let mut rule = counted(Budget::Bytes(20 * MIB), Before::Something, 50 * MIB);
    assert_eq!(rule.counted(reading(20, 40 * GIB), usage(45 * MIB), MOMENT), None);
    assert!(rule.counted(reading(30, 40 * GIB), usage(50 * MIB + 1), MOMENT).is_some());
}

#[test]
fn a_project_never_raises_the_default() {
    let passes = |budget, used| {
        let mut rule = counted(budget, Before::Nothing, 0);
        rule.counted(reading(20, 10 * GIB), usage(used), MOMENT).is_some()
    };
    assert!(!passes(Budget::Bytes(30 * GIB), 25 * GIB));
    assert!(passes(Budget::AtMost(30 * GIB), 25 * GIB));
    assert!(passes(Budget::AtMost(GIB), 2 * GIB));
}

#[test]
fn inodes_are_used_up_as_well() {
    let mut rule = counted(Budget::Bytes(GIB), Before::Nothing, 0);
    let many = Usage { inodes: 500_020, ..usage(0) };
    assert!(rule.counted(reading(20, 40 * GIB), many, MOMENT).is_some());
}

#[test]
fn it_is_counted_only_when_the_budget_could_have_been_passed() {
    let mut rule = counted(Budget::Bytes(20 * MIB), Before::Nothing, 5 * MIB);
    let mut inodes = rule;
    assert!(matches!(rule.next(&reading(30, 40 * GIB)), Step::Wait(_)), "nothing was written");
    assert!(matches!(rule.next(&reading(40, 40 * GIB - 8 * MIB)), Step::Wait(_)), "not enough was written");
    assert!(matches!(rule.next(&reading(50, 50 * GIB)), Step::Wait(_)), "somebody made room");
    assert!(matches!(rule.next(&reading(60, 50 * GIB - 6 * MIB)), Step::Wait(_)), "8 and 6");
    assert_eq!(rule.next(&reading(70, 50 * GIB - 7 * MIB)), Step::Count);
    let few =
        Reading { free: Amount { inodes: 400_000, ..reading(30, 40 * GIB).free }, ..reading(30, 40 * GIB) };
    assert_eq!(inodes.next(&few), Step::Count, "of inodes too");
}

#[test]
fn what_is_free_is_read_the_more_often_the_less_is_left() {
    let wait = |mut rule: Rule, free| match rule.next(&reading(30, free)) {
        Step::Wait(time) => time,
        Step::Count => panic!("nothing to count"),
    };
    assert_eq!(wait(counted(Budget::Half, Before::Nothing, 0), 40 * GIB), LATEST);
    assert_eq!(wait(counted(Budget::Bytes(20 * MIB), Before::Nothing, 0), 40 * GIB), SOONEST);
    assert_eq!(wait(counted(Budget::Bytes(GIB), Before::Nothing, 0), 40 * GIB), Duration::from_millis(256));
}

#[test]
fn counting_takes_a_small_share_of_the_time() {
    let mut rule = counted(Budget::Bytes(20 * GIB), Before::Nothing, 0);
    let long = Duration::from_secs(2);
    assert_eq!(rule.counted(reading(1000, 40 * GIB), usage(GIB), long), None);
    let due = |ms: u64, free| { rule }.next(&reading(1000 + ms, free)) == Step::Count;
    assert!(!due(199_000, 40 * GIB) && due(200_000, 40 * GIB), "a hundredth, without a reason");
    assert!(!due(7000, 20 * GIB) && due(8000, 20 * GIB), "a fifth, with one");
    let mut quick = counted(Budget::Bytes(20 * GIB), Before::Nothing, 0);
    assert!(matches!(quick.next(&reading(19_000, 40 * GIB)), Step::Wait(_)));
    assert_eq!(quick.next(&reading(20_010, 40 * GIB)), Step::Count);
    let mut small = counted(Budget::Bytes(20 * MIB), Before::Nothing, 0);
    assert!(matches!(small.next(&reading(200, 40 * GIB)), Step::Wait(_)));
    assert_eq!(small.next(&reading(210, 40 * GIB)), Step::Count);
}

#[test]
fn at_the_reserve_it_ends_if_it_grows() {
    // A hundredth of 100 GiB.
    let low = GIB - 1;
    let mut still = counted(Budget::Bytes(60 * GIB), Before::Something, 5 * GIB);
    assert_eq!(still.counted(reading(1000, 18 * GIB), usage(27 * GIB), MOMENT), None);
    assert_eq!(still.next(&reading(2000, low)), Step::Count);
    let mut grows = still;
    assert_eq!(still.counted(reading(2000, low), usage(27 * GIB), MOMENT), None, "others wrote 17 GiB");
    let passed = grows.counted(reading(2000, low), usage(27 * GIB + 4096), MOMENT);
    assert!(matches!(passed, Some(Passed::Reserve { .. })), "{passed:?}");
}

#[test]
fn what_nobody_can_explain_is_its_own_in_the_end() {
    let mut rule = counted(Budget::Half, Before::Nothing, 0);
    // A deleted file of 25 GiB that is still open is not seen, but the disk is not full yet.
    assert_eq!(rule.counted(reading(1000, 15 * GIB), usage(0), MOMENT), None);
    let passed = rule.counted(reading(2000, GIB - 1), usage(0), MOMENT);
    assert!(matches!(passed, Some(Passed::Reserve { .. })), "{passed:?}");
}

#[test]
fn what_may_not_be_looked_at_counts_as_what_the_disk_lost() {
    let mut rule = counted(Budget::Bytes(20 * MIB), Before::Nothing, MIB);
    let hidden = Usage { complete: false, ..usage(MIB) };
    assert_eq!(rule.counted(reading(20, 40 * GIB - 10 * MIB), hidden, MOMENT), None);
    assert!(rule.counted(reading(30, 40 * GIB - 20 * MIB), hidden, MOMENT).is_some());
}

#[test]
fn a_disk_that_was_nearly_full_before_still_works() {
    let nearly = |ms, free: u64| Reading { free: Amount { bytes: free, inodes: 1000 }, ..reading(ms, 0) };
    let mut rule = Rule::new(Budget::Half, Before::Nothing, nearly(0, 100 * MIB));
    assert_eq!(rule.counted(nearly(10, 100 * MIB), usage(0), MOMENT), None);
    assert_eq!(rule.counted(nearly(20, 60 * MIB), usage(40 * MIB), MOMENT), None);
    assert!(rule.counted(nearly(30, 40 * MIB), usage(60 * MIB), MOMENT).is_some());
}
