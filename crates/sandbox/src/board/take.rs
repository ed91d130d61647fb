//! Recording the state of a directory.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use sandtable_store::bring_in::{BringInOptions, bring_in_exactly};
use sandtable_store::dir::{open_named, stat_fd};
use sandtable_store::gc;
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::ignore::Rules;
use sandtable_store::meta::{Durability, OperationKind, Snapshot};
use sandtable_store::object::commit::Consistency;
use sandtable_store::objects::{Loose, Objects};
use sandtable_store::snapshot::{
    self, Counts, Ignored, Onboarding, Settings, SizeOf, SnapshotOptions, SnapshotOutcome, Store as Ends,
    onboard,
};
use sandtable_store::source::index::Index;
use sandtable_store::source::repository::Repository;
use sandtable_store::source::{self, Before, Listing, Moment, Sightings, Stamp, scan};
use sandtable_store::statcache;
use sandtable_store::state::{Editor, LeftOut, State, What, edit};
use sandtable_store::store::{Batch, SnapshotDraft, Store, StoreError, write_extra};

use super::journal::keep_still;
use super::{Board, BoardError, Subject};
use crate::model::observe::{Event, Observer};

/// What to record, and under which words.
#[derive(Clone, Copy)]
pub struct Taking<'a> {
    pub ignored: Ignored,
    /// The user's words; without any, the snapshot is called after the operation.
    pub message: Option<&'a str>,
    pub operation: &'a OperationKind,
    pub details: &'a str,
    /// What it was made from; the newest state of the same subject if nobody says.
    pub parent: Option<ObjectId>,
    pub observer: &'a dyn Observer,
    /// When it was asked for, if that was earlier than the directory is looked over.
    pub began: Option<Moment>,
    /// Takes down what the directories look like, for a scan that is to follow.
    pub sightings: Option<&'a Sightings>,
    /// Git's index, where it was read already.
    pub index: Option<&'a Index>,
    /// Rules about ignored files that are not in the repository.
    pub rules: &'a [u8],
}

impl std::fmt::Debug for Taking<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Taking").field("operation", &self.operation).finish_non_exhaustive()
    }
}

/// A state that was recorded.
#[derive(Debug)]
pub struct Taken {
    pub snapshot: Snapshot,
    pub parent: Option<ObjectId>,
    pub outcome: SnapshotOutcome,
}

impl Board {
    /// Records the first state of a source, ignored files and all.
    pub fn onboard_repo(&self, source: &Path) -> Result<Taken, BoardError> {
        self.onboard(source, &Taking::of(Ignored::All, &OperationKind::Onboard, &()))
    }

    /// The same, as the caller wishes.
    pub fn onboard(&self, source: &Path, taking: &Taking<'_>) -> Result<Taken, BoardError> {
        // To make a store takes longer than a tick, for which nothing is waited again then.
        let rules = self.users_rules(source);
        let taking = &Taking { began: Some(Moment::now()), rules: &rules, ..*taking };
        let store = self.open(source, hash_kind(source)?)?;
        let _still = keep_still(&store, source)?;
        take(&store, &Subject::directory(source), source, taking)
    }

    /// The same for a source that may be as it was: then the snapshot that was made last is the answer.
    pub(crate) fn onboard_changed(&self, source: &Path, taking: &Taking<'_>) -> Result<Snapshot, BoardError> {
        self.onboard_since(source, taking, None)
    }

    /// The same beside a command that began at `moment`: what moved since is recorded as it was, where that is known.
    pub(crate) fn onboard_since(
        &self,
        source: &Path,
        taking: &Taking<'_>,
        began: Option<Began<'_>>,
    ) -> Result<Snapshot, BoardError> {
        let hash = hash_kind(source)?;
        let before = began.and_then(|began| Some((Before::look(source, began.moment, hash)?, began.listing)));
        let store = self.open(source, hash)?;
        let subject = Subject::directory(source);
        let _still = keep_still(&store, source)?;
        let batch = store.begin()?;
        let (index, rules) = (before.as_ref().map(|(before, _)| before.index()), self.users_rules(source));
        let taking = &Taking { index, rules: &rules, ..*taking };
        let mut outcome = look(&batch, &subject, source, taking)?;
        if let Some((before, listing)) = &before
            && before.is_since(outcome.counts.newest_ns.max(changed_at(source)))
            && let Some(listing) = listing()
        {
            outcome.state = corrected(&batch, source, &outcome.state, (before, &listing))?;
        }
        let head = store.meta().head(&subject.to_string())?;
        let head = head.map(|head| store.meta().snapshot(&head.snapshot)).transpose()?;
        if let Some(head) = &head
            && store.state(&head.id)?.hash() == outcome.state.hash()
        {
            return Ok(head.clone());
        }
        let parent = head.map(|head| head.id);
        commit(&store, batch, &outcome, &Words { parent, ..Words::of(&subject, &outcome, taking) })
    }

