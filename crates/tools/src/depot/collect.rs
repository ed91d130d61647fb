//! Removing tools: those that nobody needs any more, with the downloads and leftovers of the same age, or one by its key.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use fs_err as fs;
use sandtable_sandbox::model::path::HostPath;
use sandtable_store::lock::FileLock;
use sandtable_store::remove::remove_tree;

use super::{Depot, DepotError, LOCK, PARTIAL, RECEIPT, USED, receipt};
use crate::plan::PlanKey;

/// What a collection would remove, or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removable {
    pub key: PlanKey,
    /// Name and version, for people; the key where the receipt is gone.
    pub title: String,
    pub bytes: u64,
}

/// Whether what can be removed is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Listed,
    Removed,
}

impl Depot {
    /// What nobody needs: not among `keep`, nor needed by one of them, and not used for `unused`; and downloads and
    /// leftovers of the same age. With [`Fate::Removed`] it is gone afterwards.
    pub fn collect(
        &self,
        keep: &BTreeSet<PlanKey>,
        unused: Duration,
        fate: Fate,
    ) -> Result<Vec<Removable>, DepotError> {
        let kept = self.closure(keep)?;
        let mut found = Vec::new();
        for key in self.keys()?.into_iter().filter(|key| !kept.contains(key)) {
            let place = self.place(key);
            if age(&place.join(USED)).or_else(|| age(&place)).is_some_and(|age| age < unused) {
                continue;
            }
            let known = receipt(&place);
            let title = known.as_ref().map_or_else(
                || format!("damaged {}", key.short()),
                |known| format!("{} {}", known.name, known.version),
            );
            if fate == Fate::Removed {
                self.remove(key)?;
            }
            found.push(Removable { key, title, bytes: known.map_or(0, |known| known.bytes) });
        }
        if fate == Fate::Removed {
            self.drop_downloads(unused);
            self.drop_left(unused);
        }
        Ok(found)
    }

    /// Removes one tool. Whoever builds it at this moment is waited for.
    pub fn remove(&self, key: PlanKey) -> Result<(), DepotError> {
        let path = self.file(key, LOCK);
        let _held = FileLock::exclusive(path.as_path())
            .map_err(|error| DepotError::file("lock", path.as_path())(error.source))?;
        let place = self.place(key);
        // Without a receipt it is no tool any more, wherever this ends.
        let _gone_already = fs::remove_file(place.join(RECEIPT).as_path());
        remove_tree(place.as_path())
            .map_err(|error| DepotError::file("remove", place.as_path())(error.source))
    }

    fn closure(&self, keep: &BTreeSet<PlanKey>) -> Result<BTreeSet<PlanKey>, DepotError> {
        let all = self.list()?;
        let mut kept = keep.clone();
        loop {
            let more: Vec<PlanKey> = all
                .iter()
                .filter(|receipt| kept.contains(&receipt.key))
                .flat_map(|receipt| receipt.needs.iter().copied())
                .filter(|key| !kept.contains(key))
                .collect();
            if more.is_empty() {
                return Ok(kept);
            }
            kept.extend(more);
        }
    }

    fn drop_downloads(&self, unused: Duration) {
        let Ok(entries) = fs::read_dir(self.downloads().as_path()) else { return };
        for path in entries.flatten().filter_map(|entry| HostPath::new(entry.path()).ok()) {
            if age(&path).is_some_and(|age| age >= unused) {
                // A download that cannot be removed is no harm.
                let _left = fs::remove_file(path.as_path()).or_else(|_| fs::remove_dir_all(path.as_path()));
            }
        }
    }

    /// Removes places of failed builds. One that a killed builder left may have control groups outside, so it is left to the
    /// next builder, who removes those first.
    fn drop_left(&self, unused: Duration) {
        for key in self.begun() {
            let partial = self.file(key, PARTIAL);
            let killed = fs::read_dir(partial.join("sandboxes").as_path())
                .is_ok_and(|mut entries| entries.next().is_some());
            if killed || age(&partial).is_none_or(|age| age < unused) {
                continue;
            }
            if let Ok(Some((workplace, _held))) = self.left(key) {
                // What cannot be removed now is removed by the next builder.
                let _left = remove_tree(workplace.partial.as_path());
            }
        }
    }
}

fn age(path: &HostPath) -> Option<Duration> {
    let changed = fs::symlink_metadata(path.as_path()).and_then(|found| found.modified()).ok()?;
    SystemTime::now().duration_since(changed).ok()
}
