//! Patterns on file names, for the lists of names that say *secret*.
//!
//! Only `*` (any run of bytes) and `?` (one character), without regard to ASCII case; a pattern is held
//! against the last component of a path, never against a whole path. A pattern that starts with `!` is an
//! exception: a name it matches is not in the list, wherever in the list it stands.

use std::str::FromStr;

/// One pattern of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    glob: Vec<u8>,
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
        Ok(Self { glob: glob.to_ascii_lowercase().into_bytes(), sense })
    }
}

impl Pattern {
    /// Whether the glob matches, whatever its sense.
    pub fn matches(&self, name: &[u8]) -> bool {
        // Most names fail at one of their ends, and there are many names.
        let may = |wanted: Option<&u8>, found: Option<&u8>| match wanted {
            Some(b'*' | b'?') | None => true,
            Some(wanted) => found.is_some_and(|found| found.eq_ignore_ascii_case(wanted)),
        };
        may(self.glob.last(), name.last())
            && may(self.glob.first(), name.first())
            && matches(&self.glob, name)
    }
}

/// Whether the list as a whole names `name`: a pattern matches it and no exception does.
pub fn listed(patterns: &[Pattern], name: &[u8]) -> bool {
    let any = |sense| patterns.iter().any(|pattern| pattern.sense == sense && pattern.matches(name));
    any(Sense::Listed) && !any(Sense::Exception)
}

/// Remembers only the last star: a later star makes every choice of an earlier one irrelevant, so the work
/// is at most the product of both lengths.
fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut g, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                retry = Some((g + 1, n));
                g += 1;
            }
            Some(b'?') => {
                g += 1;
                n += character(&name[n..]);
            }
            Some(byte) if *byte == name[n].to_ascii_lowercase() => {
                g += 1;
                n += 1;
            }
            _ => {
                let Some((after, from)) = retry else { return false };
                retry = Some((after, from + 1));
                (g, n) = (after, from + 1);
            }
        }
    }
    glob[g..].iter().all(|byte| *byte == b'*')
}

/// The length of the first character, or one byte where there is none.
fn character(bytes: &[u8]) -> usize {
    let width = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if bytes.get(..width).is_some_and(|bytes| str::from_utf8(bytes).is_ok()) { width } else { 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    /// The definition, exponential but obvious.
    fn naive(glob: &[u8], name: &[u8]) -> bool {
        match (glob.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => {
                naive(rest, name) || name.split_first().is_some_and(|(_, shorter)| naive(glob, shorter))
            }
            (Some((b'?', rest)), Some((_, shorter))) => naive(rest, shorter),
            (Some((byte, rest)), Some((first, shorter))) => {
                byte.eq_ignore_ascii_case(first) && naive(rest, shorter)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(glob in "[ab*?]{1,7}", name in "[abAB]{0,8}") {
            let pattern: Pattern = glob.parse().unwrap();
            prop_assert_eq!(pattern.matches(name.as_bytes()), naive(glob.as_bytes(), name.as_bytes()));
        }

        #[test]
        fn never_panics(glob in "[*?é.]{1,9}", name in prop::collection::vec(any::<u8>(), 0..20)) {
            let pattern: Pattern = glob.parse().unwrap();
            prop_assert_eq!(pattern.matches(&name), pattern.matches(&name.to_ascii_uppercase()));
        }
    }
}
