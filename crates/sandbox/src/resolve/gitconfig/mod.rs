//! Git's configuration inside. Of the user's own: the files themselves, or a filtered copy. Of the repository's: the file
//! itself, or a copy without passwords. What is shown with a password in it is named in a warning.

mod credentials;
mod excludes;
mod filter;
mod include;
mod reader;

use std::path::PathBuf;

use super::case::{Case, Home};
use super::source::Workspace;
use super::warnings;
use crate::facts::Kind;
use crate::model::container::Lowers;
use crate::model::mount::{Content, HostAccess, Mount, Ownership};
use crate::model::path::HostPath;
use crate::model::resolved::{Mode, RepositoryConfig, SourceKind, Warning};
use crate::model::spec::{Base, GitConfig, WorkspaceMode};

/// A larger configuration is not looked through.
const SIZE: u64 = 1 << 20;

pub use credentials::without_passwords;
pub use excludes::ignore_file;

/// The files with settings in a git directory.
const SETTINGS: &[&str] = &["config", "config.worktree"];
/// Shown as they are in mode `literal`.
pub(super) const FILES: &[&str] = &[".gitconfig", ".config/git/config", ".gitignore_global"];
/// Read in this order for the filtered copy; a later one wins, as with git.
const CONFIGURATION: &[&str] = &[".config/git/config", ".gitconfig"];

pub(super) fn mounts(case: &Case<'_>, workspace: &Workspace, found: &mut Vec<Warning>) -> Vec<Mount> {
    let Some(home) = case.home.as_ref().filter(|home| !workspace.holds(&home.real.same_inside())) else {
        return Vec::new();
    };
    match case.spec.git_config.value {
        GitConfig::Off => Vec::new(),
        GitConfig::Literal => FILES.iter().filter_map(|name| literal(case, home, workspace, name)).collect(),
        GitConfig::Sanitized => sanitized(case, home, workspace, found).into_iter().collect(),
    }
}

fn literal(case: &Case<'_>, home: &Home, workspace: &Workspace, name: &str) -> Option<Mount> {
    let target = home.real.join(name).same_inside();
    if workspace.holds(&target) {
        return None;
    }
    let source = HostPath::new(regular(case, home, name)?).ok()?;
    let content = Content::Host {
        identity: case.identity(&source),
        source,
        access: HostAccess::Read,
        ownership: Ownership::Caller,
    };
    let reason = "the user's git configuration".to_owned();
    Some(Mount { target, content, reason, origin: case.spec.git_config.origin.clone() })
}

/// How the repository's own configuration is shown, and a warning for every file that is shown with a password in it.
pub(super) fn of_repository(
    case: &Case<'_>,
    workspace: &Workspace,
    mode: &Mode,
    found: &mut Vec<Warning>,
) -> RepositoryConfig {
    let wanted = case.spec.git_config.value != GitConfig::Literal;
    let one = case.container.is_some_and(|container| container.lowers == Lowers::One);
    let can = match mode.value {
        WorkspaceMode::Live => false,
        WorkspaceMode::Copy => true,
        WorkspaceMode::Auto | WorkspaceMode::Overlay => !one || case.spec.base.value == Base::Store,
    };
    let shown = if wanted && can { RepositoryConfig::WithoutPasswords } else { RepositoryConfig::AsItIs };
    let own = match &workspace.kind {
        SourceKind::Plain => None,
        SourceKind::Git => Some(workspace.root.join(".git")),
        SourceKind::LinkedWorktree { common } => Some(common.clone()),
    };
    let own = own.filter(|_| shown == RepositoryConfig::AsItIs);
    let own = own
        .iter()
        .flat_map(|directory| SETTINGS.iter().map(|name| directory.join(name).as_path().to_owned()));
    let home = case.home.as_ref().filter(|_| case.spec.git_config.value == GitConfig::Literal);
    let users =
        home.into_iter().flat_map(|home| CONFIGURATION.iter().filter_map(|name| regular(case, home, name)));
    let remedy = match (case.spec.git_config.value, mode.value) {
        (GitConfig::Literal, _) => "`--git-config sanitized` leaves them out",
        (_, WorkspaceMode::Live) => "the directory itself is shown, so they cannot be left out",
        _ => "`--mode copy` leaves them out, an overlay of this engine cannot",
    };
    for path in own.chain(users) {
        let Ok(text) = case.facts.read_small(&path, SIZE) else { continue };
        let names = credentials::found(&text);
        if !names.is_empty() {
            found.push(warnings::git_passwords(&path, &names, remedy));
        }
    }
    shown
}

/// The readable regular file at `name`, or the one a link there leads to. A link to a credential store is
/// no configuration.
fn regular(case: &Case<'_>, home: &Home, name: &str) -> Option<PathBuf> {
    let place = home.real.join(name);
    case.facts.kind(&place).ok()?;
    let real = case.facts.real_path(&place).ok()?;
    let entry = case.facts.kind(&real).ok()?;
    let store = real.file_name().is_some_and(|name| name == ".git-credentials" || name == "credentials");
    (entry.kind == Kind::File && entry.readable && !store && real.to_str().is_some()).then_some(real)
}

fn sanitized(case: &Case<'_>, home: &Home, workspace: &Workspace, found: &mut Vec<Warning>) -> Option<Mount> {
    let target = home.real.join(".gitconfig").same_inside();
    if workspace.holds(&target) {
        return None;
    }
    let mut reading = include::Reading::new(case, home, workspace);
    for name in CONFIGURATION {
        if let Some(real) = regular(case, home, name) {
            reading.file(&real);
        }
    }
    found.extend(reading.skipped.iter().map(|(path, why)| warnings::git_config_skipped(path, why)));
    let contents = filter::written(&reading.entries);
    if contents.is_empty() {
        return None;
    }
    let reason = "the harmless part of the user's git configuration".to_owned();
    Some(Mount {
        target,
        content: Content::Text { contents },
        reason,
        origin: case.spec.git_config.origin.clone(),
    })
}
