//! Commits: any that git wrote, read for what they refer to; and those of snapshots, read and written.
//!
//! The trailers of a snapshot are the last lines of its message, in one fixed order. What a message says above
//! them is never taken for one.

use std::fmt;
use std::str::FromStr;

use sha2::Digest as _;

use crate::hex;
use crate::id::ObjectId;

/// How sure it is that all files of a snapshot are of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// Nothing could write while it was taken.
    Frozen,
    /// Nothing was seen to change while it was taken.
    Stable,
    /// Something changed, and changed again when it was read once more.
    Torn,
}

impl Consistency {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Frozen => "frozen",
            Self::Stable => "stable",
            Self::Torn => "torn",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Frozen, Self::Stable, Self::Torn].into_iter().find(|one| one.name() == name)
    }
}

/// The identity of what a snapshot holds, whenever and by whomever it was taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State([u8; 32]);

impl State {
    pub fn of(tree: &ObjectId, manifest: &ObjectId) -> Self {
        Self(sha2::Sha256::digest(format!("sandtable-state 1\n{tree}\n{manifest}\n")).into())
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for State {
    type Err = crate::id::IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id: ObjectId = text.parse()?;
        id.as_bytes().try_into().map(Self).map_err(|_| crate::id::IdError)
    }
}

/// The commit of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotCommit {
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    /// Seconds since 1970, never negative.
    pub seconds: u64,
    /// The user's words, without an end of line.
    pub message: String,
    pub extra: ObjectId,
    pub state: State,
    pub consistency: Consistency,
}

/// Why something is not a commit, or not one of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    #[error("the commit has no line `{0}` where it must have one")]
    Header(&'static str),
    #[error("the commit was not made by Sandtable")]
    Foreign,
    #[error("the commit's trailer `{0}` is missing or wrong")]
    Trailer(&'static str),
}

const AUTHOR: &str = "Sandtable <sandtable@localhost>";
const EXTRA: &str = "Sandtable-Extra";
const STATE: &str = "Sandtable-State";
const CONSISTENCY: &str = "Sandtable-Consistency";

impl SnapshotCommit {
    /// The bytes of the object. What a commit cannot hold (bytes of zero, an end of blank lines) is taken out
    /// of the message.
    pub fn encode(&self) -> Vec<u8> {
        let parents: Vec<String> = self.parents.iter().map(|parent| format!("parent {parent}\n")).collect();
        let parents = parents.concat();
        // Git reads times as signed numbers.
        let seconds = self.seconds.min(i64::MAX as u64 - 1);
        let Self { tree, extra, state, .. } = self;
        let (message, consistency) = (clean(&self.message), self.consistency.name());
        format!(
            "tree {tree}\n{parents}author {AUTHOR} {seconds} +0000\ncommitter {AUTHOR} {seconds} +0000\n\n\
             {message}\n\n{EXTRA}: {extra}\n{STATE}: {state}\n{CONSISTENCY}: {consistency}\n"
        )
        .into_bytes()
    }

    /// From the bytes of a commit object that [`Self::encode`] made; anything else is refused.
    pub fn parse(data: &[u8]) -> Result<Self, CommitError> {
        let References { tree, parents, rest } = references(data)?;
        let text = str::from_utf8(rest).map_err(|_| CommitError::Foreign)?;
        let (author, text) = line(text, "author ").ok_or(CommitError::Header("author"))?;
        let (committer, text) = line(text, "committer ").ok_or(CommitError::Header("committer"))?;
        let seconds = author.strip_prefix(AUTHOR).and_then(|rest| rest.trim_start().strip_suffix(" +0000"));
        let seconds = seconds.and_then(|seconds| seconds.parse().ok()).ok_or(CommitError::Foreign)?;
        let body = text.strip_prefix('\n').ok_or(CommitError::Foreign)?;
        let (body, consistency) = trailer(body, CONSISTENCY)?;
        let (body, state) = trailer(body, STATE)?;
        let (body, extra) = trailer(body, EXTRA)?;
        let commit = Self {
            tree,
            parents,
            seconds,
            message: body.trim_end_matches('\n').to_owned(),
            extra: extra.parse().map_err(|_| CommitError::Trailer(EXTRA))?,
            state: state.parse().map_err(|_| CommitError::Trailer(STATE))?,
            consistency: Consistency::from_name(consistency).ok_or(CommitError::Trailer(CONSISTENCY))?,
        };
        // One state, one form: so nothing hides between the lines.
        if author != committer || commit.encode() != data {
            return Err(CommitError::Foreign);
        }
        Ok(commit)
    }
}

/// A message as it is stored. It is never empty: git would take the trailers for the subject.
fn clean(message: &str) -> String {
    let text: String = message.chars().filter(|c| *c != '\0').collect();
    match text.trim_matches('\n').trim_end() {
        "" => "snapshot".to_owned(),
        text => text.to_owned(),
    }
}

/// The line that starts with `key`, and what follows it.
fn line<'a>(text: &'a str, key: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(key)?.split_once('\n')
}

