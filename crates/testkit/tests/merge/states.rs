//! Every state a target can be in (`snapshots.md` §5.8), with merge, apply and a branch: the right result, or a refusal
//! that leaves every byte where it was.

use std::collections::BTreeSet;

use sandtable_merge::{Approvals, Mode, Outcome, Reason, merge};
use sandtable_testkit::fingerprint::Fingerprint;

use crate::world::{World, host, rel};

/// A world in which the sandbox changed `README` and added `new.txt`.
pub(crate) fn changed(world: &World) -> sandtable_store::id::ObjectId {
    let base = world.enter();
    world.inside_write("README", "Another.\n");
    world.inside_write("new.txt", "new\n");
    base
}

fn branch(name: &str) -> Mode {
    Mode::Branch(name.to_owned())
}

#[test]
fn dirty_and_staged_elsewhere_stays_dirty_and_staged() {
    let world = World::new();
    let base = changed(&world);
    world.write("docs/guide.txt", "dirty\n");
    world.write("src/main.c", "staged\n");
    world.git(&["add", "src/main.c"]);
    world.write("src/main.c", "staged, then changed\n");
    world.write("untracked.txt", "mine\n");
    let status = world.status();
    world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!(world.status(), status);
    assert_eq!(world.git(&["show", ":src/main.c"]), "staged\n");
    assert_eq!(world.git(&["show", "HEAD:src/main.c"]).lines().next(), Some("int main(void)"));
    assert_eq!(world.read("README"), "Another.\n");
}

#[test]
fn the_same_change_on_disk_already_is_no_obstacle() {
    let world = World::new();
    let base = changed(&world);
    world.write("README", "Another.\n");
    world.write("new.txt", "new\n");
    let before = Fingerprint::of(&world.repo().join("src"), &[]);
    world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!(world.status(), "");
    assert_eq!(before, Fingerprint::of(&world.repo().join("src"), &[]));
}

#[test]
fn the_same_change_staged_already_is_no_obstacle() {
    let world = World::new();
    let base = changed(&world);
    world.write("README", "Another.\n");
    world.git(&["add", "README"]);
    world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!(world.status(), "");
}

#[test]
fn another_change_of_the_same_file_is_refused_for_merge_and_merged_by_apply() {
    let world = World::new();
    let base = changed(&world);
    world.write("README", "Mine.\n");
    let refused = world.refused(&world.request(base, Mode::Merge), Reason::Dirty);
    let Outcome::Refused { refusal } = refused.outcome else { unreachable!() };
    assert_eq!(refusal.paths[0].path.path, "README");
    let before = world.fingerprint();
    assert!(world.merge(&world.request(base, Mode::Apply)).conflict);
    assert_eq!(before.differences(&world.fingerprint()), [""; 0]);
    world.succeeds(&world.request(base, branch("b")));

    world.git(&["add", "README"]);
    world.git(&["branch", "-qD", "b"]);
    world.refused(&world.request(base, Mode::Merge), Reason::Dirty);
    world.write("README", "A sample.\n");
    world.refused(&world.request(base, Mode::Merge), Reason::Dirty);
}

#[test]
fn a_file_in_the_way_is_refused_unless_it_is_the_same() {
    let world = World::new();
    world.write(".gitignore", "ignored.txt\n");
    world.commit("ignore");
    let base = changed(&world);
    world.write("new.txt", "somebody else's\n");
    world.refused(&world.request(base, Mode::Merge), Reason::Dirty);
    world.write("new.txt", "new\n");
    world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!(world.status(), "");

    let base = world.enter();
    world.inside_write(".gitignore", "nothing\n");
    world.inside_write("ignored.txt", "from inside\n");
    world.write("ignored.txt", "the user's, ignored\n");
    let mut request = world.request(base, Mode::Merge);
    request.approvals = Approvals::All;
    world.refused(&request, Reason::Dirty);
}

#[test]
fn a_directory_in_the_way_is_refused() {
    let world = World::new();
    let base = changed(&world);
    world.write("new.txt/mine", "x\n");
    world.refused(&world.request(base, Mode::Merge), Reason::Dirty);
    world.refused(&world.request(base, Mode::Apply), Reason::Dirty);
}

#[test]
fn flags_of_the_index_do_not_hide_a_change() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let world = World::new();
        let base = changed(&world);
        world.write("README", "Mine.\n");
        world.git(&["update-index", flag, "README"]);
        world.refused(&world.request(base, Mode::Merge), Reason::Dirty);
    }
}

#[test]
fn a_file_that_is_only_announced_to_the_index() {
    let world = World::new();
    let base = changed(&world);
    world.write("new.txt", "new\n");
    world.git(&["add", "-N", "new.txt"]);
    world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!(world.status(), "");
}

