//! What can go wrong while objects are read and made.

use std::io;

use sandtable_store::path::PathError;

use crate::attention::Interrupted;

/// Why it cannot be gone on. Nothing outside a directory of ours was touched.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    #[error("cannot read or make objects")]
    Io(#[from] io::Error),
    #[error("there is more than a merge takes: {limit}, up to `{path}`")]
    TooMuch { limit: String, path: String },
    #[error("path `{path}` cannot be part of a tree")]
    Path { path: String, source: PathError },
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}
