//! Where both sides changed the same thing, as `git merge-tree` tells it.

use std::collections::BTreeMap;

use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;
use serde::Serialize;

use super::error::Error;
use super::git::{GitError, object};
use super::named::PathText;
use super::tree::{Entry, Mode, foreign, staged};

/// One conflict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    #[serde(flatten)]
    pub path: PathText,
    pub kind: ConflictKind,
    /// The other paths it is about.
    pub others: Vec<PathText>,
    pub stages: Stages,
    /// The words of git, or ours.
    pub text: String,
}

/// What is in conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKind {
    Content,
    AddAdd,
    ModifyDelete,
    RenameRename,
    RenameDelete,
    /// A renamed file meets another one.
    RenameAdd,
    /// A directory was renamed on one side and got files on the other.
    DirectoryRename,
    FileDirectory,
    Mode,
    /// A file on one side, a link or submodule on the other.
    Type,
    Binary,
    Submodule,
    /// Somebody changed the path in the source while the sandbox ran.
    SourceChangedDuringRun,
    Other,
}

/// The versions of a path: before, in the target, in the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stages {
    pub base: Option<Side>,
    pub ours: Option<Side>,
    pub theirs: Option<Side>,
}

/// A version of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    pub mode: Mode,
    pub id: ObjectId,
}

/// What a merge in memory came to.
#[derive(Clone, Debug)]
pub(super) struct Merged {
    pub(super) tree: ObjectId,
    pub(super) conflicts: Vec<Conflict>,
}

/// Reads the answer of `merge-tree --write-tree -z`.
pub(super) fn merged(answer: &[u8]) -> Result<Merged, Error> {
    let mut fields = answer.split(|byte| *byte == 0);
    let tree = object(fields.next().unwrap_or_default())?;
    let mut stages: BTreeMap<RelPath, Stages> = BTreeMap::new();
    for field in fields.by_ref().take_while(|field| !field.is_empty()) {
        let (entry, stage, path) = staged(field)?;
        let slot = stages.entry(path).or_default();
        let side = entry.map(|Entry { mode, id }| Side { mode, id });
        match stage {
            1 => slot.base = side,
            2 => slot.ours = side,
            _ => slot.theirs = side,
        }
    }
    let mut conflicts = Vec::new();
    while let Some(count) = fields.next().filter(|field| !field.is_empty()) {
        let wrong = || GitError::Answer(String::from_utf8_lossy(count).into_owned());
        let count: usize = str::from_utf8(count).ok().and_then(|n| n.parse().ok()).ok_or_else(wrong)?;
        let paths: Vec<RelPath> = fields.by_ref().take(count).map(foreign).collect::<Result<_, Error>>()?;
        let kind = String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
        let text = String::from_utf8_lossy(fields.next().unwrap_or_default()).trim().to_owned();
        conflicts.extend(conflict(&paths, &kind, text, &stages));
    }
    add_unnamed(&mut conflicts, &stages);
    Ok(Merged { tree, conflicts })
}

fn conflict(
    paths: &[RelPath],
    kind: &str,
    text: String,
    stages: &BTreeMap<RelPath, Stages>,
) -> Option<Conflict> {
    let name = kind.strip_prefix("CONFLICT")?.trim();
    let first = paths.first()?;
    let stages = stages.get(first).cloned().unwrap_or_default();
    let kind = match name.trim_matches(['(', ')']) {
        "contents" => of_contents(&stages),
        "binary" => ConflictKind::Binary,
        "modify/delete" => ConflictKind::ModifyDelete,
        "rename/rename" => ConflictKind::RenameRename,
        "rename/delete" => ConflictKind::RenameDelete,
        "rename involved in collision" => ConflictKind::RenameAdd,
        "file/directory" => ConflictKind::FileDirectory,
        "distinct modes" | "distinct types" => ConflictKind::Type,
        other if other.contains("directory rename") => ConflictKind::DirectoryRename,
        other if other.contains("submodule") => ConflictKind::Submodule,
        _ => ConflictKind::Other,
    };
    let others = paths[1..].iter().map(PathText::from).collect();
    Some(Conflict { path: first.into(), kind, others, stages, text })
}

/// Git calls several things a conflict of contents; the versions tell them apart.
fn of_contents(stages: &Stages) -> ConflictKind {
    let (ours, theirs) = (stages.ours.as_ref(), stages.theirs.as_ref());
    let modes = [&stages.base, &stages.ours, &stages.theirs].map(|side| side.as_ref().map(|side| side.mode));
    if modes.contains(&Some(Mode::Gitlink)) {
        return ConflictKind::Submodule;
    }
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours.id == theirs.id && ours.mode != theirs.mode => ConflictKind::Mode,
        _ if stages.base.is_none() => ConflictKind::AddAdd,
        _ => ConflictKind::Content,
    }
}

/// Every path with several versions is named, also one that git has no words for.
fn add_unnamed(conflicts: &mut Vec<Conflict>, stages: &BTreeMap<RelPath, Stages>) {
    for (path, stages) in stages {
        let text = PathText::from(path);
        let named = |conflict: &Conflict| conflict.path == text || conflict.others.contains(&text);
        if !conflicts.iter().any(named) {
            let kind = if stages.ours.is_some() && stages.theirs.is_some() {
                of_contents(stages)
            } else {
                ConflictKind::Other
            };
            let words = "both sides changed it".to_owned();
            conflicts.push(Conflict {
                path: text,
                kind,
                others: Vec::new(),
                stages: stages.clone(),
                text: words,
            });
        }
    }
}
