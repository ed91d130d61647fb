//! A canary for everything that git runs because something told it to (board/G1–G4, box/G1, G2): planted in the user's
//! own repository, in the sandbox's, in the tree and in the environment. None may ever sing while we work; none that came
//! with the work may sing when the user's plain git looks at the result.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sandtable_merge::{Approvals, MergeRequest, Mode, Undo, undo};
use sandtable_testkit::env::PATH;
use sandtable_testkit::process::Run;
use sandtable_testkit::require;

use crate::world::{World, host, write};

/// Keys whose value is a program, or leads to one.
const KEYS: &[&str] = &[
    "core.fsmonitor",
    "core.hooksPath",
    "core.sshCommand",
    "core.gitProxy",
    "core.askPass",
    "core.editor",
    "core.pager",
    "core.alternateRefsCommand",
    "diff.external",
    "diff.evil.command",
    "diff.evil.textconv",
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "merge.evil.driver",
    "merge.tool",
    "mergetool.evil.cmd",
    "gpg.program",
    "gpg.ssh.program",
    "gpg.x509.program",
    "gpg.ssh.defaultKeyCommand",
    "credential.helper",
    "uploadpack.packObjectsHook",
    "remote.origin.uploadpack",
    "remote.origin.receivepack",
    "remote.origin.vcs",
    "submodule.sub.update",
    "sequence.editor",
    "sendemail.smtpserver",
    "browser.evil.cmd",
    "web.browser",
    "interactive.diffFilter",
    "pager.log",
    "pager.diff",
    "pager.status",
    "pager.config",
    "man.evil.cmd",
    "trailer.evil.command",
    "trailer.evil.cmd",
    "difftool.evil.cmd",
    "gc.recentObjectsHook",
    "receive.procReceiveRefs",
    "init.templateDir",
    "commit.template",
    "alias.status",
    "alias.config",
    "alias.merge-tree",
];

const HOOKS: &[&str] = &[
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "post-rewrite",
    "post-index-change",
    "reference-transaction",
    "fsmonitor-watchman",
    "push-to-checkout",
    "sendemail-validate",
];

const VARIABLES: &[&str] = &[
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EDITOR",
    "GIT_PAGER",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_TEMPLATE_DIR",
    "GIT_EXEC_PATH",
    "LESSOPEN",
];

