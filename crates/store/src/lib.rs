//! States of directories: read from what a sandbox left behind and from the user's source, kept in a store, compared,
//! and brought back.
//!
//! Two trees, two attitudes. A **layer** was written by a sandbox: every name, kind and attribute in it is
//! foreign, so it is only ever reached beneath a directory handle, nothing in it is followed, and what is
//! not understood is listed instead of acted upon. A **source** belongs to the user: it is only looked at
//! and read, and never written, except by a rollback of a directory that the user named.
//!
//! What is kept has the form that `docs/store-format.md` says: git's objects in packs of our own, and a database of
//! operations. Every byte that leaves a store is held against its id.
//!
//! This crate knows no sandbox, prints nothing and reads no environment.

#![forbid(unsafe_code)]

mod alternates;
pub mod bring_in;
pub mod change;
pub mod checkout;
pub mod copy;
pub mod diff;
pub mod dir;
mod entry;
pub mod fsck;
pub mod full;
pub mod gc;
pub mod hex;
pub mod hidden;
pub mod id;
pub mod ignore;
pub mod layer;
pub mod lock;
pub mod meta;
pub mod name_pattern;
pub mod object;
pub mod objects;
pub mod os;
pub mod owner;
pub mod pack;
pub mod path;
mod reach;
pub mod regular;
pub mod remove;
pub mod rollback;
pub mod safe;
pub mod size;
pub mod snapshot;
pub mod source;
mod staging;
pub mod statcache;
pub mod state;
pub mod store;
pub mod usage;
pub mod wildcard;
pub mod workers;

pub use path::RelPath;
pub use safe::{SafePath, open_safe};
