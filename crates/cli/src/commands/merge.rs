//! `sandtable merge`, `apply` and `export`: bring what a sandbox did to where it belongs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sandtable_sandbox::board::Found;
use sandtable_sandbox::merge::git::FOLDERS;
use sandtable_sandbox::merge::outcome::MergeOutcome;
use sandtable_sandbox::merge::{
    Approvals, CommitText, Effect, Git, Means, MergeRequest, Mode, RelPath, merge as bring_over,
};
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::session::{self, states};

use super::target::{sandbox, state};
use crate::app::{App, real};
use crate::error::CliError;
use crate::exit::Own;
use crate::ui::merge as view;

/// What to bring over, and what of it.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// A sandbox, or a snapshot
    #[arg(value_name = "SANDBOX|SNAPSHOT")]
    work: String,
    /// Where to, instead of the source it came from
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Only this path and what is below it; may be repeated
    #[arg(long, value_name = "PATH")]
    only: Vec<String>,
    /// Not this path nor what is below it; may be repeated
    #[arg(long, value_name = "PATH")]
    exclude: Vec<String>,
    /// Let this held path pass, or `all` of them; may be repeated
    #[arg(long, value_name = "PATH")]
    approve: Vec<String>,
    /// What the commit says
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `export` takes besides.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    form: FormArgs,
}

/// How it is handed over.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct FormArgs {
    /// As a new branch of the repository; its files and index stay as they are
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// As a file that `git apply` reads
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,
    /// As a file that `git fetch` reads
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
}

pub(crate) fn merge(app: &App, args: &WorkArgs) -> Result<ExitCode, CliError> {
    run(app, args, Mode::Merge)
}

pub(crate) fn apply(app: &App, args: &WorkArgs) -> Result<ExitCode, CliError> {
    run(app, args, Mode::Apply)
}

pub(crate) fn export(app: &App, args: &ExportArgs) -> Result<ExitCode, CliError> {
    let FormArgs { branch, patch, bundle } = &args.form;
    let mode = match (branch, patch, bundle) {
        (Some(branch), ..) => Mode::Branch(branch.clone()),
        (_, Some(file), _) => Mode::Patch(file_path(file)?),
        (.., Some(file)) => Mode::Bundle { file: file_path(file)?, branch: "sandtable".to_owned() },
        (None, None, None) => unreachable!("one of them is required"),
    };
    run(app, &args.work, mode)
}

fn run(app: &App, args: &WorkArgs, mode: Mode) -> Result<ExitCode, CliError> {
    let Work { base, found, drifted } = work(app, &args.work)?;
    let target = match &args.into {
        Some(directory) => real(directory)?,
        None => found.store.source().to_owned(),
    };
    let request = MergeRequest {
        target: host(target)?,
        store: host(found.store.git_dir())?,
        base: base.snapshot.id,
        snapshot: found.snapshot.id,
        base_head: None,
        mode,
        effect: if args.dry_run { Effect::Plan } else { Effect::Deliver },
        only: paths(&args.only)?,
        exclude: paths(&args.exclude)?,
        approvals: approvals(&args.approve)?,
        drifted,
        commit: CommitText {
            message: args.message.clone().unwrap_or_else(|| format!("Work of sandbox {}", args.work)),
            ..CommitText::default()
        },
    };
    let means = Means {
        git: Git::find(FOLDERS).map_err(sandtable_sandbox::merge::Error::from)?,
        state: app.environment.data()?.join("merges"),
        home: app.environment.host()?.home,
    };
    let outcome = bring_over(&means, &request)?;
    told(app, args, &outcome)
}

fn told(app: &App, args: &WorkArgs, outcome: &MergeOutcome) -> Result<ExitCode, CliError> {
    if args.json {
        app.ui.json(outcome)?;
    } else {
        app.ui.answer(&view::rendered(outcome))?;
    }
    Ok(if outcome.success { ExitCode::SUCCESS } else { ExitCode::from(Own::Failed) })
}

/// From which state to which, and what moved in the source meanwhile.
struct Work {
    base: Found,
    found: Found,
    drifted: BTreeSet<RelPath>,
}

fn work(app: &App, word: &str) -> Result<Work, CliError> {
    let Some(name) = sandbox(app, word)? else {
        let found = state(app, word)?;
        let base = app.board()?.base(&found)?;
        return Ok(Work { base, found, drifted: BTreeSet::new() });
    };
    let sandboxes = app.sandboxes()?;
    let ends = states::ends(&sandboxes, &name)?;
    let base = Found { store: ends.store, snapshot: ends.base };
    let found = states::newest(&sandboxes, &name)?;
    let outcome = session::inspect(&sandboxes, &name)?.outcome;
    let drift = outcome.into_iter().flat_map(|outcome| outcome.drift);
    // A name that had to be escaped is compared by its content alone.
    let drifted = drift.filter_map(|entry| RelPath::new(entry.path.into_bytes()).ok()).collect();
    Ok(Work { base, found, drifted })
}

fn paths(words: &[String]) -> Result<Vec<RelPath>, CliError> {
    words.iter().map(|word| path(word)).collect()
}

fn path(word: &str) -> Result<RelPath, CliError> {
    let trimmed = word.strip_prefix("./").unwrap_or(word).trim_end_matches('/');
    RelPath::new(trimmed).map_err(|source| CliError::TreePath { path: word.to_owned(), source })
}

fn approvals(words: &[String]) -> Result<Approvals, CliError> {
    match words {
        [] => Ok(Approvals::None),
        all if all.iter().any(|word| word == "all") => Ok(Approvals::All),
        some => Ok(Approvals::Paths(some.iter().map(|word| path(word)).collect::<Result<_, _>>()?)),
    }
}

/// A file that need not exist, in a directory that must.
fn file_path(file: &Path) -> Result<HostPath, CliError> {
    let above = file.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().ok_or_else(|| CliError::NoDirectory {
        path: file.to_owned(),
        source: std::io::ErrorKind::InvalidFilename.into(),
    })?;
    host(real(above)?.join(name))
}

fn host(path: PathBuf) -> Result<HostPath, CliError> {
    HostPath::new(path).map_err(CliError::HostPath)
}
