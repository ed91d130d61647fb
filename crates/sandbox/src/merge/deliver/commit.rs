//! The commit that carries the result, made in the scratch repository.

use std::fmt::Write as _;

use sandtable_store::id::ObjectId;

use super::parent;
use crate::merge::error::Error;
use crate::merge::plan::Plan;
use crate::merge::request::{Identity, MergeRequest};
use crate::merge::target::Target;

/// A commit that exists in the scratch repository only.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) id: ObjectId,
}

impl Commit {
    pub(super) fn make(
        plan: &Plan,
        request: &MergeRequest,
        (author, committer): (&Identity, &Identity),
    ) -> Result<Self, Error> {
        let mut call = plan.scratch.call().arg("commit-tree").id(&plan.result);
        if let Target::Repository(repository) = &plan.target
            && let Some(tip) = parent(repository)
        {
            call = call.arg("-p").id(tip);
        }
        for (role, who) in [("AUTHOR", author), ("COMMITTER", committer)] {
            call = call.variable(format!("GIT_{role}_NAME"), clean(&who.name));
            call = call.variable(format!("GIT_{role}_EMAIL"), clean(&who.email));
        }
        Ok(Self { id: call.args(["-F", "-"]).object_with(message(request).as_bytes())? })
    }
}

/// The words of the user, and trailers that name where it comes from.
fn message(request: &MergeRequest) -> String {
    let given = request.commit.message.replace('\0', "");
    let given = given.trim_end();
    let head = if given.is_empty() { "Work of a sandbox" } else { given };
    let mut text = format!("{head}\n\n");
    for (key, value) in &request.commit.trailers {
        writeln!(text, "{}: {}", clean(key), clean(value)).expect("a string takes everything");
    }
    writeln!(text, "Sandtable-Snapshot: {}", request.snapshot).expect("a string takes everything");
    text
}

/// One line, without what git gives a meaning to in a name.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>')).collect()
}
