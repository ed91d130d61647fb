//! Unpacking images: a tar archive or an OCI layout becomes a directory that can be the root of a sandbox.
//!
//! An image comes from anywhere, so an archive is as foreign as a layer. Everything is written beneath a
//! directory handle: a name that is absolute or has `..` in it, a file below a symbolic link, a hard link to
//! anything but a regular file of the same image, and a special file outside `dev` are refused, not repaired.
//! Owners, extended attributes and set-uid bits are not taken over. Sizes are checked against [`Limits`]
//! before a byte is written, and digests before anything of a blob is used.
//!
//! The tar reader is our own. What is needed of the format is small (names, modes, links, sizes); what makes
//! unpacking safe is the writing by handle, the limits and the refusals, and a library that unpacks by path
//! would have to be worked around for each of them.

mod keep;
mod oci;
mod plant;
mod stream;
mod tar;

use std::io;
use std::path::PathBuf;

pub use keep::{Form, Images, Kept, Meta, form, known_name};
pub use tar::{Content, Entry, Reader};

/// How much an image may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files together, as written.
    pub bytes: u64,
    /// Entries of all archives together.
    pub entries: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 64 << 30, entries: 4_000_000 }
    }
}

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
    #[error("the archive cannot be read")]
    Read(#[source] io::Error),
    #[error("the archive is damaged: {0}")]
    Damaged(&'static str),
    #[error("entry `{name}` of the archive {why}")]
    Entry { name: String, why: &'static str },
    #[error("entry `{name}` of the archive cannot be written")]
    Write {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("the image is too large: more than {0}")]
    TooLarge(String),
    #[error("the archive is compressed with {0}, which is not supported")]
    Compression(&'static str),
    #[error("`{name}` of the image does not have the content that its digest names")]
    Digest { name: String },
    #[error("the image's `{name}` is not what an OCI layout holds: {why}")]
    Layout { name: String, why: String },
    #[error("the layout holds no image for `{wanted}`: {found}")]
    NoSuchPlatform { wanted: String, found: String },
    #[error("the layout holds several images: {0}")]
    Several(String),
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
            Self::Compression(_) => Some("write it with gzip or without compression"),
            Self::DockerArchive => Some("save it with Docker 25 or newer, or copy it to an OCI layout"),
            Self::Several(_) => Some("keep one image per layout"),
            Self::Digest { .. } | Self::Damaged(_) => Some("make or fetch the image again"),
            _ => None,
        }
    }
}
