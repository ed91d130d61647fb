//! A path inside a tree, as the bytes the kernel uses.
//!
//! A [`RelPath`] cannot leave its tree: it has no `..`, no `.`, no empty component, no NUL and does not
//! start with `/`. That is checked once, when it is made. Everything else is allowed, because file names
//! made in a sandbox may be any bytes: invalid UTF-8, line feeds, terminal control sequences. So a path is
//! never printed as it is; [`RelPath::display_escaped`] is for people, [`RelPath::to_text`] for machines.

use std::fmt;
use std::fmt::Write as _;

use crate::hex;
use crate::hidden::is_hidden;

/// A relative path that stays inside its tree. The tree itself is [`RelPath::root`].
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Vec<u8>);

/// Why some bytes are not a [`RelPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("path has an empty component or is absolute")]
    Empty,
    #[error("path has a `.` or `..` component")]
    Dots,
    #[error("path contains a zero byte")]
    Nul,
    #[error("a single name was expected, not a path")]
    Separator,
}

impl RelPath {
    /// The tree itself: no components.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// One or more components, separated by single slashes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, PathError> {
        let bytes = bytes.into();
        bytes.split(|byte| *byte == b'/').try_for_each(check_name)?;
        Ok(Self(bytes))
    }

    /// Goes one level down.
    pub fn push(&mut self, name: &[u8]) -> Result<(), PathError> {
        if name.contains(&b'/') {
            return Err(PathError::Separator);
        }
        check_name(name)?;
        if !self.0.is_empty() {
            self.0.push(b'/');
        }
        self.0.extend_from_slice(name);
        Ok(())
    }

    /// This path with one more component.
    pub fn join(&self, name: &[u8]) -> Result<Self, PathError> {
        let mut path = Self(Vec::with_capacity(self.0.len() + name.len() + 1));
        path.0.extend_from_slice(&self.0);
        path.push(name)?;
        Ok(path)
    }

    /// Goes one level up; says whether there was one.
    pub fn pop(&mut self) -> Popped {
        if self.is_root() {
            return Popped::WasRoot;
        }
        let end = self.0.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        self.0.truncate(end);
        Popped::Up
    }

    /// The path one level up; the root has none.
    pub fn parent(&self) -> Option<Self> {
        let mut path = self.clone();
        (path.pop() == Popped::Up).then_some(path)
    }

    /// The last component; the root has none.
    pub fn name(&self) -> Option<&[u8]> {
        self.components().next_back()
    }

    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
    }

    /// Whether a symbolic link that stands here leads out of the tree, as far as its text tells. A target that goes up
    /// after it has gone down counts: what it went down into may be another link, and the way up from there is
    /// anywhere.
    pub fn link_leaves(&self, target: &[u8]) -> bool {
        if target.is_empty() || target.starts_with(b"/") || target.contains(&0) {
            return true;
        }
        let steps: Vec<&[u8]> =
            target.split(|byte| *byte == b'/').filter(|step| !matches!(*step, b"" | b".")).collect();
        let up = steps.iter().take_while(|step| **step == b"..").count();
        up >= self.components().count().max(1) || steps[up..].contains(&&b".."[..])
    }

    pub const fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is `above`, or lies below it.
    pub fn is_within(&self, above: &Self) -> bool {
        let rest = self.0.strip_prefix(above.as_bytes());
        above.is_root() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// For a terminal: on one line, without anything that could move the cursor or reorder the text.
    ///
    /// A backslash is doubled, so that what is shown can be told from what was escaped.
    pub fn display_escaped(&self) -> String {
        if self.is_root() { ".".to_owned() } else { escape(&self.0) }
    }

    /// For a report: the text, with what is not UTF-8 replaced, and then also the exact bytes in
    /// hexadecimal.
    pub fn to_text(&self) -> (String, Option<String>) {
        if self.is_root() {
            return (".".to_owned(), None);
        }
        match str::from_utf8(&self.0) {
            Ok(text) => (text.to_owned(), None),
            Err(_) => (String::from_utf8_lossy(&self.0).into_owned(), Some(hex::encode(&self.0))),
        }
    }
}

/// What [`RelPath::pop`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popped {
    Up,
    WasRoot,
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display_escaped())
    }
}

impl TryFrom<&str> for RelPath {
    type Error = PathError;
    fn try_from(text: &str) -> Result<Self, PathError> {
        Self::new(text)
    }
}

/// Makes foreign bytes safe for a terminal.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '\\' => text.push_str("\\\\"),
                '\n' | '\r' | '\t' => text.extend(char.escape_default()),
                _ if is_hidden(char) => text.extend(char.escape_unicode()),
                _ => text.push(char),
            }
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("writing to a string does not fail");
        }
    }
    text
}

