//! The flows of the first plan, with its own names: a fixer's work, an old proof, and a life without a network.

use std::path::{Path, PathBuf};

use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::session::proof::{Checked, check};
use sandtable_sandbox::{Board, format_diff_for_display, is_path_safe};
use sandtable_testkit::env::TestEnv;
use sandtable_testkit::require;
use serde_json::{Value, json};

use crate::cli::Unused;

/// The board that the executable of this world has.
fn board(env: &TestEnv) -> Board {
    Board::new(&HostPath::new(env.home().join(".local/share/sandtable")).unwrap())
}

/// What a fixer does with a task: an event comes in, an event goes out.
fn on_task(env: &TestEnv, task: &Value, worktree: &Path) -> Value {
    assert_eq!(task["type"], "FIX.TASK");
    let board = board(env);
    let before = board.snapshot(task["snap_sha"].as_str().unwrap()).unwrap();
    board.checkout_snapshot(&before, worktree).unwrap();
    assert!(is_path_safe(b"src/main.c", worktree) && !is_path_safe(b"../main.c", worktree));
    fs_err::write(worktree.join("src/main.c"), "int main(void) { return 1; }\n").unwrap();
    fs_err::write(worktree.join("src/new.c"), "int new;\n").unwrap();
    let taken = board.create_snapshot(worktree, Some(before.snapshot.id), "fixed").unwrap();
    let after = board.snapshot(&taken.snapshot.id.to_string()).unwrap();
    let diff = board.diff_snapshots(&before, &after).unwrap();
    let colour = sandtable_sandbox::board::diff::render::Colour::Plain;
    let shown = format_diff_for_display(after.store.objects(), &diff, colour).unwrap();
    let proof = env.sandtable().args([
        "verify",
        &after.snapshot.id.to_string(),
        "--",
        "grep",
        "-c",
        "1;",
        "src/main.c",
    ]);
    let proof: Value = serde_json::from_str(&proof.ended().expect_code(0).stdout).unwrap();
    json!({ "type": "FIX.PATCH_APPLIED", "snap_sha": after.snapshot.id, "diff": shown, "proof": proof })
}

fn task(env: &TestEnv) -> (PathBuf, Value) {
    let source = env.repository("r");
    let first = board(env).onboard_repo(&source).unwrap();
    (source, json!({ "type": "FIX.TASK", "snap_sha": first.snapshot.id }))
}

#[test]
fn a_fix_task_becomes_a_patch_with_its_proof() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let (source, task) = task(&env);
    let worktree = env.root().join("worktree");
    let answer = on_task(&env, &task, &worktree);
    let proof = &answer["proof"];
    assert_eq!((&proof["snap_sha"], &proof["before"]), (&answer["snap_sha"], &task["snap_sha"]));
    assert_eq!(proof["diff"]["added"][0]["path"], "src/new.c");
    assert_eq!(proof["diff"]["changed"][0]["path"], "src/main.c");
    let id = |text: &str| {
        env.file(&env.root().join("blob"), text);
        env.git(&source, &["hash-object", "../blob"]).trim().to_owned()
    };
    assert_eq!(proof["diff"]["changed"][0]["before"], id("int main(void) { return 0; }\n"));
    assert_eq!(proof["diff"]["changed"][0]["after"], id("int main(void) { return 1; }\n"));
    let shown = answer["diff"].as_str().unwrap();
    assert!(shown.contains("-int main(void) { return 0; }\n+int main(void) { return 1; }\n"), "{shown}");
    // The source knows nothing of it.
    assert_eq!(env.git(&source, &["status", "--porcelain"]), "");
}

#[test]
fn an_old_proof_is_checked_from_a_checkout_on() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let (source, task) = task(&env);
    let answer = on_task(&env, &task, &env.root().join("worktree"));
    // Years later nothing is left but the store.
    fs_err::remove_dir_all(&source).unwrap();
    fs_err::remove_dir_all(env.root().join("worktree")).unwrap();
    let text = answer["proof"].to_string();
    let Checked { proof, found } = check(&board(&env), text.as_bytes()).unwrap();
    let again = env.root().join("again");
    board(&env).checkout_snapshot(&found, &again).unwrap();
    assert_eq!(fs_err::read_to_string(again.join("src/new.c")).unwrap(), "int new;\n");
    let path = env.root().join("proof.json");
    env.file(&path, proof.canonical());
    env.sandtable().args(["verify", "--against"]).arg(&path).ended().expect_code(0).unused();
    let changed = text.replace("src/new.c", "src/old.c");
    assert!(check(&board(&env), changed.as_bytes()).unwrap_err().to_string().contains("was changed"));
}

#[test]
fn nothing_of_it_needs_a_network() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if !require::is_root() || require::program("unshare").is_none() {
        return require::skip("a namespace without a network needs root and unshare");
    }
    let source = env.repository("r");
    let alone = |args: &[&str]| {
        let run = env.sandtable().directory(&source).args(args).through(["unshare", "--net", "--"]);
        run.ended().expect_code(0).stdout
    };
    alone(&["run", "-q", "--name", "box", "--", "sh", "-c", "echo x > n"]);
    let first = alone(&["snapshot", "box", "-m", "it works"]);
    alone(&["verify", first.trim(), "--", "cat", "n"]);
    alone(&["rollback", first.trim(), "box"]);
    alone(&["store", "fsck", "--deep"]);
    assert!(alone(&["diff", "box"]).contains("+x"));
    alone(&["merge", "box", "-m", "Add n"]);
    assert_eq!(fs_err::read_to_string(source.join("n")).unwrap(), "x\n");
}
