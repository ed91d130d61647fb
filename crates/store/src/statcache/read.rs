//! Asking a stat cache.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::format::{END, HEADER, MAGIC, PACK, ROW, SUM, header, sum, take, take_array, take_whole};
use super::{Cached, InStore, Key, PackName, Subject, Whole};
use crate::dir::Meta;
use crate::id::HashKind;
use crate::state::Directory;

/// More directories than this are in no cache.
const ROWS: u64 = 50_000_000;
/// More packs than this are in no store.
const PACKS: u64 = 1_000_000;

/// A stat cache; only the table of its directories is in memory.
#[derive(Debug)]
pub struct StatCache {
    file: File,
    hash: HashKind,
    generation: u64,
    /// The rows.
    table: Vec<u8>,
    packs: Vec<[u8; PACK]>,
    /// Whether all of these are still there.
    packs_are_there: bool,
}

/// What is known of the files of one directory. A large one is read piece by piece.
#[derive(Debug, Default)]
pub struct CachedDirectory<'a> {
    cache: Option<(&'a StatCache, Key)>,
    piece: u32,
    block: Vec<u8>,
    /// What is left to be asked for, in the block.
    rest: std::ops::Range<usize>,
    whole: Option<Whole>,
}

impl StatCache {
    /// `None` if the file is no cache of this directory, whatever else it may be.
    pub fn open(file: File, hash: HashKind, subject: Subject) -> Option<Self> {
        let size = file.metadata().ok()?.len();
        let mut head = [0; HEADER];
        file.read_exact_at(&mut head, 0).ok()?;
        let mut generation = &head[HEADER - 8..];
        let generation = u64::from_le_bytes(take_array(&mut generation)?);
        if !head.starts_with(MAGIC) || head[..] != header(hash, subject, generation) {
            return None;
        }
        let end_at = size.checked_sub(END as u64)?;
        let mut end = [0; END];
        file.read_exact_at(&mut end, end_at).ok()?;
        let mut rest = &end[..];
        let offset = u64::from_le_bytes(take_array(&mut rest)?);
        let rows = u64::from_le_bytes(take_array(&mut rest)?);
        let packs = u64::from_le_bytes(take_array(&mut rest)?);
        if rows > ROWS || packs > PACKS {
            return None;
        }
        let rows = rows * ROW as u64;
        let length = rows + packs * PACK as u64;
        if offset < HEADER as u64 || offset.checked_add(length)? != end_at {
            return None;
        }
        let mut table = vec![0; usize::try_from(length).ok()?];
        file.read_exact_at(&mut table, offset).ok()?;
        if sum(&[&head, &table, &end[..24]]) != *rest {
            return None;
        }
        let packs = table.split_off(usize::try_from(rows).ok()?).as_chunks().0.to_vec();
        Some(Self { file, hash, generation, table, packs, packs_are_there: false })
    }

    /// Compares the packs that the cache names with those that there are now. Before this, none is taken to be there.
    #[must_use]
    pub fn with_packs(mut self, now: &[PackName]) -> Self {
        self.packs_are_there = self.packs.iter().all(|pack| now.iter().any(|now| now.0 == *pack));
        self
    }

    /// Whether something of which this was noted is in the store without doubt.
    pub fn vouches(&self, noted: InStore) -> bool {
        self.packs_are_there && noted == InStore::Yes
    }

    /// How many caches of this directory were written before it.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// What is known of the files of a directory; nothing, if its block is damaged.
    pub fn directory(&self, key: Key) -> Option<CachedDirectory<'_>> {
        let (block, rest, whole) = self.block(key)?;
        Some(CachedDirectory { cache: Some((self, key)), piece: 0, block, rest, whole })
    }

    /// The bytes of a block, where its entries are, and what stands before them.
    fn block(&self, key: Key) -> Option<(Vec<u8>, std::ops::Range<usize>, Option<Whole>)> {
        let (rows, _) = self.table.as_chunks::<ROW>();
        let at = rows.binary_search_by(|row| row[..16].cmp(&key.0)).ok()?;
        let mut row = &rows[at][16..];
        let offset = u64::from_le_bytes(take_array(&mut row)?);
        let length = usize::try_from(u32::from_le_bytes(take_array(&mut row)?)).ok()?;
        let mut block = vec![0; length];
        self.file.read_exact_at(&mut block, offset).ok()?;
        let content = length.checked_sub(SUM)?;
        if sum(&[&key.0, &block[..content]]) != block[content..] {
            return None;
        }
        let mut rest = &block[..content];
        let whole = take_whole(&mut rest, self.hash);
        let entries = content - rest.len()..content;
        Some((block, entries, whole))
    }
}

/// The files of such a directory, from the first.
pub(crate) struct WholeFiles<'a> {
    cache: &'a StatCache,
    rest: &'a [u8],
}

impl WholeFiles<'_> {
    /// Whether the next one is the file of this name, is what it was, and is in the store without doubt.
    pub(crate) fn is_next(&mut self, name: &[u8], meta: &Meta) -> bool {
        take(&mut self.rest, self.cache.hash).is_some_and(|(found, cached)| {
            found == name
                && cached.is_clean(meta)
                && cached.content.is_some()
                && self.cache.vouches(cached.in_store)
        })
    }

    /// Whether there are no more.
    pub(crate) fn is_over(&self) -> bool {
        self.rest.is_empty()
    }
}

impl CachedDirectory<'_> {
    /// All of a directory that holds nothing but files, if it is in the store without doubt.
    pub(crate) fn whole(&self) -> Option<(Directory, WholeFiles<'_>)> {
        let (cache, _) = self.cache?;
        let whole = self.whole.filter(|whole| self.piece == 0 && cache.vouches(whole.in_store))?;
        Some((whole.directory, WholeFiles { cache, rest: &self.block[self.rest.clone()] }))
    }

    /// The block as it was read.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.block
    }

    /// What is known of a file. Names must be asked for in ascending order.
    pub fn get(&mut self, name: &[u8]) -> Option<Cached> {
        let (cache, _) = self.cache?;
        loop {
            if self.rest.is_empty() {
                self.next_piece()?;
            }
            let mut rest = &self.block[self.rest.clone()];
            let (found, cached) = take(&mut rest, cache.hash)?;
            if found > name {
                return None;
            }
            let is_it = found == name;
            self.rest.start = self.rest.end - rest.len();
            if is_it {
                return Some(cached);
            }
        }
    }

    fn next_piece(&mut self) -> Option<()> {
        let (cache, key) = self.cache?;
        self.piece += 1;
        let next = cache.block(key.piece(self.piece));
        // After the last there is nothing more to be asked.
        if next.is_none() {
            self.cache = None;
        }
        (self.block, self.rest, _) = next?;
        Some(())
    }
}
