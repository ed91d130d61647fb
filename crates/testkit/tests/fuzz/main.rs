//! Broken bytes for every parser of bytes that a sandbox, a repository, a registry or a user's file brings. Hostile
//! layers, which are trees and not bytes, have a harness of their own among the tests of `store`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod files;
mod network;
mod objects;
mod texts;
