//! Variables for the command: as written with `--env`, named with `pass_env`, and read from files.
//!
//! A file has one `NAME=VALUE` per line, empty lines and comments. Values may be in quotes: single ones take
//! everything as it is, double ones know `\\n`, `\\t`, `\\"`, `\\$` and `\\\\`. Nothing is expanded: a file that came with a project must
//! not be able to ask for the caller's other variables.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use sandtable_sandbox::model::secret::Secret;
use sandtable_sandbox::model::spec::{EnvRequest, EnvValue};

/// No such file needs more.
const LIMIT: u64 = 1 << 20;

/// Why a variable could not be read. Never tells a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvError {
    #[error("`{0}` is no name of a variable: letters, digits and `_`, no digit first")]
    Name(String),
    #[error("the value of `{0}` holds a NUL")]
    Nul(String),
    #[error("the line has no `=`")]
    NoValue,
    #[error("the value of `{0}` has a quote that does not end, or something behind its end")]
    Quote(String),
}

/// Why a file of variables could not be used.
#[derive(Debug, thiserror::Error)]
pub enum EnvFileError {
    #[error("could not read environment file `{}`", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("environment file `{}` is larger than {LIMIT} bytes", .0.display())]
    TooLarge(PathBuf),
    #[error("line {line} of environment file `{}` is not usable", path.display())]
    Line { path: PathBuf, line: usize, source: EnvError },
}

/// `NAME=VALUE`, or `NAME` for the caller's value, which must be there.
pub(super) fn given(text: &str) -> Result<EnvRequest, EnvError> {
    match text.split_once('=') {
        Some((name, value)) => with_value(name, value.to_owned()),
        None => Ok(EnvRequest { name: checked(text)?, value: EnvValue::Caller }),
    }
}

/// `NAME`: the caller's value, if there is one.
pub(super) fn passed(text: &str) -> Result<EnvRequest, EnvError> {
    Ok(EnvRequest { name: checked(text)?, value: EnvValue::CallerIfSet })
}

/// The variables of a file, in its order.
pub(super) fn file(path: &Path) -> Result<Vec<EnvRequest>, EnvFileError> {
    let failed = |source| EnvFileError::Read { path: path.to_owned(), source };
    let mut text = String::new();
    let file = fs_err::File::open(path).map_err(failed)?;
    file.take(LIMIT + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > LIMIT {
        return Err(EnvFileError::TooLarge(path.to_owned()));
    }
    let lines = text.lines().enumerate().filter_map(|(index, line)| {
        let read = line_of(line).transpose()?;
        Some(read.map_err(|source| EnvFileError::Line { path: path.to_owned(), line: index + 1, source }))
    });
    lines.collect()
}

fn line_of(line: &str) -> Result<Option<EnvRequest>, EnvError> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=').ok_or(EnvError::NoValue)?;
    let name = name.trim();
    let value = value.trim();
    let value = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            quoted(&value[1..], quote).ok_or_else(|| EnvError::Quote(name.to_owned()))?
        }
        _ => value.split(" #").next().unwrap_or_default().trim_end().to_owned(),
    };
    with_value(name, value).map(Some)
}

/// The text up to the closing quote, behind which only a comment may stand.
fn quoted(text: &str, quote: char) -> Option<String> {
    let mut out = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            found if found == quote => break,
            '\\' if quote == '"' => out.push(match characters.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            }),
            other => out.push(other),
        }
    }
    let rest = characters.as_str().trim_start();
    (rest.is_empty() || rest.starts_with('#')).then_some(out)
}

fn with_value(name: &str, value: String) -> Result<EnvRequest, EnvError> {
    let name = checked(name)?;
    if value.contains('\0') {
        return Err(EnvError::Nul(name));
    }
    Ok(EnvRequest { name, value: EnvValue::Given(Secret::new(value)) })
}

fn checked(name: &str) -> Result<String, EnvError> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let first = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if first && name.bytes().all(fine) { Ok(name.to_owned()) } else { Err(EnvError::Name(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, EnvFileError> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("env");
        fs_err::write(&path, text).expect("a fresh directory");
        let shown = |request: EnvRequest| match request.value {
            EnvValue::Given(secret) => (request.name, secret.reveal().to_owned()),
            other => (request.name, format!("{other:?}")),
        };
        Ok(file(&path)?.into_iter().map(shown).collect())
    }

    #[test]
    fn a_file_holds_names_values_quotes_and_comments() {
        let text = "# first\n\nA=1\nexport B = two words # said\nC='a \\n $B # no'\nD=\"x\\ny \\\" \\\\ $HOME\" # c\nE=\nF=a#b=c\r\n";
        let found = read(text).expect("all of it is fine");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            found,
            [
                pair("A", "1"),
                pair("B", "two words"),
                pair("C", "a \\n $B # no"),
                pair("D", "x\ny \" \\ $HOME"),
                pair("E", ""),
                pair("F", "a#b=c")
            ]
        );
    }

    #[test]
    fn a_line_that_is_none_is_named_by_its_number_and_never_by_its_value() {
        for (text, line) in
            [("A=1\nhunter2", 2), ("1A=hunter2", 1), ("\n\nA='hunter2", 3), ("A=\"hunter2\" x", 1)]
        {
            let error = read(text).expect_err("refused");
            let told = format!("{error}: {}", std::error::Error::source(&error).expect("a cause"));
            assert!(
                told.contains(&format!("line {line} of")) && !told.contains("hunter2\u{60} has"),
                "{told}"
            );
        }
    }

    #[test]
    fn a_name_alone_asks_for_the_callers_value() {
        assert_eq!(given("A").expect("a name").value, EnvValue::Caller);
        assert_eq!(given("A=").expect("an empty value").value, EnvValue::Given(Secret::new("")));
        assert_eq!(given("A=b=c").expect("a value").value, EnvValue::Given(Secret::new("b=c")));
        assert_eq!(passed("A").expect("a name").value, EnvValue::CallerIfSet);
        for bad in ["", "=x", "A B", "9A", "A-B=1"] {
            assert!(given(bad).is_err(), "{bad}");
        }
        assert!(passed("A=1").is_err());
    }
}
