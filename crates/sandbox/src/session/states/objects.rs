//! The objects of a source's git directory, shown at a place of their own.
//!
//! Below the layer they would be merged with those made inside, and an overlay loses sight of a merged directory that
//! git removes and makes again. Inside, git writes into a directory of the layer's own that borrows from
//! this place (`sandtable_store::layer::hold`), and the place follows whatever git does outside.

use std::os::fd::AsFd as _;

use fs_err as fs;
use sandtable_store::layer::hold::can_lend;
use sandtable_store::path::RelPath;

use super::super::record::Record;
use super::open;
use crate::model::mount::{Content, HostAccess, Mount, MountTable, Ownership};
use crate::model::path::{BoxPath, HostPath};
use crate::model::setting::Origin;

/// Where it is. Programs that take the directory around objects for a repository look for `objects` in it.
pub(super) const LENDER: &str = "/.sandtable/objects";

/// Shows the objects of the git directory `at` of `lower` at their place. Where they have to be seen below the layer, or something
/// else is at that place, nothing is shown.
pub(super) fn lend(mounts: &mut MountTable, (lower, at): (&HostPath, &RelPath), git: &HostPath) -> bool {
    take_back(mounts);
    let target = place();
    let is_free =
        target.parent().is_none_or(|above| mounts.iter().all(|mount| !mount.target.is_within(&above)));
    let lends = is_free && open(lower.as_path()).is_ok_and(|lower| can_lend(lower.as_fd(), at));
    let content = Content::Host {
        source: git.join("objects"),
        access: HostAccess::Read,
        ownership: Ownership::Caller,
        identity: None,
    };
    let reason = "the repository's objects, which git borrows".to_owned();
    lends && mounts.add(Mount { target, content, reason, origin: Origin::Default }).is_ok()
}

/// Shows nothing there.
pub(super) fn take_back(mounts: &mut MountTable) {
    mounts.remove(&place());
}

/// Shows nothing there in a launch for which the objects are gone: the user removed the repository.
pub(in crate::session) fn without_lost(record: &mut Record) {
    let is_lost = record.resolved.mounts.iter().any(|mount| match &mount.content {
        Content::Host { source, .. } if mount.target == place() => {
            !fs::symlink_metadata(source.as_path()).is_ok_and(|meta| meta.is_dir())
        }
        _ => false,
    });
    if is_lost {
        take_back(&mut record.resolved.mounts);
    }
}

fn place() -> BoxPath {
    BoxPath::new(LENDER).expect("an absolute path")
}
