//! Where the user's own list of ignored files is: the one that `core.excludesFile` names, or the one that git reads otherwise.
//!
//! What the user's configuration and variables say counts, with what that includes without a condition. A repository may name
//! another list; it is not asked here, since what it says is not the user's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::reader::parse;
use crate::facts::Facts;
use crate::model::ignore_file::ignore_file as meant;
use crate::model::path::HostPath;

/// Largest file that is read, how many there may be, and how many variables with settings.
const LIMIT: u64 = 1 << 20;
const FILES: usize = 100;
const VARIABLES: usize = 1000;

/// What git reads for every user.
const SYSTEM: &str = "/etc/gitconfig";

/// The user's list of ignored files, if there can be one; one that is relative lies below the top of the working tree.
/// `settings` is the directory of the user's settings, `variables` are those that git reads, with absolute paths.
pub fn ignore_file(
    facts: &dyn Facts,
    home: &HostPath,
    settings: &HostPath,
    variables: &[(OsString, OsString)],
) -> Option<PathBuf> {
    let mut reading = Reading { facts, home: home.as_path(), left: FILES, named: None };
    let variables = Variables(variables);
    if !variables.without_system() {
        reading.file(&variables.path("GIT_CONFIG_SYSTEM").unwrap_or_else(|| SYSTEM.into()));
    }
    let usual = || [settings.join("git/config"), home.join(".gitconfig")].map(PathBuf::from).to_vec();
    for file in variables.path("GIT_CONFIG_GLOBAL").map_or_else(usual, |file| vec![file]) {
        reading.file(&file);
    }
    for (key, value) in variables.settings() {
        match key.to_ascii_lowercase().as_str() {
            "core.excludesfile" => reading.named = Some(value.to_owned()),
            // A relative one has nothing that it could be relative to.
            "include.path" if !reading.place(Path::new(""), value).is_relative() => {
                reading.file(&reading.place(Path::new(""), value));
            }
            _ => {}
        }
    }
    meant(reading.named.as_deref(), Some(home.as_path()), Some(settings.as_path()))
}

/// The variables that git reads.
struct Variables<'a>(&'a [(OsString, OsString)]);

impl Variables<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.to_str()
    }

    fn value(&self, name: &str) -> Option<&OsString> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// An empty one names no file, but is there.
    fn path(&self, name: &str) -> Option<PathBuf> {
        self.value(name).map(PathBuf::from)
    }

    fn without_system(&self) -> bool {
        let yes = |value: &str| {
            ["true", "yes", "on"].iter().any(|word| value.eq_ignore_ascii_case(word))
                || value.parse::<i64>().is_ok_and(|number| number != 0)
        };
        self.text("GIT_CONFIG_NOSYSTEM").is_some_and(yes)
    }

    /// Settings that stand in variables, in their order.
    fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let count = self.text("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0);
        (0..VARIABLES.min(count)).filter_map(|number| {
            let of = |what: &str| self.text(&format!("GIT_CONFIG_{what}_{number}"));
            Some((of("KEY")?, of("VALUE")?))
        })
    }
}

struct Reading<'a> {
    facts: &'a dyn Facts,
    home: &'a Path,
    left: usize,
    named: Option<String>,
}

impl Reading<'_> {
    /// Reads a file and what it includes, in the order in which git does: the last word counts.
    fn file(&mut self, path: &Path) {
        let mut pending = vec![(path.to_owned(), Vec::new())];
        while let Some((path, entries)) = pending.pop() {
            let mut entries = if entries.is_empty() { self.entries(&path) } else { entries };
            entries.reverse();
            while let Some((is_include, value)) = entries.pop() {
                if !is_include {
                    self.named = Some(value);
                    continue;
                }
                let included = self.place(path.parent().unwrap_or(Path::new("/")), &value);
                if !entries.is_empty() {
                    entries.reverse();
                    pending.push((path.clone(), entries));
                }
                pending.push((included, Vec::new()));
                break;
            }
        }
    }

    /// Where an included file is.
    fn place(&self, folder: &Path, named: &str) -> PathBuf {
        match named.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => folder.join(named),
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
