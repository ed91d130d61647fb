//! Other names of a path: what a link in the repository leads to is reached by the name of the link as well. A change of
//! `tools/editor/tasks.json` is one of `.vscode/tasks.json` where `.vscode` is a link to `tools/editor`.
//!
//! Links are read as text, never followed. Upper and lower case are the same here; a name too many does no harm. So places
//! are compared by a hash of their names with a key of its own, in which every name above is contained: each step of a path
//! costs the same however deep it is.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};

use sandtable_store::RelPath;

use super::content::refused_name;
use super::other_names::OtherNames;
use super::pattern::folded;

/// More names than this one path has only where somebody hides something.
const MOST: usize = 512;
/// As many steps are made for all paths together, and no more names are judged. A tree can be made so that there is no end
/// to it: ten thousand links, each to the next, give each of themselves forty names.
const BUDGET: usize = 20_000_000;
/// What each name of a path that is judged costs besides: it is compared with all rules.
const JUDGED: usize = 4;
/// As long a chain of links is followed, as in the kernel.
const LONGEST: usize = 40;
/// To as many places one link leads, where links on its way had several texts.
const VARIANTS: usize = 256;
/// As many places on the ways of all links are remembered.
const PASSED: usize = 4_000_000;

/// A place in the file system, by the names from its root.
type Spot = u64;

/// The links of a tree of files.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// Where the tree is on disk, for links that are absolute or come back from outside: the places from the root of the
    /// file system to it.
    root: Vec<Spot>,
    texts: BTreeMap<RelPath, BTreeSet<Vec<u8>>>,
    /// Other names of where the tree is.
    pub(crate) other_names: OtherNames,
    /// The links by where they are.
    by_spot: HashMap<Spot, Vec<RelPath>>,
    /// And by what they lead to.
    by_target: HashMap<Spot, BTreeSet<RelPath>>,
    /// The links by the places that they pass on their way, in order; each by its number among all of them.
    by_passed: Vec<(Spot, usize)>,
    all: Vec<RelPath>,
    /// What was used of the budget.
    spent: Cell<usize>,
    /// The first link with a name that nothing may have.
    forbidden: OnceCell<Option<RelPath>>,
    key: RandomState,
}

/// All names of a path but its own.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Aliases {
    pub(super) paths: Vec<RelPath>,
    pub(super) amount: Amount,
}

/// What is at a path whose names are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thing {
    Other,
    /// A link with a new text: each link whose way goes through it leads to another place by now.
    Link,
}

/// Whether that is all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Amount {
    #[default]
    All,
    TooMany,
}

/// Where the text of a link leads, and what it passes on the way.
#[derive(Default)]
struct Ways {
    targets: BTreeSet<Spot>,
    passed: BTreeSet<Spot>,
}

/// A way through links, as far as it was gone.
#[derive(Clone)]
struct Way<'a> {
    at: Vec<Spot>,
    /// The names that follow, the next one last.
    rest: Vec<&'a [u8]>,
    /// How many of these lead up, or may lead elsewhere through `/proc`.
    turns: usize,
    hops: usize,
}

impl<'a> Way<'a> {
    /// Goes on with the text of a link that is here.
    fn through(mut self, root: &[Spot], text: &'a [u8]) -> Self {
        if text.starts_with(b"/") {
            self.at.truncate(1);
        } else if self.at.len() > root.len().min(1) {
            self.at.pop();
        }
        let names = text.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        let before = self.rest.len();
        self.rest.extend(names);
        self.rest[before..].reverse();
        self.turns += self.rest[before..].iter().filter(|name| is_turn(name)).count();
        self.hops += 1;
        self
    }
}

/// The kernel's links in `/proc` that lead to a directory of the process that reads them.
const WORKING_DIRECTORY: &[u8] = b"cwd";
const ROOT: &[u8] = b"root";

/// Whether what follows this name is not where the names before it are.
fn is_turn(name: &[u8]) -> bool {
    [&b".."[..], WORKING_DIRECTORY, ROOT].contains(&name)
}

