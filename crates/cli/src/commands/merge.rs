//! `sandtable merge`, `apply` and `export`: bring what a sandbox did to where it belongs.

pub(super) mod ask;
mod choose;
mod held;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sandtable_app::back;
use sandtable_merge::outcome::{MergeOutcome, Note};
use sandtable_merge::{
    Approvals, BaseHead, Binding, Come, CommitText, Effect, History, Identity, MergeRequest, Mode, Outcome,
    Planned, RelPath, Way, beyond_git, is_name, merge_watched, policy_name,
};
use sandtable_sandbox::board::{self, LeftOut, Snapshot, Store, diff};
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::repository::mixed_since;
use sandtable_sandbox::session;

use super::target::{ends, sandbox, state};
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

/// Whether commits made inside come along.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    Nothing,
    History,
}

fn run(app: &App, args: &WorkArgs, mode: Mode, along: Along) -> Result<ExitCode, CliError> {
    let work = work(app, args.work.as_deref())?;
    let mut request = request(args, &work, mode)?;
    app.caller.whole(request.target.as_path())?;
    request.log = Some(back::log(&work.store, &request.target));
    // Nobody should have to guess what is brought where.
    let elsewhere = || app.caller.source(None).map_or(true, |here| here != request.target.as_path());
    if !args.json && (args.work.is_none() || elsewhere()) {
        app.ui.say(&format!("{} → {}", work.title, crate::ui::escape::name(&request.target.to_string())));
    }
    let come = match (along, &request.mode) {
        (Along::History, _) => Some(Come::Commits),
        // What a submodule is at is the affair of a commit.
        (Along::Nothing, Mode::Merge | Mode::Branch(_) | Mode::Bundle { .. }) => Some(Come::Submodules),
        (Along::Nothing, Mode::Apply | Mode::Patch(_)) => None,
    };
    if let Some(come) = come {
        request.history = Some(History {
            come,
            layer: work.store.state(&work.newest.id).map_err(board::Error::from)?.layer,
            head: work.head.clone().unwrap_or_default(),
            mixed: mixed_since(&work.store, &work.base.id),
        });
    }
    let means = app.caller.means()?;
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
    let mut outcome = loop {
        let mut shown = |planned: &Planned<'_>| {
            if !args.json {
                app.ui.answer(&view::plan(planned, Ui::answer_colour(app.environment()))).unwrap_or_default();
            }
        };
        let outcome = merge_watched(&means, &request, &mut shown)?;
        match &outcome.outcome {
            Outcome::Held { held } if asks => {
                if held::approve(app, &work, held, &mut request)? == ask::Answer::Quit {
                    break outcome;
                }
            }
            _ => break outcome,
        }
    };
    outcome.recovered = outcome.recovered.or_else(|| app.caller.recovered(&request.target));
    let missing = board::told_left_out(work.left_out.count, &work.left_out.skipped);
    outcome.notes.extend(missing.map(|text| Note { code: "left-out", text }));
    told(app, args, &outcome)
}

fn request(args: &WorkArgs, work: &Work, mode: Mode) -> Result<MergeRequest, CliError> {
    let target = match &args.into {
        Some(directory) => real(directory)?,
        None => work.store.source().to_owned(),
    };
    let whose = |words: &Option<String>| words.as_deref().map(identity).transpose();
    if args.approve.iter().any(|word| word == ALL) && work.has(ALL)? {
        return Err(CliError::AllIsAFile);
    }
    let (approvals, binding) = approvals(&args.approve, work.name.clone())?;
    Ok(MergeRequest {
        target: host(target)?,
        store: host(work.store.git_dir())?,
        base: work.base.id,
        snapshot: work.newest.id,
        base_head: work.head.as_ref().and_then(|head| head.commit),
        mode,
        effect: if args.dry_run { Effect::Plan } else { Effect::Deliver },
        only: paths(&args.only)?,
        exclude: paths(&args.exclude)?,
        hunks: BTreeMap::new(),
        history: None,
        way: Way::There,
        approvals,
        binding,
        drifted: work.drifted.clone(),
        commit: CommitText {
            message: args.message.clone().unwrap_or_else(|| work.title.clone()),
            author: whose(&args.author)?,
            committer: whose(&args.committer)?,
            trailers: work.trailers.clone(),
        },
        log: None,
        beyond_git: beyond_git(&work.store, &work.base.id, &work.newest.id)?,
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
        None => ExitCode::from(Own::Failed),
    })
}

