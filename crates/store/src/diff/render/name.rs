//! Names in patches and lists: quoted as git quotes them, so that they are harmless and exact at once.

use std::fmt::Write as _;

use crate::hidden::is_hidden;

/// The name with what stands before it (`a/`), in quotes if anything in it could mislead an eye, a terminal or a reader
/// of patches. Git reads it back to the same bytes.
pub(crate) fn quote(before: &str, name: &[u8]) -> String {
    match str::from_utf8(name) {
        Ok(text) if !text.chars().any(must_quote) => format!("{before}{text}"),
        _ => quoted(before, name),
    }
}

fn must_quote(char: char) -> bool {
    matches!(char, '"' | '\\') || is_hidden(char)
}

fn quoted(before: &str, name: &[u8]) -> String {
    let mut out = format!("\"{before}");
    let octal = |out: &mut String, bytes: &[u8]| {
        for byte in bytes {
            write!(out, "\\{byte:03o}").expect("a string takes everything");
        }
    };
    for chunk in name.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' | '\\' => out.extend(['\\', char]),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                _ if is_hidden(char) => octal(&mut out, char.encode_utf8(&mut [0; 4]).as_bytes()),
                _ => out.push(char),
            }
        }
        octal(&mut out, chunk.invalid());
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_could_mislead_is_quoted() {
        assert_eq!(quote("a/", "é x.txt".as_bytes()), "a/é x.txt");
        assert_eq!(quote("b/", b"\x1b[2J\n\"\\\xff"), r#""b/\033[2J\n\"\\\377""#);
        assert_eq!(quote("", "\u{202e}x".as_bytes()), r#""\342\200\256x""#);
    }
}
