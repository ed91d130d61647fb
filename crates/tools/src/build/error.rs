//! What can go wrong on the way from a plan to a tool.

use std::time::Duration;

use sandtable_sandbox::model::diagnosis::{Diagnose, Fault};

use super::packages::PackagesError;
use crate::depot::DepotError;
use crate::elf::Misfit;
use crate::fetch::FetchError;

/// Why there is no tool. Nothing of it is kept, and nothing outside its sandbox has changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{tool}` is planned for {platform}, and the root file system is {machine}")]
    Platform { tool: String, platform: String, machine: String },
    #[error(transparent)]
    Fetch(Box<FetchError>),
    #[error(transparent)]
    Depot(Box<DepotError>),
    #[error("{chain}: step {number} (`{action}`) failed")]
    Step {
        chain: String,
        number: usize,
        action: &'static str,
        #[source]
        source: Box<StepError>,
    },
    #[error("{chain}: `{binary}` is not in what was made")]
    NoBinary { chain: String, binary: String },
    #[error("{chain}: what was made cannot run here")]
    Misfit {
        chain: String,
        #[source]
        source: Box<Misfit>,
    },
    #[error("{chain}: `{command}` does not show that it works: {why}")]
    Verify { chain: String, command: String, why: String },
    #[error("{chain}: its packages cannot be installed")]
    Packages {
        chain: String,
        #[source]
        source: PackagesError,
    },
    #[error("cannot use `{root}` as a root file system")]
    Root {
        root: String,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "tools cannot be made in containers below `{0}`: an engine takes part of that path for an option"
    )]
    Place(String),
    #[error("{chain}: a container of the image `{image}` did not say whether what was made can run in it")]
    NoAnswer { chain: String, image: String },
    #[error("cannot make a sandbox for the steps")]
    Sandbox(#[source] Box<sandtable_sandbox::session::SessionError>),
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    #[error("`{command}` ended with {code}{}{}", undeclared(.missing), tail(.output))]
    Exit { command: String, code: u8, missing: Vec<String>, output: String },
    #[error("step {number} called `{program}`, which is not a declared dependency")]
    NotFound { number: usize, program: String },
    #[error("it took longer than {} s", .limit.as_secs())]
    TimedOut { limit: Duration },
    #[error("`{file}` cannot be unpacked")]
    Archive {
        file: String,
        #[source]
        source: sandtable_unpack::archive::Error,
    },
    #[error("cannot {what} `{path}`")]
    File {
        what: &'static str,
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("`{path}` leads elsewhere")]
    Unsafe {
        path: String,
        #[source]
        source: sandtable_store::safe::Unsafe,
    },
    #[error("the download `{0}` is not there any more")]
    NoDownload(String),
    #[error("nothing matches `{0}`")]
    NoMatch(String),
    #[error("the text to replace is not in `{0}`")]
    NoText(String),
    #[error("`{0}` is not in the output")]
    NoOutput(String),
    #[error(transparent)]
    Sandbox(#[from] sandtable_sandbox::session::SessionError),
}

impl Error {
    /// Says by which way the failing tool was needed.
    pub(super) fn in_chain(self, way: &str) -> Self {
        let named = |_: String| way.to_owned();
        match self {
            Self::Step { chain, number, action, source } => {
                Self::Step { chain: named(chain), number, action, source }
            }
            Self::NoBinary { chain, binary } => Self::NoBinary { chain: named(chain), binary },
            Self::Misfit { chain, source } => Self::Misfit { chain: named(chain), source },
            Self::Verify { chain, command, why } => Self::Verify { chain: named(chain), command, why },
            Self::Packages { chain, source } => Self::Packages { chain: named(chain), source },
            Self::NoAnswer { chain, image } => Self::NoAnswer { chain: named(chain), image },
            other => other,
        }
    }

    /// Whether the observer or a signal cancelled it.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Fetch(error) if matches!(**error, FetchError::Cancelled { .. }))
    }
}

