//! What people see. Sandtable's own words go to standard error, each message starting with its name;
//! standard output belongs to the command, or to the answer of a state command.
//!
//! Everything that came from a sandbox, a file or the environment passes [`escape`] on its way.

use std::io::{self, IsTerminal, Write as _};

use sandtable_app::env::{self, Environment};
use sandtable_app::recovery::Recovery;
use sandtable_merge::Recovered;
use sandtable_protocol::log::Stream;

pub(crate) mod escape;
pub(crate) mod graph;
pub(crate) mod inspect;
pub(crate) mod lines;
pub(crate) mod merge;
pub(crate) mod policy;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod tool;

use style::{Colour, Role};

/// Colour for a stream that is a terminal, unless the user wants none.
fn colour(environment: &Environment, stream: &impl IsTerminal) -> Colour {
    let refused = environment.get(env::NO_COLOR).is_some()
        || environment.get(env::TERM).is_some_and(|term| term == "dumb");
    if !refused && stream.is_terminal() { Colour::Ansi } else { Colour::Never }
}

/// As many paths as are named in a sentence.
const NAMED: usize = 5;

/// What became of something that was interrupted, in a sentence.
pub(crate) fn recovered(found: &Recovery) -> String {
    let became = match found.outcome {
        Recovered::Finished => "completed",
        Recovered::Undone => "put back",
    };
    let text = format!("an interrupted {} in `{}` was {became}", found.what, found.target.to_string_lossy());
    if found.left_alone.is_empty() {
        return text;
    }
    let paths = found.left_alone.iter().take(NAMED).map(|path| format!("`{}`", path.display_escaped()));
    let paths = paths.collect::<Vec<_>>().join(", ");
    let more = match found.left_alone.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{text}; left as they are, because they were changed since: {paths}{more}")
}

/// Why an answer could not be given.
#[derive(Debug)]
pub(crate) enum AnswerError {
    /// Standard output does not take it.
    Write(io::Error),
    /// It cannot be written as JSON.
    Json(serde_json::Error),
}

/// The terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ui {
    pub(crate) colour: Colour,
}

impl Ui {
    pub(crate) fn new(environment: &Environment) -> Self {
        Self { colour: colour(environment, &io::stderr()) }
    }

    /// Without colour, whatever the terminal knows.
    pub(crate) fn plain() -> Self {
        Self { colour: Colour::Never }
    }

    /// Whether an answer on standard output gets colour.
    pub(crate) fn answer_colour(environment: &Environment) -> Colour {
        colour(environment, &io::stdout())
    }

    /// One message of ours. The text must be harmless.
    pub(crate) fn say(self, text: &str) {
        self.write(&format!("sandtable: {text}\n"));
    }

    /// Prepared lines of ours.
    #[expect(clippy::unused_self, reason = "writing is the terminal's business, though it has no state")]
    pub(crate) fn write(self, text: &str) {
        // There is nobody left to tell if standard error is closed.
        io::stderr().lock().write_all(text.as_bytes()).unwrap_or_default();
    }

    /// A warning with its code.
    pub(crate) fn warning(self, code: &str, text: &str) {
        let label = self.colour.paint(Role::Warning, "warning");
        self.say(&format!("{label}: {} [{}]", escape::line(text), escape::line(code)));
    }

    /// An answer, on standard output.
    #[expect(clippy::unused_self, reason = "writing is the terminal's business, though it has no state")]
    pub(crate) fn answer(self, text: &str) -> Result<(), AnswerError> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // Whoever read it has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(AnswerError::Write),
        }
    }

    /// Output of commands, to the stream it was written to. For a terminal it is made harmless.
    #[expect(clippy::unused_self, reason = "writing is the terminal's business, though it has no state")]
    pub(crate) fn pass(self, pieces: &[lines::Piece]) -> Result<(), AnswerError> {
        let (out, err) = (io::stdout(), io::stderr());
        let terminals = [out.is_terminal(), err.is_terminal()];
        let (mut out, mut err) = (out.lock(), err.lock());
        for lines::Piece { stream, bytes } in pieces {
            let (to, terminal): (&mut dyn io::Write, bool) = match stream {
                Stream::Out => (&mut out, terminals[0]),
                Stream::Err => (&mut err, terminals[1]),
            };
            let written =
                if terminal { to.write_all(lines::harmless(bytes).as_bytes()) } else { to.write_all(bytes) };
            written.and_then(|()| to.flush()).map_err(AnswerError::Write)?;
        }
        Ok(())
    }

    /// Output of a command where standard output is for something else.
    pub(crate) fn pass_on(self, bytes: &[u8]) {
        // There is nobody left to tell if standard error is closed.
        let piece = lines::Piece { stream: Stream::Err, bytes: bytes.to_vec() };
        self.pass(&[piece]).unwrap_or_default();
    }

    /// An answer as JSON, on standard output.
    pub(crate) fn json(self, value: &impl serde::Serialize) -> Result<(), AnswerError> {
        let mut text = escape::json(&serde_json::to_string_pretty(value).map_err(AnswerError::Json)?);
        text.push('\n');
        self.answer(&text)
    }
}
