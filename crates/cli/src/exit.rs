//! Exit codes of Sandtable's own. Every other number is the command's, unchanged; a command that died by
//! signal *n* is 128 + *n*.

use std::process::ExitCode;

use sandtable_sandbox::model::diagnosis::Fault;

/// A number of Sandtable's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Own {
    /// A state command could not do or say what it was asked for.
    Failed = 1,
    /// Wrong usage, configuration or missing consent.
    Input = 2,
    /// The sandbox had used up its disk budget.
    DiskUsedUp = 123,
    /// The command's time was up.
    TimedOut = 124,
    /// The sandbox could not be started or was lost.
    Machine = 125,
    /// The command was found and cannot be executed.
    NotExecutable = 126,
    /// The command was not found.
    NotFound = 127,
    /// A signal ended it while something was copied, fetched or recorded.
    Interrupted = 130,
}

impl Own {
    pub(crate) fn of(fault: Fault) -> Self {
        match fault {
            Fault::Input => Self::Input,
            Fault::Machine => Self::Machine,
        }
    }

    /// The meaning of a number that the sandbox, not the command, gave.
    pub(crate) fn meaning(code: u8) -> Option<&'static str> {
        match code {
            code if code == Self::DiskUsedUp as u8 => Some("ended by the disk budget"),
            code if code == Self::TimedOut as u8 => Some("the time was up"),
            code if code == Self::Machine as u8 => Some("the sandbox was lost"),
            code if code == Self::NotExecutable as u8 => Some("the command cannot be executed"),
            code if code == Self::NotFound as u8 => Some("the command was not found"),
            _ => None,
        }
    }
}

impl From<Own> for ExitCode {
    fn from(own: Own) -> Self {
        Self::from(own as u8)
    }
}

/// The code after a signal, once everything was put back or finished.
pub(crate) fn after_signal(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(Own::Interrupted as u8))
}

/// The table in the long help.
pub(crate) const TABLE: &str = "\
Exit codes:
  N      the command's own code
  128+N  the command was killed by signal N
  130    interrupted while something was copied, fetched or recorded; nothing incomplete is kept
  128+N  a state command was interrupted by signal N; everything was put back, or is complete
  127    the command was not found in the sandbox
  126    the command was found and cannot be executed
  124    the time limit (`--timeout`) was reached
  123    the disk budget (`--disk`) was used up
  125    the sandbox could not be started or was lost
  2      wrong usage, configuration or missing consent
  1      a state command could not do what it was asked for
Codes of Sandtable's own are marked as such in the report (`exit.origin`).";
