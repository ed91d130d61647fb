//! What a merge would hold or refuse, told of a state that is written somewhere else. Nothing is made or asked but objects of
//! the store.

use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::repository::{Failed, NotUnderstood, Trees, entry};
use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;
use sandtable_store::object::ObjectKind;

use super::error::Error;
use super::request::Approvals;
use super::review::{Contents, Finding, Links, Parts, Surroundings, review, takes};
use super::tree::{Change, Entry, Mode};

/// What of the difference between two snapshots a merge would hold or refuse, as far as names, contents and links tell.
pub fn held_by_merge(store: &HostPath, base: &ObjectId, snapshot: &ObjectId) -> Result<Vec<Finding>, Error> {
    let objects = store.as_path().join("objects");
    let trees = Trees::new(&objects, snapshot.kind(), &[&objects]);
    let tree_of = |commit| trees.tree_of(commit).map_err(unreadable);
    let (from, to) = (tree_of(base)?, tree_of(snapshot)?);
    let changes = trees.changes(&from, &to).map_err(failed)?;
    takes(&changes)?;
    let links = links(&trees, &from, &changes).map_err(failed)?;
    let around = Surroundings { links, ..Surroundings::default() };
    let contents = InStore { trees: &trees, tree: to };
    let reviewed = review(&changes, &contents, &around, &Approvals::None)?;
    Ok([reviewed.refused, reviewed.held].concat())
}

fn links(trees: &Trees, from: &ObjectId, changes: &[Change]) -> Result<Links, Failed> {
    let new = changes.iter().filter_map(|change| Some((change.path.clone(), change.new?)));
    let new = new.filter(|(_, new)| new.mode == Mode::Symlink).map(|(path, new)| (path, new.id));
    let mut texts = Vec::new();
    for (path, id) in trees.symlinks(from)?.into_iter().chain(new) {
        texts.push((path, trees.read(&id, ObjectKind::Blob)?));
    }
    let mut links = Links::new(None);
    links.add(texts);
    Ok(links)
}

/// A tree in the store.
struct InStore<'a> {
    trees: &'a Trees,
    tree: ObjectId,
}

impl Contents for InStore<'_> {
    fn read(&self, entry: &Entry, limit: usize) -> Result<(Vec<u8>, u64), Error> {
        let size = self.trees.blob_size(&entry.id).map_err(unreadable)?;
        if size > limit as u64 {
            return Ok((Vec::new(), size));
        }
        Ok((self.trees.read(&entry.id, ObjectKind::Blob).map_err(unreadable)?, size))
    }

    fn is_file(&self, path: &RelPath) -> Result<bool, Error> {
        let found = self.trees.at(&self.tree, path).map_err(unreadable)?;
        Ok(found.as_ref().and_then(entry).is_some_and(|entry| entry.mode.is_regular()))
    }

    fn levels(&self, path: &RelPath) -> Result<Vec<Parts>, Error> {
        self.trees.levels(&self.tree, path).map_err(unreadable)
    }
}

fn failed(failed: Failed) -> Error {
    match failed {
        Failed::Error(error) => error.into(),
        Failed::NotUnderstood => unreadable(NotUnderstood),
    }
}

fn unreadable(_: NotUnderstood) -> Error {
    std::io::Error::from(std::io::ErrorKind::InvalidData).into()
}
