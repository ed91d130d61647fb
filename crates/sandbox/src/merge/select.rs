//! What of a snapshot is brought over: what was asked for, without what the repository would not track, looked over,
//! and in the form in which git keeps it.

use std::collections::BTreeSet;

use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;

use super::convert::Conversion;
use super::error::Error;
use super::ignore::ignored;
use super::lookup::{TreeContents, lookup};
use super::outcome::{LeftOut, LeftOutWhy, Named, Reason, Refusal};
use super::plan::{Halt, Report};
use super::request::{Means, MergeRequest, Mode};
use super::review::{Finding, review};
use super::scratch::Scratch;
use super::target::{Repository, Target};
use super::tree::{Change, Entry};

/// Two trees whose difference is what is brought over.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) base: ObjectId,
    pub(super) theirs: ObjectId,
    /// The difference of the two.
    pub(super) changes: Vec<Change>,
}

/// Where the selection is made.
pub(super) struct Selector<'a> {
    pub(super) means: &'a Means,
    pub(super) request: &'a MergeRequest,
    pub(super) scratch: &'a Scratch,
    pub(super) target: &'a Target,
    /// The tree of the target's branch, where it has one.
    pub(super) head: Option<ObjectId>,
}

impl Selector<'_> {
    pub(super) fn select(&self, report: &mut Report) -> Result<Selection, Halt> {
        let base = self.scratch.tree_of(&self.request.base)?;
        let snapshot = self.scratch.tree_of(&self.request.snapshot)?;
        let all = self.scratch.changes(&base, &snapshot)?;
        let total = all.len();
        let asked = self.asked_for(all, report)?;
        let tracked = self.tracked(asked, &snapshot, report)?;
        self.look_over(&tracked, &snapshot, report)?;
        self.trees(base, snapshot, (tracked, total))
    }

    /// `--only` and `--exclude`, and an error for one that names nothing.
    fn asked_for(&self, all: Vec<Change>, report: &mut Report) -> Result<Vec<Change>, Halt> {
        let MergeRequest { only, exclude, .. } = self.request;
        let unused: Vec<Named> = only
            .iter()
            .chain(exclude)
            .filter(|path| !all.iter().any(|change| is_below(&change.path, path)))
            .map(|path| Named::new(path, "no change is there"))
            .collect();
        if !unused.is_empty() {
            return Err(
                Refusal::of(Reason::Selection, "a path was named that nothing changed", unused).into()
            );
        }
        let wanted = |change: &Change| {
            let named = |list: &[RelPath]| list.iter().any(|path| is_below(&change.path, path));
            (only.is_empty() || named(only)) && !named(exclude)
        };
        let (taken, left): (Vec<Change>, Vec<Change>) = all.into_iter().partition(wanted);
        report.leave_out(left.iter().map(|change| &change.path), LeftOutWhy::Selection);
        Ok(taken)
    }

    /// Without new files that the repository ignores.
    fn tracked(
        &self,
        changes: Vec<Change>,
        tree: &ObjectId,
        report: &mut Report,
    ) -> Result<Vec<Change>, Error> {
        let (Target::Repository(repository), Some(head)) = (self.target, &self.head) else {
            return Ok(changes);
        };
        let present: Vec<&RelPath> =
            changes.iter().filter(|change| change.new.is_some()).map(|change| &change.path).collect();
        let known = lookup(self.scratch, head, present.iter().copied())?;
        let unknown: Vec<&RelPath> = present.into_iter().filter(|path| !known.contains_key(*path)).collect();
        let home = self.means.home.as_ref();
        let ignored = ignored(self.scratch, repository, home, (tree, &unknown))?;
        report.leave_out(ignored.iter(), LeftOutWhy::Ignored);
        Ok(changes.into_iter().filter(|change| !ignored.contains(&change.path)).collect())
    }

    /// A rename of the user's may have led a change to a path that nobody looked at: that path is looked at too.
    pub(super) fn look_at_result(
        &self,
        seen: &BTreeSet<RelPath>,
        (delivery, result): (&[Change], &ObjectId),
        report: &mut Report,
    ) -> Result<(), Halt> {
        let elsewhere: Vec<Change> =
            delivery.iter().filter(|change| !seen.contains(&change.path)).cloned().collect();
        if elsewhere.is_empty() { Ok(()) } else { self.look_over(&elsewhere, result, report) }
    }

    fn look_over(&self, changes: &[Change], tree: &ObjectId, report: &mut Report) -> Result<(), Halt> {
        let fresh =
            changes.iter().filter(|change| change.old.map(|old| old.id) != change.new.map(|new| new.id));
        let blobs =
            fresh.filter_map(|change| change.new).filter(|new| new.mode != super::tree::Mode::Gitlink);
        let ids: BTreeSet<ObjectId> = blobs.map(|new| new.id).collect();
        let ids: Vec<ObjectId> = ids.into_iter().collect();
        let contents = TreeContents::new(self.scratch, *tree, &ids)?;
        let reviewed = review(changes, &contents, &self.request.approvals)?;
        report.approved.extend(reviewed.approved);
        if !reviewed.refused.is_empty() {
            let named = |finding: &Finding| Named::new(finding.rel_path(), finding.reason);
            let paths = reviewed.refused.iter().map(named).collect();
            return Err(Refusal::of(Reason::Unsafe, "a change is never brought over", paths).into());
        }
        if !reviewed.held.is_empty() {
            return Err(Halt::Held(reviewed.held));
        }
        Ok(())
    }

    /// The two trees, with files as git keeps them.
    fn trees(
        &self,
        base: ObjectId,
        snapshot: ObjectId,
        (changes, total): (Vec<Change>, usize),
    ) -> Result<Selection, Halt> {
        let converted = match (self.target, &self.head) {
            (Target::Repository(repository), Some(head)) => self.converted(repository, head, &changes)?,
            _ => None,
        };
        match converted {
            None if changes.len() == total => Ok(Selection { base, theirs: snapshot, changes }),
            None => {
                let edits = changes.iter().map(|change| (&change.path, change.new));
                let theirs = self.scratch.edited(&base, edits)?;
                Ok(Selection { base, theirs, changes })
            }
            Some(clean) => {
                let base =
                    self.scratch.edited(&base, clean.iter().map(|change| (&change.path, change.old)))?;
                let edits = clean.iter().map(|change| (&change.path, change.new));
                let theirs = self.scratch.edited(&base, edits)?;
                Ok(Selection { base, theirs, changes: self.scratch.changes(&base, &theirs)? })
            }
        }
    }

    /// The changes with clean blobs; none when that makes no difference.
    fn converted(
        &self,
        repository: &Repository,
        head: &ObjectId,
        changes: &[Change],
    ) -> Result<Option<Vec<Change>>, Halt> {
        let paths: Vec<&RelPath> = changes.iter().map(|change| &change.path).collect();
        let mut conversion = Conversion::new(repository.settings.get("core.autocrlf"));
        conversion.ask(self.scratch, head, &paths)?;
        self.refuse_filtered(&conversion, head, changes)?;
        if !paths.iter().any(|path| conversion.converts(path)) {
            return Ok(None);
        }
        let side = |path: &RelPath, entry: Option<Entry>| -> Result<Option<Entry>, Error> {
            let Some(Entry { mode, id }) = entry.filter(|entry| entry.mode.is_regular()) else {
                return Ok(entry);
            };
            if !conversion.converts(path) {
                return Ok(entry);
            }
            let id = conversion.clean(self.scratch, head, (path, &self.scratch.blob(&id)?))?;
            Ok(Some(Entry { mode, id }))
        };
        let mut clean = Vec::new();
        for Change { path, old, new } in changes {
            clean.push(Change { path: path.clone(), old: side(path, *old)?, new: side(path, *new)? });
        }
        Ok(Some(clean))
    }

    /// A file that goes through a program has another content in the repository than on disk, and only that program
    /// knows which. Files can be applied; a commit cannot be made.
    fn refuse_filtered(
        &self,
        conversion: &Conversion,
        head: &ObjectId,
        changes: &[Change],
    ) -> Result<(), Halt> {
        if self.request.mode == Mode::Apply {
            return Ok(());
        }
        let filtered: Vec<&Change> =
            changes.iter().filter(|change| conversion.filter(&change.path).is_some()).collect();
        let committed = lookup(self.scratch, head, filtered.iter().map(|change| &change.path))?;
        let differs = |change: &&&Change| committed.get(&change.path).copied() != change.old;
        let paths: Vec<Named> = filtered
            .iter()
            .filter(differs)
            .map(|change| {
                let filter = conversion.filter(&change.path).unwrap_or_default();
                Named::new(&change.path, format!("it goes through the filter `{filter}`"))
            })
            .collect();
        if paths.is_empty() {
            return Ok(());
        }
        Err(Refusal::of(Reason::Filtered, "a file goes through a program, which is not run here", paths)
            .into())
    }
}

impl Report {
    fn leave_out<'a>(&mut self, paths: impl Iterator<Item = &'a RelPath>, why: LeftOutWhy) {
        self.left_out.extend(paths.map(|path| LeftOut { path: path.into(), why }));
    }
}

/// Whether a path is another one or lies below it.
fn is_below(path: &RelPath, above: &RelPath) -> bool {
    let rest = path.as_bytes().strip_prefix(above.as_bytes());
    above.is_root() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
