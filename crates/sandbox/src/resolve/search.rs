//! The caller's PATH, and what becomes of it inside.

use std::path::{Path, PathBuf};

use super::case::Case;
use super::environment::RULES;
use super::rootfs::Rootfs;
use super::{shows_host, warnings};
use crate::host::Host;
use crate::model::mount::MountTable;
use crate::model::path::BoxPath;
use crate::model::resolved::Warning;

/// Where programs are.
pub(super) const PATH: &str = "PATH";

/// The directories of the caller's PATH. Relative ones would depend on where a program starts and are left
/// out.
pub(super) fn directories(host: &Host) -> Vec<PathBuf> {
    let path = host.environment.get(PATH).map_or("", String::as_str);
    path.split(':').map(PathBuf::from).filter(|directory| directory.is_absolute()).collect()
}

/// PATH inside: what of the caller's is visible there, in the same order, then the system's directories.
pub(super) fn inside(case: &Case<'_>, mounts: &MountTable, found: &mut Vec<Warning>) -> String {
    let mut kept: Vec<PathBuf> = Vec::new();
    let mut hidden: Vec<(PathBuf, PathBuf)> = Vec::new();
    for directory in directories(case.host) {
        let directory = case.at_home(&directory);
        if BoxPath::new(&directory).is_ok_and(|path| shows_host(mounts, &path)) {
            if !kept.contains(&directory) {
                kept.push(directory);
            }
        } else if let Some(real) = hidden_tool(case, &directory)
            && hidden.iter().all(|(known, _)| *known != directory)
        {
            hidden.push((directory, real));
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

/// PATH inside an image: the image's own, or what it has of the usual places.
pub(super) fn of_image(case: &Case<'_>, rootfs: &Rootfs) -> String {
    let absolute = |path: &&str| path.starts_with('/');
    if let Some(search) = &rootfs.search {
        return search.split(':').filter(absolute).collect::<Vec<_>>().join(":");
    }
    let usual = RULES.path.iter().map(|rule| rule.name.as_str());
    usual.filter(|path| rootfs.has(case, path)).collect::<Vec<_>>().join(":")
}

/// Where a directory below the home directory really is, if it exists.
fn hidden_tool(case: &Case<'_>, directory: &Path) -> Option<PathBuf> {
    case.below_home(directory)?;
    case.facts.real_path(directory).ok()
}
