//! Files exchanged one by one, none lost.
//!
//! A new file is written aside and *exchanged* with the old one in a single step; what comes out is held against what
//! the plan saw. So an editor that saves at the wrong moment is found out afterwards, with its save still in our hands,
//! and everything is put back.

mod back;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{
    AtFlags, Mode as Bits, OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW, fchmod, futimens, mkdirat,
    openat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;
use sandtable_store::RelPath;
use sandtable_store::dir::{self, Meta, stat_at, stat_fd};
use sandtable_store::id::ObjectId;
use sandtable_store::rollback;

use super::journal::{Folder, Journal, Phase, Step, StepKind};
use super::{Delivery, Stop};
use crate::blobs;
use crate::convert::Conversion;
use crate::error::Error;
use crate::file_step::FileStep;
use crate::plan::Plan;
use crate::tree::{Entry, Mode};
use crate::whole::Whole;
use crate::worktree::{Seen, Stamp, Worktree, see_in, stamp_in};

pub(super) use back::{finish, put_back};

/// The files of one delivery; a step in the journal for each.
#[derive(Debug)]
pub(super) struct Files {
    /// What each step writes, and with what permissions.
    new: Vec<(Option<Entry>, Permissions)>,
}

/// What permissions a new file has.
#[derive(Clone, Copy, Debug)]
enum Permissions {
    /// What a program gets that makes a file.
    Usual,
    /// Those of the file that it replaces, but for the executable bit.
    Like(u16),
    Exactly(u16),
}

impl Files {
    /// Enters every step into the journal.
    pub(super) fn plan(plan: &Plan, worktree: &Worktree, journal: &mut Journal) -> Result<Self, Error> {
        let mut new = Vec::new();
        for FileStep { path, seen, new: entry } in &plan.files {
            let there = matches!(seen, Seen::File { .. } | Seen::Symlink(_));
            let kind = match (there, entry) {
                (true, Some(_)) => StepKind::Replace,
                (true, None) => StepKind::Remove,
                (false, Some(_)) => StepKind::Add,
                (false, None) => continue,
            };
            let permissions = match (plan.whole.written.get(path), seen) {
                (Some(exactly), _) => Permissions::Exactly(*exactly),
                (None, Seen::File { permissions, .. }) => Permissions::Like(*permissions),
                _ => Permissions::Usual,
            };
            let before = seen.digest();
            journal.steps.push(Step { path: path.clone(), kind, before, new: None, staged: None });
            new.push((*entry, permissions));
            if *seen == Seen::Directory && entry.is_some() {
                for folder in worktree.below(path)?.0 {
                    journal.leaving.push(folder_at(worktree, &folder)?);
                }
            }
        }
        whole::plan(&plan.whole, worktree, journal)?;
        plan_folders(&plan.whole, worktree, journal)?;
        Ok(Self { new })
    }

    /// Writes every new file aside; to disk, unless the journal says that git could bring it back.
    pub(super) fn stage(&self, delivery: &Delivery<'_>, journal: &mut Journal) -> Result<(), Stop> {
        let plan = delivery.plan;
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
            .create(&journal.holding)?;
        let holding = dir::open_named(&journal.holding)?;
        let (contents, forced) = (self.contents(plan, journal)?, journal.forces_files());
        for (number, step) in journal.steps.iter_mut().enumerate() {
            delivery.heed()?;
            let (Some(entry), permissions) = self.new[number] else { continue };
            let name = number.to_string();
            let bytes = &contents[&number];
            if entry.mode == Mode::Symlink {
                symlinkat(bytes.as_slice(), &holding, &name)?;
            } else {
                let file = write_file(holding.as_fd(), &name, bytes, (entry.mode, permissions))?;
                if forced {
                    file.sync_all()?;
                }
            }
            step.new = stamp_in(holding.as_fd(), name.as_bytes())?;
        }
        journal.phase = Phase::Staged;
        Ok(())
    }