impl Diagnose for Error {
    fn fault(&self) -> Fault {
        let machine = match self {
            Self::Depot(error) => matches!(**error, DepotError::File { .. }),
            Self::Fetch(error) => matches!(
                **error,
                FetchError::File { .. } | FetchError::Client { .. } | FetchError::TooSlow { .. }
            ),
            // An engine that went away is no fault of the step that was to run.
            Self::Step { source, .. } => matches!(**source, StepError::Sandbox(_)),
            Self::Sandbox(_) | Self::NoAnswer { .. } | Self::Place(_) => true,
            _ => false,
        };
        if machine { Fault::Machine } else { Fault::Input }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Platform { .. } => "tool-platform",
            Self::Fetch(error) => match **error {
                FetchError::Hash { .. } | FetchError::Short { .. } | FetchError::TooLarge { .. } => {
                    "tool-download"
                }
                FetchError::Cancelled { .. } => "interrupted",
                _ => "tool-fetch",
            },
            Self::Depot(error) => match **error {
                DepotError::Corrupt { .. } => "tool-corrupt",
                DepotError::Unfit { .. } => "tool-output",
                DepotError::File { .. } => "tool-store",
            },
            Self::Step { .. } => "tool-step",
            Self::NoBinary { .. } => "tool-output",
            Self::Misfit { .. } => "tool-misfit",
            Self::Verify { .. } => "tool-verify",
            Self::Packages { .. } => "tool-packages",
            Self::Root { .. } => "tool-root",
            Self::Place(_) => "tool-place",
            Self::Sandbox(_) | Self::NoAnswer { .. } => "tool-sandbox",
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Misfit { source, .. } => source.remedy().map(str::to_owned),
            Self::Platform { .. } => Some(
                "plan it for that system: `--libc` and `--family` say what a plan is for, and without them it is for the \
                 system that it is made on"
                    .to_owned(),
            ),
            Self::Depot(error) => match &**error {
                DepotError::Corrupt { key, .. } => Some(format!(
                    "somebody changed it: remove it with `sandtable tool rm {}`, and it is made again",
                    key.short()
                )),
                _ => None,
            },
            Self::Fetch(error) => match &**error {
                FetchError::NoClient { program, .. } => Some(format!("install `{program}`; one inside the project is not used")),
                FetchError::Hash { .. } => Some(
                    "the registry offers another file under that name now, or somebody on the way does"
                        .to_owned(),
                ),
                _ => None,
            },
            Self::Step { source, .. } => source.remedy(),
            Self::Packages { source, .. } => Some(source.remedy().to_owned()),
            Self::Place(_) => Some(
                "keep your data in a directory without comma, colon, quote and backslash in its path, or leave out \
                 `--engine`"
                    .to_owned(),
            ),
            Self::Sandbox(error) => error.remedy(),
            _ => None,
        }
    }
}

impl StepError {
    fn remedy(&self) -> Option<String> {
        match self {
            Self::NotFound { program, .. } => Some(format!("declare a dependency that provides `{program}`")),
            Self::Exit { missing, .. } if !missing.is_empty() => {
                Some(format!("declare a dependency that provides `{}`", missing.join("`, `")))
            }
            Self::Sandbox(error) => error.remedy(),
            _ => None,
        }
    }
}

impl From<DepotError> for Error {
    fn from(error: DepotError) -> Self {
        Self::Depot(Box::new(error))
    }
}

impl From<FetchError> for Error {
    fn from(error: FetchError) -> Self {
        Self::Fetch(Box::new(error))
    }
}

fn undeclared(missing: &[String]) -> String {
    if missing.is_empty() {
        return String::new();
    }
    format!(", after it called `{}`, which is not a declared dependency", missing.join("`, `"))
}

fn tail(output: &str) -> String {
    if output.is_empty() { String::new() } else { format!("; it said last:\n{output}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtable_sandbox::session::SessionError;

    #[test]
    fn an_engine_that_went_away_is_the_machines_matter_and_a_step_that_failed_is_not() {
        let step = |source| Error::Step {
            chain: "a".to_owned(),
            number: 1,
            action: "run_command",
            source: Box::new(source),
        };
        let lost = SessionError::Process(rustix::io::Errno::AGAIN);
        assert_eq!(step(StepError::Sandbox(lost)).fault(), Fault::Machine);
        assert_eq!(step(StepError::NoMatch("*".to_owned())).fault(), Fault::Input);
    }
}
