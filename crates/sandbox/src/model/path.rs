//! Two kinds of absolute path that must not be mixed up: one names a place on the host, the other a place
//! inside the sandbox. A mount takes one of each, so it cannot be written backwards.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Why a path was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("path `{}` is not absolute", .0.display())]
    NotAbsolute(PathBuf),
    #[error("path `{}` contains `..`", .0.display())]
    Parent(PathBuf),
    #[error("path `{}` contains a NUL byte", .0.display())]
    Nul(PathBuf),
    #[error("path `{}` names a Windows drive", .0.display())]
    Drive(PathBuf),
}

macro_rules! absolute_path {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "PathBuf", into = "PathBuf")]
        pub struct $name(PathBuf);

        impl $name {
            /// Checks `path` and drops redundant separators and `.` components.
            pub fn new(path: impl AsRef<Path>) -> Result<Self, PathError> {
                normalised(path.as_ref()).map(Self)
            }

            pub fn as_path(&self) -> &Path {
                &self.0
            }

            /// This path with one more component, which the caller wrote itself.
            ///
            /// # Panics
            /// If `name` is not a plain relative name.
            #[must_use]
            pub fn join(&self, name: impl AsRef<Path>) -> Self {
                let name = name.as_ref();
                let plain = name.components().all(|part| matches!(part, Component::Normal(_)));
                assert!(plain, "`{}` is not a plain relative name", name.display());
                Self(self.0.join(name))
            }

            pub fn parent(&self) -> Option<Self> {
                self.0.parent().map(|parent| Self(parent.to_owned()))
            }

            pub fn file_name(&self) -> Option<&OsStr> {
                self.0.file_name()
            }

            /// Whether this is `ancestor` or lies beneath it.
            pub fn is_within(&self, ancestor: &Self) -> bool {
                self.0.starts_with(&ancestor.0)
            }

            /// What remains of this path below `ancestor`, empty if they are equal.
            pub fn below(&self, ancestor: &Self) -> Option<&Path> {
                self.0.strip_prefix(&ancestor.0).ok()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.display().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0.display())
            }
        }

        impl TryFrom<PathBuf> for $name {
            type Error = PathError;

            fn try_from(path: PathBuf) -> Result<Self, PathError> {
                Self::new(path)
            }
        }

        impl From<$name> for PathBuf {
            fn from(path: $name) -> Self {
                path.0
            }
        }

        impl AsRef<Path> for $name {
            fn as_ref(&self) -> &Path {
                &self.0
            }
        }
    };
}

absolute_path! {
    /// An absolute path on the host.
    HostPath
}

absolute_path! {
    /// An absolute path inside the sandbox.
    BoxPath
}

impl HostPath {
    /// The same path inside: the workspace and everything exposed keep their places.
    pub fn same_inside(&self) -> BoxPath {
        BoxPath(self.0.clone())
    }
}

fn normalised(path: &Path) -> Result<PathBuf, PathError> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.contains(&0) {
        return Err(PathError::Nul(path.to_owned()));
    }
    if let [letter, b':', ..] = bytes
        && letter.is_ascii_alphabetic()
    {
        return Err(PathError::Drive(path.to_owned()));
    }
    if !path.is_absolute() {
        return Err(PathError::NotAbsolute(path.to_owned()));
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(PathError::Parent(path.to_owned()));
    }
    Ok(path.components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_checked_once() {
        assert_eq!(HostPath::new("/a//b/./c/").map(PathBuf::from), Ok(PathBuf::from("/a/b/c")));
        assert!(matches!(HostPath::new("a/b"), Err(PathError::NotAbsolute(_))));
        assert!(matches!(HostPath::new("/a/../b"), Err(PathError::Parent(_))));
        assert!(matches!(HostPath::new("/a\0b"), Err(PathError::Nul(_))));
        assert!(matches!(HostPath::new("C:\\work"), Err(PathError::Drive(_))));
    }

    #[test]
    fn being_within_respects_component_borders() {
        let path = |text: &str| BoxPath::new(text).expect("absolute");
        assert!(path("/a/b").is_within(&path("/a")));
        assert!(path("/a").is_within(&path("/a")));
        assert!(!path("/ab").is_within(&path("/a")));
    }
}
