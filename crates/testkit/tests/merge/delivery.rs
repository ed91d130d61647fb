//! What arrives, and how.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

use sandtable_merge::outcome::LeftOutWhy;
use sandtable_merge::{Approvals, Effect, Identity, MergeRequest, Mode, Outcome, Reason, Undo, undo};
use sandtable_store::id::ObjectId;

use crate::world::{World, host, rel};

#[test]
fn a_branch_that_stood_still_gets_one_commit_with_index_and_files() {
    let world = World::new();
    let base = world.enter();
    world.inside_write("README", "Another.\n");
    world.inside_write("new/file.txt", "new\n");
    fs_err::remove_file(world.inside().join("docs/guide.txt")).unwrap();
    let untouched = fs_err::metadata(world.repo().join("src/main.c")).unwrap();
    let mut request = world.request(base, Mode::Merge);
    request.commit.author =
        Some(Identity { name: "Agent".to_owned(), email: "a@example.invalid".to_owned() });
    request.commit.trailers = vec![("Sandtable-Policy".to_owned(), "safe".to_owned())];
    let outcome = world.succeeds(&request);
    assert!(matches!(outcome.outcome, Outcome::FastForward { .. }), "{:?}", outcome.outcome);
    assert_eq!(world.status(), "");
    assert_eq!(world.git(&["diff-files", "--name-only"]), "", "the index knows the times of the files");
    assert_eq!((world.read("README"), world.read("new/file.txt")), ("Another.\n".into(), "new\n".into()));
    assert!(!world.repo().join("docs").exists(), "an empty directory goes");
    let text = world.git(&["log", "-1", "--format=%an <%ae>%n%B"]);
    assert!(text.starts_with("Agent <a@example.invalid>\nWork\n"), "{text}");
    assert!(text.contains(&format!("Sandtable-Snapshot: {}", request.snapshot)), "{text}");
    assert!(text.contains("Sandtable-Policy: safe"), "{text}");
    assert_eq!(world.git(&["rev-list", "--count", "HEAD"]).trim(), "2");
    assert_eq!(
        world.git(&["reflog", "-1", "--format=%gs"]).trim(),
        format!("sandtable: merge of {}", &request.snapshot.to_string()[..12])
    );
    let after = fs_err::metadata(world.repo().join("src/main.c")).unwrap();
    assert_eq!((untouched.ino(), untouched.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    assert_eq!(world.git(&["remote"]), "");
}

#[test]
fn commits_made_meanwhile_are_merged_with() {
    let world = World::new();
    let base = world.enter();
    world.inside_write("docs/guide.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    world.write("docs/guide.txt", "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    world.write("other.txt", "the user's\n");
    world.commit("meanwhile");
    let outcome = world.succeeds(&world.request(base, Mode::Merge));
    assert!(matches!(outcome.outcome, Outcome::Merged { .. }));
    assert_eq!(world.read("docs/guide.txt"), "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    assert_eq!((world.status(), world.read("other.txt")), (String::new(), "the user's\n".into()));
    assert_eq!(world.git(&["rev-list", "--count", "--parents", "-1", "HEAD"]).trim(), "1");
    let again = world.merge(&world.request(base, Mode::Merge));
    assert_eq!(again.outcome, Outcome::UpToDate);
}

#[test]
fn a_plan_touches_nothing_and_tells_what_would_be() {
    let world = World::new();
    let base = world.enter();
    world.inside_write("README", "Another.\n");
    for mode in [Mode::Merge, Mode::Apply, Mode::Branch("x".to_owned())] {
        let mut request = world.request(base, mode);
        request.effect = Effect::Plan;
        let before = world.fingerprint();
        let outcome = world.merge(&request);
        assert_eq!(before.differences(&world.fingerprint()), [""; 0]);
        assert!(outcome.success && outcome.changes.len() == 1 && outcome.changes[0].path.path == "README");
    }
}

#[test]
fn apply_merges_with_what_is_not_committed() {
    let world = World::new();
    world.write("docs/guide.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven, uncommitted\n");
    world.write("notes.txt", "untracked\n");
    let base = world.enter();
    world.inside_write("docs/guide.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven, uncommitted\n");
    world.inside_write("notes.txt", "untracked, and more\n");
    world.inside_write("src/main.c", "int main(void) { return 1; }\n");
    world.write("docs/guide.txt", "one\ntwo\nthree\nfour\nfive, later\nsix\nseven, uncommitted\n");
    let refused = world.refused(&world.request(base, Mode::Merge), Reason::Dirty);
    assert!(refused.next.iter().any(|next| next.contains("apply")));
    let index = fs_err::read(world.repo().join(".git/index")).unwrap();
    let head = world.git(&["rev-parse", "HEAD"]);
    world.succeeds(&world.request(base, Mode::Apply));
    assert_eq!(index, fs_err::read(world.repo().join(".git/index")).unwrap());
    assert_eq!(world.read("docs/guide.txt"), "ONE\ntwo\nthree\nfour\nfive, later\nsix\nseven, uncommitted\n");
    assert_eq!(world.read("notes.txt"), "untracked, and more\n");
    assert_eq!(world.git(&["diff", "--name-only", "--cached"]), "", "nothing is staged");
    assert_eq!(head, world.git(&["rev-parse", "HEAD"]));
}

#[test]
fn apply_works_where_there_is_no_repository() {
    let world = World::new();
    fs_err::rename(world.repo().join(".git"), world.root().join("gone")).unwrap();
    let base = world.enter();
    world.inside_write("docs/guide.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    world.inside_write("a/new.txt", "new\n");
    fs_err::remove_file(world.inside().join("README")).unwrap();
    world.write("docs/guide.txt", "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    world.refused(&world.request(base, Mode::Merge), Reason::NotARepository);
    let outcome = world.merge(&world.request(base, Mode::Apply));
    assert_eq!(outcome.outcome, Outcome::Applied);
    assert_eq!(world.read("docs/guide.txt"), "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    assert!(!world.repo().join("README").exists() && world.read("a/new.txt") == "new\n");
    assert_eq!(fs_err::read_dir(world.repo()).unwrap().count(), 5, "nothing of ours is left");

    world.write("docs/guide.txt", "mine\n");
    let before = world.fingerprint();
    let conflict = world.merge(&world.request(base, Mode::Apply));
    assert!(conflict.conflict && matches!(conflict.outcome, Outcome::Conflicts { .. }));
    assert_eq!(before.differences(&world.fingerprint()), [""; 0]);
}

#[test]
fn held_changes_wait_and_an_approval_lets_exactly_one_through() {
    let world = World::new();
    let base = world.enter();
    world.inside_write("Makefile", "all:\n\ttrue\n");
    world.inside_write(".github/workflows/ci.yml", "on: push\n");
    world.inside_write("README", "Another.\n");
    let before = world.fingerprint();
    let mut request = world.request(base, Mode::Merge);
    let outcome = world.merge(&request);
    let Outcome::Held { held } = &outcome.outcome else { panic!("{outcome:?}") };
    let paths: BTreeSet<&str> = held.iter().map(|finding| finding.path.path.as_str()).collect();
    assert_eq!(paths, BTreeSet::from(["Makefile", ".github/workflows/ci.yml"]));
    assert!(held.iter().all(|finding| finding.reason.len() > 10));
    request.approvals = Approvals::Paths(BTreeSet::from([rel("Makefile")]));
    let outcome = world.merge(&request);
    let Outcome::Held { held } = &outcome.outcome else { panic!("{outcome:?}") };
    assert!(held.iter().all(|finding| finding.path.path == ".github/workflows/ci.yml"));
    assert_eq!(before.differences(&world.fingerprint()), [""; 0]);
    request.exclude = vec![rel(".github")];
    let outcome = world.succeeds(&request);
    assert_eq!(outcome.approved.len(), 1);
    assert_eq!(outcome.left_out[0].why, LeftOutWhy::Selection);
    assert!(world.repo().join("Makefile").exists() && !world.repo().join(".github").exists());
}

#[test]
fn only_what_is_asked_for_is_taken() {
    let world = World::new();
    let base = world.enter();
    world.inside_write("README", "Another.\n");
    world.inside_write("docs/guide.txt", "Another.\n");
    world.inside_write("docs/more.txt", "More.\n");
    let mut request = world.request(base, Mode::Merge);
    request.only = vec![rel("docs")];
    request.exclude = vec![rel("docs/more.txt")];
    let outcome = world.succeeds(&request);
    assert_eq!(outcome.changes.len(), 1);
    assert_eq!(
        (world.read("docs/guide.txt"), world.read("README")),
        ("Another.\n".into(), "A sample.\n".into())
    );
    assert!(!world.repo().join("docs/more.txt").exists());
    request.only = vec![rel("nowhere")];
    world.refused(&request, Reason::Selection);
}

#[test]
fn what_the_repository_ignores_stays_behind() {
    let world = World::new();
    world.write(".gitignore", "target/\n*.log\n");
    world.commit("ignore");
    fs_err::write(world.repo().join(".git/info/exclude"), "*.private\n").unwrap();
    fs_err::create_dir_all(world.root().join("home/.config/git")).unwrap();
    fs_err::write(world.root().join("home/.config/git/ignore"), "*.swp\n").unwrap();
    let base = world.enter();
    for path in ["target/debug/x", "a.log", "b.private", "c.swp", "kept.txt"] {
        world.inside_write(path, "x\n");
    }
    let outcome = world.succeeds(&world.request(base, Mode::Merge));
    let left: Vec<&str> = outcome.left_out.iter().map(|left| left.path.path.as_str()).collect();
    assert_eq!(left, ["a.log", "b.private", "c.swp", "target/debug/x"]);
    assert_eq!(outcome.changes.len(), 1);
    assert!(world.repo().join("kept.txt").exists() && !world.repo().join("a.log").exists());
}

#[test]
fn kinds_and_modes_change_as_git_would_change_them() {
    let world = World::new();
    fs_err::set_permissions(world.repo().join("src/main.c"), PermissionsExt::from_mode(0o600)).unwrap();
    let base = world.enter();
    let inside = world.inside();
    fs_err::remove_file(inside.join("README")).unwrap();
    world.inside_write("README/now/a/directory", "x\n");
    fs_err::remove_dir_all(inside.join("src/deep")).unwrap();
    world.inside_write("src/deep", "now a file\n");
    fs_err::remove_file(inside.join("link")).unwrap();
    fs_err::os::unix::fs::symlink("docs/guide.txt", inside.join("link")).unwrap();
    fs_err::set_permissions(inside.join("src/main.c"), PermissionsExt::from_mode(0o755)).unwrap();
    let mut request = world.request(base, Mode::Merge);
    request.approvals = Approvals::All;
    let outcome = world.succeeds(&request);
    let commit = match outcome.outcome {
        Outcome::FastForward { commit, .. } => commit.unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(world.status(), "");
    assert_eq!(world.read("README/now/a/directory"), "x\n");
    assert_eq!(world.read("src/deep"), "now a file\n");
    assert_eq!(fs_err::read_link(world.repo().join("link")).unwrap().to_str(), Some("docs/guide.txt"));
    let mode = fs_err::metadata(world.repo().join("src/main.c")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o700, "who may read is the user's choice");

    let undone = undo(
        &world.means,
        &Undo { target: host(&world.repo()), commit, branch: None, first: false, log: None },
    )
    .unwrap()
    .outcome;
    assert!(undone.is_success(), "{undone:?}");
    world.sound();
    assert_eq!((world.status(), world.read("README")), (String::new(), "A sample.\n".into()));
    assert_eq!(world.read("src/deep/er/util.c"), "int util;\n");
    assert_eq!(world.git(&["rev-list", "--count", "HEAD"]).trim(), "1");
}

#[test]
fn a_merge_is_undone_only_while_nothing_has_moved() {
    let world = World::new();
    let base = world.enter();
    world.inside_write("README", "Another.\n");
    let outcome = world.succeeds(&world.request(base, Mode::Merge));
    let Outcome::FastForward { commit: Some(commit), .. } = outcome.outcome else { panic!() };
    let request = Undo { target: host(&world.repo()), commit, branch: None, first: false, log: None };
    world.write("README", "The user's.\n");
    let before = world.fingerprint();
    let dirty = undo(&world.means, &request).unwrap().outcome;
    assert!(matches!(&dirty, Outcome::Refused { refusal } if refusal.reason == Reason::Dirty), "{dirty:?}");
    assert_eq!(before.differences(&world.fingerprint()), [""; 0]);
    world.commit("later");
    let moved = undo(&world.means, &request).unwrap().outcome;
    assert!(matches!(&moved, Outcome::Refused { refusal } if refusal.reason == Reason::Moved), "{moved:?}");
}

/// Exports in `mode` what was written inside, while the user is at work: their files and their index stay as they are.
fn exported(world: &World, base: ObjectId, mode: Mode) -> MergeRequest {
    let (status, index) = (world.status(), fs_err::read(world.repo().join(".git/index")).unwrap());
    let request = MergeRequest { approvals: Approvals::All, ..world.request(base, mode) };
    assert!(matches!(world.succeeds(&request).outcome, Outcome::Exported { .. }));
    assert_eq!(index, fs_err::read(world.repo().join(".git/index")).unwrap());
    assert_eq!(status, world.status());
    request
}

/// A world with work inside, and with work of the user's that is not committed.
fn at_work() -> (World, ObjectId) {
    let world = World::new();
    let base = world.enter();
    world.inside_write("README", "Another.\n");
    fs_err::write(world.inside().join("picture"), b"\0\x01\x02").unwrap();
    world.write("docs/guide.txt", "the user is at work\n");
    (world, base)
}

#[test]
fn a_branch_leaves_files_and_index_alone_and_is_made_once() {
    let (world, base) = at_work();
    let request = exported(&world, base, Mode::Branch("work/one".to_owned()));
    assert!(matches!(world.merge(&request).outcome, Outcome::Refused { .. }), "nothing is written over");
    assert_eq!(world.git(&["show", "work/one:README"]), "Another.\n");
    assert_eq!(world.git(&["rev-parse", "work/one^"]), world.git(&["rev-parse", "HEAD"]));
    for name in ["-x", "../x", "HEAD", "a.lock", "a..b", "a b", "x~1"] {
        let mut request = world.request(base, Mode::Branch(name.to_owned()));
        request.approvals = Approvals::All;
        world.refused(&request, Reason::BranchName);
    }
}

#[test]
fn a_patch_and_a_bundle_leave_files_and_index_alone_and_no_other_bytes_are_written_over() {
    let (world, base) = at_work();
    let (patch, bundle) = (host(&world.root().join("p.patch")), host(&world.root().join("b.bundle")));
    for mode in [Mode::Patch(patch.clone()), Mode::Bundle { file: bundle.clone(), branch: "two".to_owned() }]
    {
        let request = exported(&world, base, mode.clone());
        let again = world.merge(&request).outcome;
        let same = matches!(again, Outcome::Exported { .. });
        // A bundle has a new commit with the time of the call, in seconds: a later one is another file.
        let other = matches!((&mode, &again), (Mode::Bundle { .. }, Outcome::Refused { .. }));
        assert!(same || other, "the same bytes are there already, or other bytes are not written over");
        world.inside_write("README", "Another one.\n");
        let other = MergeRequest { approvals: Approvals::All, ..world.request(base, mode) };
        assert!(matches!(world.merge(&other).outcome, Outcome::Refused { .. }), "nothing is written over");
        world.inside_write("README", "Another.\n");
    }
    world.git(&["checkout", "-q", "--", "docs/guide.txt"]);
    world.git(&["apply", "--check", patch.as_path().to_str().unwrap()]);
    world.git(&["fetch", "-q", bundle.as_path().to_str().unwrap(), "two"]);
    assert_eq!(world.git(&["show", "FETCH_HEAD:README"]), "Another.\n");
}

#[test]
fn what_drifted_during_the_run_is_nobodys_side() {
    let world = World::new();
    let base = world.enter();
    world.inside_write("README", "Another.\n");
    let mut request = world.request(base, Mode::Merge);
    request.drifted = BTreeSet::from([rel("README")]);
    let before = world.fingerprint();
    let outcome = world.merge(&request);
    assert!(outcome.conflict);
    assert_eq!(before.differences(&world.fingerprint()), [""; 0]);
}

#[test]
fn an_apply_is_taken_back_by_its_reverse_and_later_edits_stay() {
    let world = World::new();
    let base = world.enter();
    world.inside_write("docs/guide.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    world.inside_write("Makefile", "all:\n");
    fs_err::remove_file(world.inside().join("README")).unwrap();
    let mut request = world.request(base, Mode::Apply);
    request.approvals = Approvals::All;
    world.succeeds(&request);
    world.write("docs/guide.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    world.succeeds(&request.reversed());
    assert_eq!(world.read("docs/guide.txt"), "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    assert!(!world.repo().join("Makefile").exists() && world.read("README") == "A sample.\n");
    assert_eq!(world.status(), " M docs/guide.txt\n");
}

#[test]
fn a_change_that_a_rename_leads_elsewhere_is_looked_at_there() {
    let world = World::new();
    let base = world.enter();
    world.inside_write("docs/guide.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    world.git(&["mv", "docs/guide.txt", "Makefile"]);
    world.commit("renamed");
    let mut request = world.request(base, Mode::Merge);
    let before = world.fingerprint();
    let outcome = world.merge(&request);
    let Outcome::Held { held } = &outcome.outcome else { panic!("{outcome:?}") };
    assert_eq!(held[0].path.path, "Makefile");
    assert_eq!(before.differences(&world.fingerprint()), [""; 0]);
    request.approvals = Approvals::Paths(BTreeSet::from([rel("Makefile")]));
    world.succeeds(&request);
    assert!(world.read("Makefile").starts_with("ONE\n"));
}

#[test]
fn an_answer_that_nothing_was_delivered_says_why() {
    let world = World::new();
    let base = world.enter();
    let message = |request: &MergeRequest| {
        let outcome = world.merge(request);
        assert_eq!(outcome.outcome, Outcome::UpToDate);
        outcome.message
    };
    assert_eq!(
        message(&world.request(base, Mode::Merge)),
        "there is nothing to bring: no change is recorded"
    );
    world.inside_write("README", "Another.\n");
    world.inside_write("docs/new.txt", "new\n");
    let mut request = world.request(base, Mode::Merge);
    request.exclude = vec![rel("README"), rel("docs")];
    let all = "nothing was delivered: all changes are left out (2 not asked for)";
    assert_eq!(message(&request), all);
    request.effect = Effect::Plan;
    assert_eq!(message(&request), all);
    request.effect = Effect::Deliver;
    request.exclude = vec![rel("docs")];
    world.succeeds(&request);
    assert_eq!(
        message(&request),
        "nothing was delivered: changes are left out (1 not asked for), and the target has the rest already"
    );
    request.exclude = Vec::new();
    world.succeeds(&request);
    assert_eq!(message(&request), "the target has it all already");
    world.write(".git/info/exclude", "*.log\n");
    world.inside_write("a.log", "x\n");
    let ignored = world.request(base, Mode::Merge);
    let told = "(1 ignored by the repository), and the target has the rest already";
    assert!(message(&ignored).ends_with(told), "{}", message(&ignored));
}
