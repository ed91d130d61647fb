//! `sandtable store`: how much is recorded, whether it is sound, and letting go of what nobody needs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use sandtable_app::collect;
use sandtable_sandbox::board::fsck::{self, Depth};
use sandtable_sandbox::board::{self, Store};
use sandtable_sandbox::session::{self, LayerSize};
use serde::Serialize;

use super::SCHEMA;
use super::merge::ask;
use crate::app::App;
use crate::error::CliError;
use crate::exit::Own;
use crate::ui::progress::{ProgressLine, amount};
use crate::ui::summary;

/// What `store` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Show how much is recorded and what it takes on disk
    Status(WhichArgs),
    /// Check rows, names, indexes, and that everything is there; with --deep every byte
    Fsck(FsckArgs),
    /// Remove what no snapshot needs any more, and make the rest small
    Gc(GcArgs),
    /// Remove every recorded state of a source that has no sandbox, to take out what should not have been recorded
    Forget(ForgetArgs),
    /// Print the bare git directory that stock git can read
    Path(WhichArgs),
}

/// Which store.
#[derive(Debug, Args)]
pub(crate) struct WhichArgs {
    /// The source around DIR instead of around the current directory
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `store fsck` takes.
#[derive(Debug, Args)]
pub(crate) struct FsckArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// Every byte of every object as well
    #[arg(long)]
    deep: bool,
}

/// What `store gc` takes.
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

/// What `store forget` takes.
#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Remove it without asking
    #[arg(short, long)]
    yes: bool,
}

#[derive(Serialize)]
struct Status {
    schema: u32,
    source: String,
    path: String,
    snapshots: usize,
    operations: usize,
    packs: usize,
    bytes: u64,
    quota: Option<u64>,
}

#[derive(Serialize)]
struct Checked {
    schema: u32,
    snapshots: usize,
    operations: usize,
    packs: usize,
    objects: usize,
    faults: Vec<String>,
}

#[derive(Serialize)]
struct Collected {
    schema: u32,
    snapshots: Vec<board::ObjectId>,
    packs: usize,
    bytes: u64,
    /// Packs that become one compact pack.
    compacted: usize,
    /// How much less that takes; not known before.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<u64>,
    deferred: bool,
}

