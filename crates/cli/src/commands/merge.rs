//! `sandtable merge`, `apply` and `export`: bring what a sandbox did to where it belongs.

pub(super) mod ask;
mod choose;
mod held;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sandtable_app::work::{Along, Bring, Work};
use sandtable_merge::outcome::MergeOutcome;
use sandtable_merge::{
    Approvals, Binding, Effect, Identity, Mode, Outcome, Planned, Reason, RelPath, is_name,
};
use sandtable_sandbox::model::path::HostPath;

use crate::app::{App, real};
use crate::error::CliError;
use crate::exit::{Own, after_signal};
use crate::ui::{Ui, merge as view};

/// What to bring over, and what of it.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct WorkArgs {
    /// A sandbox, or a snapshot; nothing means the newest sandbox of the source around the current directory
    #[arg(value_name = "SANDBOX|SNAPSHOT")]
    work: Option<String>,
    /// Where to, instead of the source it came from
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Only this path and what is below it; may be repeated
    #[arg(long, value_name = "PATH")]
    only: Vec<String>,
    /// Not this path nor what is below it; may be repeated
    #[arg(long, value_name = "PATH")]
    exclude: Vec<String>,
    /// Let this held path pass, or `all` of them, as last shown; with `@ID` exactly that content, or that plan for `all`; may
    /// be repeated. A file that is called `all` is `./all`
    #[arg(long, value_name = "PATH[@ID]")]
    approve: Vec<String>,
    /// Choose file by file and hunk by hunk, on the terminal
    #[arg(long)]
    choose: bool,
    /// What the commit says
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Who did the work, as `Name <address>`
    #[arg(long, value_name = "WHO")]
    author: Option<String>,
    /// Who brings it over, as `Name <address>`; you, if your git configuration says who you are
    #[arg(long, value_name = "WHO")]
    committer: Option<String>,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `merge` takes besides.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    work: WorkArgs,
    /// Bring the commits made inside along, below the commit of the merge
    #[arg(long, conflicts_with_all = ["only", "exclude", "choose"])]
    history: bool,
}

/// What `export` takes besides.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    work: WorkArgs,
    /// Bring the commits made inside along, below the commit of the export
    #[arg(long, conflicts_with_all = ["only", "exclude", "choose", "patch"])]
    history: bool,
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

pub(crate) fn merge(app: &App, args: &MergeArgs) -> Result<ExitCode, CliError> {
    run(app, &args.work, Mode::Merge, if args.history { Along::History } else { Along::Nothing })
}

pub(crate) fn apply(app: &App, args: &WorkArgs) -> Result<ExitCode, CliError> {
    run(app, args, Mode::Apply, Along::Nothing)
}

pub(crate) fn export(app: &App, args: &ExportArgs) -> Result<ExitCode, CliError> {
    let FormArgs { branch, patch, bundle } = &args.form;
    let mode = match (branch, patch, bundle) {
        (Some(branch), ..) => Mode::Branch(branch.clone()),
        (_, Some(file), _) => Mode::Patch(file_path(file)?),
        (.., Some(file)) => Mode::Bundle { file: file_path(file)?, branch: "sandtable".to_owned() },
        (None, None, None) => unreachable!("one of them is required"),
    };
    run(app, &args.work, mode, if args.history { Along::History } else { Along::Nothing })
}

fn run(app: &App, args: &WorkArgs, mode: Mode, along: Along) -> Result<ExitCode, CliError> {
    let work = Work::of(&app.caller, args.work.as_deref(), &mut |warning| app.warning(&warning))?;
    let mut request = work.request(&app.caller, bring(args, &work, mode, along)?)?;
    // Nobody should have to guess what is brought where.
    let elsewhere = || app.caller.source(None).map_or(true, |here| here != request.target.as_path());
    if !args.json && (args.work.is_none() || elsewhere()) {
        app.ui.say(&format!("{} → {}", work.title, crate::ui::escape::name(&request.target.to_string())));
    }
    let asks = !args.json && !args.dry_run && ask::is_possible();
    if args.choose {
        if !ask::is_possible() {
            return Err(CliError::NoTerminal);
        }
        if choose::choose(app, &work, &mut request)? == ask::Answer::Quit {
            app.ui.say("nothing was chosen, and nothing was touched");
            return Ok(ExitCode::from(Own::Failed));
        }
    }
    let outcome = loop {
        let mut shown = |planned: &Planned<'_>| {
            if !args.json {
                app.ui.answer(&view::plan(planned, Ui::answer_colour(app.environment()))).unwrap_or_default();
            }
        };
        let outcome = work.bring(&app.caller, &request, &mut shown)?;
        match &outcome.outcome {
            Outcome::Held { held } if asks => {
                if held::approve(app, &work, held, &mut request)? == ask::Answer::Quit {
                    break outcome;
                }
            }
            _ => break outcome,
        }
    };
    told(app, args, &outcome)
}

