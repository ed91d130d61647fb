//! Sharing the files of a pack.

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, fstat, linkat};
use rustix::process::geteuid;

use super::Way;
use crate::os::share_content;
use crate::pack::Pack;
use crate::regular;
use crate::store::{Store, StoreError};

/// Shares the pack at `path` and its index with the store; gives the way and the bytes. `None` if it cannot be
/// done here.
pub(super) fn share(store: &Store, path: &Path, first: Way) -> Result<Option<(Way, u64)>, StoreError> {
    let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| stem.starts_with("pack-"))
    else {
        return Ok(None);
    };
    let pack = store.temporary("pack");
    let index = pack.with_extension("idx");
    let shared = both(path, (&pack, &index), first).and_then(|way| {
        let Some(way) = way else { return Ok(None) };
        // What is in the place of the user's pack by now may be another one, or none at all.
        let opened = Pack::open(&pack, store.hash_kind())?;
        let bytes = opened.length() + fs_err::metadata(&index)?.len();
        fs_err::rename(&pack, store.pack_dir().join(format!("{stem}.pack")))?;
        fs_err::rename(&index, store.pack_dir().join(format!("{stem}.idx")))?;
        fs_err::File::open(store.pack_dir())?.sync_all()?;
        Ok(Some((way, bytes)))
    });
    for path in [&pack, &index] {
        // There only if it did not come to the renames.
        drop(fs_err::remove_file(path));
    }
    shared
}

fn both(path: &Path, (pack, index): (&Path, &Path), first: Way) -> Result<Option<Way>, StoreError> {
    let Some(way) = one(path, pack, first)? else { return Ok(None) };
    let user_index = path.with_extension("idx");
    if one(&user_index, index, way)?.is_none() {
        io::copy(&mut regular::open(&user_index)?, &mut fs_err::File::create(index)?)?;
        fs_err::File::open(index)?.sync_all()?;
    }
    Ok(Some(way))
}

/// Shares one file.
fn one(from: &Path, to: &Path, first: Way) -> Result<Option<Way>, StoreError> {
    let source = regular::open(from)?;
    if first == Way::Reflink {
        let target = fs_err::File::create_new(to)?;
        if share_content(&target, &source).is_ok() {
            target.sync_all()?;
            return Ok(Some(Way::Reflink));
        }
        drop(target);
        fs_err::remove_file(to)?;
    }
    // A file of somebody else could be changed by somebody else.
    if fstat(&source).map_err(io::Error::from)?.st_uid != geteuid().as_raw() {
        return Ok(None);
    }
    Ok(linkat(CWD, from, CWD, to, AtFlags::empty()).is_ok().then_some(Way::HardLink))
}
