//! Which dependencies were used, by watching from outside whether any of their files was opened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_sandbox::model::tool::ProvidedDep;
use sandtable_sandbox::os::Openings;

/// How many directories of one dependency are watched, and how deep.
const MOST: usize = 300;
const DEEPEST: usize = 5;

/// Watches while steps run. Where the kernel has no watches left, nothing is said.
#[derive(Debug)]
pub(super) struct Usage {
    watch: Option<Openings>,
    of: BTreeMap<i32, usize>,
    used: BTreeSet<usize>,
    names: Vec<String>,
}

impl Usage {
    pub(super) fn of(dependencies: &[ProvidedDep]) -> Self {
        let watch = Openings::watch();
        let mut usage = Self { watch, of: BTreeMap::new(), used: BTreeSet::new(), names: Vec::new() };
        for (index, dependency) in dependencies.iter().enumerate() {
            usage.names.push(dependency.name.to_string());
            usage.add(index, dependency.source.as_path());
        }
        usage
    }

    fn add(&mut self, index: usize, top: &Path) {
        let Some(watch) = &self.watch else { return };
        let (mut waiting, mut count) = (vec![(top.to_owned(), 0)], 0);
        while let Some((directory, depth)) = waiting.pop() {
            count += 1;
            let Some(number) = watch.add(&directory) else {
                // Half a watch would call a dependency unused that is not.
                self.watch = None;
                return;
            };
            self.of.insert(number, index);
            if depth < DEEPEST && count < MOST {
                waiting.extend(below(&directory).into_iter().map(|path| (path, depth + 1)));
            }
        }
    }

    /// Takes note of what was opened so far.
    pub(super) fn look(&mut self) {
        let Some(watch) = &self.watch else { return };
        watch.each(|number| self.used.extend(self.of.get(&number).copied()));
    }

    /// Names of dependencies of which nothing was opened.
    pub(super) fn unused(&self) -> Vec<String> {
        if self.watch.is_none() {
            return Vec::new();
        }
        let names = self.names.iter().enumerate().filter(|(index, _)| !self.used.contains(index));
        names.map(|(_, name)| name.clone()).collect()
    }
}

fn below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}