fn bring(args: &WorkArgs, work: &Work, mode: Mode, along: Along) -> Result<Bring, CliError> {
    if args.message.as_ref().is_some_and(|message| message.trim().is_empty()) {
        return Err(CliError::NoMessage);
    }
    let whose = |words: &Option<String>| words.as_deref().map(identity).transpose();
    if args.approve.iter().any(|word| word == ALL) && work.has(&path(ALL)?)? {
        return Err(CliError::AllIsAFile);
    }
    let (approvals, binding) = approvals(&args.approve)?;
    Ok(Bring {
        into: args.into.clone(),
        effect: if args.dry_run { Effect::Plan } else { Effect::Deliver },
        along,
        only: paths(&args.only)?,
        exclude: paths(&args.exclude)?,
        approvals,
        binding,
        message: args.message.clone(),
        author: whose(&args.author)?,
        committer: whose(&args.committer)?,
        ..Bring::by(mode)
    })
}

fn told(app: &App, args: &WorkArgs, outcome: &MergeOutcome) -> Result<ExitCode, CliError> {
    if args.json {
        app.ui.json(outcome)?;
    } else {
        app.ui.answer(&view::rendered(outcome, Ui::answer_colour(app.environment())))?;
    }
    Ok(match outcome.interrupted {
        Some(signal) => after_signal(signal),
        None if outcome.success => ExitCode::SUCCESS,
        None => ExitCode::from(match &outcome.outcome {
            // A path on the command line that is none.
            Outcome::Refused { refusal } if refusal.reason == Reason::Selection => Own::Input,
            _ => Own::Failed,
        }),
    })
}

/// The word that approves everything that is held.
const ALL: &str = "all";

/// `Name <address>`.
fn identity(words: &str) -> Result<Identity, CliError> {
    let parts = words.strip_suffix('>').and_then(|rest| rest.split_once('<'));
    let parts = parts.map(|(name, email)| (name.trim(), email.trim()));
    match parts.filter(|(name, email)| !name.is_empty() && !email.is_empty()) {
        Some((name, email)) => Ok(Identity { name: name.to_owned(), email: email.to_owned() }),
        None => Err(CliError::NotAPerson { words: words.to_owned() }),
    }
}

fn paths(words: &[String]) -> Result<Vec<RelPath>, CliError> {
    words.iter().map(|word| path(word)).collect()
}

fn path(word: &str) -> Result<RelPath, CliError> {
    let trimmed = word.strip_prefix("./").unwrap_or(word).trim_end_matches('/');
    RelPath::new(trimmed).map_err(|source| CliError::TreePath { path: word.to_owned(), source })
}

/// What may pass, and what of it the words name.
fn approvals(words: &[String]) -> Result<(Approvals, Binding), CliError> {
    let mut binding = Binding::default();
    let (mut all, mut paths) = (false, BTreeSet::new());
    for word in words {
        let (name, id) = match word.rsplit_once('@') {
            Some((name, id)) if is_name(id) => (name, Some(id.to_owned())),
            _ => (word.as_str(), None),
        };
        if name == ALL {
            all = true;
            binding.plan = id.or(binding.plan);
            continue;
        }
        let path = path(name)?;
        if let Some(id) = id {
            binding.contents.entry(path.clone()).or_default().insert(id);
        }
        paths.insert(path);
    }
    let approvals = match (all, paths.is_empty()) {
        (true, _) => Approvals::All,
        (false, true) => Approvals::None,
        (false, false) => Approvals::Paths(paths),
    };
    Ok((approvals, binding))
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
