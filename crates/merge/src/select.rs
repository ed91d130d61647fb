//! What of a snapshot is brought over: what was asked for, without what the repository would not track, looked over,
//! and in the form in which git keeps it.

use std::collections::BTreeSet;

use sandtable_store::RelPath;
use sandtable_store::diff::Hunks;
use sandtable_store::id::ObjectId;

use super::convert::Conversion;
use super::error::Error;
use super::halt::Halt;
use super::ignore::ignored;
use super::left_out::LeftOutWhy;
use super::lookup::{TreeContents, lookup};
use super::named::Named;
use super::refusal::{Reason, Refusal};
use super::report::Report;
use super::request::{Means, MergeRequest, Mode, Way};
use super::review::{Finding, LONGEST, Surroundings, is_too_long, refusals, review};
use super::scratch::Scratch;
use super::target::{Repository, Target};
use super::tree::{Change, Entry};

/// How many of the paths that are too long are named.
const SHOWN: usize = 3;

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

/// A list of changes, and the tree they lead to.
pub(super) type Arriving<'a> = (&'a [Change], &'a ObjectId);

impl Selector<'_> {
    /// `moved` are submodules at the commits that were recorded inside.
    pub(super) fn select(
        &self,
        moved: &[(RelPath, Entry)],
        around: &mut Surroundings,
        report: &mut Report,
    ) -> Result<Selection, Halt> {
        let base = self.scratch.tree_of(&self.request.base)?;
        let snapshot = self.scratch.tree_of(&self.request.snapshot)?;
        let snapshot = self.with_submodules(&snapshot, moved)?;
        let all = self.scratch.changes(&base, &snapshot)?;
        let asked = self.asked_for(self.recorded(all.clone(), report), report)?;
        let chosen = self.chosen(asked, report)?;
        let tracked = self.tracked(chosen, &snapshot, report)?;
        refuse_long(&tracked)?;
        around.with(self.scratch, &tracked)?;
        self.refuse_unsafe(&tracked, &snapshot, around)?;
        let amount = if tracked == all { Amount::All } else { Amount::Some };
        let selection = self.trees(base, snapshot, (tracked, amount))?;
        Ok(match self.request.way {
            Way::There => selection,
            Way::Back => selection.reversed(),
        })
    }

    /// A state with submodules elsewhere, where it still has them.
    fn with_submodules(&self, tree: &ObjectId, moved: &[(RelPath, Entry)]) -> Result<ObjectId, Error> {
        let known = lookup(self.scratch, tree, moved.iter().map(|(path, _)| path))?;
        let is_one = |entry: &Entry| entry.mode == super::tree::Mode::Gitlink;
        let edits = moved.iter().filter(|(path, _)| known.get(path).is_some_and(is_one));
        self.scratch.edited(tree, edits.map(|(path, new)| (path, Some(*new))))
    }

    /// Of some files, some hunks.
    fn chosen(&self, changes: Vec<Change>, report: &mut Report) -> Result<Vec<Change>, Halt> {
        let mut found = Vec::new();
        for change in changes {
            let Some(numbers) = self.request.hunks.get(&change.path) else {
                found.push(change);
                continue;
            };
            let read = |entry: Option<Entry>| match entry {
                Some(entry) if entry.mode.is_regular() => self.scratch.blob(&entry.id),
                _ => Ok(Vec::new()),
            };
            let (old, new) = (read(change.old)?, read(change.new)?);
            let whole = [change.old, change.new].into_iter().flatten().any(|entry| !entry.mode.is_regular());
            let hunks = Hunks::of(&old, &new).filter(|hunks| !whole && hunks.count() > 0);
            let all = hunks.as_ref().map_or(1, Hunks::count);
            match hunks {
                _ if numbers.is_empty() => {
                    report.leave_out(std::iter::once(&change.path), LeftOutWhy::Selection);
                }
                Some(hunks) if numbers.len() < all => {
                    let id = self.scratch.write_blob(&hunks.taken(numbers))?;
                    let mode = change.new.or(change.old).map_or(super::tree::Mode::File, |entry| entry.mode);
                    found.push(Change { new: Some(Entry { mode, id }), ..change });
                }
                _ => found.push(change),
            }
        }
        Ok(found)
    }

    /// Without what seems to be removed because the snapshot does not hold what is there.
    fn recorded(&self, mut changes: Vec<Change>, report: &mut Report) -> Vec<Change> {
        let seems =
            |change: &mut Change| change.new.is_none() && self.request.unrecorded.may_have(&change.path);
        let spared: Vec<RelPath> = changes.extract_if(.., seems).map(|change| change.path).collect();
        report.leave_out(spared.iter(), LeftOutWhy::Unrecorded);
        report.unrecorded = spared;
        changes
    }

    /// `--only` and `--exclude`, and an error for one that names nothing.
    fn asked_for(&self, all: Vec<Change>, report: &mut Report) -> Result<Vec<Change>, Halt> {
        let MergeRequest { only, exclude, .. } = self.request;
        let unused: Vec<Named> = only
            .iter()
            .chain(exclude)
            .filter(|path| !all.iter().any(|change| change.path.is_within(path)))
            .filter(|path| !self.request.beyond_git.iter().any(|beyond| beyond.path.is_within(path)))
            .map(|path| Named::new(path, "no change is there"))
            .collect();
        if !unused.is_empty() {
            return Err(
                Refusal::of(Reason::Selection, "a path was named that nothing changed", unused).into()
            );
        }
        let wanted = |change: &Change| self.request.asks_for(&change.path);
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
        let ignored = ignored(self.scratch, repository, self.means, (tree, &unknown))?;
        report.leave_out(ignored.iter(), LeftOutWhy::Ignored);
        Ok(changes.into_iter().filter(|change| !ignored.contains(&change.path)).collect())
    }

    /// Looks at what arrives, where it arrives: a rename of the user's may have led it elsewhere, and what the target has
    /// already needs nobody's approval.
    pub(super) fn look_over(
        &self,
        (delivery, result): Arriving<'_>,
        around: &mut Surroundings,
        report: &mut Report,
    ) -> Result<(), Halt> {
        around.with(self.scratch, delivery)?;
        let contents = self.contents(delivery, result)?;
        let reviewed = review(delivery, &contents, around, &self.request.approvals)?;
        report.approved.extend(reviewed.approved);
        report.flagged.extend(reviewed.flagged);
        report.held.extend(reviewed.held);
        refused(&reviewed.refused)
    }

    /// Before anything is made of the work: what is never brought over.
    fn refuse_unsafe(&self, changes: &[Change], tree: &ObjectId, around: &Surroundings) -> Result<(), Halt> {
        refused(&refusals(changes, &self.contents(changes, tree)?, around)?)
    }

    fn contents(&self, changes: &[Change], tree: &ObjectId) -> Result<TreeContents<'_>, Error> {
        let fresh =
            changes.iter().filter(|change| change.old.map(|old| old.id) != change.new.map(|new| new.id));
        let blobs =
            fresh.filter_map(|change| change.new).filter(|new| new.mode != super::tree::Mode::Gitlink);
        let ids: BTreeSet<ObjectId> = blobs.map(|new| new.id).collect();
        TreeContents::new(self.scratch, *tree, &ids.into_iter().collect::<Vec<_>>())
    }

    /// The two trees, with files as git keeps them.
    fn trees(
        &self,
        base: ObjectId,
        snapshot: ObjectId,
        (changes, amount): (Vec<Change>, Amount),
    ) -> Result<Selection, Halt> {
        let converted = match (self.target, &self.head) {
            (Target::Repository(repository), Some(head)) => self.converted(repository, head, &changes)?,
            _ => None,
        };
        match converted {
            None if amount == Amount::All => Ok(Selection { base, theirs: snapshot, changes }),
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

impl Selection {
    /// The same, taken back.
    fn reversed(self) -> Self {
        let back = |change: Change| Change { old: change.new, new: change.old, ..change };
        Self { base: self.theirs, theirs: self.base, changes: self.changes.into_iter().map(back).collect() }
    }
}

/// How much of the work was selected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amount {
    All,
    Some,
}

/// What is too long to be looked at in full.
fn refuse_long(changes: &[Change]) -> Result<(), Halt> {
    let long = changes.iter().filter(|change| is_too_long(change));
    let paths: Vec<Named> = long.take(SHOWN).map(|change| Named::new(&change.path, "too long")).collect();
    if paths.is_empty() {
        return Ok(());
    }
    let text = format!("a path is longer than the {LONGEST} bytes that programs can open");
    Err(Refusal::of(Reason::TooMuch, text, paths).into())
}

/// What no approval lets through.
fn refused(findings: &[Finding]) -> Result<(), Halt> {
    if findings.is_empty() {
        return Ok(());
    }
    let named = |finding: &Finding| Named::new(finding.rel_path(), finding.reason);
    let paths = findings.iter().map(named).collect();
    Err(Refusal::of(Reason::Unsafe, "a change is never brought over", paths).into())
}
