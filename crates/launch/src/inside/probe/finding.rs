//! How the answer to an attempt is judged.

use std::io;

use sandtable_protocol::probe::Class;

/// The judgement and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub class: Class,
    pub detail: String,
}

impl Finding {
    pub fn blocked(detail: impl Into<String>) -> Self {
        Self { class: Class::Blocked, detail: detail.into() }
    }

    pub fn leak(detail: impl Into<String>) -> Self {
        Self { class: Class::Leak, detail: detail.into() }
    }

    pub fn works(detail: impl Into<String>) -> Self {
        Self { class: Class::Works, detail: detail.into() }
    }

    pub fn unsupported(detail: impl Into<String>) -> Self {
        Self { class: Class::Unsupported, detail: detail.into() }
    }

    /// A leak if any was found, else blocked with what was looked at.
    pub fn leak_if_any(found: &[String], looked_at: impl Into<String>) -> Self {
        if found.is_empty() { Self::blocked(looked_at) } else { Self::leak(some_of(found)) }
    }

    /// A system call that must not get past the permission check. Any other error than a refusal means that
    /// the kernel went on to look at the (deliberately useless) arguments.
    pub fn of_call(answer: Result<i64, i32>) -> Self {
        match answer {
            Ok(value) => Self::leak(format!("returned {value}")),
            Err(errno) if is_refusal(errno) => Self::blocked(name(errno)),
            Err(errno) => Self::leak(format!("{}: past the permission check", name(errno))),
        }
    }

    /// Something that must fail, whatever the error.
    pub fn of_io<T>(answer: io::Result<T>, done: &str) -> Self {
        match answer {
            Ok(_) => Self::leak(done),
            Err(error) => Self::blocked(describe(&error)),
        }
    }

    /// Something that should succeed.
    pub fn of_work<T>(answer: io::Result<T>, done: &str) -> Self {
        match answer {
            Ok(_) => Self::works(done),
            Err(error) => Self::blocked(describe(&error)),
        }
    }
}

/// The first few of a list, and how many there are.
fn some_of(found: &[String]) -> String {
    let shown: Vec<_> = found.iter().take(5).map(String::as_str).collect();
    format!("{}: {}", found.len(), shown.join(" "))
}

fn is_refusal(errno: i32) -> bool {
    matches!(errno, libc::EPERM | libc::EACCES | libc::ENOSYS)
}

/// The error's symbolic name where it has one.
pub(super) fn describe(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), name)
}

/// The symbolic name of an error number; the ones that occur here.
pub(super) fn name(errno: i32) -> String {
    let known = match errno {
        libc::EPERM => "EPERM",
        libc::ENOENT => "ENOENT",
        libc::ESRCH => "ESRCH",
        libc::EBADF => "EBADF",
        libc::EAGAIN => "EAGAIN",
        libc::EACCES => "EACCES",
        libc::EFAULT => "EFAULT",
        libc::EBUSY => "EBUSY",
        libc::EXDEV => "EXDEV",
        libc::ENODEV => "ENODEV",
        libc::ENOTDIR => "ENOTDIR",
        libc::EINVAL => "EINVAL",
        libc::ENOTTY => "ENOTTY",
        libc::ETXTBSY => "ETXTBSY",
        libc::EROFS => "EROFS",
        libc::ENOSYS => "ENOSYS",
        libc::ENOEXEC => "ENOEXEC",
        libc::ESTALE => "ESTALE",
        libc::EPROTONOSUPPORT => "EPROTONOSUPPORT",
        libc::ESOCKTNOSUPPORT => "ESOCKTNOSUPPORT",
        libc::EAFNOSUPPORT => "EAFNOSUPPORT",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        libc::ENETUNREACH => "ENETUNREACH",
        libc::EHOSTUNREACH => "EHOSTUNREACH",
        libc::ECONNREFUSED => "ECONNREFUSED",
        libc::ENOKEY => "ENOKEY",
        _ => return format!("errno {errno}"),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_is_blocked() {
        for errno in [libc::EPERM, libc::EACCES, libc::ENOSYS] {
            assert_eq!(Finding::of_call(Err(errno)).class, Class::Blocked);
        }
        for answer in [Ok(0), Err(libc::EFAULT), Err(libc::EINVAL), Err(libc::EBADF)] {
            assert_eq!(Finding::of_call(answer).class, Class::Leak, "{answer:?}");
        }
    }
}
