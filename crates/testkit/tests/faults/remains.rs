//! What an operation must not leave, however it ended: locks of git's or ours, staging files in the user's directory,
//! half layers, damage in a repository or a store.

use std::path::{Path, PathBuf};

use crate::ground::Ground;

/// What must be gone after the next command, whichever it is: everything in the user's own directory, and all damage.
pub(crate) fn remains(ground: &Ground, source: &Path) -> Vec<String> {
    let staging = |path: &Path| name(path).starts_with(".sandtable");
    let mut found: Vec<String> =
        below(source).iter().filter(|path| staging(path)).map(|path| told(path)).collect();
    let locks = git_directory(source).map(|git| below(&git)).unwrap_or_default();
    found.extend(locks.iter().filter(|path| ends(path, &["lock"])).map(|path| told(path)));
    if source.join(".git").exists() {
        let words = ["fsck", "--no-progress", "--no-dangling"];
        let fsck = ground.env().run("git").directory(source).args(words).ended();
        if fsck.code != 0 || !fsck.stdout.is_empty() {
            found.push(format!("git fsck: {} {}", fsck.stdout, fsck.stderr));
        }
    }
    let fsck = ground.ended(source, &["store", "fsck"]);
    if fsck.code != 0 && !fsck.stderr.contains("[no-states]") {
        found.push(format!("store fsck: {} {}", fsck.stdout, fsck.stderr));
    }
    found
}

/// What must be gone after the next command of the same kind: half layers and scratch repositories among our own files.
pub(crate) fn scratch(ground: &Ground) -> Vec<String> {
    let mut found = Vec::new();
    for sandbox in entries(&ground.data().join("sandboxes")) {
        let half = |path: &&PathBuf| ends(path, &["new", "draft"]);
        found.extend(entries(&sandbox).iter().filter(half).map(|path| told(path)));
    }
    for target in entries(&ground.data().join("merges")).iter().filter(|path| path.is_dir()) {
        let scratch = entries(target).into_iter().filter(|path| name(path) != "lock");
        found.extend(scratch.map(|path| told(&path)));
    }
    found
}

/// Where all references and locks of a repository are, those of its linked working trees too.
fn git_directory(source: &Path) -> Option<PathBuf> {
    let git = source.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = fs_err::read_to_string(git).ok()?;
    let own = PathBuf::from(text.strip_prefix("gitdir: ")?.trim());
    Some(own.parent()?.parent()?.to_owned())
}

fn told(path: &Path) -> String {
    format!("left: {}", path.display())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn ends(path: &Path, with: &[&str]) -> bool {
    path.extension().is_some_and(|end| with.iter().any(|word| end == *word))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs_err::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Every path below a directory.
fn below(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut waiting) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for path in entries(&folder) {
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path.clone());
            }
            found.push(path);
        }
    }
    found
}
