//! `sandtable tool`: recipes and plans, and the tools that are made from them.

mod ask;
mod engine;
mod install;
mod keep;
mod matrix;
mod plan;
mod prepare;
mod shell;
mod test;
mod which;

use std::process::ExitCode;

use clap::Subcommand;

pub(crate) use prepare::prepared;

use crate::app::App;
use crate::error::CliError;

/// What `tool` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// Print the plan of a tool: every file by its hash, every step, every dependency
    Plan(plan::PlanArgs),
    /// Check a plan from a file and show it to people
    PlanShow(plan::ShowArgs),
    /// Show what differs between two plans
    PlanDiff(plan::DiffArgs),
    /// Make a tool and keep it, so that sandboxes can have it with `--tool`
    #[command(visible_alias = "build")]
    Install(install::InstallArgs),
    /// Make a tool for families of distributions, and say where it works
    Test(test::TestArgs),
    /// Open a shell in a clean sandbox with what a recipe declares, and nothing else of ours
    Shell(shell::ShellArgs),
    /// List the tools that are kept
    Ls(keep::LsArgs),
    /// Print where a kept tool is
    Path(keep::PathArgs),
    /// Remove kept tools
    Rm(keep::RmArgs),
    /// Remove tools and downloads that nobody has used for a while
    Gc(keep::GcArgs),
    /// List the recipes that come with the program, or print one
    Recipes(plan::RecipesArgs),
}

pub(crate) fn run(app: &App, command: ToolCommand) -> Result<ExitCode, CliError> {
    match command {
        ToolCommand::Plan(args) => plan::plan(app, &args),
        ToolCommand::PlanShow(args) => plan::show(app, &args),
        ToolCommand::PlanDiff(args) => plan::diff(app, &args),
        ToolCommand::Install(args) => install::run(app, &args),
        ToolCommand::Test(args) => test::run(app, &args),
        ToolCommand::Shell(args) => shell::run(app, &args),
        ToolCommand::Ls(args) => keep::ls(app, &args),
        ToolCommand::Path(args) => keep::path(app, &args),
        ToolCommand::Rm(args) => keep::rm(app, &args),
        ToolCommand::Gc(args) => keep::gc(app, &args),
        ToolCommand::Recipes(args) => plan::recipes(app, &args),
    }
}
