//! Others at work at the same time: no edit and no commit of theirs is ever lost.

use std::sync::atomic::{AtomicBool, Ordering};

use sandtable_merge::{Means, MergeRequest, Mode, Outcome, Reason, merge};
use sandtable_testkit::counts;

use crate::world::{World, host};

/// A request for one new file with this name.
fn adding(world: &World, name: &str) -> MergeRequest {
    let base = world.enter();
    world.inside_write(name, format!("{name}\n"));
    world.request(base, Mode::Merge)
}

/// Done, or not done because somebody else was at work.
fn is_fair(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Refused { refusal } => refusal.reason == Reason::Locked,
        Outcome::RolledBack { .. } => true,
        other => other.is_success(),
    }
}

#[test]
fn two_merges_at_once_take_turns() {
    let world = World::new();
    let requests: Vec<MergeRequest> =
        ["one", "two", "three"].iter().map(|name| adding(&world, name)).collect();
    std::thread::scope(|scope| {
        for request in &requests {
            scope.spawn(|| assert!(world.merge(request).success));
        }
    });
    assert_eq!(world.git(&["rev-list", "--count", "HEAD"]).trim(), "4");
    assert_eq!(
        (world.status(), world.read("one"), world.read("three")),
        (String::new(), "one\n".into(), "three\n".into())
    );
    world.sound();
}

#[test]
fn merges_that_do_not_know_of_each_other_are_kept_apart_by_git() {
    for _ in 0..counts::of("merge-races") {
        let world = World::new();
        let requests: Vec<MergeRequest> = ["one", "two"].iter().map(|name| adding(&world, name)).collect();
        let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
            let run = |(request, state): (&MergeRequest, &str)| {
                let means = Means { state: host(&world.root().join(state)), ..world.means.clone() };
                let request = request.clone();
                scope.spawn(move || merge(&means, &request).unwrap().outcome)
            };
            let running: Vec<_> = requests.iter().zip(["s1", "s2"]).map(run).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (outcome, name) in outcomes.iter().zip(["one", "two"]) {
            let there = world.run_git(&world.repo(), &["cat-file", "-e", &format!("HEAD:{name}")]).code == 0;
            assert_eq!(there, outcome.is_success(), "{outcome:?}");
            assert_eq!(there, world.repo().join(name).exists());
            assert!(is_fair(outcome), "{outcome:?}");
        }
        assert_eq!(world.status(), "");
        world.sound();
    }
}

#[test]
fn a_branch_that_moves_meanwhile_loses_no_commit() {
    let world = World::new();
    let rounds = counts::of("merge-races");
    let requests: Vec<MergeRequest> = (0..rounds).map(|n| adding(&world, &format!("file{n}"))).collect();
    let stop = AtomicBool::new(false);
    let (commits, merges) = std::thread::scope(|scope| {
        let user = scope.spawn(|| {
            let mut made = 0;
            while !stop.load(Ordering::Relaxed) {
                let message = format!("user {made}");
                let ended = world.run_git(&world.repo(), &["commit", "-q", "--allow-empty", "-m", &message]);
                made += u32::from(ended.code == 0);
            }
            made
        });
        let outcomes: Vec<_> = requests.iter().map(|request| merge(&world.means, request)).collect();
        stop.store(true, Ordering::Relaxed);
        (user.join().unwrap(), outcomes)
    });
    let mut successes = 0;
    for outcome in merges {
        let outcome = outcome.unwrap();
        assert!(is_fair(&outcome.outcome), "{outcome:?}");
        successes += u32::from(outcome.success);
    }
    let count: u32 = world.git(&["rev-list", "--count", "HEAD"]).trim().parse().unwrap();
    assert_eq!(count, 1 + commits + successes, "{commits} commits, {successes} merges");
    assert_eq!(world.status(), "");
    world.sound();
}

#[test]
fn a_merge_that_is_put_back_says_what_it_left_alone() {
    let world = World::new();
    let base = world.enter();
    world.inside_write("README", "Another.\n");
    for number in 0..200 {
        world.inside_write(&format!("new/{number}"), "new\n");
    }
    let request = world.request(base, Mode::Merge);
    let readme = world.repo().join("README");
    let ended = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while fs_err::read_to_string(&readme).unwrap() != "Another.\n" {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::yield_now();
            }
            fs_err::write(&readme, "Mine.\n").unwrap();
        });
        let outcome = world.merge(&request);
        ended.store(true, Ordering::Relaxed);
        outcome
    });
    assert!(matches!(outcome.outcome, Outcome::RolledBack { .. }), "{:?}", outcome.outcome);
    assert_eq!(world.read("README"), "Mine.\n");
    let told: Vec<_> = outcome.notes.iter().map(|note| (note.code, note.text.as_str())).collect();
    assert!(matches!(told[..], [("left-alone", text)] if text.contains("`README`")), "{told:?}");
    assert!(!world.repo().join("new").exists());
    world.sound();
}

#[test]
fn an_editor_that_saves_meanwhile_loses_nothing() {
    for style in ["in place", "by rename"] {
        let world = World::new();
        let base = world.enter();
        world.inside_write("docs/guide.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
        let request = world.request(base, Mode::Apply);
        let stop = AtomicBool::new(false);
        let path = world.repo().join("docs/guide.txt");
        let last = std::thread::scope(|scope| {
            let editor = scope.spawn(|| {
                let mut count = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    count += 1;
                    let text = format!("one\ntwo\nthree\nfour\nfive\nsix\nsave {count}\n");
                    if style == "in place" {
                        fs_err::write(&path, &text).unwrap();
                    } else {
                        let draft = world.repo().join("docs/guide.txt~");
                        fs_err::write(&draft, &text).unwrap();
                        fs_err::rename(&draft, &path).unwrap();
                    }
                    std::thread::sleep(std::time::Duration::from_millis(count % 7));
                }
                format!("save {count}\n")
            });
            for _ in 0..counts::of("merge-races") {
                drop(world.merge(&request));
            }
            stop.store(true, Ordering::Relaxed);
            editor.join().unwrap()
        });
        let kept = fs_err::read_dir(world.repo().join("docs"))
            .unwrap()
            .any(|entry| fs_err::read_to_string(entry.unwrap().path()).unwrap_or_default().ends_with(&last));
        assert!(kept, "{style}: the last save is gone: {}", world.read("docs/guide.txt"));
    }
}
