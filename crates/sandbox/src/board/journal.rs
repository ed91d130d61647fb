//! The journal of a store: one directory at a time is turned, and what somebody left is carried to its end first.
//!
//! What the log will say is part of the journal, so that a directory which is in its new state is so in the log too, whoever
//! brought it there in the end.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::SystemTime;

use sandtable_store::dir::open_named;
use sandtable_store::id::ObjectId;
use sandtable_store::lock::FileLock;
use sandtable_store::meta::{Direction, Filter, HeadChange, MetaError, Move, OperationDraft, OperationKind};
use sandtable_store::rollback::{self, Recovered, Site, Verify};
use sandtable_store::state::State;
use sandtable_store::store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use super::directory::{open, turn_error};
use super::{Board, BoardError, Subject};
use crate::attention::Attention;
use crate::pending::{Mark, Pending};
use crate::random::random;

/// What the names of marks of stores begin with.
const MARK: &str = "store-";
/// The name in an entry's details that says which record of the journal it is of.
const JOURNAL: &str = "journal";
/// The entry of something interrupted is among the newest, if it is there at all.
const NEWEST: u32 = 100;

/// What the log will say.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    subject: String,
    what: What,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    /// Something of this kind, after which this is the newest state.
    Set {
        kind: OperationKind,
        to: ObjectId,
    },
    Undo {
        from: ObjectId,
        to: ObjectId,
    },
    Redo {
        from: ObjectId,
        to: ObjectId,
    },
}

impl Entry {
    /// A state is brought in by something of this kind.
    pub(crate) fn set(subject: &Subject, kind: OperationKind, to: ObjectId) -> Self {
        Self { subject: subject.to_string(), what: What::Set { kind, to } }
    }

    /// One operation back or forth.
    pub(crate) fn step(subject: &Subject, direction: Direction, (from, to): (ObjectId, ObjectId)) -> Self {
        let what = match direction {
            Direction::Undo => What::Undo { from, to },
            Direction::Redo => What::Redo { from, to },
        };
        Self { subject: subject.to_string(), what }
    }

    /// The newest state afterwards.
    pub(crate) const fn to(&self) -> ObjectId {
        match self.what {
            What::Set { to, .. } | What::Undo { to, .. } | What::Redo { to, .. } => to,
        }
    }

