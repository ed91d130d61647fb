//! Reading the text of a profile: lists, words, texts in quotes, patterns, comments.

use std::iter::Peekable;
use std::str::Chars;

/// One piece of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    List(Vec<Form>),
    Word(String),
    /// In quotes, with backslashes resolved.
    Text(String),
    /// In quotes after a `#`, as it is.
    Pattern(String),
}

/// Everything in `text`, or what is wrong with it.
pub fn forms(text: &str) -> Result<Vec<Form>, String> {
    let mut rest = text.chars().peekable();
    let mut open: Vec<Vec<Form>> = vec![Vec::new()];
    while let Some(next) = rest.next() {
        let form = match next {
            ' ' | '\n' | '\t' => continue,
            ';' => {
                rest.by_ref().find(|c| *c == '\n');
                continue;
            }
            '(' => {
                open.push(Vec::new());
                continue;
            }
            ')' => Form::List(open.pop().filter(|_| !open.is_empty()).ok_or("a list is closed too often")?),
            '"' => Form::Text(quoted(&mut rest, Backslash::Resolved)?),
            '#' if rest.next_if_eq(&'"').is_some() => Form::Pattern(quoted(&mut rest, Backslash::Kept)?),
            '#' => return Err("a `#` that begins nothing".to_owned()),
            first => Form::Word(word(first, &mut rest)),
        };
        open.last_mut().expect("there is always one").push(form);
    }
    match open.pop() {
        Some(forms) if open.is_empty() => Ok(forms),
        _ => Err("a list is not closed".to_owned()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Backslash {
    Resolved,
    Kept,
}

fn quoted(rest: &mut Peekable<Chars<'_>>, backslash: Backslash) -> Result<String, String> {
    let mut text = String::new();
    while let Some(next) = rest.next() {
        match next {
            '"' => return Ok(text),
            '\\' if backslash == Backslash::Resolved => {
                text.push(rest.next().ok_or("a text ends in a backslash")?);
            }
            other => text.push(other),
        }
    }
    Err("a text is not closed".to_owned())
}

fn word(first: char, rest: &mut Peekable<Chars<'_>>) -> String {
    let mut word = String::from(first);
    while let Some(next) = rest.next_if(|c| !c.is_whitespace() && !"()\";".contains(*c)) {
        word.push(next);
    }
    word
}
