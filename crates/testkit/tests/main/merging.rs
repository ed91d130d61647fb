//! Work brought home by the executable: taken back, asked about on a terminal, with its history, and where there is no git.

use std::path::Path;

use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::fingerprint::Fingerprint;
use sandtable_testkit::process::Ended;
use sandtable_testkit::tmux::Tmux;

use crate::cli::Unused;

/// Both kinds of callers.
fn each(test: impl Fn(&TestEnv)) {
    for caller in [Caller::Same, Caller::ordinary()] {
        if let Some(env) = TestEnv::of_the_executable_as(caller) {
            test(&env);
        }
    }
}

fn call(env: &TestEnv, source: &Path, args: &[&str]) -> Ended {
    env.sandtable().directory(source).args(args).ended()
}

fn read(path: impl AsRef<Path>) -> String {
    fs_err::read_to_string(path.as_ref()).unwrap()
}

#[test]
fn a_merge_is_undone_and_done_again_while_nothing_else_moved() {
    each(|env| {
        let source = env.repository("r");
        let before = env.git(&source, &["rev-parse", "HEAD"]);
        env.run_script(&source, &["--name", "box"], "echo new > n; rm docs/guide.txt")
            .expect_code(0)
            .unused();
        call(env, &source, &["merge", "box", "-m", "Add n"]).expect_code(0).unused();
        let merged = env.git(&source, &["rev-parse", "HEAD"]);
        assert_ne!(before, merged);
        call(env, &source, &["undo"]).expect_code(0).unused();
        assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), before);
        assert!(!source.join("n").exists() && source.join("docs/guide.txt").exists());
        assert_eq!(env.git(&source, &["status", "--porcelain"]), "");
        call(env, &source, &["redo", "."]).expect_code(0).unused();
        assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), merged);
        assert_eq!(read(source.join("n")), "new\n");
        assert_eq!(env.git(&source, &["status", "--porcelain"]), "");

        env.git(&source, &["commit", "-q", "--allow-empty", "-m", "mine"]);
        let untouched = env.fingerprint(&source);
        let late = call(env, &source, &["undo", "."]).expect_code(1);
        assert!(late.stderr.contains("is not where the merge left it"), "{}", late.stderr);
        assert_eq!(untouched.differences(&env.fingerprint(&source)), [""; 0]);

        let again = call(env, &source, &["redo"]).expect_code(2);
        assert!(again.stderr.contains("can be redone"), "{}", again.stderr);
        // Without a name it is whatever came last: a command in the sandbox, once that is newer.
        call(env, &source, &["exec", "-q", "box", "--", "sh", "-c", "echo newer > n"])
            .expect_code(0)
            .unused();
        let last = call(env, &source, &["undo"]).expect_code(0);
        assert!(last.stderr.contains("`exec` in sandbox"), "{}", last.stderr);
    });
}

#[test]
fn what_the_target_has_already_is_held_by_nobody() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.file(&source.join("README"), "Dirty.\n");
    let script = "printf '#!/bin/sh\\n' > tool; chmod +x tool";
    env.run_script(&source, &["--name", "box"], script).expect_code(0).unused();
    call(&env, &source, &["merge", "box"]).expect_code(1).unused();
    let first = call(&env, &source, &["merge", "box", "--approve", "tool"]).expect_code(0);
    assert!(first.stdout.contains("had not moved"), "its head stood still: {}", first.stdout);
    let again = call(&env, &source, &["merge", "box"]).expect_code(0);
    assert!(again.stdout.contains("has it all already"), "{}", again.stdout);
    let message = env.git(&source, &["log", "-1", "--format=%B"]);
    for words in
        ["Work of sandbox box", "Sandtable-Sandbox: box", "Sandtable-Policy: ", "Sandtable-Snapshot: "]
    {
        assert!(message.contains(words), "{message}");
    }
    call(&env, &source, &["exec", "-q", "box", "--", "sh", "-c", "echo more > more"]).expect_code(0).unused();
    let more = call(&env, &source, &["merge", "--author", "A. Gent <agent@example.invalid>"]).expect_code(0);
    assert!(more.stdout.contains("A more") && !more.stdout.contains("tool"), "{}", more.stdout);
    assert_eq!(env.git(&source, &["log", "-1", "--format=%an %ae"]), "A. Gent agent@example.invalid\n");
    call(&env, &source, &["merge", "--author", "nobody"]).expect_code(2).unused();
    assert_eq!(env.git(&source, &["status", "--porcelain"]), " M README\n");
}