pub(crate) fn run(app: &App, command: StoreCommand) -> Result<ExitCode, CliError> {
    match command {
        StoreCommand::Status(args) => status(app, args),
        StoreCommand::Fsck(args) => check(app, args),
        StoreCommand::Gc(args) => collect(app, args),
        StoreCommand::Forget(args) => forget(app, args),
        StoreCommand::Path(args) => {
            let store = store(app, args.directory)?;
            app.ui.answer(&format!("{}\n", store.git_dir().display()))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn store(app: &App, directory: Option<PathBuf>) -> Result<Store, CliError> {
    let source = app.caller.source(directory)?;
    Ok(app.board()?.of_source(&source)?.ok_or(board::BoardError::NoStates(source))?)
}

fn status(app: &App, args: WhichArgs) -> Result<ExitCode, CliError> {
    let store = store(app, args.directory)?;
    let room = store.room().map_err(board::BoardError::from)?;
    let meta = store.meta();
    let status = Status {
        schema: SCHEMA,
        source: store.source().to_string_lossy().into_owned(),
        path: store.dir().to_string_lossy().into_owned(),
        snapshots: meta.snapshots().map_err(board::BoardError::from)?.len(),
        operations: meta.operations(&board::Filter::default()).map_err(board::BoardError::from)?.len(),
        packs: meta.packs().map_err(board::BoardError::from)?.len(),
        bytes: store.on_disk(),
        quota: room.quota,
    };
    if args.json {
        app.ui.json(&status)?;
    } else {
        let Status { snapshots, operations, packs, bytes, .. } = &status;
        let source = crate::ui::escape::name(&status.source);
        let text = format!(
            "{source}: {snapshots} snapshots, {operations} operations, {packs} packs, {} on disk\n",
            summary::size(LayerSize { bytes: *bytes, complete: true })
        );
        app.ui.answer(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn check(app: &App, args: FsckArgs) -> Result<ExitCode, CliError> {
    let store = store(app, args.which.directory)?;
    let depth = if args.deep { Depth::Deep } else { Depth::Fast };
    let report = fsck::fsck(&store, depth).map_err(board::BoardError::from)?;
    let faults: Vec<String> =
        report.faults.iter().map(|fault| crate::ui::escape::line(&fault.to_string())).collect();
    let sound = faults.is_empty();
    let (snapshots, operations, packs, objects) =
        (report.snapshots, report.operations, report.packs, report.objects);
    if args.which.json {
        app.ui.json(&Checked { schema: SCHEMA, snapshots, operations, packs, objects, faults })?;
    } else {
        let counted =
            format!("{snapshots} snapshots, {operations} operations, {packs} packs, {objects} objects");
        let verdict = match (sound, depth) {
            (true, Depth::Deep) => "all is as it was written".to_owned(),
            (true, Depth::Fast) => {
                "everything is there; what is in the files was not read, `--deep` does that".to_owned()
            }
            (false, _) => faults.join("\n"),
        };
        app.ui.answer(&format!("{counted}: {verdict}\n"))?;
        if !sound {
            let store = crate::ui::escape::name(&store.dir().to_string_lossy());
            app.ui.say(&format!(
                "to begin anew, set the store aside: mv {store} {store}.damaged; sandboxes keep their work"
            ));
        }
    }
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::from(Own::Failed) })
}

fn collect(app: &App, args: GcArgs) -> Result<ExitCode, CliError> {
    let store = store(app, args.which.directory)?;
    let collected = if args.dry_run { would_collect(&store)? } else { collected(app, &store)? };
    show(app, &collected, Form { json: args.which.json })
}

/// How an answer is written.
#[derive(Clone, Copy)]
struct Form {
    json: bool,
}

fn show(app: &App, collected: &Collected, form: Form) -> Result<ExitCode, CliError> {
    if form.json {
        app.ui.json(collected)?;
    } else {
        app.ui.answer(&collected.text())?;
        if collected.deferred {
            app.ui.warning(
                "deferred",
                "others were writing all the time, so nothing was removed; try again later",
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes all that was recorded of a source. A sandbox stands on recorded states, so there must be none.
fn forget(app: &App, args: ForgetArgs) -> Result<ExitCode, CliError> {
    let store = store(app, args.which.directory)?;
    let listing = session::list(&app.sandboxes()?)?;
    let needs = |entry: &session::ListedSandbox| entry.source.as_path() == store.source();
    let names: Vec<String> =
        listing.entries.iter().filter(|entry| needs(entry)).map(|entry| entry.name.to_string()).collect();
    if !names.is_empty() {
        return Err(CliError::StatesNeeded { root: store.source().to_owned(), names });
    }
    let snapshots = store.meta().snapshots().map_err(board::BoardError::from)?;
    let gone = if args.dry_run {
        let room = store.room().map_err(board::BoardError::from)?;
        let packs = store.meta().packs().map_err(board::BoardError::from)?.len();
        let snapshots = snapshots.into_iter().map(|snapshot| snapshot.id).collect();
        Collected {
            schema: SCHEMA,
            snapshots,
            packs,
            bytes: room.used,
            compacted: 0,
            saved: None,
            deferred: false,
        }
    } else {
        let source = crate::ui::escape::name(&store.source().to_string_lossy());
        let question = format!("remove all {} recorded states of {source}?", snapshots.len());
        if !args.yes && !confirmed(app, &question)? {
            app.ui.say("nothing was removed");
            return Ok(ExitCode::from(Own::Failed));
        }
        app.board()?.forget(&store)?;
        collected(app, &store)?
    };
    show(app, &gone, Form { json: args.which.json })
}

/// Whether somebody at a terminal agrees.
fn confirmed(app: &App, question: &str) -> Result<bool, CliError> {
    if !ask::is_possible() {
        return Err(CliError::NotConfirmed);
    }
    Ok(ask::letter(app, question, &[('y', "es"), ('n', "o")]) == 'y')
}

fn would_collect(store: &Store) -> Result<Collected, board::BoardError> {
    let collect::Collectable { removed, compacted } = collect::collectable(store)?;
    Ok(Collected {
        schema: SCHEMA,
        snapshots: removed.snapshots,
        packs: removed.drop.len(),
        bytes: removed.drop.iter().map(|pack| pack.bytes).sum(),
        compacted,
        saved: None,
        deferred: false,
    })
}

fn collected(app: &App, store: &Store) -> Result<Collected, board::BoardError> {
    let line = ProgressLine::new(app.ui);
    let packing = |objects, bytes| line.show(|| format!("packing: {}", amount(objects, "objects", bytes)));
    let done = collect::collect(store, &packing);
    line.clear();
    let collect::Collected { removed, compacted } = done?;
    Ok(Collected {
        schema: SCHEMA,
        snapshots: removed.snapshots,
        packs: removed.packs_removed,
        bytes: removed.bytes_freed,
        compacted: compacted.packs,
        saved: Some(compacted.before.saturating_sub(compacted.after)),
        deferred: removed.deferred || compacted.deferred,
    })
}

impl Collected {
    fn text(&self) -> String {
        let size = |bytes| summary::size(LayerSize { bytes, complete: true });
        let verb = if self.saved.is_some() { "are gone" } else { "would go" };
        let snapshots = self.snapshots.len();
        let gone = format!("{snapshots} snapshots and {} packs {verb}: {}\n", self.packs, size(self.bytes));
        let compacted = match (self.compacted, self.saved) {
            (0, _) => String::new(),
            (packs, Some(saved)) => format!("{packs} packs were made compact: {} less\n", size(saved)),
            (packs, None) => format!("{packs} packs would be made compact\n"),
        };
        gone + &compacted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_have_the_shape_their_schema_promises() {
        let (source, path) = ("/r".to_owned(), "/s".to_owned());
        let status = Status {
            schema: SCHEMA,
            source,
            path,
            snapshots: 2,
            operations: 3,
            packs: 1,
            bytes: 4096,
            quota: None,
        };
        sandtable_testkit::schema::check("store.json", &status);
        let faults = vec!["ref `x` is missing".to_owned()];
        let checked = Checked { schema: SCHEMA, snapshots: 2, operations: 3, packs: 1, objects: 9, faults };
        sandtable_testkit::schema::check("store.json", &checked);
        let gone = vec!["4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().expect("an id")];
        let mut collected = Collected {
            schema: SCHEMA,
            snapshots: gone,
            packs: 1,
            bytes: 10,
            compacted: 3,
            saved: Some(2_000_000),
            deferred: false,
        };
        sandtable_testkit::schema::check("store.json", &collected);
        assert_eq!(
            collected.text(),
            "1 snapshots and 1 packs are gone: 10 B\n3 packs were made compact: 1954 KiB less\n"
        );
        collected.saved = None;
        sandtable_testkit::schema::check("store.json", &collected);
        assert_eq!(
            collected.text(),
            "1 snapshots and 1 packs would go: 10 B\n3 packs would be made compact\n"
        );
    }
}
