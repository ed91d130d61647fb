//! The commits that were made inside, brought along as objects.
//!
//! A sandbox's git directory is never opened as a repository. What the sandbox wrote into it lies in the snapshot as a
//! list of files; those that can be objects are written into a directory of ours, alone, and read there by our own
//! reader, which believes nothing: every object is held against its name. From the tip of the sandbox's `HEAD` we go
//! back to what the target has, and take exactly what is on the way. All of it is looked over like the work itself,
//! commit by commit, and then goes through git's strict check with the rest.

use std::collections::BTreeSet;

use sandtable_sandbox::repository::{self, Failed, Layer, LayerError};
use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;
use sandtable_store::object::commit::references;
use sandtable_store::object::{EntryMode, ObjectKind, ReadObjects as _, Tree};
use sandtable_store::objects::{Loose, Objects};
use sandtable_store::regular;

use super::halt::Halt;
use super::named::Named;
use super::outcome::Note;
use super::refusal::{Reason, Refusal};
use super::report::Report;
use super::request::History;
use super::review::{Finding, Surroundings, hides};
use super::scratch::Scratch;
use super::select::Selector;
use super::target::Repository;
use super::tree::{Change, Entry, Mode};

/// As many commits, and objects, come along at most.
const COMMITS: usize = 10_000;
const OBJECTS: usize = 1_000_000;
/// As many bytes, unpacked: a few thousand can become gigabytes.
const BYTES: usize = 256 << 20;
/// All commits together change as many paths at most.
const CHANGES: usize = 1_000_000;
/// A tree of a million entries.
const TREE_BYTES: usize = 32 << 20;
/// As much of a content is shown to people.
const SHOWN: usize = 64 << 10;
/// A commit is a page of text.
const COMMIT_BYTES: usize = 1 << 20;
/// The largest list of commits whose parents are not there.
pub(super) const SHALLOW: u64 = 256 << 20;

/// What comes along, in the scratch repository.
#[derive(Debug)]
pub(super) struct Commits {
    pub(super) tip: ObjectId,
    pub(super) objects: BTreeSet<ObjectId>,
    /// Those that the target has nowhere, the oldest last.
    new: Vec<Walked>,
}

/// A commit with its tree and its first parent.
type Walked = (ObjectId, ObjectId, Option<ObjectId>);

/// Where commits are looked for, and where they go.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) scratch: &'a Scratch,
    pub(super) repository: &'a Repository,
}

impl Commits {
    /// The commits of the sandbox that the target's branch does not have; none when there are none.
    pub(super) fn read(
        ground: Ground<'_>,
        history: &History,
        report: &mut Report,
    ) -> Result<Option<Self>, Halt> {
        let Ground { scratch, repository } = ground;
        let Some(store) = scratch.trees().last() else { return Ok(None) };
        let layer = Layer::open(store, history.layer.as_ref(), scratch.attention()).map_err(unusable)?;
        let mut head = history.head.clone();
        // A sandbox that was made from a state does not know where its source was.
        head.branch = head.branch.or_else(|| repository.head.branch().map(str::to_owned));
        let tip = layer.tip(&head).map_err(unusable)?;
        let theirs = Objects::new(&repository.objects(), scratch.format(), Loose::Read);
        let Some(tip) = tip.filter(|tip| history.head.commit != Some(*tip)) else {
            return Ok(none(report));
        };
        if tip.kind() != scratch.format() {
            return Err(broken("the commits inside have names of another kind"));
        }
        let place = scratch.path().join("history");
        layer.write_objects(&place).map_err(unusable)?;
        let inside = Objects::new(&place, scratch.format(), Loose::Read);
        let mut walk =
            Walk { inside: &inside, theirs: &theirs, scratch, taken: BTreeSet::new(), bytes: BYTES };
        let new = walk.commits(tip)?;
        let coming = coming_commits(ground, &tip)?;
        if coming.is_empty() {
            report.compared = true;
            return Ok(none(report));
        }
        let known = coming.iter().filter(|id| !walk.taken.contains(id)).count();
        if known > 0 {
            let text =
                format!("with them come {known} commits that your repository has, but not on this branch");
            report.notes.push(Note { code: "other-commits", text });
        }
        Ok(Some(Self { tip, objects: walk.taken, new }))
    }

