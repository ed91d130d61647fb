//! Plans and questions about them, for people. Plans are foreign: every text of theirs passes [`escape`].

use std::fmt::Write as _;

use sandtable_sandbox::session::LayerSize;
use sandtable_tools::build::DepsMode;
use sandtable_tools::consent::{Question, Voucher, voucher};
use sandtable_tools::plan::diff::Change;
use sandtable_tools::plan::{Download, Plan, Step};

use super::{escape, summary, table};

/// A plan, all of it but the texts of patches.
pub(crate) fn plan(plan: &Plan) -> String {
    let mut out = format!("{} for {}\n", plan.title(), plan.platform);
    writeln!(out, "digest    {}", plan.digest()).expect("a string takes everything");
    section(&mut out, "downloads", &plan.downloads.iter().map(download).collect::<Vec<_>>());
    let steps: Vec<[String; 2]> =
        plan.steps.iter().enumerate().map(|(index, it)| [format!("{}", index + 1), step(it)]).collect();
    section(&mut out, "steps", &steps);
    let verify: Vec<[String; 2]> = plan
        .verify
        .iter()
        .map(|it| {
            [
                escape::command(&it.command),
                it.patterns.iter().map(|text| escape::line(text)).collect::<Vec<_>>().join(", "),
            ]
        })
        .collect();
    section(&mut out, "verify", &verify);
    let binaries = plan.provides.binaries.iter().map(|path| [format!("{}/{path}", plan.place())]);
    section(&mut out, "programs", &binaries.collect::<Vec<_>>());
    let env = plan.provides.env.iter().map(|(name, value)| [format!("{name}={}", escape::line(value))]);
    section(&mut out, "variables", &env.collect::<Vec<_>>());
    let all = plan.leaves_first();
    let below: Vec<[String; 4]> = all[..all.len() - 1].iter().map(|it| dependency(plan, it)).collect();
    section(&mut out, "dependencies", &below);
    let files: Vec<&Download> = all.iter().flat_map(|plan| &plan.downloads).collect();
    writeln!(out, "in all    {} files, {}", files.len(), bytes(total(&files)))
        .expect("a string takes everything");
    out
}

/// A plan, and what carrying it out would do: who sees what, what is open, what stays.
pub(crate) fn explained(plan: &Plan, deps: DepsMode) -> String {
    let mut out = self::plan(plan);
    for made in plan.leaves_first() {
        writeln!(out, "to make {}", made.title()).expect("a string takes everything");
        let mut rows = vec![["network".to_owned(), "none".to_owned()]];
        let seen: &[Plan] = if deps == DepsMode::Image { &[] } else { &made.dependencies };
        rows.extend(seen.iter().map(|it| ["read-only".to_owned(), it.place().to_string()]));
        rows.push(["writable".to_owned(), made.place().to_string()]);
        let search: Vec<String> = seen.iter().flat_map(Plan::search).map(|path| path.to_string()).collect();
        if !search.is_empty() {
            rows.push(["PATH".to_owned(), search.join(":")]);
        }
        for line in table::aligned(&rows).lines() {
            writeln!(out, "  {line}").expect("a string takes everything");
        }
    }
    writeln!(out, "stays     {}", stays(deps)).expect("a string takes everything");
    out
}

/// What is left of a build.
pub(crate) fn stays(deps: DepsMode) -> &'static str {
    match deps {
        DepsMode::Store => {
            "the tool and its dependencies, read-only in the store, until `tool gc`; never on your PATH"
        }
        DepsMode::Isolated => "nothing: dependencies and downloads are made anew and removed",
        DepsMode::Image => {
            "the tool, read-only in the store, until `tool gc`; dependencies are the system's own"
        }
    }
}

/// What differs between two plans.
pub(crate) fn changes(changes: &[Change]) -> String {
    let mut out = String::new();
    for change in changes {
        for (mark, text) in [('-', &change.old), ('+', &change.new)] {
            if let Some(text) = text {
                writeln!(out, "{mark} {} = {}", escape::line(&change.place), escape::line(text))
                    .expect("a string takes everything");
            }
        }
    }
    out
}