    /// Writes it, unless it is there.
    fn write(&self, store: &Store, id: &str) -> Result<(), BoardError> {
        let meta = store.meta();
        let filter =
            Filter { subject: Some(self.subject.clone()), newest: Some(NEWEST), ..Filter::default() };
        let is_it = |details: &str| {
            let value: Option<serde_json::Value> = serde_json::from_str(details).ok();
            value.and_then(|value| Some(value.get(JOURNAL)?.as_str()? == id)).unwrap_or(false)
        };
        if meta.operations(&filter)?.iter().any(|operation| is_it(&operation.details)) {
            return Ok(());
        }
        let details = serde_json::json!({ JOURNAL: id }).to_string();
        let (planned, ends) = match &self.what {
            What::Set { kind, .. } => return self.append(store, kind.clone(), details),
            What::Undo { from, to } => (meta.undo(&self.subject), (from, to)),
            What::Redo { from, to } => (meta.redo(&self.subject), (from, to)),
        };
        match planned {
            Ok(step) if (&step.from, &step.to) == ends => {
                meta.record(&step, SystemTime::now(), &details)?;
                Ok(())
            }
            // Somebody recorded a state meanwhile. The directory is in this one all the same.
            Ok(Move { direction, .. }) | Err(MetaError::NoMove { direction, .. }) => {
                self.append(store, direction.kind(), details)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn append(&self, store: &Store, kind: OperationKind, details: String) -> Result<(), BoardError> {
        let subject = self.subject.clone();
        let head = match store.hold(&self.to()) {
            Ok(_) => HeadChange::Set(self.to()),
            // Whoever began this was killed, and nobody needed the state any more when it was finished.
            Err(StoreError::Meta(MetaError::Unknown(_))) => HeadChange::Keep,
            Err(error) => return Err(error.into()),
        };
        let at = SystemTime::now();
        store.meta().append(&OperationDraft { subject, kind, at, head, details })?;
        Ok(())
    }
}

/// The journal of a store, alone.
pub(super) struct Journal<'a> {
    store: &'a Store,
    pub(super) dir: OwnedFd,
    mark: Mark,
    _lock: FileLock,
}

impl<'a> Journal<'a> {
    /// Waits until nobody else has it. What somebody left in it is finished or undone first. This fails only for what may
    /// concern `directory`: what is left of another one stays, and every command warns of it ([`crate::recovery`]).
    pub(super) fn open(store: &'a Store, directory: &Path) -> Result<Self, BoardError> {
        let lock = FileLock::exclusive(&lock_of(store)).map_err(StoreError::from)?;
        let (journal, found) = Self::with(store, lock)?;
        for one in found {
            let concerns = one.result.is_err() && one.concerns(directory);
            match one.result {
                Err(error) if concerns => return Err(turn_error(&one.target, error)),
                _ => {}
            }
        }
        Ok(journal)
    }

    /// Brings a directory from one state to another and enters it into the log. A signal puts everything back as long as that
    /// is possible.
    pub(super) fn turn(
        &self,
        directory: &Path,
        (states, entry): ((&State, &State), &Entry),
        verify: Verify<'_>,
    ) -> Result<rollback::RollbackOutcome, BoardError> {
        let dir = open(directory)?;
        let id = new_id();
        let site = Site { root: dir.as_fd(), path: directory, journal: self.dir.as_fd(), id: &id };
        let (from, to) = states;
        let note = serde_json::to_string(&Noted { id: id.clone(), entry }).expect("plain data");
        let attention = Attention::hold();
        let options = rollback::RollbackOptions {
            verify,
            cancelled: &|| attention.signal().is_some(),
            note: Some(&note),
            done: &|| entry.write(self.store, &id).map_err(std::io::Error::other),
            ..rollback::RollbackOptions::default()
        };
        let turned = rollback::rollback(self.store.objects(), rollback::Move { from, to }, &site, &options);
        match (turned, attention.signal()) {
            (Ok(outcome), None) => Ok(outcome),
            (Ok(_), Some(signal)) => Err(BoardError::InterruptedLate { path: directory.to_owned(), signal }),
            (Err(rollback::RollbackError::Cancelled), Some(signal)) => {
                Err(BoardError::Interrupted { path: directory.to_owned(), signal })
            }
            (Err(error), _) => Err(turn_error(directory, error)),
        }
    }

    fn with(store: &'a Store, lock: FileLock) -> Result<(Self, Vec<Recovered>), BoardError> {
        let path = store.dir().join("journal");
        let dir = open_named(&path).map_err(|errno| BoardError::Directory { path, source: errno.into() })?;
        let mark = mark_of(store)?;
        let journal = Self { store, dir, mark, _lock: lock };
        let noted = |note: &str| {
            let noted: Noted = serde_json::from_str(note)?;
            noted.entry.write(store, &noted.id).map_err(std::io::Error::other)
        };
        let check = Verify::Check(&|_, _| None);
        let found = rollback::recover(store.objects(), journal.dir.as_fd(), check, &noted);
        Ok((journal, found.map_err(StoreError::from)?))
    }
}

impl Drop for Journal<'_> {
    /// The lock is still held here.
    fn drop(&mut self) {
        let names = sandtable_store::dir::reopen(self.dir.as_fd())
            .and_then(|dir| sandtable_store::dir::names(dir.as_fd()));
        if names.is_ok_and(|names| names.is_empty()) {
            self.mark.clear();
        }
    }
}

/// What goes into the journal with a record.
#[derive(Serialize, Deserialize)]
struct Noted<E = Entry> {
    id: String,
    entry: E,
}

fn lock_of(store: &Store) -> std::path::PathBuf {
    store.dir().join("journal.lock")
}

fn mark_of(store: &Store) -> Result<Mark, BoardError> {
    let stores = store.dir().parent().unwrap_or(store.dir());
    let name = store.dir().file_name().unwrap_or_default().to_string_lossy();
    let marked = Pending::beside(stores).mark(&format!("{MARK}{name}"));
    marked.map_err(|source| BoardError::Directory { path: stores.to_owned(), source })
}

/// Keeps everybody from turning a directory of a store while one is recorded. Many can hold it at once. What somebody left in
/// the journal is finished or undone first, and it fails only for what may concern `directory`.
pub(super) fn keep_still(store: &Store, directory: &Path) -> Result<FileLock, BoardError> {
    loop {
        mend(store, directory)?;
        // What waits for a directory that is not there now, or cannot be finished.
        let known = records(store)?;
        let lock = FileLock::shared(&lock_of(store)).map_err(StoreError::from)?;
        if records(store)?.is_subset(&known) {
            return Ok(lock);
        }
        // Somebody was killed meanwhile.
    }
}

/// Finishes or undoes what somebody left in the journal of a store, before anything is read from `directory`, which it may
/// be about.
pub(crate) fn mend(store: &Store, directory: &Path) -> Result<(), BoardError> {
    if records(store)?.is_empty() { Ok(()) } else { Journal::open(store, directory).map(drop) }
}

fn records(store: &Store) -> Result<BTreeSet<OsString>, BoardError> {
    let path = store.dir().join("journal");
    let names =
        fs_err::read_dir(&path).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    names.map_err(|source| BoardError::Directory { path, source })
}

/// The same for the store of a mark; nothing while somebody is at work there.
pub fn recover_marked(board: &Board, mark: &str) -> Result<Vec<Recovered>, BoardError> {
    let Some(name) = mark.strip_prefix(MARK) else { return Ok(Vec::new()) };
    let Some(store) = board.named(name)? else {
        // Whatever was under way there went with it.
        board.pending().mark(mark).map(|mark| mark.clear()).unwrap_or_default();
        return Ok(Vec::new());
    };
    match FileLock::try_exclusive(&lock_of(&store)).map_err(StoreError::from)? {
        Some(lock) => Ok(Journal::with(&store, lock)?.1),
        None => Ok(Vec::new()),
    }
}

/// Where the records of a mark's store are.
pub fn journal_of(board: &Board, mark: &str) -> std::path::PathBuf {
    board.place_of(mark.strip_prefix(MARK).unwrap_or_default()).join("journal")
}

/// A name for a record that no other one has.
pub(super) fn new_id() -> String {
    format!("{:016x}", random())
}

/// Brings a directory from one state to another, journalled, and enters it into the log.
pub(crate) fn turn(
    store: &Store,
    directory: &Path,
    change: ((&State, &State), &Entry),
    verify: Verify<'_>,
) -> Result<rollback::RollbackOutcome, BoardError> {
    Journal::open(store, directory)?.turn(directory, change, verify)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Ignored, Taking};
    use crate::model::path::HostPath;

