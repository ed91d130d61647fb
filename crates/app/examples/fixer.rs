//! An agent that repairs a recorded state: it gets the id of a snapshot, works on a checkout of it, and answers with the
//! snapshot of its result and the difference. The result is then merged into the source.
//!
//!     fixer SNAPSHOT WORKTREE
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "this is a program, not the library")]

use std::path::Path;

use sandtable_app::{Bring, Caller};
use sandtable_sandbox::board::diff::render::Colour;
use sandtable_sandbox::format_diff_for_display;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [task, worktree] = words.as_slice() else { return Err("usage: fixer SNAPSHOT WORKTREE".into()) };
    let caller = Caller::of_program(std::env::vars_os().collect())?;
    let fixed = fix(&caller, task, Path::new(worktree))?;
    let merged =
        caller.bring(&fixed, Bring { message: Some("Fix the spelling".to_owned()), ..Bring::merge() })?;
    println!("{}", if merged.success { "merged" } else { "not merged" });
    Ok(())
}

/// Does the work, and returns the id of its result.
fn fix(caller: &Caller, task: &str, worktree: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let board = caller.board()?;
    let before = board.snapshot(task)?;
    board.checkout_snapshot(&before, worktree)?;

    let file = worktree.join("README");
    let text = fs_err::read_to_string(&file)?;
    fs_err::write(&file, text.replace("teh", "the"))?;

    let taken = board.create_snapshot(worktree, Some(before.snapshot.id), "the spelling is fixed")?;
    let after = board.snapshot(&taken.snapshot.id.to_string())?;
    let diff = board.diff_snapshots(&before, &after)?;
    print!("{}", format_diff_for_display(after.store.objects(), &diff, Colour::Plain)?);
    Ok(taken.snapshot.id.to_string())
}
