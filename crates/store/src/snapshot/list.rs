//! Reading one directory: every entry looked at, every file that nobody vouches for read.

use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use rustix::io::Errno;

use super::file::{FileReader, Nothing, attributes, judge, link};
use super::found::Findings;
use super::holes::Holes;
use super::known::{Found, Inside, Knowing, KnownFile};
use super::linked::Linked;
use super::noticing::Noticing;
use super::queue::{Listed, Place, Sub};
use super::{Ignored, SkipReason, SnapshotOptions, Store};
use crate::dir::{Kind, Meta, Name, names, open_file, stat_at, stat_fd};
use crate::id::ObjectId;
use crate::ignore::{self, Rules};
use crate::object::name::{git_refuses, git_refuses_symlink};
use crate::path::RelPath;
use crate::source::attributes::{self as conversions, Conversions};
use crate::source::{Sighting, Sightings, Stamp};
use crate::staging::is_staging;
use crate::statcache::{self, Block, Cached, CachedDirectory, InStore, Look, Settled, Whole};
use crate::state::{Attributes, Directory, Entry, Node, Own, What, write_directory};

/// What all directories of a walk have in common.
pub(super) struct Shared<'a> {
    /// Whatever changes from here on has this change time or a later one, and nothing before has.
    pub(super) moment: Stamp,
    pub(super) borrowed: Mutex<Vec<ObjectId>>,
    pub(super) holes: Holes,
    pub(super) linked: Linked,
    pub(super) cache: Option<Mutex<&'a mut statcache::Writer>>,
}

/// Reads one directory.
pub(super) struct Lister<'a, 's> {
    store: Store<'a>,
    options: &'a SnapshotOptions<'a>,
    shared: &'a Shared<'s>,
    path: RelPath,
    /// The path with a slash at its end, or nothing for the root; then the name that is looked at.
    full: Vec<u8>,
    base: usize,
    cached: CachedDirectory<'a>,
    knowing: Knowing<'a>,
    block: Block,
    entries: Vec<Entry>,
    subs: Vec<Sub>,
    /// What is seen of the directory, if somebody wants to know, and as long as all of it is.
    sighting: Option<Sighting>,
    pub(super) findings: Findings,
}

impl<'a, 's> Lister<'a, 's> {
    pub(super) fn new(
        store: Store<'a>,
        options: &'a SnapshotOptions<'a>,
        shared: &'a Shared<'s>,
        path: RelPath,
    ) -> Self {
        let mut full = path.as_bytes().to_vec();
        if !full.is_empty() {
            full.push(b'/');
        }
        Self {
            store,
            options,
            shared,
            path,
            base: full.len(),
            full,
            cached: CachedDirectory::default(),
            knowing: Knowing::new(store, options),
            block: Block::default(),
            entries: Vec::new(),
            subs: Vec::new(),
            sighting: None,
            findings: Findings::default(),
        }
    }

