//! What happens in the first process of a sandbox, from the clone to its end: it builds its view of the world, gives up
//! every privilege, reads back what holds, and then serves commands. Nothing in here knows what is outside.

pub(crate) mod confine;
pub mod container;
pub(crate) mod init;
pub(crate) mod landlock;
pub(crate) mod mount;
pub mod probe;
pub(crate) mod seccomp;
pub(crate) mod setup;
pub(crate) mod verify;
