//! What is about to be done, written down before it is done.
//!
//! A record names the directory, by path and by identity, and the states before and after; what must be touched follows
//! from the states. It is replaced as a whole, so that a reader sees one of its versions, and removed at the end.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, fsync, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::Durability;
use super::work_dir::is_place;
use crate::checkout::Times;
use crate::dir::{open_file, stat_at, stat_fd};
use crate::hex;
use crate::id::ObjectId;
use crate::path::RelPath;
use crate::state::State;

/// The first line.
const HEADER: &str = "sandtable-journal 1";
/// What the line of a note begins with. There need not be one.
const NOTE: &str = "note ";
/// What the name of a version ends with that is not yet in place.
pub(super) const UNFINISHED: &str = ".new";
/// More than any record takes, with the longest path there can be.
const LONGEST: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) target: PathBuf,
    /// Device and inode of the directory.
    pub(super) identity: ((u32, u32), u64),
    pub(super) times: Times,
    pub(super) work: Work,
    /// What the caller wants to hear again once it stands.
    pub(super) note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Checkout { to: State },
    Rollback { from: State, to: State, staging: RelPath, phase: Phase },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// New files are being made aside.
    Staging,
    /// They are being put in place.
    Applying,
    /// The new state stands.
    Done,
}

/// Where a record is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) name: &'a str,
    pub(super) durability: Durability,
}

impl Place<'_> {
    pub(super) fn write(&self, record: &Record) -> io::Result<()> {
        let fresh = format!("{}{UNFINISHED}", self.name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(self.dir, &fresh, flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = std::fs::File::from(file);
        file.write_all(record.encode().as_bytes())?;
        if self.durability == Durability::Durable {
            file.sync_all()?;
        }
        renameat(self.dir, &fresh, self.dir, self.name)?;
        self.sync()
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        match unlinkat(self.dir, self.name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
            Ok(()) => self.sync(),
        }
    }

    fn sync(&self) -> io::Result<()> {
        if self.durability == Durability::Durable {
            fsync(self.dir)?;
        }
        Ok(())
    }

    pub(super) fn read(&self) -> io::Result<Found> {
        let meta = stat_at(self.dir, self.name.as_bytes())?;
        let file = open_file(self.dir, self.name.as_bytes(), &meta)?;
        let mut bytes = Vec::new();
        std::fs::File::from(file).take(LONGEST).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let found = Record::parse(&text).map(|record| Found::Record(Box::new(record)));
        Ok(found.unwrap_or_else(|| Found::Unreadable { target: target(&text) }))
    }
}

/// What a file of the journal is.
#[derive(Clone, Debug)]
pub(super) enum Found {
    Record(Box<Record>),
    /// Of another version, or damaged.
    Unreadable {
        target: Option<PathBuf>,
    },
}

/// The directory that a record is about, in the second line of every version so far.
fn target(text: &str) -> Option<PathBuf> {
    let line = text.lines().nth(1).filter(|line| !line.is_empty())?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(hex::decode(line)?)))
}

impl Record {
    /// For a directory that is open.
    pub(super) fn new(target: BorrowedFd<'_>, path: &Path, times: Times, work: Work) -> io::Result<Self> {
        let meta = stat_fd(target.as_fd())?;
        Ok(Self { target: path.to_owned(), identity: (meta.dev, meta.ino), times, work, note: None })
    }

    fn encode(&self) -> String {
        let target = hex::encode(self.target.as_os_str().as_bytes());
        let note = self.note.as_ref().map(|note| format!("{NOTE}{}\n", hex::encode(note.as_bytes())));
        let note = note.unwrap_or_default();
        let ((major, minor), inode) = self.identity;
        let times = match self.times {
            Times::Recorded => "recorded",
            Times::Now => "now",
        };
        let work = match &self.work {
            Work::Checkout { to } => format!("checkout\n{}", states(to)),
            Work::Rollback { from, to, staging, phase } => {
                let phase = match phase {
                    Phase::Staging => "staging",
                    Phase::Applying => "applying",
                    Phase::Done => "done",
                };
                // A name of ours: plain letters.
                let staging = String::from_utf8_lossy(staging.as_bytes());
                format!("rollback\n{}{}{staging}\n{phase}\n", states(from), states(to))
            }
        };
        format!("{HEADER}\n{target}\n{major} {minor} {inode}\n{times}\n{work}{note}end\n")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != HEADER || !text.ends_with("\nend\n") {
            return None;
        }
        let target = target(text)?;
        lines.next()?;
        let numbers: Vec<u64> = lines.next()?.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [major, minor, inode] = numbers.try_into().ok()?;
        let identity = ((u32::try_from(major).ok()?, u32::try_from(minor).ok()?), inode);
        let times = match lines.next()? {
            "recorded" => Times::Recorded,
            "now" => Times::Now,
            _ => return None,
        };
        let work = match lines.next()? {
            "checkout" => Work::Checkout { to: state(lines.next()?)? },
            "rollback" => Work::Rollback {
                from: state(lines.next()?)?,
                to: state(lines.next()?)?,
                staging: lines
                    .next()
                    .filter(|name| is_place(name))
                    .and_then(|name| RelPath::new(name).ok())?,
                phase: match lines.next()? {
                    "staging" => Phase::Staging,
                    "applying" => Phase::Applying,
                    "done" => Phase::Done,
                    _ => return None,
                },
            },
            _ => return None,
        };
        let note = match lines.next()?.strip_prefix(NOTE) {
            Some(digits) => Some(String::from_utf8(hex::decode(digits)?).ok()?),
            None => None,
        };
        Some(Self { target, identity, times, work, note })
    }
}

fn states(state: &State) -> String {
    let left_out = state.left_out.map(|id| format!(" {id}")).unwrap_or_default();
    format!("{} {} {}{left_out}\n", state.tree, state.manifest, state.times)
}

/// The layer of a git directory takes no part: it is not in the tree.
fn state(line: &str) -> Option<State> {
    let ids: Vec<ObjectId> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
    let (&[tree, manifest, times], rest) = ids.split_first_chunk()?;
    let left_out = match rest {
        [] => None,
        [id] => Some(*id),
        _ => return None,
    };
    Some(State { tree, manifest, times, layer: None, left_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_or_nothing() {
        let id: ObjectId = "4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().unwrap();
        let old = State { tree: id, manifest: id, times: id, layer: None, left_out: None };
        let state = State { left_out: Some(id), ..old };
        let staging = RelPath::new(format!(".git/{}x", crate::staging::STAGING)).unwrap();
        let rollback = Work::Rollback { from: old, to: state, staging, phase: Phase::Applying };
        for work in [Work::Checkout { to: state }, rollback] {
            let target = PathBuf::from("/a \n/é");
            let note = matches!(work, Work::Rollback { .. }).then(|| "{\"a\":\n1}".to_owned());
            let record = Record { target, identity: ((1, 2), 3), times: Times::Now, work, note };
            let text = record.encode();
            assert_eq!(Record::parse(&text), Some(record));
            for end in 0..text.len() {
                assert_eq!(Record::parse(&text[..end]), None);
            }
        }
    }
}
