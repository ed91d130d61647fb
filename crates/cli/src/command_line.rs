//! The command line as `clap` reads it, and what its errors become.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use sandtable_app::config::key::closest;

use crate::commands;
use crate::error::CliError;
use crate::exit;

pub(crate) mod help;

/// Run a command on a private view of your repository, look at what it did, keep or drop it
#[derive(Debug, Parser)]
#[command(
    name = "sandtable",
    version,
    about,
    after_long_help = exit::TABLE,
    subcommand_required = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// One command each, in a file of its own below `commands`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a new sandbox of this repository
    Run(Box<commands::run::RunArgs>),
    /// Run your shell in a new sandbox
    Shell(Box<commands::shell::ShellArgs>),
    /// Run a command in an existing sandbox
    Exec(commands::exec::ExecArgs),
    /// List sandboxes
    Ls(commands::ls::LsArgs),
    /// Show a sandbox and the result of its last command
    Inspect(commands::inspect::InspectArgs),
    /// Show the output of a detached command
    Logs(commands::logs::LogsArgs),
    /// Show what happened to sandboxes
    Events(commands::events::EventsArgs),
    /// Show the changes between two states
    Diff(commands::diff::DiffArgs),
    /// Show the history of a sandbox, a directory or this repository
    Log(commands::log::LogArgs),
    /// Record the state of a sandbox or a directory, and print its id
    Snapshot(commands::snapshot::SnapshotArgs),
    /// Record the first state of a directory, and print its id
    Onboard(commands::snapshot::OnboardArgs),
    /// Write a recorded state into an empty directory
    Checkout(commands::turn::CheckoutArgs),
    /// Restore a sandbox or a directory to a recorded state
    Rollback(commands::turn::RollbackArgs),
    /// Undo the last operation: a command, a rollback or a merge
    Undo(commands::turn::StepArgs),
    /// Redo what was undone
    Redo(commands::turn::StepArgs),
    /// Create a sandbox from a recorded state, without running a command
    Fork(Box<commands::fork::ForkArgs>),
    /// Check a recorded state, or prove what a command does to it
    Verify(Box<commands::verify::VerifyArgs>),
    /// Merge a sandbox's changes into the current branch as one commit
    Merge(commands::merge::MergeArgs),
    /// Apply a sandbox's changes to your files, uncommitted
    Apply(commands::merge::WorkArgs),
    /// Export a sandbox's changes as a branch, a patch or a bundle
    Export(commands::merge::ExportArgs),
    /// Check and clean up the recorded states
    #[command(subcommand)]
    Store(commands::store::StoreCommand),
    /// Stop what runs in a sandbox; its files stay
    Stop(commands::stop::StopArgs),
    /// Remove sandboxes and their files
    Rm(commands::rm::RmArgs),
    /// Remove stopped sandboxes that changed nothing
    Prune(commands::prune::PruneArgs),
    /// Show the effective policy and where each setting comes from
    #[command(subcommand)]
    Policy(commands::policy::PolicyCommand),
    /// Build tools from recipes and plans, for use in sandboxes
    #[command(subcommand)]
    Tool(commands::tool::ToolCommand),
    /// Trust a project's configuration file as it is now
    Trust(commands::trust::TrustArgs),
    /// Check what this machine can enforce, and how to fix what it cannot
    Doctor(commands::doctor::DoctorArgs),
    /// Print the completion script of a shell
    Completions(commands::completions::CompletionsArgs),
    /// Print a manual page, or write all of them
    Man(commands::man::ManArgs),
}

/// Reads the command line. Help and version come back as text for standard output.
pub(crate) fn parse(args: &[OsString]) -> Result<Cli, Stop> {
    let parsed = help::command().try_get_matches_from(args).and_then(|words| Cli::from_arg_matches(&words));
    parsed.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Stop::Answer(error.render()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let text = format!("which command?\n\n{}", error.render().to_string().trim_end());
            Stop::Refused(CliError::Usage { text, hint: None })
        }
        _ => Stop::Refused(usage(&error, args)),
    })
}

/// Why no command is run.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Help, whose colours its reader may not want.
    Answer(StyledStr),
    Refused(CliError),
}

fn usage(error: &clap::Error, args: &[OsString]) -> CliError {
    let takes_command = args.get(1).is_some_and(|word| word == "run" || word == "exec");
    let bare = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => !word.starts_with('-'),
        _ => false,
    };
    let forgotten = takes_command && bare && error.kind() == ErrorKind::UnknownArgument;
    let missing = takes_command && error.kind() == ErrorKind::MissingRequiredArgument;
    let hint = (forgotten || missing).then(|| {
        let start = args.get(1).map(|word| word.to_string_lossy()).unwrap_or_default();
        let middle = if start == "exec" { " NAME" } else { "" };
        format!("the command goes behind `--`: sandtable {start}{middle} [options] -- CMD…")
    });
    let hint = hint.or_else(|| misspelt(error).map(|meant| format!("did you mean `sandtable {meant}`?")));
    let text = error.render().to_string();
    let text = text.trim_end().trim_end_matches("For more information, try '--help'.").trim_end();
    let text = text.strip_prefix("error: ").unwrap_or(text).to_owned();
    CliError::Usage { text, hint }
}

/// The command that a misspelt one was meant to be, where clap has no tip of its own.
fn misspelt(error: &clap::Error) -> Option<String> {
    let (word, None) =
        (error.get(ContextKind::InvalidSubcommand)?, error.get(ContextKind::SuggestedSubcommand))
    else {
        return None;
    };
    let command = Cli::command();
    let ContextValue::String(word) = word else { return None };
    closest(word, command.get_subcommands().map(clap::Command::get_name)).map(str::to_owned)
}

#[cfg(test)]
mod tests;
