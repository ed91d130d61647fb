//! Entries of trees and the differences between two of them, as git tells them.

use sandtable_sandbox::repository;
use sandtable_store::RelPath;

use super::error::Error;
use super::git::GitError;
pub use sandtable_sandbox::repository::{Change, Entry, Mode};

/// Reads the answer of `diff-tree -r -z --raw`.
pub(super) fn changes(answer: &[u8]) -> Result<Vec<Change>, Error> {
    let mut fields = answer.split(|byte| *byte == 0);
    let mut found = Vec::new();
    while let Some(head) = fields.next().filter(|head| !head.is_empty()) {
        let text = str::from_utf8(head).map_err(|error| GitError::Answer(error.to_string()))?;
        let mut words = text.trim_start_matches(':').split(' ');
        let mut word = || words.next().ok_or_else(|| GitError::Answer(text.to_owned()));
        let (old, new) = (mode(word()?)?, mode(word()?)?);
        let (old_id, new_id) = (word()?.to_owned(), word()?.to_owned());
        let name = fields.next().ok_or_else(|| GitError::Answer(text.to_owned()))?;
        found.push(Change { path: foreign(name)?, old: entry(old, &old_id)?, new: entry(new, &new_id)? });
    }
    Ok(found)
}

/// A path that came out of a tree; one that leaves it is refused by name.
pub(super) fn foreign(bytes: &[u8]) -> Result<RelPath, Error> {
    Ok(repository::foreign(bytes)?)
}

/// `MODE ID STAGE<tab>PATH`, as the index and a merge list entries.
pub(super) fn staged(field: &[u8]) -> Result<(Option<Entry>, u8, RelPath), Error> {
    let wrong = || GitError::Answer(String::from_utf8_lossy(field).into_owned());
    let tab = field.iter().position(|byte| *byte == b'\t').ok_or_else(wrong)?;
    let text = str::from_utf8(&field[..tab]).map_err(|_| wrong())?;
    let mut words = text.split(' ');
    let mut word = || words.next().ok_or_else(wrong);
    let (mode, id, stage) = (mode(word()?)?, word()?.to_owned(), word()?);
    let stage = stage.parse().map_err(|_| wrong())?;
    Ok((entry(mode, &id)?, stage, foreign(&field[tab + 1..])?))
}

/// `None` for no entry; an error for what has no place in a list of files.
fn mode(text: &str) -> Result<Option<Mode>, GitError> {
    Ok(Some(match text {
        "000000" => return Ok(None),
        "100644" | "100664" => Mode::File,
        "100755" => Mode::Executable,
        "120000" => Mode::Symlink,
        "160000" => Mode::Gitlink,
        _ => return Err(GitError::Answer(format!("mode {text}"))),
    }))
}

fn entry(mode: Option<Mode>, id: &str) -> Result<Option<Entry>, GitError> {
    mode.map(|mode| Ok(Entry { mode, id: id.parse()? })).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_difference_is_read_with_any_name() {
        let id = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let none = "0".repeat(40);
        let answer = format!(":000000 100644 {none} {id} A\0a\nb\0:120000 000000 {id} {none} D\0c\0");
        let found = changes(answer.as_bytes()).unwrap();
        assert_eq!(found[0].path, RelPath::new("a\nb").unwrap());
        assert_eq!((found[0].old, found[0].new.unwrap().mode), (None, Mode::File));
        assert_eq!((found[1].old.unwrap().mode, found[1].new), (Mode::Symlink, None));
        let outside = format!(":000000 100644 {none} {id} A\0../x\0");
        assert!(matches!(changes(outside.as_bytes()), Err(Error::Path { .. })));
    }
}
