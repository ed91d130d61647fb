//! A value as some layer gave it, before the setting it belongs to has read it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use sandtable_sandbox::model::choice::UnknownWord;
use sandtable_sandbox::model::container::PortError;
use sandtable_sandbox::model::hide::HideError;
use sandtable_sandbox::model::id::NameError;
use sandtable_sandbox::model::image::ImageRefError;
use sandtable_sandbox::model::limits::LimitError;
use sandtable_sandbox::model::profile::ProfileError;
use sandtable_sandbox::model::tool::ToolWordError;

use super::environment::EnvError;
use super::key::Kind;
use super::mount::{self, MountError};
use super::shellwords::{self, WordsError};

/// A value of one of the shapes that files and variables know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raw {
    Text(OsString),
    /// A number of a file, as it is written there.
    Number(String),
    Switch(bool),
    List(Vec<OsString>),
}

/// Why a value was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    #[error(transparent)]
    Word(#[from] UnknownWord),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Limit(#[from] LimitError),
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error(transparent)]
    Image(#[from] ImageRefError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Words(#[from] WordsError),
    #[error("there is no program in it")]
    NoCommand,
    #[error("`{0}` is no address: use one that starts with `https://`")]
    Address(String),
    #[error(transparent)]
    Tool(#[from] ToolWordError),
    #[error(transparent)]
    Hide(#[from] HideError),
    #[error(transparent)]
    Variable(#[from] EnvError),
    #[error("unknown value `{0}`; one of `1`, `true`, `0`, `false`")]
    Switch(String),
    #[error("the value is not UTF-8 text")]
    NotText,
    #[error("expected {expected}, found {found}")]
    Shape { expected: &'static str, found: &'static str },
    #[error("`{0}` asks for no sandbox at all, and there is no such thing here")]
    SwitchedOff(String),
    #[error("files made inside always belong to you; the image's own user is never used")]
    ForeignFiles,
    #[error("path `{}` is relative", .0.display())]
    Relative(PathBuf),
}

impl Raw {
    /// The shape a variable's text has for a setting of that kind.
    pub fn from_variable(kind: Kind, text: OsString) -> Result<Self, ValueError> {
        match kind {
            Kind::Text | Kind::Path => Ok(Self::Text(text)),
            Kind::List => Ok(Self::List(mount::list(&text))),
            Kind::Words => Ok(Self::List(mount::words(&text))),
            Kind::Line => {
                let text = text.into_string().map_err(|_| ValueError::NotText)?;
                Ok(Self::List(shellwords::split(&text)?.into_iter().map(OsString::from).collect()))
            }
            Kind::Switch => match text.to_str() {
                Some("1" | "true") => Ok(Self::Switch(true)),
                Some("0" | "false") => Ok(Self::Switch(false)),
                _ => Err(ValueError::Switch(text.to_string_lossy().into_owned())),
            },
        }
    }

    /// The value of a setting with a set of words.
    pub fn word<T>(self) -> Result<T, ValueError>
    where
        T: FromStr,
        ValueError: From<T::Err>,
    {
        let text = self.text()?.into_string().map_err(|_| ValueError::NotText)?;
        Ok(text.parse::<T>()?)
    }

    /// The value of a limit, which a file may write without quotes.
    pub fn limit<T: FromStr<Err = LimitError>>(self) -> Result<T, ValueError> {
        match self {
            Self::Number(number) => Ok(number.parse::<T>()?),
            other => other.word(),
        }
    }

    pub fn text(self) -> Result<OsString, ValueError> {
        match self {
            Self::Text(text) => Ok(text),
            other => Err(other.misplaced("a text in quotes")),
        }
    }

    pub fn switch(self) -> Result<bool, ValueError> {
        match self {
            Self::Switch(on) => Ok(on),
            other => Err(other.misplaced("`true` or `false`")),
        }
    }

    pub fn list(self) -> Result<Vec<OsString>, ValueError> {
        match self {
            Self::List(items) => Ok(items),
            other => Err(other.misplaced("a list of texts")),
        }
    }

    fn misplaced(&self, expected: &'static str) -> ValueError {
        let found = match self {
            Self::Text(_) => "a text",
            Self::Number(_) => "a number",
            Self::Switch(_) => "a boolean",
            Self::List(_) => "a list",
        };
        ValueError::Shape { expected, found }
    }
}
