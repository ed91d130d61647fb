//! What a review knows besides names: links of the repository, the user's own configuration, and what was shown before.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use sandtable_merge::{Approvals, Effect, MergeOutcome, Mode, Outcome, Reason};

use crate::world::{World, rel};

/// Paths that are held, each with the name by which it matters.
fn held(outcome: &MergeOutcome) -> BTreeMap<String, String> {
    let Outcome::Held { held } = &outcome.outcome else { panic!("not held: {outcome:?}") };
    let name = |finding: &sandtable_merge::review::Finding| {
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
            (".docker".to_owned(), String::new()),
            ("docs/guide.txt".to_owned(), ".vscode/guide.txt".to_owned()),
            ("etc/config.json".to_owned(), ".docker/config.json".to_owned()),
        ])
    );
}

#[test]
fn a_link_above_a_place_that_the_configuration_names_is_held() {
    for (there, link) in [("unrelated", "dev"), ("dev", "to")] {
        let world = World::new();
        linked(&world, "to", there);
        world.git(&["add", "-A"]);
        world.commit("a link that leads nowhere yet");
        world.git(&["config", "core.hooksPath", "dev/deep"]);
        let base = world.enter();
        fs_err::os::unix::fs::symlink("src", world.inside().join(link)).unwrap();
        let outcome = world.merge(&world.request(base, Mode::Merge));
        assert!(held(&outcome).contains_key(link), "{link}: {outcome:?}");
    }
}

/// Work on one file, which is held because of something of the user's.
fn holds(world: &World, path: &str) {
    let base = world.enter();
    world.inside_write(path, "# other\n");
    let outcome = world.merge(&world.request(base, Mode::Merge));
    assert!(held(&outcome).contains_key(path), "{path}: {outcome:?}");
}