#[test]
fn unmerged_and_unfinished_is_refused_but_a_branch_can_be_made() {
    let world = World::new();
    let base = changed(&world);
    world.git(&["switch", "-q", "-c", "side"]);
    world.write("README", "side\n");
    world.commit("side");
    world.git(&["switch", "-q", "main"]);
    world.write("README", "main\n");
    world.commit("main");
    assert_eq!(world.run_git(&world.repo(), &["merge", "side"]).code, 1);
    for mode in [Mode::Merge, Mode::Apply] {
        world.refused(&world.request(base, mode), Reason::Operation);
    }
    fs_err::remove_file(world.repo().join(".git/MERGE_HEAD")).unwrap();
    world.refused(&world.request(base, Mode::Apply), Reason::Dirty);
    let mut request = world.request(base, branch("b"));
    request.only = vec![rel("new.txt")];
    world.succeeds_though_locked(&request);
}

#[test]
fn every_operation_in_progress_is_named() {
    for sign in [
        "MERGE_HEAD",
        "CHERRY_PICK_HEAD",
        "REVERT_HEAD",
        "rebase-merge/",
        "rebase-apply/",
        "BISECT_LOG",
        "sequencer/",
    ] {
        let world = World::new();
        let base = changed(&world);
        let path = world.repo().join(".git").join(sign.trim_end_matches('/'));
        if sign.ends_with('/') {
            fs_err::create_dir(&path).unwrap();
        } else {
            fs_err::write(&path, world.git(&["rev-parse", "HEAD"])).unwrap();
        }
        world.refused(&world.request(base, Mode::Merge), Reason::Operation);
        world.refused(&world.request(base, Mode::Apply), Reason::Operation);
        world.succeeds_though_locked(&world.request(base, branch("b")));
    }
}

#[test]
fn a_lock_is_respected_and_never_removed() {
    for lock in ["index.lock", "HEAD.lock", "refs/heads/main.lock", "packed-refs.lock"] {
        let world = World::new();
        let base = changed(&world);
        fs_err::write(world.repo().join(".git").join(lock), "").unwrap();
        world.refused(&world.request(base, Mode::Merge), Reason::Locked);
        assert!(world.repo().join(".git").join(lock).exists());
    }
}

#[test]
fn a_detached_head_takes_a_branch_and_files_but_no_commit() {
    let world = World::new();
    world.git(&["checkout", "-q", "--detach"]);
    let base = changed(&world);
    let refused = world.refused(&world.request(base, Mode::Merge), Reason::Detached);
    assert!(refused.next[0].contains("export --branch"));
    world.succeeds(&world.request(base, branch("b")));
    world.succeeds(&world.request(base, Mode::Apply));
    assert_eq!(world.read("README"), "Another.\n");
}

#[test]
fn an_unborn_branch_gets_its_first_commit() {
    let world = World::new();
    world.git(&["checkout", "-q", "--orphan", "fresh"]);
    world.git(&["rm", "-q", "-r", "-f", "."]);
    let base = world.enter();
    world.inside_write("new.txt", "new\n");
    world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!(world.git(&["log", "--format=%P", "fresh"]).trim(), "");
    assert_eq!(world.status(), "");
}

#[test]
fn a_linked_worktree_is_a_target_like_any_other() {
    let world = World::new();
    world.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    let base = changed(&world);
    let main = world.git(&["rev-parse", "main"]);
    let mut request = world.request(base, Mode::Merge);
    request.target = host(&world.root().join("linked"));
    let outcome = merge(&world.means, &request).unwrap();
    assert!(outcome.success, "{outcome:?}");
    let linked = world.root().join("linked");
    assert_eq!(world.git_in(&linked, &["status", "--porcelain"]), "");
    assert_eq!(world.git_in(&linked, &["show", "side:README"]), "Another.\n");
    assert_eq!((world.git(&["rev-parse", "main"]), world.status()), (main, String::new()));

    fs_err::write(world.repo().join(".git/worktrees/linked/HEAD"), "ref: refs/heads/main\n").unwrap();
    world.refused(&world.request(base, Mode::Merge), Reason::CheckedOutTwice);
}

#[test]
fn a_bare_repository_takes_a_branch_only() {
    let world = World::new();
    let base = changed(&world);
    world.git_in(world.root(), &["clone", "-q", "--bare", "repo", "bare"]);
    let naked = world.root().join("bare");
    for (mode, reason) in [(Mode::Merge, Reason::Bare), (Mode::Apply, Reason::Bare)] {
        let mut request = world.request(base, mode);
        request.target = host(&naked);
        let outcome = world.merge(&request);
        assert!(matches!(&outcome.outcome, Outcome::Refused { refusal } if refusal.reason == reason));
    }
    let mut request = world.request(base, branch("b"));
    request.target = host(&naked);
    assert!(world.merge(&request).success);
    assert_eq!(world.git_in(&naked, &["show", "b:README"]), "Another.\n");
}

