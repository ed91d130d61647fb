//! Which module of a crate may use which other one. The list is in `docs/architecture.md`, where people read it. A folder
//! that only sorts modules is looked into: its modules are named with it.

use std::collections::{BTreeMap, BTreeSet};

use sandtable_testkit::require::workspace;

use super::{Source, assert_none, module, product};

/// Modules of a crate, each with those it uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Folders that are no modules in the sense of this test, with their crates.
const FOLDERS: [(&str, &str); 2] = [("launch", "inside"), ("launch", "outside")];

#[test]
fn modules_use_what_the_architecture_allows() {
    let text = fs_err::read_to_string(workspace().join("docs/architecture.md")).unwrap();
    let mut wrong = Vec::new();
    for (name, found) in graphs(&product()) {
        wrong.extend(differences(&found, &allowed(&text, &name)).map(|line| format!("{name}: {line}")));
    }
    assert_none("docs/architecture.md and the code differ", &wrong);
}

#[test]
fn modules_use_each_other_in_no_circle() {
    let mut found = Vec::new();
    for (name, graph) in graphs(&product()) {
        println!("{name}");
        for (module, uses) in &graph {
            println!("  {module}: {}", uses.iter().cloned().collect::<Vec<_>>().join(" "));
        }
        let circles = circles(&graph).into_iter();
        found.extend(
            circles.map(|circle| format!("{name}: {}", circle.into_iter().collect::<Vec<_>>().join(" "))),
        );
    }
    assert_none("modules of a crate use each other in a circle", &found);
}

fn graphs(files: &[&Source]) -> BTreeMap<String, Graph> {
    let mut graphs: BTreeMap<String, Graph> = BTreeMap::new();
    for file in files {
        let path = module(&file.path);
        let Some(name) = file.path.iter().nth(1).and_then(|name| name.to_str()) else { continue };
        let Some(own) = unit(name, &path) else { continue };
        let uses = graphs.entry(name.to_owned()).or_default().entry(own.clone()).or_default();
        let named = file.reading.named.iter().filter_map(|named| unit(name, &named.path));
        uses.extend(named.filter(|used| *used != own));
    }
    // What is named at the root of a crate and is no module of it (a type, a macro) has no place in the order.
    for graph in graphs.values_mut() {
        let modules: BTreeSet<String> = graph.keys().cloned().collect();
        for uses in graph.values_mut() {
            uses.retain(|name| modules.contains(name));
        }
    }
    graphs
}

/// The module of the crate `name` that a path into it belongs to.
fn unit(name: &str, path: &[impl AsRef<str>]) -> Option<String> {
    let first = path.first()?.as_ref();
    match path.get(1) {
        Some(second) if FOLDERS.contains(&(name, first)) => Some(format!("{first}::{}", second.as_ref())),
        _ => Some(first.to_owned()),
    }
}

/// The table below the heading of a crate: a module and what it may use, all in backticks.
fn allowed(text: &str, name: &str) -> Graph {
    let heading = format!("### Modules of `{name}`\n");
    let section = text.split_once(&heading).map_or("", |(_, rest)| rest);
    let section = section.split("\n#").next().unwrap_or_default();
    let words =
        |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(words);
        Some((cells.next()?.into_iter().next()?, cells.next()?.into_iter().collect()))
    };
    rows.filter_map(row).collect()
}

fn differences(found: &Graph, allowed: &Graph) -> impl Iterator<Item = String> {
    let pairs = |graph: &Graph| -> BTreeSet<String> {
        graph
            .iter()
            .flat_map(|(module, uses)| uses.iter().map(move |used| format!("`{module}` uses `{used}`")))
            .collect()
    };
    let (found, allowed) = (pairs(found), pairs(allowed));
    let new = found.difference(&allowed).map(|pair| format!("{pair}, which is not in the table"));
    let gone =
        allowed.difference(&found).map(|pair| format!("the table says that {pair}, which is no longer so"));
    new.chain(gone).collect::<Vec<_>>().into_iter()
}

/// Sets of modules each of which reaches all others of its set.
fn circles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![from]);
        while let Some(module) = waiting.pop() {
            let next = graph.get(module).into_iter().flatten();
            waiting.extend(next.filter(|used| seen.insert((*used).clone())));
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|module| (module, reached(module))).collect();
    let circle = |module: &String| -> BTreeSet<String> {
        reached[module]
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(module)))
            .cloned()
            .collect()
    };
    let all: BTreeSet<BTreeSet<String>> =
        graph.keys().map(circle).filter(|circle| !circle.is_empty()).collect();
    all.into_iter().collect()
}

#[test]
fn what_is_inside_a_sandbox_knows_nothing_of_outside() {
    let graph = &graphs(&product())["launch"];
    let inside = graph.iter().filter(|(module, _)| module.starts_with("inside"));
    let wrong: Vec<String> = inside
        .flat_map(|(module, uses)| uses.iter().map(move |used| format!("`{module}` uses `{used}`")))
        .filter(|line| line.contains("uses `outside"))
        .collect();
    assert!(graph.contains_key("inside::init"), "looked at the wrong names");
    assert_none("`inside` uses `outside`", &wrong);
}

fn sample(path: &str, text: &str) -> Source {
    Source::new(path.into(), text.to_owned())
}

#[test]
fn a_use_that_is_not_allowed_is_noticed_however_it_is_written() {
    let table = "### Modules of `sandbox`\n| module | may use |\n|---|---|\n| `merge` | `model` |\n| `model` | |\n### Other\n";
    for line in [
        "use crate::{model, session};",
        "use super::super::session::run;",
        "fn f() { print!(\"{}\", crate::session::A) }",
    ] {
        let files = [
            sample(
                "crates/sandbox/src/merge/plan.rs",
                &format!("#[cfg(test)]\nmod tests;\nuse crate::model;\n{line}"),
            ),
            sample("crates/sandbox/src/session.rs", ""),
            sample("crates/sandbox/src/model.rs", ""),
        ];
        let graphs = graphs(&files.iter().collect::<Vec<_>>());
        let wrong: Vec<String> = differences(&graphs["sandbox"], &allowed(table, "sandbox")).collect();
        assert_eq!(wrong, ["`merge` uses `session`, which is not in the table"], "{line}");
    }
}

#[test]
fn a_row_that_is_no_longer_so_is_noticed() {
    let (none, table) =
        (Graph::from([("a".into(), [].into())]), Graph::from([("a".into(), ["b".to_owned()].into())]));
    let wrong: Vec<String> = differences(&none, &table).collect();
    assert_eq!(wrong, ["the table says that `a` uses `b`, which is no longer so"]);
}

#[test]
fn a_circle_is_found_and_a_chain_is_not() {
    let graph = |pairs: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in pairs {
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
            graph.entry((*to).to_owned()).or_default();
        }
        graph
    };
    assert_eq!(circles(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])), []);
    let expected: BTreeSet<String> = ["b", "c", "d"].map(str::to_owned).into();
    assert_eq!(circles(&graph(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")])), [expected]);
}
