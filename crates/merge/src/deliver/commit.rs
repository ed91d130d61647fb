//! The commit that carries the result, made in the scratch repository.

use std::fmt::Write as _;
use std::time::SystemTime;

use sandtable_store::id::ObjectId;
use sandtable_store::object::ObjectKind;

use super::parent;
use crate::error::Error;
use crate::plan::Plan;
use crate::request::{Identity, MergeRequest};
use crate::target::Target;

/// A commit that exists in the scratch repository only.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) id: ObjectId,
}

impl Commit {
    /// `also` is a second parent: the history that comes with the work.
    pub(super) fn make(
        plan: &Plan,
        request: &MergeRequest,
        (author, committer): (&Identity, &Identity),
        also: Option<&ObjectId>,
    ) -> Result<Self, Error> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut text = format!("tree {}\n", plan.result);
        let tip = match &plan.target {
            Target::Repository(repository) => parent(repository),
            Target::Plain { .. } => None,
        };
        for parent in tip.into_iter().chain(also) {
            writeln!(text, "parent {parent}").expect("a string takes everything");
        }
        for (role, who) in [("author", author), ("committer", committer)] {
            let (name, email) = (named(&who.name), named(&who.email));
            writeln!(text, "{role} {name} <{email}> {now} +0000").expect("a string takes everything");
        }
        text.push('\n');
        text.push_str(&message(request));
        Ok(Self { id: plan.scratch.trees().write(ObjectKind::Commit, text.as_bytes())? })
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

/// A name or an address as git writes them: without punctuation at its ends, and never empty.
fn named(text: &str) -> String {
    let clean = clean(text);
    let crud = |c: char| c.is_whitespace() || matches!(c, '.' | ',' | ':' | ';' | '"' | '\\' | '\'');
    match clean.trim_matches(crud) {
        "" => "unknown".to_owned(),
        text => text.to_owned(),
    }
}

/// One line, without what git gives a meaning to in a name.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>')).collect()
}
