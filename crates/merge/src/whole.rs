//! An apply to a plain directory, which keeps what git's trees have no words for: directories without files, and
//! permissions. Decided by the same three-way rule as files: what the user changed since the base is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd as _;

use sandtable_store::RelPath;
use sandtable_store::dir::{self, Kind, Meta, stat_at};

use super::beyond::Beyond;
use super::error::Error;
use super::file_step::FileStep;
use super::halt::Halt;
use super::left_out::LeftOutWhy;
use super::named::Named;
use super::outcome::{ChangeKind, Delivered};
use super::refusal::{Reason, Refusal};
use super::report::Report;
use super::request::MergeRequest;
use super::review::{Permissions, Surroundings, refused_directory, wider};
use super::tree::Mode;
use super::worktree::{Seen, Worktree};

/// What is brought of permissions. Set-id bits never are.
pub(super) const PERMISSIONS: u16 = 0o777;

/// What is delivered besides files.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// Directories that are made, for themselves and not for a file in them.
    pub(super) made: BTreeSet<RelPath>,
    /// Empty directories that go.
    pub(super) gone: BTreeSet<RelPath>,
    /// Directories that stay, though their last file goes.
    pub(super) kept: BTreeSet<RelPath>,
    /// Permissions of files that are written anyway.
    pub(super) written: BTreeMap<RelPath, u16>,
    /// Permissions of all else.
    pub(super) changed: Vec<NewMode>,
    /// What is not delivered.
    pub(super) left: Vec<(RelPath, LeftOutWhy)>,
}

/// Permissions that something gets.
#[derive(Clone, Debug)]
pub(super) struct NewMode {
    pub(super) path: RelPath,
    /// What it has now; none for a directory that is made.
    pub(super) before: Option<u16>,
    pub(super) after: u16,
}

/// Whether a part of the work is in the target afterwards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comes {
    Yes,
    No,
}

impl Whole {
    /// Whether nothing is to be done.
    pub(super) fn is_empty(&self) -> bool {
        self.made.is_empty() && self.gone.is_empty() && self.changed.is_empty()
    }

    /// Decides about everything that was asked for.
    pub(super) fn of(files: &[FileStep], request: &MergeRequest, worktree: &Worktree) -> Result<Self, Error> {
        let mut whole = Self::default();
        let decider = Decider::new(files, worktree);
        let asked = request.beyond_git.iter().filter(|beyond| request.asks_for(&beyond.path));
        // Innermost first, so that a directory is known to be empty once what is in it goes.
        for beyond in asked.rev() {
            let barred = request.drifted.contains(&beyond.path) || is_of_git(&beyond.path);
            let comes = if barred { Comes::No } else { decider.decide(beyond, &mut whole)? };
            if comes == Comes::No || beyond.has_set_id() {
                whole.left.push((beyond.path.clone(), beyond.why));
            }
        }
        whole.left.reverse();
        Ok(whole)
    }

    /// All of it as bytes, for the name of the plan.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let line = |word: &str, path: &RelPath| {
            let path = path.as_bytes();
            [format!("{word} {}\0", path.len()).as_bytes(), path].concat()
        };
        let made = self.made.iter().map(|path| line("made", path));
        let gone = self.gone.iter().map(|path| line("gone", path));
        let kept = self.kept.iter().map(|path| line("kept", path));
        let written = self.written.iter().map(|(path, mode)| line(&format!("mode {mode:o}"), path));
        let changed = self.changed.iter().map(|new| line(&format!("mode {:o}", new.after), &new.path));
        made.chain(gone).chain(kept).chain(written).chain(changed).flatten().collect()
    }

    /// Looks at the permissions that something gets, and at the names of directories.
    pub(super) fn look_over(
        &self,
        (files, request): (&[FileStep], &MergeRequest),
        around: &Surroundings,
        report: &mut Report,
    ) -> Result<(), Halt> {
        let refused = self.made.iter().flat_map(|path| refused_directory(path, around));
        let named: Vec<Named> = refused.map(|found| Named::new(found.rel_path(), found.reason)).collect();
        if !named.is_empty() {
            return Err(Refusal::of(Reason::Unsafe, "a change is never brought over", named).into());
        }
        let steps: BTreeMap<&RelPath, &FileStep> = files.iter().map(|step| (&step.path, step)).collect();
        let beyond = request.beyond_git.iter().filter(|beyond| beyond.is_directory);
        let directories: BTreeSet<&RelPath> = beyond.map(|beyond| &beyond.path).collect();
        let mut modes: Vec<(&RelPath, Permissions)> = Vec::new();
        for new in &self.changed {
            let is_directory = self.made.contains(&new.path) || directories.contains(&new.path);
            modes.push((&new.path, Permissions { before: new.before, after: new.after, is_directory }));
        }
        for (path, after) in &self.written {
            let step = steps.get(path);
            let before = match step.map(|step| &step.seen) {
                Some(Seen::File { permissions, .. }) => Some(*permissions),
                _ => None,
            };
            // What git's trees call a program was looked at already.
            let is_program = step.and_then(|step| step.new).is_some_and(|new| new.mode == Mode::Executable);
            let before = if is_program { Some(before.unwrap_or(0o664) | 0o111) } else { before };
            modes.push((path, Permissions { before, after: *after, is_directory: false }));
        }
        let looked_at = report.held.iter().chain(&report.approved);
        let contents: BTreeMap<RelPath, String> =
            looked_at.map(|finding| (finding.rel_path().clone(), finding.id.clone())).collect();
        let mut ids = BTreeMap::new();
        for (path, mode) in modes {
            around.attention.heed()?;
            let found = wider(path, &mode, around);
            if let Some(id) = contents.get(path).filter(|_| !found.is_empty()) {
                ids.insert(path, around.seal.with_permissions(id, mode.after));
            }
            let approved = request.approvals.includes(path);
            if approved { &mut report.approved } else { &mut report.held }.extend(found);
        }
        // A path has one name to approve it by, whatever it is held for.
        for finding in report.held.iter_mut().chain(&mut report.approved) {
            if let Some(id) = ids.get(finding.rel_path()) {
                finding.id.clone_from(id);
            }
        }
        Ok(())
    }

    /// The paths that no change of a file tells of.
    pub(super) fn told(&self) -> Vec<Delivered> {
        let told = |path: &RelPath, kind| Delivered { path: path.into(), kind, old: None, new: None };
        let made = self.made.iter().map(|path| told(path, ChangeKind::Added));
        let gone = self.gone.iter().map(|path| told(path, ChangeKind::Removed));
        let modes = self.changed.iter().filter(|mode| mode.before.is_some());
        made.chain(gone).chain(modes.map(|mode| told(&mode.path, ChangeKind::ModeChanged))).collect()
    }
}

