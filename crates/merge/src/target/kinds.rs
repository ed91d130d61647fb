//! Whether files are in the places where git keeps files. Git opens what it finds there: a named pipe would keep it waiting
//! for ever, and whoever waits for it.

use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_sandbox::repository::is_plain;
use sandtable_store::regular;

use super::Repository;
use crate::refusal::{Reason, Refusal};

/// Files that git opens by their names.
const READ_BY_GIT: [&str; 12] = [
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "index",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "objects/info/alternates",
    "packed-refs",
    "shallow",
];

/// Directories in which git opens more than one name can say: lists of commits, packs with all that belongs to them, tables of
/// references.
const LISTED: [&str; 4] = ["objects/info", "objects/info/commit-graphs", "objects/pack", "reftable"];

/// Directories of a worktree below which files are written, by us or by git.
const OF_WORKTREE: [&str; 3] = ["logs", "logs/refs", "refs"];

/// The same of the directory that worktrees share.
const SHARED: [&str; 11] = [
    "logs",
    "logs/refs",
    "logs/refs/heads",
    "objects",
    "objects/info",
    "objects/info/commit-graphs",
    "objects/pack",
    "refs",
    "refs/heads",
    "reftable",
    "worktrees",
];

/// The largest file with one reference.
const LINE: u64 = 1 << 16;
/// As many references may name one another, as in git.
const LINKS: usize = 5;

/// What is in the place of a file, in the directories of a repository.
pub(super) fn odd(git_dir: &Path, common_dir: &Path) -> Option<PathBuf> {
    let mut named = [git_dir, common_dir].into_iter().flat_map(|dir| READ_BY_GIT.map(|name| dir.join(name)));
    named
        .find(|path| path.metadata().is_ok_and(|meta| !meta.is_file()))
        .or_else(|| LISTED.iter().find_map(|folder| odd_in(&common_dir.join(folder))))
        .or_else(|| odd_below_head(git_dir, common_dir))
}

/// A link in the place of a directory that files are written to: they would be written somewhere else. `objects` also has a
/// directory for the first digits of each object.
pub(super) fn link(git_dir: &Path, common_dir: &Path) -> Option<PathBuf> {
    let own = OF_WORKTREE.map(|name| git_dir.join(name));
    let shared = SHARED.map(|name| common_dir.join(name));
    let objects = fs::read_dir(common_dir.join("objects")).into_iter().flatten().flatten();
    own.into_iter().chain(shared).chain(objects.map(|entry| entry.path())).find(|path| path.is_symlink())
}

/// The same on the way to a file below one of those directories.
fn link_above(dir: &Path, file: &Path) -> Option<PathBuf> {
    let above = file.ancestors().skip(1).take_while(|path| *path != dir);
    above.filter(|path| path.is_symlink()).map(Path::to_owned).last()
}

/// In a directory that may have others in it.
fn odd_in(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let not_plain =
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_file() && !kind.is_dir()));
    not_plain.map(|entry| entry.path()).find(|path| is_special(path))
}

/// In the place of the reference that `HEAD` names, or of one that this names.
fn odd_below_head(git_dir: &Path, common_dir: &Path) -> Option<PathBuf> {
    let mut file = git_dir.join("HEAD");
    for _ in 0..LINKS {
        let text = regular::read_to_string(&file, LINE).ok()?;
        let name = text.strip_prefix("ref:")?.trim();
        if !is_plain(name) {
            return None;
        }
        file = common_dir.join(name);
        if is_special(&file) {
            return Some(file);
        }
    }
    None
}

/// Neither a file nor a directory; what is not there is neither.
pub(super) fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

impl Repository {
    /// Why a branch cannot be moved here, or made: what is in the place of its file or of its reflogs is something else.
    pub(crate) fn odd_branch(&self, name: &str) -> Option<Refusal> {
        let file = self.common_dir.join(name);
        if is_special(&file) {
            return Some(refusal(&file));
        }
        if let Some(link) = link_above(&self.common_dir, &file) {
            return Some(link_refusal(&link));
        }
        let head = (self.head.branch() == Some(name)).then_some((&self.git_dir, "HEAD"));
        [(&self.common_dir, name)].into_iter().chain(head).find_map(|(dir, name)| odd_log(dir, name))
    }
}

