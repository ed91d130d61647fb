//! What can go wrong on the command line: the only place that turns an error into an exit code and into a
//! word about what to do next.

mod hint;
mod tool;

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use sandtable_app::back;
use sandtable_app::caller::CallerError;
use sandtable_app::config::ConfigError;
use sandtable_app::env::{self, EnvironmentError};
use sandtable_app::workshop::ToolChoiceError;
use sandtable_merge as merge;
use sandtable_sandbox::model::causes::causes;
use sandtable_sandbox::model::diagnosis::{Diagnose as _, Fault};
use sandtable_sandbox::model::id::{NameError, SandboxName};
use sandtable_sandbox::model::path::PathError;
use sandtable_sandbox::{board, resolve, session};
use sandtable_tools::build::{ImageError, StepError};

use self::hint::{config_hint, half_done, session_hint, tool_hint};
pub(crate) use self::tool::ToolError;
use crate::exit::Own;
use crate::ui::style::{Colour, Role};
use crate::ui::{AnswerError, escape};

/// Why a command did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error("{text}")]
    Usage { text: String, hint: Option<String> },
    #[error(transparent)]
    Config(Box<ConfigError>),
    #[error(transparent)]
    Resolve(Box<resolve::ResolveError>),
    #[error(transparent)]
    Session(Box<session::SessionError>),
    #[error(transparent)]
    Board(Box<board::BoardError>),
    #[error("`{word}` is neither a sandbox nor a directory")]
    NoTarget { word: String },
    #[error("`{word}` is neither the id of a merge or apply nor a directory")]
    NotAMerge { word: String },
    #[error("the message of the commit is empty")]
    NoMessage,
    #[error("there is no directory `{}`", path.display())]
    NoDirectory { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Merge(#[from] merge::Error),
    #[error("`{path}` is not a path inside the source")]
    TreePath { path: String, source: merge::PathError },
    #[error(transparent)]
    Tool(Box<ToolError>),
    #[error("the recorded states of `{}` are needed by {}", root.display(), names.join(", "))]
    StatesNeeded { root: PathBuf, names: Vec<String> },
    #[error("nothing was removed: nobody is there to be asked")]
    NotConfirmed,
    #[error("option `--choose` asks on a terminal, and there is none")]
    NoTerminal,
    #[error("`{words}` is not a person: `Name <address>`")]
    NotAPerson { words: String },
    #[error("`{}` is half changed by an interrupted operation", directory.display())]
    HalfDone { directory: PathBuf, began: PathBuf },
    #[error("`--approve all` is ambiguous: there is a file named `all`")]
    AllIsAFile,
    #[error("nothing of `{}` can be {}", root.display(), direction.done())]
    NothingBack { root: PathBuf, direction: board::Direction },
    #[error("merge `{id}` into `{}` cannot be {}: {}", root.display(), direction.done(), match direction {
        board::Direction::Undo => "it was undone already",
        board::Direction::Redo => "it was not undone, or something was merged since",
    })]
    MergeNotThere { id: String, root: PathBuf, direction: board::Direction },
    #[error("the merge {what} came after it, on top of it")]
    MergedSince { what: String, id: Option<String>, direction: board::Direction },
    #[error("option `--merge` is about a directory, and `{name}` is a sandbox")]
    MergeIntoSandbox { name: SandboxName },
    #[error("a path is not usable here")]
    HostPath(#[source] PathError),
    #[error("the two states are of different sources and cannot be compared")]
    TwoSources,
    #[error("no sandbox of `{}` has a recorded state", root.display())]
    NoSandbox { root: PathBuf },
    #[error("cannot read the proof `{}`", path.display())]
    ProofFile { path: PathBuf, source: io::Error },
    #[error("option `{option}` means nothing here: the sandbox of a proof is gone afterwards")]
    NotForProof { option: &'static str },
    #[error("cannot show what differs")]
    Render(#[source] board::diff::render::RenderError),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("option `--directory` needs an absolute path inside the sandbox")]
    InsideDirectory(#[source] PathError),
    #[error("option `--json` goes with `--dry-run`")]
    JsonWithoutDryRun,
    #[error("could not open report file `{}`", path.display())]
    ReportOpen { path: PathBuf, source: io::Error },
    #[error("the command ended with {code}, but its report could not be written to `{}`", path.display())]
    ReportWrite { path: PathBuf, code: u8, source: io::Error },
    #[error("cannot go to the background")]
    Detach(#[source] rustix::io::Errno),
    #[error("the background process ended before its command ran, and did not say why")]
    NoAnswer,
    #[error("could not prepare a sandbox for trial in `{}`", place.display())]
    Trial { place: PathBuf, source: io::Error },
    #[error("the command of the trial ended with {code}")]
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "no trial gets so far"))]
    TrialCommand { code: u8 },
    #[error("could not write manual page `{}`", path.display())]
    PageWrite { path: PathBuf, source: io::Error },
    #[error("`{}` was not trusted", path.display())]
    NotTrusted { path: PathBuf },
    #[error("could not write the answer to standard output")]
    Answer(#[source] io::Error),
    #[error("could not write the answer as JSON")]
    Json(#[source] serde_json::Error),
}

impl From<AnswerError> for CliError {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Write(error) => Self::Answer(error),
            AnswerError::Json(error) => Self::Json(error),
        }
    }
}

impl From<ToolError> for CliError {
    fn from(error: ToolError) -> Self {
        Self::Tool(Box::new(error))
    }
}

impl From<EnvironmentError> for CliError {
    fn from(error: EnvironmentError) -> Self {
        ConfigError::from(error).into()
    }
}

impl From<CallerError> for CliError {
    fn from(error: CallerError) -> Self {
        match error {
            CallerError::Config(error) => Self::Config(error),
            CallerError::Resolve(error) => Self::Resolve(error),
            CallerError::Session(error) => Self::Session(error),
            CallerError::Merge(error) => Self::Merge(*error),
            CallerError::Tool(error) => (*error).into(),
            CallerError::Board(error) => Self::Board(error),
            CallerError::NoTarget { word } => Self::NoTarget { word },
            CallerError::NoSandbox { root } => Self::NoSandbox { root },
            CallerError::HostPath(error) => Self::HostPath(error),
            CallerError::Policy { source, .. } => Self::Json(source),
            CallerError::NoExecutable => Self::Resolve(Box::new(resolve::ResolveError::NoExecutable)),
            CallerError::NoDirectory { path, source } => Self::NoDirectory { path, source },
            CallerError::HalfDone { directory, began } => Self::HalfDone { directory, began },
        }
    }
}

impl From<ToolChoiceError> for CliError {
    fn from(error: ToolChoiceError) -> Self {
        let error = match error {
            ToolChoiceError::Assemble(error) => ToolError::Assemble(error),
            ToolChoiceError::Machine(error) => ToolError::Machine(error),
            ToolChoiceError::Consent(error) => ToolError::Consent(error),
            ToolChoiceError::Make(error) => ToolError::Make(error),
            ToolChoiceError::Depot(error) => ToolError::Depot(error),
            ToolChoiceError::NotKept(request) => ToolError::NotKept(request),
            ToolChoiceError::Environment(error) => return error.into(),
            ToolChoiceError::Place(error) => return error.into(),
        };
        error.into()
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::Config(Box::new(error))
    }
}

impl From<resolve::ResolveError> for CliError {
    fn from(error: resolve::ResolveError) -> Self {
        Self::Resolve(Box::new(error))
    }
}

impl From<session::SessionError> for CliError {
    fn from(error: session::SessionError) -> Self {
        Self::Session(Box::new(error))
    }
}

impl From<back::Error> for CliError {
    fn from(error: back::Error) -> Self {
        match error {
            back::Error::Board(error) => error.into(),
            back::Error::Merge(error) => error.into(),
        }
    }
}

impl From<board::BoardError> for CliError {
    fn from(error: board::BoardError) -> Self {
        Self::Board(Box::new(error))
    }
}

impl CliError {
    pub(crate) fn exit(&self) -> Own {
        match self {
            Self::Usage { .. }
            | Self::Config(_)
            | Self::Name(_)
            | Self::InsideDirectory(_)
            | Self::JsonWithoutDryRun
            | Self::NotTrusted { .. }
            | Self::NoTarget { .. }
            | Self::NotAMerge { .. }
            | Self::NoMessage
            | Self::NoDirectory { .. }
            | Self::TwoSources
            | Self::TreePath { .. }
            | Self::NoTerminal
            | Self::StatesNeeded { .. }
            | Self::NotConfirmed
            | Self::NotAPerson { .. }
            | Self::NothingBack { .. }
            | Self::HalfDone { .. }
            | Self::AllIsAFile
            | Self::MergeIntoSandbox { .. }
            | Self::MergeNotThere { .. }
            | Self::HostPath(_)
            | Self::NoSandbox { .. }
            | Self::ProofFile { .. }
            | Self::NotForProof { .. }
            | Self::PageWrite { .. }
            | Self::ReportOpen { .. } => Own::Input,
            Self::Tool(error) => match &**error {
                ToolError::Make(error) if error.is_interrupted() => Own::Interrupted,
                ToolError::Make(error) if error.fault() == Fault::Input => Own::Failed,
                ToolError::Make(_)
                | ToolError::Depot(_)
                | ToolError::Consent(_)
                | ToolError::Image(ImageError::NoAnswer(_)) => Own::Machine,
                _ => Own::Input,
            },
            Self::Resolve(error) => Own::of(error.fault()),
            Self::Board(error) => board_exit(error),
            Self::Merge(error) => Own::of(error.fault()),
            Self::Session(error) => match &**error {
                session::SessionError::Proof(error) if error.is_false() => Own::Failed,
                session::SessionError::CommandNotFound { .. } => Own::NotFound,
                session::SessionError::CommandNotExecutable { .. } => Own::NotExecutable,
                session::SessionError::Interrupted => Own::Interrupted,
                session::SessionError::Board(error) => board_exit(error),
                _ => Own::of(error.fault()),
            },
            Self::ReportWrite { .. }
            | Self::Detach(_)
            | Self::NoAnswer
            | Self::Trial { .. }
            | Self::TrialCommand { .. } => Own::Machine,
            Self::MergedSince { .. } | Self::Answer(_) | Self::Json(_) | Self::Render(_) => Own::Failed,
        }
    }

    /// The signal that ended it.
    pub(crate) fn signal(&self) -> Option<i32> {
        match self {
            Self::Merge(merge::Error::Interrupted(signal)) => Some(*signal),
            Self::Board(error) => error.signal(),
            Self::Session(error) => match &**error {
                session::SessionError::Board(error) => error.signal(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The stable name of what went wrong, where there is one.
    fn code(&self) -> Option<&'static str> {
        match self {
            Self::Tool(error) => match &**error {
                ToolError::Make(error) => Some(error.code()),
                _ => None,
            },
            Self::Resolve(error) => Some(error.code()),
            Self::Session(error) => Some(error.code()),
            Self::Board(error) => Some(error.code()),
            Self::Merge(error) => Some(error.code()),
            _ => None,
        }
    }

    /// What the user can do.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } => hint.clone(),
            Self::Config(error) => config_hint(error),
            Self::Resolve(error) => error.remedy(),
            Self::Board(error) => error.remedy(),
            Self::Tool(error) => tool_hint(error),
            Self::StatesNeeded { names, .. } => {
                Some(format!("`sandtable rm {}` removes them with their work, then again", names.join(" ")))
            }
            Self::HalfDone { directory, began } => Some(half_done(directory, began)),
            Self::AllIsAFile => {
                Some("the file is `./all`; everything is `all@PLAN`, as a merge without it says".to_owned())
            }
            Self::NotConfirmed => Some("pass `--yes`, or look first with `--dry-run`".to_owned()),
            Self::NoTerminal => Some("choose with `--only PATH` and `--exclude PATH`".to_owned()),
            Self::MergedSince { id, direction, .. } => id.as_ref().map(|id| {
                let word = match direction {
                    board::Direction::Undo => "undo",
                    board::Direction::Redo => "redo",
                };
                format!("`sandtable {word} --merge {id}` first")
            }),
            Self::NotAMerge { .. } => Some(
                "`merge` and `apply` end with the id; without one the last merge into the directory is meant"
                    .to_owned(),
            ),
            Self::NoMessage => Some("leave out `--message`: the commit then names the sandbox".to_owned()),
            Self::MergeNotThere { .. } | Self::NothingBack { .. } => {
                Some("`sandtable log` lists what was done".to_owned())
            }
            Self::NoTarget { .. } => Some("`sandtable ls` lists the sandboxes".to_owned()),
            Self::NoSandbox { .. } => {
                Some("name one, or two snapshots: `sandtable log` lists them".to_owned())
            }
            Self::Session(error) => session_hint(error),
            Self::JsonWithoutDryRun => Some("a run's own record goes to a file: `--report FILE`".to_owned()),
            Self::Trial { .. } => Some(format!("export {}=/a/directory/of/your/own", env::TMPDIR)),
            Self::NotTrusted { .. } => Some("`sandtable trust --list` shows what is".to_owned()),
            Self::ReportOpen { .. } => Some("nothing ran; name a file that can be written".to_owned()),
            _ => None,
        }
    }

    /// The word that was taken for the name of a sandbox, and is none.
    pub(crate) fn unknown_sandbox(&self) -> Option<&str> {
        match self {
            Self::NoTarget { word } => Some(word),
            Self::Session(error) => match &**error {
                session::SessionError::Unknown(name) => Some(name.as_str()),
                _ => None,
            },
            Self::Board(error) => match &**error {
                board::BoardError::Unknown(word) => Some(word),
                _ => None,
            },
            _ => None,
        }
    }

    /// The message for the terminal: what, why, and what to do, nothing in it that steers a terminal.
    pub(crate) fn rendered(&self, colour: Colour) -> String {
        let label = colour.paint(Role::Error, "error");
        let text = match self {
            Self::Usage { text, .. } => escape::lines(text),
            other => escape::line(&other.to_string()),
        };
        let mut out = format!("sandtable: {label}: {text}");
        if let Some(code) = self.code() {
            write!(out, " [{code}]").expect("a string takes everything");
        }
        out.push('\n');
        for cause in causes(self) {
            writeln!(out, "  because: {}", shown(cause)).expect("a string takes everything");
        }
        for line in self.hint().iter().flat_map(|hint| hint.lines()) {
            writeln!(out, "  try: {}", escape::line(line)).expect("a string takes everything");
        }
        out
    }
}

/// A cause on one line, unless it is what a command said, which has its own; no line of that can be taken for one of ours.
fn shown(cause: &(dyn std::error::Error + 'static)) -> String {
    let text = cause.to_string();
    if cause.is::<StepError>() || cause.is::<Box<StepError>>() {
        text.lines().map(escape::line).collect::<Vec<_>>().join("\n    | ")
    } else {
        escape::line(&text)
    }
}

/// Work of the user's that is in the way is the fault of neither the input nor the machine.
fn board_exit(error: &board::BoardError) -> Own {
    match error {
        board::BoardError::Changed { .. } | board::BoardError::Collected(_) => Own::Failed,
        board::BoardError::Cancelled(_) => Own::Interrupted,
        error => Own::of(error.fault()),
    }
}

#[cfg(test)]
mod tests {
    use sandtable_app::config;
    use sandtable_app::config::file::Place;
    use sandtable_app::config::key::Key;
    use sandtable_app::config::narrow::Widening;
    use sandtable_app::config::trust::Standing;
    use sandtable_app::env::Environment;

    use super::*;

    fn rendered(error: impl Into<CliError>) -> String {
        error.into().rendered(Colour::Never)
    }

    fn refused(variables: &[(&str, &str)]) -> String {
        let environment = Environment::of(variables);
        let error = config::load(&environment, config::layer::Layer::default()).expect_err("refused");
        let error = CliError::from(error);
        assert_eq!(error.exit(), Own::Input);
        error.rendered(Colour::Never)
    }

    #[test]
    fn a_bad_variable_is_named_with_what_it_could_be() {
        insta::assert_snapshot!(refused(&[("SANDTABLE_NETWORK", "opne\u{1b}[2J")]), @r"
        sandtable: error: variable `SANDTABLE_NETWORK` has no usable value
          because: unknown value `opne\u{1b}[2J`; one of `none`, `proxied`, `nat`, `host`
        ");
        insta::assert_snapshot!(refused(&[("SANDTABLE_NETWROK", "none")]), @"
        sandtable: error: unknown variable `SANDTABLE_NETWROK`
          try: did you mean `SANDTABLE_NETWORK`?
        ");
        insta::assert_snapshot!(refused(&[("LLXPRT_SANDBOX", "false")]), @"
        sandtable: error: variable `LLXPRT_SANDBOX` has no usable value
          because: `false` asks for no sandbox at all, and there is no such thing here
          try: unset `LLXPRT_SANDBOX`, or run the command without sandtable
        ");
        insta::assert_snapshot!(refused(&[("SANDTABLE_RM", "yes")]), @"
        sandtable: error: variable `SANDTABLE_RM` has no usable value
          because: unknown value `yes`; one of `1`, `true`, `0`, `false`
        ");
        insta::assert_snapshot!(refused(&[("SANDBOX_MOUNTS", "/a,/b:/c:rx")]), @"
        sandtable: error: variable `SANDBOX_MOUNTS` has no usable value
          because: mount `/b:/c:rx` has no usable mode
          because: unknown value `rx`; one of `ro`, `rw`, `cow`
          try: a mount is `SRC[:DST[:ro|rw|cow]]`
        ");
        insta::assert_snapshot!(refused(&[("XDG_CONFIG_HOME", "config")]), @"sandtable: error: variable `XDG_CONFIG_HOME` is not an absolute path: `config`");
    }

    #[test]
    fn a_widening_line_says_what_would_hold_and_how_to_have_it() {
        let widening = |key, setting, [given, asked, holds]: [&str; 3]| {
            let place = Place { line: 3, column: 1 };
            let [given, asked, holds] = [given, asked, holds].map(str::to_owned);
            let path = "/repo/.sandtable.toml".into();
            ConfigError::from(Box::new(Widening {
                path,
                place,
                key,
                setting,
                given,
                asked,
                holds,
                standing: Standing::Unknown,
            }))
        };
        insta::assert_snapshot!(rendered(widening(Key::Network, Key::Network, ["host", "host", "none"])), @"
        sandtable: error: key `network` at `/repo/.sandtable.toml:3:1` would widen the policy: it asks for `host`, and without it `none`
          try: remove the line, or, if you want it, pass `--network host` yourself
          try: read the file and consent to it as it is: `sandtable trust /repo/.sandtable.toml`
        ");
        insta::assert_snapshot!(rendered(widening(Key::Profile, Key::Network, ["nat", "dev", "none"])), @"
        sandtable: error: key `profile` at `/repo/.sandtable.toml:3:1` would widen the policy: with it `network` is `nat`, and without it `none`
          try: remove the line, or, if you want it, pass `--profile dev` yourself
          try: read the file and consent to it as it is: `sandtable trust /repo/.sandtable.toml`
        ");
        insta::assert_snapshot!(rendered(widening(Key::BestEffort, Key::BestEffort, ["true", "true", "false"])), @"
        sandtable: error: key `best_effort` at `/repo/.sandtable.toml:3:1` would widen the policy: it asks for `true`, and without it `false`
          try: remove the line, or, if you want it, pass `--best-effort` yourself
          try: read the file and consent to it as it is: `sandtable trust /repo/.sandtable.toml`
        ");
    }

    #[test]
    fn each_error_has_its_code() {
        assert_eq!(CliError::JsonWithoutDryRun.exit() as u8, 2);
        assert_eq!(CliError::Answer(io::Error::other("x")).exit() as u8, 1);
        let lost = CliError::ReportWrite { path: "/r".into(), code: 0, source: io::Error::other("full") };
        assert_eq!(lost.exit() as u8, 125);
        insta::assert_snapshot!(rendered(lost), @"
        sandtable: error: the command ended with 0, but its report could not be written to `/r`
          because: full
        ");
        assert_eq!(Own::of(Fault::Machine) as u8, 125);
        assert_eq!(Own::of(Fault::Input) as u8, 2);
    }
}
