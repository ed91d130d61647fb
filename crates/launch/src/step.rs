//! A step of the set-up and how its failure is told.

use rustix::io::Errno;

use sandtable_protocol::step::Step;
use sandtable_protocol::wire::Failure;

/// Names what was tried when a system call fails.
pub(crate) trait Context<T> {
    fn context(self, what: impl FnOnce() -> Step) -> Result<T, Failure>;
}

impl<T> Context<T> for Result<T, Errno> {
    fn context(self, what: impl FnOnce() -> Step) -> Result<T, Failure> {
        self.map_err(|errno| Failure { step: what(), errno: errno.raw_os_error() })
    }
}

impl<T> Context<T> for std::io::Result<T> {
    fn context(self, what: impl FnOnce() -> Step) -> Result<T, Failure> {
        self.map_err(|error| Failure { step: what(), errno: error.raw_os_error().unwrap_or(0) })
    }
}
