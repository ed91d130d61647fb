//! The command line as `clap` reads it, and what its errors become.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, StyledStr, TypedValueParser as _, ValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use sandtable_app::config::ConfigError;
use sandtable_app::config::key::{Key, closest};
use sandtable_app::config::layer::Layer;
use sandtable_sandbox::model::choice::UnknownWord;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::limits::{Cpus, Disk, Limits, Memory, Pids, Timeout};
use sandtable_sandbox::model::profile::Profile;
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::{Base, Lifetime, Network, SourceGuard, Strictness, WorkspaceMode};

use crate::commands;
use crate::error::CliError;
use crate::exit;

mod container;
pub(crate) mod help;
mod inside;
mod profile;

use container::{ContainerArgs, ContainerNetworkArgs};
use inside::InsideArgs;
use profile::ProfileParser;

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

/// What a sandbox shall be like.
#[derive(Debug, Default, Args)]
pub(crate) struct SettingArgs {
    #[command(flatten)]
    workspace: WorkspaceArgs,
    #[command(flatten)]
    inside: InsideArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    container: ContainerArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// The files that the command works on.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = help::WORKSPACE)]
struct WorkspaceArgs {
    /// Name of the sandbox; generated by default
    #[arg(long, value_name = "NAME")]
    name: Option<SandboxName>,
    /// Start in DIR; the repository around it is the source
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// How changes are kept apart: `auto`, `overlay`, `copy`, `live`
    ///
    /// `overlay` is a copy-on-write view, `copy` a complete copy. With `live` the command works on the
    /// source itself. `auto` takes an overlay where the file system has one, else a copy.
    #[arg(long, value_name = "MODE", hide_possible_values = true, value_parser = words(WorkspaceMode::ALL, WorkspaceMode::word))]
    mode: Option<WorkspaceMode>,
    /// The base of the workspace: `source` or `store`
    ///
    /// With `source`, files that you edit while a command runs are visible inside. With `store` the base
    /// is the recorded state of the source, written out for this sandbox.
    #[arg(long, value_name = "BASE", hide_possible_values = true, value_parser = words(Base::ALL, Base::word))]
    base: Option<Base>,
    /// Remove the sandbox and its changes when the command ends
    #[arg(long)]
    rm: bool,
}

/// What the command can connect to.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = help::NETWORK)]
struct NetworkArgs {
    /// Network access: `none`, `proxied`, `nat`, `host`
    #[arg(long, value_name = "NETWORK", hide_possible_values = true, value_parser = words(Network::ALL, Network::word))]
    network: Option<Network>,
    #[command(flatten)]
    container: ContainerNetworkArgs,
}

/// How much of the machine the sandbox may use. What cannot be enforced stops the launch.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = help::LIMITS)]
struct LimitArgs {
    /// Processors, such as 2 or 0.5
    #[arg(long, value_name = "NUMBER")]
    cpus: Option<Cpus>,
    /// Memory including swap and memory file systems, such as 2g
    #[arg(short, long, value_name = "SIZE")]
    memory: Option<Memory>,
    /// Processes and threads
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    pids: Option<Pids>,
    /// Disk space, such as 20g, or none; default: half of what is free
    #[arg(long, value_name = "SIZE")]
    disk: Option<Disk>,
    /// Time, such as 90s or 5m; then the command ends with code 124
    #[arg(long, value_name = "TIME")]
    timeout: Option<Timeout>,
}

/// How the settings come about, and what weakens a promise.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = help::POLICY)]
struct PolicyArgs {
    /// A set of defaults: `none`, `dev`, `safe`, `tight`, `offline`
    ///
    /// Your configuration file can define more.
    #[arg(long, value_name = "PROFILE", hide_possible_values = true, value_parser = ProfileParser)]
    profile: Option<Profile>,
    /// Start even if a control cannot be enforced, and list which
    #[arg(long)]
    best_effort: bool,
    /// Allow `/`, the home directory or a tree with credentials as the source
    #[arg(long, hide_short_help = true)]
    dangerously_allow_source: bool,
}

/// What is shown of a command's end, and where.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = help::OUTPUT)]
pub(crate) struct OutputArgs {
    /// Write what was done and what changed to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print only errors and work that was not recorded
    #[arg(short, long)]
    quiet: bool,
}

/// What the command talks to.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = help::OUTPUT)]
pub(crate) struct StreamArgs {
    /// Give the command a terminal even if there is none here
    #[arg(short, long, overrides_with = "no_tty")]
    tty: bool,
    /// Give the command no terminal
    #[arg(short = 'T', long, overrides_with = "tty", hide_short_help = true)]
    no_tty: bool,
}

impl StreamArgs {
    pub(crate) fn layer(&self) -> Layer {
        let tty = self.tty.then_some(true).or(self.no_tty.then_some(false));
        Layer { tty: flag(Key::Tty, tty), ..Layer::default() }
    }
}

impl SettingArgs {
    pub(crate) fn layer(self) -> Result<Layer, ConfigError> {
        let mut layer = Layer {
            profile: flag(Key::Profile, self.policy.profile),
            name: flag(Key::Name, self.workspace.name),
            directory: flag(Key::Directory, self.workspace.directory),
            mode: flag(Key::Mode, self.workspace.mode),
            base: flag(Key::Base, self.workspace.base),
            network: flag(Key::Network, self.network.network),
            limits: self.limits.limits(),
            lifetime: flag(Key::Rm, self.workspace.rm.then_some(Lifetime::Discard)),
            strictness: flag(Key::BestEffort, self.policy.best_effort.then_some(Strictness::BestEffort)),
            source_guard: flag(
                Key::AllowSource,
                self.policy.dangerously_allow_source.then_some(SourceGuard::Allow),
            ),
            ..Layer::default()
        };
        self.container.add(&mut layer)?;
        self.network.container.add(&mut layer)?;
        self.inside.add(&mut layer)?;
        Ok(layer)
    }
}

impl LimitArgs {
    fn limits(self) -> Limits {
        Limits {
            cpus: flag(Key::Cpus, self.cpus),
            memory: flag(Key::Memory, self.memory),
            pids: flag(Key::Pids, self.pids),
            disk: flag(Key::Disk, self.disk),
            timeout: flag(Key::Timeout, self.timeout),
        }
    }
}

impl OutputArgs {
    pub(crate) fn layer(self) -> Layer {
        Layer {
            report: flag(Key::Report, self.report),
            quiet: flag(Key::Quiet, self.quiet.then_some(true)),
            ..Layer::default()
        }
    }
}

/// A setting that came from a flag, if it was given.
pub(crate) fn flag<T>(key: Key, value: Option<T>) -> Option<Setting<T>> {
    value.map(|value| Setting::new(value, Origin::Flag { name: key.flag().to_owned() }))
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

pub(crate) fn words<T>(all: &'static [T], word: fn(T) -> &'static str) -> ValueParser
where
    T: Copy + FromStr<Err = UnknownWord> + Send + Sync,
{
    PossibleValuesParser::new(all.iter().map(|value| word(*value))).try_map(|word| word.parse::<T>()).into()
}

#[cfg(test)]
mod tests;