    /// The bytes of every new file, by step.
    fn contents(&self, plan: &Plan, journal: &Journal) -> Result<BTreeMap<usize, Vec<u8>>, Error> {
        let mut conversion = Conversion::new(plan.target.autocrlf());
        let paths: Vec<&RelPath> = journal.steps.iter().map(|step| &step.path).collect();
        if plan.target.is_repository() {
            conversion.ask(&plan.scratch, &plan.result, &paths)?;
        }
        let as_is = |number: usize, entry: &Entry| {
            entry.mode == Mode::Symlink || !conversion.converts(&journal.steps[number].path)
        };
        let entries =
            || self.new.iter().enumerate().filter_map(|(number, (entry, _))| Some((number, (*entry)?)));
        let ids: BTreeSet<ObjectId> =
            entries().filter(|(number, entry)| as_is(*number, entry)).map(|(_, entry)| entry.id).collect();
        let ids: Vec<ObjectId> = ids.into_iter().collect();
        let loaded = blobs::contents(&plan.scratch, &ids)?;
        let mut found = BTreeMap::new();
        for (number, entry) in entries() {
            let bytes = match loaded.get(&entry.id).filter(|_| as_is(number, &entry)) {
                Some(bytes) => bytes.clone(),
                None => conversion.smudge(
                    &plan.scratch,
                    &plan.result,
                    (&journal.steps[number].path, &entry.id),
                )?,
            };
            found.insert(number, bytes);
        }
        Ok(found)
    }

    /// Exchanges the files, each looked at as it comes out.
    pub(super) fn swap(delivery: &Delivery<'_>, worktree: &Worktree, journal: &Journal) -> Result<(), Stop> {
        let holding = dir::open_named(&journal.holding)?;
        let steps = || journal.steps.iter().enumerate();
        for (number, step) in steps().filter(|(_, step)| step.kind == StepKind::Remove) {
            delivery.heed()?;
            let parent = worktree.parent(&step.path).map_err(|_| moved(step))?;
            rename(parent.as_fd(), name(step), (holding.as_fd(), number), RenameFlags::NOREPLACE)
                .map_err(|_| moved(step))?;
            expect(holding.as_fd(), number, step)?;
        }
        for folder in journal.leaving.iter().rev() {
            let parent = worktree.parent(&folder.path)?;
            unlinkat(&parent, folder.path.name().unwrap_or_default(), AtFlags::REMOVEDIR).map_err(|_| {
                Stop::RolledBack(format!("files came into `{}` meanwhile", folder.path.display_escaped()))
            })?;
        }
        for folder in &journal.made {
            let parent = worktree.parent(&folder.path)?;
            mkdirat(&parent, folder.path.name().unwrap_or_default(), Bits::from_raw_mode(0o777))?;
        }
        // Whoever puts it back knows by this time what directories only we have changed.
        futimens(&holding, &now())?;
        for (number, step) in steps().filter(|(_, step)| step.kind != StepKind::Remove) {
            delivery.heed()?;
            let parent = worktree.parent(&step.path).map_err(|_| moved(step))?;
            let flags = match step.kind {
                StepKind::Replace => RenameFlags::EXCHANGE,
                _ => RenameFlags::NOREPLACE,
            };
            let to = (holding.as_fd(), number);
            match rename_out(to, parent.as_fd(), name(step), flags) {
                Err(Errno::EXIST | Errno::NOENT) => return Err(moved(step)),
                result => result?,
            }
            if step.kind == StepKind::Replace {
                expect(holding.as_fd(), number, step)?;
            }
        }
        Ok(())
    }

    /// The new files as they are in their places, as far as they are still ours.
    pub(super) fn written(worktree: &Worktree, journal: &Journal) -> BTreeMap<RelPath, Meta> {
        let mut found = BTreeMap::new();
        for step in journal.steps.iter().filter(|step| step.kind != StepKind::Remove) {
            let Ok(parent) = worktree.parent(&step.path) else { continue };
            if let Ok(meta) = stat_at(parent.as_fd(), name(step))
                && Some(Stamp::of(&meta)) == step.new
            {
                found.insert(step.path.clone(), meta);
            }
        }
        found
    }

    /// A last look, before the result stands.
    pub(super) fn verify(worktree: &Worktree, journal: &Journal) -> Result<(), Stop> {
        let holding = dir::open_named(&journal.holding)?;
        for (number, step) in journal.steps.iter().enumerate() {
            if step.kind != StepKind::Remove && worktree.stamp(&step.path)? != step.new {
                return Err(moved(step));
            }
            if step.kind == StepKind::Remove
                && worktree.stamp(&step.path)?.is_some()
                && !Self::is_made(journal, step)
            {
                return Err(moved(step));
            }
            if step.kind != StepKind::Add {
                expect(holding.as_fd(), number, step)?;
            }
        }
        Ok(())
    }