/// The word that approves everything that is held.
const ALL: &str = "all";

/// From which state to which, and what moved in the source meanwhile.
struct Work {
    /// What it is called, for what is remembered of it.
    name: String,
    store: Store,
    base: Snapshot,
    newest: Snapshot,
    head: Option<BaseHead>,
    drifted: BTreeSet<RelPath>,
    /// What of it no state holds.
    left_out: LeftOut,
    title: String,
    trailers: Vec<(String, String)>,
}

impl Work {
    /// Whether there is something of this name at the top, before or after.
    fn has(&self, name: &str) -> Result<bool, CliError> {
        let path = path(name)?;
        for snapshot in [&self.base, &self.newest] {
            let state = self.store.state(&snapshot.id).map_err(board::Error::from)?;
            if state.lookup(self.store.objects(), &path).map_err(board::Error::from)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What was done, between the two states.
    fn changes(&self, options: &diff::Options) -> Result<diff::Diff, CliError> {
        let state = |snapshot: &Snapshot| self.store.state(&snapshot.id).map_err(board::Error::from);
        let found = diff::diff(self.store.objects(), &state(&self.base)?, &state(&self.newest)?, options);
        Ok(found.map_err(board::Error::from)?)
    }
}

fn work(app: &App, word: Option<&str>) -> Result<Work, CliError> {
    let name = match word {
        Some(word) => sandbox(app, word)?,
        None => Some(super::diff::newest(app)?),
    };
    let Some(name) = name else {
        let found = state(app, word.unwrap_or_default())?;
        let base = app.board()?.base(&found)?.snapshot;
        let left_out = board::left_out(&found)?;
        let title = format!("Work of snapshot {}", found.snapshot.id.short(12));
        let (store, newest, drifted) = (found.store, found.snapshot, BTreeSet::new());
        let name = newest.id.to_string();
        let trailers = Vec::new();
        return Ok(Work { name, store, base, newest, head: None, drifted, left_out, title, trailers });
    };
    let sandboxes = app.sandboxes()?;
    let ends = ends(app, &name)?;
    let (base, head, moved) = (ends.base.clone(), ends.head.clone(), ends.moved.clone());
    let found = ends.into_newest();
    let left_out = board::left_out(&found)?;
    let (store, newest) = (found.store, found.snapshot);
    let inspected = session::inspect(&sandboxes, &name)?;
    let drift = inspected.outcome.into_iter().flat_map(|outcome| outcome.drift).chain(moved);
    // A name that had to be escaped is compared by its content alone.
    let drifted = drift.filter_map(|entry| RelPath::new(entry.path.into_bytes()).ok()).collect();
    let policy = policy_name(&serde_json::to_vec(&inspected.record.resolved).map_err(CliError::Json)?);
    let trailers =
        vec![("Sandtable-Sandbox".to_owned(), name.to_string()), ("Sandtable-Policy".to_owned(), policy)];
    let title = format!("Work of sandbox {name}");
    // Another sandbox of the same name, made later, is other work.
    let name = inspected.record.sandbox;
    Ok(Work { name, store, base, newest, head, drifted, left_out, title, trailers })
}

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
fn approvals(words: &[String], work: String) -> Result<(Approvals, Binding), CliError> {
    let mut binding = Binding { work: Some(work), ..Binding::default() };
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