#[test]
fn what_links_in_the_git_directory_lead_to_is_held() {
    for (text, at, path) in [
        ("../src/deep", ".git/hooks", "src/deep/er/util.c"),
        ("../../src/deep/er/util.c", ".git/hooks/pre-commit", "src/deep/er/util.c"),
        ("../../notes/attributes", ".git/info/attributes", "notes/attributes"),
        ("../../notes/exclude", ".git/info/exclude", "notes/exclude"),
        ("../../../notes/lib.config", ".git/modules/lib/config", "notes/lib.config"),
    ] {
        let world = World::new();
        let link = world.repo().join(at);
        drop(fs_err::remove_file(&link));
        drop(fs_err::remove_dir_all(&link));
        fs_err::create_dir_all(link.parent().unwrap()).unwrap();
        if at.contains("modules") {
            fs_err::write(link.with_file_name("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        linked(&world, text, at);
        holds(&world, path);
    }
}

#[test]
fn what_dot_files_of_the_home_directory_lead_to_is_held() {
    for (at, path) in [
        (".bashrc", "dot/bashrc"),
        (".unheard-of-rc", "dot/rc"),
        (".config", "dot/fish/config.fish"),
        (".config/fish/config.fish", "dot"),
        (".ssh/rc", "dot/rc"),
        ("bin", "dot/tool.txt"),
    ] {
        let world = World::new();
        let link = world.root().join("home").join(at);
        fs_err::create_dir_all(link.parent().unwrap()).unwrap();
        // What the link leads to need not be there yet.
        let to = path.strip_suffix("/fish/config.fish").unwrap_or(path);
        let to = to.strip_suffix("/tool.txt").unwrap_or(to);
        fs_err::os::unix::fs::symlink(world.repo().join(to), &link).unwrap();
        holds(&world, path);
    }
    // A link to all of it is another name of it, unless programs read what has that name.
    for (at, holds) in [(".dotfiles", false), ("dotfiles", false), (".vim", true)] {
        let world = World::new();
        fs_err::os::unix::fs::symlink(world.repo(), world.root().join("home").join(at)).unwrap();
        let base = world.enter();
        world.inside_write("src/deep/er/util.c", "int other;\n");
        let outcome = world.merge(&world.request(base, Mode::Merge));
        assert_eq!(outcome.success, !holds, "{at}: {outcome:?}");
    }
}

#[test]
fn a_path_from_the_home_directory_of_another_user_is_read_as_git_reads_it() {
    let world = World::new();
    let above = "/..".repeat(10);
    let path = format!("~root{above}{}", world.repo().join("src/deep").display());
    world.git(&["config", "core.hooksPath", &path]);
    holds(&world, "src/deep/er/util.c");
}

#[test]
fn a_word_of_a_command_that_a_shell_takes_for_a_file_is_held() {
    for (setting, value, path) in [
        ("alias.go", "!sh deploy", "deploy"),
        ("alias.go", "!cd src/deep && . ./er", "src/deep/er"),
        ("alias.go", "!node server", "server/index.js"),
        ("alias.go", "-c core.pager=src/page log", "src/page"),
        ("diff.x.textconv", "awk -f conv", "conv"),
        ("tar.zip.command", "./src/pack", "src/pack"),
        ("diff.orderFile", "src/order", "src/order"),
        ("core.pager", "$(git rev-parse --show-toplevel)/src/page", "src/page"),
    ] {
        let world = World::new();
        world.git(&["config", setting, value]);
        let base = world.enter();
        if path.ends_with("/er") {
            fs_err::remove_dir_all(world.inside().join(path)).unwrap();
        }
        world.inside_write(path, "# other\n");
        let outcome = world.merge(&world.request(base, Mode::Merge));
        assert!(held(&outcome).contains_key(path), "{value}: {outcome:?}");
    }
}

#[test]
fn what_hooks_elsewhere_lead_to_is_held() {
    let world = World::new();
    let hooks = world.root().join("my-hooks");
    fs_err::create_dir_all(&hooks).unwrap();
    fs_err::os::unix::fs::symlink(world.repo().join("src/deep/er/util.c"), hooks.join("pre-commit")).unwrap();
    world.git(&["config", "core.hooksPath", hooks.to_str().unwrap()]);
    holds(&world, "src/deep/er/util.c");
}

#[test]
fn what_the_configuration_of_a_submodule_names_is_held() {
    let world = World::new();
    let module = world.repo().join(".git/modules/lib");
    for folder in ["objects", "refs"] {
        fs_err::create_dir_all(module.join(folder)).unwrap();
    }
    fs_err::write(module.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let text = "[core]\n\tworktree = ../../../vendor/lib\n\thooksPath = ../../src/deep\n";
    fs_err::write(module.join("config"), text).unwrap();
    holds(&world, "src/deep/er/util.c");
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

/// Work on a file that the configuration names, with the user's variables; whether git itself knows the setting is asked of it.
fn merged_with(world: &World, variables: &[(&str, &str)], setting: &str) -> MergeOutcome {
    let mut world_git = sandtable_testkit::process::Run::new("git", &world.repo());
    world_git =
        world_git.variable("PATH", sandtable_testkit::env::PATH).variable("HOME", world.root().join("home"));
    for (name, value) in variables {
        world_git = world_git.variable(name, value);
    }
    let oracle =
        world_git.args(["config", "--list", "--show-origin", "--includes"]).ended().expect_code(0).stdout;
    assert!(oracle.to_lowercase().contains(setting), "git knows it: {oracle}");
    let mut means = world.means.clone();
    means.git_variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let base = world.enter();
    world.inside_write("src/deep/er/util.c", "# other\n");
    sandtable_merge::merge(&means, &world.request(base, Mode::Merge)).unwrap()
}

#[test]
fn configuration_that_variables_bring_counts() {
    let hooks = "core.hookspath=src/deep";
    let file = |world: &World, name: &str, text: &str| {
        let path = world.root().join(name);
        crate::world::write(&path, text.as_bytes());
        path.display().to_string()
    };
    let text = "[core]\n\thooksPath = src/deep\n";
    let world = World::new();
    file(&world, "xdg/git/config", text);
    let xdg = world.root().join("xdg").display().to_string();
    assert_eq!(held(&merged_with(&world, &[("XDG_CONFIG_HOME", &xdg)], hooks)).len(), 1);

    let world = World::new();
    let global = file(&world, "other.config", text);
    assert_eq!(held(&merged_with(&world, &[("GIT_CONFIG_GLOBAL", &global)], hooks)).len(), 1);

    let world = World::new();
    let pair = [
        ("GIT_CONFIG_COUNT", "2"),
        ("GIT_CONFIG_KEY_0", "core.hooksPath"),
        ("GIT_CONFIG_VALUE_0", "src/deep"),
        ("GIT_CONFIG_KEY_1", "credential.helper"),
        ("GIT_CONFIG_VALUE_1", ""),
    ];
    assert_eq!(held(&merged_with(&world, &pair, hooks)).len(), 1);

    let world = World::new();
    assert_eq!(
        held(&merged_with(&world, &[("GIT_CONFIG_PARAMETERS", "'core.hookspath'='src/deep'")], hooks)).len(),
        1
    );
    // And none of it is ours to take where it does not say so.
    let world = World::new();
    let outcome = merged_with(&world, &[("GIT_CONFIG_GLOBAL", "/dev/null")], "core.bare");
    assert!(outcome.success, "{outcome:?}");
}

#[test]
fn a_file_that_an_included_file_includes_is_found_from_its_own_place() {
    let world = World::new();
    crate::world::write(&world.root().join("conf/one"), b"[include]\n\tpath = ../repo/src/deep/er/util.c\n");
    world.write("src/deep/er/util.c", "# nothing\n");
    world.commit("a comment");
    let one = world.root().join("conf/one").display().to_string();
    world.git(&["config", "--global", "include.path", &one]);
    assert!(world.repo().ends_with("repo"), "as the file says");
    assert_eq!(held(&merged_with(&world, &[], "include.path=../repo/src")).len(), 1);
}

#[test]
fn the_users_configuration_is_held_where_it_is_a_file_of_the_worktree() {
    let world = World::new();
    world.write("src/deep/er/util.c", "# nothing\n");
    world.commit("a comment");
    let own = world.root().join("home/.gitconfig");
    drop(fs_err::remove_file(&own));
    fs_err::os::unix::fs::symlink(world.repo().join("src/deep/er/util.c"), &own).unwrap();
    assert_eq!(held(&merged_with(&world, &[], "core.bare")).len(), 1);
}

#[test]
fn a_link_that_names_the_repository_otherwise_gives_its_paths_names_too() {
    // Beside a directory above it, and in the home directory.
    for name in ["other", "home/other"] {
        let world = World::new();
        let other = world.root().join(name);
        fs_err::os::unix::fs::symlink(world.root(), &other).unwrap();
        linked(&world, other.join("repo/docs").to_str().unwrap(), ".vscode");
        world.git(&["add", "-A"]);
        world.commit("a link");
        let base = world.enter();
        world.inside_write("docs/guide.txt", "one\n");
        let outcome = world.merge(&world.request(base, Mode::Merge));
        let expected = ("docs/guide.txt".to_owned(), ".vscode/guide.txt".to_owned());
        assert_eq!(held(&outcome), BTreeMap::from([expected]), "{name}");
    }
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
fn asked(world: &World) -> (sandtable_merge::ObjectId, sandtable_merge::MergeRequest) {
    let base = world.enter();
    world.inside_write("Makefile", "all:\n\ttrue\n");
    let mut request = world.request(base, Mode::Merge);
    request.binding.work = Some("box".to_owned());
    (base, request)
}

/// The content that a refusal names as the one that is there.
fn id_now(why: &sandtable_merge::outcome::Named) -> String {
    why.why.split('`').nth(3).unwrap().to_owned()
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
        // That it was refused has shown nobody what is there: the same words are refused again.
        world.refused(&other, Reason::Approval);
        let mut named = other.clone();
        named.effect = Effect::Plan;
        named.binding.contents.insert(rel("Makefile"), BTreeSet::from([id_now(why)]));
        assert!(world.merge(&named).success);
        world.refused(&other, Reason::Approval);
        let mut again = other.clone();
        again.approvals = Approvals::None;
        assert_eq!(held(&world.merge(&again)).len(), 1);
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
