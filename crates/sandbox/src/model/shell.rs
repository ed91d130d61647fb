//! Words for a POSIX shell.

/// A word in single quotes, which a shell reads as it is.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A word as a shell reads it: in quotes only where it needs them.
pub fn word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { quoted(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_make_something_of_it() {
        for plain in ["make", "-j4", "a/b.c:d=e,f@g%h+i", "größe"] {
            assert_eq!(word(plain), plain);
        }
        for (given, expected) in
            [("", "''"), ("a b", "'a b'"), ("~", "'~'"), ("it's", r"'it'\''s'"), ("$(x)", "'$(x)'")]
        {
            assert_eq!(word(given), expected);
        }
        assert_eq!(quoted("make"), "'make'");
    }

    #[test]
    fn a_shell_reads_what_was_quoted() {
        let words = ["", "a b", "'", "''\"$x`\\\n*?", "größe", "-n"];
        let script = format!("printf '%s|' {}", words.map(word).join(" "));
        #[expect(clippy::disallowed_methods, reason = "a test, and a shell is what tells whether it holds")]
        let output = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
        let expected = words.join("|") + "|";
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}
