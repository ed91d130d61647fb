//! What comes packed, from anywhere: archives of tools, and images that become the root of a sandbox.
//!
//! An archive is as foreign as what a sandbox leaves behind, so it is written by the same code, beneath directory handles
//! (`sandtable_store::dir`). What would lead out of the directory is refused, and nothing is repaired. This crate knows
//! no sandbox and fetches nothing; the store, for its part, knows no archives.

#![forbid(unsafe_code)]

pub mod archive;
pub mod image;