/// A repository inside is git's own affair.
fn is_of_git(path: &RelPath) -> bool {
    path.components().any(|name| name.eq_ignore_ascii_case(b".git"))
}

struct Decider<'a> {
    worktree: &'a Worktree,
    steps: BTreeMap<&'a RelPath, &'a FileStep>,
}

impl<'a> Decider<'a> {
    fn new(files: &'a [FileStep], worktree: &'a Worktree) -> Self {
        Self { worktree, steps: files.iter().map(|step| (&step.path, step)).collect() }
    }

    fn decide(&self, beyond: &Beyond, whole: &mut Whole) -> Result<Comes, Error> {
        let path = &beyond.path;
        match (beyond.why, beyond.old, beyond.new) {
            (LeftOutWhy::EmptyDirectory, Some(_), Some(_)) => {
                whole.kept.insert(path.clone());
                Ok(Comes::Yes)
            }
            (LeftOutWhy::EmptyDirectory, None, Some(mode)) => self.new_folder(path, mode, whole),
            (LeftOutWhy::EmptyDirectory, _, None) => self.old_folder(path, whole),
            (LeftOutWhy::Permissions, old, Some(new)) => {
                Ok(self.mode(path, (old.map(|old| old & PERMISSIONS), new & PERMISSIONS), whole))
            }
            _ => Ok(Comes::No),
        }
    }

    fn new_folder(&self, path: &RelPath, mode: u16, whole: &mut Whole) -> Result<Comes, Error> {
        match self.worktree.see(path)? {
            Seen::Directory => return Ok(Comes::Yes),
            Seen::Absent => {}
            _ if self.gives_way(path) => {}
            _ => return Ok(Comes::No),
        }
        whole.made.insert(path.clone());
        whole.changed.push(NewMode { path: path.clone(), before: None, after: mode & PERMISSIONS });
        Ok(Comes::Yes)
    }

    /// Whether a file that is there, or on the way there, is removed.
    fn gives_way(&self, path: &RelPath) -> bool {
        let removed = |path: &RelPath| self.steps.get(path).is_some_and(|step| step.new.is_none());
        std::iter::successors(Some(path.clone()), RelPath::parent).any(|path| removed(&path))
    }

    fn old_folder(&self, path: &RelPath, whole: &mut Whole) -> Result<Comes, Error> {
        if self.worktree.see(path)? != Seen::Directory {
            return Ok(Comes::Yes);
        }
        // What cannot be looked into stays.
        let Ok(handle) = dir::open_below(self.worktree.root(), path) else { return Ok(Comes::No) };
        let goes = |name: &[u8]| path.join(name).is_ok_and(|child| whole.gone.contains(&child));
        if !dir::names(handle.as_fd())?.iter().all(|name| goes(&name.bytes)) {
            return Ok(Comes::No);
        }
        whole.gone.insert(path.clone());
        Ok(Comes::Yes)
    }

    fn mode(&self, path: &RelPath, (old, new): (Option<u16>, u16), whole: &mut Whole) -> Comes {
        if let Some(step) = self.steps.get(path).filter(|step| step.new.is_some()) {
            return match &step.seen {
                Seen::File { permissions, .. } if ![old, Some(new)].contains(&Some(*permissions)) => {
                    Comes::No
                }
                _ => {
                    whole.written.insert(path.clone(), new);
                    Comes::Yes
                }
            };
        }
        match (self.meta(path), old) {
            (Some(meta), _) if meta.mode & PERMISSIONS == new && is_plain(&meta) => Comes::Yes,
            (Some(meta), Some(old))
                if meta.mode & PERMISSIONS == old && is_plain(&meta) && is_ours(&meta) =>
            {
                whole.changed.push(NewMode { path: path.clone(), before: Some(old), after: new });
                Comes::Yes
            }
            // A directory that is made because of the files in it.
            (found, None) if found.is_none() || self.gives_way(path) => {
                whole.changed.push(NewMode { path: path.clone(), before: None, after: new });
                Comes::Yes
            }
            _ => Comes::No,
        }
    }

    fn meta(&self, path: &RelPath) -> Option<Meta> {
        let parent = self.worktree.parent(path).ok()?;
        stat_at(parent.as_fd(), path.name()?).ok()
    }
}

fn is_plain(meta: &Meta) -> bool {
    matches!(meta.kind, Kind::File | Kind::Directory) && !meta.is_mount
}

/// Only an owner may change permissions.
fn is_ours(meta: &Meta) -> bool {
    let user = rustix::process::geteuid();
    user.is_root() || user.as_raw() == meta.uid
}