#[test]
fn files_without_git_are_applied_by_the_same_rules() {
    each(|env| {
        let source = env.root().join("plain");
        let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n8\n{last}\n");
        env.file(&source.join("list"), lines("1", "9"));
        env.file(&source.join("gone"), "x\n");
        env.file(&source.join("both"), "old\n");
        // A file that is as young as the run may have been changed by anybody.
        std::thread::sleep(std::time::Duration::from_millis(100));
        let script = "sed -i s/1/one/ list; rm gone; mkdir -p d; echo new > d/n; echo theirs > both";
        env.run_script(&source, &["--name", "box"], script).expect_code(0).unused();
        let refused = call(env, &source, &["merge", "box"]).expect_code(1);
        assert!(refused.stdout.contains("apply"), "{}", refused.stdout);

        env.file(&source.join("list"), lines("1", "nine"));
        env.file(&source.join("both"), "mine\n");
        let untouched = env.fingerprint(&source);
        let conflict = call(env, &source, &["apply", "box"]).expect_code(1);
        assert!(conflict.stdout.contains("conflict both (content)"), "{}", conflict.stdout);
        assert_eq!(untouched.differences(&env.fingerprint(&source)), [""; 0]);

        call(env, &source, &["apply", "box", "--exclude", "both"]).expect_code(0).unused();
        assert_eq!(read(source.join("list")), lines("one", "nine"));
        assert_eq!((read(source.join("both")), read(source.join("d/n"))), ("mine\n".into(), "new\n".into()));
        assert!(!source.join("gone").exists());

        env.file(&source.join("later"), "kept\n");
        call(env, &source, &["undo"]).expect_code(0).unused();
        assert_eq!(read(source.join("list")), lines("1", "nine"));
        assert_eq!((read(source.join("gone")), read(source.join("later"))), ("x\n".into(), "kept\n".into()));
        assert!(!source.join("d").exists());
        call(env, &source, &["redo"]).expect_code(0).unused();
        assert_eq!(read(source.join("d/n")), "new\n");

        let patch = env.home().join("work.patch");
        call(env, &source, &["export", "box", "--patch", patch.to_str().unwrap()]).expect_code(0).unused();
        assert!(read(&patch).contains("+theirs"));
    });
}

/// Commits made inside, with git's own program.
const COMMITS: &str = "git config user.name Agent; git config user.email agent@example.invalid; \
    echo one > one; git add one; git commit -qm 'First step'; \
    echo two > two; git add two; git commit -qm 'Second step'; git gc -q; \
    echo three > three; git add three; git commit -qm 'Third step'; echo loose > loose";

#[test]
fn commits_made_inside_come_along_when_asked_for() {
    each(|env| {
        let source = env.repository("r");
        env.run_script(&source, &["--name", "box"], COMMITS).expect_code(0).unused();
        env.file(&source.join("docs/guide.txt"), "Read this.\n");
        env.git(&source, &["commit", "-q", "-a", "-m", "mine"]);
        let config = read(source.join(".git/config"));
        let merged = call(env, &source, &["merge", "box", "--history", "-m", "All steps"]).expect_code(0);
        assert!(merged.stdout.contains("A loose"), "{}", merged.stdout);
        let log = env.git(&source, &["log", "--topo-order", "--format=%an: %s"]);
        for line in ["All steps", "Agent: Third step", "Agent: Second step", "Agent: First step", "mine"] {
            assert!(log.contains(line), "{log}");
        }
        let first = env.git(&source, &["log", "--first-parent", "--format=%s"]);
        assert!(first.starts_with("All steps\nmine\n"), "{first}");
        assert_eq!(env.git(&source, &["status", "--porcelain"]), "");
        env.git(&source, &["fsck", "--strict", "--no-dangling"]);
        assert_eq!(read(source.join(".git/config")), config);
        call(env, &source, &["undo"]).expect_code(0).unused();
        assert_eq!(env.git(&source, &["log", "-1", "--format=%s"]), "mine\n");

        let known = call(env, &source, &["export", "box", "--history", "--branch", "agent"]).expect_code(0);
        assert!(
            known.stdout.contains("3 commits that your repository has"),
            "left from the undo: {}",
            known.stdout
        );
        assert!(env.git(&source, &["log", "--format=%s", "agent"]).contains("Second step"));
        for wrong in
            [["merge", "box", "--history", "--only", "one"], ["export", "box", "--history", "--patch", "p"]]
        {
            call(env, &source, &wrong).expect_code(2).unused();
        }
    });
}

