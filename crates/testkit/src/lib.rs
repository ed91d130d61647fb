#![forbid(unsafe_code)]

pub mod bench;
