//! What a change itself tells: its kind, where a link leads, what a file has in it.

use sandtable_store::RelPath;

use super::{Contents, name};
use crate::merge::error::Error;
use crate::merge::tree::{Change, Mode};

/// How much of a file is looked at.
const LOOKED_AT: usize = 5 << 20;

/// Settings of git that must not be links.
const SETTINGS: [&str; 4] = [".gitattributes", ".gitmodules", ".gitignore", ".mailmap"];

/// Beginnings of words that are keys or tokens, and how many letters and digits follow at least.
const TOKENS: [(&str, usize); 12] = [
    ("AKIA", 16),
    ("ASIA", 16),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghs_", 30),
    ("github_pat_", 30),
    ("glpat-", 18),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("sk-ant-", 20),
    ("AIza", 30),
    ("npm_", 30),
];

/// What no approval lets through.
pub(super) fn refused(change: &Change, contents: &impl Contents) -> Result<Vec<&'static str>, Error> {
    let mut kinds = Vec::new();
    if change.path.components().any(name::is_dot_git) {
        kinds.push("git-directory");
    }
    let Some(entry) = change.new.filter(|entry| entry.mode == Mode::Symlink) else { return Ok(kinds) };
    if is_setting(&change.path) {
        kinds.push("linked-settings");
    }
    let (target, _) = contents.read(&entry, LOOKED_AT)?;
    if target.split(|byte| *byte == b'/').any(name::is_dot_git) {
        kinds.push("link-into-git");
    }
    Ok(kinds)
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
        }
        Mode::File | Mode::Executable => {
            let was = change.old.is_some_and(|old| old.mode.is_executable());
            kinds.extend((entry.mode.is_executable() && !was).then_some("executable"));
            kinds.extend(in_bare_repository(&change.path, contents)?.then_some("bare-repository"));
            if change.old.is_none_or(|old| old.id != entry.id) {
                let (bytes, size) = contents.read(&entry, LOOKED_AT)?;
                kinds.extend(of_bytes(&bytes, size));
            }
        }
        Mode::Gitlink => {}
    }
    Ok(kinds)
}

fn of_bytes(bytes: &[u8], size: u64) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    if size > LOOKED_AT as u64 {
        kinds.push("large");
    }
    if bytes.contains(&0) {
        kinds.push("binary");
        return kinds;
    }
    let text = String::from_utf8_lossy(bytes);
    let reorders = |c: char| {
        matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}'
            | '\u{200b}' | '\u{2060}' | '\u{e0000}'..='\u{e007f}')
    };
    if text.chars().any(reorders) {
        kinds.push("hidden-characters");
    }
    if text.contains("PRIVATE KEY-----") || has_token(&text) {
        kinds.push("secret");
    }
    kinds
}

fn has_token(text: &str) -> bool {
    let follows = |rest: &str| {
        rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')).count()
    };
    TOKENS.iter().any(|(start, length)| {
        text.match_indices(start).any(|(at, _)| {
            let alone = !text[..at].ends_with(|c: char| c.is_alphanumeric());
            alone && follows(&text[at + start.len()..]) >= *length
        })
    })
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

/// Whether git would take a directory around this file for a repository.
fn in_bare_repository(path: &RelPath, contents: &impl Contents) -> Result<bool, Error> {
    let is = |name: &[u8], word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    let parts: Vec<&[u8]> = path.components().collect();
    let place = parts.iter().rposition(|part| {
        ["HEAD", "config", "hooks", "objects", "refs", "info", "commondir"].iter().any(|word| is(part, word))
    });
    let Some(place) = place else { return Ok(false) };
    let mut top = RelPath::root();
    for part in &parts[..place] {
        top.push(part).expect("parts of a path");
    }
    for name in ["HEAD", "objects", "refs"] {
        let wanted = top.join(name.as_bytes()).expect("a plain name");
        if !contents.has(&wanted)? {
            return Ok(false);
        }
    }
    Ok(true)
}
