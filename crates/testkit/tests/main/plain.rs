//! States of sandboxes that have no layer: those that work on a copy, and those that work on the source itself.

use std::path::Path;

use sandtable_testkit::env::{Caller, TestEnv};

use crate::cli::Unused;

/// A repository with an ignored file, an empty directory and an odd mode: what only a full state has.
fn source(env: &TestEnv, name: &str) -> std::path::PathBuf {
    let source = env.repository(name);
    env.file(&source.join(".git/info/exclude"), "*.o\n");
    env.file(&source.join("a.o"), "object\n");
    env.directory(&source.join("empty"));
    source
}

const FIRST: &str = "echo one > f; echo changed > a.o; rm -r src; rmdir empty; chmod 600 README";
const SECOND: &str = "echo two > f; mkdir -p empty/full; ln -s f l; chmod 644 README";

fn look(directory: &Path) -> Vec<String> {
    let read =
        |name: &str| fs_err::read_to_string(directory.join(name)).unwrap_or_else(|_| "nothing\n".to_owned());
    ["f", "a.o", "src/main.c", "README"].iter().map(|name| read(name)).collect()
}

#[test]
fn a_workspace_without_a_layer_goes_back_and_forth_between_its_states() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        for mode in ["copy", "live"] {
            let source = source(&env, mode);
            let before = env.fingerprint(&source);
            let done = |args: &[&str]| env.sandtable().args(args).ended().expect_code(0).stdout;
            let place =
                if mode == "copy" { env.sandboxes().join("copy/copies/workspace") } else { source.clone() };
            env.run_script(&source, &["-q", "--mode", mode, "--name", mode], FIRST).expect_code(0).unused();
            let shown = "P\tREADME\nM\ta.o\nD\tempty\nA\tf\nD\tsrc/deep/er/util.c\nD\tsrc/main.c\n";
            assert_eq!(done(&["diff", mode, "--name-status"]), shown, "{mode}");
            let first = done(&["snapshot", mode]).trim().to_owned();
            let at_first = ["one\n", "changed\n", "nothing\n", "A sample.\n"];
            assert_eq!(look(&place), at_first, "{mode}");
            done(&["exec", "-q", mode, "--", "sh", "-c", SECOND]);
            done(&["rollback", &first, mode]);
            assert_eq!(look(&place), at_first, "{mode}");
            assert!(!place.join("empty").exists() && place.join("l").symlink_metadata().is_err());
            done(&["undo", mode]);
            assert!(look(&place)[0] == "two\n" && place.join("empty/full").is_dir(), "{mode}");
            done(&["redo", mode]);
            assert_eq!(look(&place), at_first, "{mode}");
            // Back to the beginning: ignored files, empty directories and modes too.
            let log = done(&["log", mode, "--json"]);
            let log: serde_json::Value = serde_json::from_str(&log).unwrap();
            let operations = log["operations"].as_array().unwrap();
            let base = operations.iter().find(|operation| operation["operation"] == "create").unwrap();
            done(&["rollback", base["after"].as_str().unwrap(), mode]);
            assert_eq!(look(&place)[1..3], ["object\n", "int main(void) { return 0; }\n"], "{mode}");
            let differences = before.differences(&env.fingerprint(&source));
            match mode {
                "copy" => assert_eq!(differences, [""; 0]),
                // Times of directories and inodes of what was brought back are new; nothing else is.
                _ => assert!(
                    place.join("empty").is_dir() && env.git(&source, &["status", "--porcelain"]).is_empty()
                ),
            }
            assert_eq!(done(&["exec", "-q", mode, "--", "cat", "a.o"]), "object\n");
        }
    }
}

#[test]
fn what_stays_because_no_state_holds_it_is_named() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    for mode in ["copy", "live"] {
        let source = source(&env, mode);
        let script = "mkdir d; echo x > d/f; mkfifo d/pipe";
        env.run_script(&source, &["-q", "--mode", mode, "--name", mode], script).expect_code(0).unused();
        let base = env.sandtable().args(["log", mode, "--json"]).ended().expect_code(0).stdout;
        let base: serde_json::Value = serde_json::from_str(&base).unwrap();
        let base = base["operations"].as_array().unwrap().iter().find(|one| one["operation"] == "create");
        let base = base.unwrap()["after"].as_str().unwrap().to_owned();
        let said = "not part of the state, left unchanged: `d`";
        for words in [&["undo", mode][..], &["rollback", &base, mode]] {
            let back = env.sandtable().args(words).ended().expect_code(0);
            assert!(back.stderr.contains(said), "{words:?}: {}", back.stderr);
            env.sandtable()
                .args(["exec", "-q", mode, "--", "sh", "-c", "echo y > d/f"])
                .ended()
                .expect_code(0)
                .unused();
        }
    }
}

#[test]
fn what_somebody_did_to_a_live_workspace_since_is_not_undone() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = source(&env, "r");
    env.run_script(&source, &["-q", "--mode", "live", "--name", "box"], FIRST).expect_code(0).unused();
    env.file(&source.join("f"), "mine\n");
    let refused = env.sandtable().args(["undo", "box"]).ended().expect_code(1);
    assert!(refused.stderr.contains("was changed since its state was recorded"), "{}", refused.stderr);
    assert_eq!(fs_err::read_to_string(source.join("f")).unwrap(), "mine\n");
    env.sandtable().args(["snapshot", "box"]).ended().expect_code(0).unused();
    env.sandtable().args(["undo", "box"]).ended().expect_code(0).unused();
    assert_eq!(fs_err::read_to_string(source.join("f")).unwrap(), "one\n");
    env.sandtable().args(["undo", "box"]).ended().expect_code(0).unused();
    assert_eq!(look(&source), ["nothing\n", "object\n", "int main(void) { return 0; }\n", "A sample.\n"]);
}

#[test]
fn a_copy_can_be_forked_from_any_state_of_its_source() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = source(&env, "r");
    let done = |args: &[&str]| env.sandtable().directory(&source).args(args).ended().expect_code(0).stdout;
    env.run_script(&source, &["-q", "--mode", "copy", "--name", "box"], FIRST).expect_code(0).unused();
    env.file(&source.join("README"), "Moved on.\n");
    done(&["fork", "box", "--mode", "copy", "--name", "other"]);
    let script = "cat f a.o README; ls";
    let seen = done(&["exec", "-q", "other", "--", "sh", "-c", script]);
    assert_eq!(seen, "one\nchanged\nA sample.\nREADME\na.o\nbuild.sh\ndocs\nf\nlink\n");
    assert_eq!(done(&["diff", "box", "other", "--name-status"]), "");
}

#[test]
fn an_index_that_a_command_forged_is_not_believed() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    for mode in ["copy", "live"] {
        let source = source(&env, mode);
        // The entry of README gets the id of another file; its looks are those of README.
        let script = "git update-index --refresh >/dev/null; \
                      git update-index --cacheinfo 100644,$(git rev-parse :docs/guide.txt),README; \
                      git update-index --assume-unchanged README; echo sample > README; touch -d @0 README";
        env.run_script(&source, &["-q", "--mode", mode, "--name", mode], script).expect_code(0).unused();
        let out = env.home().join(mode);
        env.sandtable().args(["checkout", mode]).arg(&out).ended().expect_code(0).unused();
        assert_eq!(fs_err::read_to_string(out.join("README")).unwrap(), "sample\n", "{mode}");
    }
}
