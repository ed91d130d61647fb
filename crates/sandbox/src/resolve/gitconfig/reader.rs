//! Reads git's configuration syntax: sections with and without subsection, values with quotes, escapes,
//! comments and continued lines. A file that git would refuse is refused as a whole.

use std::iter::Peekable;
use std::str::Chars;

/// One variable of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// In lower case.
    pub(super) section: String,
    /// As written.
    pub(super) subsection: Option<String>,
    /// In lower case.
    pub(super) key: String,
    /// `None` when the variable stands alone, which means true.
    pub(super) value: Option<String>,
}

/// Where a file stops making sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0} is not understood")]
pub(super) struct SyntaxError(pub(super) usize);

/// All variables of `text`, in order.
pub(super) fn parse(text: &str) -> Result<Vec<Entry>, SyntaxError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut reader = Reader { rest: text.chars().peekable(), line: 1 };
    let number = |reader: &Reader<'_>| SyntaxError(reader.line);
    let mut section = None;
    let mut entries = Vec::new();
    while let Some(&next) = reader.rest.peek() {
        match next {
            ' ' | '\t' | '\n' => reader.skip(),
            '#' | ';' => reader.comment(),
            '[' => section = Some(reader.section().ok_or_else(|| number(&reader))?),
            letter if letter.is_ascii_alphabetic() => {
                let (name, subsection) = section.clone().ok_or_else(|| number(&reader))?;
                let (key, value) = reader.variable().ok_or_else(|| number(&reader))?;
                entries.push(Entry { section: name, subsection, key, value });
            }
            _ => return Err(number(&reader)),
        }
    }
    Ok(entries)
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    fn skip(&mut self) {
        self.next();
    }

    /// Reads on while `wanted` holds.
    fn while_some(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(&next) = self.rest.peek().filter(|&&next| wanted(next)) {
            text.push(next);
            self.next();
        }
        text
    }

    fn comment(&mut self) {
        self.while_some(|next| next != '\n');
    }

    /// `[section]`, `[section "subsection"]` or the old `[section.subsection]`.
    fn section(&mut self) -> Option<(String, Option<String>)> {
        self.next();
        let name = self.while_some(|next| next.is_ascii_alphanumeric() || next == '-' || next == '.');
        let blank = self.while_some(|next| next == ' ' || next == '\t');
        let quoted =
            if self.rest.peek() == Some(&'"') && !blank.is_empty() { Some(self.subsection()?) } else { None };
        if self.next()? != ']' || name.is_empty() || (quoted.is_none() && !blank.is_empty()) {
            return None;
        }
        let name = name.to_ascii_lowercase();
        match (name.split_once('.'), quoted) {
            (Some((section, old)), None) => Some((section.to_owned(), Some(old.to_owned()))),
            // Git takes all of it as the name; nothing we keep has such a name.
            (_, quoted) => Some((name, quoted)),
        }
    }

    fn subsection(&mut self) -> Option<String> {
        self.next();
        let mut text = String::new();
        loop {
            match self.next()? {
                '"' => return Some(text),
                '\n' => return None,
                '\\' => text.push(self.next().filter(|&next| next != '\n')?),
                other => text.push(other),
            }
        }
    }

    fn variable(&mut self) -> Option<(String, Option<String>)> {
        let key = self.while_some(|next| next.is_ascii_alphanumeric() || next == '-').to_ascii_lowercase();
        self.while_some(|next| next == ' ' || next == '\t');
        match self.rest.peek() {
            None | Some('\n') => Some((key, None)),
            Some('=') => {
                self.next();
                Some((key, Some(self.value()?)))
            }
            // Git knows no comment between a name and its value.
            Some(_) => None,
        }
    }

    /// Everything up to the end of the line, without white space at its ends that is not in quotes.
    fn value(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut pending = String::new();
        let mut quoted = false;
        self.while_some(|next| next == ' ' || next == '\t');
        loop {
            let next = self.next();
            let character = match next {
                None | Some('\n') => return (!quoted).then_some(text),
                Some('#' | ';') if !quoted => {
                    self.comment();
                    continue;
                }
                Some('"') => {
                    text.push_str(&std::mem::take(&mut pending));
                    quoted = !quoted;
                    continue;
                }
                Some(blank @ (' ' | '\t')) if !quoted => {
                    // At the very start there is nothing yet that the white space could separate.
                    if !text.is_empty() {
                        pending.push(blank);
                    }
                    continue;
                }
                Some('\\') => match self.next()? {
                    '\n' => continue,
                    'n' => '\n',
                    't' => '\t',
                    'b' => '\u{8}',
                    same @ ('"' | '\\') => same,
                    _ => return None,
                },
                Some(other) => other,
            };
            text.push_str(&std::mem::take(&mut pending));
            text.push(character);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(text: &str) -> Vec<String> {
        let name = |entry: &Entry| match &entry.subsection {
            Some(subsection) => format!("{}.{subsection}.{}", entry.section, entry.key),
            None => format!("{}.{}", entry.section, entry.key),
        };
        let value = |entry: &Entry| entry.value.as_ref().map_or(String::new(), |value| format!("={value}"));
        parse(text).unwrap().iter().map(|entry| name(entry) + &value(entry)).collect()
    }

    #[test]
    fn the_syntax_of_git_is_understood() {
        let text = "\u{feff}# a comment\n[User]\n\tName = A \"B  # C\" ; rest\r\n  email=a@b\n[core] bare\n\
            [remote \"O \\\"x\\\\\"]\nurl = one\\\n two\n[old.Sub]\nx = a\\tb\\n\n[alias]\n lg = log   --oneline  \n";
        assert_eq!(
            flat(text),
            [
                "user.name=A B  # C",
                "user.email=a@b",
                "core.bare",
                "remote.O \"x\\.url=one two",
                "old.sub.x=a\tb\n",
                "alias.lg=log   --oneline",
            ]
        );
    }

    #[test]
    fn what_git_refuses_is_refused() {
        for (text, line) in [
            ("x = 1\n", 1),
            ("[a]\nb = \"open\n", 3),
            ("[a\n", 2),
            ("[a]\nb = \\q\n", 2),
            ("[a]\n1b = 2\n", 2),
            ("[a]\nb c\n", 2),
            ("[a \"b\n\"]\n", 2),
        ] {
            assert_eq!(parse(text), Err(SyntaxError(line)), "{text:?}");
        }
    }
}
