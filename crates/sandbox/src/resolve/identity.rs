//! Who the workload is, and which files of the workspace it cannot change because they are others'.

use super::case::Case;
use super::warnings;
use crate::facts::Owned;
use crate::host::Host;
use crate::model::path::HostPath;
use crate::model::resolved::{Identity, Warning};

/// How many ids a sandbox of root has.
const RANGE: u32 = 65_536;
/// How many entries are looked at before the start, and how many are named.
const LOOKED_AT: usize = 1000;
const NAMED: usize = 5;

pub(super) fn of(host: &Host) -> Identity {
    Identity { uid: host.uid, gid: host.gid }
}

/// Warns of top-level entries that cannot be changed inside: to copy them up would take an owner that has no
/// number there, or rights that nobody inside has. What lies deeper is found by the scan that runs beside the command.
pub(super) fn check_owners(case: &Case<'_>, root: &HostPath, found: &mut Vec<Warning>) {
    let mut entries = case.facts.top_level(root, LOOKED_AT).unwrap_or_default();
    if let Ok(directory) = case.facts.kind(root) {
        entries.insert(0, Owned { name: ".".to_owned(), uid: directory.uid, gid: directory.gid });
    }
    let foreign: Vec<String> =
        entries.into_iter().filter(|entry| is_foreign(case.host, entry)).map(|entry| entry.name).collect();
    if let Some(named) = foreign.get(..foreign.len().min(NAMED)).filter(|named| !named.is_empty()) {
        found.push(warnings::foreign_owner(named, foreign.len() - named.len()));
    }
}

fn is_foreign(host: &Host, entry: &Owned) -> bool {
    if host.uid == 0 {
        // Inside, root has no power over the files of others.
        entry.uid != 0 || entry.gid >= RANGE
    } else {
        entry.uid != host.uid || entry.gid != host.gid
    }
}