    /// The submodules that they move, each with its new commit. Of a submodule a state has what the index of the source said:
    /// where it was moved to is known by these commits alone.
    pub(super) fn submodules(
        &self,
        scratch: &Scratch,
        (history, base): (&History, &ObjectId),
    ) -> Result<Vec<(RelPath, Entry)>, Halt> {
        let stood_on = history.head.commit.and_then(|commit| scratch.tree_of(&commit).ok());
        let tip = (&self.tip, &scratch.tree_of(&self.tip)?);
        let changes = differences(scratch, &stood_on.unwrap_or(*base), tip)?;
        let gitlink = |entry: &Entry| entry.mode == Mode::Gitlink;
        let moved = |Change { path, old, new }| {
            old.filter(gitlink)?;
            Some((path, new.filter(gitlink)?))
        };
        Ok(changes.into_iter().filter_map(moved).collect())
    }

    /// Looks at each of them as if it came alone, since somebody may check it out.
    pub(super) fn look_over(
        &self,
        selector: &Selector<'_>,
        (history, around): (&History, &mut Surroundings),
        report: &mut Report,
    ) -> Result<(), Halt> {
        let (mut left, mut mixed) = (CHANGES, Vec::new());
        for (commit, tree, parent) in self.new.iter().rev() {
            let changes = changes(selector.scratch, (commit, tree, parent.as_ref()))?;
            left = left.checked_sub(changes.len()).ok_or_else(|| {
                broken(format!(
                    "the commits made inside change more than {CHANGES} paths, one after the other"
                ))
            })?;
            let is_mixed = |change: &&Change| {
                let blob = change.new.map(|entry| entry.id);
                history.mixed.contains(&(change.path.display_escaped(), blob))
            };
            mixed.extend(changes.iter().filter(is_mixed).map(|change| (*commit, change.path.clone())));
            let known = report.held.len();
            selector.look_over((&changes, tree), around, report)?;
            tell(selector.scratch, commit, &changes, &mut report.held[known..])?;
        }
        refuse_mixed(&mixed)
    }
}

/// Gives the findings of a commit the content that they are about: no difference of states has it.
fn tell(scratch: &Scratch, commit: &ObjectId, changes: &[Change], held: &mut [Finding]) -> Result<(), Halt> {
    for finding in held {
        let at = changes.binary_search_by(|change| change.path.cmp(finding.rel_path()));
        let Ok(at) = at else { continue };
        let title = format!("in commit {}", commit.short(12));
        let text = match changes[at].new {
            None => format!("{title}: removed"),
            Some(new) if new.mode == Mode::Gitlink => format!("{title}: commit {}", new.id),
            Some(new) => {
                let bytes = scratch.blob(&new.id)?;
                let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned();
                let rest = if bytes.len() > SHOWN { "\n(and more)" } else { "" };
                format!("{title}, mode {}, {} bytes:\n{shown}{rest}", new.mode.octal(), bytes.len())
            }
        };
        finding.with_text(&text);
    }
    Ok(())
}

/// The commits from the tip to the target's branch, all of them complete: also those that the target has already, which
/// may be the rest of something that was thrown away, or on another branch.
fn coming_commits(Ground { scratch, repository }: Ground<'_>, tip: &ObjectId) -> Result<Vec<ObjectId>, Halt> {
    let shallow = repository.common_dir.join("shallow");
    if shallow.exists() {
        let mut copy = fs_err::File::create(scratch.path().join("shallow"))?;
        regular::copy(&shallow, &mut copy, SHALLOW)?;
    }
    let mut call = scratch.call().args(["rev-list", "--objects"]).id(tip);
    if let Some(head) = repository.head.tip() {
        call = call.arg(format!("^{head}"));
    }
    let found = call.output();
    let found =
        found.map_err(|error| broken(format!("the commits made inside are not complete: {error}")))?;
    // Trees and blobs have a path behind their name, if only an empty one.
    let commits = String::from_utf8_lossy(&found).lines().filter_map(|line| line.parse().ok()).collect();
    Ok(commits)
}

/// Commits that contain what the user changed outside at the same time are not the sandbox's work.
fn refuse_mixed(mixed: &[(ObjectId, RelPath)]) -> Result<(), Halt> {
    let Some((commit, path)) = mixed.first() else { return Ok(()) };
    let commits: BTreeSet<&ObjectId> = mixed.iter().map(|(commit, _)| commit).collect();
    let more = if commits.len() > 1 { format!(" and {} more", commits.len() - 1) } else { String::new() };
    let text = format!(
        "commit `{}`{more} made inside contains what was changed outside while its command ran, in `{}`",
        commit.short(12),
        path.display_escaped()
    );
    let paths: BTreeSet<&RelPath> = mixed.iter().map(|(_, path)| path).collect();
    Err(Refusal::of(
        Reason::Mixed,
        text,
        paths.into_iter().map(|path| Named::new(path, "was changed outside")).collect(),
    )
    .into())
}

