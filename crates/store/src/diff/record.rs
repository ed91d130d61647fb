//! The comparison as `sandtable diff --json` prints it; `docs/schema/diff.json` describes it.

use serde::Serialize;

use super::{Change, Diff, EntryType, Flag, Side};
use crate::id::ObjectId;
use crate::path::RelPath;
use crate::state::Skipped;

/// The version of the record.
pub const SCHEMA: u32 = 1;

/// A whole comparison. `from` and `to` are what the caller compared: ids of snapshots, or names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Record {
    pub schema: u32,
    pub from: String,
    pub to: String,
    pub changes: Vec<RecordedChange>,
    pub truncated: bool,
    /// What the second state does not hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<RecordedLeftOut>,
}

/// An entry that could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedLeftOut {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    pub why: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedChange {
    pub kind: &'static str,
    /// Text; what is not UTF-8 is replaced, and then the bytes are beside it.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// In base64, when the path is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_path_bytes: Option<String>,
    #[serde(rename = "type")]
    pub entry: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<RecordedSide>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<RecordedSide>,
    pub binary: bool,
    pub added_lines: u64,
    pub removed_lines: u64,
    pub flags: Vec<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedSide {
    /// Of the content; a directory has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ObjectId>,
    /// Kind and permission bits, six octal digits.
    pub mode: String,
    pub size: u64,
}

impl Record {
    pub fn new(from: &str, to: &str, diff: &Diff) -> Self {
        Self {
            schema: SCHEMA,
            from: from.to_owned(),
            to: to.to_owned(),
            changes: diff.changes.iter().map(recorded).collect(),
            truncated: diff.truncated,
            left_out: Vec::new(),
        }
    }

    /// With what the second state does not hold.
    #[must_use]
    pub fn without(self, skipped: &[Skipped]) -> Self {
        let told = |entry: &Skipped| {
            let (path, path_bytes) = text(&entry.path);
            RecordedLeftOut { path, path_bytes, why: entry.why.name() }
        };
        Self { left_out: skipped.iter().map(told).collect(), ..self }
    }
}

fn recorded(change: &Change) -> RecordedChange {
    let (path, path_bytes) = text(&change.path);
    let (old_path, old_path_bytes) = change.old_path.as_ref().map(text).unzip();
    RecordedChange {
        kind: change.kind.word(),
        path,
        old_path,
        path_bytes,
        old_path_bytes: old_path_bytes.flatten(),
        entry: change.entry().word(),
        old: change.old.as_ref().map(side),
        new: change.new.as_ref().map(side),
        binary: change.binary,
        added_lines: change.added_lines,
        removed_lines: change.removed_lines,
        flags: change.flags.iter().copied().map(flag).collect(),
    }
}

fn side(side: &Side) -> RecordedSide {
    let kind = match side.entry {
        EntryType::File => 0o100_000,
        EntryType::Directory => 0o040_000,
        EntryType::Symlink => 0o120_000,
        EntryType::Repository => 0o160_000,
    };
    let bits = match side.entry {
        EntryType::File | EntryType::Directory => u32::from(side.mode),
        EntryType::Symlink | EntryType::Repository => 0,
    };
    RecordedSide { id: side.id, mode: format!("{:06o}", kind | bits), size: side.size }
}

fn text(path: &RelPath) -> (String, Option<String>) {
    let bytes = str::from_utf8(path.as_bytes()).is_err().then(|| base64(path.as_bytes()));
    (path.to_text().0, bytes)
}

const fn flag(flag: Flag) -> &'static str {
    match flag {
        Flag::Mode => "mode",
        Flag::Attributes => "attributes",
        Flag::TooLarge => "too_large",
        Flag::OutOfTime => "out_of_time",
        Flag::Missing => "missing",
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let all = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = DIGITS[(all >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_others_write_it() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xfe]), "//4=");
    }
}
