//! Asking a stat cache.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::format::{END, HEADER, MAGIC, ROW, SUM, header, sum, take, take_array};
use super::{Cached, Key, Subject};
use crate::id::HashKind;

/// More directories than this are in no cache.
const ROWS: u64 = 50_000_000;

/// A stat cache; only the table of its directories is in memory.
#[derive(Debug)]
pub struct StatCache {
    file: File,
    hash: HashKind,
    generation: u64,
    table: Vec<u8>,
}

/// What is known of the files of one directory. A large one is read piece by piece.
#[derive(Debug, Default)]
pub struct CachedDirectory<'a> {
    cache: Option<(&'a StatCache, Key)>,
    piece: u32,
    block: Vec<u8>,
    at: usize,
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
        let length = rows.checked_mul(ROW as u64)?;
        if rows > ROWS || offset < HEADER as u64 || offset.checked_add(length)? != end_at {
            return None;
        }
        let mut table = vec![0; usize::try_from(length).ok()?];
        file.read_exact_at(&mut table, offset).ok()?;
        (sum(&[&head, &table, &end[..16]]) == *rest).then_some(Self { file, hash, generation, table })
    }

    /// How many caches of this directory were written before it.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// What is known of the files of a directory; nothing, if its block is damaged.
    pub fn directory(&self, key: Key) -> Option<CachedDirectory<'_>> {
        let block = self.block(key)?;
        Some(CachedDirectory { cache: Some((self, key)), piece: 0, block, at: 0 })
    }

    fn block(&self, key: Key) -> Option<Vec<u8>> {
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
        block.truncate(content);
        Some(block)
    }
}

impl CachedDirectory<'_> {
    /// What is known of a file. Names must be asked for in ascending order.
    pub fn get(&mut self, name: &[u8]) -> Option<Cached> {
        let (cache, _) = self.cache?;
        loop {
            if self.at == self.block.len() {
                self.next_piece()?;
            }
            let mut rest = &self.block[self.at..];
            let before = rest.len();
            let (found, cached) = take(&mut rest, cache.hash)?;
            if found > name {
                return None;
            }
            let is_it = found == name;
            self.at += before - rest.len();
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
        (self.block, self.at) = (next?, 0);
        Some(())
    }
}
