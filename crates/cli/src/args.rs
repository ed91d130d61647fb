//! The command line as `clap` reads it, and what its errors become.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser as _, ValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};
use sandtable_sandbox::model::choice::UnknownWord;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::limits::{Cpus, Disk, Limits, Memory, Pids, Timeout};
use sandtable_sandbox::model::profile::Profile;
use sandtable_sandbox::model::seatbelt::SeatbeltProfile;
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::{
    Base, EngineChoice, GitConfig, Lifetime, Network, Secrets, SourceGuard, SshAgent, Strictness,
    WorkspaceMode,
};

use crate::commands;
use crate::config;
use crate::config::key::Key;
use crate::config::layer::Layer;
use crate::error::CliError;
use crate::exit;

mod container;
mod inside;
mod profile;

use container::ContainerArgs;
use inside::InsideArgs;
use profile::ProfileParser;

/// Run a command on a private view of your repository, look at what it did, keep or drop it
#[derive(Debug, Parser)]
#[command(
    name = "sandtable",
    version,
    about,
    after_long_help = exit::TABLE,
    disable_help_subcommand = true,
    subcommand_required = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// One command each, in a file of its own below `commands`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a new sandbox on the repository around the current directory
    Run(Box<commands::run::RunArgs>),
    /// Run your shell in a new sandbox, as `run` would
    Shell(Box<commands::shell::ShellArgs>),
    /// Run another command in an existing sandbox
    Exec(commands::exec::ExecArgs),
    /// List the sandboxes
    Ls(commands::ls::LsArgs),
    /// Show what a sandbox is and what its last command did
    Inspect(commands::inspect::InspectArgs),
    /// Show what a detached command wrote
    Logs(commands::logs::LogsArgs),
    /// Show what happened to sandboxes
    Events(commands::events::EventsArgs),
    /// Show what differs between two states
    Diff(commands::diff::DiffArgs),
    /// Show what was recorded of a source, a sandbox or a directory, newest first
    Log(commands::log::LogArgs),
    /// Record the state of a sandbox or a directory now, and print its id
    Snapshot(commands::snapshot::SnapshotArgs),
    /// Record the first state of a directory, and print its id
    Onboard(commands::snapshot::OnboardArgs),
    /// Write a recorded state into an empty directory
    Checkout(commands::turn::CheckoutArgs),
    /// Bring a sandbox or a directory back to a recorded state
    Rollback(commands::turn::RollbackArgs),
    /// Take back the last operation on a sandbox, a directory or this source: a command, a rollback, a merge
    Undo(commands::turn::StepArgs),
    /// Do again what was undone
    Redo(commands::turn::StepArgs),
    /// Make a new sandbox that is in a recorded state; no command runs
    Fork(Box<commands::fork::ForkArgs>),
    /// Check a recorded state; prove what a command does on it, or check such a proof
    Verify(Box<commands::verify::VerifyArgs>),
    /// Merge what a sandbox did into your repository's current branch, as one commit
    Merge(commands::merge::MergeArgs),
    /// Bring what a sandbox did into your files, uncommitted
    Apply(commands::merge::WorkArgs),
    /// Hand over what a sandbox did as a branch, a patch or a bundle
    Export(commands::merge::ExportArgs),
    /// Look after what is recorded
    #[command(subcommand)]
    Store(commands::store::StoreCommand),
    /// End what runs in a sandbox; its state stays
    Stop(commands::stop::StopArgs),
    /// Remove sandboxes and everything in them
    Rm(commands::rm::RmArgs),
    /// Remove sandboxes that do not run and changed nothing
    Prune(commands::prune::PruneArgs),
    /// Show the policy that would hold, and where each line of it comes from
    #[command(subcommand)]
    Policy(commands::policy::PolicyCommand),
    /// Make tools from recipes and plans, for sandboxes
    #[command(subcommand)]
    Tool(commands::tool::ToolCommand),
    /// Consent to a project's file as it is now, so that it may widen the policy
    Trust(commands::trust::TrustArgs),
    /// Find out what can be enforced here, what not, and what mends it
    Doctor(commands::doctor::DoctorArgs),
    /// Print the completions of a shell
    Completions(commands::completions::CompletionsArgs),
    /// Print a manual page, or write all of them
    Man(commands::man::ManArgs),
}

