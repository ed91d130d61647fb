//! The board: every state that was recorded of a source, and the ways between them.
//!
//! Each source has a store of its own below our data directory. What has states is a [`Subject`]: the source
//! itself, a directory into which a state was checked out, or a sandbox. This module knows directories; sandboxes
//! are the business of [`session`](crate::session), which uses it.
//!
//! The names of the verbs are those of the first plan of this product: [`Board::onboard_repo`],
//! [`Board::create_snapshot`], [`Board::checkout_snapshot`], [`Board::rollback`], [`Board::diff_snapshots`] and
//! [`format_diff_for_display`]. A path is safe when a handle for it can be had: [`is_path_safe`].

mod directory;
mod error;
mod find;
mod history;
mod journal;
mod left_out;
mod look;
mod subject;
pub(crate) mod take;
mod told;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sandtable_store::id::HashKind;
use sandtable_store::ignore::FILE_LIMIT;
use sandtable_store::meta::{HeadChange, OperationDraft};
use sandtable_store::regular;
use sandtable_store::store::StoreError;
use sha2::Digest as _;

pub use directory::Turned;
pub use error::BoardError;
pub(crate) use error::FULL;
pub use find::{Found, blob};
pub use history::{Descendant, history};
pub(crate) use journal::{Entry, mend, turn};
pub use journal::{journal_of, recover_marked};
pub(crate) use left_out::joined as joined_left_out;
pub use left_out::{left_out, left_out_of, left_out_of_all, told as told_left_out};
pub use look::{format_diff_for_display, is_path_safe};
pub use sandtable_store::id::ObjectId;
pub use sandtable_store::meta::{Direction, Filter, Operation, OperationKind, Snapshot};
pub use sandtable_store::object::commit::Consistency;
pub use sandtable_store::safe::open_safe;
pub use sandtable_store::snapshot::{Counts, Ignored, SkipReason, Skipped};
pub use sandtable_store::state::LeftOut;
pub use sandtable_store::store::Store;
pub use sandtable_store::{checkout, diff, fsck, rollback};
pub use subject::Subject;
pub use take::{Taken, Taking};
pub use told::{Payload, Telling, Told};

use crate::model::path::HostPath;
use crate::pending::Pending;

/// All stores of a user.
#[derive(Clone, Debug)]
pub struct Board {
    root: HostPath,
    /// The user's own list of ignored files.
    ignore: Option<PathBuf>,
}

impl Board {
    /// Stores below our data directory. Nothing is made yet.
    pub fn new(data: &HostPath) -> Self {
        Self { root: data.join("stores"), ignore: None }
    }

    /// The same for a user who has a list of ignored files, as git would read it.
    #[must_use]
    pub fn obeying(self, ignore: Option<PathBuf>) -> Self {
        Self { ignore, ..self }
    }

    /// The rules in that list for the tree at `top`; none if it cannot be read.
    pub(crate) fn users_rules(&self, top: &Path) -> Vec<u8> {
        let rules = self.ignore.as_ref().map(|path| regular::read(&top.join(path), FILE_LIMIT));
        rules.and_then(Result::ok).unwrap_or_default()
    }

    /// The store of a source, if it has one.
    pub fn of_source(&self, source: &Path) -> Result<Option<Store>, BoardError> {
        let place = self.place(source);
        Store::remove_abandoned(self.root.as_path());
        match Store::open(&place) {
            // Cut short, it would be another directory.
            Ok(store) if store.source() != source => Ok(Some(Store::name_source(&place, source)?)),
            Ok(store) => Ok(Some(store)),
            Err(StoreError::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A store once more: each end of a comparison has one of its own.
    pub fn same(&self, store: &Store) -> Result<Store, BoardError> {
        Ok(Store::open(store.dir())?)
    }

    /// The store of a source, made if it has none.
    pub(crate) fn open(&self, source: &Path, hash: HashKind) -> Result<Store, BoardError> {
        match self.of_source(source)? {
            Some(store) => Ok(store),
            None => Ok(Store::open_or_create(&self.place(source), source, hash)?),
        }
    }

    /// Lets go of every recorded state in a store, so that a collection removes them. That they existed stays in the log.
    pub fn forget(&self, store: &Store) -> Result<(), BoardError> {
        let mut subjects: BTreeSet<String> =
            store.meta().heads()?.into_iter().map(|(subject, _)| subject).collect();
        // States may be held for work that went to a directory which has none of its own.
        let log = store.meta().operations(&Filter::default())?.into_iter().map(|operation| operation.subject);
        subjects.extend(log.filter(|name| matches!(Subject::parse(name), Some(Subject::Directory(_)))));
        for subject in subjects {
            store.meta().append(&OperationDraft {
                subject,
                kind: OperationKind::Forget,
                at: SystemTime::now(),
                head: HeadChange::Remove,
                details: "{}".to_owned(),
            })?;
        }
        store.drop_caches();
        Ok(())
    }

    /// Every store there is. One that cannot be opened is named, and does not hide the others.
    pub fn all(&self) -> Result<(Vec<Store>, Vec<StoreError>), BoardError> {
        let (mut stores, mut broken) = (Vec::new(), Vec::new());
        for place in self.places()? {
            match Store::open(&place) {
                Ok(store) if self.place(store.source()) != place => broken.push(StoreError::Source(place)),
                Ok(store) => stores.push(store),
                Err(StoreError::Missing(_)) => {}
                Err(error) => broken.push(error),
            }
        }
        Ok((stores, broken))
    }

    /// The marks of what is under way in stores, among others.
    fn pending(&self) -> Pending {
        Pending::beside(self.root.as_path())
    }

    /// The directory of this name.
    pub(crate) fn place_of(&self, name: &str) -> std::path::PathBuf {
        self.root.join(name).as_path().to_owned()
    }

    /// The store in the directory of this name, if there is one.
    pub(crate) fn named(&self, name: &str) -> Result<Option<Store>, BoardError> {
        match Store::open(self.root.join(name).as_path()) {
            Ok(store) => Ok(Some(store)),
            Err(StoreError::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Where stores are.
    fn places(&self) -> Result<Vec<PathBuf>, BoardError> {
        Store::remove_abandoned(self.root.as_path());
        let entries = match fs_err::read_dir(self.root.as_path()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(BoardError::Stores(error)),
        };
        let mut places: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        // One in the making has another name.
        places.retain(|place| place.is_dir() && place.extension().is_none());
        places.sort();
        Ok(places)
    }

    /// Where the store of a source is: readable by its name, told from others of that name by its path.
    fn place(&self, source: &Path) -> PathBuf {
        let name = source.file_name().unwrap_or_default().to_string_lossy();
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = name.chars().take(40).map(plain).collect();
        let digest = sha2::Sha256::digest(source.as_os_str().as_encoded_bytes());
        let digest = ObjectId::from_bytes(&digest).expect("a SHA-256 has 32 bytes");
        self.root.join(format!("{name}-{}", digest.short(16))).into()
    }
}

#[cfg(test)]
mod tests;
