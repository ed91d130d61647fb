//! Archives from anywhere: tar in its dialects, zip, and the `ar` of Debian's packages; plain or compressed.
//!
//! An archive is as foreign as a layer. Everything is written beneath a directory handle: a name that is
//! absolute or has `..` in it, a file below a symbolic link, a hard link to anything but a regular file of the
//! same archive, and a special file outside `dev` are refused, not repaired. Owners, extended attributes and
//! set-uid bits are not taken over. Sizes are checked against [`Limits`] before a byte is written.
//!
//! The readers are our own. What is needed of the formats is small (names, modes, links, sizes); what makes
//! unpacking safe is the writing by handle, the limits and the refusals, and a library that unpacks by path
//! would have to be worked around for each of them. Only decompression comes from elsewhere.

mod ar;
pub(crate) mod plant;
pub(crate) mod stream;
mod tar;
mod unpack;
mod zip;

use std::io;

pub use tar::{Content, Entry, Reader};
pub use unpack::{Format, Options, Unpacked, unpack};

/// How much an archive may hold.
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

/// Why an archive was not unpacked, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum Error {
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
    #[error("the archive is too large: more than {0}")]
    TooLarge(String),
    #[error("the archive is compressed with {0}, which is not supported")]
    Compression(&'static str),
    #[error("the archive holds no file that was asked for: `{0}`")]
    NothingFound(String),
    #[error("the package holds no `{0}`")]
    NoMember(&'static str),
}