#[test]
fn a_history_that_is_not_in_order_is_refused() {
    let head = "git config user.name Agent; git config user.email agent@example.invalid; ";
    let raw = |body: &str| {
        format!(
            "{head} id=$(printf '{body}' | git hash-object -t commit -w --stdin --literally); git update-ref HEAD $id; echo x > x"
        )
    };
    let who = "A <a@example.invalid> 1 +0000";
    let tree = "'$(git rev-parse HEAD^{tree})'";
    let parent = "'$(git rev-parse HEAD)'";
    let good = format!("tree {tree}\\nparent {parent}\\nauthor {who}\\ncommitter {who}\\n\\n");
    let cases = [
        ("colours", raw(&format!("{good}\\033[2Jhello\\n"))),
        ("an unknown line", raw(&format!("tree {tree}\\nauthor {who}\\ncommitter {who}\\nrun me\\n\\nx\\n"))),
        ("no author", raw(&format!("tree {tree}\\nparent {parent}\\n\\nx\\n"))),
        (
            "a missing tree",
            raw(&format!("tree {}\\nauthor {who}\\ncommitter {who}\\n\\nx\\n", "1".repeat(40))),
        ),
        (
            "a damaged object",
            format!(
                "{head} echo x > x; git add x; git commit -qm x; f=.git/objects/$(git rev-parse HEAD | sed 's,^..,&/,'); \
                chmod u+w $f; printf garbage > $f"
            ),
        ),
        (
            "a git directory in a tree",
            format!(
                "{head} b=$(echo x | git hash-object -w --stdin); \
                t=$(printf \"100644 config\\0$(echo $b | sed 's/../\\\\x&/g')\" | git hash-object -t tree -w --stdin --literally); \
                t=$(printf \"40000 .git\\0$(echo $t | sed 's/../\\\\x&/g')\" | git hash-object -t tree -w --stdin --literally); \
                git update-ref HEAD $(git commit-tree -p HEAD -m x $t); echo x > x"
            ),
        ),
        (
            "a hook that came and went",
            format!(
                "{head} mkdir -p .husky; echo 'touch /tmp/x' > .husky/pre-commit; git add -A; git commit -qm a; \
                git rm -qr .husky; git commit -qm b; echo x > x"
            ),
        ),
    ];
    for (what, script) in cases {
        let Some(env) = TestEnv::of_the_executable() else { return };
        let source = env.repository("r");
        env.run("true").ended().unused();
        let ran = env
            .sandtable()
            .directory(&source)
            .args(["run", "-q", "--name", "box", "--", "bash", "-c", &script]);
        ran.ended().expect_code(0).unused();
        let untouched = env.fingerprint(&source);
        let stopped = call(&env, &source, &["merge", "box", "--history"]);
        assert_eq!(stopped.code, 1, "{what}: {}{}", stopped.stdout, stopped.stderr);
        assert_eq!(untouched.differences(&env.fingerprint(&source)), [""; 0], "{what}");
        let plain = call(&env, &source, &["merge", "box"]);
        assert_eq!(plain.code, 0, "without its history the work is fine, {what}: {}", plain.stdout);
    }
}

