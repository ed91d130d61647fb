//! Short names of contents, which approvals are given by.
//!
//! Each content that is held has a name, and so has the whole plan. They are made with a key that no sandbox can read, so that
//! nothing inside can prepare two contents with one name, as short as it is.

use std::io::ErrorKind;
use std::io::Write as _;

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::random::random;

use super::error::Error;
use super::index::digest;
use super::tree::{Change, Mode};

/// How many digits a name has.
const DIGITS: usize = 12;

/// Whether a word can be the name of a content or a plan.
pub fn is_name(word: &str) -> bool {
    word.len() == DIGITS && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Makes names of contents.
#[derive(Clone, Debug, Default)]
pub struct Seal([u8; 32]);

impl Seal {
    /// The one of this user, made at the first call.
    pub(super) fn of(state: &HostPath) -> Result<Self, Error> {
        let path = state.as_path().join("approval.key");
        if let Some(key) = read_key(&path)? {
            return Ok(Self(key));
        }
        let fresh = state.as_path().join(format!("approval.key-{:016x}", random()));
        let mut file = fs::OpenOptions::new();
        file.write(true).create_new(true).mode(0o600);
        let key: Vec<u8> = (0..4).flat_map(|_| random().to_ne_bytes()).collect();
        file.open(&fresh)?.write_all(&key)?;
        // Somebody else may have been faster: then theirs is the key.
        let linked = fs::hard_link(&fresh, &path);
        fs::remove_file(&fresh)?;
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        let key = read_key(&path)?.ok_or_else(|| std::io::Error::from(ErrorKind::InvalidData))?;
        Ok(Self(key))
    }

    /// The name of what a change brings.
    pub(super) fn id(&self, change: &Change) -> String {
        self.name(content(change).as_bytes())
    }

    /// The name of all that is delivered.
    pub(super) fn plan(&self, delivery: &[Change], besides: &[u8]) -> String {
        let line = |change: &Change| {
            let path = change.path.as_bytes();
            [format!("{} {}\0", path.len(), content(change)).as_bytes(), path].concat()
        };
        // Its length first, so that nothing of it can pass for a path.
        let besides = [format!("{}\0", besides.len()).as_bytes(), besides].concat();
        self.name(&besides.into_iter().chain(delivery.iter().flat_map(line)).collect::<Vec<u8>>())
    }

    /// The name of permissions that something gets.
    pub(super) fn permissions(&self, mode: u16) -> String {
        self.name(format!("permissions {mode:o}").as_bytes())
    }

    /// The name of a content, by the name that it has alone, with the permissions that it gets.
    pub(super) fn with_permissions(&self, id: &str, mode: u16) -> String {
        self.name(format!("{id} permissions {mode:o}").as_bytes())
    }

    fn name(&self, bytes: &[u8]) -> String {
        digest(&[&self.0[..], bytes].concat()).short(DIGITS)
    }
}

fn content(change: &Change) -> String {
    match change.new {
        Some(new) => format!("{} {}", new.mode.octal(), new.id),
        None => format!("{} removed", Mode::File.octal()),
    }
}

fn read_key(path: &std::path::Path) -> Result<Option<[u8; 32]>, Error> {
    match fs::read(path) {
        Ok(bytes) => match bytes.try_into() {
            Ok(key) => Ok(Some(key)),
            // A crash of the machine can leave it empty.
            Err(_) => fs::remove_file(path).map(|()| None).map_err(Error::from),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sandtable_store::RelPath;

    use super::*;
    use crate::tree::Entry;

    fn change(path: &str, mode: Mode, digit: char) -> Change {
        let id = digit.to_string().repeat(40).parse().unwrap();
        Change { path: RelPath::new(path).unwrap(), old: None, new: Some(Entry { mode, id }) }
    }

    #[test]
    fn a_name_says_content_and_mode_and_cannot_be_made_without_the_key() {
        let (one, other) = (Seal([1; 32]), Seal([2; 32]));
        let file = change("a", Mode::File, 'a');
        assert!(is_name(&one.id(&file)));
        assert_ne!(one.id(&file), other.id(&file));
        assert_ne!(one.id(&file), one.id(&change("a", Mode::Executable, 'a')));
        assert_ne!(one.id(&file), one.id(&change("a", Mode::File, 'b')));
        assert_ne!(one.id(&file), one.id(&Change { new: None, ..file.clone() }));
        let plans = [
            one.plan(std::slice::from_ref(&file), b""),
            one.plan(std::slice::from_ref(&file), b"a commit"),
            one.plan(&[file.clone(), change("b", Mode::File, 'a')], b""),
            one.plan(&[change("b", Mode::File, 'a')], b""),
        ];
        assert_eq!(BTreeSet::from(plans).len(), 4);
    }

    #[test]
    fn the_key_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let state = HostPath::new(dir.path()).unwrap();
        let file = change("a", Mode::File, 'a');
        let first = Seal::of(&state).unwrap().id(&file);
        assert_eq!(first, Seal::of(&state).unwrap().id(&file));
        let names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["approval.key"]);
    }
}
