//! Tools of ours in a sandbox: each is one read-only mount at its fixed place, with its programs on PATH.
//!
//! What the store of tools hands out is looked at again before it is shown. A path must be canonical, below the store, a
//! directory of ours that nobody else can write, and it can carry nothing that would end an entry of PATH. Whatever fails stops the
//! run and is named; no tool is left out quietly.

use std::collections::BTreeMap;
use std::path::Path;

use super::case::Case;
use super::error::Error;
use super::system;
use super::tool_fault::ToolFault;
use crate::facts::Kind;
use crate::model::mount::{Content, FileIdentity, HostAccess, Mount, Ownership};
use crate::model::path::HostPath;
use crate::model::resolved::Variable;
use crate::model::setting::{Origin, Setting};
use crate::model::tool::ProvidedDep;

/// Where below our state finished tools are. The store of tools writes them.
const STORE: &str = "tools";
/// The directory that holds all of ours inside; what the host has there is shown beside it.
const PLACE: &str = "/opt";
/// How many entries of it are shown one by one.
const MOST_ENTRIES: usize = 1000;

/// One mount for each tool.
pub(super) fn mounts(case: &Case<'_>) -> Result<Vec<Mount>, Error> {
    if !case.host.tools.is_empty() && !case.engine.makes_views() {
        return Err(Error::Tool(ToolFault::Elsewhere { engine: case.engine }));
    }
    let mut mounts: Vec<Mount> = Vec::new();
    for tool in &case.host.tools {
        let content = checked(case, tool)?;
        // Two tools may need the same one.
        if mounts.iter().all(|mount| mount.target != tool.place) {
            let reason = format!("the tool {} {}", tool.name, tool.version);
            mounts.push(Mount { target: tool.place.clone(), content, reason, origin: origin(case, tool) });
        }
    }
    Ok(mounts)
}

/// Where the host has a directory that our tools stand below, its entries are shown one by one: nothing can be made in it.
pub(super) fn make_room(case: &Case<'_>, tools: &[Mount], system: &mut Vec<Mount>) -> Result<(), Error> {
    if tools.is_empty() {
        return Ok(());
    }
    let Some(place) = system.iter_mut().find(|mount| mount.target.as_path() == Path::new(PLACE)) else {
        return Ok(());
    };
    place.content = Content::Empty;
    let reason = place.reason.clone();
    let real = case.facts.real_path(PLACE).unwrap_or_else(|_| PLACE.into());
    for entry in case.facts.top_level(&real, MOST_ENTRIES).unwrap_or_default() {
        let path = real.join(&entry.name);
        let target = Path::new(PLACE).join(&entry.name);
        // Nothing of the host is shown at the place of ours.
        if tools.iter().any(|tool| tool.target.as_path().starts_with(&target)) {
            continue;
        }
        if let Some(content) = shown(case, &path) {
            system.push(system::mount(&target, content, &reason)?);
        }
    }
    Ok(())
}

/// What the tools set. PATH gets their directories in front; where an image knows its own PATH, whoever starts the command
/// puts them there.
pub(super) fn add_variables(case: &Case<'_>, environment: &mut BTreeMap<String, Variable>) {
    for tool in &case.host.tools {
        for (name, value) in &tool.env {
            environment.insert(name.clone(), Variable::open(value, origin(case, tool)));
        }
    }
    let search = ProvidedDep::search_path(&case.host.tools);
    if let (Some(path), false) = (environment.get_mut("PATH"), search.is_empty()) {
        path.value = format!("{}:{}", search.join(":"), path.value);
    }
}

/// What asked for a tool; one that another needs was asked for with it.
fn origin(case: &Case<'_>, tool: &ProvidedDep) -> Origin {
    let asked = case.spec.tools.iter().find(|Setting { value, .. }| value.name == tool.name);
    asked.or(case.spec.tools.first()).map_or(Origin::Default, |asked| asked.origin.clone())
}

fn checked(case: &Case<'_>, tool: &ProvidedDep) -> Result<Content, Error> {
    let name = || tool.name.clone();
    let refuse = |path: &Path, why| Error::Tool(ToolFault::Path { name: name(), path: path.to_owned(), why });
    let inside = std::iter::once(&tool.place).chain(&tool.search);
    for path in inside {
        let text = path.to_string();
        if text.contains(':') || text.chars().any(char::is_control) {
            return Err(refuse(
                path.as_path(),
                "has a colon or a control character, which cannot be on PATH",
            ));
        }
        if !path.is_within(&tool.place) {
            return Err(refuse(path.as_path(), "is not below the place of its tool"));
        }
    }
    let (path, root) = (tool.source.clone(), case.state.real.join(STORE));
    let unmountable = |why| {
        let target = tool.place.clone();
        Error::Tool(ToolFault::Unmountable { name: name(), target, path: path.clone(), why })
    };
    let real = case.facts.real_path(&path).map_err(unmountable)?;
    let real = HostPath::new(real).map_err(Error::MountPath)?;
    if !real.is_within(&root) || real == root {
        return Err(Error::Tool(ToolFault::Outside { name: name(), path: real, root }));
    }
    let entry = case.facts.kind(&real).map_err(unmountable)?;
    if entry.kind != Kind::Directory {
        return Err(refuse(real.as_path(), "is not a directory"));
    }
    if entry.uid != case.host.uid {
        return Err(refuse(real.as_path(), "does not belong to you"));
    }
    if entry.mode & 0o022 != 0 {
        return Err(refuse(real.as_path(), "can be written by others"));
    }
    let identity = Some(FileIdentity { device: entry.device, inode: entry.inode });
    Ok(Content::Host { source: real, access: HostAccess::Read, ownership: Ownership::Caller, identity })
}

/// An entry of the host's directory, if it can be shown.
fn shown(case: &Case<'_>, path: &Path) -> Option<Content> {
    match case.facts.kind(path).ok()?.kind {
        Kind::Symlink => Some(Content::Link { to: case.facts.read_link(path).ok()?.to_str()?.to_owned() }),
        Kind::Directory | Kind::File => Some(Content::Host {
            source: HostPath::new(path).ok()?,
            access: HostAccess::Read,
            ownership: Ownership::System,
            identity: None,
        }),
        Kind::Socket | Kind::Special => None,
    }
}