fn check_name(name: &[u8]) -> Result<(), PathError> {
    match name {
        b"" => Err(PathError::Empty),
        b"." | b".." => Err(PathError::Dots),
        _ if name.contains(&0) => Err(PathError::Nul),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_is_within_itself_and_what_it_lies_below() {
        let path = |text: &str| RelPath::new(text).unwrap();
        assert!(path("a/b").is_within(&path("a")) && path("a").is_within(&path("a")));
        assert!(path("a").is_within(&RelPath::root()) && RelPath::root().is_within(&RelPath::root()));
        assert!(!path("ab").is_within(&path("a")) && !path("a").is_within(&path("a/b")));
    }

    #[test]
    fn refuses_what_leaves_the_tree() {
        for (bytes, error) in [
            ("", PathError::Empty),
            ("/", PathError::Empty),
            ("/a", PathError::Empty),
            ("a/", PathError::Empty),
            ("a//b", PathError::Empty),
            (".", PathError::Dots),
            ("a/./b", PathError::Dots),
            ("a/..", PathError::Dots),
            ("a\0b", PathError::Nul),
        ] {
            assert_eq!(RelPath::new(bytes), Err(error), "{bytes:?}");
        }
        assert_eq!(RelPath::root().push(b"a/b"), Err(PathError::Separator));
    }

    #[test]
    fn a_link_is_followed_by_its_text_or_counts_as_leaving() {
        let at = RelPath::new(b"a/b/link".to_vec()).expect("a path");
        for inside in [&b"x"[..], b"./x//y/", b"../x", b"../../x", b".."] {
            assert!(!at.link_leaves(inside), "{}", escape(inside));
        }
        for outside in [&b""[..], b"/etc", b"x\0", b"../../..", b"../../../x", b"x/../y", b"../x/../../.."] {
            assert!(at.link_leaves(outside), "{}", escape(outside));
        }
        // With a link `here` to `.`, three times down is nowhere and three times up is out.
        let top = RelPath::new(b"link".to_vec()).expect("a path");
        assert!(top.link_leaves(b"here/here/here/../../../etc/passwd"));
        assert!(top.link_leaves(b".."));
        assert!(!top.link_leaves(b"."));
    }

    #[test]
    fn escapes_what_a_terminal_would_obey() {
        let path = RelPath::new(b"a\n\x1b[2J\\\xe2\x80\xae\xff\xc2\x9b/\xc3\xa9".to_vec()).unwrap();
        assert_eq!(path.display_escaped(), "a\\n\\u{1b}[2J\\\\\\u{202e}\\xff\\u{9b}/é");
        assert_eq!(RelPath::root().display_escaped(), ".");
    }

    #[test]
    fn text_is_exact_or_comes_with_the_bytes() {
        assert_eq!(RelPath::new("é").unwrap().to_text(), ("é".into(), None));
        assert_eq!(
            RelPath::new(vec![b'a', 0xff]).unwrap().to_text(),
            ("a\u{fffd}".into(), Some("61ff".into()))
        );
    }

    fn name() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..6)
    }

    proptest! {
        #[test]
        fn new_accepts_exactly_the_safe_paths(bytes in "[./a\u{0}]{0,8}") {
            let bad = bytes.contains('\0') || bytes.split('/').any(|part| matches!(part, "" | "." | ".."));
            prop_assert_eq!(RelPath::new(bytes.as_str()).is_err(), bad);
        }

        #[test]
        fn pushed_names_come_back_as_components(names in prop::collection::vec(name(), 0..6)) {
            let mut path = RelPath::root();
            let good: Vec<_> = names.into_iter().filter(|name| path.push(name).is_ok()).collect();
            let found: Vec<_> = path.components().map(<[u8]>::to_vec).collect();
            prop_assert_eq!(&found, &good);
            prop_assert_eq!(path.name().map(<[u8]>::to_vec), good.last().cloned());
            if !path.is_root() {
                prop_assert_eq!(RelPath::new(path.as_bytes()), Ok(path.clone()));
            }
            for _ in &good {
                path = path.parent().expect("one level for each name");
            }
            prop_assert!(path.is_root() && path.parent().is_none());
        }

        #[test]
        fn escaped_text_is_inert_and_distinct(one in name(), two in name()) {
            let (shown, other) = (escape(&one), escape(&two));
            prop_assert!(!shown.chars().any(is_hidden));
            prop_assert_eq!(shown == other, one == two);
        }
    }
}
