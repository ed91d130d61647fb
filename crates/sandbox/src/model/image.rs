//! The image a sandbox shows as its system, instead of the host's own directories.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::path::HostPath;
use super::setting::Origin;

/// An image as written: a name that a container engine knows, or a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageRef(String);

/// Why a text is no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` cannot be an image: {why}")]
pub struct ImageRefError {
    pub given: String,
    pub why: &'static str,
}

choice! {
    /// Whether an image is fetched before it is used.
    Pull { Missing = "missing", Never = "never", Always = "always" }
}

/// An image as an engine will use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ResolvedImage {
    /// One that a container engine has or fetches.
    Named {
        name: ImageRef,
        origin: Origin,
        pull: Pull,
        /// What the engine calls exactly this content; known once the sandbox was made.
        #[serde(default)]
        id: Option<String>,
    },
    /// A directory, or an archive or layout that was unpacked.
    Tree {
        /// What was named.
        path: HostPath,
        origin: Origin,
        /// The directory that is the root.
        root: HostPath,
        /// The hash of what was unpacked.
        #[serde(default)]
        digest: Option<String>,
    },
}

impl ImageRef {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this names a file or directory: as for a program, what has a slash in front or a dot before it.
    pub fn is_path(&self) -> bool {
        ["/", "./", "../", "~/"].iter().any(|start| self.0.starts_with(start))
    }
}

impl FromStr for ImageRef {
    type Err = ImageRefError;

    fn from_str(text: &str) -> Result<Self, ImageRefError> {
        let refused = |why| ImageRefError { given: text.to_owned(), why };
        if text.is_empty() {
            return Err(refused("it is empty"));
        }
        if text.starts_with('-') {
            return Err(refused("an engine would take it for an option"));
        }
        let image = Self(text.to_owned());
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-/:@+".contains(c);
        if !image.is_path() && !text.chars().all(fits) {
            return Err(refused("a name has letters, digits and `._-/:@` only"));
        }
        if text.contains('\0') {
            return Err(refused("it contains NUL"));
        }
        Ok(image)
    }
}

impl TryFrom<String> for ImageRef {
    type Error = ImageRefError;

    fn try_from(text: String) -> Result<Self, ImageRefError> {
        text.parse()
    }
}

impl From<ImageRef> for String {
    fn from(image: ImageRef) -> Self {
        image.0
    }
}

impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ports_tags_and_digests_are_images_and_options_are_not() {
        for good in ["busybox", "localhost:5000/a/b:1.2", "a@sha256:00ff", "/srv/root", "./root.tar"] {
            assert_eq!(good.parse::<ImageRef>().expect("an image").to_string(), good);
        }
        for bad in ["", "--privileged", "a b", "a;b", "a$(b)"] {
            assert!(bad.parse::<ImageRef>().is_err(), "{bad}");
        }
        let is_path = |text: &str| text.parse::<ImageRef>().expect("an image").is_path();
        assert!(is_path("/srv/root") && is_path("../root") && !is_path("library/busybox"));
    }
}