/// A link is not followed here: the line that is added would go to another place.
fn odd_log(dir: &Path, name: &str) -> Option<Refusal> {
    let log = dir.join("logs").join(name);
    if log.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
        return Some(refusal(&log));
    }
    if let Some(link) = link_above(dir, &log) {
        return Some(link_refusal(&link));
    }
    let mut above = log.ancestors().skip(1).take_while(|path| *path != dir);
    let odd = above.find(|path| path.metadata().is_ok_and(|meta| !meta.is_dir()))?;
    Some(Refusal::new(Reason::GitDirectory, format!("`{}` is no directory", odd.display())))
}

pub(super) fn refusal(odd: &Path) -> Refusal {
    Refusal::new(Reason::GitDirectory, format!("`{}` is no regular file", odd.display()))
}

pub(super) fn link_refusal(link: &Path) -> Refusal {
    let text = format!(
        "`{}` is a link, and writing below it would change files outside the git directory",
        link.display()
    );
    Refusal::new(Reason::GitDirectory, text).with(format!("replace `{}` by a directory", link.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A git directory with one thing in the place of a file.
    fn found(name: &str) -> (PathBuf, Option<PathBuf>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if name != "HEAD" {
            fs::write(dir.path().join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        assert_eq!(odd(dir.path(), dir.path()), None);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        (path, odd(dir.path(), dir.path()))
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_that_git_opens_is_found() {
        let listed = [
            "objects/info/commit-graph",
            "objects/info/commit-graphs/commit-graph-chain",
            "objects/pack/multi-pack-index",
            "objects/pack/pack-1.rev",
            "reftable/tables.list",
            "refs/heads/main",
        ];
        for name in READ_BY_GIT.into_iter().chain(listed) {
            let (path, found) = found(name);
            assert_eq!(found, Some(path));
        }
    }

    #[test]
    fn what_git_does_not_open_is_no_matter() {
        for name in ["fsmonitor--daemon.ipc", "gitk.cache", "refs/heads/other"] {
            assert_eq!(found(name).1, None, "{name}");
        }
    }

    #[test]
    fn a_reference_that_is_named_by_another_is_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("refs/heads")).unwrap();
        fs::write(dir.path().join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(dir.path().join("refs/heads/main"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(odd(dir.path(), dir.path()), None, "a circle ends");
        fs::write(dir.path().join("refs/heads/main"), "ref: refs/heads/other\n").unwrap();
        let other = dir.path().join("refs/heads/other");
        rustix::fs::mkfifoat(rustix::fs::CWD, &other, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(odd(dir.path(), dir.path()), Some(other));
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_that_is_written_to_is_found() {
        let names = OF_WORKTREE.into_iter().chain(SHARED).chain(["objects/ab"]);
        for name in names {
            let dir = tempfile::tempdir().unwrap();
            let git = dir.path().join("git");
            let path = git.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            assert_eq!(link(&git, &git), None, "{name}");
            std::os::unix::fs::symlink(dir.path(), &path).unwrap();
            assert_eq!(link(&git, &git), Some(path));
        }
    }

    #[test]
    fn a_link_above_a_reflog_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join("git");
        let heads = git.join("logs/refs/heads");
        fs::create_dir_all(&heads).unwrap();
        std::os::unix::fs::symlink(dir.path(), heads.join("d")).unwrap();
        for name in ["refs/heads/d/x", "refs/heads/d/e/x"] {
            let refusal = odd_log(&git, name).unwrap();
            assert!(refusal.text.contains("logs/refs/heads/d` is a link"), "{}", refusal.text);
        }
    }

    #[test]
    fn a_reflog_is_a_file_below_directories() {
        let dir = tempfile::tempdir().unwrap();
        let odd = |name: &str| odd_log(dir.path(), name).map(|refusal| refusal.text);
        assert_eq!(odd("refs/heads/main"), None, "none is there yet");
        let log = dir.path().join("logs/refs/heads/main");
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        fs::write(&log, "").unwrap();
        assert_eq!(odd("refs/heads/main"), None);
        assert!(odd("refs/heads/main/below").unwrap().ends_with("main` is no directory"));
        std::os::unix::fs::symlink("main", log.with_file_name("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, log.with_file_name("pipe"), rustix::fs::Mode::RUSR).unwrap();
        for name in ["link", "pipe"] {
            let text = odd(&format!("refs/heads/{name}")).unwrap();
            assert!(text.ends_with("is no regular file"), "{text}");
        }
    }
}
