//! Documents: all reachable, all true about the tests they name, none about this machine.

use std::collections::BTreeSet;
use std::path::Path;

use sandtable_testkit::process::Run;
use sandtable_testkit::require::{skip, workspace};
use sandtable_testkit::traceability::{Row, Status, rows};

use super::{assert_none, rust};

#[test]
fn every_document_is_linked() {
    let top = workspace();
    let read = |path: &str| fs_err::read_to_string(top.join(path)).unwrap_or_default();
    let entrances = read("README.md") + &read("docs/architecture.md");
    let documents = fs_err::read_dir(top.join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let missing: Vec<String> = documents
        .map(|name| name.into_string().unwrap())
        .filter(|name| {
            Path::new(name).extension().is_some_and(|end| end == "md") && name != "architecture.md"
        })
        .filter(|name| {
            !entrances.contains(&format!("({name})")) && !entrances.contains(&format!("docs/{name}"))
        })
        .collect();
    assert_none("neither README.md nor docs/architecture.md links to", &missing);
}

#[test]
fn traceability_knows_every_item_and_names_real_tests() {
    let Ok(text) = fs_err::read_to_string(workspace().join("docs/internal/traceability.md")) else {
        return skip("docs/internal/traceability.md is not there");
    };
    let rows = rows(&text);
    let ids: BTreeSet<&str> = rows.iter().map(|row| row.id).collect();
    let missing: Vec<String> = wanted_ids().into_iter().filter(|id| !ids.contains(id.as_str())).collect();
    assert_none("items without a line", &missing);

    let tests = test_names();
    let wrong =
        rows.iter().filter_map(|row| Some(format!("{}: {}", row.id, wrong_status(&row.status, &tests)?)));
    assert_none("wrong status", &wrong.collect::<Vec<_>>());
    let said = document("internal/departures.md");
    assert_none("neither plainly done nor in docs/internal/departures.md", &unsaid(&rows, &said));
}

#[test]
fn reports_name_real_tests() {
    let tests = test_names();
    for name in ["internal/mutations.md", "internal/reproductions.md"] {
        let text = document(name);
        let named: Vec<&str> = text.split('`').skip(1).step_by(2).filter(|word| is_test_name(word)).collect();
        assert!(named.len() > 20, "{name} names {} tests", named.len());
        let unknown = named.into_iter().filter(|test| !tests.contains(*test)).map(str::to_owned);
        assert_none(&format!("{name} names what is not a test"), &unknown.collect::<Vec<_>>());
    }
}

/// Names of tests are sentences; modules and options are shorter.
fn is_test_name(word: &str) -> bool {
    let is_letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    word.bytes().all(is_letter) && word.matches('_').count() > 2
}

#[test]
fn users_can_read_about_every_departure() {
    assert_none("no such entry or heading", &unexplained(&document("internal/departures.md"), document));
}

fn document(name: &str) -> String {
    fs_err::read_to_string(workspace().join("docs").join(name)).unwrap()
}

/// The rows of the list of departures that name no entry (`**Title`) or heading (`## Title`) of a document.
fn unexplained(departures: &str, document: impl Fn(&str) -> String) -> Vec<String> {
    let rows = departures.lines().filter(|line| line.starts_with('|')).skip(2);
    let is_missing = |row: &&str| {
        let place = row.trim_matches('|').rsplit('|').next().unwrap_or_default().trim();
        match place.split_once(": ") {
            Some(("internal", reason)) => reason.is_empty(),
            Some((name, title)) => {
                let text = document(name);
                !text.contains(&format!("**{title}")) && !text.contains(&format!("## {title}\n"))
            }
            None => true,
        }
    };
    rows.filter(is_missing).map(str::to_owned).collect()
}

#[test]
fn a_departure_that_users_cannot_read_about_is_noticed() {
    let rows = "| a | b |\n|---|---|\n| **S1** | a.md: Entry |\n| **S2** | a.md: Heading |\n| **S3** | internal: why |\n";
    let text = |_: &str| "- **Entry**: more\n## Heading\n".to_owned();
    assert_eq!(unexplained(rows, text), [""; 0]);
    let wrong = ["| **S4** | a.md: Headin |", "| **S5** | nowhere |", "| **S6** | internal:  |"];
    assert_eq!(unexplained(&format!("{rows}{}\n", wrong.join("\n")), text), wrong);
}

/// What has to be said about rows that are done differently, not at all, or in part, and is not.
fn unsaid(rows: &[Row<'_>], said: &str) -> Vec<String> {
    let missing = |row: &&Row<'_>| match row.status {
        Status::Reason { kind: "departure" | "declined", .. } => !said.contains(&format!("**{}**", row.id)),
        _ => false,
    };
    let mut unsaid: Vec<String> = rows.iter().filter(missing).map(|row| row.id.to_owned()).collect();
    let logic = rows.iter().filter(|row| matches!(row.status, Status::Logic(_)));
    let logic = runs(&logic.map(|row| row.id).collect::<Vec<_>>());
    unsaid.extend((!said.contains(&logic)).then(|| format!("`logic`: {logic}")));
    unsaid
}

/// Ids in the order of the table, with those that follow each other as one: `R7.1–11`.
fn runs(ids: &[&str]) -> String {
    let mut runs: Vec<(&str, u32, u32)> = Vec::new();
    for id in ids {
        let prefix = id.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let number = id[prefix.len()..].parse().unwrap_or_default();
        match runs.last_mut() {
            Some((before, _, last)) if *before == prefix && *last + 1 == number => *last = number,
            _ => runs.push((prefix, number, number)),
        }
    }
    let text = |(prefix, first, last): &(&str, u32, u32)| {
        if first == last { format!("{prefix}{first}") } else { format!("{prefix}{first}–{last}") }
    };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[test]
fn what_is_not_said_is_noticed() {
    let text =
        "| R1.1 | a | test:a |\n| R7.1 | b | logic:a |\n| R7.2 | c | logic:a |\n| S1.3 | d | departure:b |\n";
    assert_eq!(unsaid(&rows(text), "R7.1–2 and **S1.3**"), [""; 0]);
    assert_eq!(unsaid(&rows(text), "R7.1 and S1.3"), ["S1.3", "`logic`: R7.1–2"]);
}

/// The items whose numbers are fixed by the documents they come from.
fn wanted_ids() -> Vec<String> {
    let groups = [
        ("R1.", 1..=2),
        ("R2.", 1..=1),
        ("R3.", 1..=7),
        ("R4.", 1..=4),
        ("R5.", 1..=2),
        ("R6.", 1..=2),
        ("R7.", 1..=11),
        // The pseudocode leaves gaps between its functions.
        ("S000.", 10..=23),
        ("S000.", 30..=45),
        ("S000.", 50..=55),
        ("S000.", 60..=89),
        ("S000.anti", 1..=7),
        ("S001.row", 1..=26),
        ("S001.test", 1..=8),
        ("S002.lim", 1..=4),
        ("S003.F", 1..=9),
        ("S003.G", 1..=6),
        ("S003.flow", 1..=3),
        ("S003.test", 1..=5),
        ("S004.", 1..=35),
    ];
    groups.into_iter().flat_map(|(prefix, range)| range.map(move |n| format!("{prefix}{n}"))).collect()
}

/// What is wrong with a status, if anything.
fn wrong_status(status: &Status<'_>, tests: &BTreeSet<String>) -> Option<String> {
    if let Status::Unknown(text) = status {
        return Some(format!("`{text}` is not a status"));
    }
    let unknown = |name: &&&str| !tests.contains(name.rsplit("::").next().unwrap_or(name));
    let bad: Vec<&&str> = status.tests().iter().filter(unknown).collect();
    (!bad.is_empty()).then(|| format!("no such test {bad:?}"))
}

/// The names of all test functions.
fn test_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in rust() {
        let mut after_attribute = false;
        for line in file.text.lines().map(str::trim) {
            if line.starts_with("#[test]") {
                after_attribute = true;
            } else if after_attribute && let Some(rest) = line.strip_prefix("fn ") {
                names.extend(rest.split(['(', '<']).next().map(str::to_owned));
                after_attribute = false;
            }
        }
    }
    names
}

#[test]
fn no_file_names_this_machine_or_a_registry() {
    let words = [
        concat!("/wo", "rk/"),
        concat!("/tmp", "/wt"),
        concat!("/tmp", "/brief"),
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("registry.npmjs", ".org"),
        concat!("ghcr", ".io"),
        concat!("quay", ".io"),
        concat!("proxy.golang", ".org"),
    ];
    let top = workspace();
    let git =
        Run::new("git", &top).variable("PATH", sandtable_testkit::env::PATH).variable("HOME", "/nonexistent");
    let listed = git.args(["-c", "safe.directory=*", "ls-files", "-z"]).ended();
    if listed.code != 0 {
        return skip("not a git checkout");
    }
    let mut found = Vec::new();
    // The lock file is written by cargo, which puts the registry into every entry.
    for name in listed.stdout.split('\0').filter(|name| !name.is_empty() && *name != "Cargo.lock") {
        let Ok(text) = fs_err::read_to_string(top.join(name)) else { continue };
        let lines = text.lines().enumerate().filter(|(_, line)| words.iter().any(|word| names(line, word)));
        found.extend(lines.map(|(index, line)| format!("{name}:{}: {}", index + 1, line.trim())));
    }
    assert_none("a path of this machine or the host of a registry", &found);
}

/// Whether a line has the word, not as the tail of a longer one: `/srv/x` is not `/x`.
fn names(line: &str, word: &str) -> bool {
    let whole = |(at, _): (usize, &str)| !line[..at].ends_with(|c: char| c.is_alphanumeric());
    line.match_indices(word).any(whole)
}

#[test]
fn a_forbidden_word_is_found_only_where_it_stands_alone() {
    assert!(names("see /x/y", "/x/") && names("/x/", "/x/") && names("a /srv/x/ or /x/", "/x/"));
    assert!(!names("/srv/x/y", "/x/"));
}
