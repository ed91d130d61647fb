//! Making a state from a layer: the state it lies on, and what the upper directory of the overlay says.
//!
//! The upper directory holds all that the sandbox changed, so this costs what was changed and not what is there. It is
//! foreign: nothing in it is followed, and the directory below is never looked at, so no mark in it can make anything
//! be read from there. What the overlay would show for a name is what the state gets; a name that now stands for
//! something a state cannot hold is gone from it, and listed.
//!
//! The top-level `.git` is no part of the tree. Its layer is kept as it is, see [`super::opaque`].

use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::io::Errno;

use super::attribute::{Hides, Marks, Place, marks};
use super::outcome::{Foreign, GitState};
use super::{findings, opaque};
use crate::dir::{Descent, Kind, Meta, Name, names, open_file, stat_at, stat_fd};
use crate::id::ObjectId;
use crate::ignore::{self, EntryKind, Rules, Verdict};
use crate::object::ObjectKind;
use crate::object::name::{git_refuses, git_refuses_symlink};
use crate::path::RelPath;
use crate::snapshot::{
    self, FileReader, Findings, Holes, Ignored, Linked, Nothing, SkipReason, Small, SnapshotError, Store,
    attributes, judge, link, small_file,
};
use crate::source::Stamp;
use crate::statcache::{self, Block, Cached, CachedDirectory, InStore, Key, Look, Settled, StatCache};
use crate::state::{Attributes, Below, Editor, Node, Own, State, StateError, What};

/// Handles kept open.
const HANDLES: usize = 48;

/// How to capture.
#[derive(Clone, Copy)]
pub struct CaptureOptions<'a> {
    /// All that a layer holds was changed, so `All` and `Changed` are the same here.
    pub ignored: Ignored,
    /// The rules in force at the root, besides those in the tree.
    pub rules: &'a Rules,
    pub file_limit: u64,
    /// Asked before every entry and now and then in a large file; `true` ends it with [`SnapshotError::Cancelled`].
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
    pub watch: Watch,
    /// What the files of this upper directory looked like the last time.
    pub cache: Option<&'a StatCache>,
}

impl fmt::Debug for CaptureOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureOptions").field("ignored", &self.ignored).finish_non_exhaustive()
    }
}

/// Whether the layer can change while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Nothing runs in the sandbox, or it is frozen.
    Still,
    /// Something may: what changed since the beginning is looked for.
    Live,
}

/// A captured layer.
#[derive(Clone, Debug)]
pub struct Captured {
    pub outcome: snapshot::SnapshotOutcome,
    /// Attributes that must not be obeyed; sorted by path.
    pub foreign: Vec<Foreign>,
    /// Whether there is anything of the top-level `.git` in the layer.
    pub git: GitState,
}

/// The state that the overlay of `upper` on a directory in the state `base` shows; `cache` takes what its files look like.
pub fn capture(
    upper: BorrowedFd<'_>,
    base: &State,
    store: Store<'_>,
    run: Run<'_, '_>,
) -> Result<Captured, SnapshotError> {
    let moment = match run.options.watch {
        Watch::Still => Stamp::now(),
        Watch::Live => Stamp::after_all(),
    };
    let read = |errno: Errno| SnapshotError::Read { path: RelPath::root(), source: errno.into() };
    let mut capture = Capture {
        upper: Descent::new(upper, HANDLES).map_err(read)?,
        editor: Editor::new(store.objects, store.sink, base)?,
        store,
        options: run.options,
        cache: run.cache,
        moment,
        path: RelPath::root(),
        frames: Vec::new(),
        findings: Findings::default(),
        foreign: findings::Findings::new(super::LayerOptions::default()),
        holes: Holes::default(),
        linked: Linked::default(),
        layer: None,
    };
    capture.begin(Place::Top, run.options.rules.clone(), Key::ROOT)?;
    capture.run()
}

/// How a capture is made: options, and where to put down what was seen.
#[derive(Debug)]
pub struct Run<'a, 'c> {
    pub options: &'a CaptureOptions<'a>,
    pub cache: Option<&'c mut statcache::Writer>,
}