    pub(super) fn list(&mut self, dir: BorrowedFd<'_>, place: &Place) -> Result<Listed, Nothing> {
        self.sighting = self.options.sightings.and_then(Sightings::start);
        let before = stat_fd(dir).map_err(judge)?;
        let (attributes, is_cut) = attributes(dir).map_err(judge)?;
        if is_cut {
            self.findings.skip(self.path.clone(), SkipReason::Attributes);
        }
        let names = names(dir).map_err(judge)?;
        if let Some(sighting) = &mut self.sighting {
            sighting.expect(names.len());
        }
        let rules = self.rules(dir, place, &names)?;
        let conversions = self.conversions(dir, place, &names)?;
        self.cached = self.options.cache.and_then(|cache| cache.directory(place.key)).unwrap_or_default();
        let inside = Inside { dir, rules: &rules, conversions: &conversions, ignored: place.ignored };
        let mut written = self.unchanged(&inside, place, &names)?;
        if written.is_none() {
            self.each(&inside, place, &names)?;
            written = self.written(place, names.len())?;
            self.remember(place)?;
        }
        self.cached = CachedDirectory::default();
        let after = stat_fd(dir).map_err(judge)?;
        if after.ctime_ns != before.ctime_ns || self.shared.moment.may_precede(before.ctime_ns) {
            self.findings.changed(self.path.clone());
        }
        if let Some((sightings, sighting)) = self.options.sightings.zip(self.sighting.take()) {
            sightings.add(self.path.clone(), sighting.framed(&before, &after));
        }
        if !self.knowing.borrowed.is_empty() {
            let mut borrowed = self.shared.borrowed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            borrowed.append(&mut self.knowing.borrowed);
        }
        // From the last, so that they are taken in order.
        self.subs.reverse();
        let (entries, subs) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.subs));
        let entries = if written.is_some() { Vec::new() } else { entries };
        Ok(Listed { own: Own::new(&before, attributes), entries, subs, written, rules, conversions })
    }

    /// What the directory was written as, if everything in it is a file that the cache vouches for, and nothing is gone.
    fn unchanged(
        &mut self,
        inside: &Inside<'_>,
        place: &Place,
        names: &[Name],
    ) -> Result<Option<Directory>, Nothing> {
        let Some((directory, mut files)) = self.cached.whole() else { return Ok(None) };
        let mut metas = Vec::with_capacity(names.len());
        for Name { bytes, .. } in names {
            if (self.options.cancelled)() {
                return Err(Nothing::Cancelled);
            }
            self.full.truncate(self.base);
            self.full.extend_from_slice(bytes);
            let Ok(meta) = stat_at(inside.dir, bytes) else { return Ok(None) };
            let is_late = self.shared.moment.may_precede(meta.ctime_ns);
            if is_late
                || meta.is_mount
                || !files.is_next(bytes, &meta)
                || self.knowing.is_ignored(inside, &self.full, &meta)
            {
                return Ok(None);
            }
            metas.push(meta);
        }
        if !files.is_over() {
            return Ok(None);
        }
        let counts = &mut self.findings.counts;
        counts.entries += metas.len() as u64;
        counts.files_known += metas.len() as u64;
        counts.newest_ns = metas.iter().map(|meta| meta.ctime_ns).fold(counts.newest_ns, i64::max);
        if let Some(sighting) = &mut self.sighting {
            names.iter().zip(&metas).for_each(|(name, meta)| sighting.entry(&name.bytes, meta));
        }
        if let Some(cache) = &self.shared.cache {
            let mut cache = cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            cache.again(place.key, self.cached.bytes()).map_err(Nothing::Failed)?;
        }
        Ok(Some(directory))
    }

    /// Writes a directory that has none in it, and notes that for the next time if it holds nothing but files.
    fn written(&mut self, place: &Place, names: usize) -> Result<Option<Directory>, Nothing> {
        if self.path.is_root() || !self.subs.is_empty() || self.entries.is_empty() || place.ignored {
            return Ok(None);
        }
        let sink = Noticing::new(self.store);
        let directory = write_directory(&sink, &self.entries, None).map_err(Nothing::Write)?;
        if self.block.len() == names && self.entries.len() == names {
            self.block.complete(Whole { directory, in_store: sink.in_store() });
        }
        Ok(Some(directory))
    }

    fn each(&mut self, inside: &Inside<'_>, place: &Place, names: &[Name]) -> Result<(), Nothing> {
        self.entries.reserve(names.len());
        for Name { bytes, .. } in names {
            if (self.options.cancelled)() {
                return Err(Nothing::Cancelled);
            }
            self.full.truncate(self.base);
            self.full.extend_from_slice(bytes);
            match self.entry(inside, bytes) {
                Err(Nothing::Skip(why)) => self.skip(why),
                result => result?,
            }
            if self.block.is_full() {
                self.remember(place)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, inside: &Inside<'_>, name: &[u8]) -> Result<(), Nothing> {
        if name == b".git" {
            self.sighting = None;
            return if self.path.is_root() { Ok(()) } else { Err(Nothing::Skip(SkipReason::Repository)) };
        }
        if self.path.is_root() && is_staging(name) {
            self.sighting = None;
            return Ok(());
        }
        let meta = stat_at(inside.dir, name).inspect_err(|_| self.sighting = None).map_err(judge)?;
        if let Some(sighting) = &mut self.sighting {
            sighting.entry(name, &meta);
        }
        self.findings.counts.entries += 1;
        self.findings.counts.newest_ns = self.findings.counts.newest_ns.max(meta.ctime_ns);
        let is_ignored = self.knowing.is_ignored(inside, &self.full, &meta);
        if is_ignored && self.options.ignored == Ignored::None && !self.knowing.tracks_below(&self.full) {
            self.findings.counts.ignored += 1;
            return Ok(());
        }
        if git_refuses(name) || (meta.kind == Kind::Symlink && git_refuses_symlink(name)) {
            return Err(Nothing::Skip(SkipReason::Name));
        }
        if meta.is_mount {
            return Err(Nothing::Skip(SkipReason::Mount));
        }
        match meta.kind {
            Kind::Directory if is_ignored => {
                self.ignored_directory(name);
                return Ok(());
            }
            Kind::Directory => return self.directory(name),
            Kind::File | Kind::Symlink => {}
            Kind::Fifo => return Err(Nothing::Skip(SkipReason::Fifo)),
            Kind::Socket => return Err(Nothing::Skip(SkipReason::Socket)),
            Kind::Character | Kind::Block => return Err(Nothing::Skip(SkipReason::Device)),
        }
        let cached = self.cached.get(name);
        if is_ignored && self.knowing.is_left_out(cached.as_ref(), &meta) {
            self.findings.counts.ignored += 1;
            self.note(name, &meta, None);
            return Ok(());
        }
        let found = Found { name, meta: &meta };
        if meta.kind == Kind::Symlink {
            return self.symlink(inside, found);
        }
        match self.knowing.known(inside, (&self.full, found), cached)? {
            Some(content) => self.known_file(found, content),
            None => self.file(inside, found)?,
        }
        Ok(())
    }

    /// A directory is read later, unless it is that of another repository.
    fn directory(&mut self, name: &[u8]) -> Result<(), Nothing> {
        if let Some(id) = self.knowing.gitlink(&self.full) {
            self.push(name, What::Gitlink(id), Own::usual(crate::object::EntryMode::Gitlink));
            return Err(Nothing::Skip(SkipReason::Submodule));
        }
        self.subs.push(Sub { name: name.into(), ignored: false });
        Ok(())
    }

    /// One that is ignored is read only for what git knows in it, or to tell what changes there.
    fn ignored_directory(&mut self, name: &[u8]) {
        let to_compare = self.options.ignored == Ignored::Changed
            && (self.shared.cache.is_some() || self.options.cache.is_some());
        if to_compare || self.knowing.tracks_below(&self.full) {
            self.subs.push(Sub { name: name.into(), ignored: true });
        } else {
            self.findings.counts.ignored += 1;
        }
    }

    fn symlink(&mut self, inside: &Inside<'_>, Found { name, meta }: Found<'_>) -> Result<(), Nothing> {
        let id = link(self.store.sink, inside.dir, name)?;
        self.see(meta);
        self.push(name, What::Symlink(id), Own::new(meta, Attributes::default()));
        Ok(())
    }

    fn known_file(&mut self, Found { name, meta }: Found<'_>, known: KnownFile) {
        self.findings.counts.files_known += 1;
        self.see(meta);
        self.note(name, meta, Some(known.clone()));
        self.push(name, What::File(known.id), Own::new(meta, known.attributes));
    }

    fn file(&mut self, inside: &Inside<'_>, Found { name, meta }: Found<'_>) -> Result<(), Nothing> {
        let limit = self.options.file_limit;
        let reader = FileReader {
            sink: self.store.sink,
            limit,
            holes: &self.shared.holes,
            linked: &self.shared.linked,
            cancelled: self.options.cancelled,
        };
        let given = reader.read(inside.dir, name, meta)?;
        self.findings.counts.add(&given);
        if given.attributes_cut {
            self.skip(SkipReason::Attributes);
        }
        if given.torn {
            self.findings.changed(self.whole_path());
        } else {
            self.see(&given.meta);
            if !given.attributes_cut {
                let (id, attributes) = (given.id, given.attributes.clone());
                self.note(name, &given.meta, Some(KnownFile { id, attributes, in_store: InStore::Perhaps }));
            }
        }
        self.push(name, What::File(given.id), Own::new(&given.meta, given.attributes));
        Ok(())
    }

    /// Puts down for the next time what a file looks like.
    fn note(&mut self, name: &[u8], meta: &Meta, known: Option<KnownFile>) {
        if self.shared.cache.is_some() {
            let is_late = self.shared.moment.may_precede(meta.ctime_ns);
            let settled = if is_late { Settled::No } else { Settled::Yes };
            let in_store = known.as_ref().map_or(InStore::Perhaps, |known| known.in_store);
            let content = known.map(|known| (known.id, known.attributes));
            self.block.add(name, &Cached { look: Look::from(meta), settled, content, in_store });
        }
    }

    fn remember(&mut self, place: &Place) -> Result<(), Nothing> {
        let Some(cache) = &self.shared.cache else { return Ok(()) };
        let mut cache = cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        cache.directory(place.key, &mut self.block).map_err(Nothing::Failed)
    }

    /// Notices what was changed after the walk began.
    fn see(&mut self, meta: &Meta) {
        if self.shared.moment.may_precede(meta.ctime_ns) {
            self.findings.changed(self.whole_path());
        }
    }

    fn push(&mut self, name: &[u8], what: What, own: Own) {
        self.entries.push(Entry { name: name.into(), node: Node { what, own } });
    }

    fn skip(&mut self, why: SkipReason) {
        self.findings.skip(self.whole_path(), why);
    }

    fn whole_path(&self) -> RelPath {
        RelPath::new(self.full.as_slice()).expect("a directory lists single names")
    }

    fn rules(&mut self, dir: BorrowedFd<'_>, place: &Place, names: &[Name]) -> Result<Rules, Nothing> {
        let has_none = !has(names, ignore::FILE) || self.options.ignored == Ignored::All || place.ignored;
        let text = if has_none { None } else { small_file(dir, ignore::FILE, ignore::FILE_LIMIT) };
        let rules = match text {
            Some(Small::Bytes(text)) => place.rules.and(&text, &self.full),
            Some(Small::TooLarge) => None,
            Some(Small::Failed(errno)) => return Err(judge(errno)),
            None => return Ok(place.rules.clone()),
        };
        if rules.is_none() {
            let path = self.path.join(ignore::FILE).expect("it is a single name");
            self.findings.skip(path, SkipReason::Rules);
        }
        Ok(rules.unwrap_or_else(|| place.rules.clone()))
    }

    fn conversions(
        &self,
        dir: BorrowedFd<'_>,
        place: &Place,
        names: &[Name],
    ) -> Result<Conversions, Nothing> {
        let Some(known) = self.options.index else { return Ok(place.conversions.clone()) };
        if !has(names, conversions::FILE) {
            // Git would take the file from its index.
            let missing = [&self.full, conversions::FILE].concat();
            let lost = known.index.find(&missing).is_some();
            return Ok(if lost { everything(&place.conversions) } else { place.conversions.clone() });
        }
        Ok(match small_file(dir, conversions::FILE, conversions::FILE_LIMIT) {
            Some(Small::Bytes(text)) => place.conversions.and(&text, &self.full),
            Some(Small::TooLarge) => everything(&place.conversions),
            Some(Small::Failed(errno)) => return Err(judge(errno)),
            None => place.conversions.clone(),
        })
    }
}

fn everything(conversions: &Conversions) -> Conversions {
    conversions.and(b"\"\" filter", b"")
}

fn has(names: &[Name], name: &[u8]) -> bool {
    names.binary_search_by(|found| found.bytes.as_slice().cmp(name)).is_ok()
}

/// What became of reading a small file.
pub(crate) enum Small {
    Bytes(Vec<u8>),
    TooLarge,
    Failed(Errno),
}

/// A file of rules; `None` if there is none that git would read.
pub(crate) fn small_file(dir: BorrowedFd<'_>, name: &[u8], limit: u64) -> Option<Small> {
    let meta = stat_at(dir, name).ok().filter(|meta| meta.kind == Kind::File)?;
    if meta.size > limit {
        return Some(Small::TooLarge);
    }
    let file = match open_file(dir, name, &meta) {
        Ok(file) => file,
        Err(Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::STALE | Errno::LOOP) => return None,
        Err(errno) => return Some(Small::Failed(errno)),
    };
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while (bytes.len() as u64) <= limit {
        match rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut buffer)) {
            Ok(0) => return Some(Small::Bytes(bytes)),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(errno) => return Some(Small::Failed(errno)),
        }
    }
    Some(Small::TooLarge)
}
