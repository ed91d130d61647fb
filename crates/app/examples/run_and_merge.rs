//! Runs a command in a sandbox for the repository in the current directory, prints what it changed and merges it.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "this is a program, not the library")]

use sandtable_app::{Approvals, Caller, Network};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let caller = Caller::of_program(std::env::vars_os().collect())?;
    let sandbox = caller.sandbox(".").network(Network::None);
    let finished = sandbox.run(["sh", "-c", "echo 'Hello from inside' > greeting.txt"])?;
    for change in finished.changes() {
        println!("{:?} {}", change.kind, change.path);
    }
    let merged = finished.merge(Approvals::None)?;
    println!("{}", if merged.success { "merged" } else { "not merged: look with `sandtable merge`" });
    Ok(())
}
