//! The attributes an overlay keeps in its upper directory, and those it does not.
//!
//! A process inside the sandbox cannot set `user.overlay.*`: the mount stores such a name escaped, as
//! `user.overlay.overlay.*`. An escaped name therefore means that someone inside tried, and an unescaped one
//! that the overlay does not write with the options used here means that someone else wrote to the layer.
//! Neither is obeyed.

use std::fmt;
use std::os::fd::BorrowedFd;

use rustix::fs::fgetxattr;
use rustix::io::{Errno, Result};

use crate::dir::{Kind, attribute_names};
use crate::os::NO_ATTRIBUTE;
use crate::path::escape;

const PREFIX: &[u8] = b"user.overlay.";
pub(super) const OPAQUE: &str = "user.overlay.opaque";
const WHITEOUT: &str = "user.overlay.whiteout";

/// Bookkeeping that means nothing for what the tree looks like.
const BOOKKEEPING: [&[u8]; 6] = [b"origin", b"impure", b"uuid", b"nlink", b"upper", b"whiteouts"];

/// Why an attribute was not obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForeignReason {
    /// It would take the content from another path.
    Redirect,
    /// It would take the content from a lower layer.
    Metacopy,
    /// A process inside the sandbox tried to set an attribute of the overlay.
    Escaped,
    /// It has a meaning, but not with this value.
    Value,
    /// It has a meaning, but not on this entry.
    Place,
    /// The mounts made here do not write it.
    Unknown,
}

impl fmt::Display for ForeignReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redirect => "would take content from another path",
            Self::Metacopy => "would take content from a lower layer",
            Self::Escaped => "was set from inside the sandbox",
            Self::Value => "has no meaning with this value",
            Self::Place => "has no meaning on this entry",
            Self::Unknown => "is not written by the mounts made here",
        })
    }
}

/// What the attributes of one entry say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) hides: Hides,
    /// Has the attribute form of a whiteout; whether it is one depends on its directory.
    pub(super) whiteout: bool,
    pub(super) foreign: Vec<(String, ForeignReason)>,
}

/// What a directory says about the layers below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hides {
    #[default]
    Nothing,
    /// Nothing as a whole, but some of its empty files may be whiteouts.
    SomeNames,
    Everything,
}

/// Where the entry with the attributes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The top of the layer, which an overlay always merges.
    Top,
    /// In a directory that may hold whiteouts as attributes.
    AmongMarked,
    Ordinary,
}

/// Reads and judges the attributes of an open file or directory.
pub(super) fn marks(fd: BorrowedFd<'_>, kind: Kind, place: Place) -> Result<Marks> {
    let mut marks = Marks::default();
    for name in attribute_names(fd)? {
        let Some(short) = name.strip_prefix(PREFIX) else { continue };
        let verdict = match short {
            b"opaque" => opaque(fd, kind, place, &mut marks)?,
            b"whiteout" if kind == Kind::File && place == Place::AmongMarked => {
                marks.whiteout = true;
                None
            }
            b"whiteout" => Some(ForeignReason::Place),
            b"redirect" => Some(ForeignReason::Redirect),
            b"metacopy" => Some(ForeignReason::Metacopy),
            _ if short.starts_with(b"overlay.") => Some(ForeignReason::Escaped),
            _ if BOOKKEEPING.contains(&short) => None,
            _ => Some(ForeignReason::Unknown),
        };
        marks.foreign.extend(verdict.map(|why| (escape(&name), why)));
    }
    Ok(marks)
}

/// What a directory of a lower layer hides. Its other attributes are the user's business.
pub(super) fn hides(fd: BorrowedFd<'_>) -> Result<Hides> {
    let mut value = [0; 1];
    match fgetxattr(fd, OPAQUE, &mut value[..]) {
        Ok(1) if value == *b"y" => Ok(Hides::Everything),
        Ok(1) if value == *b"x" => Ok(Hides::SomeNames),
        Ok(_) | Err(NO_ATTRIBUTE | Errno::OPNOTSUPP | Errno::RANGE) => Ok(Hides::Nothing),
        Err(errno) => Err(errno),
    }
}

