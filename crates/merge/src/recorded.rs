//! A merge or an apply as it is written down, so that it can be taken back and done again later.

use std::collections::{BTreeMap, BTreeSet};

use sandtable_sandbox::model::path::HostPath;
use sandtable_store::id::ObjectId;
use sandtable_store::meta::OperationKind;
use sandtable_store::store::Store;
use sandtable_store::{RelPath, hex, state};
use serde::{Deserialize, Serialize};

use super::beyond::{Beyond, beyond_git};
use super::request::{Approvals, Binding, CommitText, Effect, MergeRequest, Mode, Way};

const SCHEMA: u32 = 1;
/// The name in an entry's details that says which delivery it is of.
const DELIVERY: &str = "delivery";

/// What was done, and how it can be asked for again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    schema: u32,
    base: ObjectId,
    snapshot: ObjectId,
    /// Of a merge: the commit it made. None for an apply.
    pub(super) commit: Option<ObjectId>,
    /// Of a merge: the full name of the branch that it moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) branch: Option<String>,
    /// Of a merge: whether the branch had no commit before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) first: bool,
    /// Paths may be any bytes: hexadecimal.
    only: Vec<String>,
    exclude: Vec<String>,
    hunks: BTreeMap<String, BTreeSet<usize>>,
}

/// A commit that a merge made.
pub(super) struct Made<'a> {
    pub(super) commit: ObjectId,
    /// The full name of the branch that it moved.
    pub(super) branch: &'a str,
    /// Whether the branch had no commit before.
    pub(super) first: bool,
}

impl Recorded {
    /// What a request did without the paths that it spared, with what it made of a branch, if it made a commit.
    pub(super) fn of(request: &MergeRequest, spared: &[RelPath], made: Option<&Made<'_>>) -> Self {
        let names = |paths: &[RelPath]| paths.iter().map(digits).collect();
        let exclude = [request.exclude.as_slice(), spared].concat();
        Self {
            schema: SCHEMA,
            base: request.base,
            snapshot: request.snapshot,
            commit: made.map(|made| made.commit),
            branch: made.map(|made| made.branch.to_owned()),
            first: made.is_some_and(|made| made.first),
            only: names(&request.only),
            exclude: names(&exclude),
            hunks: request.hunks.iter().map(|(path, numbers)| (digits(path), numbers.clone())).collect(),
        }
    }

    /// From the text it was written as; none for one that is not understood.
    pub fn parse(text: &str) -> Option<Self> {
        let found: Self = serde_json::from_str(text).ok()?;
        let paths = found.only.iter().chain(&found.exclude).chain(found.hunks.keys());
        (found.schema == SCHEMA && paths.into_iter().all(|text| path_from(text).is_some())).then_some(found)
    }

    /// The name of the delivery that wrote this text.
    pub fn delivery(text: &str) -> Option<String> {
        delivery_of(text)
    }

    /// The state whose work it was.
    pub const fn snapshot(&self) -> ObjectId {
        self.snapshot
    }

    /// The states that undoing or redoing it reads. A merge is undone and redone by its commit.
    pub fn needs(&self) -> impl Iterator<Item = ObjectId> {
        let states = self.commit.is_none().then_some([self.base, self.snapshot]);
        states.into_iter().flatten()
    }

    /// Of a merge: the full name of the branch that it moved.
    pub fn branch(&self) -> Option<&str> {
        self.branch.as_deref()
    }

    /// Its name in a log.
    pub const fn kind(&self) -> OperationKind {
        if self.commit.is_some() { OperationKind::Merge } else { OperationKind::Apply }
    }

    /// What git cannot hold of it. A state that is not whole any more is no reason to keep the files from going back.
    pub(super) fn beyond_git(&self, store: &HostPath, way: Way) -> Vec<Beyond> {
        let (from, to) = match way {
            Way::There => (&self.base, &self.snapshot),
            Way::Back => (&self.snapshot, &self.base),
        };
        let store = store.as_path().parent().and_then(|store| Store::open(store).ok());
        store.and_then(|store| beyond_git(&store, from, to).ok()).unwrap_or_default()
    }

    /// Whoever approved it the first time has approved it.
    pub(super) fn request(&self, (target, store): (&HostPath, &HostPath), way: Way) -> MergeRequest {
        let paths = |names: &[String]| names.iter().filter_map(|name| path_from(name)).collect();
        let hunks = self.hunks.iter().filter_map(|(path, numbers)| Some((path_from(path)?, numbers.clone())));
        MergeRequest {
            target: target.clone(),
            store: store.clone(),
            base: self.base,
            snapshot: self.snapshot,
            base_head: None,
            mode: Mode::Apply,
            effect: Effect::Deliver,
            only: paths(&self.only),
            exclude: paths(&self.exclude),
            hunks: hunks.collect(),
            history: None,
            way,
            approvals: Approvals::All,
            binding: Binding::default(),
            drifted: BTreeSet::new(),
            commit: CommitText::default(),
            log: None,
            unrecorded: state::LeftOut::default(),
            beyond_git: Vec::new(),
        }
    }
}

/// The details of an entry, with the delivery that it is of.
pub(super) fn marked(details: &str, delivery: &str) -> String {
    let mut value: serde_json::Value = serde_json::from_str(details).expect("we wrote it");
    value[DELIVERY] = delivery.into();
    value.to_string()
}

/// Which delivery an entry in a log is of.
pub(super) fn delivery_of(details: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(details).ok()?;
    Some(value.get(DELIVERY)?.as_str()?.to_owned())
}

fn digits(path: &RelPath) -> String {
    hex::encode(path.as_bytes())
}

fn path_from(digits: &str) -> Option<RelPath> {
    RelPath::new(hex::decode(digits)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_understood_and_nothing_else() {
        let id: ObjectId = "4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().unwrap();
        let path = digits(&RelPath::new(vec![b'a', 0xff]).unwrap());
        let hunks = BTreeMap::from([(path.clone(), BTreeSet::from([0, 2]))]);
        let done = Recorded {
            schema: 1,
            base: id,
            snapshot: id,
            commit: None,
            branch: None,
            first: false,
            only: vec![path],
            exclude: vec![],
            hunks,
        };
        let text = serde_json::to_string(&done).unwrap();
        assert_eq!(Recorded::parse(&text), Some(done));
        assert_eq!(Recorded::parse(&text.replace("61ff", "2e2e")), None, "`..` is no path");
        assert_eq!(Recorded::parse(&text.replace("\"schema\":1", "\"schema\":2")), None);
        assert_eq!(Recorded::parse("{}"), None);
    }
}
