//! Patterns for names and paths: `?` is any character but a slash, `*` any number of them, `**` any number
//! of characters, slashes too.

/// Whether the whole of `text` fits `pattern`.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    // Most patterns are plain words or begin with one, and most texts differ there.
    let plain = pattern.find(['*', '?']).unwrap_or(pattern.len());
    let (Some(text), pattern) = (text.strip_prefix(&pattern[..plain]), &pattern[plain..]) else {
        return false;
    };
    if pattern.is_empty() {
        return text.is_empty();
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    // `fits[j]`: what was read of the pattern fits the first `j` characters. Built up piece by piece, so that
    // no pattern can make it slow.
    let mut fits = vec![false; text.len() + 1];
    fits[0] = true;
    let mut rest = pattern.as_slice();
    while let Some((&first, tail)) = rest.split_first() {
        (fits, rest) = match (first, tail) {
            ('*', ['*', tail @ ..]) => (after_star(&fits, &text, Reach::Deep), tail),
            ('*', _) => (after_star(&fits, &text, Reach::Flat), tail),
            _ => (after_one(&fits, &text, first), tail),
        };
    }
    fits[text.len()]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Flat,
    Deep,
}

fn after_star(fits: &[bool], text: &[char], reach: Reach) -> Vec<bool> {
    let mut next = fits.to_vec();
    for (index, &character) in text.iter().enumerate() {
        if next[index] && (character != '/' || reach == Reach::Deep) {
            next[index + 1] = true;
        }
    }
    next
}

fn after_one(fits: &[bool], text: &[char], wanted: char) -> Vec<bool> {
    let mut next = vec![false; fits.len()];
    for (index, &character) in text.iter().enumerate() {
        next[index + 1] = fits[index] && (character == wanted || wanted == '?' && character != '/');
    }
    next
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_stop_at_slashes_unless_doubled() {
        for (pattern, text) in [
            ("a*c", "abbc"),
            ("*", ""),
            ("LC_*", "LC_ALL"),
            ("/a/**", "/a/b/c"),
            ("**/x/.git", "/a/b/x/.git"),
            ("?b", "ab"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("a*c", "a/c"), ("LC_*", "XLC_ALL"), ("?", ""), ("?", "/"), ("a", "A"), ("a", "ab")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_stay_fast() {
        assert!(!matches(&"*a".repeat(50), &"a".repeat(49)));
    }
}
