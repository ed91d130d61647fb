//! `sandtable tool`: recipes and plans, and the tools that are made from them.

mod ask;
mod plan;
mod which;

use std::process::ExitCode;

use clap::Subcommand;

pub(crate) use which::ToolError;

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
    /// List the recipes that come with the program, or print one
    Recipes(plan::RecipesArgs),
}

pub(crate) fn run(app: &App, command: ToolCommand) -> Result<ExitCode, CliError> {
    match command {
        ToolCommand::Plan(args) => plan::plan(app, &args),
        ToolCommand::PlanShow(args) => plan::show(app, &args),
        ToolCommand::PlanDiff(args) => plan::diff(app, &args),
        ToolCommand::Recipes(args) => plan::recipes(app, &args),
    }
}