fn none(report: &mut Report) -> Option<Commits> {
    let text = "no commit was made inside that the branch does not have".to_owned();
    report.notes.push(Note { code: "no-history", text });
    None
}

/// What one commit changes.
fn changes(
    scratch: &Scratch,
    (commit, tree, parent): (&ObjectId, &ObjectId, Option<&ObjectId>),
) -> Result<Vec<Change>, Halt> {
    let before = match parent {
        Some(parent) => scratch.tree_of(parent)?,
        None => scratch.empty_tree()?,
    };
    differences(scratch, &before, (commit, tree))
}

fn differences(
    scratch: &Scratch,
    before: &ObjectId,
    (commit, tree): (&ObjectId, &ObjectId),
) -> Result<Vec<Change>, Halt> {
    scratch.trees().changes(before, tree).map_err(|failed| match failed {
        Failed::Error(error @ repository::RepositoryError::TooMuch { .. }) => error.into(),
        _ => broken(format!("commit `{commit}` has a tree that is not in order")),
    })
}

fn unusable(error: LayerError) -> Halt {
    let reason = match error {
        LayerError::Failed(error) => return error.into(),
        LayerError::Reftable => Reason::Reftable,
        LayerError::Unusable(_) => Reason::Objects,
    };
    Refusal::new(reason, error.to_string()).into()
}

fn broken(text: impl Into<String>) -> Halt {
    Refusal::new(Reason::Objects, text).into()
}

/// From the tip to what is there already.
struct Walk<'a> {
    inside: &'a Objects,
    theirs: &'a Objects,
    scratch: &'a Scratch,
    taken: BTreeSet<ObjectId>,
    /// How many more may be taken.
    bytes: usize,
}

impl Walk<'_> {
    /// The commits, each with its tree and its first parent, the oldest last.
    fn commits(&mut self, tip: ObjectId) -> Result<Vec<Walked>, Halt> {
        let (mut found, mut waiting) = (Vec::new(), vec![tip]);
        while let Some(id) = waiting.pop() {
            if self.taken.contains(&id) || self.theirs.contains(&id) {
                continue;
            }
            let data = self.take(&id, ObjectKind::Commit)?;
            refuse_odd(&id, &data)?;
            let Ok(commit) = references(&data) else {
                return Err(broken(format!("commit `{id}` is not in order")));
            };
            self.tree(commit.tree)?;
            found.push((id, commit.tree, commit.parents.first().copied()));
            waiting.extend(commit.parents);
            if found.len() > COMMITS {
                return Err(broken(format!("there are more than {COMMITS} commits")));
            }
        }
        Ok(found)
    }

    fn tree(&mut self, tree: ObjectId) -> Result<(), Halt> {
        let mut waiting = vec![tree];
        while let Some(id) = waiting.pop() {
            if self.taken.contains(&id) || self.theirs.contains(&id) {
                continue;
            }
            let data = self.take(&id, ObjectKind::Tree)?;
            let tree =
                Tree::parse(id.kind(), &data).map_err(|error| broken(format!("tree `{id}`: {error}")))?;
            for entry in tree.entries() {
                match entry.mode {
                    EntryMode::Tree => waiting.push(entry.id),
                    EntryMode::Gitlink => {}
                    _ if self.taken.contains(&entry.id) || self.theirs.contains(&entry.id) => {}
                    _ => drop(self.take(&entry.id, ObjectKind::Blob)?),
                }
            }
        }
        Ok(())
    }

    /// Reads an object, holds it against its name, and puts it into the scratch repository.
    fn take(&mut self, id: &ObjectId, kind: ObjectKind) -> Result<Vec<u8>, Halt> {
        self.scratch.attention().heed()?;
        let most = match kind {
            ObjectKind::Commit => COMMIT_BYTES,
            ObjectKind::Tree => TREE_BYTES,
            _ => self.bytes,
        };
        // Before it is unpacked. What has no size cannot be read either, and that is said below.
        if self.inside.header(id).is_ok_and(|(_, size)| size > most as u64) {
            return Err(broken(format!("{kind} `{id}` of the commits made inside is too large")));
        }
        // Blobs of the snapshot itself are in the store.
        let data = self.inside.read_kind(id, kind).or_else(|error| {
            let text = format!("an object of the commits made inside cannot be used: {error}");
            self.scratch.trees().read(id, kind).map_err(|_| broken(text))
        })?;
        self.bytes = self.bytes.checked_sub(data.len()).ok_or_else(|| {
            broken(format!("the commits made inside have more than {} MiB of content", BYTES >> 20))
        })?;
        self.scratch.trees().write(kind, &data)?;
        self.taken.insert(*id);
        if self.taken.len() > OBJECTS {
            return Err(broken(format!("there are more than {OBJECTS} objects")));
        }
        Ok(data)
    }
}

