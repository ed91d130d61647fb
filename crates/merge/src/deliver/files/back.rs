//! The two ends of a delivery, each safe to begin again: the old files are thrown away, or everything is put back.
//! Both look at what is there rather than trust how far it went.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Mode as Bits, RenameFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens, mkdirat, unlinkat,
};
use rustix::io::Errno;
use sandtable_store::RelPath;
use sandtable_store::dir;
use sandtable_store::id::HashKind;
use sandtable_store::object::{Hasher, ObjectKind};
use sandtable_store::remove::remove_at;
use sandtable_store::rollback;

use super::{name, remove_holding, rename, rename_out, whole};
use crate::deliver::journal::{Folder, Journal, Phase, Step, StepKind};
use crate::deliver::staged::Since;
use crate::error::Error;
use crate::worktree::{Seen, Stamp, Worktree, see_in, stamp_in};

/// The result stands: old files go, and directories that have become empty. What somebody wrote to an old file meanwhile is kept
/// beside it, and returned.
pub(in crate::deliver) fn finish(journal: &Journal) -> Result<Vec<RelPath>, Error> {
    let worktree = Worktree::open(&journal.root)?;
    let mut beside = Vec::new();
    if let Ok(holding) = dir::open_named(&journal.holding) {
        for (number, step) in journal.steps.iter().enumerate() {
            let seen = see_in(holding.as_fd(), number.to_string().as_bytes())?;
            let there = seen.content().is_some();
            // Somebody wrote to the old file through a handle of their own.
            if there && step.kind != StepKind::Add && seen.digest() != step.before {
                beside.push(keep_beside(&worktree, holding.as_fd(), (number, step), journal)?);
            }
        }
    }
    beside.extend(remove_holding(journal)?);
    for step in journal.steps.iter().filter(|step| step.kind == StepKind::Remove) {
        remove_empty(&worktree, &step.path, journal)?;
    }
    // Innermost first: what is in a directory may be out of reach afterwards.
    for mode in journal.modes.iter().rev() {
        whole::set_mode(&worktree, mode)?;
    }
    Ok(beside)
}

/// Undoes the delivery: everything goes back to where it was. What others did stays, and is returned, with the new names of what
/// they wrote to old files.
pub(in crate::deliver) fn put_back(journal: &Journal) -> Result<Vec<RelPath>, Error> {
    let worktree = Worktree::open(&journal.root)?;
    let quiet = quiet_folders(&worktree, journal);
    let (mut left, beside) = (Vec::new(), RefCell::new(Vec::new()));
    if let (Ok(holding), true) = (dir::open_named(&journal.holding), journal.phase != Phase::Preparing) {
        let since = Since::of(journal)?;
        let undo = |(number, step)| Undo {
            worktree: &worktree,
            holding: holding.as_fd(),
            journal,
            number,
            step,
            taken: since.took_up(step),
            beside: &beside,
        };
        let steps = || journal.steps.iter().enumerate().rev();
        let mut each = |undo: Undo<'_>, result: Whose| {
            if result == Whose::Theirs {
                left.push(undo.step.path.clone());
            }
        };
        for step in steps().filter(|(_, step)| step.kind != StepKind::Remove).map(undo) {
            let whose = step.new_file()?;
            each(step, whose);
        }
        for folder in journal.made.iter().rev() {
            remove_folder(&worktree, &folder.path)?;
        }
        for folder in &journal.leaving {
            make_folder(&worktree, folder)?;
        }
        for step in steps().filter(|(_, step)| step.kind == StepKind::Remove).map(undo) {
            let whose = step.removed_file()?;
            each(step, whose);
        }
    }
    left.extend(remove_holding(journal)?);
    for folder in quiet.into_iter().chain(&journal.leaving) {
        restore_time(&worktree, folder);
    }
    left.extend(beside.into_inner());
    left.sort_unstable();
    Ok(left)
}

/// Directories in which nobody but us was at work: every step of ours moves the time of the holding directory too.
fn quiet_folders<'a>(worktree: &Worktree, journal: &'a Journal) -> Vec<&'a Folder> {
    let time = |handle: &OwnedFd| dir::stat_fd(handle.as_fd()).map(|meta| meta.mtime_ns);
    let last = dir::open_named(&journal.holding).and_then(|holding| time(&holding)).unwrap_or(i64::MAX);
    let now = |folder: &Folder| dir::open_below(worktree.root(), &folder.path).and_then(|open| time(&open));
    journal.touched.iter().filter(|folder| now(folder).is_ok_and(|time| time <= last)).collect()
}

