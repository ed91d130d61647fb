use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::*;
use crate::copy;
use crate::dir::open_named;
use crate::layer::GitState;

struct Trees {
    source: tempfile::TempDir,
    copy: tempfile::TempDir,
    finished: Stamp,
}

impl Trees {
    fn new(files: &[&str]) -> Self {
        let (source, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for path in files {
            let path = source.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "as it was").unwrap();
        }
        let (from, to) = (open_named(source.path()).unwrap(), open_named(copy.path()).unwrap());
        let options = copy::CopyOptions { leave_out: &left_out, progress: &|_| (), cancelled: &|| false };
        let outcome = copy::copy(from.as_fd(), to.as_fd(), &options).unwrap();
        Self { source, copy, finished: outcome.finished }
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.copy.path().join(path)
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.source.path().join(path)
    }

    fn compared(&self) -> LayerOutcome {
        let (copy, source) = (open_named(self.copy.path()).unwrap(), open_named(self.source.path()).unwrap());
        let pair =
            Pair { copy: copy.as_fd(), source: source.as_fd(), finished: self.finished, left_out: &left_out };
        compare(pair, &LayerOptions::default()).unwrap()
    }

    fn found(&self) -> Vec<String> {
        let changes = self.compared().changes.into_iter();
        changes
            .map(|change| format!("{:?} {} {}", change.kind, change.path.display_escaped(), change.below))
            .collect()
    }
}

fn left_out(path: &RelPath, _: Kind) -> bool {
    path.name() == Some(b".env")
}

#[test]
fn nothing_done_is_nothing_found() {
    let trees = Trees::new(&["a", "d/b", "d/.env", ".git/HEAD"]);
    let outcome = trees.compared();
    assert_eq!((outcome.changes, outcome.skipped, outcome.git), (vec![], vec![], GitState::Untouched));
}

#[test]
fn every_kind_of_change_is_found() {
    let trees = Trees::new(&["same", "edited", "mode", "kind", "gone/x", "gone/y", "deep/er/f", ".git/HEAD"]);
    fs_err::write(trees.inside("edited"), "different").unwrap();
    fs_err::write(trees.inside("same"), "as it was").unwrap();
    fs_err::set_permissions(trees.inside("mode"), PermissionsExt::from_mode(0o600)).unwrap();
    fs_err::remove_file(trees.inside("kind")).unwrap();
    symlink("same", trees.inside("kind")).unwrap();
    fs_err::remove_dir_all(trees.inside("gone")).unwrap();
    fs_err::write(trees.inside("deep/er/new"), "").unwrap();
    fs_err::create_dir_all(trees.inside("made/empty")).unwrap();
    fs_err::create_dir_all(trees.inside("made/full")).unwrap();
    fs_err::write(trees.inside("made/full/f"), "").unwrap();
    fs_err::write(trees.inside(".git/HEAD"), "moved").unwrap();
    assert_eq!(
        trees.found(),
        [
            "Added deep/er/new 0",
            "Modified edited 0",
            "Removed gone 2",
            "TypeChanged kind 0",
            "Added made/empty 0",
            "Added made/full/f 0",
            "ModeChanged mode 0"
        ]
    );
    assert_eq!(trees.compared().git, GitState::Changed);
}

#[test]
fn what_a_renamed_directory_brings_is_found() {
    let trees = Trees::new(&["a/same", "a/more/x", "b/same", "b/only"]);
    fs_err::rename(trees.inside("a"), trees.inside("c")).unwrap();
    assert_eq!(trees.found(), ["Removed a 2", "Added c/more/x 0", "Added c/same 0"]);
    fs_err::write(trees.inside("c/same"), "longer than it was").unwrap();
    let old = std::time::SystemTime::UNIX_EPOCH;
    fs_err::File::options().write(true).open(trees.inside("c/same")).unwrap().set_modified(old).unwrap();
    fs_err::remove_dir_all(trees.inside("b")).unwrap();
    fs_err::rename(trees.inside("c"), trees.inside("b")).unwrap();
    assert_eq!(trees.found(), ["Removed a 2", "Added b/more/x 0", "Removed b/only 0", "Modified b/same 0"]);
}

#[test]
fn what_the_user_does_to_the_source_is_not_the_sandboxs_doing() {
    let trees = Trees::new(&["a", "b", "d/c"]);
    fs_err::write(trees.outside("a"), "edited outside").unwrap();
    fs_err::remove_file(trees.outside("b")).unwrap();
    fs_err::remove_dir_all(trees.outside("d")).unwrap();
    fs_err::write(trees.outside("new"), "").unwrap();
    assert_eq!(trees.found(), [""; 0]);
    // The copy's directory is touched as well now, and still the new file was never in it.
    fs_err::write(trees.inside("own"), "").unwrap();
    assert_eq!(trees.found(), ["Added own 0"]);
}

#[test]
fn what_was_left_out_is_not_missing_and_can_be_made_anew() {
    let trees = Trees::new(&["d/.env", "d/f"]);
    assert!(!trees.inside("d/.env").exists());
    fs_err::write(trees.inside("d/g"), "").unwrap();
    assert_eq!(trees.found(), ["Added d/g 0"]);
    fs_err::write(trees.inside("d/.env"), "").unwrap();
    assert_eq!(trees.found(), ["Added d/.env 0", "Added d/g 0"]);
}

#[test]
fn nothing_of_the_copy_is_followed_or_opened_that_could_harm() {
    let trees = Trees::new(&["f", "d/g"]);
    fs_err::remove_dir_all(trees.inside("d")).unwrap();
    symlink("/etc", trees.inside("d")).unwrap();
    fs_err::remove_file(trees.inside("f")).unwrap();
    let top = open_named(trees.copy.path()).unwrap();
    rustix::fs::mkfifoat(&top, "f", rustix::fs::Mode::RUSR).unwrap();
    rustix::fs::mkfifoat(&top, "pipe", rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(trees.found(), ["TypeChanged d 0", "TypeChanged f 0"]);
    assert_eq!(trees.compared().skipped.len(), 1);
}
