//! Writing a stat cache, directory by directory.

use std::io::{self, BufWriter, Write};

use super::format::{HEADER, PACK, header, put, put_whole, row, sum};
use super::{Cached, Key, PackName, Subject, Whole};
use crate::id::HashKind;

/// A cache that is being written. Without [`Writer::finish`] it is none.
pub struct Writer {
    to: BufWriter<Box<dyn Write + Send>>,
    head: Vec<u8>,
    offset: u64,
    rows: Vec<(Key, u64, u32)>,
    packs: Vec<[u8; PACK]>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("directories", &self.rows.len()).finish_non_exhaustive()
    }
}

/// A block is written when it has grown to this.
const BLOCK: usize = 4 << 20;

/// The entries of one directory, or of a piece of a large one, ready to be written.
#[derive(Debug, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    piece: u32,
    entries: usize,
    whole: Option<Whole>,
}

impl Block {
    /// Whether it is time to write it; it goes on with the next piece then.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= BLOCK
    }

    /// How many entries were added.
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    /// What the directory was written as. The entries of the block must be all that there is in it, and be files of which
    /// the content is known.
    pub(crate) fn complete(&mut self, whole: Whole) {
        self.whole = (self.piece == 0).then_some(whole);
    }

    /// Names must come in ascending order.
    pub(crate) fn add(&mut self, name: &[u8], cached: &Cached) {
        put(&mut self.bytes, name, cached);
        self.entries += 1;
    }
}

impl Writer {
    /// To a file of its own that nobody reads yet. `generation` is one more than that of the cache before.
    pub fn new(
        to: Box<dyn Write + Send>,
        hash: HashKind,
        subject: Subject,
        generation: u64,
    ) -> io::Result<Self> {
        let head = header(hash, subject, generation);
        let mut to = BufWriter::with_capacity(128 * 1024, to);
        to.write_all(&head)?;
        Ok(Self { to, head, offset: HEADER as u64, rows: Vec::new(), packs: Vec::new() })
    }

    /// The packs in which content that is said to be in the store is.
    pub fn name_packs(&mut self, packs: &[PackName]) {
        self.packs = packs.iter().map(|pack| pack.0).collect();
    }

    /// Writes what there is of a directory and empties the block.
    pub(crate) fn directory(&mut self, key: Key, block: &mut Block) -> io::Result<()> {
        if block.bytes.is_empty() {
            return Ok(());
        }
        let key = key.piece(block.piece);
        let mut first = Vec::new();
        put_whole(&mut first, block.whole.take().as_ref());
        let checksum = sum(&[&key.0, &first, &block.bytes]);
        let length = first.len() + block.bytes.len() + checksum.len();
        let length = u32::try_from(length).expect("a block is written before it is that large");
        self.to.write_all(&first)?;
        self.to.write_all(&block.bytes)?;
        self.to.write_all(&checksum)?;
        self.row(key, length);
        block.bytes.clear();
        block.piece += 1;
        Ok(())
    }

    /// Writes the only block of a directory once more, as it was read.
    pub(crate) fn again(&mut self, key: Key, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.row(key, u32::try_from(bytes.len()).expect("it was read by a length of this kind"));
        Ok(())
    }

    fn row(&mut self, key: Key, length: u32) {
        self.rows.push((key, self.offset, length));
        self.offset += u64::from(length);
    }

    /// Writes the table. What becomes of the file then is the caller's business.
    pub fn finish(mut self) -> io::Result<()> {
        self.rows.sort_unstable();
        let mut table = Vec::with_capacity(self.rows.len() * super::format::ROW);
        for (key, offset, length) in &self.rows {
            table.extend(row(*key, *offset, *length));
        }
        table.extend(self.packs.iter().flatten());
        let mut end = self.offset.to_le_bytes().to_vec();
        end.extend((self.rows.len() as u64).to_le_bytes());
        end.extend((self.packs.len() as u64).to_le_bytes());
        let checksum = sum(&[&self.head, &table, &end]);
        self.to.write_all(&table)?;
        self.to.write_all(&end)?;
        self.to.write_all(&checksum)?;
        self.to.flush()
    }
}