/// Who has the last word on a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Ours,
    /// It was left as it is.
    Theirs,
}

/// One step, on its way back.
struct Undo<'a> {
    worktree: &'a Worktree,
    holding: BorrowedFd<'a>,
    journal: &'a Journal,
    number: usize,
    step: &'a Step,
    /// Whether somebody has told git of the path as it is now.
    taken: bool,
    /// Where old files were kept that somebody wrote to.
    beside: &'a RefCell<Vec<RelPath>>,
}

impl Undo<'_> {
    fn aside(&self) -> Result<Option<Stamp>, Error> {
        stamp_in(self.holding, self.number.to_string().as_bytes())
    }

    /// A file of ours gives its place back, unless somebody has written to it since, removed it, or committed it.
    fn new_file(&self) -> Result<Whose, Error> {
        let Some(new) = self.step.new else { return Ok(Whose::Ours) };
        if self.aside()? == Some(new) {
            // It never came to its place.
            return Ok(Whose::Ours);
        }
        if self.taken || self.worktree.stamp(&self.step.path)? != Some(new) {
            return self.keep_old();
        }
        let Ok(parent) = self.worktree.parent(&self.step.path) else { return Ok(Whose::Theirs) };
        let place = (self.holding, self.number);
        match self.step.kind {
            // Aside again, so that a second recovery after this one was killed knows it.
            StepKind::Add => {
                // Its place aside is empty, unless others put something there.
                remove_at(self.holding, self.number.to_string().as_bytes())?;
                rename(parent.as_fd(), name(self.step), place, RenameFlags::NOREPLACE)?;
            }
            _ if self.aside()?.is_none() => return Ok(Whose::Theirs),
            _ => {
                rename_out(place, parent.as_fd(), name(self.step), RenameFlags::EXCHANGE)?;
                if self.aside()? != Some(new) {
                    self.keep_beside()?;
                }
            }
        }
        Ok(Whose::Ours)
    }

    /// The path is somebody's by now. What git has of the old file need not be kept; all else must be.
    fn keep_old(&self) -> Result<Whose, Error> {
        let aside = see_in(self.holding, self.number.to_string().as_bytes())?;
        let is_old = aside.digest() == self.step.before;
        let git_has = is_old && (self.journal.reference.is_some() || self.git_has(&aside));
        if aside != Seen::Absent && !git_has {
            self.keep_beside()?;
        }
        Ok(Whose::Theirs)
    }

    fn keep_beside(&self) -> Result<(), Error> {
        let kept = keep_beside(self.worktree, self.holding, (self.number, self.step), self.journal)?;
        self.beside.borrow_mut().push(kept);
        Ok(())
    }

    fn removed_file(&self) -> Result<Whose, Error> {
        if self.aside()?.is_none() {
            return Ok(Whose::Ours);
        }
        if self.taken {
            return self.keep_old();
        }
        // Somebody removed the directory that it was in.
        let Ok(parent) = self.worktree.parent(&self.step.path) else { return self.keep_old() };
        let from = (self.holding, self.number);
        match rename_out(from, parent.as_fd(), name(self.step), RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) if self.is_back()? => Ok(Whose::Theirs),
            Err(Errno::EXIST) => self.keep_old(),
            result => Ok(result.map(|()| Whose::Ours)?),
        }
    }

    /// Whether somebody has put the same file there.
    fn is_back(&self) -> Result<bool, Error> {
        Ok(self.worktree.see(&self.step.path)?.digest() == self.step.before)
    }

    /// Whether the index had exactly this content before, so that git has it still.
    fn git_has(&self, seen: &Seen) -> bool {
        let Some((mode, bytes)) = seen.content() else { return false };
        let Some(staged) = &self.step.staged else { return false };
        let kinds = [HashKind::Sha1, HashKind::Sha256];
        let id = |kind| {
            let mut hasher = Hasher::new(kind, ObjectKind::Blob, bytes.len() as u64);
            hasher.update(bytes);
            hasher.finish().ok()
        };
        kinds.into_iter().filter_map(id).any(|id| *staged == format!("{:o} {id}", mode.bits()))
    }
}