impl World {
    /// A program that leaves a mark with the name it was given.
    fn canary(&self, name: &str) -> String {
        let folder = self.root().join("canaries");
        fs_err::create_dir_all(self.root().join("songs")).unwrap();
        let path = folder.join(name.replace('/', "_"));
        let song = self.root().join("songs").join(name.replace('/', "_"));
        write(&path, format!("#!/bin/sh\n: > '{}'\nexec cat\n", song.display()).as_bytes());
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn songs(&self) -> Vec<String> {
        let entries = fs_err::read_dir(self.root().join("songs")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Hooks and every key, in one git directory.
    fn poison(&self, git_dir: &Path, label: &str) {
        for hook in HOOKS {
            let canary = self.canary(&format!("{label}-hook-{hook}"));
            fs_err::create_dir_all(git_dir.join("hooks")).unwrap();
            fs_err::copy(canary, git_dir.join("hooks").join(hook)).unwrap();
        }
        let config = git_dir.join("config");
        for key in KEYS {
            let canary = self.canary(&format!("{label}-{key}"));
            let value = match *key {
                "core.hooksPath" | "init.templateDir" => self.hooks(label),
                "alias.status" | "alias.config" | "alias.merge-tree" | "submodule.sub.update" => {
                    format!("!{canary}")
                }
                _ => canary,
            };
            self.git_in(self.root(), &["config", "-f", config.to_str().unwrap(), key, &value]);
        }
        let include = self.root().join(format!("{label}-included"));
        let canary = self.canary(&format!("{label}-included-fsmonitor"));
        write(&include, format!("[core]\n\tfsmonitor = {canary}\n").as_bytes());
        let path = include.to_str().unwrap();
        self.git_in(self.root(), &["config", "-f", config.to_str().unwrap(), "include.path", path]);
    }

    /// A directory of hooks, for `core.hooksPath`.
    fn hooks(&self, label: &str) -> String {
        let folder = self.root().join(format!("{label}-hooks"));
        for hook in HOOKS {
            let canary = self.canary(&format!("{label}-hookspath-{hook}"));
            fs_err::create_dir_all(&folder).unwrap();
            fs_err::copy(canary, folder.join(hook)).unwrap();
        }
        folder.to_str().unwrap().to_owned()
    }
}

const ATTRIBUTES: &str = "* filter=evil diff=evil merge=evil\n*.txt text=auto ident\n";

/// What the sandbox did: attributes for every driver, a git directory of its own full of canaries.
fn poisoned_work(world: &World) -> MergeRequest {
    let base = world.enter();
    world.inside_write(".gitattributes", ATTRIBUTES);
    world.inside_write("README", "Another.\n");
    world.inside_write("docs/guide.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    let mut request = world.request(base, Mode::Merge);
    request.approvals = Approvals::All;
    // After the snapshot: the store never has a git directory in a tree.
    world.git_in(&world.inside(), &["init", "-q"]);
    world.poison(&world.inside().join(".git"), "inside");
    request
}

fn each_mode(world: &World, request: &MergeRequest) {
    let file = |name: &str| host(&world.root().join(name));
    for mode in [
        Mode::Branch("b".to_owned()),
        Mode::Patch(file("p")),
        Mode::Bundle { file: file("q"), branch: "c".to_owned() },
        Mode::Apply,
    ] {
        let outcome = world.merge(&MergeRequest { mode, ..request.clone() });
        assert!(outcome.success, "{outcome:#?}");
    }
}

#[test]
fn nothing_of_the_users_own_configuration_runs_while_we_work() {
    let world = World::new();
    let request = poisoned_work(&world);
    world.write(".gitattributes", ATTRIBUTES);
    world.git(&["add", "."]);
    world.git(&["commit", "-q", "-m", "the same attributes"]);
    world.write("docs/guide.txt", "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    world.git(&["commit", "-q", "-a", "-m", "meanwhile"]);
    world.poison(&world.repo().join(".git"), "target");
    world.poison(&world.store(), "store");
    fs_err::rename(world.repo().join(".git/config"), world.root().join("home/.gitconfig")).unwrap();
    fs_err::copy(world.root().join("home/.gitconfig"), world.repo().join(".git/config")).unwrap();
    // A path under a filter is applied; where only drivers are named, it is committed as well.
    let outcome = world.merge(&MergeRequest { mode: Mode::Apply, ..request });
    assert!(outcome.success, "{outcome:#?}");
    assert_eq!(world.songs(), [""; 0]);
}

#[test]
fn no_hook_and_no_driver_of_the_users_runs_for_a_commit() {
    let world = World::new();
    world.write(".gitattributes", "* diff=evil merge=evil\n");
    world.commit("drivers");
    let base = world.enter();
    world.inside_write("docs/guide.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    let request = world.request(base, Mode::Merge);
    world.write("docs/guide.txt", "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    world.commit("meanwhile");
    world.poison(&world.repo().join(".git"), "target");
    for mode in [Mode::Branch("b".to_owned()), Mode::Merge] {
        let outcome = world.merge(&MergeRequest { mode, ..request.clone() });
        assert!(outcome.success, "{outcome:#?}");
    }
    assert_eq!(world.read("docs/guide.txt"), "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    assert_eq!(world.songs(), [""; 0]);
}

#[test]
fn nothing_that_came_with_the_work_runs_then_or_later() {
    let world = World::new();
    let request = poisoned_work(&world);
    each_mode(&world, &request);
    for args in [["checkout", "-q", "--", "."], ["clean", "-q", "-f", "-d"]].iter().map(|args| &args[..]) {
        world.git(args);
    }
    let outcome = world.succeeds(&request);
    world.git(&["status"]);
    world.git(&["diff", "HEAD~1"]);
    world.git(&["log", "-p"]);
    world.git(&["checkout", "-q", "HEAD~1"]);
    world.git(&["checkout", "-q", "main"]);
    let sandtable_merge::Outcome::FastForward { commit: Some(commit), .. } = outcome.outcome else {
        panic!()
    };
    assert!(
        undo(
            &world.means,
            &Undo { target: host(&world.repo()), commit, branch: None, first: false, log: None }
        )
        .unwrap()
        .outcome
        .is_success()
    );
    assert_eq!(world.songs(), [""; 0]);
}

#[test]
fn the_canaries_do_sing_for_a_git_that_is_not_hardened() {
    let world = World::new();
    world.poison(&world.repo().join(".git"), "target");
    world.write(".gitattributes", ATTRIBUTES);
    world.write("README", "changed\n");
    drop(world.run_git(&world.repo(), &["add", "."]));
    drop(world.run_git(&world.repo(), &["commit", "-q", "-m", "x"]));
    let songs = world.songs();
    assert!(songs.iter().any(|song| song.contains("fsmonitor")), "{songs:?}");
    assert!(songs.iter().any(|song| song.contains("filter.evil")), "{songs:?}");
    assert!(songs.iter().any(|song| song.contains("hookspath")), "{songs:?}");
}

/// Runs only when the next test calls it, with an environment full of canaries.
#[test]
fn victim_with_a_poisoned_environment() {
    let Some(marks) = require::variable("ST_POISONED") else { return };
    let world = World::new();
    let base = world.enter();
    world.inside_write("README", "Another.\n");
    world.succeeds(&world.request(base, Mode::Merge));
    fs_err::write(Path::new(&marks).join("merged"), "").unwrap();
}

#[test]
fn no_variable_of_the_caller_reaches_git() {
    let world = World::new();
    let marks = world.root().join("marks");
    fs_err::create_dir_all(&marks).unwrap();
    let exe = std::env::current_exe().unwrap();
    let mut run = Run::new(exe, world.root())
        .args(["--exact", "canaries::victim_with_a_poisoned_environment"])
        .variable("PATH", PATH)
        .variable("ST_POISONED", &marks)
        .variable("GIT_TRACE", world.root().join("songs/trace"))
        .variable("GIT_TRACE2_EVENT", world.root().join("songs/trace2"))
        .variable("GIT_DIR", "/nonexistent")
        .variable("GIT_OBJECT_DIRECTORY", "/nonexistent")
        .variable("GIT_INDEX_FILE", "/nonexistent")
        .variable("GIT_CONFIG_COUNT", "1")
        .variable("GIT_CONFIG_KEY_0", "core.fsmonitor")
        .variable("GIT_CONFIG_VALUE_0", world.canary("config-count"));
    for name in VARIABLES {
        run = run.variable(name, world.canary(name));
    }
    let _ended = run.ended().expect_code(0);
    assert!(marks.join("merged").exists(), "the victim did its work");
    assert_eq!(world.songs(), [""; 0]);
}
