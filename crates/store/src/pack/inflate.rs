//! Decompression of one stream, never further than asked.

use std::cell::Cell;
use std::cmp::Ordering;

use flate2::{Decompress, FlushDecompress, Status};

use super::EntryError;
use super::input::Input;

/// Deflate cannot make more than this of one byte.
const RATIO: u64 = 1032;

/// Room behind a whole object. Decompression goes byte by byte where the longest match (258 bytes) has no room, and a
/// stream is known to end only when there is room for more: with this an object is one call, in long strides to its end.
const SLACK: usize = 320;

thread_local! {
    /// Setting one up costs more than a small object does.
    static IDLE: Cell<Option<Decompress>> = const { Cell::new(None) };
}

pub(super) struct Inflate<'a> {
    input: Input<'a>,
    state: Option<Decompress>,
    done: bool,
}

impl<'a> Inflate<'a> {
    pub(super) fn new(input: Input<'a>) -> Self {
        let state = IDLE.take().map(|mut state| {
            state.reset(true);
            state
        });
        Self { input, state: Some(state.unwrap_or_else(|| Decompress::new(true))), done: false }
    }

    /// Some of what follows; nothing only at the end.
    pub(super) fn some(&mut self, to: &mut [u8]) -> Result<usize, EntryError> {
        let state = self.state.as_mut().expect("taken only when dropped");
        while !self.done {
            let chunk = self.input.chunk()?;
            let (before_in, before_out) = (state.total_in(), state.total_out());
            let status = state
                .decompress(chunk, to, FlushDecompress::None)
                .map_err(|error| EntryError::damaged(format!("it does not decompress ({error})")))?;
            let at_end = chunk.is_empty();
            let count = |after: u64, before: u64| usize::try_from(after - before).expect("within a buffer");
            let consumed = count(state.total_in(), before_in);
            let made = count(state.total_out(), before_out);
            self.input.consume(consumed);
            self.done = status == Status::StreamEnd;
            if made > 0 {
                return Ok(made);
            }
            if !self.done && at_end {
                return Err(EntryError::damaged("it is cut off"));
            }
        }
        Ok(0)
    }

    /// All of it, which must be `size` bytes. Memory is taken only as far as there is something to decompress.
    pub(super) fn whole(&mut self, size: u64) -> Result<Vec<u8>, EntryError> {
        let possible = self.input.remaining().saturating_mul(RATIO);
        if size > possible {
            return Err(EntryError::damaged("it says it is larger than it can be"));
        }
        let size = usize::try_from(size).map_err(|_| EntryError::TooLarge(size))?;
        let mut data = vec![0; size + SLACK];
        let mut filled = 0;
        while filled <= size {
            match self.some(&mut data[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        match filled.cmp(&size) {
            Ordering::Less => Err(EntryError::damaged("it is shorter than it says")),
            Ordering::Greater => Err(longer()),
            Ordering::Equal => {
                data.truncate(size);
                Ok(data)
            }
        }
    }

    /// Nothing may follow.
    pub(super) fn end(&mut self) -> Result<(), EntryError> {
        match self.some(&mut [0; 16])? {
            0 => Ok(()),
            _ => Err(longer()),
        }
    }
}

fn longer() -> EntryError {
    EntryError::damaged("it is longer than it says")
}

impl Drop for Inflate<'_> {
    fn drop(&mut self) {
        IDLE.set(self.state.take());
    }
}
