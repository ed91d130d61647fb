//! Whether everything may be written that a delivery writes. A file system that is mounted for reading only answers like
//! one without permission.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use sandtable_sandbox::model::path::HostPath;
use sandtable_store::RelPath;

use crate::halt::Halt;
use crate::named::Named;
use crate::plan::Plan;
use crate::refusal::{Reason, Refusal};
use crate::request::Mode;
use crate::target::{Repository, Target};
use crate::worktree::{Worktree, same_device};

/// Looks at every directory that gets, or loses, a name.
pub(crate) fn writable(plan: &Plan, mode: &Mode) -> Result<(), Halt> {
    if let Target::Repository(repository) = &plan.target {
        in_repository(repository, mode)?;
    }
    if !mode.writes_files() {
        return Ok(());
    }
    let worktree = plan.worktree()?;
    let mut wrong = Vec::new();
    let mut above: BTreeSet<RelPath> = plan.files.iter().filter_map(|step| step.path.parent()).collect();
    if !plan.target.is_repository() {
        above.insert(RelPath::default());
    }
    for folder in above {
        plan.scratch.attention().heed()?;
        if let Some(errno) = why_not(&worktree, &folder) {
            wrong.push(Named::new(&folder, errno.to_string()));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Refusal::of(Reason::NotWritable, "files of the target cannot be written", wrong).into())
}

/// New files are prepared beside the index where that is on the same file system, and else in the top directory.
fn in_repository(repository: &Repository, mode: &Mode) -> Result<(), Refusal> {
    let git_dir = &repository.git_dir;
    let root = repository.root.as_ref().map(HostPath::as_path).filter(|_| mode.writes_files());
    let beside = root.filter(|root| !same_device(root, git_dir)).map(Path::to_owned);
    let folders = match mode {
        Mode::Merge | Mode::Branch(_) => {
            vec![git_dir.clone(), repository.common_dir.clone(), repository.objects()]
        }
        Mode::Apply if beside.is_none() => vec![git_dir.clone()],
        Mode::Apply | Mode::Patch(_) | Mode::Bundle { .. } => Vec::new(),
    };
    for folder in folders.into_iter().chain(beside) {
        if let Some(errno) = denied(CWD, &folder) {
            let text = format!("`{}` cannot be written: {errno}", folder.display());
            return Err(Refusal::new(Reason::NotWritable, text));
        }
    }
    Ok(())
}

/// Of a directory that is not there yet: the nearest one above it. What is no directory is somebody else's to refuse.
fn why_not(worktree: &Worktree, folder: &RelPath) -> Option<Errno> {
    let above = std::iter::successors(Some(folder.clone()), RelPath::parent);
    let found =
        above.map(|folder| worktree.folder(&folder)).find(|found| !matches!(found, Err(Errno::NOENT)));
    match found {
        Some(Ok(folder)) => denied(folder.as_fd(), Path::new(".")),
        Some(Err(errno @ Errno::ACCESS)) => Some(errno),
        _ => None,
    }
}

fn denied(at: BorrowedFd<'_>, path: &Path) -> Option<Errno> {
    let errno = accessat(at, path, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).err()?;
    [Errno::ACCESS, Errno::PERM, Errno::ROFS].contains(&errno).then_some(errno)
}