struct Capture<'a, 'c> {
    upper: Descent,
    editor: Editor<'a>,
    store: Store<'a>,
    options: &'a CaptureOptions<'a>,
    cache: Option<&'c mut statcache::Writer>,
    moment: Stamp,
    /// The entry being looked at.
    path: RelPath,
    frames: Vec<Frame<'a>>,
    findings: Findings,
    foreign: findings::Findings,
    holes: Holes,
    linked: Linked,
    layer: Option<ObjectId>,
}

/// A directory of the upper that is being read.
struct Frame<'a> {
    names: std::vec::IntoIter<Name>,
    place: Place,
    rules: Rules,
    key: Key,
    cached: CachedDirectory<'a>,
    block: Block,
}

impl<'a> Capture<'a, '_> {
    fn run(mut self) -> Result<Captured, SnapshotError> {
        while let Some(frame) = self.frames.last_mut() {
            if (self.options.cancelled)() {
                return Err(SnapshotError::Cancelled);
            }
            if frame.block.is_full()
                && let Some(cache) = &mut self.cache
            {
                cache.directory(frame.key, &mut frame.block).map_err(SnapshotError::Cache)?;
            }
            match frame.names.next() {
                Some(name) => self.entry(&name.bytes)?,
                None => self.end()?,
            }
        }
        let state = State { layer: self.layer, ..self.editor.finish()? };
        let (counts, skipped, changed) = self.findings.into_lists();
        let foreign = self.foreign.into_outcome().foreign;
        let git = if self.layer.is_some() { GitState::Changed } else { GitState::Untouched };
        let outcome = snapshot::SnapshotOutcome {
            state,
            counts,
            skipped,
            changed,
            borrowed: Vec::new(),
            exclude: Vec::new(),
        };
        Ok(Captured { outcome, foreign, git })
    }

    /// Starts reading the directory that was just entered, on both sides.
    fn begin(&mut self, place: Place, rules: Rules, key: Key) -> Result<(), SnapshotError> {
        let Marks { hides, foreign, .. } =
            marks(self.upper.fd(), Kind::Directory, place).map_err(|errno| self.failed(errno))?;
        self.foreign.foreign(&self.path, foreign);
        let names = names(self.upper.fd()).map_err(|errno| self.failed(errno))?;
        let place = if hides == Hides::SomeNames { Place::AmongMarked } else { Place::Ordinary };
        let rules = self.rules(rules, &names)?;
        let cached = self.options.cache.and_then(|cache| cache.directory(key)).unwrap_or_default();
        let names = names.into_iter();
        self.frames.push(Frame { names, place, rules, key, cached, block: Block::default() });
        Ok(())
    }

    fn end(&mut self) -> Result<(), SnapshotError> {
        let mut frame = self.frames.pop().expect("a directory is left once");
        if let Some(cache) = &mut self.cache {
            cache.directory(frame.key, &mut frame.block).map_err(SnapshotError::Cache)?;
        }
        if !self.frames.is_empty() {
            self.upper.leave()?;
            self.editor.leave()?;
            self.path.pop();
        }
        Ok(())
    }

    fn entry(&mut self, name: &[u8]) -> Result<(), SnapshotError> {
        if name == b".git" && self.path.is_root() {
            let (layer, findings) = opaque::store(self.upper.fd(), name, self.store)?;
            self.layer = Some(layer);
            self.findings.add(findings);
            return Ok(());
        }
        self.path.push(name).expect("a directory lists single names");
        let depth = self.frames.len();
        let looked = self.look(name);
        match looked {
            Ok(()) => {}
            Err(Stop::Entry(Nothing::Skip(why))) => {
                // Whatever was there before is not there now.
                if why != SkipReason::Submodule {
                    self.editor.remove(name);
                }
                self.skip(why);
            }
            Err(Stop::Entry(Nothing::Failed(source))) => {
                return Err(SnapshotError::Read { path: self.path.clone(), source });
            }
            Err(Stop::Entry(Nothing::Write(error))) => return Err(StateError::Write(error).into()),
            Err(Stop::Entry(Nothing::Cancelled)) => return Err(SnapshotError::Cancelled),
            Err(Stop::All(error)) => return Err(error),
        }
        if self.frames.len() == depth {
            self.path.pop();
        }
        Ok(())
    }

    fn look(&mut self, name: &[u8]) -> Result<(), Stop> {
        let meta = stat_at(self.upper.fd(), name).map_err(judge)?;
        self.findings.counts.entries += 1;
        if meta.is_null_device() {
            // The source has it, but was recorded without it.
            if self.editor.get(name).is_none() {
                return Err(Nothing::Skip(SkipReason::Removal).into());
            }
            self.editor.remove(name);
            return Ok(());
        }
        if meta.is_mount {
            return Err(Nothing::Skip(SkipReason::Mount).into());
        }
        if name == b".git" {
            return Err(Nothing::Skip(SkipReason::Repository).into());
        }
        if git_refuses(name) || (meta.kind == Kind::Symlink && git_refuses_symlink(name)) {
            return Err(Nothing::Skip(SkipReason::Name).into());
        }
        if self.is_left_out(name, &meta) {
            self.findings.counts.ignored += 1;
            return Ok(());
        }
        match meta.kind {
            Kind::Directory => self.directory(name),
            Kind::File => self.file(name, &meta),
            Kind::Symlink => {
                let id = link(self.store.sink, self.upper.fd(), name)?;
                self.see(&meta);
                self.set(name, What::Symlink(id), Own::new(&meta, Attributes::default()));
                Ok(())
            }
            Kind::Fifo => Err(Nothing::Skip(SkipReason::Fifo).into()),
            Kind::Socket => Err(Nothing::Skip(SkipReason::Socket).into()),
            Kind::Character | Kind::Block => Err(Nothing::Skip(SkipReason::Device).into()),
        }
    }

    fn directory(&mut self, name: &[u8]) -> Result<(), Stop> {
        if matches!(self.editor.get(name), Some(Node { what: What::Gitlink(_), .. })) {
            return Err(Nothing::Skip(SkipReason::Submodule).into());
        }
        let frame = self.frame();
        let (place, rules, key) = (frame.place, frame.rules.clone(), frame.key.below(name));
        self.upper.enter(name).map_err(judge)?;
        let meta = stat_fd(self.upper.fd()).map_err(judge)?;
        let (attributes, is_cut) = attributes(self.upper.fd()).map_err(judge)?;
        if is_cut {
            self.skip(SkipReason::Attributes);
        }
        self.see(&meta);
        let hides = super::attribute::hides(self.upper.fd()).map_err(judge)?;
        let below = if hides == Hides::Everything { Below::Drop } else { Below::Keep };
        self.editor.enter(name, below).map_err(SnapshotError::State)?;
        self.editor.set_own(Own::new(&meta, attributes));
        self.begin(place, rules, key)?;
        Ok(())
    }

    fn file(&mut self, name: &[u8], meta: &Meta) -> Result<(), Stop> {
        let file = open_file(self.upper.fd(), name, meta).map_err(judge)?;
        let place = self.frame().place;
        let marks = marks(file.as_fd(), Kind::File, place).map_err(judge)?;
        self.foreign.foreign(&self.path, marks.foreign);
        if marks.whiteout && meta.size == 0 {
            self.editor.remove(name);
            return Ok(());
        }
        drop(file);
        if !self.linked.fits(meta) {
            return Err(Nothing::Skip(SkipReason::Names).into());
        }
        let cached = self.frames.last_mut().and_then(|frame| frame.cached.get(name));
        if let Some(cached) = cached.filter(|cached| cached.is_clean(meta))
            && let Some((id, attributes)) = cached.content
            && self.store.objects.contains(&id)
        {
            self.findings.counts.files_known += 1;
            self.see(meta);
            self.note(name, meta, (id, attributes.clone()));
            self.set(name, What::File(id), Own::new(meta, attributes));
            return Ok(());
        }
        self.read(name, meta)
    }

    fn read(&mut self, name: &[u8], meta: &Meta) -> Result<(), Stop> {
        let limit = self.options.file_limit;
        let reader = FileReader {
            sink: self.store.sink,
            limit,
            holes: &self.holes,
            linked: &self.linked,
            cancelled: self.options.cancelled,
        };
        let given = reader.read(self.upper.fd(), name, meta)?;
        self.findings.counts.add(&given);
        if given.attributes_cut {
            self.skip(SkipReason::Attributes);
        }
        if given.torn {
            self.findings.changed(self.path.clone());
        } else {
            self.see(&given.meta);
            if !given.attributes_cut {
                self.note(name, &given.meta, (given.id, given.attributes.clone()));
            }
        }
        self.set(name, What::File(given.id), Own::new(&given.meta, given.attributes));
        Ok(())
    }

    /// An ignored file that the base does not have, where none are wanted.
    fn is_left_out(&self, name: &[u8], meta: &Meta) -> bool {
        let kind = if meta.kind == Kind::Directory { EntryKind::Directory } else { EntryKind::Other };
        self.options.ignored == Ignored::None
            && self.frame().rules.verdict(self.path.as_bytes(), kind) == Verdict::Ignored
            && self.editor.get(name).is_none()
    }

    /// The rules of this directory are in the layer or, if that says nothing, in the base.
    fn rules(&mut self, above: Rules, names: &[Name]) -> Result<Rules, SnapshotError> {
        if self.options.ignored != Ignored::None {
            return Ok(above);
        }
        let is_here = names.binary_search_by(|name| name.bytes.as_slice().cmp(ignore::FILE)).is_ok();
        let text = if is_here {
            match small_file(self.upper.fd(), ignore::FILE, ignore::FILE_LIMIT) {
                None => return Ok(above),
                Some(Small::Bytes(text)) => Some(text),
                Some(Small::TooLarge) => None,
                Some(Small::Failed(errno)) => return Err(self.failed(errno)),
            }
        } else {
            match self.editor.get(ignore::FILE).map(|node| &node.what) {
                Some(What::File(id)) => self.blob(id)?,
                _ => return Ok(above),
            }
        };
        let mut base = self.path.as_bytes().to_vec();
        if !base.is_empty() {
            base.push(b'/');
        }
        let rules = text.and_then(|text| above.and(&text, &base));
        if rules.is_none() {
            let path = self.path.join(ignore::FILE).expect("it is a single name");
            self.findings.skip(path, SkipReason::Rules);
        }
        Ok(rules.unwrap_or(above))
    }

    fn blob(&self, id: &ObjectId) -> Result<Option<Vec<u8>>, SnapshotError> {
        let (_, size) = self.store.objects.header(id).map_err(StateError::Read)?;
        if size > ignore::FILE_LIMIT {
            return Ok(None);
        }
        let text = self.store.objects.read_kind(id, ObjectKind::Blob).map_err(StateError::Read)?;
        Ok(Some(text))
    }

    fn note(&mut self, name: &[u8], meta: &Meta, content: (ObjectId, Attributes)) {
        if self.cache.is_some() {
            let is_late = self.moment.may_precede(meta.ctime_ns);
            let settled = if is_late { Settled::No } else { Settled::Yes };
            let (look, in_store) = (Look::from(meta), InStore::Perhaps);
            let cached = Cached { look, settled, content: Some(content), in_store };
            self.frames.last_mut().expect("a file is in a directory").block.add(name, &cached);
        }
    }

    /// Notices what was changed after the beginning.
    fn see(&mut self, meta: &Meta) {
        if self.options.watch == Watch::Live && self.moment.may_precede(meta.ctime_ns) {
            self.findings.changed(self.path.clone());
        }
    }

    fn set(&mut self, name: &[u8], what: What, own: Own) {
        let node = Node { what, own };
        // A file that was only opened for writing is there too, unchanged.
        if self.editor.get(name) != Some(&node) {
            self.editor.set(name, node);
        }
    }

    fn skip(&mut self, why: SkipReason) {
        self.findings.skip(self.path.clone(), why);
    }

    fn frame(&self) -> &Frame<'a> {
        self.frames.last().expect("an entry is looked at inside a directory")
    }

    fn failed(&self, errno: Errno) -> SnapshotError {
        SnapshotError::Read { path: self.path.clone(), source: errno.into() }
    }
}

/// Ends the look at one entry, or at everything.
enum Stop {
    Entry(Nothing),
    All(SnapshotError),
}

impl From<Nothing> for Stop {
    fn from(nothing: Nothing) -> Self {
        Self::Entry(nothing)
    }
}

impl From<SnapshotError> for Stop {
    fn from(error: SnapshotError) -> Self {
        Self::All(error)
    }
}
