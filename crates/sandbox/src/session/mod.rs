//! The life of a sandbox: made, run, looked at, removed. The only module that knows all the others.

pub mod record;
