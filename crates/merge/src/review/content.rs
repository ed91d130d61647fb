//! What a change itself tells: its kind, where a link leads, what a file has in it.

use sandtable_store::RelPath;

use super::{Contents, LONGEST, name, secret, text};
use crate::error::Error;
use crate::tree::{Change, Entry, Mode};

/// How much of a file is looked at.
const LOOKED_AT: usize = 5 << 20;

/// Settings of git that must not be links.
const SETTINGS: [&str; 4] = [".gitattributes", ".gitmodules", ".gitignore", ".mailmap"];

/// What no approval lets through.
pub(super) fn refused(change: &Change, contents: &impl Contents) -> Result<Vec<&'static str>, Error> {
    let mut kinds = refused_name(&change.path);
    let Some(entry) = change.new.filter(|entry| entry.mode == Mode::Symlink) else { return Ok(kinds) };
    if is_setting(&change.path) {
        kinds.push("linked-settings");
    }
    let (target, _) = contents.read(&entry, LOOKED_AT)?;
    let steps: Vec<&[u8]> = target.split(|byte| *byte == b'/').collect();
    if steps.iter().any(|step| name::is_dot_git(step)) {
        kinds.push("link-into-git");
    }
    if (0..steps.len()).any(|at| name::is_version_control(&steps, at)) || steps.last() == Some(&&b"CVS"[..]) {
        kinds.push("link-into-version-control");
    }
    Ok(kinds)
}

/// What no approval lets through, whatever is in it.
pub(super) fn refused_name(path: &RelPath) -> Vec<&'static str> {
    let parts: Vec<&[u8]> = path.components().collect();
    let mut kinds = Vec::new();
    if parts.iter().any(|part| name::is_dot_git(part)) {
        kinds.push("git-directory");
    }
    if (0..parts.len()).any(|at| name::is_version_control(&parts, at)) {
        kinds.push("version-control");
    }
    kinds
}

/// What waits for an approval.
pub(super) fn held(change: &Change, contents: &impl Contents) -> Result<Vec<&'static str>, Error> {
    let mut kinds = Vec::new();
    let gitlink = |mode: Option<Mode>| mode == Some(Mode::Gitlink);
    if gitlink(change.old.map(|entry| entry.mode)) || gitlink(change.new.map(|entry| entry.mode)) {
        kinds.push("gitlink");
    }
    let Some(entry) = change.new else { return Ok(kinds) };
    if change.old.is_none() {
        kinds.extend(change.path.components().any(name::is_odd).then_some("odd-name"));
        kinds.extend(change.path.components().any(name::is_unportable).then_some("unportable-name"));
    }
    match entry.mode {
        Mode::Symlink => {
            let (target, _) = contents.read(&entry, LOOKED_AT)?;
            kinds.extend(change.path.link_leaves(&target).then_some("link-outside"));
            kinds.extend(in_bare_repository(&change.path, contents)?.then_some("bare-repository"));
            kinds.extend(was_executable(change).then_some("changed-executable"));
        }
        Mode::File | Mode::Executable => {
            let fresh = change.old.is_none_or(|old| old.id != entry.id);
            let was = was_executable(change);
            kinds.extend((entry.mode == Mode::Executable && !was).then_some("executable"));
            kinds.extend((was && fresh).then_some("changed-executable"));
            kinds.extend(in_bare_repository(&change.path, contents)?.then_some("bare-repository"));
            if fresh {
                kinds.extend(of_bytes(change, &entry, contents)?);
            }
        }
        Mode::Gitlink => {}
    }
    Ok(kinds)
}

/// Whether a link leads straight to a file of the same tree.
pub(super) fn leads_to_file(change: &Change, contents: &impl Contents) -> Result<bool, Error> {
    let Some(entry) = change.new else { return Ok(false) };
    let (text, _) = contents.read(&entry, LONGEST)?;
    if change.path.link_leaves(&text) {
        return Ok(false);
    }
    let mut path = change.path.parent().unwrap_or_default();
    for step in text.split(|byte| *byte == b'/').filter(|step| !matches!(*step, b"" | b".")) {
        if step == b".." {
            path.pop();
        } else if path.push(step).is_err() {
            return Ok(false);
        }
    }
    if path.is_root() { Ok(false) } else { contents.is_file(&path) }
}

fn was_executable(change: &Change) -> bool {
    change.old.is_some_and(|old| old.mode == Mode::Executable)
}

fn of_bytes(change: &Change, entry: &Entry, contents: &impl Contents) -> Result<Vec<&'static str>, Error> {
    let (bytes, size) = contents.read(entry, LOOKED_AT)?;
    let mut kinds = Vec::new();
    if size > LOOKED_AT as u64 {
        kinds.push("large");
    }
    if bytes.contains(&0) {
        kinds.push("binary");
        return Ok(kinds);
    }
    // What cannot be read any more was not there.
    let old = || {
        let old = change.old.filter(|old| old.mode.is_regular())?;
        contents.read(&old, LOOKED_AT).ok().map(|(bytes, _)| bytes)
    };
    let text = String::from_utf8_lossy(&bytes);
    kinds.extend(text::hides(&text, old).then_some("hidden-characters"));
    kinds.extend(secret::has_secret(&text, old).then_some("secret"));
    Ok(kinds)
}

fn is_setting(path: &RelPath) -> bool {
    let name = path.name().unwrap_or_default().to_ascii_lowercase();
    let plain: Vec<u8> = name.iter().copied().filter(u8::is_ascii).collect();
    let short = plain.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |at| at + 1);
    SETTINGS.iter().any(|setting| &plain[..short] == setting.as_bytes())
        // NTFS's short names of the same.
        || [&b"gitmod~"[..], b"gitatt~", b"gitign~", b"mailma~", b"gi7eba~", b"gi7d29~", b"gi250a~"]
            .iter()
            .any(|start| plain.starts_with(start))
}

/// What git reads in a directory that it takes for a repository, or that such a one names as its common directory.
const OF_GIT: [&str; 14] = [
    "HEAD",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "hooks",
    "objects",
    "refs",
    "info",
    "packed-refs",
    "worktrees",
    "modules",
    "index",
    "description",
];

/// Whether git may take a directory around this file for a repository. It wants a `HEAD` that is in order, and `objects` and
/// `refs`, there or where `commondir` leads. These can be empty, which no tree tells, or be on disk already; so a `HEAD` in
/// order is enough, and so are the other two together without one.
fn in_bare_repository(path: &RelPath, contents: &impl Contents) -> Result<bool, Error> {
    let parts: Vec<&[u8]> = path.components().collect();
    let is_of_git = |part: &[u8]| OF_GIT.iter().any(|name| part.eq_ignore_ascii_case(name.as_bytes()));
    if !parts.iter().any(|part| is_of_git(part)) {
        return Ok(false);
    }
    for (level, part) in contents.levels(path)?.into_iter().zip(&parts) {
        if !is_of_git(part) {
            continue;
        }
        if level.common {
            return Ok(true);
        }
        if let Some(head) = level.head
            && is_head(&head, contents)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether git takes this for the `HEAD` of a repository: a link, the name of a reference, or of a commit.
fn is_head(entry: &Entry, contents: &impl Contents) -> Result<bool, Error> {
    if !entry.mode.is_regular() {
        return Ok(entry.mode == Mode::Symlink);
    }
    let (bytes, _) = contents.read(entry, LOOKED_AT)?;
    let named = bytes.strip_prefix(b"ref:").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"refs/"));
    Ok(named || bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count() >= 40)
}
