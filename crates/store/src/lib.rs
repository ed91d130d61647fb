//! Reads what a sandbox left behind and what the user's source looks like.
//!
//! Two trees, two attitudes. A **layer** was written by a sandbox: every name, kind and attribute in it is
//! foreign, so it is only ever reached beneath a directory handle, nothing in it is followed, and what is
//! not understood is listed instead of acted upon. A **source** belongs to the user: it is only looked at,
//! never opened for content except to tell an unchanged copy from a changed one, and never written.
//!
//! This crate knows no sandbox, prints nothing and reads no environment.

#![forbid(unsafe_code)]

pub mod copy;
pub mod diff;
pub mod dir;
pub mod id;
pub mod image;
pub mod layer;
pub mod lock;
pub mod name_pattern;
pub mod object;
pub mod pack;
pub mod path;
pub mod remove;
pub mod safe;
pub mod size;
pub mod source;
pub mod state;

pub use path::RelPath;
pub use safe::{SafePath, open_safe};