#[test]
fn a_poisoned_git_directory_inside_sings_for_nobody() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let song = env.root().join("song");
    let canary = env.root().join("canary");
    env.file(&canary, format!("#!/bin/sh\n: > {}\nexec cat\n", song.display()));
    fs_err::set_permissions(&canary, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let keys = [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "core.alternateRefsCommand",
        "diff.external",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "merge.evil.driver",
        "gpg.program",
        "credential.helper",
        "uploadpack.packObjectsHook",
        "pager.log",
    ];
    let hook = |name: &str| {
        format!(
            "printf '#!/bin/sh\\n: > {}\\n' > .git/hooks/{name}; chmod +x .git/hooks/{name}\n",
            song.display()
        )
    };
    let hooks = ["pre-commit", "post-commit", "post-index-change", "reference-transaction", "post-checkout"];
    let settings = keys.map(|key| format!("git config {key} {}\n", canary.display()));
    let script = [
        "git config user.name A; git config user.email a@example.invalid; echo work > work; git add work\n",
        "git commit -qm work; mkdir -p .git/hooks .git/info .git/refs/replace .git/objects/info\n",
        "echo evil > .git/objects/info/alternates; echo more >> README\n",
        "echo '* filter=evil diff=evil merge=evil' > .git/info/attributes\n",
        &hooks.map(hook).concat(),
        &settings.concat(),
        "git config core.hooksPath .git/hooks; git config core.worktree /; git config include.path /dev/null\n",
    ]
    .concat();
    let ran =
        env.sandtable().directory(&source).args(["run", "-q", "--name", "box", "--", "sh", "-c", &script]);
    ran.ended().expect_code(0).unused();
    let kept = Fingerprint::of(&source.join(".git/hooks"), &[]);
    let config = read(source.join(".git/config"));
    call(&env, &source, &["diff", "box"]).expect_code(0).unused();
    call(&env, &source, &["export", "box", "--history", "--branch", "look"]).expect_code(0).unused();
    call(&env, &source, &["merge", "box", "--history"]).expect_code(0).unused();
    for args in [&["status"][..], &["diff", "HEAD~1"], &["log", "-p", "--all"], &["checkout", "-q", "look"]] {
        env.git(&source, args);
    }
    env.git(&source, &["checkout", "-q", "main"]);
    call(&env, &source, &["undo"]).expect_code(0).unused();
    assert!(!song.exists(), "something of the sandbox's ran on the host");
    assert_eq!(read(source.join(".git/config")), config);
    assert_eq!(kept.differences(&Fingerprint::of(&source.join(".git/hooks"), &[])), [""; 0]);
}

/// A command writes one program, waits until somebody has looked, and writes another.
const SWAPS: &str = "printf '#!/bin/sh\\necho fine\\n' > run.sh; chmod +x run.sh; touch ready; \
    until [ -e looked ]; do sleep 0.05; done; printf '#!/bin/sh\\ntouch FIRED\\n' > run.sh; touch swapped; sleep 600";

#[test]
fn an_approval_does_not_let_through_what_took_the_place_of_what_was_shown() {
    each(|env| {
        let source = env.repository("r");
        let start = ["run", "-q", "-d", "--name", "box", "--", "sh", "-c", SWAPS];
        call(env, &source, &start).expect_code(0).unused();
        let inside = |script: &str| call(env, &source, &["exec", "-q", "box", "--", "sh", "-c", script]);
        inside("until [ -e ready ]; do sleep 0.05; done").expect_code(0).unused();
        call(env, &source, &["snapshot", "box"]).expect_code(0).unused();
        let held = call(env, &source, &["merge", "box", "--exclude", "ready"]).expect_code(1);
        let line = held.stdout.lines().find(|line| line.contains("held run.sh@")).expect("it is held");
        let id = line.split('@').nth(1).and_then(|rest| rest.split(':').next()).expect("its id").to_owned();
        let fine = call(env, &source, &["diff", "box"]).expect_code(0);
        assert!(fine.stdout.contains("echo fine") && !fine.stdout.contains("FIRED"), "{}", fine.stdout);
        inside("touch looked; until [ -e swapped ]; do sleep 0.05; done").expect_code(0).unused();
        call(env, &source, &["snapshot", "box"]).expect_code(0).unused();

        let untouched = env.fingerprint(&source);
        let pinned = format!("run.sh@{id}");
        for approve in ["run.sh", "run.sh", "all", &pinned, "all@0123456789ab", "run.sh"] {
            let only = ["merge", "box", "--only", "run.sh", "--approve", approve];
            let refused = call(env, &source, &only).expect_code(1);
            assert!(refused.stdout.contains("nothing was touched"), "{approve}: {}", refused.stdout);
            assert!(approve.starts_with("all@") || refused.stdout.contains(&format!("it was `{id}`")));
            assert_eq!(untouched.differences(&env.fingerprint(&source)), [""; 0], "{approve}");
        }
        call(env, &source, &["stop", "box"]).expect_code(0).unused();
    });
}

