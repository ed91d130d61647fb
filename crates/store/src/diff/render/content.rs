//! One line of a file, as it may be shown.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::path::is_hidden;

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
}

/// The longest line that is shown whole.
const LONGEST: usize = 4096;

/// Writes `line`, which has no line feed.
pub(super) fn write(out: &mut dyn Write, line: &[u8], content: Content) -> io::Result<Shown> {
    // A carriage return before the line feed moves nothing.
    let (body, end) = match line.strip_suffix(b"\r") {
        Some(body) => (body, &b"\r"[..]),
        None => (line, &b""[..]),
    };
    if content == Content::Exact || (body.len() <= LONGEST && is_harmless(body)) {
        out.write_all(line)?;
        return Ok(Shown::Exactly);
    }
    let cut = &body[..body.len().min(LONGEST)];
    let mut text = String::with_capacity(cut.len() * 2);
    for chunk in cut.utf8_chunks() {
        for char in chunk.valid().chars() {
            if steers(char) { text.extend(char.escape_unicode()) } else { text.push(char) }
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a string takes everything");
        }
    }
    if cut.len() < body.len() {
        write!(text, "… ({} more bytes)", body.len() - cut.len()).expect("a string takes everything");
    }
    out.write_all(text.as_bytes())?;
    out.write_all(end)?;
    Ok(Shown::Changed)
}

fn is_harmless(line: &[u8]) -> bool {
    str::from_utf8(line).is_ok_and(|text| !text.chars().any(steers))
}

/// Like names, but a tab is part of any text, and so are the signs that choose the look of an emoji.
fn steers(char: char) -> bool {
    is_hidden(char) && !matches!(char, '\t' | '\u{fe00}'..='\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &[u8], content: Content) -> (String, Shown) {
        let mut out = Vec::new();
        let shown = write(&mut out, line, content).unwrap();
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
        let long = vec![b'x'; 50_000];
        let (text, how) = shown(&long, Escaped);
        assert!(text.ends_with("… (45904 more bytes)") && text.len() < 5000 && how == Shown::Changed);
        assert_eq!(shown(&long, Exact).0.len(), 50_000);
    }
}
