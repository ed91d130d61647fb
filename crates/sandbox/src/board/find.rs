//! Which snapshot a word means.

use std::path::Path;

use sandtable_store::id::ObjectId;
use sandtable_store::meta::{MetaError, Snapshot};
use sandtable_store::object::commit::SnapshotCommit;
use sandtable_store::object::{ObjectKind, ReadError, ReadObjects as _};
use sandtable_store::state::{LeftOut, State};
use sandtable_store::store::Store;

use super::{Board, BoardError, Subject};

/// A snapshot and the store it is in, which keeps it from being collected.
#[derive(Debug)]
pub struct Found {
    pub store: Store,
    pub snapshot: Snapshot,
    /// What no state holds of the sandbox that is there now, where that is something else than what the snapshot says.
    pub left_out: Option<LeftOut>,
}

impl Found {
    pub(crate) fn new(store: Store, snapshot: Snapshot) -> Self {
        Self { store, snapshot, left_out: None }
    }

    pub fn state(&self) -> Result<State, BoardError> {
        Ok(self.store.state(&self.snapshot.id)?)
    }
}

/// The bytes of a file; none if it is too large to be held in memory, or not stored.
pub fn blob(store: &Store, id: &ObjectId) -> Result<Option<Vec<u8>>, BoardError> {
    match store.objects().read_kind(id, ObjectKind::Blob) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(ReadError::TooLarge { .. } | ReadError::Missing(_)) => Ok(None),
        Err(error) => Err(BoardError::Store(error.into())),
    }
}

impl Found {
    fn parent(&self) -> Result<Option<ObjectId>, BoardError> {
        parent(&self.store, &self.snapshot.id)
    }

    /// The state of its source that this one was made on: the nearest one before it that is the source's own.
    pub(crate) fn base(&self) -> Result<ObjectId, BoardError> {
        let source = Subject::directory(self.store.source()).to_string();
        let mut snapshot = self.snapshot.clone();
        while snapshot.subject != source {
            let parent = parent(&self.store, &snapshot.id)?.ok_or(BoardError::NoBase(self.snapshot.id))?;
            snapshot = self.store.meta().snapshot(&parent)?;
        }
        Ok(snapshot.id)
    }
}

impl Board {
    /// The snapshot whose id begins with `text`, in whichever store it is.
    pub fn snapshot(&self, text: &str) -> Result<Found, BoardError> {
        let (mut found, mut candidates) = (None, Vec::new());
        for store in self.all()?.0 {
            match store.meta().resolve_prefix(text) {
                Ok(id) => {
                    candidates.push(id.to_string());
                    let snapshot = store.hold(&id)?;
                    found = Some(Found::new(store, snapshot));
                }
                Err(MetaError::Unknown(_)) => {}
                Err(MetaError::Ambiguous { candidates: more, .. }) => {
                    candidates.extend(more.iter().map(ObjectId::to_string));
                }
                Err(error) => return Err(error.into()),
            }
        }
        // The same snapshot in two stores (a source that was moved and onboarded again) is one snapshot.
        candidates.dedup();
        match (found, candidates.len()) {
            (Some(found), 1) => Ok(found),
            (None, 0) => Err(BoardError::Unknown(text.to_owned())),
            _ => Err(BoardError::Ambiguous { text: text.to_owned(), candidates }),
        }
    }

    /// The state that a snapshot was made from.
    pub fn before(&self, found: &Found) -> Result<Found, BoardError> {
        let parent = found.parent()?.ok_or(BoardError::NoBase(found.snapshot.id))?;
        self.snapshot(&parent.to_string())
    }

    /// The state of its source that a snapshot was made on.
    pub fn base(&self, found: &Found) -> Result<Found, BoardError> {
        self.snapshot(&found.base()?.to_string())
    }

    /// The newest state of a directory: of one that a state was written into, or of a source.
    pub fn head_of(&self, directory: &Path) -> Result<Found, BoardError> {
        let subject = Subject::directory(directory);
        let store = self.keeping(&subject)?.ok_or_else(|| BoardError::NoStates(directory.to_owned()))?;
        head(store, &subject)?.ok_or_else(|| BoardError::NoStates(directory.to_owned()))
    }

    /// The store that has states of a subject: its own if it is a source, else the one its state came from.
    pub fn keeping(&self, subject: &Subject) -> Result<Option<Store>, BoardError> {
        if let Subject::Directory(path) = subject
            && let Some(store) = self.of_source(path)?
            && store.meta().head(&subject.to_string())?.is_some()
        {
            return Ok(Some(store));
        }
        for store in self.all()?.0 {
            if store.meta().head(&subject.to_string())?.is_some() {
                return Ok(Some(store));
            }
        }
        Ok(None)
    }
}

/// The newest state of a subject in a store.
fn head(store: Store, subject: &Subject) -> Result<Option<Found>, BoardError> {
    let Some(head) = store.meta().head(&subject.to_string())? else { return Ok(None) };
    let snapshot = store.hold(&head.snapshot)?;
    Ok(Some(Found::new(store, snapshot)))
}

/// The snapshot that one was made from.
fn parent(store: &Store, id: &ObjectId) -> Result<Option<ObjectId>, BoardError> {
    let data = store.objects().read_kind(id, ObjectKind::Commit);
    let data = data.map_err(|error| BoardError::Store(error.into()))?;
    Ok(SnapshotCommit::parse(&data).ok().and_then(|commit| commit.parents.first().copied()))
}

#[cfg(test)]
mod tests {
    use sandtable_store::fsck::{Depth, fsck};
    use sandtable_store::gc::{self, GcOptions};
    use sandtable_store::store::StoreError;

    use super::*;
    use crate::model::diagnosis::Diagnose as _;
    use crate::model::path::HostPath;

