//! A comparison as text: a patch, a list with bars, or a list of names.
//!
//! Whoever calls decides on colour. Names are quoted as git quotes them, so they are harmless and exact. Contents are
//! harmless by default: what a terminal would obey or hide is spelled out, and long lines are cut. Such a patch is for
//! eyes; [`Rendered::exact`] says whether it is also what `git apply` needs to turn one state into the other, which it
//! is when nothing had to be spelled out or left out. With [`Content::Exact`] contents are never changed, and only
//! what a patch cannot say makes it inexact: binary and very large files, directories, attributes, modes that git
//! does not have. These are said on lines that begin with `#`, which `git apply` passes over.

mod content;
pub(crate) mod name;
mod names;
mod stat;
mod unified;

use std::io::{self, Write};
use std::time::{Duration, Instant};

pub use content::Content;
pub use names::name_status;
pub use stat::stat;
pub(super) use unified::hunk;
pub use unified::unified;

use crate::object::ReadError;

/// How long contents are compared and shown, unless somebody says otherwise.
const TIME: Duration = Duration::from_secs(8);

/// How to render.
#[derive(Clone, Copy, Debug)]
pub struct RenderOptions {
    pub colour: Colour,
    pub content: Content,
    /// Lines around a change.
    pub context: u32,
    /// Contents larger than this are not shown.
    pub file_bytes: u64,
    /// After how many bytes to stop.
    pub output_bytes: u64,
    /// After this moment no more contents are shown.
    pub until: Option<Instant>,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            colour: Colour::Plain,
            content: Content::Escaped,
            context: 3,
            file_bytes: 8 << 20,
            output_bytes: 256 << 20,
            until: Some(Instant::now() + TIME),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    #[default]
    Plain,
    Ansi,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Applied by git to the first state, the patch gives the second, byte for byte.
    pub exact: bool,
    /// The output was cut at its limit.
    pub truncated: bool,
}

/// Why it could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    #[error("cannot write the comparison")]
    Write(#[from] io::Error),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// What a line is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Paint {
    Header,
    Place,
    Removed,
    Added,
    Note,
}

impl Colour {
    const fn start(self, paint: Paint) -> &'static str {
        match (self, paint) {
            (Self::Plain, _) => "",
            (Self::Ansi, Paint::Header) => "\x1b[1m",
            (Self::Ansi, Paint::Place) => "\x1b[36m",
            (Self::Ansi, Paint::Removed) => "\x1b[31m",
            (Self::Ansi, Paint::Added) => "\x1b[32m",
            (Self::Ansi, Paint::Note) => "\x1b[33m",
        }
    }

    const fn end(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Ansi => "\x1b[m",
        }
    }

    fn line(self, out: &mut dyn Write, paint: Paint, text: &str) -> io::Result<()> {
        writeln!(out, "{}{text}{}", self.start(paint), self.end())
    }
}
