//! Repositories whose git directory, or a part of it, is somewhere else: nothing is written there unless that place belongs to
//! the directory.

use std::path::Path;

use fs_err::os::unix::fs::symlink;
use sandtable_merge::{Mode, Outcome, Reason};
use sandtable_testkit::fingerprint::Fingerprint;

use crate::states::changed;
use crate::world::World;

fn modes() -> [Mode; 3] {
    [Mode::Merge, Mode::Apply, Mode::Branch("new".to_owned())]
}

/// The text of the refusal, and what to do.
fn refusal(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Refused { refusal } => format!("{}\n{}", refusal.text, refusal.next.join("\n")),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_file_in_the_place_of_dot_git_that_names_another_repository_is_refused() {
    let world = World::new();
    let base = changed(&world);
    world.git_in(world.root(), &["clone", "-q", "repo", "other"]);
    let (other, own) = (world.root().join("other"), world.repo().join(".git"));
    fs_err::rename(&own, world.root().join("away")).unwrap();
    fs_err::write(&own, format!("gitdir: {}\n", other.join(".git").display())).unwrap();
    let before = Fingerprint::of(&other, &[]);
    for mode in modes() {
        let refused = world.refused(&world.request(base, mode), Reason::GitDirectory);
        let text = refusal(&refused.outcome);
        assert!(text.contains("does not name") && text.contains("git config core.worktree"), "{text}");
    }
    assert_eq!(before.differences(&Fingerprint::of(&other, &[])), [""; 0]);
    // A setting of the user's for all repositories says nothing about this one.
    let home = world.root().join("home/.gitconfig");
    fs_err::write(&home, format!("[core]\n\tworktree = {}\n", world.repo().display())).unwrap();
    world.refused(&world.request(base, Mode::Merge), Reason::GitDirectory);
    fs_err::remove_file(home).unwrap();
    // It belongs to a third directory.
    fs_err::create_dir(world.root().join("third")).unwrap();
    world.git_in(&other, &["config", "core.worktree", "../../third"]);
    world.refused(&world.request(base, Mode::Merge), Reason::GitDirectory);
}

#[test]
fn a_commondir_that_leads_to_another_repository_is_refused() {
    // In `.git` itself, or in a directory that came beside the worktree and points back to it.
    for beside in [false, true] {
        let world = World::new();
        let base = changed(&world);
        world.git_in(world.root(), &["clone", "-q", "repo", "other"]);
        let other = world.root().join("other");
        let mut git_dir = world.repo().join(".git");
        if beside {
            let evil = world.root().join("evil");
            fs_err::rename(&git_dir, &evil).unwrap();
            fs_err::write(&git_dir, "gitdir: ../evil\n").unwrap();
            fs_err::write(evil.join("gitdir"), "../repo/.git\n").unwrap();
            git_dir = evil;
        }
        fs_err::write(git_dir.join("commondir"), format!("{}\n", other.join(".git").display())).unwrap();
        let before = Fingerprint::of(&other, &[]);
        for mode in modes() {
            world.refused(&world.request(base, mode), Reason::GitDirectory);
        }
        assert_eq!(before.differences(&Fingerprint::of(&other, &[])), [""; 0]);
    }
}

#[test]
fn a_git_directory_that_names_its_worktree_is_used() {
    for worktree in ["../repo", "absolute"] {
        let world = World::new();
        let base = changed(&world);
        world.git(&["init", "-q", "--separate-git-dir=../apart"]);
        world.refused(&world.request(base, Mode::Merge), Reason::GitDirectory);
        let absolute = world.repo();
        let named = if worktree == "absolute" { absolute.as_path() } else { Path::new(worktree) };
        world.git(&["config", "core.worktree", named.to_str().unwrap()]);
        world.succeeds(&world.request(base, Mode::Branch("new".to_owned())));
        world.succeeds(&world.request(base, Mode::Merge));
        assert_eq!(world.status(), "");
    }
}

#[test]
fn a_submodule_is_a_target() {
    let world = World::new();
    let base = changed(&world);
    world.git_in(world.root(), &["clone", "-q", "repo", "module"]);
    world.git_in(world.root(), &["init", "-q", "-b", "main", "around"]);
    let around = world.root().join("around");
    world.git_in(
        &around,
        &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../module", "sub"],
    );
    let target = sandtable_sandbox::model::path::HostPath::new(around.join("sub")).unwrap();
    let request = sandtable_merge::MergeRequest { target, ..world.request(base, Mode::Merge) };
    let outcome = world.merge(&request);
    assert!(outcome.success, "{outcome:#?}");
    assert_eq!(world.git_in(&around.join("sub"), &["log", "--format=%s", "-1"]).trim(), "Work");
}

#[test]
fn a_link_in_the_git_directory_that_leads_elsewhere_is_refused() {
    let links = ["logs", "logs/refs", "logs/refs/heads", "objects/pack", "refs", "refs/heads"];
    for name in links {
        let world = World::new();
        let base = changed(&world);
        let (link, victim) = (world.repo().join(".git").join(name), world.root().join("victim"));
        fs_err::rename(&link, &victim).unwrap();
        symlink(&victim, &link).unwrap();
        let before = Fingerprint::of(&victim, &[]);
        for mode in modes() {
            let refused = world.refused(&world.request(base, mode), Reason::GitDirectory);
            let text = refusal(&refused.outcome);
            assert!(text.contains(&format!("{name}` is a link")), "{text}");
        }
        assert_eq!(before.differences(&Fingerprint::of(&victim, &[])), [""; 0], "{name}");
    }
}

#[test]
fn a_link_on_the_way_to_a_new_branch_or_its_reflog_is_refused() {
    for folder in ["refs/heads/d", "logs/refs/heads/d"] {
        let world = World::new();
        let base = changed(&world);
        let victim = world.root().join("victim");
        fs_err::create_dir(&victim).unwrap();
        fs_err::write(victim.join("keep"), "mine\n").unwrap();
        symlink(&victim, world.repo().join(".git").join(folder)).unwrap();
        for name in ["d/keep", "d/e/f"] {
            let request = world.request(base, Mode::Branch(name.to_owned()));
            world.refused(&request, Reason::GitDirectory);
        }
        assert_eq!(fs_err::read_to_string(victim.join("keep")).unwrap(), "mine\n");
        assert_eq!(fs_err::read_dir(&victim).unwrap().count(), 1);
        // Nothing is written there for another branch.
        assert!(world.merge(&world.request(base, Mode::Merge)).success);
    }
}
