//! Links in the user's git directory. What one of them leads to is run or obeyed as if it were there: a hook, attributes,
//! the configuration of a submodule.

use std::collections::BTreeSet;
use std::fs::FileType;
use std::path::{Path, PathBuf};

use fs_err as fs;

/// As many entries of one directory are looked at.
const ENTRIES: usize = 4096;
/// As many git directories, with those of submodules and other worktrees.
const MOST: usize = 1024;
/// The directories in which each entry can be a link that matters.
const LOOKED_INTO: [&str; 5] = ["", "hooks", "info", "objects", "objects/info"];

/// A git directory with those below it.
#[derive(Debug, Default)]
pub(super) struct GitDirs {
    pub(super) links: Vec<PathBuf>,
    /// Of submodules, also of submodules of theirs.
    pub(super) modules: Vec<PathBuf>,
}

impl GitDirs {
    /// Of a worktree: the directory of its own, and the one that worktrees share.
    pub(super) fn of(git_dir: &Path, common_dir: &Path) -> Self {
        let mut found = Self::default();
        let mut waiting: Vec<PathBuf> =
            BTreeSet::from([git_dir, common_dir]).into_iter().map(Into::into).collect();
        let mut looked = 0;
        while let Some(dir) = waiting.pop().filter(|_| looked < MOST) {
            looked += 1;
            for folder in LOOKED_INTO {
                let folder = if folder.is_empty() { dir.clone() } else { dir.join(folder) };
                found.links.extend(links(&folder));
            }
            waiting.extend(folders(&dir.join("worktrees")));
            let modules = modules(&dir.join("modules"), MOST - looked);
            waiting.extend(modules.iter().cloned());
            found.modules.extend(modules);
        }
        found
    }
}

/// The git directories below a directory. The name of a submodule may have several parts.
fn modules(folder: &Path, most: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = folders(folder);
    let mut looked = 0;
    while let Some(dir) = waiting.pop().filter(|_| looked < most) {
        looked += 1;
        if dir.join("HEAD").symlink_metadata().is_ok() {
            found.push(dir);
        } else {
            waiting.extend(folders(&dir));
        }
    }
    found
}

/// The links in a directory.
pub(super) fn links(folder: &Path) -> Vec<PathBuf> {
    entries(folder, FileType::is_symlink)
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    entries(folder, FileType::is_dir)
}

fn entries(folder: &Path, wanted: fn(&FileType) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| wanted(&kind)))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use fs_err::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_found_wherever_git_reads() {
        let directory = tempfile::tempdir().unwrap();
        let common = directory.path();
        let names = [
            "hooks/pre-commit",
            "info/attributes",
            "config.worktree",
            "objects/info/alternates",
            "modules/lib/config",
            "modules/a/b/hooks",
            "modules/a/b/modules/deep/info/attributes",
            "worktrees/other/config.worktree",
        ];
        for name in names {
            fs::create_dir_all(common.join(name).parent().unwrap()).unwrap();
            symlink("../x", common.join(name)).unwrap();
        }
        for module in ["modules/lib", "modules/a/b", "modules/a/b/modules/deep"] {
            fs::write(common.join(module).join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        fs::write(common.join("hooks/pre-push"), "").unwrap();
        let found = GitDirs::of(&common.join("worktrees/this"), common);
        let expected: BTreeSet<PathBuf> = names.iter().map(|name| common.join(name)).collect();
        assert_eq!(found.links.into_iter().collect::<BTreeSet<_>>(), expected);
        assert_eq!(found.modules.len(), 3);
    }
}
