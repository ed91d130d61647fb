//! The comparison as a patch, in the form git writes and reads.

use std::io::Write;
use std::time::Instant;

use super::content::{self, Shown};
use super::name::quote;
use super::{Colour, Paint, RenderError, RenderOptions, Rendered};
use crate::diff::text::{Comparison, Group, Line, is_binary};
use crate::diff::{Change, ChangeKind, Diff, EntryType, Flag, Side};
use crate::id::HashKind;
use crate::object::{Memory, ObjectKind, ReadError, ReadObjects};
use crate::path::RelPath;

/// How many digits of an id are shown.
const DIGITS: usize = 10;

/// Writes `diff` as a patch; the contents come from `objects`.
pub fn unified(
    out: &mut dyn Write,
    objects: &dyn ReadObjects,
    diff: &Diff,
    options: &RenderOptions,
) -> Result<Rendered, RenderError> {
    let out = Counted { out, written: 0 };
    let mut patch = Patch { out, objects, options, exact: !diff.truncated, truncated: false };
    for change in &diff.changes {
        if patch.is_full()? {
            break;
        }
        patch.change(change)?;
    }
    Ok(Rendered { exact: patch.exact, truncated: patch.truncated })
}

/// Writes one hunk of a patch.
pub(in crate::diff) fn hunk(
    out: &mut dyn Write,
    compared: &Comparison<'_>,
    group: &Group,
    options: &RenderOptions,
) -> Result<(), RenderError> {
    let nothing = Memory::new(HashKind::default());
    let out = Counted { out, written: 0 };
    Patch { out, objects: &nothing, options, exact: true, truncated: false }.group(compared, group)
}

struct Counted<'a> {
    out: &'a mut dyn Write,
    written: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

struct Patch<'a> {
    out: Counted<'a>,
    objects: &'a dyn ReadObjects,
    options: &'a RenderOptions,
    exact: bool,
    truncated: bool,
}

/// One part of a patch: an entry that a patch can speak of, on either side.
#[derive(Clone, Copy)]
struct Part<'a> {
    old_path: &'a RelPath,
    path: &'a RelPath,
    old: Option<&'a Side>,
    new: Option<&'a Side>,
    likeness: Option<u8>,
}

