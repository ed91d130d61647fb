//! What a sandbox is and what its last command did, as stored on disk and shown by `inspect --json` and
//! `run --report`.
//!
//! Two files in the sandbox's directory: `sandbox.json`, written once when it is made, and
//! `outcome.json`, replaced after every command. Both carry a schema number; another number is refused.

use std::collections::BTreeMap;

use sandtable_protocol::report::{Control, Observed};
pub use sandtable_store::change::{ChangeKind, DriftKind, EntryType};
use sandtable_store::id::ObjectId;
use sandtable_store::object::commit;
use serde::{Deserialize, Serialize};

use super::states::Kept;

use crate::model::choice::choice;
use crate::model::id::SandboxName;
use crate::model::layer::LayerName;
use crate::model::path::HostPath;
use crate::model::resolved::{EngineName, Mode, ResolvedSpec, Warning};
use crate::model::spec::Base;
use crate::model::tool::{MadeOn, ProvidedDep, ToolName, ToolVersion};

/// The version of both files.
pub const SCHEMA: u32 = 1;

/// What was made: written once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub schema: u32,
    /// Unique for all time; a name may be used again after `rm`.
    pub sandbox: String,
    pub name: SandboxName,
    /// Seconds since 1970.
    pub created_at: u64,
    /// First id of the private range, for sandboxes of root.
    pub id_base: Option<u32>,
    /// The command it was made for, for people: bytes that are not UTF-8 are replaced.
    pub command: Vec<String>,
    pub resolved: ResolvedSpec,
}

impl Record {
    /// What the workspace stands on: the source, or the sandbox's own copy of a recorded state.
    pub(super) fn ground(&self) -> &HostPath {
        self.resolved.mounts.ground(&LayerName::Workspace).unwrap_or(&self.resolved.source.root)
    }

    /// Whether the source itself is seen inside.
    pub(super) fn sees_source(&self) -> bool {
        *self.ground() == self.resolved.source.root
    }
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub schema: u32,
    pub sandbox: String,
    pub name: SandboxName,
    pub engine: EngineName,
    pub engine_reason: String,
    pub command: Vec<String>,
    pub exit: Exit,
    /// What the workspace stands on.
    pub base: Base,
    /// How it is kept apart from the source.
    pub mode: Mode,
    /// What the layer holds against the source; `None` when nothing was captured (`--rm`).
    pub changes: Option<Changes>,
    /// Paths of the source that moved while the command ran.
    pub drift: Vec<DriftEntry>,
    /// The state that the command left, where states are recorded.
    #[serde(default)]
    pub snapshot: Option<SnapshotEntry>,
    pub enforcement: BTreeMap<Control, Observed>,
    pub mounts: crate::model::mount::MountTable,
    pub network: crate::model::spec::Network,
    #[serde(default)]
    pub limits: crate::model::limits::Limits,
    /// The tools that were asked for, with what they need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<UsedTool>,
    pub timings_ms: Timings,
    pub warnings: Vec<Warning>,
}

/// The code of the warning for an interrupted recording.
pub(super) const INTERRUPTED: &str = "interrupted";

impl Outcome {
    /// Whether the recording after the command was cancelled: its state is not recorded yet.
    pub fn was_interrupted(&self) -> bool {
        self.warnings.iter().any(|warning| warning.code == INTERRUPTED)
    }
}

/// A tool that a command had, and what it is kept under, which says how it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedTool {
    pub name: ToolName,
    pub version: ToolVersion,
    pub key: String,
    /// The image it was made on; nothing if that was no container's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_on: Option<MadeOn>,
}

impl From<&ProvidedDep> for UsedTool {
    fn from(tool: &ProvidedDep) -> Self {
        let (name, version, key) = (tool.name.clone(), tool.version.clone(), tool.key.clone());
        Self { name, version, key, made_on: tool.made_on.clone() }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// What the caller's shell sees.
    pub code: u8,
    /// The signal that ended the command, if one did.
    pub signal: Option<i32>,
    pub origin: ExitOrigin,
}

choice! {
    /// Whether the number is the command's own or Sandtable's.
    ExitOrigin { Command = "command", Sandbox = "sandbox" }
}

/// A recorded state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotEntry {
    pub id: ObjectId,
    pub tree: ObjectId,
    pub parent: Option<ObjectId>,
    pub consistency: Consistency,
    /// Whether it is the state that was recorded before: the command changed nothing.
    pub unchanged: bool,
}

impl SnapshotEntry {
    pub(super) fn new(kept: &Kept) -> Self {
        let Kept { snapshot, parent, unchanged, .. } = kept;
        let consistency = match snapshot.consistency {
            commit::Consistency::Frozen => Consistency::Frozen,
            commit::Consistency::Stable => Consistency::Stable,
            commit::Consistency::Torn => Consistency::Torn,
        };
        Self { id: snapshot.id, tree: snapshot.tree, parent: *parent, consistency, unchanged: *unchanged }
    }
}

choice! {
    /// Whether anything could write while a state was recorded, or was seen to.
    Consistency { Frozen = "frozen", Stable = "stable", Torn = "torn" }
}

/// The difference between source and layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    pub added: u64,
    pub modified: u64,
    pub removed: u64,
    pub entries: Vec<ChangeEntry>,
    /// Whether the sandbox's own git directory was changed; its files are not listed.
    pub git: GitState,
    /// What was found in the layer but not followed, with the reason.
    pub skipped: Vec<SkippedEntry>,
}

/// One changed path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeEntry {
    pub kind: ChangeKind,
    /// Relative to the source; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The exact bytes in hexadecimal, when `path` is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_hex: Option<String>,
    #[serde(rename = "type")]
    pub entry: EntryType,
    /// How many files went with a removed directory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub below: u64,
    /// Which mount it belongs to, when it is not the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

choice! {
    /// What became of the git directory inside.
    GitState { Untouched = "untouched", Changed = "changed" }
}

/// A path that was left out of the changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedEntry {
    pub path: String,
    pub why: String,
}

/// A path of the source that moved while the command ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftEntry {
    pub kind: DriftKind,
    pub path: String,
}

/// Where the time went, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timings {
    pub resolve: u64,
    pub start: u64,
    pub run: u64,
    pub capture: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::mount::Content;

    /// Of a linked worktree, with a mount and an agent's home, as it was written when names of layers were plain texts.
    #[test]
    fn a_record_with_every_kind_of_layer_is_read_and_written_as_it_was() {
        let text = include_str!("tests/sandbox.json");
        let record: Record = serde_json::from_str(text).unwrap();
        let layers: Vec<LayerName> = record
            .resolved
            .mounts
            .iter()
            .filter_map(|mount| match &mount.content {
                Content::Cow { layer, .. } | Content::Copy { layer, .. } => Some(layer.clone()),
                _ => None,
            })
            .collect();
        let known = [
            LayerName::Mount(0),
            LayerName::toolchain("cargo").unwrap(),
            LayerName::AgentHome(1),
            LayerName::GitDirectory,
            LayerName::Workspace,
        ];
        assert_eq!(layers, known);
        let written = serde_json::to_string_pretty(&record).unwrap();
        assert_eq!(written.trim_end(), text.trim_end());
    }
}
