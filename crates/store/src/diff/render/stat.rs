//! One line per change with the number of lines and a bar, and the sum.

use std::io::{self, Write};

use super::name::quote;
use super::{Colour, Paint};
use crate::diff::{Change, ChangeKind, Diff, EntryType, Flag, Side};

/// The widest a bar gets.
const BAR: u64 = 40;
/// The widest a name gets; its beginning is cut.
const NAME: usize = 60;

/// Writes the list.
pub fn stat(out: &mut dyn Write, diff: &Diff, colour: Colour) -> io::Result<()> {
    let names: Vec<String> = diff.changes.iter().map(shown).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let most = diff.changes.iter().map(|change| change.added_lines + change.removed_lines).max().unwrap_or(0);
    for (change, name) in diff.changes.iter().zip(&names) {
        let pad = width - name.chars().count();
        write!(out, " {name}{} | ", " ".repeat(pad))?;
        writeln!(out, "{}", what(change).unwrap_or_else(|| bar(change, most, colour)))?;
    }
    let sum = |lines: fn(&Change) -> u64| diff.changes.iter().map(lines).sum::<u64>();
    let (added, removed) = (sum(|change| change.added_lines), sum(|change| change.removed_lines));
    writeln!(out, " {} changed, {added} lines added, {removed} removed", diff.changes.len())?;
    if diff.truncated {
        colour.line(out, Paint::Note, "# not everything could be listed or counted")?;
    }
    Ok(())
}

fn shown(change: &Change) -> String {
    let path = quote("", change.path.as_bytes());
    let whole = match &change.old_path {
        Some(old) => format!("{} => {path}", quote("", old.as_bytes())),
        None => path,
    };
    let count = whole.chars().count();
    if count <= NAME {
        whole
    } else {
        format!("…{}", whole.chars().skip(count - NAME + 1).collect::<String>())
    }
}

/// What is said instead of a bar.
fn what(change: &Change) -> Option<String> {
    let size = |side: &Option<Side>| side.as_ref().map_or(0, |side| side.size);
    let mode = |side: &Option<Side>| side.as_ref().map_or(0, |side| side.mode);
    let (old, new) = (size(&change.old), size(&change.new));
    if change.flags.contains(&Flag::Missing) {
        return Some("content is not stored".into());
    }
    if change.binary {
        return Some(format!("binary, {old} -> {new} bytes"));
    }
    if change.flags.contains(&Flag::TooLarge) || change.flags.contains(&Flag::OutOfTime) {
        return Some(format!("not counted, {old} -> {new} bytes"));
    }
    match (change.kind, change.entry()) {
        (ChangeKind::ModeChanged, _) if mode(&change.old) != mode(&change.new) => {
            Some(format!("mode {:04o} -> {:04o}", mode(&change.old), mode(&change.new)))
        }
        (ChangeKind::ModeChanged, _) => Some("attributes".into()),
        (ChangeKind::Added, EntryType::Directory) => Some("directory added".into()),
        (ChangeKind::Removed, EntryType::Directory) => Some("directory removed".into()),
        (_, EntryType::Repository) => Some("repository".into()),
        _ => None,
    }
}

fn bar(change: &Change, most: u64, colour: Colour) -> String {
    let total = change.added_lines + change.removed_lines;
    // Whatever changed has at least one sign.
    let length = |lines: u64| if most <= BAR { lines } else { (lines * BAR).div_ceil(most) };
    let part = |lines: u64, sign: &str, paint| {
        let count = usize::try_from(length(lines)).unwrap_or_default();
        if count == 0 {
            String::new()
        } else {
            format!("{}{}{}", colour.start(paint), sign.repeat(count), colour.end())
        }
    };
    let (added, removed) =
        (part(change.added_lines, "+", Paint::Added), part(change.removed_lines, "-", Paint::Removed));
    format!("{total} {added}{removed}").trim_end().to_owned()
}
