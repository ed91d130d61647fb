//! Ten changed files brought onto a branch that has moved, by us and by git. Each works in a copy of the tree of its own,
//! which goes back to where it was after every round.

use super::catalogue::Place;
use super::process::Invocation;
use super::row::{Contender, Entry, OURS};

/// The same work with git alone, as the report names it.
pub const GIT: &str = "git merge";

/// One line in each of ten files that lie in different directories.
const CHANGE: &str =
    "for file in $(git ls-files '*file-0000[0-9]5.c'); do echo '/* changed */' >> $file; done";
/// What somebody committed meanwhile.
const MEANWHILE: &str = "echo meanwhile >> README; git commit --quiet --all --message meanwhile";
const IDENTITY: &str = "git config user.name bench; git config user.email bench@example.invalid";

pub(super) fn merge(place: &Place) -> Vec<Entry> {
    let ours = copy(place, "merge-ours");
    let sandtable = &place.ours;
    let work = format!("'{sandtable}' run --name bench-merge -q -- sh -c \"$0\"");
    let ours = Contender {
        setup: vec![ours.made(), ours.run(&work, CHANGE), ours.run(MEANWHILE, "")],
        after: Some(ours.run("git reset --quiet --hard HEAD^", "")),
        teardown: vec![ours.run(&format!("'{sandtable}' rm bench-merge"), "")],
        ..Contender::new(ours.call(&[sandtable, "merge", "bench-merge"]))
    };
    let theirs = copy(place, "merge-git");
    let branch = format!(
        "git checkout --quiet -b work; {CHANGE}; git commit --quiet --all --message work; git checkout --quiet -"
    );
    let theirs = Contender {
        setup: vec![theirs.made(), theirs.run(&branch, ""), theirs.run(MEANWHILE, "")],
        after: Some(theirs.run("git reset --quiet --hard HEAD^", "")),
        ..Contender::new(theirs.call(&["git", "merge", "--quiet", "--no-edit", "work"]))
    };
    vec![Entry { name: OURS, contender: Ok(ours) }, Entry { name: GIT, contender: Ok(theirs) }]
}

/// A copy of the tree.
struct Copy<'a> {
    place: &'a Place,
    path: std::path::PathBuf,
}

fn copy<'a>(place: &'a Place, name: &str) -> Copy<'a> {
    Copy { place, path: place.caller.area.join(name) }
}

impl Copy<'_> {
    fn made(&self) -> Invocation {
        let (from, to) = (self.place.tree.display(), self.path.display());
        let script =
            format!("rm -rf '{to}' && cp -a '{from}' '{to}' && cd '{to}' && {IDENTITY} && git status");
        self.place.caller.invoke(&self.place.tree, ["sh", "-c", &script])
    }

    fn run(&self, script: &str, argument: &str) -> Invocation {
        self.call(&["sh", "-c", script, argument])
    }

    fn call(&self, argv: &[&str]) -> Invocation {
        self.place.caller.invoke(&self.path, argv.iter().copied())
    }
}
