//! Characters in a text that are not seen, or that a terminal obeys, so that it reads other than it runs.
//!
//! Where they belong they are no finding: a byte order mark at the start, the signs inside of an emoji, joiners between
//! letters of scripts that are written with them, carriage returns before line feeds. A line that was there before, byte
//! for byte, is not looked at.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use sandtable_store::hidden::is_hidden;

/// Whether `new` has a line with something hidden in it that `old` has not.
pub(super) fn hides(new: &str, old: impl FnOnce() -> Option<Vec<u8>>) -> bool {
    let odd: Vec<&str> = lines(new).filter(|line| has_hidden(line)).collect();
    !odd.is_empty() && !were_there(&odd, old)
}

/// Whether each of these lines was there before, as often as now.
pub(super) fn were_there(lines: &[&str], old: impl FnOnce() -> Option<Vec<u8>>) -> bool {
    let Some(old) = old() else { return false };
    let mut before: BTreeMap<&[u8], usize> = BTreeMap::new();
    for line in old.split(|byte| *byte == b'\n') {
        *before.entry(line).or_default() += 1;
    }
    lines.iter().all(|line| match before.get_mut(line.as_bytes()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    })
}

/// The lines, without the mark at the start of the first.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.strip_prefix('\u{feff}').unwrap_or(text).split('\n')
}

fn has_hidden(line: &str) -> bool {
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_ascii() {
        return line.chars().any(|char| char.is_control() && !is_space(char));
    }
    let chars: Vec<char> = line.chars().collect();
    // A blank of Braille belongs where other signs of it are. The line is searched for them once.
    let braille = LazyCell::new(|| chars.iter().any(|char| is_braille_sign(*char)));
    (0..chars.len()).any(|at| {
        let here = chars[at];
        let belongs = if here == '\u{2800}' { *braille } else { belongs(&chars, at) };
        is_hidden(here) && !is_space(here) && !belongs
    })
}

/// Tabs, and the page breaks of old sources.
const fn is_space(char: char) -> bool {
    matches!(char, '\t' | '\u{c}')
}

/// Whether a hidden character does at its place what it is for.
fn belongs(chars: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).map(|at| chars[at]);
    let after = chars.get(at + 1).copied();
    let both = |is: fn(char) -> bool| before.is_some_and(is) && after.is_some_and(is);
    match chars[at] {
        // Chooses how the sign before it looks. A row of them is a message.
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|char| is_picture(char) || is_key(char)),
        '\u{200d}' => joins_pictures(chars, at) || both(is_joined),
        '\u{200c}' => both(is_joined),
        _ => false,
    }
}

fn is_braille_sign(char: char) -> bool {
    super::steps::count(1);
    matches!(char, '\u{2801}'..='\u{28ff}')
}

/// `👩 ZWJ 💻`, also where the first has a look or a colour of its own.
fn joins_pictures(chars: &[char], at: usize) -> bool {
    let (last, before) = (at.checked_sub(1).map(|at| chars[at]), at.checked_sub(2).map(|at| chars[at]));
    let first = if last == Some('\u{fe0f}') { before } else { last };
    first.is_some_and(is_picture) && chars.get(at + 1).is_some_and(|char| is_picture(*char))
}

/// Signs that have a picture, and the colours of skin.
const fn is_picture(char: char) -> bool {
    matches!(char,
        '©' | '®' | '\u{203c}' | '\u{2049}' | '\u{2100}'..='\u{214f}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// What a keycap is made of.
const fn is_key(char: char) -> bool {
    matches!(char, '0'..='9' | '#' | '*')
}

/// Letters of scripts in which a joiner changes the shape of a word: Arabic, Syriac, those of India and their neighbours.
const fn is_joined(char: char) -> bool {
    matches!(char,
        '\u{620}'..='\u{64a}' | '\u{66e}'..='\u{6d3}' | '\u{6d5}' | '\u{6fa}'..='\u{6ff}' | '\u{710}'..='\u{77f}'
        | '\u{8a0}'..='\u{8c9}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17b3}'
        | '\u{17b6}'..='\u{17dd}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_found_wherever_it_does_not_belong() {
        for text in [
            "a\u{202e}b",
            "a\u{200b}b",
            "if a\u{200d}b",
            "x\u{200c}y",
            "a\u{feff}b",
            "so\u{ad}ft",
            "f\u{2062}x",
            "f\u{2063}",
            "f\u{2064}",
            "\u{115f}",
            "a\u{3164}b",
            "\u{ffa0}",
            "a\u{fe0f}",
            "❤\u{fe0f}\u{fe0f}",
            "👍\u{e0101}",
            "日\u{e0100}",
            "x\u{e0041}",
            "c\u{9b}31m",
            "\u{85}",
            "\u{1b}[2J",
            "a\rb",
            "a\u{8}b",
            "\u{7f}",
            "a\u{2800}b",
            "👩\u{200d}a",
            "a\u{200d}👩",
            "م\u{200c}a",
            "é\u{1b}",
            "\u{2028}",
            "❤\u{fe01}",
            "a\n\u{feff}b",
        ] {
            assert!(hides(text, || None), "{text:?}");
        }
    }

    #[test]
    fn what_belongs_is_no_finding() {
        for text in [
            "plain\n",
            "tab\there\r\nand\r\n",
            "\u{feff}first\n",
            "page\u{c}break",
            "❤\u{fe0f} 1\u{fe0f}\u{20e3}",
            "👩\u{200d}💻 👩🏽\u{200d}🚀 🏳\u{fe0f}\u{200d}🌈 👨\u{200d}👩\u{200d}👧",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "⠀⣿⠀",
            "größe 日本 한글",
            "no\u{a0}break",
        ] {
            assert!(!hides(text, || None), "{text:?}");
        }
    }

    #[test]
    fn lines_that_were_there_are_no_news() {
        let old = || Some("x\u{202e}\ny\n".as_bytes().to_vec());
        assert!(!hides("y\nx\u{202e}\nz\n", old));
        assert!(hides("x\u{202e} \ny\n", old), "the line was changed");
        assert!(hides("x\u{202e}\nx\u{202e}\n", old), "one more");
    }

    #[test]
    fn twice_the_line_is_twice_the_work() {
        for (piece, end) in [("\u{2800}", "\u{2801}"), ("❤\u{fe0f}", "\u{200d}❤"), ("क\u{200d}", "क")]
        {
            let steps = |count: usize| {
                let line = format!("{}{end}", piece.repeat(count));
                super::super::steps::of(|| assert!(!hides(&line, || None), "{piece:?}"))
            };
            let (one, two) = (steps(1_000), steps(2_000));
            assert!(two <= 2 * one + 100, "{piece:?}: {one} steps, then {two}");
        }
    }
}
