//! Plans: made, shown, compared. Nothing is fetched and nothing is run.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sandtable_sandbox::model::tool::ToolName;
use sandtable_tools::builtin;
use sandtable_tools::plan::diff::{self, Change};
use sandtable_tools::plan::{PlanDigest, ToolVersion};
use serde::Serialize;

use super::which::{WhichArgs, plan_file};
use crate::app::App;
use crate::commands::SCHEMA;
use crate::error::CliError;
use crate::exit::Own;
use crate::ui::{table, tool};

/// What `tool plan` takes.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// The plan itself, to be kept and used with `--plan`
    #[arg(long)]
    json: bool,
}

/// What `tool plan-show` takes.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The file; `-` reads standard input
    file: PathBuf,
    /// The plan as it is understood, as JSON
    #[arg(long)]
    json: bool,
}

/// What `tool plan-diff` takes.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The plan that was
    old: PathBuf,
    /// The plan that is
    new: PathBuf,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
    /// End with 1 if they differ
    #[arg(long)]
    exit_code: bool,
}

/// What `tool recipes` takes.
#[derive(Debug, Args)]
pub(crate) struct RecipesArgs {
    /// Print the recipe of this tool
    name: Option<ToolName>,
    /// Answer as JSON
    #[arg(long, conflicts_with = "name")]
    json: bool,
}

#[derive(Serialize)]
struct Differing {
    schema: u32,
    old: PlanDigest,
    new: PlanDigest,
    changes: Vec<Change>,
}

#[derive(Serialize)]
struct Recipes {
    schema: u32,
    recipes: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: ToolName,
    version: ToolVersion,
    description: String,
}

pub(super) fn plan(app: &App, args: &PlanArgs) -> Result<ExitCode, CliError> {
    let plan = args.which.plan()?;
    app.ui.answer(&if args.json { plan.to_json() } else { tool::plan(&plan) })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show(app: &App, args: &ShowArgs) -> Result<ExitCode, CliError> {
    let plan = plan_file(&args.file)?;
    app.ui.answer(&if args.json { plan.to_json() } else { tool::plan(&plan) })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn diff(app: &App, args: &DiffArgs) -> Result<ExitCode, CliError> {
    let (old, new) = (plan_file(&args.old)?, plan_file(&args.new)?);
    let changes = diff::diff(&old, &new);
    let differ = !changes.is_empty();
    if args.json {
        app.ui.json(&Differing { schema: SCHEMA, old: old.digest(), new: new.digest(), changes })?;
    } else {
        app.ui.answer(&tool::changes(&changes))?;
    }
    Ok(if differ && args.exit_code { ExitCode::from(Own::Failed) } else { ExitCode::SUCCESS })
}

pub(super) fn recipes(app: &App, args: &RecipesArgs) -> Result<ExitCode, CliError> {
    if let Some(name) = &args.name {
        let text = builtin::texts().find(|(other, _)| *other == name.as_str());
        let Some((_, text)) = text else {
            let text = format!("no recipe comes with the program for `{name}`");
            return Err(CliError::Usage {
                text,
                hint: Some("`sandtable tool recipes` lists them".to_owned()),
            });
        };
        app.ui.answer(text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let entry = |recipe: &sandtable_tools::recipe::Recipe| Entry {
        name: recipe.name.clone(),
        version: recipe.version.clone(),
        description: recipe.description.clone(),
    };
    let recipes: Vec<Entry> = builtin::recipes().iter().map(entry).collect();
    if args.json {
        app.ui.json(&Recipes { schema: SCHEMA, recipes })?;
    } else {
        let row =
            |entry: &Entry| [entry.name.to_string(), entry.version.to_string(), entry.description.clone()];
        app.ui.answer(&table::aligned(&recipes.iter().map(row).collect::<Vec<_>>()))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use sandtable_tools::plan::Libc;

    use super::*;
    use sandtable_app::workshop::builtin_plan;

    #[test]
    fn the_answers_have_the_shape_their_schema_promises() {
        let plan = builtin_plan(&"node".parse().expect("a tool"), Libc::Glibc).expect("a plan");
        sandtable_testkit::schema::check("tool-plan.json", &plan);
        let mut other = plan.clone();
        other.version = "1".parse().expect("a version");
        let changes = diff::diff(&plan, &other);
        assert_eq!(changes.len(), 1);
        let (old, new) = (plan.digest(), other.digest());
        sandtable_testkit::schema::check(
            "tool-plan-diff.json",
            &Differing { schema: SCHEMA, old, new, changes },
        );
        let (name, version) = ("a".parse().expect("a name"), "1".parse().expect("a version"));
        let recipes = vec![Entry { name, version, description: "x".to_owned() }];
        sandtable_testkit::schema::check("tool-recipes.json", &Recipes { schema: SCHEMA, recipes });
    }
    #[test]
    fn every_recipe_of_ours_has_the_shape_that_is_promised() {
        for (name, text) in builtin::texts() {
            let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
            sandtable_testkit::schema::check("tool-recipe.json", &table);
        }
    }
}
