//! Whether a layer has its own word about a path.

use std::os::fd::{AsFd as _, BorrowedFd};

use super::attribute::{Hides, hides};
use crate::dir::{Kind, open_dir, reopen, stat_at};
use crate::path::RelPath;

/// Whether an upper directory says what is at `path`, instead of the tree below it. Where that cannot be told it does.
pub fn covers(upper: BorrowedFd<'_>, path: &RelPath) -> bool {
    let Ok(mut here) = reopen(upper) else { return true };
    for name in path.components() {
        match stat_at(here.as_fd(), name) {
            // That it is not here says nothing, unless everything below is hidden.
            Err(_) => return hides(here.as_fd()) != Ok(Hides::Nothing),
            Ok(meta) if meta.kind != Kind::Directory => return true,
            Ok(_) => {}
        }
        let Ok(below) = open_dir(here.as_fd(), name) else { return true };
        here = below;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::write::mark::{opaque, whiteout};
    use super::*;
    use crate::dir::open_named;

    #[test]
    fn what_was_written_removed_or_hidden_is_covered() {
        let layer = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(layer.path().join("merged/hidden")).unwrap();
        fs_err::write(layer.path().join("merged/written"), "").unwrap();
        let upper = open_named(layer.path()).unwrap();
        whiteout(upper.as_fd(), b"gone").unwrap();
        opaque(open_named(&layer.path().join("merged/hidden")).unwrap().as_fd()).unwrap();
        let is = |path: &str| covers(upper.as_fd(), &RelPath::new(path).unwrap());
        for path in ["merged", "merged/written", "merged/written/x", "gone", "gone/x", "merged/hidden/x/y"] {
            assert!(is(path), "{path}");
        }
        for path in ["other", "other/x", "merged/other", "merged/other/x"] {
            assert!(!is(path), "{path}");
        }
    }
}