    fn recorded(board: &Board, root: &Path, text: &str) -> ObjectId {
        fs_err::write(root.join("file"), text).unwrap();
        let taking = Taking::of(Ignored::All, &OperationKind::Snapshot, &());
        board.snapshot_directory(root, &taking).unwrap().snapshot.id
    }

    #[test]
    fn what_is_turned_is_not_recorded_until_it_is_done() {
        let place = tempfile::tempdir().unwrap();
        let board = Board::new(&HostPath::new(place.path().join("data")).unwrap());
        let root = place.path().join("root");
        fs_err::create_dir(&root).unwrap();
        let _first = recorded(&board, &root, "one");
        let store = board.of_source(&root).unwrap().unwrap();
        let journal = Journal::open(&store, &root).unwrap();
        let taking = Taking::of(Ignored::All, &OperationKind::Onboard, &());
        std::thread::scope(|scope| {
            let waiting = [
                scope.spawn(|| assert!(!recorded(&board, &root, "two").as_bytes().is_empty())),
                scope.spawn(|| drop(board.onboard_repo(&root).unwrap())),
                scope.spawn(|| drop(board.onboard_changed(&root, &taking).unwrap())),
            ];
            std::thread::sleep(std::time::Duration::from_millis(300));
            assert!(waiting.iter().all(|one| !one.is_finished()), "it is recorded while it is turned");
            drop(journal);
        });
    }

