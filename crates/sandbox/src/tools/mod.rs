//! Tools: from a plan with every byte pinned to a directory that can be mounted read-only.

pub mod elf;
