//! What a review knows besides names: links of the repository, the user's own configuration, and what was shown before.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use sandtable_sandbox::merge::{Approvals, Effect, MergeOutcome, Mode, Outcome, Reason};

use crate::world::{World, rel};

/// Paths that are held, each with the name by which it matters.
fn held(outcome: &MergeOutcome) -> BTreeMap<String, String> {
    let Outcome::Held { held } = &outcome.outcome else { panic!("not held: {outcome:?}") };
    let name = |finding: &sandtable_sandbox::merge::review::Finding| {
        let alias = finding.alias.as_ref().map(|alias| alias.path.clone());
        (finding.path.path.clone(), alias.unwrap_or_default())
    };
    held.iter().map(name).collect()
}

fn linked(world: &World, text: &str, at: &str) {
    fs_err::os::unix::fs::symlink(text, world.repo().join(at)).unwrap();
}

#[test]
fn hooks_programs_and_settings_that_exist_already_are_held_under_every_name() {
    let world = World::new();
    world.write("dev/checks/pre-commit", "#!/bin/sh\n");
    world.write("tools/editor/tasks.json", "{}\n");
    world.write("meta/rules.txt", "all:\n");
    world.write("conf/actual", "x\n");
    linked(&world, "tools/editor", ".vscode");
    linked(&world, "meta/rules.txt", "Makefile");
    linked(&world, "mid", ".npmrc");
    linked(&world, "conf/actual", "mid");
    world.write("run.sh", "#!/bin/sh\n");
    fs_err::set_permissions(world.repo().join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    world.commit("sample");
    world.git(&["config", "core.hooksPath", "dev/checks"]);
    let base = world.enter();
    for path in
        ["dev/checks/pre-commit", "tools/editor/tasks.json", "meta/rules.txt", "conf/actual", "run.sh"]
    {
        world.inside_write(path, "#!/bin/sh\ntouch FIRED\n");
    }
    world.inside_write("src/main.c", "int main(void) { return 1; }\n");
    let before = world.fingerprint();
    for mode in [Mode::Merge, Mode::Apply, Mode::Branch("b".to_owned())] {
        let outcome = world.merge(&world.request(base, mode));
        let expected = [
            ("conf/actual", ".npmrc"),
            ("dev/checks/pre-commit", ""),
            ("meta/rules.txt", "Makefile"),
            ("run.sh", ""),
            ("tools/editor/tasks.json", ".vscode/tasks.json"),
        ];
        assert_eq!(held(&outcome), expected.map(|(path, alias)| (path.to_owned(), alias.to_owned())).into());
    }
    assert_eq!(before.differences(&world.fingerprint()), [""; 0]);
}

#[test]
fn links_of_the_work_itself_and_ignored_ones_of_the_user_count() {
    let world = World::new();
    world.write(".gitignore", ".vscode\n");
    world.commit("ignored");
    let base = world.enter();
    linked(&world, "docs", ".vscode");
    world.inside_write("docs/guide.txt", "one\n");
    world.inside_write("etc/config.json", "{}\n");
    fs_err::os::unix::fs::symlink("etc", world.inside().join(".docker")).unwrap();
    let outcome = world.merge(&world.request(base, Mode::Merge));
    assert_eq!(
        held(&outcome),
        BTreeMap::from([
            ("docs/guide.txt".to_owned(), ".vscode/guide.txt".to_owned()),
            ("etc/config.json".to_owned(), ".docker/config.json".to_owned()),
        ])
    );
}

#[test]
fn every_place_that_the_users_configuration_names_is_held() {
    for (setting, value) in [
        ("core.hooksPath", "docs/.."),
        ("core.hooksPath", "src/deep"),
        ("include.path", "../src/deep/er/util.c"),
        ("filter.x.clean", "sh src/deep/er/util.c"),
        ("alias.go", "!src/deep/er/util.c now"),
        ("core.fsmonitor", "./src/deep/er/util.c"),
    ] {
        for scope in ["--local", "--global"] {
            // A file that a user includes from home is named from there.
            if scope == "--global" && setting == "include.path" {
                continue;
            }
            let world = World::new();
            // It can be read as configuration too.
            world.write("src/deep/er/util.c", "# nothing\n");
            world.commit("a comment");
            world.git(&["config", scope, setting, value]);
            let base = world.enter();
            world.inside_write("src/deep/er/util.c", "# other\n");
            let outcome = world.merge(&world.request(base, Mode::Merge));
            assert!(held(&outcome).contains_key("src/deep/er/util.c"), "{scope} {setting}");
        }
    }
    let world = World::new();
    world.git(&["config", "core.hooksPath", "hooks-of-mine"]);
    world.git(&["config", "alias.go", "log src/deep/er/util.c"]);
    let base = world.enter();
    world.inside_write("src/deep/er/util.c", "int other;\n");
    world.succeeds(&world.request(base, Mode::Merge));
}

#[test]
fn directories_of_other_version_control_are_never_brought_over() {
    for path in [".hg/hgrc", "sub/.SVN/x", "CVS/Root", "_darcs/x"] {
        let world = World::new();
        let base = world.enter();
        world.inside_write(path, "x\n");
        let mut request = world.request(base, Mode::Merge);
        request.approvals = Approvals::All;
        world.refused(&request, Reason::Unsafe);
    }
}

#[test]
fn what_is_flagged_is_told_and_passes() {
    let world = World::new();
    let base = world.enter();
    world.inside_write(".dockerignore", "target\n");
    world.inside_write("setup.ps1", "echo\n");
    let outcome = world.succeeds(&world.request(base, Mode::Merge));
    let flagged: BTreeSet<&str> = outcome.flagged.iter().map(|finding| finding.path.path.as_str()).collect();
    assert_eq!(flagged, BTreeSet::from([".dockerignore", "setup.ps1"]));
}

/// A repository, work that is held, and a request for it that is remembered by name.
fn asked(world: &World) -> (sandtable_sandbox::merge::ObjectId, sandtable_sandbox::merge::MergeRequest) {
    let base = world.enter();
    world.inside_write("Makefile", "all:\n\ttrue\n");
    let mut request = world.request(base, Mode::Merge);
    request.binding.work = Some("box".to_owned());
    (base, request)
}

#[test]
fn an_approval_is_of_what_was_shown() {
    for approvals in [Approvals::Paths(BTreeSet::from([rel("Makefile")])), Approvals::All] {
        let world = World::new();
        let (base, request) = asked(&world);
        let shown = held(&world.merge(&request));
        assert_eq!(shown.len(), 1);
        world.inside_write("Makefile", "all:\n\ttouch FIRED\n");
        let mut other = world.request(base, Mode::Merge);
        other.binding = request.binding.clone();
        other.approvals = approvals;
        let outcome = world.refused(&other, Reason::Approval);
        let Outcome::Refused { refusal } = &outcome.outcome else { panic!("{outcome:?}") };
        let why = &refusal.paths[0];
        assert!(why.path.path == "Makefile" && why.why.contains("it was `"), "{refusal:?}");
        // It was told now: whoever approves it again has been told.
        world.succeeds(&other);
        assert!(world.read("Makefile").contains("FIRED"));
    }
}

#[test]
fn a_path_that_was_not_shown_is_not_approved_with_the_rest() {
    let world = World::new();
    let (base, request) = asked(&world);
    world.merge(&request);
    world.inside_write("package.json", "{}\n");
    let mut more = world.request(base, Mode::Merge);
    more.binding = request.binding.clone();
    more.approvals = Approvals::All;
    let outcome = world.refused(&more, Reason::Approval);
    assert!(format!("{outcome:?}").contains("new since the last answer"), "{outcome:?}");
}

#[test]
fn what_was_not_asked_about_before_is_approved_as_it_is() {
    let world = World::new();
    let (_, mut request) = asked(&world);
    request.approvals = Approvals::Paths(BTreeSet::from([rel("Makefile")]));
    world.succeeds(&request);
}

#[test]
fn ids_are_checked_always_and_say_content_and_plan() {
    let world = World::new();
    let (base, mut request) = asked(&world);
    request.effect = Effect::Plan;
    let first = world.merge(&request);
    let Outcome::Held { held } = &first.outcome else { panic!("{first:?}") };
    let (id, plan) = (held[0].id.clone(), first.plan.clone().unwrap());
    world.inside_write("Makefile", "all:\n\ttouch FIRED\n");
    let mut other = world.request(base, Mode::Merge);
    other.approvals = Approvals::Paths(BTreeSet::from([rel("Makefile")]));
    other.binding.contents.insert(rel("Makefile"), BTreeSet::from([id.clone()]));
    for _ in 0..2 {
        world.refused(&other, Reason::Approval);
    }
    let mut whole = other.clone();
    (whole.approvals, whole.binding.contents, whole.binding.plan) =
        (Approvals::All, BTreeMap::new(), Some(plan.clone()));
    for _ in 0..2 {
        world.refused(&whole, Reason::Approval);
    }
    world.inside_write("Makefile", "all:\n\ttrue\n");
    let mut same = world.request(base, Mode::Merge);
    (same.approvals, same.binding) = (whole.approvals, whole.binding);
    let mut by_path = same.clone();
    (by_path.approvals, by_path.binding) = (other.approvals, other.binding);
    by_path.effect = Effect::Plan;
    assert!(world.merge(&by_path).success);
    world.succeeds(&same);
}
