//! Patterns of paths: a name at any depth, or a few parts in a row, with `*` inside a part.

use std::collections::{BTreeMap, HashMap};

use sandtable_store::RelPath;
use sandtable_store::wildcard::{Syntax, Wildcard};
use serde::Deserialize;

/// A pattern, kept as it was written.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct Pattern {
    text: String,
    parts: Vec<Part>,
    /// It ends in `/`: everything below, and the thing itself.
    below: bool,
}

/// What one name of a path must be.
#[derive(Debug)]
struct Part {
    text: Vec<u8>,
    wildcard: Wildcard,
}

impl Part {
    fn new(text: &str) -> Self {
        Self { text: text.as_bytes().to_vec(), wildcard: Wildcard::new(text, Syntax::Star) }
    }

    fn has_star(&self) -> bool {
        self.text.contains(&b'*')
    }
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        let lower = text.to_lowercase();
        let parts = lower.trim_end_matches('/').split('/').map(Part::new).collect();
        Self { below: text.ends_with('/'), text, parts }
    }
}

impl Pattern {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it fits these names of a path with its last part at `at`.
    fn fits(&self, names: &[Vec<u8>], at: usize) -> bool {
        let end = at + 1;
        let Some(start) = end.checked_sub(self.parts.len()) else { return false };
        (self.below || end == names.len())
            && self.parts.iter().zip(&names[start..end]).all(|(part, name)| part.wildcard.matches(name))
    }
}

/// Patterns by their last part, so that a name of a path is compared with the few that it can fit.
#[derive(Debug)]
pub(super) struct Index<K> {
    literal: HashMap<Vec<u8>, Vec<(K, &'static Pattern)>>,
    /// Those that apply at the end of a path only, and those that apply anywhere in it.
    /// The first by how their last part begins; `*` stands for any beginning.
    starred_at_end: HashMap<u8, Vec<(K, &'static Pattern)>>,
    starred: Vec<(K, &'static Pattern)>,
}

impl<K: Copy + Ord> Index<K> {
    pub(super) fn new(patterns: impl IntoIterator<Item = (K, &'static Pattern)>) -> Self {
        let mut index = Self { literal: HashMap::new(), starred_at_end: HashMap::new(), starred: Vec::new() };
        for (key, pattern) in patterns {
            match pattern.parts.last() {
                Some(last) if !last.has_star() => {
                    index.literal.entry(last.text.clone()).or_default().push((key, pattern));
                }
                _ if pattern.below => index.starred.push((key, pattern)),
                last => {
                    let first = last.and_then(|last| last.text.first()).copied().unwrap_or(b'*');
                    index.starred_at_end.entry(first).or_default().push((key, pattern));
                }
            }
        }
        index
    }

    /// The patterns that fit a path.
    pub(super) fn matching(&self, path: &Folded) -> BTreeMap<K, &'static Pattern> {
        let Folded(names) = path;
        let mut found = BTreeMap::new();
        for (at, name) in names.iter().enumerate() {
            let literal = self.literal.get(name).into_iter().flatten();
            let firsts =
                if at + 1 == names.len() { [Some(b'*'), name.first().copied()] } else { [None, None] };
            let firsts = firsts.into_iter().flatten();
            let at_end = firsts.filter_map(|first| self.starred_at_end.get(&first)).flatten();
            let all = literal.chain(&self.starred).chain(at_end);
            found.extend(all.filter(|(_, pattern)| pattern.fits(names, at)).copied());
        }
        found
    }
}

/// Beginnings of patterns that have several parts, by the last part of each.
#[derive(Debug, Default)]
pub(super) struct Beginnings {
    literal: HashMap<&'static [u8], Vec<(&'static Pattern, usize)>>,
    starred: Vec<(&'static Pattern, usize)>,
}

impl Beginnings {
    pub(super) fn new(patterns: impl IntoIterator<Item = &'static Pattern>) -> Self {
        let mut all = Self::default();
        for pattern in patterns {
            for count in 1..pattern.parts.len() {
                let part = &pattern.parts[count - 1];
                let list = if part.has_star() {
                    &mut all.starred
                } else {
                    all.literal.entry(&part.text).or_default()
                };
                list.push((pattern, count));
            }
        }
        all
    }

    /// A pattern that goes on where a path ends.
    pub(super) fn at(&self, Folded(names): &Folded) -> Option<&'static Pattern> {
        let literal = self.literal.get(names.last()?.as_slice()).into_iter().flatten();
        let mut all = literal.chain(&self.starred).filter(|(_, count)| *count <= names.len());
        let fits = |(pattern, count): &&(&'static Pattern, usize)| {
            let last = &names[names.len() - count..];
            pattern.parts.iter().zip(last).all(|(part, name)| part.wildcard.matches(name))
        };
        all.find(fits).map(|(pattern, _)| *pattern)
    }
}

/// The names of a path, each as a file system may take it: lower case, and without what some ignore at its end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Folded(Vec<Vec<u8>>);

impl Folded {
    pub(super) fn new(path: &RelPath) -> Self {
        Self(path.components().map(folded).collect())
    }

    pub(super) fn names(&self) -> &[Vec<u8>] {
        &self.0
    }
}

pub(super) fn folded(name: &[u8]) -> Vec<u8> {
    match str::from_utf8(name) {
        Ok(text) => text.to_lowercase().trim_end_matches(['.', ' ']).as_bytes().to_vec(),
        Err(_) => name.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_several_parts_begins_at_the_names_above_its_last() {
        let begins = |pattern: &str, path: &str| {
            let pattern: &'static Pattern = Box::leak(Box::new(Pattern::from(pattern.to_owned())));
            Beginnings::new([pattern]).at(&Folded::new(&RelPath::new(path).unwrap())).is_some()
        };
        assert!(begins(".config/pip/", ".Config") && begins(".config/pip/x", "sub/.config/pip"));
        assert!(begins("a/b/c", "x/a") && begins("a/b/c", "x/a/b") && !begins("a/b/c", "x/b"));
        assert!(!begins(".config/pip/", ".config/pip") && !begins(".config/pip/", ".config/other"));
        assert!(begins("docs/*/conf.py", "docs/x") && !begins("docs/*/conf.py", "doc/x"));
        assert!(!begins(".vscode/", ".vscode") && !begins("Makefile", "sub"));
    }

    #[test]
    fn a_name_fits_at_any_depth_and_in_any_case() {
        let fits = |pattern: &str, path: &str| {
            let pattern: &'static Pattern = Box::leak(Box::new(Pattern::from(pattern.to_owned())));
            let path = Folded::new(&RelPath::new(path).unwrap());
            !Index::new([((), pattern)]).matching(&path).is_empty()
        };
        assert!(fits("Makefile", "makefile") && fits("Makefile", "a/b/MAKEFILE"));
        assert!(!fits("Makefile", "Makefile/x") && !fits("Makefile", "xMakefile"));
        assert!(fits(".github/", ".GitHub/workflows/a.yml") && fits(".github/", "sub/.github/x"));
        assert!(fits(".github/", ".github") && !fits(".github/", "x.github/y"));
        assert!(fits("*.mk", "a/x.mk") && !fits("*.mk", "x.mkd") && fits("a*b*c", "axxbyyc"));
        assert!(fits("project/*.sbt", "x/project/p.sbt") && !fits("project/*.sbt", "project/a/p.sbt"));
        assert!(fits(".envrc", ".envrc. "), "a file system may drop the end");
    }
}
