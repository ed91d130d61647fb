//! What changed between two looks at a tree, by comparing everything with everything.
//!
//! Deliberately plain: paths as strings of bytes, whole contents in memory, recursion, no handles. It shares
//! no code with what it checks.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    kind: char,
    mode: u32,
    content: Vec<u8>,
}

pub(crate) type Tree = BTreeMap<Vec<u8>, Node>;

/// Everything below `root`.
pub(crate) fn look(root: &Path) -> Tree {
    let mut tree = Tree::new();
    look_into(root, b"", &mut tree);
    tree
}

fn look_into(dir: &Path, prefix: &[u8], tree: &mut Tree) {
    for entry in fs_err::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let mut key = prefix.to_vec();
        key.extend_from_slice(path.file_name().unwrap().as_bytes());
        let found = fs_err::symlink_metadata(&path).unwrap();
        let (kind, content) = match found.file_type() {
            kind if kind.is_dir() => ('/', Vec::new()),
            kind if kind.is_symlink() => {
                ('@', fs_err::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
            }
            kind if kind.is_fifo() => ('!', Vec::new()),
            _ => (' ', fs_err::read(&path).unwrap()),
        };
        if kind == '/' {
            let below = [key.as_slice(), b"/"].concat();
            look_into(&path, &below, tree);
        }
        tree.insert(key, Node { kind, mode: found.mode() & 0o7777, content });
    }
}

/// The lines the reader should give, and the pipes it should have passed over.
pub(crate) fn changes(before: &Tree, after: &Tree) -> (Vec<String>, Vec<String>) {
    let mut lines = Vec::new();
    let mut pipes = Vec::new();
    let all: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for path in all {
        let (old, new) = (before.get(path), after.get(path));
        let letter = match (old, new) {
            (None, Some(new)) => is_listed_when_new(path, new, after).then_some('A'),
            (Some(_), None) => parent_stayed(path, before, after).then_some('D'),
            (Some(old), Some(new)) if old.kind != new.kind => Some('T'),
            (Some(old), Some(new)) if old.content != new.content => Some('M'),
            (Some(old), Some(new)) if old.mode != new.mode => Some('P'),
            _ => None,
        };
        if let Some(letter) = letter {
            let gone = if matches!(letter, 'D' | 'T') { files_below(path, before) } else { 0 };
            let kind = new.or(old).map_or(' ', |node| node.kind);
            let below = if gone > 0 { format!(" ({gone})") } else { String::new() };
            lines.push(format!("{letter} {}{}{below}", show(path), kind.to_string().trim()));
        }
        if new.is_some_and(|new| new.kind == '!') && old.is_none_or(|old| old.kind != '!') {
            pipes.push(format!("Fifo {}", show(path)));
        }
    }
    (lines, pipes)
}

/// A new directory is listed only if nothing in it is; a new pipe never.
fn is_listed_when_new(path: &[u8], node: &Node, after: &Tree) -> bool {
    match node.kind {
        '!' => false,
        '/' => !below(path, after).any(|(_, node)| node.kind != '!'),
        _ => true,
    }
}

/// What is gone together with its directory is not listed for itself.
fn parent_stayed(path: &[u8], before: &Tree, after: &Tree) -> bool {
    let Some(end) = path.iter().rposition(|byte| *byte == b'/') else { return true };
    let is_dir = |tree: &Tree| tree.get(&path[..end]).is_some_and(|node| node.kind == '/');
    is_dir(before) && is_dir(after)
}

fn files_below(path: &[u8], tree: &Tree) -> usize {
    below(path, tree).filter(|(_, node)| node.kind != '/').count()
}

fn below<'a>(path: &'a [u8], tree: &'a Tree) -> impl Iterator<Item = (&'a Vec<u8>, &'a Node)> {
    tree.iter().filter(move |(key, _)| key.strip_prefix(path).is_some_and(|rest| rest.starts_with(b"/")))
}

/// The names used here need no more than this.
fn show(path: &[u8]) -> String {
    let mut text = String::new();
    for chunk in path.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\n', "\\n"));
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}
