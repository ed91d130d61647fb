//! Whether something failed because there is no room on a disk.

use std::error::Error;
use std::io::{self, ErrorKind};

use rusqlite::ErrorCode;
use rustix::io::Errno;

/// Whether a full disk, or a share of it that is used up, is what an error or one of its causes is about.
pub fn is_full(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if says_so(error) {
            return true;
        }
        next = error.source();
    }
    false
}

fn says_so(error: &(dyn Error + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        // What such an error is made of is none of its sources.
        return matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
            || error.get_ref().is_some_and(|inner| is_full(inner));
    }
    if let Some(errno) = error.downcast_ref::<Errno>() {
        return matches!(*errno, Errno::NOSPC | Errno::DQUOT);
    }
    if let Some(error) = error.downcast_ref::<rusqlite::Error>() {
        return error.sqlite_error_code() == Some(ErrorCode::DiskFull);
    }
    false
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
        let write = |source| checkout::Error::Write { path: RelPath::root(), source };
        let sqlite = |code| {
            let source = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            StoreError::Meta(MetaError::Database { path: PathBuf::from("/s/meta.db"), source })
        };
        assert!(is_full(&full()) && is_full(&write(full())) && is_full(&write(Errno::DQUOT.into())));
        assert!(is_full(&io::Error::other(write(full()))), "as something that failed in a callback");
        assert!(is_full(&sqlite(rusqlite::ffi::SQLITE_FULL)));
        assert!(!is_full(&sqlite(rusqlite::ffi::SQLITE_CORRUPT)) && !is_full(&write(Errno::ACCESS.into())));
    }
}
