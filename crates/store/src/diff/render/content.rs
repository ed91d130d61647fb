//! One line of a file, as it may be shown.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::hidden::is_hidden;

/// What to do with characters that a terminal obeys or hides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// They are spelled out, and very long lines are cut: for eyes.
    #[default]
    Escaped,
    /// Every byte as it is: for a file that is applied later, never for a terminal.
    Exact,
}

/// Whether what was written is what is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Exactly,
    Changed,
    /// Changed, and so many bytes at its end were left out.
    Cut(usize),
}

/// The longest line that is shown whole.
pub(super) const LONGEST: usize = 4096;

/// Writes `line`, which has no line feed: all of it, or the first `most` bytes where it is for eyes.
pub(super) fn write(out: &mut dyn Write, line: &[u8], content: Content, most: usize) -> io::Result<Shown> {
    // A carriage return before the line feed moves nothing.
    let (body, end) = match line.strip_suffix(b"\r") {
        Some(body) => (body, &b"\r"[..]),
        None => (line, &b""[..]),
    };
    if content == Content::Exact || (body.len() <= most && is_harmless(body)) {
        out.write_all(line)?;
        return Ok(Shown::Exactly);
    }
    let cut = &body[..body.len().min(most)];
    let mut text = String::with_capacity(cut.len() * 2);
    for chunk in cut.utf8_chunks() {
        let mut before = None;
        for char in chunk.valid().chars() {
            if steers(before, char) {
                text.extend(char.escape_unicode());
            } else {
                text.push(char);
            }
            before = Some(char);
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a string takes everything");
        }
    }
    if cut.len() < body.len() {
        text.push('…');
    }
    out.write_all(text.as_bytes())?;
    out.write_all(end)?;
    Ok(if cut.len() < body.len() { Shown::Cut(body.len() - cut.len()) } else { Shown::Changed })
}

fn is_harmless(line: &[u8]) -> bool {
    let mut before = None;
    str::from_utf8(line).is_ok_and(|text| !text.chars().any(|char| steers(before.replace(char), char)))
}

/// Like names, but a tab is part of any text, and so is one sign that chooses the look of what is before it. A row of
/// such signs is a hidden message.
fn steers(before: Option<char>, char: char) -> bool {
    let chooses = matches!(char, '\u{fe0e}' | '\u{fe0f}') && before.is_some_and(|seen| !is_hidden(seen));
    is_hidden(char) && char != '\t' && !chooses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &[u8], content: Content) -> (String, Shown) {
        let mut out = Vec::new();
        let shown = write(&mut out, line, content, LONGEST).unwrap();
        (String::from_utf8_lossy(&out).into_owned(), shown)
    }

    #[test]
    fn what_a_terminal_obeys_is_spelled_out() {
        use Content::{Escaped, Exact};
        assert_eq!(shown(b"\ta\\b\r", Escaped), ("\ta\\b\r".into(), Shown::Exactly));
        assert_eq!(shown(b"a\rb", Escaped), ("a\\u{d}b".into(), Shown::Changed));
        assert_eq!(
            shown("\x1b[2J\u{202e}é".as_bytes(), Escaped),
            ("\\u{1b}[2J\\u{202e}é".into(), Shown::Changed)
        );
        assert_eq!(shown(b"\xff", Escaped), ("\\xff".into(), Shown::Changed));
        assert_eq!(shown(b"\x1b[2J", Exact), ("\x1b[2J".into(), Shown::Exactly));
        assert_eq!(shown("❤\u{fe0f}".as_bytes(), Escaped).1, Shown::Exactly);
        assert_eq!(shown("❤\u{fe0f}\u{fe01}".as_bytes(), Escaped).0, "❤\u{fe0f}\\u{fe01}");
        assert_eq!(shown("❤\u{fe0f}\u{fe0f}".as_bytes(), Escaped).0, "❤\u{fe0f}\\u{fe0f}");
        let long = vec![b'x'; 50_000];
        let (text, how) = shown(&long, Escaped);
        assert!(text.ends_with('…') && text.len() < 5000 && how == Shown::Cut(45_904));
        assert_eq!(shown(&long, Exact).0.len(), 50_000);
    }
}
