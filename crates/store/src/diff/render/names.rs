//! One line per change: a letter and the name.

use std::io::{self, Write};

use super::name::quote;
use super::{Colour, Paint};
use crate::diff::{Change, ChangeKind, Diff};

/// Writes `A path`, `D path`, `M path`, `P path` (mode or attributes), `T path` and `R087 old new`, with tabs between.
pub fn name_status(out: &mut dyn Write, diff: &Diff, colour: Colour) -> io::Result<()> {
    for change in &diff.changes {
        let paint = match change.kind {
            ChangeKind::Added => Paint::Added,
            ChangeKind::Removed => Paint::Removed,
            _ => Paint::Place,
        };
        colour.line(out, paint, &line(change))?;
    }
    if diff.truncated {
        colour.line(out, Paint::Note, "# not everything could be listed or counted")?;
    }
    Ok(())
}

fn line(change: &Change) -> String {
    let path = quote("", change.path.as_bytes());
    let letter = change.kind.letter();
    if change.kind != ChangeKind::Renamed {
        return format!("{letter}\t{path}");
    }
    let old = change.old_path.as_ref().unwrap_or(&change.path);
    format!("{letter}{:03}\t{}\t{path}", change.likeness.unwrap_or(100), quote("", old.as_bytes()))
}
