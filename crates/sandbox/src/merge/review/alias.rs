//! Other names of a path: what a link in the repository leads to is reached by the name of the link as well. A change of
//! `tools/editor/tasks.json` is one of `.vscode/tasks.json` where `.vscode` is a link to `tools/editor`.
//!
//! Links are read as text, never followed. Upper and lower case are the same here; a name too many does no harm.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};

use sandtable_store::RelPath;

use super::content::refused_name;
use super::pattern::Folded;

/// More names than this one path has only where somebody hides something.
const MOST: usize = 512;
/// As many links are gone over for all paths together, and no more names are judged. A tree can be made so that there is
/// no end to it: ten thousand links, each to the next, give each of themselves forty names.
const BUDGET: usize = 200_000;
/// As long a chain of links is followed, as in the kernel.
const LONGEST: usize = 40;

/// The links of a tree of files.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// Where the tree is on disk, for links that are absolute or come back from outside.
    root: Vec<Vec<u8>>,
    texts: BTreeMap<RelPath, BTreeSet<Vec<u8>>>,
    /// By what they lead to.
    by_target: BTreeMap<Vec<Vec<u8>>, BTreeSet<RelPath>>,
    /// What was used of the budget.
    spent: Cell<usize>,
    /// The first link with a name that nothing may have.
    forbidden: OnceCell<Option<RelPath>>,
}

/// All names of a path but its own.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Aliases {
    pub(super) paths: Vec<RelPath>,
    pub(super) amount: Amount,
}

/// Whether that is all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Amount {
    #[default]
    All,
    TooMany,
}

impl Links {
    /// None yet, in a tree that is at `root`.
    pub fn new(root: Option<&std::path::Path>) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        let root = root.map(|root| root.as_os_str().as_bytes()).unwrap_or_default();
        let names = root.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        Self { root: names.map(<[u8]>::to_vec).collect(), ..Self::default() }
    }

    /// Adds links, each a path and its text. One path may have had several texts.
    pub fn add(&mut self, links: impl IntoIterator<Item = (RelPath, Vec<u8>)>) {
        for (path, text) in links {
            self.texts.entry(path).or_default().insert(text);
        }
        self.forbidden.take();
        // What a link leads to can depend on any other.
        self.by_target.clear();
        let mut found: Vec<(Vec<Vec<u8>>, RelPath)> = Vec::new();
        for (path, texts) in &self.texts {
            let targets = texts.iter().filter_map(|text| self.target(path, text));
            found.extend(targets.map(|target| (Folded::new(&target).names().to_vec(), path.clone())));
        }
        for (target, path) in found {
            self.by_target.entry(target).or_default().insert(path);
        }
    }

    /// Whether a link stands here already with this text.
    pub fn has(&self, path: &RelPath, text: &[u8]) -> bool {
        self.texts.get(path).is_some_and(|texts| texts.contains(text))
    }

    /// A link whose own name is refused. A path with more names than are judged may be reached through it.
    pub(super) fn forbidden(&self) -> Option<&RelPath> {
        let first = || self.texts.keys().find(|path| !refused_name(path).is_empty()).cloned();
        self.forbidden.get_or_init(first).as_ref()
    }

    /// Where a link leads, as long as that is inside.
    fn target(&self, link: &RelPath, text: &[u8]) -> Option<RelPath> {
        let mut at: Vec<Vec<u8>> = match text.first()? {
            b'/' => Vec::new(),
            _ => self.root.iter().cloned().chain(link.components().map(<[u8]>::to_vec)).collect(),
        };
        if !text.starts_with(b"/") {
            at.pop();
        }
        let mut steps = 0;
        for name in text.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")) {
            if name != b".." {
                at.push(name.to_vec());
                continue;
            }
            // The way up from a link is the way up from where it leads.
            while let Some((path, text)) = self.link_at(&at) {
                steps += 1;
                if steps > LONGEST || path == *link {
                    return None;
                }
                let below = self.target_of(&path, &text)?;
                at = self.root.iter().cloned().chain(below.components().map(<[u8]>::to_vec)).collect();
            }
            at.pop();
        }
        self.beneath(&at)
    }

    /// Where a link leads by its text alone, without a way up through others.
    fn target_of(&self, link: &RelPath, text: &[u8]) -> Option<RelPath> {
        let plain = Self { root: self.root.clone(), ..Self::default() };
        plain.target(link, text)
    }

    fn link_at(&self, at: &[Vec<u8>]) -> Option<(RelPath, Vec<u8>)> {
        let path = self.beneath(at)?;
        let text = self.texts.get(&path)?.first()?.clone();
        Some((path, text))
    }

    fn beneath(&self, at: &[Vec<u8>]) -> Option<RelPath> {
        let inside = at.strip_prefix(self.root.as_slice())?;
        let mut path = RelPath::root();
        for name in inside {
            path.push(name).ok()?;
        }
        Some(path)
    }

    /// The other names of a path. No link is used twice on one way, so that a link to its own directory ends.
    pub(super) fn aliases(&self, path: &RelPath) -> Aliases {
        let mut found = Aliases::default();
        if self.by_target.is_empty() {
            return found;
        }
        let mut known = BTreeSet::from([path.clone()]);
        let mut waiting = vec![(path.clone(), Vec::new())];
        while let Some((name, used)) = waiting.pop() {
            let links = self.links_to(&name);
            self.spent.set(self.spent.get().saturating_add(links.len()));
            if links.len() > MOST || self.spent.get() > BUDGET {
                found.amount = Amount::TooMany;
                return found;
            }
            for (link, rest) in links {
                if used.contains(&link) || used.len() >= LONGEST {
                    continue;
                }
                let alias = below(link, &name, rest);
                if !known.insert(alias.clone()) {
                    continue;
                }
                if found.paths.len() >= MOST {
                    found.amount = Amount::TooMany;
                    return found;
                }
                found.paths.push(alias.clone());
                waiting.push((alias, used.iter().copied().chain([link]).collect()));
            }
        }
        found
    }

    /// Links that lead to this path or above it, and how many of its names are above what they lead to.
    fn links_to(&self, name: &RelPath) -> Vec<(&RelPath, usize)> {
        let mut found = Vec::new();
        let folded = Folded::new(name);
        for depth in 0..=folded.names().len() {
            let links = self.by_target.get(&folded.names()[..depth]);
            found.extend(links.into_iter().flatten().take(MOST + 1).map(|link| (link, depth)));
        }
        found
    }
}

