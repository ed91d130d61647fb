//! The policy for people: every setting, mount and variable with its origin.

use std::path::Path;

use sandtable_app::config::key::{Heading, InPolicy, Key};
use sandtable_app::config::layer::Layer;
use sandtable_app::redaction;
use sandtable_sandbox::model::limits::Need;
use sandtable_sandbox::model::mount::{Content, HostAccess, Mount};
use sandtable_sandbox::model::resolved::{ResolvedSpec, Seed, SourceKind, Variable};
use sandtable_sandbox::model::setting::{Origin, Setting};

use super::{escape, table};

/// The whole policy.
pub(crate) fn render(layer: &Layer, resolved: &ResolvedSpec) -> String {
    let mut out = settings(layer, resolved);
    out.push_str("\nmounts\n");
    let mounts: Vec<_> = resolved.mounts.iter().map(mount).collect();
    out.push_str(&indented(&table::aligned(&mounts)));
    if !resolved.seeds.is_empty() {
        out.push_str("\ncopied into the private home\n");
        let seeds: Vec<_> = resolved.seeds.iter().map(seed).collect();
        out.push_str(&indented(&table::aligned(&seeds)));
    }
    out.push_str("\nenvironment\n");
    let variables: Vec<_> = resolved.environment.iter().map(variable).collect();
    out.push_str(&indented(&table::aligned(&variables)));
    if !resolved.warnings.is_empty() {
        out.push_str("\nwarnings\n");
        let warnings = resolved.warnings.iter();
        let rows: Vec<_> =
            warnings.map(|warning| [escape::line(&warning.code), escape::line(&warning.text)]).collect();
        out.push_str(&indented(&table::aligned(&rows)));
    }
    out
}

/// The settings alone: what holds, and who says so.
pub(crate) fn settings(layer: &Layer, resolved: &ResolvedSpec) -> String {
    let source = match &resolved.source.kind {
        SourceKind::Git => "a git repository".to_owned(),
        SourceKind::LinkedWorktree { common } => format!("a worktree of {}", path(common.as_path())),
        SourceKind::Plain => "no git repository".to_owned(),
    };
    let mut rows = vec![["source".to_owned(), path(resolved.source.root.as_path()), source]];
    for key in Key::ALL {
        let listed = |origin: &Origin| match key.row().policy {
            InPolicy::Always => true,
            InPolicy::WhenSet => *origin != Origin::Default,
            InPolicy::Never => false,
        };
        let values = layer.values(*key);
        if values.is_empty() && *key == Key::Disk {
            rows.push(default_disk());
        }
        let values = values.into_iter().filter(|setting| listed(&setting.origin));
        rows.extend(values.map(|setting| row(*key, held(*key, &setting, resolved), &setting.origin)));
    }
    format!("settings\n{}", indented(&table::aligned(&rows)))
}

/// What is in the place of a setting. Of some it is known only now what they mean here.
fn held(key: Key, setting: &Setting<String>, resolved: &ResolvedSpec) -> String {
    match key {
        Key::Engine => format!("{} ({})", resolved.engine, escape::line(&resolved.engine_reason)),
        Key::Directory => path(resolved.directory.as_path()),
        Key::Mode => mode(resolved),
        Key::Network => network(resolved),
        _ if key.row().heading == Heading::Limits && Need::of(&setting.origin) == Need::Preferred => {
            format!("{} (where possible)", setting.value)
        }
        _ => escape::name(&setting.value),
    }
}

fn mode(resolved: &ResolvedSpec) -> String {
    format!("{} ({})", resolved.mode.value, escape::line(&resolved.mode.reason))
}

fn network(resolved: &ResolvedSpec) -> String {
    match &resolved.network_helper {
        Some(helper) => format!("{} (through {})", resolved.network.value, path(helper.program.as_path())),
        None => resolved.network.value.to_string(),
    }
}

/// The disk budget that holds where nobody named one.
fn default_disk() -> [String; 3] {
    row(Key::Disk, "half of what is free".to_owned(), &Origin::Default)
}

/// Each line two blanks further in.
pub(crate) fn indented(text: &str) -> String {
    text.lines().flat_map(|line| ["  ", line, "\n"]).collect()
}

fn row(key: Key, value: String, origin: &Origin) -> [String; 3] {
    [key.word().to_owned(), value, escape::line(&origin.to_string())]
}

fn path(path: &Path) -> String {
    escape::name(&path.to_string_lossy())
}

fn mount(mount: &Mount) -> [String; 5] {
    let (access, what) = match &mount.content {
        Content::Host { source, access: HostAccess::Read, .. } => ("ro", path(source.as_path())),
        Content::Host { source, access: HostAccess::Write, .. } => ("rw", path(source.as_path())),
        Content::Cow { source, .. } => ("cow", path(source.as_path())),
        Content::Copy { source, .. } => ("rw", format!("a copy of {}", path(source.as_path()))),
        Content::Private { .. } => ("rw", "the sandbox's own".to_owned()),
        Content::Scratch { .. } => ("rw", "empty, in memory".to_owned()),
        Content::Empty => ("ro", "empty".to_owned()),
        Content::Link { to } => ("ro", format!("link to {}", escape::name(to))),
        Content::Text { .. } => ("ro", "a file of our own".to_owned()),
        Content::Masked => ("--", "hidden".to_owned()),
        Content::Agent => ("ro", "your ssh-agent".to_owned()),
        Content::Processes => ("ro", "the sandbox's processes".to_owned()),
        Content::Devices => ("rw", "a few harmless devices".to_owned()),
    };
    let origin = escape::line(&mount.origin.to_string());
    [path(mount.target.as_path()), access.to_owned(), what, escape::line(&mount.reason), origin]
}

fn seed(seed: &Seed) -> [String; 2] {
    [path(seed.source.as_path()), escape::line(&seed.reason)]
}

fn variable((name, variable): (&String, &Variable)) -> [String; 3] {
    let shown = escape::name(redaction::shown(name, variable));
    [escape::line(name), shown, escape::line(&variable.origin.to_string())]
}

#[cfg(test)]
pub(crate) mod tests;
