//! What programs read in the user's home directory, where links lead from there into the worktree.
//!
//! Only names of a list are looked at, and only directories near the worktree and the home directory on the way: where
//! another link leads may be a disk on the network that no longer answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sandtable_sandbox::model::path::HostPath;
use sandtable_store::wildcard::{Syntax, Wildcard};

use super::git_dir::links;
use super::leads::spellings_near;
use super::rules::RULES;
use crate::request::Means;

/// A name in the home directory, and every spelling of it on its way.
pub(super) struct Read {
    pub(super) name: PathBuf,
    pub(super) sort: Sort,
    pub(super) spellings: Vec<PathBuf>,
}

/// Why a name is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    /// The list has it: programs read it.
    Known,
    /// It is like one of the list.
    Like,
}

/// The names that are there, or may be.
pub(super) fn read(means: &Means, root: &Path) -> Vec<Read> {
    let Some(home) = means.home.as_ref().map(HostPath::as_path) else { return Vec::new() };
    let settings = means.config_home();
    let mut near: Vec<PathBuf> =
        [Some(home), settings.as_deref()].into_iter().flatten().map(Into::into).collect();
    near.extend(near.clone().iter().filter_map(|path| fs_err::canonicalize(path).ok()));
    near.push(root.to_owned());
    let paths = |name: &String| {
        let moved = settings.as_ref().and_then(|settings| below_settings(settings, name));
        [Some(home.join(name)), moved].into_iter().flatten().collect::<Vec<_>>()
    };
    let mut names = BTreeMap::new();
    for (path, sort) in RULES.host("home").names.iter().flat_map(paths).flat_map(listed) {
        let known: &mut Sort = names.entry(path).or_insert(sort);
        *known = sort.min(*known);
    }
    let read = |(name, sort): (PathBuf, Sort)| Read { spellings: spellings_near(&name, &near), name, sort };
    names.into_iter().map(read).collect()
}

/// The same name where settings are kept elsewhere.
fn below_settings(settings: &Path, name: &str) -> Option<PathBuf> {
    let rest = name.strip_prefix(".config")?;
    match rest.strip_prefix('/') {
        Some(rest) => Some(settings.join(rest)),
        None => rest.is_empty().then(|| settings.to_owned()),
    }
}

/// A path as it is, or the links that its last name stands for.
fn listed(path: PathBuf) -> Vec<(PathBuf, Sort)> {
    use std::os::unix::ffi::OsStrExt as _;
    let name = path.file_name().unwrap_or_default().to_owned();
    if !name.as_bytes().contains(&b'*') {
        return vec![(path, Sort::Known)];
    }
    let links = path.parent().map(links).unwrap_or_default().into_iter();
    let wildcard = Wildcard::new(&name.to_string_lossy(), Syntax::Star);
    let like = links.filter(|link| link.file_name().is_some_and(|link| wildcard.matches(link.as_bytes())));
    like.map(|link| (link, Sort::Like)).collect()
}