    /// Records the state of a directory that has states already, or of a source.
    pub fn create_snapshot(
        &self,
        worktree: &Path,
        parent: Option<ObjectId>,
        message: &str,
    ) -> Result<Taken, BoardError> {
        let message = Some(message);
        let taking = Taking { message, parent, ..Taking::of(Ignored::All, &OperationKind::Snapshot, &()) };
        self.snapshot_directory(worktree, &taking)
    }

    /// The same, as the caller wishes.
    pub fn snapshot_directory(&self, directory: &Path, taking: &Taking<'_>) -> Result<Taken, BoardError> {
        let subject = Subject::directory(directory);
        match self.keeping(&subject)? {
            Some(store) => {
                let _still = keep_still(&store, directory)?;
                let rules = self.users_rules(directory);
                take(&store, &subject, directory, &Taking { rules: &rules, ..*taking })
            }
            None => self.onboard(directory, taking),
        }
    }
}

impl<'a> Taking<'a> {
    pub fn of(ignored: Ignored, operation: &'a OperationKind, observer: &'a dyn Observer) -> Self {
        Self {
            ignored,
            message: None,
            operation,
            details: "{}",
            parent: None,
            observer,
            began: None,
            sightings: None,
            index: None,
            rules: &[],
        }
    }

    fn counted(&self, counts: &Counts) {
        let (entries, bytes) = (counts.entries, counts.bytes_read);
        self.observer.event(&Event::Recording { entries, bytes });
    }
}

/// When a command began beside which a source is recorded, and what its source looked like then.
#[derive(Clone, Copy)]
pub(crate) struct Began<'a> {
    pub(crate) moment: Stamp,
    /// Waits for it; `None` if nobody looked to the end.
    pub(crate) listing: &'a dyn Fn() -> Option<Arc<Listing>>,
}

/// When a directory itself last changed.
fn changed_at(directory: &Path) -> i64 {
    let meta = open_named(directory).and_then(|dir| stat_fd(dir.as_fd()));
    meta.map_or(i64::MAX, |meta| meta.ctime_ns)
}

/// A state with what moved while it was recorded put back, as far as git has it.
fn corrected(
    batch: &Batch<'_>,
    source: &Path,
    state: &State,
    (before, listing): (&Before, &Listing),
) -> Result<State, BoardError> {
    let (Ok(after), Some(users)) = (
        scan(source, &source::SourceOptions::new(&|| false)),
        user_objects(source, batch.store().hash_kind()),
    ) else {
        return Ok(*state);
    };
    let corrections = before.corrections((listing, &after), &users);
    if corrections.is_empty() {
        return Ok(*state);
    }
    let blobs: Vec<ObjectId> = corrections
        .values()
        .flatten()
        .filter_map(|node| match node.what {
            What::File(id) => Some(id),
            _ => None,
        })
        .collect();
    if let Ok(Some(repository)) = Repository::find(source) {
        bring_in_exactly(batch, &repository.objects(), &blobs, &BringInOptions::default())?;
    }
    let mut editor = Editor::new(batch, batch, state)?;
    edit::apply(&mut editor, corrections)?;
    Ok(editor.finish()?)
}

/// Which hash names the objects of a source.
pub(crate) fn hash_kind(source: &Path) -> Result<HashKind, BoardError> {
    let failed = |error| BoardError::Repository { path: source.to_owned(), source: error };
    let Some(repository) = Repository::find(source).map_err(failed)? else { return Ok(HashKind::Sha1) };
    Ok(repository.configuration().map_err(failed)?.hash)
}

/// Records what is in `root` as a state of `subject`.
pub(crate) fn take(
    store: &Store,
    subject: &Subject,
    root: &Path,
    taking: &Taking<'_>,
) -> Result<Taken, BoardError> {
    let batch = store.begin()?;
    let outcome = look(&batch, subject, root, taking)?;
    let head = store.meta().head(&subject.to_string())?.map(|head| head.snapshot);
    let parent = taking.parent.or(head);
    let snapshot = commit(store, batch, &outcome, &Words { parent, ..Words::of(subject, &outcome, taking) })?;
    Ok(Taken { snapshot, parent, outcome })
}

/// The words of a snapshot.
pub(crate) struct Words<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) parent: Option<ObjectId>,
    pub(crate) consistency: Consistency,
    /// What was done with ignored files.
    pub(crate) ignored: Ignored,
    pub(crate) taking: &'a Taking<'a>,
}

impl<'a> Words<'a> {
    /// Of a directory that was looked at as it was asked for.
    fn of(subject: &'a Subject, outcome: &SnapshotOutcome, taking: &'a Taking<'a>) -> Self {
        let consistency = if outcome.changed.count == 0 { Consistency::Stable } else { Consistency::Torn };
        Self { subject, parent: None, consistency, ignored: taking.ignored, taking }
    }
}

