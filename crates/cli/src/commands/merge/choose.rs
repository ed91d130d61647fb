//! What of the work to take, file by file and hunk by hunk.

use std::collections::BTreeSet;

use sandtable_app::work::Work;
use sandtable_merge::{Hunks, MergeRequest};
use sandtable_sandbox::board;
use sandtable_sandbox::board::diff::{
    Change, ChangeKind, Diff, DiffOptions, EntryType, Renames, Side, render,
};

use super::ask::{Answer, letter};
use crate::app::App;
use crate::error::CliError;
use crate::ui::style::Colour;

/// What was said about one file.
enum Taken {
    Whole,
    Hunks(BTreeSet<usize>),
    Nothing,
    Quit,
}

/// Asks about every change that was not excluded already. Who takes nothing quits.
pub(super) fn choose(app: &App, work: &Work, request: &mut MergeRequest) -> Result<Answer, CliError> {
    let options = DiffOptions { renames: Renames::Ignore, ..DiffOptions::default() };
    let found = work.changes(&options)?;
    let mut any = false;
    for change in &found.changes {
        let named = |list: &[_]| list.iter().any(|path| change.path.is_within(path));
        let asked = (request.only.is_empty() || named(&request.only)) && !named(&request.exclude);
        if !asked || change.entry() == EntryType::Directory {
            continue;
        }
        match ask(app, work, change)? {
            Taken::Whole => any = true,
            Taken::Hunks(numbers) => {
                any = true;
                request.hunks.insert(change.path.clone(), numbers);
            }
            Taken::Nothing => request.exclude.push(change.path.clone()),
            Taken::Quit => return Ok(Answer::Quit),
        }
    }
    Ok(if any { Answer::GoOn } else { Answer::Quit })
}

fn ask(app: &App, work: &Work, change: &Change) -> Result<Taken, CliError> {
    let (old, new) = (content(work, change.old.as_ref())?, content(work, change.new.as_ref())?);
    let hunks = match (&old, &new) {
        (Some(old), Some(new)) if change.kind == ChangeKind::Modified => Hunks::of(old, new),
        _ => None,
    };
    match hunks {
        Some(hunks) if hunks.count() > 0 => by_hunk(app, change, &hunks),
        _ => whole(app, work, change),
    }
}

/// The bytes of a side; none where there is nothing that could be shown.
fn content(work: &Work, side: Option<&Side>) -> Result<Option<Vec<u8>>, CliError> {
    let Some(id) = side.filter(|side| side.entry == EntryType::File).and_then(|side| side.id) else {
        return Ok(None);
    };
    Ok(board::blob(&work.store, &id)?)
}

fn whole(app: &App, work: &Work, change: &Change) -> Result<Taken, CliError> {
    let one = Diff { changes: vec![change.clone()], truncated: false };
    let mut text = Vec::new();
    render::unified(&mut text, work.store.objects(), &one, &options(app)).map_err(CliError::Render)?;
    app.ui.write(&String::from_utf8_lossy(&text));
    let question = format!("take {}?", change.path.display_escaped());
    Ok(match letter(app, &question, &[('y', "es"), ('n', "o"), ('q', "uit")]) {
        'y' => Taken::Whole,
        'n' => Taken::Nothing,
        _ => Taken::Quit,
    })
}

fn by_hunk(app: &App, change: &Change, hunks: &Hunks<'_>) -> Result<Taken, CliError> {
    let (path, count) = (change.path.display_escaped(), hunks.count());
    let mut taken = BTreeSet::new();
    for number in 0..count {
        let mut text = Vec::new();
        hunks.show(number, &mut text, &options(app)).map_err(CliError::Render)?;
        app.ui.write(&format!("\n{path}\n{}", String::from_utf8_lossy(&text)));
        let question = format!("take hunk {} of {count} of {path}?", number + 1);
        let choices =
            [('y', "es"), ('n', "o"), ('a', "ll that follow"), ('d', "one with this file"), ('q', "uit")];
        match letter(app, &question, &choices) {
            'y' => drop(taken.insert(number)),
            'n' => {}
            'a' => {
                taken.extend(number..count);
                break;
            }
            'd' => break,
            _ => return Ok(Taken::Quit),
        }
    }
    Ok(match taken.len() {
        0 => Taken::Nothing,
        all if all == count => Taken::Whole,
        _ => Taken::Hunks(taken),
    })
}

fn options(app: &App) -> render::RenderOptions {
    let colour = match app.ui.colour {
        Colour::Ansi => render::Colour::Ansi,
        Colour::Never => render::Colour::Plain,
    };
    render::RenderOptions { colour, output_bytes: 256 << 10, ..render::RenderOptions::default() }
}