    /// Whether a removed file's name is now that of a directory of ours.
    fn is_made(journal: &Journal, step: &Step) -> bool {
        journal.made.iter().any(|folder| folder.path == step.path)
    }
}

fn now() -> Timestamps {
    let now = || Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    Timestamps { last_access: now(), last_modification: now() }
}

fn write_file(
    holding: BorrowedFd<'_>,
    name: &str,
    bytes: &[u8],
    (mode, permissions): (Mode, Permissions),
) -> Result<std::fs::File, Error> {
    let bits = if mode == Mode::Executable { 0o777 } else { 0o666 };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(holding, name, flags, Bits::from_raw_mode(bits))?;
    let wanted = match permissions {
        Permissions::Usual => None,
        // The user's choice of who may read it stays; who may read a program may run it.
        Permissions::Like(old) if mode == Mode::Executable => Some(old | (old & 0o444) >> 2),
        Permissions::Like(old) => Some(old & !0o111),
        Permissions::Exactly(bits) => Some(bits),
    };
    if let Some(wanted) = wanted {
        fchmod(&file, Bits::from_raw_mode(wanted.into()))?;
    }
    let mut file = std::fs::File::from(file);
    file.write_all(bytes)?;
    Ok(file)
}

/// Which directories are made, and which ones change.
fn plan_folders(whole: &Whole, worktree: &Worktree, journal: &mut Journal) -> Result<(), Error> {
    let mut made: BTreeSet<RelPath> = whole.made.clone();
    let mut touched: BTreeSet<RelPath> = BTreeSet::new();
    let folders = whole.made.iter().chain(&whole.gone);
    for path in journal.steps.iter().map(|step| &step.path).chain(folders) {
        // What is above a known directory is known.
        let known = |folder: &RelPath| made.contains(folder) || touched.contains(folder);
        let above = std::iter::successors(path.parent(), RelPath::parent);
        let above: Vec<RelPath> = above.take_while(|folder| !known(folder)).collect();
        for folder in above {
            let there = worktree.see(&folder)? == Seen::Directory || folder.is_root();
            let set = if there { &mut touched } else { &mut made };
            set.insert(folder);
        }
    }
    // Sorted by bytes, a directory comes before what is in it.
    for path in made {
        journal.made.push(Folder { path, mode: 0, mtime_ns: 0 });
    }
    for path in touched {
        journal.touched.push(folder_at(worktree, &path)?);
    }
    Ok(())
}

fn folder_at(worktree: &Worktree, path: &RelPath) -> Result<Folder, Error> {
    let handle: OwnedFd = dir::open_below(worktree.root(), path)?;
    let meta = stat_fd(handle.as_fd())?;
    Ok(Folder { path: path.clone(), mode: meta.mode, mtime_ns: meta.mtime_ns })
}

/// What came out must be what the plan saw.
fn expect(holding: BorrowedFd<'_>, number: usize, step: &Step) -> Result<(), Stop> {
    let seen = see_in(holding, number.to_string().as_bytes())?;
    if seen.digest() == step.before { Ok(()) } else { Err(moved(step)) }
}

fn moved(step: &Step) -> Stop {
    Stop::RolledBack(format!("`{}` was changed meanwhile", step.path.display_escaped()))
}

fn name(step: &Step) -> &[u8] {
    step.path.name().unwrap_or_default()
}

fn rename(
    from: BorrowedFd<'_>,
    name: &[u8],
    (to, number): (BorrowedFd<'_>, usize),
    flags: RenameFlags,
) -> Result<(), Errno> {
    renameat_with(from, name, to, number.to_string(), flags)
}

fn rename_out(
    (from, number): (BorrowedFd<'_>, usize),
    to: BorrowedFd<'_>,
    name: &[u8],
    flags: RenameFlags,
) -> Result<(), Errno> {
    renameat_with(from, number.to_string(), to, name, flags)
}

/// Removes the holding directory with what is still in it, whatever others put there. Returns the new name of what could not
/// be removed, if it is in the worktree.
fn remove_holding(journal: &Journal) -> Result<Option<RelPath>, Error> {
    let Some((above, name)) = journal.holding.parent().zip(journal.holding.file_name()) else {
        return Ok(None);
    };
    let above_handle = match dir::open_named(above) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        opened => opened?,
    };
    let kept = rollback::clear_away(above_handle.as_fd(), name.as_bytes(), &journal.id)?;
    let below = above.strip_prefix(&journal.root).ok();
    let below = below.and_then(|below| RelPath::new(below.as_os_str().as_bytes()).ok());
    Ok(kept.zip(below).and_then(|(kept, below)| below.join(&kept).ok()))
}
