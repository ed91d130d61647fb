//! What has states: a directory or a sandbox. A store knows it by a text.

use std::ffi::OsStr;
use std::fmt;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A directory or a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// By its real path.
    Directory(PathBuf),
    /// By the id that is its own for all time.
    Sandbox(String),
}

const DIRECTORY: &str = "directory ";
const SANDBOX: &str = "sandbox ";

impl Subject {
    pub fn directory(path: &Path) -> Self {
        Self::Directory(path.to_owned())
    }

    pub fn sandbox(id: &str) -> Self {
        Self::Sandbox(id.to_owned())
    }

    /// From the text that a store has.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(id) = text.strip_prefix(SANDBOX) {
            return Some(Self::sandbox(id));
        }
        let path = text.strip_prefix(DIRECTORY)?;
        Some(Self::directory(Path::new(OsStr::from_bytes(&unescape(path)?))))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sandbox(id) => write!(f, "{SANDBOX}{id}"),
            Self::Directory(path) => write!(f, "{DIRECTORY}{}", escape(path.as_os_str().as_bytes())),
        }
    }
}

/// A path may be any bytes, a text may not: what is not plain ASCII is written `%XX`.
fn escape(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len()), |mut text, byte| {
        match byte {
            b'%' | 0..0x20 | 0x7f.. => {
                write!(text, "%{byte:02x}").expect("writing to a string does not fail");
            }
            plain => text.push(char::from(*plain)),
        }
        text
    })
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_that_is_no_subject_is_none() {
        for text in ["", "sandbox", "directory", "dir /a", "directory %", "directory %g0"] {
            assert_eq!(Subject::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_path_has_a_text_of_its_own(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let subject = Subject::directory(Path::new(OsStr::from_bytes(&bytes)));
            let text = subject.to_string();
            prop_assert!(text.is_ascii());
            prop_assert_eq!(Subject::parse(&text), Some(subject));
        }
    }
}
