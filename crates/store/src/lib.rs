//! Reads what a sandbox left behind and what the user's source looks like.
//!
//! Two trees, two attitudes. A **layer** was written by a sandbox: every name, kind and attribute in it is
//! foreign, so it is only ever reached beneath a directory handle, nothing in it is followed, and what is
//! not understood is listed instead of acted upon. A **source** belongs to the user: it is only looked at,
//! never opened for content except to tell an unchanged copy from a changed one, and never written.
//!
//! This crate knows no sandbox, prints nothing and reads no environment.

#![forbid(unsafe_code)]

pub mod bring_in;
pub mod checkout;
pub mod copy;
pub mod diff;
pub mod dir;
pub mod fsck;
pub mod gc;
pub mod id;
pub mod ignore;
pub mod image;
pub mod layer;
pub mod lock;
pub mod meta;
pub mod name_pattern;
pub mod object;
pub mod objects;
pub mod owner;
pub mod pack;
pub mod path;
mod reach;
pub mod remove;
pub mod rollback;
pub mod safe;
pub mod size;
pub mod snapshot;
pub mod source;
pub mod statcache;
pub mod state;
pub mod store;

pub use path::RelPath;
pub use safe::{SafePath, open_safe};