    #[test]
    fn two_recordings_at_once_do_not_wait_for_each_other() {
        let place = tempfile::tempdir().unwrap();
        let board = Board::new(&HostPath::new(place.path().join("data")).unwrap());
        let root = place.path().join("root");
        fs_err::create_dir(&root).unwrap();
        let _first = recorded(&board, &root, "one");
        let store = board.of_source(&root).unwrap().unwrap();
        let one = keep_still(&store, &root).unwrap();
        let (done, heard) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| done.send(keep_still(&store, &root).map(drop)).unwrap());
            let two = heard.recv_timeout(std::time::Duration::from_secs(20));
            drop(one);
            two.expect("it does not wait").unwrap();
        });
    }

    #[test]
    fn what_somebody_left_while_a_recording_waited_is_seen_before_it_begins() {
        let place = tempfile::tempdir().unwrap();
        let board = Board::new(&HostPath::new(place.path().join("data")).unwrap());
        let root = place.path().join("root");
        fs_err::create_dir(&root).unwrap();
        let _first = recorded(&board, &root, "one");
        let store = board.of_source(&root).unwrap().unwrap();
        let turning = FileLock::exclusive(&lock_of(&store)).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| keep_still(&store, &root).map(drop));
            std::thread::sleep(std::time::Duration::from_millis(300));
            fs_err::write(store.dir().join("journal/left"), "by somebody who was killed\n").unwrap();
            drop(turning);
            let done = waiting.join().unwrap();
            assert!(matches!(done, Err(BoardError::Rollback { .. })), "{done:?}");
        });
    }

    #[test]
    fn a_record_that_cannot_be_recovered_stops_only_its_own_directory() {
        let place = tempfile::tempdir().unwrap();
        let board = Board::new(&HostPath::new(place.path().join("data")).unwrap());
        let root = place.path().join("root");
        fs_err::create_dir(&root).unwrap();
        let first = recorded(&board, &root, "one");
        let out = |name: &str| {
            let found = board.snapshot(&first.to_string()).unwrap();
            let target = place.path().join(name);
            board.checkout_snapshot(&found, &target).unwrap();
            target
        };
        let (half, other) = (out("half"), out("other"));
        let store = board.of_source(&root).unwrap().unwrap();
        let record = |name: &str, target: &Path| {
            let bytes = target.as_os_str().as_encoded_bytes().iter();
            let digits = bytes.flat_map(|byte| [byte >> 4, byte & 15]);
            let target: String = digits.map(|digit| char::from_digit(digit.into(), 16).unwrap()).collect();
            let text = format!("sandtable-journal 9\n{target}\nof another version\n");
            fs_err::write(store.dir().join("journal").join(name), text).unwrap();
        };
        record("of-another-version", &half);
        let taking = Taking::of(Ignored::All, &OperationKind::Snapshot, &());
        let unreadable = |done: Result<(), BoardError>| {
            assert!(
                matches!(done, Err(BoardError::Rollback { source: rollback::RollbackError::Unreadable, .. })),
                "{done:?}"
            );
        };
        for directory in [&root, &other] {
            board.onboard_changed(directory, &taking).unwrap();
            let _taken = board.snapshot_directory(directory, &taking).unwrap();
            let found = board.snapshot(&first.to_string()).unwrap();
            let _turned = board.rollback(&found, directory).unwrap();
            let _outcome = board.step(directory, Direction::Undo).unwrap();
        }
        unreadable(board.snapshot_directory(&half, &taking).map(drop));
        unreadable(keep_still(&store, &half.join("below")).map(drop));
        assert!(!records(&store).unwrap().is_empty(), "nobody removed it");
        record("of-nobody-knows-what", Path::new(""));
        unreadable(board.snapshot_directory(&root, &taking).map(drop));
    }

    #[test]
    fn an_undo_that_somebody_recorded_beside_is_in_the_log_all_the_same() {
        let place = tempfile::tempdir().unwrap();
        let board = Board::new(&HostPath::new(place.path().join("data")).unwrap());
        let root = place.path().join("root");
        fs_err::create_dir(&root).unwrap();
        let (one, two) = (recorded(&board, &root, "one"), recorded(&board, &root, "two"));
        let subject = Subject::directory(&root);
        let entry = Entry::step(&subject, Direction::Undo, (two, one));
        let _beside = recorded(&board, &root, "three");
        let store = board.of_source(&root).unwrap().unwrap();
        for _again in 0..2 {
            entry.write(&store, "0000000000000001").unwrap();
            assert_eq!(store.meta().head(&subject.to_string()).unwrap().unwrap().snapshot, one);
        }
        let log = store.meta().operations(&Filter::default()).unwrap();
        assert_eq!(log.iter().filter(|operation| operation.kind == OperationKind::Undo).count(), 1);
    }
}