/// What a sandbox shall be like.
#[derive(Debug, Default, Args)]
pub(crate) struct SettingArgs {
    /// What runs the sandbox
    #[arg(long, value_name = "ENGINE", value_parser = words(EngineChoice::ALL, EngineChoice::word))]
    engine: Option<EngineChoice>,
    #[command(flatten)]
    container: ContainerArgs,
    /// With engine `seatbelt`: what is open besides files, and which connections are
    #[arg(long, value_name = "PROFILE", value_parser = words(SeatbeltProfile::ALL, SeatbeltProfile::word))]
    seatbelt_profile: Option<SeatbeltProfile>,
    /// A named bundle of settings
    #[arg(long, value_name = "PROFILE", value_parser = ProfileParser)]
    profile: Option<Profile>,
    /// Name of the sandbox instead of one made up
    #[arg(long, value_name = "NAME")]
    name: Option<SandboxName>,
    /// Start in DIR; the repository around it is the source
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// How the workspace is kept apart from the source
    #[arg(long, value_name = "MODE", value_parser = words(WorkspaceMode::ALL, WorkspaceMode::word))]
    mode: Option<WorkspaceMode>,
    /// What the workspace stands on: the source, seen as it moves, or its recorded state
    #[arg(long, value_name = "BASE", value_parser = words(Base::ALL, Base::word))]
    base: Option<Base>,
    #[command(flatten)]
    inside: InsideArgs,
    /// Which network the command sees
    #[arg(long, value_name = "NETWORK", value_parser = words(Network::ALL, Network::word))]
    network: Option<Network>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Whether the command may use your ssh-agent
    #[arg(long, value_name = "WHETHER", value_parser = words(SshAgent::ALL, SshAgent::word))]
    ssh_agent: Option<SshAgent>,
    /// How much of your git configuration the command sees
    #[arg(long, value_name = "HOW", value_parser = words(GitConfig::ALL, GitConfig::word))]
    git_config: Option<GitConfig>,
    /// What happens to files of the source whose names say secret
    #[arg(long, value_name = "HOW", value_parser = words(Secrets::ALL, Secrets::word))]
    secrets: Option<Secrets>,
    /// Keep nothing: the sandbox goes when the command ends
    #[arg(long)]
    rm: bool,
    #[command(flatten)]
    consent: ConsentArgs,
}

/// How much of the machine the sandbox may use. What cannot be enforced stops the launch.
#[derive(Debug, Default, Args)]
struct LimitArgs {
    /// Processors, such as 2 or 0.5
    #[arg(long, value_name = "NUMBER")]
    cpus: Option<Cpus>,
    /// Memory with swap, such as 512m or 2g; everything in memory file systems counts
    #[arg(short, long, value_name = "SIZE")]
    memory: Option<Memory>,
    /// Processes and threads
    #[arg(long, value_name = "NUMBER")]
    pids: Option<Pids>,
    /// Disk for everything the sandbox writes, such as 500m or 20g, or none; by default half of what is free
    #[arg(long, value_name = "SIZE")]
    disk: Option<Disk>,
    /// End the command after this time, such as 90s or 5m, with exit code 124
    #[arg(long, value_name = "TIME")]
    timeout: Option<Timeout>,
}

/// What weakens a promise.
#[derive(Debug, Default, Args)]
struct ConsentArgs {
    /// Start even if a control cannot be enforced; what is lost is listed
    #[arg(long)]
    best_effort: bool,
    /// Allow `/`, the home directory or a tree with credentials as the source
    #[arg(long)]
    dangerously_allow_source: bool,
}

/// What is shown of a command's end, and where.
#[derive(Debug, Default, Args)]
pub(crate) struct OutputArgs {
    /// Write what was done and changed to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// What the command talks to.
#[derive(Debug, Default, Args)]
pub(crate) struct StreamArgs {
    /// Give the command a terminal even if you have none here
    #[arg(short, long, overrides_with = "no_tty")]
    tty: bool,
    /// Give the command no terminal
    #[arg(short = 'T', long, overrides_with = "tty")]
    no_tty: bool,
}

impl StreamArgs {
    pub(crate) fn layer(&self) -> Layer {
        let tty = self.tty.then_some(true).or(self.no_tty.then_some(false));
        Layer { tty: flag(Key::Tty, tty), ..Layer::default() }
    }
}

impl SettingArgs {
    pub(crate) fn layer(self) -> Result<Layer, config::Error> {
        let mut layer = Layer {
            engine: flag(Key::Engine, self.engine),
            seatbelt_profile: flag(Key::SeatbeltProfile, self.seatbelt_profile),
            profile: flag(Key::Profile, self.profile),
            name: flag(Key::Name, self.name),
            directory: flag(Key::Directory, self.directory),
            mode: flag(Key::Mode, self.mode),
            base: flag(Key::Base, self.base),
            network: flag(Key::Network, self.network),
            limits: self.limits.limits(),
            ssh_agent: flag(Key::SshAgent, self.ssh_agent),
            git_config: flag(Key::GitConfig, self.git_config),
            secrets: flag(Key::Secrets, self.secrets),
            lifetime: flag(Key::Rm, self.rm.then_some(Lifetime::Discard)),
            strictness: flag(Key::BestEffort, self.consent.best_effort.then_some(Strictness::BestEffort)),
            source_guard: flag(
                Key::AllowSource,
                self.consent.dangerously_allow_source.then_some(SourceGuard::Allow),
            ),
            ..Layer::default()
        };
        self.container.add(&mut layer)?;
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
    Cli::try_parse_from(args).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Stop::Answer(error.render().to_string()),
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
    Answer(String),
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
    let text = error.render().to_string();
    let text = text.trim_end().trim_end_matches("For more information, try '--help'.").trim_end();
    let text = text.strip_prefix("error: ").unwrap_or(text).to_owned();
    CliError::Usage { text, hint }
}

pub(crate) fn words<T>(all: &'static [T], word: fn(T) -> &'static str) -> ValueParser
where
    T: Copy + FromStr<Err = UnknownWord> + Send + Sync,
{
    PossibleValuesParser::new(all.iter().map(|value| word(*value))).try_map(|word| word.parse::<T>()).into()
}

#[cfg(test)]
mod tests;