/// The last line, which must be the trailer `key`; what stands before it, and its value.
fn trailer<'a>(body: &'a str, key: &'static str) -> Result<(&'a str, &'a str), CommitError> {
    let wrong = CommitError::Trailer(key);
    let body = body.strip_suffix('\n').ok_or_else(|| wrong.clone())?;
    let start = body.rfind('\n').map_or(0, |at| at + 1);
    let value = body[start..].strip_prefix(key).and_then(|rest| rest.strip_prefix(": "));
    Ok((&body[..start], value.ok_or(wrong)?))
}

/// What a commit refers to, and the rest of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct References<'a> {
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    pub rest: &'a [u8],
}

/// The tree and the parents of any commit.
pub fn references(data: &[u8]) -> Result<References<'_>, CommitError> {
    let (tree, mut rest) = id_line(data, b"tree ").ok_or(CommitError::Header("tree"))?;
    let mut parents = Vec::new();
    while let Some((parent, after)) = id_line(rest, b"parent ") {
        parents.push(parent);
        rest = after;
    }
    if !rest.starts_with(b"author ") || parents.iter().any(|parent| parent.kind() != tree.kind()) {
        return Err(CommitError::Header("author"));
    }
    Ok(References { tree, parents, rest })
}

/// What a tag refers to.
pub fn tag_target(data: &[u8]) -> Result<ObjectId, CommitError> {
    id_line(data, b"object ").map(|(id, _)| id).ok_or(CommitError::Header("object"))
}

fn id_line<'a>(data: &'a [u8], key: &[u8]) -> Option<(ObjectId, &'a [u8])> {
    let rest = data.strip_prefix(key)?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let id = str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    Some((id, &rest[end + 1..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(byte: u8) -> ObjectId {
        ObjectId::from_bytes(&[byte; 20]).unwrap()
    }

    fn commit(message: &str) -> SnapshotCommit {
        SnapshotCommit {
            tree: id(1),
            parents: vec![id(2), id(3)],
            seconds: 1_700_000_000,
            message: message.to_owned(),
            extra: id(4),
            state: State::of(&id(1), &id(5)),
            consistency: Consistency::Stable,
        }
    }

    #[test]
    fn the_form_is_that_of_the_document() {
        let text = String::from_utf8(commit("after `make`").encode()).unwrap();
        let expected = format!(
            "tree {}\nparent {}\nparent {}\nauthor Sandtable <sandtable@localhost> 1700000000 +0000\n\
             committer Sandtable <sandtable@localhost> 1700000000 +0000\n\nafter `make`\n\n\
             Sandtable-Extra: {}\nSandtable-State: {}\nSandtable-Consistency: stable\n",
            id(1),
            id(2),
            id(3),
            id(4),
            State::of(&id(1), &id(5)),
        );
        assert_eq!(text, expected);
        let state = "sandtable-state 1\n".to_owned() + &"01".repeat(20) + "\n" + &"05".repeat(20) + "\n";
        assert_eq!(State::of(&id(1), &id(5)).as_bytes(), sha2::Sha256::digest(state).as_slice());
    }

    #[test]
    fn a_message_cannot_pose_as_trailers() {
        let spoof = commit("x\n\nSandtable-Consistency: frozen\nSandtable-Extra: 0");
        let back = SnapshotCommit::parse(&spoof.encode()).unwrap();
        assert_eq!(back, spoof);
        let empty = commit("").encode();
        assert_eq!(SnapshotCommit::parse(&empty).unwrap().message, "snapshot");
    }

    #[test]
    fn other_commits_are_not_snapshots() {
        let data = commit("x").encode();
        let other =
            String::from_utf8(data.clone()).unwrap().replace("committer Sandtable", "committer Somebody");
        assert!(SnapshotCommit::parse(other.as_bytes()).is_err());
        assert_eq!(references(other.as_bytes()).unwrap().parents, [id(2), id(3)]);
        for at in 0..data.len() {
            let mut bad = data.clone();
            bad.remove(at);
            assert_ne!(SnapshotCommit::parse(&bad).ok().as_ref(), Some(&commit("x")), "{at}");
        }
    }

    proptest! {
        #[test]
        fn there_and_back(message in "[a-z\n :\\x00é]{0,60}", seconds in any::<u64>()) {
            let seconds = seconds.min(i64::MAX as u64 - 1);
            let made = SnapshotCommit { seconds, ..commit(&message) };
            let back = SnapshotCommit::parse(&made.encode()).unwrap();
            prop_assert_eq!(&back, &SnapshotCommit { message: clean(&message), ..made });
        }

        #[test]
        fn any_bytes_are_refused_or_whole(data in prop::collection::vec(any::<u8>(), 0..200), at in 0..300_usize) {
            prop_assert!(SnapshotCommit::parse(&data).is_err());
            let mut mutated = commit("x").encode();
            let at = at.min(mutated.len());
            mutated.splice(at..at, data);
            if let Ok(back) = SnapshotCommit::parse(&mutated) {
                prop_assert_eq!(back.encode(), mutated);
            }
        }
    }
}