#[test]
fn history_that_was_rewritten_or_cut_off_is_no_obstacle() {
    let world = World::new();
    let base = changed(&world);
    world.write("docs/guide.txt", "amended\n");
    world.git(&["commit", "-q", "-a", "--amend", "-m", "rewritten"]);
    world.git(&["reflog", "expire", "--expire=now", "--all"]);
    world.git(&["gc", "-q", "--prune=now"]);
    world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!((world.status(), world.read("README")), (String::new(), "Another.\n".into()));

    let world = World::new();
    world.write("more.txt", "more\n");
    world.commit("second");
    fs_err::rename(world.repo(), world.root().join("origin")).unwrap();
    let origin = format!("file://{}", world.root().join("origin").display());
    world.git_in(world.root(), &["clone", "-q", "--depth=1", &origin, "repo"]);
    let base = changed(&world);
    world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!(world.git(&["rev-list", "--count", "HEAD"]).trim(), "2");
    let bundle = host(&world.root().join("b.bundle"));
    world.inside_write("newer.txt", "x\n");
    world.succeeds(&world.request(base, Mode::Bundle { file: bundle, branch: "b".to_owned() }));
}

#[test]
fn a_partial_clone_is_never_completed_behind_the_users_back() {
    let world = World::new();
    fs_err::rename(world.repo(), world.root().join("origin")).unwrap();
    let origin = world.root().join("origin");
    world.git_in(&origin, &["config", "uploadpack.allowFilter", "true"]);
    let base_world = || {
        let url = format!("file://{}", origin.display());
        world.git_in(world.root(), &["clone", "-q", "--filter=blob:none", &url, "repo"]);
    };
    base_world();
    let base = changed(&world);
    world.inside_write("docs/guide.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!(world.status(), "");

    world.git_in(&origin, &["checkout", "-q", "-b", "later"]);
    fs_err::write(origin.join("docs/guide.txt"), "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n").unwrap();
    world.git_in(&origin, &["commit", "-q", "-a", "-m", "later"]);
    fs_err::remove_dir_all(world.repo()).unwrap();
    let url = format!("file://{}", origin.display());
    world.git_in(
        world.root(),
        &["clone", "-q", "--filter=blob:none", "--no-checkout", "-b", "later", &url, "repo"],
    );
    let outcome = world.merge(&world.request(base, branch("b")));
    assert!(
        matches!(&outcome.outcome, Outcome::Refused { refusal } if refusal.reason == Reason::Missing),
        "{:?}",
        outcome.outcome
    );
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    for sparse_index in ["--no-sparse-index", "--sparse-index"] {
        let world = World::new();
        let base = world.enter();
        world.inside_write("README", "Another.\n");
        world.inside_write("docs/guide.txt", "Another.\n");
        world.inside_write("docs/new.txt", "new\n");
        world.git(&["sparse-checkout", "set", "--cone", sparse_index, "src"]);
        assert!(!world.repo().join("docs").exists());
        let request = world.request(base, Mode::Merge);
        world.succeeds(&request);
        assert_eq!(world.status(), "", "{sparse_index}");
        assert!(!world.repo().join("docs").exists(), "not shown, not written");
        assert_eq!(world.git(&["show", "HEAD:docs/guide.txt"]), "Another.\n");
        world.git(&["sparse-checkout", "disable"]);
        assert_eq!((world.status(), world.read("docs/new.txt")), (String::new(), "new\n".into()));
    }
}

/// Git is the judge: what it would do to make the checkout follow its own rules is nothing.
#[test]
fn new_files_of_a_sparse_checkout_are_where_git_would_have_them() {
    let rules: [(&str, &[&str]); 6] = [
        ("--cone", &["src"]),
        ("--cone", &["src", "docs/api/v2"]),
        ("--cone", &["docs/a*b"]),
        ("--no-cone", &["*.txt"]),
        ("--no-cone", &["/*", "!/docs/", "/docs/api/v2/"]),
        ("--no-cone", &["src/", "!src/new.c", "#comment"]),
    ];
    let paths = ["top.txt", "top.c", "src/new.c", "src/more/new.txt", "docs/new.txt", "docs/api/new.c"];
    let others =
        ["docs/api/v1/new.txt", "docs/api/v2/new.c", "docs/api/v2/x/new.c", "docs/a*b/new.c", "docs/axb/n.c"];
    for (mode, patterns) in rules {
        let world = World::new();
        let base = world.enter();
        for path in paths.iter().chain(&others) {
            world.inside_write(path, "new\n");
        }
        world.git(
            &[&["sparse-checkout", "set", "--skip-checks", "--no-sparse-index", mode][..], patterns].concat(),
        );
        let mut request = world.request(base, Mode::Merge);
        request.approvals = Approvals::All;
        world.succeeds(&request);
        let shown = || {
            let there = |path: &&&str| world.repo().join(path).exists();
            let there: Vec<&str> = paths.iter().chain(&others).filter(there).copied().collect();
            (there, world.git(&["ls-files", "-t"]), world.status())
        };
        let ours = shown();
        world.git(&["sparse-checkout", "reapply"]);
        assert_eq!(ours, shown(), "{mode} {patterns:?}");
        assert!((1..paths.len() + others.len()).contains(&ours.0.len()), "{mode} {patterns:?}: {ours:?}");
    }
}

#[test]
fn populated_submodules_are_left_alone() {
    let world = World::new();
    world.git_in(world.root(), &["clone", "-q", "repo", "module"]);
    world.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../module", "sub"]);
    world.commit("submodule");
    let base = changed(&world);
    let before = Fingerprint::of(&world.repo().join("sub"), &[]);
    let mut request = world.request(base, Mode::Merge);
    request.approvals = Approvals::Paths(BTreeSet::new());
    request.only = vec![rel("README"), rel("new.txt")];
    world.succeeds(&request);
    assert_eq!((world.status(), before), (String::new(), Fingerprint::of(&world.repo().join("sub"), &[])));
}

#[test]
fn names_that_differ_in_case_only_are_refused_where_they_are_one() {
    let world = World::new();
    world.git(&["config", "core.ignorecase", "true"]);
    let base = world.enter();
    world.inside_write("readme", "x\n");
    let outcome = world.refused(&world.request(base, Mode::Merge), Reason::CaseCollision);
    let Outcome::Refused { refusal } = outcome.outcome else { unreachable!() };
    assert!(refusal.paths[0].why.contains("README"), "{refusal:?}");
}

#[test]
fn required_signatures_and_hooks_are_not_gone_around_in_silence() {
    let world = World::new();
    let base = changed(&world);
    world.git(&["config", "commit.gpgSign", "true"]);
    world.refused(&world.request(base, Mode::Merge), Reason::Signing);
    world.git(&["config", "commit.gpgSign", "false"]);
    world.git(&["config", "core.hooksPath", "/nonexistent"]);
    let outcome = world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!(outcome.notes[0].code, "hooks-not-run");
}

#[test]
fn a_git_directory_that_could_be_the_sandboxs_is_refused() {
    let world = World::new();
    let base = changed(&world);
    fs_err::rename(world.repo().join(".git"), world.repo().join("evil")).unwrap();
    for text in ["gitdir: evil\n", "gitdir: ./evil/../evil\n", "nonsense\n", "gitdir: /nonexistent\n"] {
        fs_err::write(world.repo().join(".git"), text).unwrap();
        world.refused(&world.request(base, Mode::Merge), Reason::GitDirectory);
        world.refused(&world.request(base, Mode::Apply), Reason::GitDirectory);
    }
    fs_err::remove_file(world.repo().join(".git")).unwrap();
    fs_err::os::unix::fs::symlink("evil", world.repo().join(".git")).unwrap();
    world.refused(&world.request(base, Mode::Merge), Reason::GitDirectory);
}

#[test]
fn a_repository_of_somebody_else_is_refused_unless_trusted() {
    if !sandtable_testkit::require::is_root() {
        return sandtable_testkit::require::skip("giving a file away needs root");
    }
    let world = World::new();
    let base = changed(&world);
    std::os::unix::fs::chown(world.repo().join(".git"), Some(54_321), None).unwrap();
    world.refused(&world.request(base, Mode::Merge), Reason::Owner);
    let trust = format!("[safe]\n\tdirectory = {}\n", world.repo().display());
    fs_err::write(world.root().join("home/.gitconfig"), trust).unwrap();
    world.succeeds(&world.request(base, Mode::Merge));
}

#[test]
fn a_target_with_an_odd_path_works_too() {
    let world = World::new();
    let base = changed(&world);
    let odd = world.root().join("-odd\n\"name\" with\\everything");
    fs_err::rename(world.repo(), &odd).unwrap();
    let mut request = world.request(base, Mode::Merge);
    request.target = host(&odd);
    let outcome = world.merge(&request);
    assert!(outcome.success, "{outcome:?}");
    assert_eq!(world.git_in(&odd, &["status", "--porcelain"]), "");
}

impl World {
    /// Success where the index itself is not in order.
    #[track_caller]
    fn succeeds_though_locked(&self, request: &sandtable_merge::MergeRequest) {
        let outcome = self.merge(request);
        assert!(outcome.success, "{outcome:#?}");
    }
}
