//! Follows `[include]` and `[includeIf]`, in the order in which git would read the files.

use std::path::{Path, PathBuf};

use sandtable_store::wildcard::{Syntax, matches};

use super::reader::{Entry, parse};
use crate::resolve::case::{Case, Home};
use crate::resolve::source::Workspace;

/// Largest file that is read, how deep includes may be nested, and how many files there may be.
const LIMIT: u64 = 1 << 20;
const DEPTH: usize = 10;
const FILES: usize = 100;

/// A configuration while it is read.
pub(super) struct Reading<'a> {
    case: &'a Case<'a>,
    home: &'a Home,
    workspace: &'a Workspace,
    /// The files that are being read, each included by the one before.
    open: Vec<PathBuf>,
    files: usize,
    pub(super) entries: Vec<Entry>,
    /// Files that were left out, and why.
    pub(super) skipped: Vec<(PathBuf, String)>,
}

/// What an include says about when it holds.
enum Condition {
    Holds,
    Fails,
    /// Needs more than a look at the path.
    Unknown,
}

impl<'a> Reading<'a> {
    pub(super) fn new(case: &'a Case<'a>, home: &'a Home, workspace: &'a Workspace) -> Self {
        Self { case, home, workspace, open: Vec::new(), files: 0, entries: Vec::new(), skipped: Vec::new() }
    }

    /// Reads `path` and what it includes.
    pub(super) fn file(&mut self, path: &Path) {
        self.files += 1;
        if self.open.len() > DEPTH || self.files > FILES || self.open.iter().any(|open| open == path) {
            return self.skip(path, "it is included by itself, too deeply, or after too many others");
        }
        let text = match self.case.facts.read_small(path, LIMIT) {
            Ok(text) => text,
            // Git passes over an include that is not there.
            Err(crate::facts::Failure::Missing) => return,
            Err(why) => return self.skip(path, &why.to_string()),
        };
        let entries = match parse(&text) {
            Ok(entries) => entries,
            Err(why) => return self.skip(path, &why.to_string()),
        };
        self.open.push(path.to_owned());
        for entry in entries {
            match included(&entry) {
                None => self.entries.push(entry),
                Some(target) => self.include(path, &entry, target),
            }
        }
        self.open.pop();
    }

    fn include(&mut self, from: &Path, entry: &Entry, target: &str) {
        let base = from.parent().unwrap_or(Path::new("/"));
        let target = self.at(base, target);
        let condition = match (entry.section.as_str(), &entry.subsection) {
            ("include", None) => Condition::Holds,
            ("includeif", Some(text)) => self.condition(text, base),
            _ => Condition::Fails,
        };
        match condition {
            Condition::Holds => self.file(&target),
            Condition::Fails => {}
            Condition::Unknown => self.skip(&target, "its condition cannot be decided here"),
        }
    }

    /// Decides `gitdir:` conditions by the path of the workspace's git directory.
    fn condition(&self, text: &str, base: &Path) -> Condition {
        let (pattern, folded) = match (text.strip_prefix("gitdir:"), text.strip_prefix("gitdir/i:")) {
            (Some(pattern), _) => (pattern, false),
            (_, Some(pattern)) => (pattern, true),
            _ => return Condition::Unknown,
        };
        let mut pattern = match pattern.strip_prefix("./") {
            Some(rest) => format!("{}/{rest}", base.display()),
            None if pattern.starts_with('/') => pattern.to_owned(),
            None if pattern.starts_with("~/") => self.at(base, pattern).display().to_string(),
            None => format!("**/{pattern}"),
        };
        if pattern.ends_with('/') {
            pattern.push_str("**");
        }
        let git = self.workspace.root.join(".git").to_string();
        let fits = if folded {
            matches(&pattern.to_lowercase(), &git.to_lowercase(), Syntax::Path)
        } else {
            matches(&pattern, &git, Syntax::Path)
        };
        if fits { Condition::Holds } else { Condition::Fails }
    }

    fn at(&self, base: &Path, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(rest) => self.home.real.as_path().join(rest),
            None => base.join(path),
        }
    }

    fn skip(&mut self, path: &Path, why: &str) {
        self.skipped.push((path.to_owned(), why.to_owned()));
    }
}

/// The file an entry includes, if it is an include.
fn included(entry: &Entry) -> Option<&str> {
    let include = matches!(entry.section.as_str(), "include" | "includeif") && entry.key == "path";
    entry.value.as_deref().filter(|value| include && !value.is_empty())
}
