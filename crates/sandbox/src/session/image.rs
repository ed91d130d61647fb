//! Unpacking an image before it is resolved: the one thing about a request that takes longer than a look.

use sandtable_unpack::image::{self, Images, Limits};

use super::error::SessionError;
use crate::attention::Interruptible;
use crate::model::observe::Observer;
use crate::model::path::HostPath;

/// Unpacks the archive or layout at `path` below our data directory, unless that was done before. Signals cancel it.
pub fn unpack_image(data: &HostPath, path: &HostPath, observer: &dyn Observer) -> Result<(), SessionError> {
    let observer = Interruptible::new(observer);
    let cancelled = || observer.cancelled();
    let images = Images::new(data.join("images"), Limits::default()).unless(&cancelled);
    images.unpacked(path.as_path()).map(drop).map_err(|source| match source {
        image::Error::Cancelled => SessionError::Interrupted,
        source => SessionError::Image { path: path.as_path().to_owned(), source },
    })
}
