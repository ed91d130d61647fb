//! The page `docs/settings.md`, made from the table. `SANDTABLE_UPDATE=1` writes it.

use std::fmt::Write as _;

use sandtable_testkit::require;

use super::key::{Heading, Key, Kind};
use super::names::{self, Dialect};

const INTRODUCTION: &str = "\
# Settings

Each setting is an option of the command line, a variable and a key of configuration files. In order of precedence, highest first:
option, `SANDTABLE_*` variable, `LLXPRT_SANDBOX_*` and `SANDBOX_*` variable, the project's `.sandtable.toml`, the profile,
`~/.config/sandtable/config.toml`, the default. Lists from several sources are joined, except `publish` and `engine_flags`, where
only the list with the highest precedence applies. A project's file can only narrow the policy, until you run `sandtable trust`.
`sandtable policy show` prints each value and its origin.

The variables of the llxprt-code launcher (`LLXPRT_SANDBOX_*`, `SANDBOX_*`) also accept its values: `on` and `off` for the network, `1`
for any engine.

This page is generated from the table of settings in `crates/app/src/config/table.rs`.
";

#[test]
fn the_reference_page_is_what_the_table_says() {
    let path = require::workspace().join("docs/settings.md");
    let page = page();
    if require::variable("SANDTABLE_UPDATE").is_some() {
        fs_err::write(&path, &page).expect("the tree can be written");
    }
    let written = fs_err::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/settings.md is not up to date: run this test with SANDTABLE_UPDATE=1");
}

#[test]
fn rows_of_one_heading_stand_together_in_the_order_of_help() {
    let mut headings: Vec<Heading> = Key::ALL.iter().map(|key| key.row().heading).collect();
    headings.dedup();
    assert_eq!(headings, Heading::ALL);
}

#[test]
fn every_default_has_a_reason_and_every_setting_help_that_fits_a_line() {
    for key in Key::ALL {
        assert!(key.row().default.is_none_or(|default| default.reason.len() > 10), "{}", key.word());
        assert!((10..90).contains(&key.help().len()) && !key.help().ends_with('.'), "{}", key.word());
    }
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for heading in Heading::ALL {
        write!(page, "\n## {}\n", heading.title()).expect("a string has room");
        for key in Key::ALL.iter().filter(|key| key.row().heading == heading) {
            page.push_str(&section(*key));
        }
    }
    page
}

fn section(key: Key) -> String {
    let help = key.long_help().unwrap_or_else(|| key.help());
    let default = key
        .row()
        .default
        .map_or_else(|| "none".to_owned(), |default| format!("`{}`: {}", default.value, default.reason));
    let launcher =
        names::all().filter(|variable| variable.key == key && variable.dialect == Dialect::Launcher);
    let variables: Vec<String> =
        std::iter::once(key.variable()).chain(launcher.map(|variable| variable.name)).map(code).collect();
    let rows = [
        ("option", options(key)),
        ("variable", variables.join(", ")),
        ("file", in_file(key)),
        ("default", default),
        ("a project's file", key.rule()),
    ];
    let mut table = String::from("| | |\n|---|---|\n");
    for (what, says) in rows {
        writeln!(table, "| {what} | {} |", says.replace('|', "\\|")).expect("a string has room");
    }
    format!("\n### `{}`\n{help}\n\n{table}", key.word())
}

/// The options, shorter names first.
fn options(key: Key) -> String {
    let flag = key.row().flag;
    let value = if flag.value.is_empty() { String::new() } else { format!(" {}", flag.value) };
    let on = flag.short.map(|short| format!("`-{short}{value}`")).into_iter();
    let on = on.chain([format!("`{}{value}`", flag.long)]);
    let off = flag.negative.into_iter();
    let off = off.flat_map(|off| [format!("`-{}`", off.short), format!("`{}` (off)", off.long)]);
    on.chain(off).collect::<Vec<_>>().join(", ")
}

fn in_file(key: Key) -> String {
    let value = match key.kind() {
        Kind::Text | Kind::Path => "\"…\"",
        Kind::Switch => "true",
        Kind::List | Kind::Words | Kind::Line => "[\"…\"]",
    };
    format!("`{} = {value}`", key.word())
}

fn code(name: &str) -> String {
    format!("`{name}`")
}