#[test]
fn a_checkout_names_what_a_merge_would_hold() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let script = "echo 'all: ; echo hi' > Makefile; mkdir -p x; git init -q --bare x; echo plain > n";
    env.run_script(&source, &["--name", "box"], script).expect_code(0).unused();
    let place = |name: &str| env.root().join(name).to_str().unwrap().to_owned();
    let told = call(&env, &source, &["checkout", "box", &place("one")]).expect_code(0);
    assert!(told.stderr.contains("[held-by-merge]") && told.stderr.contains("`Makefile`"), "{}", told.stderr);
    assert!(told.stderr.contains(" more;") && !told.stderr.contains("`n`"), "{}", told.stderr);
    let json = call(&env, &source, &["checkout", "box", &place("two"), "--json"]).expect_code(0);
    let answer: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let held: Vec<&str> =
        answer["held"].as_array().unwrap().iter().filter_map(|finding| finding["path"].as_str()).collect();
    assert!(held.contains(&"Makefile") && held.contains(&"x/config") && !held.contains(&"n"), "{held:?}");
    call(&env, &source, &["exec", "-q", "box", "--", "sh", "-c", "rm -r Makefile x"]).expect_code(0).unused();
    let plain = call(&env, &source, &["checkout", "box", &place("three")]).expect_code(0);
    assert!(!plain.stderr.contains("held-by-merge"), "{}", plain.stderr);
}

#[test]
fn a_name_in_json_steers_no_terminal() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let script = "printf x > \"$(printf 'a\\302\\2332J')\"; printf x > \"$(printf 'b\\342\\200\\256')\"; \
        printf x > \"$(printf 'c\\343\\205\\244')\"";
    env.run_script(&source, &["--name", "box"], script).expect_code(0).unused();
    for args in [
        &["diff", "box", "--json"][..],
        &["merge", "box", "--json"],
        &["apply", "box", "--json", "--dry-run"],
        &["inspect", "box", "--json"],
        &["events", "--json"],
    ] {
        let answer = call(&env, &source, args).stdout;
        let hidden: Vec<char> =
            answer.chars().filter(|c| *c != '\n' && sandtable_sandbox::hidden::is_hidden(*c)).collect();
        assert!(hidden.is_empty(), "{args:?}: {hidden:?}");
        if args[0] != "events" {
            assert!(
                answer.contains(r"a\u009b2J") && answer.contains(r"b\u202e") && answer.contains(r"c\u3164"),
                "{answer}"
            );
        }
    }
}

#[test]
fn a_path_that_is_held_for_several_reasons_is_listed_once_and_approved_by_one_name() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.home().join("plain");
    for name in ["e", "x"] {
        env.file(&source.join(name), "echo\n");
    }
    let script = "cp e e2; chmod 777 e e2";
    env.run_script(&source, &["-q", "--name", "box"], script).expect_code(0).unused();
    let held = call(&env, &source, &["apply", "box"]).expect_code(1).stdout;
    assert!(held.contains("held until approved: 2 of the changes"), "{held}");
    let lines: Vec<&str> = held.lines().filter(|line| line.contains("held e@")).collect();
    let [line] = lines.as_slice() else { panic!("{held}") };
    assert!(line.contains("can be started; others on your machine"), "{line}");
    let id = |name: &str| held.split(&format!("held {name}@")).nth(1).unwrap()[..12].to_owned();
    let (one, other) = (format!("e@{}", id("e")), format!("e2@{}", id("e2")));
    call(&env, &source, &["apply", "box", "--approve", &one, "--approve", &other]).expect_code(0).unused();
}

#[test]
fn nothing_is_asked_without_a_terminal() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let script = "printf '#!/bin/sh\\n' > tool; chmod +x tool";
    env.run_script(&source, &["--name", "box"], script).expect_code(0).unused();
    let typed = format!("printf 'a\\na\\n' | {} merge box", env.binary().display());
    let held = env.run("sh").directory(&source).args(["-c", &typed]).ended().expect_code(1);
    assert!(!held.stderr.contains("[a]pprove") && held.stdout.contains("held tool"), "{held:?}");
    let chosen = call(&env, &source, &["merge", "box", "--choose"]).expect_code(2);
    assert!(chosen.stderr.contains("there is none"), "{}", chosen.stderr);
}