/// A commit is read by people, in a terminal: it must be text, and say nothing but what commits say.
fn refuse_odd(id: &ObjectId, data: &[u8]) -> Result<(), Halt> {
    const LINES: [&str; 6] = ["tree ", "parent ", "author ", "committer ", ENCODING, "gpgsig"];
    let text = str::from_utf8(data).map_err(|_| broken(format!("commit `{id}` is not UTF-8")))?;
    let head = text.split_once("\n\n").map_or(text, |(head, _)| head);
    let odd_line = |line: &str| !line.starts_with(' ') && !LINES.iter().any(|known| line.starts_with(known));
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if data.len() > COMMIT_BYTES || head.lines().any(odd_line) || text.contains(odd) || hides(text) {
        let text = format!(
            "commit `{id}` has more in it than a commit should: control or hidden characters, or unknown lines"
        );
        return Err(Refusal::new(Reason::Unsafe, text).into());
    }
    let mut encodings = head.lines().filter_map(|line| line.strip_prefix(ENCODING));
    if let Some(encoding) = encodings.find(|encoding| !is_utf8(encoding)) {
        let text = format!(
            "commit `{id}` says that it is written in `{}`: git would show other text than was looked at; \
             only UTF-8 is taken",
            sandtable_store::path::escape(encoding.as_bytes())
        );
        return Err(Refusal::new(Reason::Unsafe, text).into());
    }
    Ok(())
}

/// The line of a commit that says how its text is encoded.
const ENCODING: &str = "encoding ";

/// Whether git takes an encoding for the one that it converts nothing from.
fn is_utf8(encoding: &str) -> bool {
    ["utf-8", "utf8"].iter().any(|name| encoding.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(extra: &str, author: &str, message: &str) -> Option<String> {
        let id = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let text = format!(
            "tree {id}\nauthor {author} <a@example.org> 0 +0000\ncommitter A <a@example.org> 0 +0000\n{extra}\n{message}\n"
        );
        match refuse_odd(&id.parse().unwrap(), text.as_bytes()) {
            Ok(()) => None,
            Err(Halt::Refused(refusal)) => Some(refusal.text),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_commit_hides_nothing_in_its_message_or_in_names() {
        for odd in
            ["\u{202e}", "\u{200b}", "\u{ad}", "\u{61c}", "\u{3164}", "\u{e0041}", "\u{2028}", "\u{1b}[2J"]
        {
            assert!(refused("", &format!("A{odd}"), "Text").is_some(), "author {odd:?}");
            assert!(refused("", "A", &format!("Te{odd}xt")).is_some(), "message {odd:?}");
        }
        for plain in ["Größe", "日本", "❤\u{fe0f} 👩\u{200d}💻", "می\u{200c}خواهم", "a\tb"] {
            assert_eq!(refused("", plain, plain), None, "{plain:?}");
        }
    }

    #[test]
    fn a_commit_that_git_would_encode_anew_is_refused() {
        for encoding in ["UTF-7", "ISO-8859-1", "UTF-16", "utf-8//TRANSLIT", ""] {
            let text = refused(&format!("encoding {encoding}\n"), "A", "Text").expect(encoding);
            assert!(text.contains("only UTF-8 is taken"), "{text}");
        }
        let two = "encoding UTF-8\nencoding UTF-7\n";
        assert!(refused(two, "A", "Text").is_some());
        for encoding in ["UTF-8", "utf8"] {
            assert_eq!(refused(&format!("encoding {encoding}\n"), "A", "Text"), None, "{encoding}");
        }
        assert_eq!(refused("", "A", "encoding UTF-7"), None, "in the message it says nothing");
    }
}
