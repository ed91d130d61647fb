//! Where the user's own list of ignored files is: the one that `core.excludesFile` names, or the one that git reads otherwise.
//!
//! What the user's configuration says counts, with what it includes without a condition. A repository may name another list; it is
//! not asked here, since what it says is not the user's.

use std::path::{Path, PathBuf};

use super::reader::parse;
use crate::facts::Facts;
use crate::model::path::HostPath;

/// Largest file that is read, and how many there may be.
const LIMIT: u64 = 1 << 20;
const FILES: usize = 100;

/// What git reads for every user.
const SYSTEM: &str = "/etc/gitconfig";

/// The user's list of ignored files. `config` is the directory of the user's settings.
pub fn ignore_file(facts: &dyn Facts, home: &HostPath, config: &HostPath) -> PathBuf {
    let mut reading = Reading { facts, home: home.as_path(), left: FILES, named: None };
    let users = [config.join("git/config"), home.join(".gitconfig")];
    reading.file(Path::new(SYSTEM));
    for file in users {
        reading.file(file.as_path());
    }
    reading.named.unwrap_or_else(|| config.join("git/ignore").as_path().to_owned())
}

struct Reading<'a> {
    facts: &'a dyn Facts,
    home: &'a Path,
    left: usize,
    named: Option<PathBuf>,
}

impl Reading<'_> {
    /// Reads a file and what it includes, in the order in which git does: the last word counts.
    fn file(&mut self, path: &Path) {
        let mut pending = vec![(path.to_owned(), Vec::new())];
        while let Some((path, entries)) = pending.pop() {
            let mut entries = if entries.is_empty() { self.entries(&path) } else { entries };
            entries.reverse();
            while let Some((is_include, value)) = entries.pop() {
                let value = match value.strip_prefix("~/") {
                    Some(rest) => self.home.join(rest),
                    None => path.parent().unwrap_or(Path::new("/")).join(value),
                };
                if !is_include {
                    self.named = Some(value);
                    continue;
                }
                if !entries.is_empty() {
                    entries.reverse();
                    pending.push((path.clone(), entries));
                }
                pending.push((value, Vec::new()));
                break;
            }
        }
    }

    /// What matters in a file: includes, and names of lists.
    fn entries(&mut self, path: &Path) -> Vec<(bool, String)> {
        let Some(left) = self.left.checked_sub(1) else { return Vec::new() };
        self.left = left;
        let real = self.facts.real_path(path).ok();
        let text = real.and_then(|real| self.facts.read_small(&real, LIMIT).ok()).unwrap_or_default();
        let entries = parse(&text).unwrap_or_default().into_iter().filter(|entry| entry.subsection.is_none());
        let matters = entries.filter_map(|entry| match (entry.section.as_str(), entry.key.as_str()) {
            ("include", "path") => Some((true, entry.value?)),
            ("core", "excludesfile") => Some((false, entry.value?)),
            _ => None,
        });
        matters.collect()
    }
}