/// Nothing that somebody wrote is thrown away: it gets a name beside the file it was.
fn keep_beside(
    worktree: &Worktree,
    holding: BorrowedFd<'_>,
    (number, step): (usize, &Step),
    journal: &Journal,
) -> Result<RelPath, Error> {
    let (parent, above) = match worktree.parent(&step.path) {
        Ok(parent) => (parent, step.path.parent().unwrap_or_default()),
        Err(_) => (dir::reopen(worktree.root())?, RelPath::root()),
    };
    let number = number.to_string();
    let kept =
        rollback::keep_beside((holding, number.as_bytes()), (parent.as_fd(), name(step)), &journal.id)?;
    Ok(above.join(&kept).map_err(|_| Errno::NAMETOOLONG)?)
}

/// Removes the directories above a removed file that nothing is in any more.
fn remove_empty(worktree: &Worktree, path: &RelPath, journal: &Journal) -> Result<(), Errno> {
    let is_kept = |path: &RelPath| journal.kept.iter().any(|kept| kept.path == *path);
    for folder in std::iter::successors(path.parent(), RelPath::parent).filter(|folder| !folder.is_root()) {
        if is_kept(&folder) || !remove_folder(worktree, &folder)? {
            break;
        }
    }
    Ok(())
}

/// Whether the directory was empty and is gone, now or since an earlier call that was killed.
/// One that is not empty, or that may not be removed, stays; a disk that fails is an error, and the next command tries again.
fn remove_folder(worktree: &Worktree, path: &RelPath) -> Result<bool, Errno> {
    let removed = worktree
        .parent(path)
        .and_then(|parent| unlinkat(&parent, path.name().unwrap_or_default(), AtFlags::REMOVEDIR));
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(errno @ (Errno::IO | Errno::NOSPC | Errno::DQUOT)) => Err(errno),
        Err(_) => Ok(false),
    }
}

fn make_folder(worktree: &Worktree, folder: &Folder) -> Result<(), Error> {
    // Somebody removed the directory that it was in.
    let Ok(parent) = worktree.parent(&folder.path) else { return Ok(()) };
    match mkdirat(&parent, folder.path.name().unwrap_or_default(), Bits::RWXU) {
        Ok(()) => {
            let made = dir::open_below(worktree.root(), &folder.path)?;
            Ok(fchmod(&made, Bits::from_raw_mode(folder.mode.into()))?)
        }
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// As if nobody had been here. A directory that cannot be reached any more is somebody else's doing.
fn restore_time(worktree: &Worktree, folder: &Folder) {
    let Ok(handle) = dir::open_below(worktree.root(), &folder.path) else { return };
    let seconds = folder.mtime_ns.div_euclid(1_000_000_000);
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: folder.mtime_ns.rem_euclid(1_000_000_000) },
    };
    futimens(&handle, &times).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_wrote_to_an_old_file_finds_a_name_however_long_that_was() {
        let place = tempfile::tempdir().unwrap();
        let long = "n".repeat(255);
        for (old, taken) in [("f", &["f.sandtable-0123456789abcdef"][..]), (&long, &[])] {
            let root = place.path().join(&old[..1]);
            fs_err::create_dir_all(root.join("d")).unwrap();
            for taken in taken {
                fs_err::write(root.join("d").join(taken), "theirs").unwrap();
            }
            let mut journal = Journal::new("0123456789abcdef".to_owned(), &root, None);
            let path = RelPath::new(format!("d/{old}")).unwrap();
            let before = "what it was".to_owned();
            journal.steps.push(Step { path, kind: StepKind::Replace, before, new: None, staged: None });
            fs_err::create_dir(&journal.holding).unwrap();
            fs_err::write(journal.holding.join("0"), "mine").unwrap();
            let beside = finish(&journal).unwrap();
            let [kept] = beside.as_slice() else { panic!("{beside:?}") };
            let kept = root.join(String::from_utf8_lossy(kept.as_bytes()).as_ref());
            assert_eq!(fs_err::read_to_string(kept).unwrap(), "mine");
            assert!(!journal.holding.exists());
            assert_eq!(finish(&journal).unwrap(), [], "again, as after a kill");
        }
    }
}