#[test]
fn held_files_are_shown_and_asked_about_on_a_terminal() {
    each(|env| {
        let source = env.repository("r");
        let Some(tmux) = Tmux::start(env, &source) else { return };
        let script =
            "echo 'all: ; echo hi' > Makefile; printf '#!/bin/sh\\n' > tool; chmod +x tool; echo new > n";
        env.run_script(&source, &["--name", "box"], script).expect_code(0).unused();
        let before = env.git(&source, &["rev-parse", "HEAD"]);
        tmux.command("clear; $S merge box; echo code $?");
        tmux.shows("[a]pprove, [l]eave out, [q]uit:");
        tmux.until("the reason and the change", |screen| {
            screen.contains("held Makefile") && screen.contains("+all:")
        });
        tmux.line("x");
        tmux.until("the question again", |screen| screen.matches("[q]uit:").count() == 2);
        tmux.line("q");
        tmux.shows("code 1");
        assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), before);

        tmux.command("clear; $S merge box; echo code $?");
        tmux.shows("Makefile (1 of 2):");
        tmux.line("l");
        tmux.shows("tool (2 of 2):");
        tmux.line("a");
        tmux.shows("code 0");
        let files = env.git(&source, &["show", "--name-only", "--format=", "HEAD"]);
        assert_eq!(files, "n\ntool\n");
    });
}

#[test]
fn hunks_are_chosen_on_a_terminal() {
    each(|env| {
        let source = env.repository("r");
        let text = (1..=30).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat();
        env.file(&source.join("list"), &text);
        env.git(&source, &["add", "list"]);
        env.git(&source, &["commit", "-q", "-m", "list"]);
        let script = "sed -i -e 's/^line 3$/line three/' -e 's/^line 25$/line last/' list; echo no > left; echo yes > new";
        env.run_script(&source, &["--name", "box"], script).expect_code(0).unused();
        let Some(tmux) = Tmux::start(env, &source) else { return };
        tmux.command("clear; $S apply box --choose; echo code $?");
        tmux.shows("take left?");
        tmux.line("n");
        tmux.shows("take hunk 1 of 2 of list?");
        tmux.line("n");
        tmux.shows("take hunk 2 of 2 of list?");
        tmux.line("y");
        tmux.shows("take new?");
        tmux.line("y");
        tmux.shows("code 0");
        assert_eq!(read(source.join("list")), text.replace("line 25\n", "line last\n"));
        assert!(!source.join("left").exists() && source.join("new").exists());
        call(env, &source, &["undo"]).expect_code(0).unused();
        assert_eq!(read(source.join("list")), text);
        assert!(!source.join("new").exists());
        tmux.command("clear; $S merge box --choose; echo code $?");
        tmux.shows("take left?");
        tmux.line("q");
        tmux.shows("code 1");
        assert_eq!(env.git(&source, &["status", "--porcelain"]), "");
    });
}

#[test]
fn a_file_called_all_has_another_spelling_than_everything() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let script = "printf '#!/bin/sh\\n' > all; chmod +x all; echo 'x: ; true' > Makefile";
    env.run_script(&source, &["-q", "--name", "box"], script).expect_code(0).unused();
    let held = call(&env, &source, &["merge", "box"]).expect_code(1);
    let line = held.stdout.lines().find(|line| line.contains("held ./all@")).expect("it is spelled so");
    let named = line.split_whitespace().nth(1).unwrap().trim_end_matches(':');
    let plan = held.stdout.split("`--approve all@").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    let before = env.git(&source, &["rev-parse", "HEAD"]);
    let refused = call(&env, &source, &["merge", "box", "--approve", "all"]).expect_code(2);
    assert!(refused.stderr.contains("`./all`"), "{}", refused.stderr);
    assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), before);
    // The file alone is not everything.
    for word in ["./all", named] {
        let more = call(&env, &source, &["merge", "box", "--approve", word]).expect_code(1);
        assert!(
            more.stdout.contains("held Makefile@") && !more.stdout.contains("held ./all@"),
            "{}",
            more.stdout
        );
    }
    call(&env, &source, &["merge", "box", "--dry-run", "--approve", &format!("all@{plan}")])
        .expect_code(0)
        .unused();
    call(&env, &source, &["merge", "box", "--only", "all", "--approve", named]).expect_code(0).unused();
    assert!(source.join("all").exists() && !source.join("Makefile").exists());
}