impl Links {
    /// None yet, in a tree that is at `root`.
    pub fn new(root: Option<&std::path::Path>) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        let mut links = Self::default();
        let root = root.map(|root| root.as_os_str().as_bytes()).unwrap_or_default();
        let mut at = vec![links.top()];
        for name in root.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            at.push(links.step(at.last().copied(), name));
        }
        links.root = at;
        links
    }

    fn top(&self) -> Spot {
        self.key.hash_one(b"/")
    }

    fn step(&self, from: Option<Spot>, name: &[u8]) -> Spot {
        self.key.hash_one((from, folded(name)))
    }

    /// The place of the tree itself. A tree that is nowhere has one too.
    fn start(&self) -> Spot {
        self.root.last().copied().unwrap_or_else(|| self.top())
    }

    fn spend(&self, steps: usize) {
        self.spent.set(self.spent.get().saturating_add(steps));
    }

    fn is_spent(&self) -> bool {
        self.spent.get() > BUDGET
    }

    /// Adds links, each a path and its text. One path may have had several texts.
    pub fn add(&mut self, links: impl IntoIterator<Item = (RelPath, Vec<u8>)>) {
        for (path, text) in links {
            let spot = path.components().fold(self.start(), |at, name| self.step(Some(at), name));
            let here = self.by_spot.entry(spot).or_default();
            if !here.contains(&path) {
                here.push(path.clone());
            }
            let respelled = self.other_names.respelled(&path, &text);
            self.texts.entry(path).or_default().extend(respelled.into_iter().chain([text]));
        }
        self.forbidden.take();
        // What a link leads to can depend on any other.
        let mut found: HashMap<Spot, BTreeSet<RelPath>> = HashMap::new();
        let mut passed = Vec::new();
        for (number, (path, texts)) in self.texts.iter().enumerate() {
            for text in texts {
                let ways = self.ways(path, text);
                for target in ways.targets {
                    found.entry(target).or_default().insert(path.clone());
                }
                passed.extend(ways.passed.into_iter().map(|spot| (spot, number)));
            }
            if passed.len() > PASSED {
                self.spent.set(usize::MAX);
            }
            if self.is_spent() {
                break;
            }
        }
        passed.sort_unstable();
        self.by_target = found;
        self.by_passed = passed;
        self.all = self.texts.keys().cloned().collect();
    }

    /// Gives up: links lead where nobody can look in time, so that every path may have any name.
    pub fn give_up(&mut self) {
        self.spent.set(usize::MAX);
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

    /// Every place to which a link may lead. The way up from a link is the way up from where it leads, so links on the way
    /// are followed as long as a turn comes after them: with each text that they have, and not at all, for they may be
    /// directories by now. Behind the last turn the names of the links do as well.
    fn ways(&self, link: &RelPath, text: &[u8]) -> Ways {
        let mut found = Ways::default();
        if text.is_empty() {
            return found;
        }
        let mut at = if self.root.is_empty() { vec![self.top()] } else { self.root.clone() };
        for name in link.components() {
            at.push(self.step(at.last().copied(), name));
        }
        let start = Way { at, rest: Vec::new(), turns: 0, hops: 0 };
        let mut waiting = vec![start.through(&self.root, text)];
        while let Some(mut way) = waiting.pop() {
            self.spend(way.at.len() + way.rest.len());
            while let Some(name) = way.rest.pop() {
                self.spend(1);
                way.turns -= usize::from(is_turn(name));
                if name == b".." {
                    if way.at.len() > 1 {
                        way.at.pop();
                    }
                    continue;
                }
                let spot = self.step(way.at.last().copied(), name);
                way.at.push(spot);
                if !way.rest.is_empty() {
                    found.passed.insert(spot);
                }
                if way.hops <= LONGEST
                    && let Some(at) = self.through_proc(&way.at, name)
                {
                    waiting.push(Way { at, hops: way.hops + 1, ..way.clone() });
                }
                if way.turns > 0 && way.hops <= LONGEST {
                    let here = way.at.last().and_then(|spot| self.by_spot.get(spot));
                    let texts = here.into_iter().flatten().filter_map(|path| self.texts.get(path)).flatten();
                    waiting.extend(texts.map(|text| way.clone().through(&self.root, text)));
                }
            }
            found.targets.extend(way.at.last());
            if waiting.len() + found.targets.len() > VARIANTS {
                self.spent.set(usize::MAX);
            }
            if self.is_spent() {
                break;
            }
        }
        found
    }

    /// Where a link of the kernel in `/proc` leads: `cwd` to where a program was started, which is the top of the tree for most,
    /// and `root` to the root. `/dev/fd` is a link into `/proc`.
    fn through_proc(&self, at: &[Spot], name: &[u8]) -> Option<Vec<Spot>> {
        let path = |names: &[&[u8]]| {
            names.iter().fold(vec![self.top()], |mut at, name| {
                at.push(self.step(at.last().copied(), name));
                at
            })
        };
        let is_in_proc = || at.starts_with(&path(&[b"proc"]));
        match name {
            b"fd" if at == path(&[b"dev", b"fd"]) => Some(path(&[b"proc", b"self", b"fd"])),
            WORKING_DIRECTORY if is_in_proc() && self.root.is_empty() => Some(path(&[])),
            WORKING_DIRECTORY if is_in_proc() => Some(self.root.clone()),
            ROOT if is_in_proc() => Some(path(&[])),
            _ => None,
        }
    }

    /// The other names of a path. No link is used twice on one way, so that a link to its own directory ends.
    pub(super) fn aliases(&self, path: &RelPath, thing: Thing) -> Aliases {
        let mut found = Aliases::default();
        if self.is_spent() {
            found.amount = Amount::TooMany;
            return found;
        }
        if self.by_target.is_empty() {
            return found;
        }
        let mut known = BTreeSet::from([path.clone()]);
        let mut waiting = vec![(path.clone(), Vec::new())];
        while let Some((name, used)) = waiting.pop() {
            let mut links = self.links_to(&name);
            if thing == Thing::Link && !self.by_passed.is_empty() {
                let depth = name.components().count();
                links.extend(self.links_through(&name).map(|link| (link, depth)));
            }
            if links.len() > MOST || self.is_spent() {
                found.amount = Amount::TooMany;
                return found;
            }
            for (link, rest) in links {
                if used.contains(&link) || used.len() >= LONGEST {
                    continue;
                }
                let alias = below(link, &name, rest);
                self.spend(JUDGED * alias.components().count());
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

    /// Links that pass this path on their way to another.
    fn links_through(&self, path: &RelPath) -> impl Iterator<Item = &RelPath> {
        let spot = path.components().fold(self.start(), |at, name| self.step(Some(at), name));
        self.spend(path.components().count());
        let first = self.by_passed.partition_point(|(passed, _)| *passed < spot);
        let here = self.by_passed[first..].iter().take_while(move |(passed, _)| *passed == spot);
        here.take(MOST + 1).map(|(_, number)| &self.all[*number])
    }

    /// Links that lead to this path or above it, and how many of its names are above what they lead to.
    fn links_to(&self, name: &RelPath) -> Vec<(&RelPath, usize)> {
        let mut found = Vec::new();
        let mut at = self.start();
        for (depth, name) in [None].into_iter().chain(name.components().map(Some)).enumerate() {
            if let Some(name) = name {
                at = self.step(Some(at), name);
            }
            self.spend(1);
            let links = self.by_target.get(&at).into_iter().flatten();
            found.extend(links.take(MOST + 1).map(|link| (link, depth)));
            if found.len() > MOST {
                break;
            }
        }
        self.spend(found.len());
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
        let mut found: Vec<String> = links
            .aliases(&RelPath::new(path).unwrap(), Thing::Other)
            .paths
            .iter()
            .map(RelPath::display_escaped)
            .collect();
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
            (&[("a", "b"), ("b/mid", "../t/q"), (".vscode", "a/mid/../ed")], "t/ed/f", &[".vscode/f"]),
            (&[("mid", "aa/b"), ("mid", "zz/d"), (".vscode", "mid/../y")], "aa/y/f", &[".vscode/f"]),
            (&[("mid", "aa/b"), ("mid", "zz/d"), (".vscode", "mid/../y")], "zz/y/f", &[".vscode/f"]),
            (&[("Mid", "a/b"), ("x", "mid/../y")], "a/y/f", &["x/f"]),
            (&[("d/x", "/home/u/proj/e/../t")], "t/f", &["d/x/f"]),
            (&[("x", "/home/u/proj/t")], "t/f", &["x/f"]),
            (&[("x", "../proj/t")], "t/f", &["x/f"]),
            (&[("x", "Tools")], "tools/f", &["x/f"]),
            (&[("all", ".")], "f", &["all/f"]),
            (&[("x", "/etc"), ("y", "../other"), ("z", "t")], "etc/f", &[]),
            (&[("x", "tools/edit")], "tools/editor/f", &[]),
            (&[("x", "/proc/self/cwd/c/f")], "c/f", &["x"]),
            (&[("x", "/proc/thread-self/cwd/c/f")], "c/f", &["x"]),
            (&[("x", "/proc/1/../self/cwd/c/f")], "c/f", &["x"]),
            (&[("x", "/proc/self/task/1/cwd/c/f")], "c/f", &["x"]),
            (&[("x", "../../../proc/self/cwd/c/f")], "c/f", &["x"]),
            (&[("x", "/dev/fd/../cwd/c/f")], "c/f", &["x"]),
            (&[("x", "/proc/self/cwd/../proj/c/f")], "c/f", &["x"]),
            (&[("x", "/proc/self/root/home/u/proj/c/f")], "c/f", &["x"]),
            (&[("x", "/proc/self/root/proc/self/cwd/c/f")], "c/f", &["x"]),
            (&[("p", "/proc/self"), ("x", "p/cwd/c/f")], "c/f", &["x"]),
            (&[("p", "/dev/fd"), ("x", "p/../cwd/c/f")], "c/f", &["x"]),
            (&[("p", "/proc/self/cwd"), ("x", "p/c/f")], "c/f", &["p/c/f", "x"]),
            (&[("x", "proc/self/cwd/c/f"), ("y", "/proc/self/c/f"), ("z", "cwd/c/f")], "c/f", &[]),
        ] {
            assert_eq!(names(&links(list), path), expected, "{list:?}");
        }
    }

    #[test]
    fn a_link_has_the_names_of_the_links_whose_way_it_turns() {
        for (list, path, expected) in [
            (&[("mid", "new"), (".vscode", "mid/ed")][..], "mid", &[".vscode"][..]),
            (&[("mid", "new"), (".vscode", "mid/../ed")], "mid", &[".vscode"]),
            (&[("c/b", "new"), ("a", "c"), (".vscode", "a/b/ed")], "c/b", &[".vscode", "a/b"]),
            (&[("mid", "new"), ("x", "/home/u/proj/mid/d"), ("all", "x")], "mid", &["all", "x"]),
            (&[("mid", "new"), (".vscode", "middle/ed")], "mid", &[]),
        ] {
            let links = links(list);
            let path = RelPath::new(path).unwrap();
            let found = links.aliases(&path, Thing::Link).paths;
            let found: BTreeSet<String> = found.iter().map(RelPath::display_escaped).collect();
            assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{list:?}");
            let others = links.aliases(&path, Thing::Other).paths.len();
            assert_eq!(others, usize::from(path.as_bytes() == b"c/b"), "{list:?}");
        }
    }

    #[test]
    fn a_circle_ends_and_a_maze_is_told() {
        assert_eq!(names(&links(&[("a/self", ".")]), "a/f"), ["a/self/f"]);
        assert!(names(&links(&[("a", "b"), ("b", "a")]), "a/f").len() <= 2);
        assert!(names(&links(&[("a", "a/.."), ("b", "a/..")]), "f").len() <= 4);
        let many: Vec<(String, String)> = (0..40).map(|n| (format!("d/l{n}"), ".".to_owned())).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let found = links(&many).aliases(&RelPath::new("d/f").unwrap(), Thing::Other);
        assert_eq!((found.amount, found.paths.len()), (Amount::TooMany, MOST));
        let crowd: Vec<(String, String)> = (0..=MOST).map(|n| (format!("l{n}"), "d".to_owned())).collect();
        let crowd: Vec<(&str, &str)> = crowd.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            links(&crowd).aliases(&RelPath::new("d/f").unwrap(), Thing::Other).amount,
            Amount::TooMany
        );
    }

    #[test]
    fn behind_the_budget_of_all_paths_each_has_too_many_names() {
        let links = links(&[("x", "d")]);
        let amount = || links.aliases(&RelPath::new("d/f").unwrap(), Thing::Other).amount;
        assert_eq!(amount(), Amount::All);
        links.spent.set(BUDGET + 1);
        assert_eq!(amount(), Amount::TooMany);
    }

    /// What it costs to learn the links, and to find the names of some paths.
    fn cost(list: &[(String, String)], paths: &[String]) -> usize {
        let list: Vec<(&str, &str)> = list.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let links = links(&list);
        for path in paths {
            drop(links.aliases(&RelPath::new(path.as_str()).unwrap(), Thing::Link));
        }
        links.spent.get()
    }

    #[test]
    fn twice_the_links_are_twice_the_work() {
        let long = |count: usize| {
            let text = format!("{}{}", "a/".repeat(100), "../".repeat(90));
            cost(&(0..count).map(|at| (format!("l{at}"), text.clone())).collect::<Vec<_>>(), &[])
        };
        let (one, two) = (long(100), long(200));
        assert!(two <= 2 * one + 100, "{one}, then {two}");
        let deep = |depth: usize| {
            let list = [("k".to_owned(), "d".to_owned())];
            cost(&list, &(0..10).map(|at| format!("{}f{at}", "d/".repeat(depth))).collect::<Vec<_>>())
        };
        let (one, two) = (deep(500), deep(1000));
        assert!(two <= 2 * one + 100, "{one}, then {two}");
    }

    #[test]
    fn links_that_branch_without_end_are_given_up() {
        let mut list = vec![("x".to_owned(), format!("{}../y", "l0/l1/l2/l3/".repeat(10)))];
        for at in 0..4 {
            list.extend((0..4).map(|to| (format!("l{at}"), format!("d{to}"))));
            list.extend(
                (0..4).flat_map(|to| (0..4).map(move |on| (format!("d{to}/l{at}"), format!("../d{on}")))),
            );
        }
        let list: Vec<(&str, &str)> = list.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(links(&list).aliases(&RelPath::new("f").unwrap(), Thing::Other).amount, Amount::TooMany);
    }
}
