//! Extended attributes, by handle.

use std::os::fd::BorrowedFd;

use rustix::fs::{fgetxattr, flistxattr};
use rustix::io::{Errno, Result};

use crate::os::NO_ATTRIBUTE;

/// What the kernel itself allows a list of names, or a value, to take.
const MAX: usize = 64 * 1024;

/// The names of all extended attributes of an open file or directory that may be seen.
pub fn attribute_names(fd: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>> {
    let mut small = [0; 512];
    let split = |bytes: &[u8]| {
        bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
    };
    match flistxattr(fd, &mut small[..]) {
        Ok(length) => Ok(split(&small[..length])),
        Err(Errno::OPNOTSUPP) => Ok(Vec::new()),
        Err(Errno::RANGE) => {
            let mut large = vec![0; MAX];
            let length = flistxattr(fd, &mut large[..])?;
            Ok(split(&large[..length]))
        }
        Err(errno) => Err(errno),
    }
}

/// The value of an attribute; `None` if it is gone.
pub fn attribute_value(fd: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut small = [0; 256];
    match fgetxattr(fd, name, &mut small[..]) {
        Ok(length) => Ok(Some(small[..length].to_vec())),
        Err(NO_ATTRIBUTE) => Ok(None),
        Err(Errno::RANGE) => {
            let mut large = vec![0; MAX];
            match fgetxattr(fd, name, &mut large[..]) {
                Ok(length) => {
                    large.truncate(length);
                    Ok(Some(large))
                }
                Err(NO_ATTRIBUTE) => Ok(None),
                Err(errno) => Err(errno),
            }
        }
        Err(errno) => Err(errno),
    }
}