impl Patch<'_> {
    fn change(&mut self, change: &Change) -> Result<(), RenderError> {
        self.remarks(change)?;
        let (old, new) = (in_patch(change.old.as_ref()), in_patch(change.new.as_ref()));
        let old_path = change.old_path.as_ref().unwrap_or(&change.path);
        let whole = Part { old_path, path: &change.path, old, new, likeness: change.likeness };
        let parts = match change.kind {
            // Git takes the old thing away before it makes the new one.
            ChangeKind::TypeChanged => vec![Part { new: None, ..whole }, Part { old: None, ..whole }],
            _ => vec![whole],
        };
        parts.into_iter().filter(says_something).try_for_each(|part| self.part(part))
    }

    /// What a patch cannot say.
    fn remarks(&mut self, change: &Change) -> Result<(), RenderError> {
        let path = quote("", change.path.as_bytes());
        for (side, verb) in [(&change.old, "removed"), (&change.new, "added")] {
            let Some(side) = side else { continue };
            let one_sided = change.kind != ChangeKind::ModeChanged;
            let what = match side.entry {
                EntryType::Directory => "directory",
                EntryType::Repository => "repository",
                EntryType::File | EntryType::Symlink => {
                    if one_sided && git_mode(side) & 0o7777 != side.mode && side.entry == EntryType::File {
                        self.note(&format!("{path}: mode {:04o} {verb}", side.mode))?;
                    }
                    continue;
                }
            };
            if one_sided {
                self.note(&format!("{path}: {what} {verb}, mode {:04o}", side.mode))?;
            }
        }
        if let (ChangeKind::ModeChanged, Some(old), Some(new)) = (change.kind, &change.old, &change.new)
            && old.mode != new.mode
            && (git_mode(old) == git_mode(new) || !plain_mode(old) || !plain_mode(new))
        {
            self.note(&format!("{path}: mode {:04o} before, {:04o} now", old.mode, new.mode))?;
        }
        if change.flags.contains(&Flag::Attributes) {
            self.note(&format!("{path}: attributes changed"))?;
        }
        Ok(())
    }

    fn part(&mut self, part: Part<'_>) -> Result<(), RenderError> {
        for line in header(part) {
            self.options.colour.line(&mut self.out, Paint::Header, &line)?;
        }
        let id = |side: Option<&Side>| side.and_then(|side| side.id);
        if id(part.old) == id(part.new) {
            return Ok(());
        }
        if self.options.until.is_some_and(|until| Instant::now() >= until) {
            self.note(&format!("{}: not shown, the time was up", quote("", part.path.as_bytes())))?;
            return self.not_shown(part);
        }
        let (Some(old), Some(new)) = (self.read(part.old)?, self.read(part.new)?) else {
            self.note(&format!("{}: too large to show, or not stored", quote("", part.path.as_bytes())))?;
            return self.not_shown(part);
        };
        if is_binary(&old) || is_binary(&new) {
            return self.not_shown(part);
        }
        if old == new {
            return Ok(());
        }
        let (from, to) = sides(part);
        self.options.colour.line(&mut self.out, Paint::Header, &format!("--- {}", with_tab(&from)))?;
        self.options.colour.line(&mut self.out, Paint::Header, &format!("+++ {}", with_tab(&to)))?;
        let compared = Comparison::new(&old, &new);
        for group in compared.groups(self.options.context) {
            if self.is_full()? {
                break;
            }
            self.group(&compared, &group)?;
        }
        Ok(())
    }

    fn group(&mut self, compared: &Comparison<'_>, group: &Group) -> Result<(), RenderError> {
        let place = |range: &std::ops::Range<u32>| match range.len() {
            0 => format!("{},0", range.start),
            1 => format!("{}", range.start + 1),
            count => format!("{},{count}", range.start + 1),
        };
        let head = format!("@@ -{} +{} @@", place(&group.old), place(&group.new));
        self.options.colour.line(&mut self.out, Paint::Place, &head)?;
        for line in compared.lines(group) {
            if self.is_full()? {
                break;
            }
            let (sign, text, paint) = match line {
                Line::Both(text) => (" ", text, None),
                Line::Old(text) => ("-", text, Some(Paint::Removed)),
                Line::New(text) => ("+", text, Some(Paint::Added)),
            };
            let colour = if paint.is_some() { self.options.colour } else { Colour::Plain };
            let (body, ends) = match text.strip_suffix(b"\n") {
                Some(body) => (body, true),
                None => (text, false),
            };
            write!(self.out, "{}{sign}", paint.map_or("", |paint| colour.start(paint)))?;
            let most = usize::try_from(self.left()).unwrap_or(usize::MAX).min(content::LONGEST);
            let shown = content::write(&mut self.out, body, self.options.content, most)?;
            self.exact &= shown == Shown::Exactly;
            writeln!(self.out, "{}", colour.end())?;
            if let Shown::Cut(bytes) = shown {
                self.note(&format!("{bytes} more bytes of this line were left out"))?;
            }
            if !ends {
                writeln!(self.out, "\\ No newline at end of file")?;
            }
        }
        Ok(())
    }

    /// How much may still be written.
    const fn left(&self) -> u64 {
        self.options.output_bytes.saturating_sub(self.out.written)
    }

    /// Whether nothing more may be written, which is said once.
    fn is_full(&mut self) -> Result<bool, RenderError> {
        if self.left() == 0 && !self.truncated {
            self.truncated = true;
            self.note("more was left out here: the output has reached its limit")?;
        }
        Ok(self.truncated)
    }

    /// Git refuses to apply this, which is right: the content is not here.
    fn not_shown(&mut self, part: Part<'_>) -> Result<(), RenderError> {
        self.exact = false;
        let (from, to) = sides(part);
        Ok(writeln!(self.out, "Binary files {from} and {to} differ")?)
    }

    fn note(&mut self, text: &str) -> Result<(), RenderError> {
        self.exact = false;
        Ok(self.options.colour.line(&mut self.out, Paint::Note, &format!("# {text}"))?)
    }

    fn read(&self, side: Option<&Side>) -> Result<Option<Vec<u8>>, RenderError> {
        let Some((side, id)) = side.and_then(|side| Some((side, side.id?))) else {
            return Ok(Some(Vec::new()));
        };
        if side.size > self.options.file_bytes {
            return Ok(None);
        }
        match self.objects.read_kind(&id, ObjectKind::Blob) {
            Ok(data) => Ok(Some(data)),
            Err(ReadError::TooLarge { .. } | ReadError::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The side, if a patch can speak of it.
fn in_patch(side: Option<&Side>) -> Option<&Side> {
    side.filter(|side| matches!(side.entry, EntryType::File | EntryType::Symlink))
}

/// Whether a patch has anything to say about it.
fn says_something(part: &Part<'_>) -> bool {
    match (part.old, part.new) {
        (None, None) => false,
        (Some(old), Some(new)) => {
            part.likeness.is_some() || old.id != new.id || git_mode(old) != git_mode(new)
        }
        _ => true,
    }
}

/// The mode as git has it: a file is executable if its owner may execute it.
fn git_mode(side: &Side) -> u16 {
    match side.entry {
        EntryType::Symlink => 0o120_000,
        _ if side.mode & 0o100 != 0 => 0o100_755,
        _ => 0o100_644,
    }
}

fn plain_mode(side: &Side) -> bool {
    side.entry != EntryType::File || git_mode(side) & 0o7777 == side.mode
}

fn header(part: Part<'_>) -> Vec<String> {
    let name = |before: &str, path: &RelPath| quote(before, path.as_bytes());
    let mut lines = vec![format!("diff --git {} {}", name("a/", part.old_path), name("b/", part.path))];
    let mode = match (part.old, part.new) {
        (None, Some(new)) => {
            lines.push(format!("new file mode {:06o}", git_mode(new)));
            String::new()
        }
        (Some(old), None) => {
            lines.push(format!("deleted file mode {:06o}", git_mode(old)));
            String::new()
        }
        (Some(old), Some(new)) if git_mode(old) != git_mode(new) => {
            lines.push(format!("old mode {:06o}", git_mode(old)));
            lines.push(format!("new mode {:06o}", git_mode(new)));
            String::new()
        }
        (_, new) => new.map(|new| format!(" {:06o}", git_mode(new))).unwrap_or_default(),
    };
    if let Some(likeness) = part.likeness {
        lines.push(format!("similarity index {likeness}%"));
        lines.push(format!("rename from {}", name("", part.old_path)));
        lines.push(format!("rename to {}", name("", part.path)));
    }
    let id = |side: Option<&Side>| {
        side.and_then(|side| side.id).map_or_else(|| "0".repeat(DIGITS), |id| id.short(DIGITS))
    };
    let (old, new) = (id(part.old), id(part.new));
    if old != new {
        lines.push(format!("index {old}..{new}{mode}"));
    }
    lines
}

fn sides(part: Part<'_>) -> (String, String) {
    let side = |before: &str, path: &RelPath, side: Option<&Side>| match side {
        Some(_) => quote(before, path.as_bytes()),
        None => "/dev/null".to_owned(),
    };
    (side("a/", part.old_path, part.old), side("b/", part.path, part.new))
}

/// Git ends a name with a blank in it by a tab, so that it is seen where it ends.
fn with_tab(name: &str) -> String {
    if name.contains(' ') && !name.starts_with('"') { format!("{name}\t") } else { name.to_owned() }
}