/// Whether an open empty file carries the attribute form of a whiteout.
pub(super) fn is_marked_whiteout(fd: BorrowedFd<'_>) -> Result<bool> {
    match fgetxattr(fd, WHITEOUT, &mut [0; 1][..]) {
        Ok(_) | Err(Errno::RANGE) => Ok(true),
        Err(NO_ATTRIBUTE | Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(errno),
    }
}

fn opaque(fd: BorrowedFd<'_>, kind: Kind, place: Place, marks: &mut Marks) -> Result<Option<ForeignReason>> {
    if kind != Kind::Directory {
        return Ok(Some(ForeignReason::Place));
    }
    marks.hides = hides(fd)?;
    Ok(match marks.hides {
        Hides::Nothing => Some(ForeignReason::Value),
        Hides::Everything if place == Place::Top => {
            marks.hides = Hides::Nothing;
            Some(ForeignReason::Place)
        }
        Hides::SomeNames | Hides::Everything => None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::fs::{XattrFlags, fsetxattr};

    use super::*;

    fn judged(attributes: &[(&str, &str)], place: Place) -> Marks {
        let dir = tempfile::tempdir().unwrap();
        let fd = crate::dir::open_named(dir.path()).unwrap();
        for (name, value) in attributes {
            fsetxattr(&fd, *name, value.as_bytes(), XattrFlags::empty()).unwrap();
        }
        let mut marks = marks(fd.as_fd(), Kind::Directory, place).unwrap();
        marks.foreign.sort();
        marks
    }

    #[test]
    fn bookkeeping_and_other_names_say_nothing() {
        let plain = [("user.overlay.origin", "o"), ("user.overlay.impure", "y"), ("user.mine", "redirect")];
        assert_eq!(judged(&plain, Place::Ordinary), Marks::default());
    }

    #[test]
    fn opaque_has_two_values_and_no_meaning_at_the_top() {
        let hides = |value, place| judged(&[(OPAQUE, value)], place);
        assert_eq!(hides("y", Place::Ordinary).hides, Hides::Everything);
        assert_eq!(hides("x", Place::Ordinary).hides, Hides::SomeNames);
        for (value, place, why) in [
            ("y", Place::Top, ForeignReason::Place),
            ("n", Place::Ordinary, ForeignReason::Value),
            ("yy", Place::Ordinary, ForeignReason::Value),
            ("", Place::Ordinary, ForeignReason::Value),
        ] {
            let marks = hides(value, place);
            assert_eq!((marks.hides, marks.foreign), (Hides::Nothing, vec![(OPAQUE.to_owned(), why)]));
        }
    }

    #[test]
    fn what_would_redirect_is_named() {
        use ForeignReason::{Escaped, Metacopy, Place as Misplaced, Redirect, Unknown};
        let names = ["redirect", "metacopy", "overlay.opaque", "protattr", "whiteout"];
        let set: Vec<_> = names.iter().map(|name| format!("user.overlay.{name}")).collect();
        let pairs: Vec<_> = set.iter().map(|name| (name.as_str(), "/etc")).collect();
        let why: Vec<_> = judged(&pairs, Place::Ordinary).foreign.into_iter().map(|(_, why)| why).collect();
        assert_eq!(why, [Metacopy, Escaped, Unknown, Redirect, Misplaced]);
    }

    #[test]
    fn a_long_list_is_read_whole() {
        let set: Vec<_> = (0..30).map(|n| format!("user.overlay.{n:0>60}")).collect();
        let pairs: Vec<_> = set.iter().map(|name| (name.as_str(), "")).collect();
        assert_eq!(judged(&pairs, Place::Ordinary).foreign.len(), 30);
    }
}
