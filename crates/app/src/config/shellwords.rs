//! Words in one text, as in `SANDBOX_FLAGS`: parted by blanks, kept together by quotes and backslashes. No
//! shell is ever asked: what a shell would do something with is refused, because whoever wrote it expects
//! that to happen.

/// Why a text is no list of words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordsError {
    #[error("a quote is never closed in `{0}`")]
    OpenQuote(String),
    #[error("`{character}` means something to a shell, and no shell reads `{text}`: put it in single quotes")]
    Operator { character: char, text: String },
}

/// The words of `text`.
pub(super) fn split(text: &str) -> Result<Vec<String>, WordsError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            blank if blank.is_whitespace() => words.extend(word.take()),
            '\'' => quoted(&mut letters, text, word.get_or_insert_default())?,
            '"' => double_quoted(&mut letters, text, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().extend(letters.next()),
            '$' | '`' | '|' | '&' | ';' | '<' | '>' | '(' | ')' | '*' | '?' => {
                return Err(WordsError::Operator { character: letter, text: text.to_owned() });
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(letters: &mut std::str::Chars<'_>, text: &str, word: &mut String) -> Result<(), WordsError> {
    for letter in letters {
        match letter {
            '\'' => return Ok(()),
            other => word.push(other),
        }
    }
    Err(WordsError::OpenQuote(text.to_owned()))
}

fn double_quoted(letters: &mut std::str::Chars<'_>, text: &str, word: &mut String) -> Result<(), WordsError> {
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Ok(()),
            '\\' => word.extend(letters.next()),
            '$' | '`' => return Err(WordsError::Operator { character: letter, text: text.to_owned() }),
            other => word.push(other),
        }
    }
    Err(WordsError::OpenQuote(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_keep_words_together() {
        let words = |text: &str| split(text).expect(text);
        assert_eq!(words("  --shm-size 1g\t--label=a=b "), ["--shm-size", "1g", "--label=a=b"]);
        assert_eq!(words(r#"--label 'a $b' "c \"d\"" e\ f ''"#), ["--label", "a $b", "c \"d\"", "e f", ""]);
        assert!(words("").is_empty());
    }

    #[test]
    fn what_a_shell_would_act_on_is_refused() {
        for text in ["$HOME", "a;b", "`x`", "\"$X\"", "*", "a|b"] {
            assert!(matches!(split(text), Err(WordsError::Operator { .. })), "{text}");
        }
        assert!(matches!(split("'a"), Err(WordsError::OpenQuote(_))));
    }
}
