//! Writing a stat cache, directory by directory.

use std::io::{self, BufWriter, Write};

use super::format::{HEADER, header, put, row, sum};
use super::{Cached, Key, Subject};
use crate::id::HashKind;

/// A cache that is being written. Without [`Writer::finish`] it is none.
pub struct Writer {
    to: BufWriter<Box<dyn Write + Send>>,
    head: Vec<u8>,
    offset: u64,
    rows: Vec<(Key, u64, u32)>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("directories", &self.rows.len()).finish_non_exhaustive()
    }
}

/// The entries of one directory, ready to be written.
#[derive(Debug, Default)]
pub(crate) struct Block(Vec<u8>);

impl Block {
    /// Names must come in ascending order.
    pub(crate) fn add(&mut self, name: &[u8], cached: &Cached) {
        put(&mut self.0, name, cached);
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
        Ok(Self { to, head, offset: HEADER as u64, rows: Vec::new() })
    }

    pub(crate) fn directory(&mut self, key: Key, block: &Block) -> io::Result<()> {
        let checksum = sum(&[&key.0, &block.0]);
        // One too large to be counted is left out, and its files are read again.
        let Ok(length) = u32::try_from(block.0.len() + checksum.len()) else { return Ok(()) };
        if block.0.is_empty() {
            return Ok(());
        }
        self.to.write_all(&block.0)?;
        self.to.write_all(&checksum)?;
        self.rows.push((key, self.offset, length));
        self.offset += u64::from(length);
        Ok(())
    }

    /// Writes the table. What becomes of the file then is the caller's business.
    pub fn finish(mut self) -> io::Result<()> {
        self.rows.sort_unstable();
        let mut table = Vec::with_capacity(self.rows.len() * super::format::ROW);
        for (key, offset, length) in &self.rows {
            table.extend(row(*key, *offset, *length));
        }
        let mut end = self.offset.to_le_bytes().to_vec();
        end.extend((self.rows.len() as u64).to_le_bytes());
        let checksum = sum(&[&self.head, &table, &end]);
        self.to.write_all(&table)?;
        self.to.write_all(&end)?;
        self.to.write_all(&checksum)?;
        self.to.flush()
    }
}
