//! Why a path is what it is inside: the deepest mount that holds it decides.

use std::path::{Component, Path, PathBuf};

use sandtable_sandbox::model::mount::{Access, Content, HostAccess, Mount, Ownership, Pins};
use sandtable_sandbox::model::path::BoxPath;
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::model::setting::Origin;
use sandtable_sandbox::model::spec::Secrets;
use sandtable_sandbox::resolve::says_secret;

use super::Why;

/// How many links of ours are followed.
const LINKS: usize = 8;

/// Why `asked`, an absolute path, is what it is.
pub fn path(asked: &BoxPath, resolved: &ResolvedSpec) -> Why {
    let mut notes = Vec::new();
    let at = followed(asked, resolved, &mut notes);
    let mount = resolved.mounts.at(&at);
    let hidden = masks(resolved) && mount.is_some_and(|mount| is_hidden_secret(mount, &at));
    let verdict = match resolved.mounts.access(&at) {
        _ if hidden => "nothing",
        Access::Nothing => "nothing",
        Access::Read => "read",
        Access::Write => "write",
    };
    notes.extend(mount.filter(|_| !hidden).and_then(|mount| consequence(&mount.content)).map(str::to_owned));
    let (because, origin) = match mount {
        _ if hidden => (
            "its name says secret, and such files are hidden".to_owned(),
            Some(resolved.secrets.origin.clone()),
        ),
        Some(mount) => (format!("`{}`: {}", mount.target, mount.reason), Some(mount.origin.clone())),
        None => ("no line of the policy shows it, and what is not shown is not there".to_owned(), None),
    };
    let change = if hidden { Some("`--secrets warn`".to_owned()) } else { change(&at, mount) };
    Why { subject: asked.to_string(), kind: "path", verdict, because, origin, notes, change }
}

/// The place that decides: links that the sandbox itself has are followed.
fn followed(asked: &BoxPath, resolved: &ResolvedSpec, notes: &mut Vec<String>) -> BoxPath {
    let mut at = asked.clone();
    for _ in 0..LINKS {
        let Some(Mount { target, content: Content::Link { to }, .. }) = resolved.mounts.at(&at) else {
            break;
        };
        let rest = at.below(target).expect("the mount holds it").to_owned();
        let base = target.parent().map(PathBuf::from).unwrap_or_default();
        let Ok(next) = BoxPath::new(plain(&base.join(to).join(rest))) else { break };
        notes.push(format!("`{target}` is a link to `{to}`"));
        at = next;
    }
    at
}

/// `path` with its `..` carried out by name.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
        plain
    })
}

/// What covers a workspace may be there for the sake of git alone.
fn masks(resolved: &ResolvedSpec) -> bool {
    resolved.secrets.value == Secrets::Mask
}

fn is_hidden_secret(mount: &Mount, at: &BoxPath) -> bool {
    let Content::Cow { pins: Pins::Present, .. } = mount.content else { return false };
    // The top-level `.git` is not searched for secrets.
    let below = at.below(&mount.target).filter(|below| !below.starts_with(".git"));
    below.and_then(Path::file_name).is_some_and(|name| says_secret(name.as_encoded_bytes()))
}

fn consequence(content: &Content) -> Option<&'static str> {
    match content {
        Content::Cow { .. } => {
            Some("changes go to the sandbox's own layer; the file of this machine stays as it is")
        }
        Content::Private { .. } => {
            Some("it belongs to the sandbox and is kept with it; nothing of this machine is seen")
        }
        Content::Scratch { .. } => Some("it is empty at the start and gone with the processes"),
        Content::Host { access: HostAccess::Write, .. } => Some("changes reach this machine at once"),
        Content::Host { access: HostAccess::Read, ownership: Ownership::System, .. } => {
            Some("only what everybody may read: a file for root or a group alone stays closed")
        }
        _ => None,
    }
}

fn change(at: &BoxPath, mount: Option<&Mount>) -> Option<String> {
    let show = || {
        format!("`-v {at}` shows what this machine has there, `-v {at}:{at}:cow` lets it be changed inside")
    };
    let Some(mount) = mount else { return Some(show()) };
    match (&mount.content, &mount.origin) {
        (
            _,
            Origin::Flag { .. }
            | Origin::Program
            | Origin::Variable { .. }
            | Origin::ProjectFile { .. }
            | Origin::UserFile { .. },
        ) if !matches!(mount.content, Content::Cow { .. }) => {
            Some(format!("change or leave out the mount that {} asks for", mount.origin))
        }
        (Content::Private { .. } | Content::Scratch { .. } | Content::Empty, _) if *at != mount.target => {
            Some(show())
        }
        (Content::Cow { .. }, Origin::Default) => Some(format!("`-v {at}:{at}:ro` lets it be read only")),
        _ => None,
    }
}
