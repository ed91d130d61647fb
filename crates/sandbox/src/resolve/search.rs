//! The caller's PATH, and what becomes of it inside.

use std::path::{Path, PathBuf};

use super::case::Case;
use super::environment::RULES;
use super::{shows_host, warnings};
use crate::host::Host;
use crate::model::mount::MountTable;
use crate::model::path::BoxPath;
use crate::model::resolved::Warning;

/// The directories of the caller's PATH. Relative ones would depend on where a program starts and are left
/// out.
pub(super) fn directories(host: &Host) -> Vec<PathBuf> {
    let path = host.environment.get("PATH").map_or("", String::as_str);
    path.split(':').map(PathBuf::from).filter(|directory| directory.is_absolute()).collect()
}

/// PATH inside: what of the caller's is visible there, in the same order, then the system's directories.
pub(super) fn inside(case: &Case<'_>, mounts: &MountTable, found: &mut Vec<Warning>) -> String {
    let mut kept: Vec<PathBuf> = Vec::new();
    let mut hidden: Vec<PathBuf> = Vec::new();
    for directory in directories(case.host) {
        let directory = case.at_home(&directory);
        let list = match BoxPath::new(&directory) {
            Ok(path) if shows_host(mounts, &path) => &mut kept,
            _ if is_hidden_tool(case, &directory) => &mut hidden,
            _ => continue,
        };
        if !list.contains(&directory) {
            list.push(directory);
        }
    }
    for standard in &RULES.path {
        let path = BoxPath::new(&standard.name).expect("absolute, by the policy file");
        if shows_host(mounts, &path) && !kept.contains(&PathBuf::from(&standard.name)) {
            kept.push(standard.name.clone().into());
        }
    }
    if !hidden.is_empty() {
        found.push(warnings::path_not_exposed(&hidden));
    }
    kept.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>().join(":")
}

fn is_hidden_tool(case: &Case<'_>, directory: &Path) -> bool {
    case.below_home(directory).is_some() && case.facts.kind(directory).is_ok()
}