/// Makes a state that was written to `batch` a snapshot, and says in it what it does not hold.
pub(crate) fn commit(
    store: &Store,
    batch: Batch<'_>,
    outcome: &SnapshotOutcome,
    words: &Words<'_>,
) -> Result<Snapshot, BoardError> {
    let skipped = (outcome.counts.skipped, outcome.skipped.as_slice());
    let left_out = LeftOut::new(words.ignored, outcome.exclude.clone(), skipped);
    let left_out = Some(left_out.write(&batch).map_err(StoreError::from)?);
    let state = State { left_out, ..outcome.state };
    let extra = write_extra(&batch, &state).map_err(StoreError::from)?;
    let draft = SnapshotDraft {
        subject: words.subject.to_string(),
        parents: words.parent.into_iter().collect(),
        tree: state.tree,
        extra,
        message: words.taking.message.unwrap_or(words.taking.operation.as_str()).to_owned(),
        consistency: words.consistency,
        at: SystemTime::now(),
        operation: words.taking.operation.clone(),
        details: words.taking.details.to_owned(),
        durability: Durability::Durable,
    };
    let snapshot = store.commit(batch, &draft)?;
    // It exists whatever comes of this; what cannot be done now is tried again after the next one.
    let _later = gc::keep_few(store);
    Ok(snapshot)
}

/// The objects of the repository in `root`, if there is one.
fn user_objects(root: &Path, hash: HashKind) -> Option<Objects> {
    let repository = Repository::find(root).ok().flatten()?;
    Some(Objects::new(&repository.objects(), hash, Loose::Read))
}

/// Looks over a directory that a sandbox wrote to, and writes its state to `batch`. Nothing in it is believed to be
/// a repository: what does not look as it did the last time is read.
pub(crate) fn look_alone(
    batch: &Batch<'_>,
    cache: &Subject,
    root: &Path,
    taking: &Taking<'_>,
) -> Result<SnapshotOutcome, BoardError> {
    let store = batch.store();
    let of_directory =
        |errno: rustix::io::Errno| BoardError::Directory { path: root.to_owned(), source: errno.into() };
    let dir = open_named(root).map_err(of_directory)?;
    let meta = stat_fd(dir.as_fd()).map_err(of_directory)?;
    let (place, name) = (statcache::Subject { dev: meta.dev, ino: meta.ino }, cache.to_string());
    let old = store.cache(&name, place);
    let mut new =
        store.new_cache(&name, place, old.as_ref()).map_err(|error| BoardError::Store(error.into()))?;
    let rules = Rules::default();
    let counted = |counts: &Counts| taking.counted(counts);
    let cancelled = || taking.observer.cancelled();
    let options = SnapshotOptions {
        cache: old.as_ref(),
        progress: &counted,
        ..SnapshotOptions::all(&rules, &cancelled)
    };
    let ends = Ends { objects: batch, sink: batch };
    let outcome = snapshot::take(dir.as_fd(), ends, &options, Some(&mut new.writer))
        .map_err(|source| BoardError::of_snapshot(root, source.into()))?;
    // A cache that cannot be kept costs time the next time, nothing else.
    new.keep(store).unwrap_or_default();
    Ok(outcome)
}

/// Looks over a directory and writes its state to `batch`. What git has of it already is brought in.
pub(crate) fn look(
    batch: &Batch<'_>,
    subject: &Subject,
    root: &Path,
    taking: &Taking<'_>,
) -> Result<SnapshotOutcome, BoardError> {
    let store = batch.store();
    let of_directory = |source| BoardError::Directory { path: root.to_owned(), source };
    let meta = open_named(root).and_then(|dir| stat_fd(dir.as_fd()));
    let meta = meta.map_err(|errno| of_directory(errno.into()))?;
    let place = statcache::Subject { dev: meta.dev, ino: meta.ino };
    let name = subject.to_string();
    let old = store.cache(&name, place);
    let mut new =
        store.new_cache(&name, place, old.as_ref()).map_err(|error| BoardError::Store(error.into()))?;
    let rules = Rules::default();
    let counted = |counts: &Counts| taking.counted(counts);
    let cancelled = || taking.observer.cancelled();
    let options = SnapshotOptions {
        ignored: taking.ignored,
        cache: old.as_ref(),
        progress: &counted,
        began: taking.began,
        sightings: taking.sightings,
        ..SnapshotOptions::all(&rules, &cancelled)
    };
    // Git may convert the ends of lines: then an id of its index is believed only if the sizes agree.
    let settings = Settings { excludes: taking.rules.to_vec(), ..Settings::default() };
    let users = user_objects(root, store.hash_kind());
    let sizes = users.as_ref().map(|objects| objects as &dyn SizeOf);
    let (index, cache) = (taking.index, Some(&mut new.writer));
    let onboarding = Onboarding { options, settings: &settings, sizes, index, cache };
    let ends = Ends { objects: batch, sink: batch };
    let onboarded =
        onboard(root, ends, onboarding).map_err(|source| BoardError::of_snapshot(root, source))?;
    if let Some(repository) = &onboarded.repository
        && !onboarded.outcome.borrowed.is_empty()
    {
        let borrowed = &onboarded.outcome.borrowed;
        bring_in_exactly(batch, &repository.objects(), borrowed, &BringInOptions::default())?;
    }
    // A cache that cannot be kept costs time the next time, nothing else.
    new.keep(store).unwrap_or_default();
    Ok(onboarded.outcome)
}
