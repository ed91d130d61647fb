//! Text that others wrote, made harmless for a terminal. A file name can hold anything but a slash and a
//! NUL: colour codes, commands to the terminal, characters that turn the line around.

use std::fmt::Write as _;

use sandtable_merge::RelPath;
use sandtable_merge::outcome::PathText;
use sandtable_sandbox::hex;
use sandtable_sandbox::hidden::is_hidden;
use sandtable_sandbox::model::shell;

/// A message in which foreign words may stand: whatever could steer the terminal is spelled out.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut out, c);
    }
    out
}

/// The same for text of several lines, which stay lines.
pub(crate) fn lines(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// JSON in which everything that a terminal obeys or does not show is spelled out. Outside of strings there is none of
/// it but the ends of lines.
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || !is_hidden(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}").expect("a string takes everything");
        }
    }
    out
}

/// A name on its own: as it is when that is unmistakable, else in quotes with everything odd spelled out.
pub(crate) fn name(text: &str) -> String {
    let odd = |c: char| is_hidden(c) || matches!(c, '"' | '\\');
    let blank =
        text.is_empty() || text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace);
    if !blank && !text.chars().any(odd) {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c => push(&mut out, c),
        }
    }
    out.push('"');
    out
}

/// A path of an answer, so that no two look alike: also where its bytes are no text.
pub(crate) fn path(path: &PathText) -> String {
    let bytes = path.path_hex.as_deref().and_then(hex::decode);
    match bytes.and_then(|bytes| RelPath::new(bytes).ok()) {
        Some(exact) => format!("\"{}\"", exact.display_escaped().replace('"', "\\\"")),
        None => name(&path.path),
    }
}

/// A command line for reading: words with blanks or signs of the shell in single quotes.
pub(crate) fn command(words: &[String]) -> String {
    words.iter().map(|word| shell::word(&line(word))).collect::<Vec<_>>().join(" ")
}

fn push(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        c if is_hidden(c) => write!(out, "\\u{{{:x}}}", u32::from(c)).expect("a string takes everything"),
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for plain in ["README", "src/main.rs", "größe.txt", "with space", "日本", "it's"] {
            assert_eq!(name(plain), plain);
        }
    }

    #[test]
    fn nothing_that_steers_a_terminal_gets_through() {
        assert_eq!(name("a\u{1b}[31mred\n"), r#""a\u{1b}[31mred\n""#);
        assert_eq!(name("\u{9b}2J"), r#""\u{9b}2J""#);
        assert_eq!(name("exe\u{202e}txt.x"), r#""exe\u{202e}txt.x""#);
        assert_eq!(name(r#"a"\b"#), r#""a\"\\b""#);
        assert_eq!(name(" a"), "\" a\"");
        assert_eq!(name(""), "\"\"");
        assert_eq!(line("a\rb\tc\u{7f}"), r"a\rb\tc\u{7f}");
        assert_eq!(line("a\u{fe0f}b\u{3164}c\u{2800}"), r"a\u{fe0f}b\u{3164}c\u{2800}");
        for code in 0..=u32::from(u16::MAX) {
            let Some(c) = char::from_u32(code) else { continue };
            assert!(!line(&c.to_string()).chars().any(char::is_control), "{code:x}");
        }
    }

    #[test]
    fn no_two_paths_look_alike() {
        let paths: [&[u8]; 9] = [
            b"n\nl",
            b"n\\nl",
            b"a\xff",
            b"a\xfe",
            b"a\\xff",
            "a\u{fffd}".as_bytes(),
            b"a\"\xff",
            b"a ",
            b"a",
        ];
        let shown: std::collections::BTreeSet<String> =
            paths.iter().map(|bytes| path(&(&RelPath::new(*bytes).unwrap()).into())).collect();
        assert_eq!(shown.len(), paths.len(), "{shown:?}");
        for expected in ["\"n\\nl\"", "\"n\\\\nl\"", "\"a\\xff\"", "\"a\\\"\\xff\"", "a"] {
            assert!(shown.contains(expected), "{expected} in {shown:?}");
        }
    }

    #[test]
    fn json_says_the_same_and_steers_nothing() {
        let value = serde_json::json!({ "a\u{9b}2J": ["\u{202e}x\n", "\u{e0041}é日\u{7f}\u{2800}"] });
        let text = json(&serde_json::to_string_pretty(&value).expect("plain data"));
        assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)), "{text:?}");
        assert!(text.contains(r"\u009b2J") && text.contains(r"\udb40\udc41é日\u007f\u2800"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("still JSON"), value);
    }

    #[test]
    fn commands_are_shown_so_that_their_words_can_be_told_apart() {
        let words = ["sh", "-c", "echo 'x y' > f\n", ""].map(str::to_owned);
        assert_eq!(command(&words), r"sh -c 'echo '\''x y'\'' > f\n' ''");
    }
}