/// Everything that a person needs to know to consent.
pub(crate) fn question(plan: &Plan, question: &Question, stays: &str) -> String {
    let mut out = format!("sandtable: {} did not come with the program. It asks for this:\n", plan.title());
    let mut rows = Vec::new();
    for item in &question.tools {
        if item.files.is_empty() {
            rows.push([
                format!("{} {}", item.name, item.version),
                item.voucher.to_string(),
                String::new(),
                String::new(),
            ]);
        }
        for file in &item.files {
            rows.push([
                format!("{} {}", item.name, item.version),
                item.voucher.to_string(),
                escape::line(&format!("{} {} {}", file.source, file.name, file.version)),
                file.size.map_or_else(|| "size unknown".to_owned(), bytes),
            ]);
        }
    }
    for line in table::aligned(&rows).lines() {
        writeln!(out, "  {line}").expect("a string takes everything");
    }
    for command in &question.commands {
        writeln!(out, "  runs: {}", escape::line(command)).expect("a string takes everything");
    }
    for variable in &question.variables {
        let why = variable.obeyed.map_or_else(String::new, |why| format!(" ({why})"));
        let value = escape::line(&format!("{}={}", variable.name, variable.value));
        writeln!(out, "  sets: {value}{why}").expect("a string takes everything");
    }
    let files: usize = question.tools.iter().map(|item| item.files.len()).sum();
    let network =
        if files == 0 { "nothing".to_owned() } else { format!("{files} files, {}", bytes(question.bytes)) };
    writeln!(out, "  fetches: {network}; what runs has no network").expect("a string takes everything");
    writeln!(out, "  stays: {stays}").expect("a string takes everything");
    writeln!(out, "  plan: {}", question.digest).expect("a string takes everything");
    out
}

fn section<const N: usize>(out: &mut String, title: &str, rows: &[[String; N]]) {
    if rows.is_empty() {
        return;
    }
    writeln!(out, "{title}").expect("a string takes everything");
    for line in table::aligned(rows).lines() {
        writeln!(out, "  {line}").expect("a string takes everything");
    }
}

fn download(it: &Download) -> [String; 4] {
    let origin = match &it.url {
        Some(url) => escape::line(url),
        None => escape::line(&format!("{} {} {}", it.source, it.name, it.version)),
    };
    [origin, it.file.to_string(), it.size.map_or_else(String::new, bytes), format!("sha256 {}", it.sha256)]
}

fn dependency(top: &Plan, it: &Plan) -> [String; 4] {
    let files: Vec<&Download> = it.downloads.iter().collect();
    let by: Vec<&str> = top
        .leaves_first()
        .iter()
        .filter(|plan| plan.dependencies.iter().any(|plan| plan.name == it.name))
        .map(|plan| plan.name.as_str())
        .collect();
    let who = match voucher(it) {
        Voucher::Builtin => "built-in",
        Voucher::Foreign => "foreign",
    };
    [it.title(), who.to_owned(), bytes(total(&files)), format!("for {}", by.join(", "))]
}

fn step(step: &Step) -> String {
    let value = serde_json::to_value(step).unwrap_or_default();
    let fields = value.as_object().into_iter().flatten().filter(|(key, _)| *key != "action");
    let fields = fields.map(|(key, value)| match value.as_str() {
        Some(text) => format!("{key}={}", escape::line(text)),
        None => format!("{key}={}", escape::line(&value.to_string())),
    });
    format!("{} {}", step.action(), fields.collect::<Vec<_>>().join(" "))
}

fn total(files: &[&Download]) -> u64 {
    files.iter().filter_map(|file| file.size).sum()
}

/// An amount of bytes, for people.
pub(crate) fn bytes(bytes: u64) -> String {
    summary::size(LayerSize { bytes, complete: true })
}

#[cfg(test)]
mod tests;
