//! `sandtable diff`: what differs between two states.

use std::io::{BufWriter, Write as _};
use std::process::ExitCode;

use clap::Args;
use sandtable_app::target::{newest, sandbox};
use sandtable_sandbox::board::diff::{Diff, Record, render};
use sandtable_sandbox::board::{Found, Store, left_out};
use sandtable_sandbox::model::id::SandboxName;

use super::target::{ends as ends_of, state};
use crate::app::App;
use crate::error::CliError;
use crate::ui::Ui;
use crate::ui::style::Colour;

/// What `diff` takes.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// A sandbox or a snapshot. A sandbox alone is compared with what it stands on, a snapshot alone with the one it
    /// was made from; nothing means the newest sandbox of the source around the current directory
    #[arg(value_name = "A")]
    from: Option<String>,
    /// What to compare it with
    #[arg(value_name = "B")]
    to: Option<String>,
    #[command(flatten)]
    form: FormArgs,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
    /// End with 1 if there is a difference
    #[arg(long)]
    exit_code: bool,
}

/// What is shown of each path, instead of every changed line.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct FormArgs {
    /// A line per path, with how much changed
    #[arg(long)]
    stat: bool,
    /// A letter and a path per line
    #[arg(long)]
    name_status: bool,
}

pub(crate) fn run(app: &App, args: &DiffArgs) -> Result<ExitCode, CliError> {
    let (from, to) = ends(app, args)?;
    if from.store.dir() != to.store.dir() {
        return Err(CliError::TwoSources);
    }
    let left = left_out(&to)?;
    let found = app.board()?.diff_snapshots(&from, &to)?.beside(&left);
    if args.json {
        let (old, new) = (from.snapshot.id.to_string(), to.snapshot.id.to_string());
        app.ui.json(&Record::new(&old, &new, &found).without(&left.skipped))?;
    } else {
        show(app, args, &to.store, &found)?;
        super::left_out::warn(app, &left);
    }
    let differs = args.exit_code && !found.changes.is_empty();
    Ok(ExitCode::from(u8::from(differs)))
}

fn ends(app: &App, args: &DiffArgs) -> Result<(Found, Found), CliError> {
    match (&args.from, &args.to) {
        (Some(from), Some(to)) => Ok((state(app, from)?, state(app, to)?)),
        (Some(word), None) => {
            if let Some(name) = sandbox(&app.caller, word)? {
                return of_sandbox(app, &name);
            }
            let found = state(app, word)?;
            let before = app.board()?.before(&found)?;
            Ok((before, found))
        }
        (None, _) => of_sandbox(app, &newest(&app.caller)?),
    }
}

fn of_sandbox(app: &App, name: &SandboxName) -> Result<(Found, Found), CliError> {
    let ends = ends_of(app, name)?;
    let store = app.board()?.same(&ends.store)?;
    let base = Found { store, snapshot: ends.base.clone(), left_out: None };
    Ok((base, ends.into_newest()))
}

fn show(app: &App, args: &DiffArgs, store: &Store, found: &Diff) -> Result<(), CliError> {
    let colour = match Ui::answer_colour(app.environment()) {
        Colour::Ansi => render::Colour::Ansi,
        Colour::Never => render::Colour::Plain,
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    if args.form.stat {
        render::stat(&mut out, found, colour).map_err(CliError::Answer)?;
    } else if args.form.name_status {
        render::name_status(&mut out, found, colour).map_err(CliError::Answer)?;
    } else {
        let options = render::RenderOptions { colour, ..render::RenderOptions::default() };
        let done = render::unified(&mut out, store.objects(), found, &options).map_err(CliError::Render)?;
        if done.truncated || found.truncated {
            app.ui.warning("diff-cut-off", "there is more than is shown");
        }
    }
    out.flush().map_err(CliError::Answer)
}
