//! Unpacking an image before it is resolved: the one thing about a request that takes longer than a look.

use sandtable_unpack::image::{Images, Limits};

use super::error::SessionError;
use crate::model::path::HostPath;

/// Unpacks the archive or layout at `path` below our data directory, unless that was done before.
pub fn unpack_image(data: &HostPath, path: &HostPath) -> Result<(), SessionError> {
    let images = Images::new(data.join("images"), Limits::default());
    let unpacked = images.unpacked(path.as_path());
    unpacked.map(drop).map_err(|source| SessionError::Image { path: path.as_path().to_owned(), source })
}
