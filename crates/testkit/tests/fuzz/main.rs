//! Broken bytes for every parser of bytes that a sandbox, a repository, a registry or a user's file brings.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod files;
mod layers;
mod objects;
mod texts;
