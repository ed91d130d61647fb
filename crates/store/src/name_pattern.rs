//! Patterns of file names, for the lists of names that look like secrets.
//!
//! Only `*` (any run of characters) and `?` (one character), without regard to ASCII case; a pattern is held
//! against the last component of a path, never against a whole path. A pattern that starts with `!` is an
//! exception: a name it matches is not in the list, wherever in the list it stands.

use std::str::FromStr;

use crate::wildcard::{Syntax, Wildcard};

/// One pattern of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    glob: Wildcard,
    sense: Sense,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    Listed,
    Exception,
}

/// Why some text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("name pattern is empty")]
    Empty,
    #[error("name pattern `{0}` contains a slash: it is held against a single name")]
    Separator(String),
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (glob, sense) = match text.strip_prefix('!') {
            Some(rest) => (rest, Sense::Exception),
            None => (text, Sense::Listed),
        };
        if glob.is_empty() {
            return Err(PatternError::Empty);
        }
        if glob.contains('/') {
            return Err(PatternError::Separator(text.to_owned()));
        }
        Ok(Self { glob: Wildcard::ignoring_case(glob, Syntax::Name), sense })
    }
}

impl Pattern {
    /// Whether the glob matches, whatever its sense.
    pub fn matches(&self, name: &[u8]) -> bool {
        self.glob.matches(name)
    }
}

/// Whether the list as a whole names `name`: a pattern matches it and no exception does.
pub fn listed(patterns: &[Pattern], name: &[u8]) -> bool {
    let any = |sense| patterns.iter().any(|pattern| pattern.sense == sense && pattern.matches(name));
    any(Sense::Listed) && !any(Sense::Exception)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn stars_marks_and_case() {
        for (glob, name, expected) in [
            (".env", ".ENV", true),
            (".env", ".envrc", false),
            (".env*", ".env.local", true),
            ("*.pem", "server.PEM", true),
            ("*.pem", ".pem", true),
            ("*.pem", "pem", false),
            ("id_?sa", "id_rsa", true),
            ("id_?sa", "id_sa", false),
            ("?", "é", true),
            ("?", "ab", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "abab", true),
            ("*a*b", "aba", false),
            ("*", "", true),
        ] {
            assert_eq!(glob.parse::<Pattern>().unwrap().matches(name.as_bytes()), expected, "{glob} {name}");
        }
    }

    #[test]
    fn an_exception_wins_wherever_it_stands() {
        for patterns in [list(&[".env*", "!*.example"]), list(&["!*.example", ".env*"])] {
            assert!(listed(&patterns, b".env.local"));
            assert!(!listed(&patterns, b".env.example"));
        }
        assert!(!listed(&list(&["!a"]), b"b"));
    }

    #[test]
    fn refuses_what_cannot_match_a_name() {
        assert_eq!("!".parse::<Pattern>(), Err(PatternError::Empty));
        assert_eq!("a/b".parse::<Pattern>(), Err(PatternError::Separator("a/b".into())));
    }
}
