use proptest::prelude::*;

use super::*;

#[test]
fn each_syntax_has_its_own_wildcards() {
    use Syntax::{GitName, GitPath, Name, Path, Star};
    for (syntax, pattern, text, expected) in [
        (Star, "a*c", "abbc", true),
        (Star, "a*c", "ac", true),
        (Star, "a*a", "a", false),
        (Star, "a?", "ab", false),
        (Star, "a?[", "a?[", true),
        (Star, "*a*b", "abab", true),
        (Star, "*a*b", "aba", false),
        (Name, "id_?sa", "id_rsa", true),
        (Name, "id_?sa", "id_sa", false),
        (Name, "?", "é", true),
        (Name, "?", "ab", false),
        (Name, "*é", "éé", true),
        (Name, "*.pem", "pem", false),
        (Name, "*", "", true),
        (Path, "a*c", "a/c", false),
        (Path, "?", "/", false),
        (Path, "/a/**", "/a/b/c", true),
        (Path, "**/x/.git", "/a/b/x/.git", true),
        (Path, "***", "a/b", true),
        (GitName, "[a-c]?", "bz", true),
        (GitName, "\\*", "*", true),
        (GitName, "[", "[", false),
        (GitPath, "a/**/b", "a/b", true),
        (GitPath, "a/**/b", "a/x/y/b", true),
        (GitPath, "**/b", "b", true),
        (GitPath, "a/*/b", "a/x/y/b", false),
    ] {
        assert_eq!(Wildcard::new(pattern, syntax).matches(text), expected, "{syntax:?} {pattern} {text}");
        assert_eq!(matches(pattern, text, syntax), expected, "once: {syntax:?} {pattern} {text}");
    }
}

#[test]
fn case_counts_unless_it_is_ignored() {
    let ignoring = |pattern, text: &str| Wildcard::ignoring_case(pattern, Syntax::Name).matches(text);
    assert!(ignoring(".env", ".ENV") && ignoring("*A*", "xax") && ignoring("*.Pem", "server.pEM"));
    assert!(!ignoring("É", "é"), "only of ASCII letters");
    assert!(!Wildcard::new("*A*", Syntax::Name).matches("xax"));
}

#[test]
fn stars_upon_stars_stay_fast() {
    let (pattern, text) = ("*a".repeat(2000), "a".repeat(1999));
    for syntax in [Syntax::Star, Syntax::Name, Syntax::Path, Syntax::GitName, Syntax::GitPath] {
        let (found, work) = Wildcard::new(&pattern, syntax).search(text.as_bytes());
        assert!(!found && work <= pattern.len() * (text.len() + 1), "{syntax:?}: {work}");
    }
}

/// The definition of all but git's, exponential and obvious.
fn defined(pattern: &[char], text: &[char], syntax: Syntax) -> bool {
    let any = |rest: &[char], to: usize| (0..=to).any(|skip| defined(rest, &text[skip..], syntax));
    match pattern {
        [] => text.is_empty(),
        ['*', '*', rest @ ..] if syntax == Syntax::Path => any(rest, text.len()),
        ['*', rest @ ..] if syntax == Syntax::Path => {
            any(rest, text.iter().position(|one| *one == '/').unwrap_or(text.len()))
        }
        ['*', rest @ ..] => any(rest, text.len()),
        ['?', rest @ ..] if syntax != Syntax::Star => {
            let is_one = |one: &char| syntax != Syntax::Path || *one != '/';
            text.first().is_some_and(is_one) && defined(rest, &text[1..], syntax)
        }
        [first, rest @ ..] => text.first() == Some(first) && defined(rest, &text[1..], syntax),
    }
}

proptest! {
    #[test]
    fn agrees_with_the_definition(pattern in "[ab/é*?]{0,7}", text in "[ab/é?]{0,8}") {
        let characters = |text: &str| text.chars().collect::<Vec<_>>();
        for syntax in [Syntax::Star, Syntax::Name, Syntax::Path] {
            let expected = defined(&characters(&pattern), &characters(&text), syntax);
            prop_assert_eq!(Wildcard::new(&pattern, syntax).matches(&text), expected, "{:?}", syntax);
            prop_assert_eq!(matches(&pattern, &text, syntax), expected, "once: {:?}", syntax);
        }
    }

    #[test]
    fn any_bytes_are_a_text(pattern in "[*?é.]{1,9}", text in prop::collection::vec(any::<u8>(), 0..20)) {
        let pattern = Wildcard::ignoring_case(&pattern, Syntax::Name);
        prop_assert_eq!(pattern.matches(&text), pattern.matches(text.to_ascii_uppercase()));
    }

    /// Where a pattern is cut into ends and middle is no part of what it means.
    #[test]
    fn the_ends_are_only_a_shorter_way(pattern in "[ab/*?\\[\\]!\\\\]{0,9}", text in "[ab/]{0,9}") {
        for syntax in [Syntax::GitName, Syntax::GitPath] {
            let whole = Wildcard::of_git(pattern.as_bytes(), syntax);
            let slash = if syntax == Syntax::GitPath { bracket::Slash::Separates } else { bracket::Slash::Ordinary };
            let steps = compile::git(pattern.as_bytes(), slash);
            let expected = steps.is_some_and(|steps| search(&steps, text.bytes().map(u32::from)).0);
            prop_assert_eq!(whole.matches(&text), expected, "{:?}", syntax);
        }
    }
}
