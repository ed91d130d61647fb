//! Tools of ours in a sandbox: each is one read-only mount at its fixed place, with its programs on PATH.
//!
//! What the store of tools hands out is looked at again before it is shown. A path must be canonical, below the store, a
//! directory of ours that nobody else can write, and it can carry nothing that would end an entry of PATH. Whatever fails stops the
//! run and is named; no tool is left out quietly.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::case::Case;
use super::error::ResolveError;
use super::system;
use crate::facts::{Failure, Kind};
use crate::model::diagnosis::Fault;
use crate::model::mount::{Content, FileIdentity, HostAccess, Mount, Ownership};
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::{EngineName, Variable};
use crate::model::setting::{Origin, Setting};
use crate::model::tool::{ProvidedDep, ToolName};

/// Where below our state finished tools are. The store of tools writes them.
const STORE: &str = "tools";
/// The directory that holds all of ours inside; what the host has there is shown beside it.
const PLACE: &str = "/opt";
/// How many entries of it are shown one by one.
const MOST_ENTRIES: usize = 1000;

/// Why a tool is not shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolRefusal {
    #[error("engine `{engine}` cannot show tools: it shows no file at another place than its own")]
    Elsewhere { engine: EngineName },
    #[error("tool `{name}` is not in the store of tools: `{path}` is not below `{root}`")]
    Outside { name: ToolName, path: HostPath, root: HostPath },
    #[error("tool `{name}` cannot be shown: `{path}` {why}")]
    Path { name: ToolName, path: PathBuf, why: &'static str },
    #[error("tool `{name}` cannot be mounted at `{target}` from `{path}`{}", errno(why))]
    Unmountable {
        name: ToolName,
        target: BoxPath,
        path: HostPath,
        #[source]
        why: Failure,
    },
}

/// The kernel's word for a failure, where there is one.
fn errno(why: &Failure) -> &'static str {
    match why {
        Failure::Missing => " (ENOENT)",
        Failure::Denied => " (EACCES)",
        Failure::Other(_) => "",
    }
}

impl ToolRefusal {
    pub(super) fn fault(&self) -> Fault {
        match self {
            Self::Elsewhere { .. } => Fault::Input,
            Self::Outside { .. } | Self::Path { .. } | Self::Unmountable { .. } => Fault::Machine,
        }
    }

    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Elsewhere { .. } => "tools-elsewhere",
            Self::Outside { .. } => "tool-outside",
            Self::Path { .. } => "tool-path",
            Self::Unmountable { .. } => "tool-unmountable",
        }
    }

    pub(super) fn remedy(&self) -> String {
        match self {
            Self::Elsewhere { .. } => "leave out `--tool`, or use another engine".to_owned(),
            Self::Outside { .. } | Self::Path { .. } => {
                "remove it and let it be made again: `sandtable tool gc`".to_owned()
            }
            Self::Unmountable { path, .. } => {
                format!("`chmod u+rx` what leads to `{path}`, or remove it and let it be made again")
            }
        }
    }
}

/// One mount for each tool.
pub(super) fn mounts(case: &Case<'_>) -> Result<Vec<Mount>, ResolveError> {
    if !case.host.tools.is_empty() && !case.traits().has_views() {
        return Err(ResolveError::Tool(ToolRefusal::Elsewhere { engine: case.engine }));
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
pub(super) fn make_room(
    case: &Case<'_>,
    tools: &[Mount],
    system: &mut Vec<Mount>,
) -> Result<(), ResolveError> {
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

fn checked(case: &Case<'_>, tool: &ProvidedDep) -> Result<Content, ResolveError> {
    let name = || tool.name.clone();
    let refuse =
        |path: &Path, why| ResolveError::Tool(ToolRefusal::Path { name: name(), path: path.to_owned(), why });
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
        ResolveError::Tool(ToolRefusal::Unmountable { name: name(), target, path: path.clone(), why })
    };
    let real = case.facts.real_path(&path).map_err(unmountable)?;
    let real = HostPath::new(real).map_err(ResolveError::MountPath)?;
    if !real.is_within(&root) || real == root {
        return Err(ResolveError::Tool(ToolRefusal::Outside { name: name(), path: real, root }));
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