    /// A directory whose states nobody needs any more, and another one of the same store.
    struct World {
        dir: tempfile::TempDir,
        board: Board,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs_err::create_dir(dir.path().join("source")).unwrap();
            let board = Board::new(&HostPath::new(dir.path().join("data")).unwrap());
            Self { dir, board }
        }

        fn source(&self) -> std::path::PathBuf {
            self.dir.path().join("source")
        }

        fn recorded(&self, text: &str) -> ObjectId {
            fs_err::write(self.source().join("file"), text).unwrap();
            self.board.create_snapshot(&self.source(), None, text).unwrap().snapshot.id
        }

        /// What another process does that removes all that nobody needs.
        fn collect(&self) -> Vec<ObjectId> {
            let store = self.board.of_source(&self.source()).unwrap().unwrap();
            self.board.forget(&store).unwrap();
            gc::collect(&store, &GcOptions::default()).unwrap().snapshots
        }

        fn assert_whole(&self) {
            let store = self.board.of_source(&self.source()).unwrap().unwrap();
            assert_eq!(fsck(&store, Depth::Deep).unwrap().faults, []);
        }
    }

    #[test]
    fn a_state_that_was_found_can_be_used_whatever_is_collected_meanwhile() {
        let world = World::new();
        let id = world.recorded("one");
        let found = world.board.snapshot(&id.to_string()).unwrap();
        assert_eq!(world.collect(), [], "it is held");
        let target = world.dir.path().join("out");
        world.board.checkout_snapshot(&found, &target).unwrap();
        drop(found);
        assert_eq!(fs_err::read(target.join("file")).unwrap(), b"one");
        world.assert_whole();
        assert_eq!(world.collect(), [id], "and no longer than that");
    }

    #[test]
    fn a_directory_is_brought_to_a_state_whatever_is_collected_meanwhile() {
        let world = World::new();
        let first = world.recorded("one");
        let found = world.board.head_of(&world.source()).unwrap();
        let second = world.recorded("two");
        assert_eq!(world.collect(), [second]);
        world.board.rollback(&found, &world.source()).unwrap();
        assert_eq!(found.snapshot.id, first);
        assert_eq!(fs_err::read(world.source().join("file")).unwrap(), b"one");
        world.assert_whole();
    }

    #[test]
    fn a_store_that_says_another_source_is_told_its_own_or_named() {
        let world = World::new();
        let id = world.recorded("one");
        let dir = world.board.of_source(&world.source()).unwrap().unwrap().dir().to_owned();
        let says = dir.join("source");
        let whole = fs_err::read(&says).unwrap();
        for cut in [0, whole.len() - 3] {
            fs_err::write(&says, &whole[..cut]).unwrap();
            let (stores, broken) = world.board.all().unwrap();
            assert!(stores.is_empty() && matches!(broken[..], [StoreError::Source(_)]), "{broken:?}");
            assert!(world.board.snapshot(&id.to_string()).is_err());
            let store = world.board.of_source(&world.source()).unwrap().unwrap();
            assert_eq!(store.source(), world.source());
            assert_eq!(fs_err::read(&says).unwrap(), whole, "whoever knows the source puts it right");
        }
        assert_eq!(world.board.snapshot(&id.to_string()).unwrap().snapshot.id, id);
    }

    #[test]
    fn a_store_whose_format_is_missing_is_not_passed_over() {
        let world = World::new();
        let _recorded = world.recorded("one");
        let dir = world.board.of_source(&world.source()).unwrap().unwrap().dir().to_owned();
        fs_err::remove_file(dir.join("format")).unwrap();
        let (stores, broken) = world.board.all().unwrap();
        assert!(stores.is_empty() && matches!(broken[..], [StoreError::Format { .. }]), "{broken:?}");
        let error = world.board.onboard_repo(&world.source()).unwrap_err();
        let remedy = error.remedy().unwrap_or_default();
        assert!(remedy.contains(&format!("mv {0} {0}.damaged", dir.display())), "{error}: {remedy}");
        fs_err::write(dir.join("format"), "sandtable-store 7\nsha1\n").unwrap();
        let error = world.board.of_source(&world.source()).unwrap_err();
        assert!(error.to_string().contains("format 7"), "{error}");
        assert!(error.remedy().unwrap_or_default().contains("newer version"), "{error:?}");
    }

    #[test]
    fn what_somebody_left_who_was_killed_while_a_store_was_made_goes() {
        let world = World::new();
        let _recorded = world.recorded("one");
        let stores = world.dir.path().join("data/stores");
        let names = || {
            let mut names: Vec<_> =
                fs_err::read_dir(&stores).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let whole = names();
        let left = stores.join("source-0123456789abcdef.new-4194305-1-0");
        let lookers: [&dyn Fn(); 2] =
            [&|| drop(world.board.of_source(&world.source()).unwrap()), &|| drop(world.board.all().unwrap())];
        for look in lookers {
            fs_err::create_dir_all(left.join("git/objects")).unwrap();
            look();
            assert_eq!(names(), whole);
        }
        let own = stores.join(format!("other-0.new-{}-0", sandtable_store::owner::Owner::current()));
        fs_err::create_dir(&own).unwrap();
        drop(world.board.all().unwrap());
        assert!(own.is_dir(), "its maker is at work");
    }

    #[test]
    fn what_was_collected_before_it_was_held_is_unknown() {
        let world = World::new();
        let id = world.recorded("one");
        let store = world.board.of_source(&world.source()).unwrap().unwrap();
        assert_eq!(world.collect(), [id]);
        let gone = store.hold(&id).map_err(BoardError::from);
        assert!(matches!(gone, Err(BoardError::Unknown(_))), "{gone:?}");
        assert_eq!(world.collect(), [], "a collection still works");
    }
}