/// The name of a link, and of `path` what is below its first names.
fn below(link: &RelPath, path: &RelPath, depth: usize) -> RelPath {
    let mut alias = link.clone();
    for name in path.components().skip(depth) {
        alias.push(name).expect("a name of a path");
    }
    alias
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(list: &[(&str, &str)]) -> Links {
        let mut links = Links::new(Some(std::path::Path::new("/home/u/proj")));
        links.add(list.iter().map(|(path, text)| (RelPath::new(*path).unwrap(), text.as_bytes().to_vec())));
        links
    }

    fn names(links: &Links, path: &str) -> Vec<String> {
        let mut found: Vec<String> =
            links.aliases(&RelPath::new(path).unwrap()).paths.iter().map(RelPath::display_escaped).collect();
        found.sort();
        found
    }

    #[test]
    fn a_path_has_the_names_that_links_give_it() {
        for (list, path, expected) in [
            (&[(".vscode", "tools/editor")][..], "tools/editor/tasks.json", &[".vscode/tasks.json"][..]),
            (&[("Makefile", "meta/rules.make")], "meta/rules.make", &["Makefile"]),
            (&[("a/Makefile", "../meta/./rules")], "meta/rules", &["a/Makefile"]),
            (&[(".vscode", "mid"), ("mid", "t/e")], "t/e/x", &[".vscode/x", "mid/x"]),
            (&[("x", "mid/sub"), ("mid", "tools")], "tools/sub/f", &["mid/sub/f", "x/f"]),
            (&[("x", "mid/../y"), ("mid", "a/b")], "a/y/f", &["x/f"]),
            (&[("x", "/home/u/proj/t")], "t/f", &["x/f"]),
            (&[("x", "../proj/t")], "t/f", &["x/f"]),
            (&[("x", "Tools")], "tools/f", &["x/f"]),
            (&[("all", ".")], "f", &["all/f"]),
            (&[("x", "/etc"), ("y", "../other"), ("z", "t")], "etc/f", &[]),
            (&[("x", "tools/edit")], "tools/editor/f", &[]),
        ] {
            assert_eq!(names(&links(list), path), expected, "{list:?}");
        }
    }

    #[test]
    fn a_circle_ends_and_a_maze_is_told() {
        assert_eq!(names(&links(&[("a/self", ".")]), "a/f"), ["a/self/f"]);
        assert!(names(&links(&[("a", "b"), ("b", "a")]), "a/f").len() <= 2);
        assert!(names(&links(&[("a", "a/.."), ("b", "a/..")]), "f").len() <= 4);
        let many: Vec<(String, String)> = (0..40).map(|n| (format!("d/l{n}"), ".".to_owned())).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let found = links(&many).aliases(&RelPath::new("d/f").unwrap());
        assert_eq!((found.amount, found.paths.len()), (Amount::TooMany, MOST));
        let crowd: Vec<(String, String)> = (0..=MOST).map(|n| (format!("l{n}"), "d".to_owned())).collect();
        let crowd: Vec<(&str, &str)> = crowd.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(links(&crowd).aliases(&RelPath::new("d/f").unwrap()).amount, Amount::TooMany);
    }

    #[test]
    fn behind_the_budget_of_all_paths_each_has_too_many_names() {
        let links = links(&[("x", "d")]);
        let amount = || links.aliases(&RelPath::new("d/f").unwrap()).amount;
        assert_eq!(amount(), Amount::All);
        links.spent.set(BUDGET);
        assert_eq!(amount(), Amount::TooMany);
    }
}
