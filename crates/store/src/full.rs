//! Whether something failed because a disk takes no more: it is full, or cannot be written at all.

use std::error::Error;
use std::io::{self, ErrorKind};

use rusqlite::ErrorCode;
use rustix::io::Errno;

/// Whether a full disk, or a share of it that is used up, is what an error or one of its causes is about.
pub fn is_full(error: &(dyn Error + 'static)) -> bool {
    is_about(error, &|kind| matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
}

/// Whether it is about a file system on which nothing can be written.
pub fn is_read_only(error: &(dyn Error + 'static)) -> bool {
    is_about(error, &|kind| kind == ErrorKind::ReadOnlyFilesystem)
}

fn is_about(error: &(dyn Error + 'static), wanted: &dyn Fn(ErrorKind) -> bool) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        // What such an error is made of is none of its sources.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if kind(error).is_some_and(wanted) || inner.is_some_and(|inner| is_about(inner, wanted)) {
            return true;
        }
        next = error.source();
    }
    false
}

fn kind(error: &(dyn Error + 'static)) -> Option<ErrorKind> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return Some(error.kind());
    }
    if let Some(errno) = error.downcast_ref::<Errno>() {
        return Some(io::Error::from(*errno).kind());
    }
    match error.downcast_ref::<rusqlite::Error>()?.sqlite_error_code()? {
        ErrorCode::DiskFull => Some(ErrorKind::StorageFull),
        ErrorCode::ReadOnly => Some(ErrorKind::ReadOnlyFilesystem),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::checkout;
    use crate::meta::MetaError;
    use crate::path::RelPath;
    use crate::store::StoreError;

    #[test]
    fn wherever_it_is_in_the_chain() {
        let full = || io::Error::from(Errno::NOSPC);
        let write = |source| checkout::CheckoutError::Write { path: RelPath::root(), source };
        let sqlite = |code| {
            let source = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            StoreError::Meta(MetaError::Database { path: PathBuf::from("/s/meta.db"), source })
        };
        assert!(is_full(&full()) && is_full(&write(full())) && is_full(&write(Errno::DQUOT.into())));
        assert!(is_full(&io::Error::other(write(full()))), "as something that failed in a callback");
        assert!(is_full(&sqlite(rusqlite::ffi::SQLITE_FULL)));
        assert!(is_read_only(&sqlite(rusqlite::ffi::SQLITE_READONLY)));
        assert!(is_read_only(&write(Errno::ROFS.into())) && !is_read_only(&write(full())));
        assert!(!is_full(&sqlite(rusqlite::ffi::SQLITE_CORRUPT)) && !is_full(&write(Errno::ACCESS.into())));
    }
}
