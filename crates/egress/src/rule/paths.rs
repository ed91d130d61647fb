//! Patterns of request paths: `*` inside one segment, `**` for any number of segments.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A pattern of paths, in the form that paths are compared in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PathGlob(String);

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathGlobError {
    #[error("a path begins with `/`")]
    Relative,
    #[error("`**` stands for whole segments, as in `/a/**`")]
    DoubleStar,
    #[error("a path in a rule has no query, and no `.`, `..` or empty segment")]
    Segment,
    #[error("a path in a rule contains only letters, digits, `-._~!$&'()+,=:@/` and `*`")]
    Character,
}

impl PathGlob {
    /// Whether it matches a path in its normal form.
    pub fn matches(&self, path: &str) -> bool {
        let pattern: Vec<&str> = self.0.split('/').skip(1).collect();
        let path: Vec<&str> = path.split('/').skip(1).collect();
        segments_match(&pattern, &path)
    }
}

/// Row by row: whether the first `n` patterns match the first `m` segments. No pattern makes it slow.
fn segments_match(pattern: &[&str], path: &[&str]) -> bool {
    let mut row = vec![false; path.len() + 1];
    row[0] = true;
    for part in pattern {
        let mut next = vec![false; path.len() + 1];
        next[0] = *part == "**" && row[0];
        for (index, segment) in path.iter().enumerate() {
            next[index + 1] = match *part {
                "**" => row[index + 1] || next[index],
                part => row[index] && segment_matches(part, segment),
            };
        }
        row = next;
    }
    row[path.len()]
}

/// Greedy from the left: the pieces between the stars, in order, the first and the last at the ends.
fn segment_matches(pattern: &str, segment: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == segment };
    let Some(mut left) = segment.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*') {
        match left.split_once(piece) {
            _ if piece.is_empty() => {}
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(last)
}

impl FromStr for PathGlob {
    type Err = PathGlobError;

    fn from_str(text: &str) -> Result<Self, PathGlobError> {
        let Some(below) = text.strip_prefix('/') else { return Err(PathGlobError::Relative) };
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()+,=:@/*".contains(&byte);
        if !text.bytes().all(is_fine) {
            return Err(PathGlobError::Character);
        }
        let segments: Vec<&str> = below.split('/').collect();
        let last = segments.len() - 1;
        for (index, segment) in segments.iter().enumerate() {
            match *segment {
                "." | ".." => return Err(PathGlobError::Segment),
                "" if index != last => return Err(PathGlobError::Segment),
                "**" => {}
                other if other.contains("**") => return Err(PathGlobError::DoubleStar),
                _ => {}
            }
        }
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Display for PathGlob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<PathGlob> for String {
    fn from(glob: PathGlob) -> Self {
        glob.0
    }
}

impl TryFrom<String> for PathGlob {
    type Error = PathGlobError;

    fn try_from(text: String) -> Result<Self, PathGlobError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(glob: &str, path: &str) -> bool {
        glob.parse::<PathGlob>().expect("a pattern").matches(path)
    }

    #[test]
    fn stars_stay_in_a_segment_and_double_stars_do_not() {
        assert!(matches("/", "/") && matches("/a", "/a") && matches("/**", "/") && matches("/**", "/a/b"));
        assert!(matches("/repos/me/**", "/repos/me/x/y") && matches("/repos/me/**", "/repos/me"));
        assert!(
            matches("/a/*/c", "/a/b/c") && matches("/a/*.txt", "/a/b.txt") && matches("/a*c*e", "/abcde")
        );
        assert!(matches("/**/x", "/x") && matches("/**/x", "/a/b/x") && matches("/a/**/b/**", "/a/b"));
        assert!(!matches("/a", "/a/") && !matches("/a/", "/a") && !matches("/a/*/c", "/a/b/b/c"));
        assert!(!matches("/repos/me/**", "/repos/mexico") && !matches("/repos/me/**", "/repos"));
        assert!(!matches("/a*a", "/a") && !matches("/a*bc*d", "/abd"));
    }

    #[test]
    fn a_pattern_that_could_mislead_is_refused() {
        for (text, expected) in [
            ("a", PathGlobError::Relative),
            ("", PathGlobError::Relative),
            ("/a**", PathGlobError::DoubleStar),
            ("/a/../b", PathGlobError::Segment),
            ("//a", PathGlobError::Segment),
            ("/a?b", PathGlobError::Character),
            ("/a%20", PathGlobError::Character),
            ("/a;b", PathGlobError::Character),
            ("/a\\b", PathGlobError::Character),
        ] {
            assert_eq!(text.parse::<PathGlob>(), Err(expected), "{text}");
        }
    }

    /// All ways to divide, tried one after the other.
    fn naive(pattern: &[u8], path: &[u8]) -> bool {
        match pattern {
            [] => path.is_empty(),
            [b'*', rest @ ..] => {
                let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
                (0..=end).any(|taken| naive(rest, &path[taken..]))
            }
            [byte, rest @ ..] => path.first() == Some(byte) && naive(rest, &path[1..]),
        }
    }

    proptest::proptest! {
        #[test]
        fn single_stars_match_as_the_naive_matcher_does(glob in "/[ab*/]{0,6}", path in "/[ab/]{0,6}") {
            if let Ok(parsed) = glob.parse::<PathGlob>() && !glob.contains("**") {
                proptest::prop_assert_eq!(parsed.matches(&path), naive(glob.as_bytes(), path.as_bytes()));
            }
        }
    }
}
