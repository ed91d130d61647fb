//! What the tests of this crate share.

use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, mkdirat, mknodat, renameat, unlinkat};
use sandtable_store::dir::{open_dir, open_named, stat_at};

/// Makes a chain of directories of one name below `root`, with an empty file `leaf` at its end.
pub(crate) fn make_chain(root: &Path, name: &[u8], depth: usize) {
    let mut at = open_named(root).unwrap();
    for _ in 0..depth {
        mkdirat(&at, name, Mode::RWXU).unwrap();
        at = open_dir(at.as_fd(), name).unwrap();
    }
    mknodat(&at, "leaf", FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Takes such a chain away from its top: removing it recursively would need a descriptor for each level.
pub(crate) fn remove_chain(root: &Path, name: &[u8]) {
    let top = open_named(root).unwrap();
    loop {
        let dir = open_dir(top.as_fd(), name).unwrap();
        if stat_at(dir.as_fd(), name).is_err() {
            return;
        }
        renameat(&dir, name, &top, "next").unwrap();
        unlinkat(&top, name, AtFlags::REMOVEDIR).unwrap();
        renameat(&top, "next", &top, name).unwrap();
    }
}
