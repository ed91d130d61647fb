//! Unpacking images: a tar archive or an OCI layout becomes a directory that can be the root of a sandbox.
//!
//! An image comes from anywhere, so an archive is as foreign as a layer. Everything is written beneath a
//! directory handle: a name that is absolute or has `..` in it, a file below a symbolic link, a hard link to
//! anything but a regular file of the same image, and a special file outside `dev` are refused, not repaired.
//! Owners, extended attributes and set-uid bits are not taken over. Sizes are checked against [`Limits`]
//! before a byte is written, and digests before anything of a blob is used.

mod keep;
mod oci;

use std::io;
use std::path::PathBuf;

use crate::archive;

pub use keep::{Form, Images, Kept, Meta, form, known_name};

pub use crate::archive::{Content, Entry, Limits, Reader};

/// Why there is no unpacked image. Nothing outside the directory of images was touched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {what} `{}`", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Archive(#[from] archive::Error),
    #[error("`{name}` of the image does not have the content that its digest names")]
    Digest { name: String },
    #[error("the image's `{name}` is not what an OCI layout holds: {why}")]
    Layout { name: String, why: String },
    #[error("the layout holds no image for `{wanted}`: {found}")]
    NoSuchPlatform { wanted: String, found: String },
    #[error("the layout holds several images: {0}")]
    Several(String),
    #[error("interrupted while the image was unpacked; nothing is kept of it")]
    Cancelled,
    #[error("the archive is what `docker save` wrote before version 25")]
    DockerArchive,
}

impl Error {
    fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Archive(archive::Error::Compression(_)) => {
                Some("write it with gzip, xz, zstd or without compression")
            }
            Self::DockerArchive => Some("save it with Docker 25 or newer, or copy it to an OCI layout"),
            Self::Several(_) => Some("keep one image per layout"),
            Self::Digest { .. } | Self::Archive(archive::Error::Damaged(_)) => {
                Some("make or fetch the image again")
            }
            _ => None,
        }
    }
}
