//! The policy for people: every setting, mount and variable with its origin.

use std::path::Path;

use sandtable_app::config::key::Key;
use sandtable_app::redaction;
use sandtable_sandbox::model::limits::{Limits, Need};
use sandtable_sandbox::model::mount::{Content, HostAccess, Mount};
use sandtable_sandbox::model::resolved::{ResolvedSpec, Seed, SourceKind, Variable};
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::{Lifetime, SourceGuard, Spec, Strictness};

use super::{escape, table};

/// The whole policy.
pub(crate) fn render(spec: &Spec, resolved: &ResolvedSpec) -> String {
    let mut out = settings(spec, resolved);
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
pub(crate) fn settings(spec: &Spec, resolved: &ResolvedSpec) -> String {
    let source = match &resolved.source.kind {
        SourceKind::Git => "a git repository".to_owned(),
        SourceKind::LinkedWorktree { common } => format!("a worktree of {}", path(common.as_path())),
        SourceKind::Plain => "no git repository".to_owned(),
    };
    let engine = format!("{} ({})", resolved.engine, escape::line(&resolved.engine_reason));
    let mut rows = vec![
        row(Key::Engine, engine, &spec.engine.origin),
        row(Key::Profile, spec.profile.value.to_string(), &spec.profile.origin),
        ["source".to_owned(), path(resolved.source.root.as_path()), source],
        row(Key::Directory, path(resolved.directory.as_path()), &spec.directory.origin),
    ];
    if let Some(image) = &spec.image {
        rows.insert(1, row(Key::Image, escape::name(image.value.as_str()), &image.origin));
    }
    if let Some(name) = &spec.name {
        rows.push(row(Key::Name, name.value.to_string(), &name.origin));
    }
    let hidden = resolved.hide.iter();
    rows.extend(hidden.map(|hide| row(Key::Hide, escape::name(&hide.value.to_string()), &hide.origin)));
    rows.extend([
        row(Key::Mode, mode(resolved), &spec.mode.origin),
        word(Key::Base, &spec.base),
        row(Key::Network, network(resolved), &spec.network.origin),
    ]);
    rows.extend(limits(&spec.limits));
    rows.extend([
        word(Key::SshAgent, &spec.ssh_agent),
        word(Key::GitConfig, &spec.git_config),
        word(Key::Secrets, &spec.secrets),
        switch(Key::Rm, &spec.lifetime, &Lifetime::Discard),
        switch(Key::BestEffort, &spec.strictness, &Strictness::BestEffort),
        switch(Key::AllowSource, &spec.source_guard, &SourceGuard::Allow),
    ]);
    format!("settings\n{}", indented(&table::aligned(&rows)))
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

/// The limits that somebody asked for, and the one that is always there.
fn limits(limits: &Limits) -> Vec<[String; 3]> {
    fn line<T: std::fmt::Display>(key: Key, limit: Option<&Setting<T>>) -> Option<[String; 3]> {
        limit.map(|limit| {
            let value = match Need::of(&limit.origin) {
                Need::Required => limit.value.to_string(),
                Need::Preferred => format!("{} (where possible)", limit.value),
            };
            row(key, value, &limit.origin)
        })
    }
    let all = [
        line(Key::Cpus, limits.cpus.as_ref()),
        line(Key::Memory, limits.memory.as_ref()),
        line(Key::Pids, limits.pids.as_ref()),
        line(Key::Disk, limits.disk.as_ref()).or_else(|| Some(default_disk())),
        line(Key::Timeout, limits.timeout.as_ref()),
    ];
    all.into_iter().flatten().collect()
}

/// The disk budget that holds where nobody named one.
fn default_disk() -> [String; 3] {
    row(Key::Disk, "half of what is free".to_owned(), &Origin::Default)
}

/// Each line two blanks further in.
pub(crate) fn indented(text: &str) -> String {
    text.lines().flat_map(|line| ["  ", line, "\n"]).collect()
}

fn word<T: std::fmt::Display>(key: Key, setting: &Setting<T>) -> [String; 3] {
    row(key, setting.value.to_string(), &setting.origin)
}

fn switch<T: PartialEq>(key: Key, setting: &Setting<T>, on: &T) -> [String; 3] {
    row(key, (setting.value == *on).to_string(), &setting.origin)
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
