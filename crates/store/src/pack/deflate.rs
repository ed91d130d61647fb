//! Compression: little of it, since time counts more than space here, and none where it gains nothing.

use std::cell::Cell;

use flate2::{Compress, Compression, FlushCompress, Status};

/// Below this a header is all that compression adds.
const TINY: usize = 64;
/// As much is tried to see whether the rest is worth it.
const SAMPLE: usize = 8 << 10;

thread_local! {
    /// Setting one up costs more than a small object does.
    static FAST: Cell<Option<Compress>> = const { Cell::new(None) };
    static NONE: Cell<Option<Compress>> = const { Cell::new(None) };
}

/// `data` as a zlib stream, appended to `to`.
pub(super) fn deflate(data: &[u8], to: &mut Vec<u8>) {
    let start = to.len();
    if data.len() > SAMPLE {
        return Deflate::for_content(data).all(data, to);
    }
    if data.len() < TINY {
        return plain(data, to);
    }
    Deflate::new(Level::Fast).all(data, to);
    if !gains(data.len(), to.len() - start) {
        to.truncate(start);
        plain(data, to);
    }
}

/// The stream of something short that is not compressed. To set up a compressor that copies takes longer than all of it.
fn plain(data: &[u8], to: &mut Vec<u8>) {
    let length = u16::try_from(data.len()).expect("it is shorter than a sample");
    to.reserve(data.len() + 11);
    // A window of 32 KiB, no dictionary; then one block, which is the last, as it is.
    to.extend([0x78, 0x01, 1]);
    to.extend(length.to_le_bytes());
    to.extend((!length).to_le_bytes());
    to.extend_from_slice(data);
    to.extend(adler(data).to_be_bytes());
}

/// The checksum of a zlib stream, of something so short that sums of 64 bits are far from their end.
fn adler(data: &[u8]) -> u32 {
    let (mut low, mut high) = (1_u64, 0_u64);
    for byte in data {
        low += u64::from(*byte);
        high += low;
    }
    u32::try_from((high % 65521) << 16 | (low % 65521)).expect("two numbers of 16 bits")
}

#[derive(Clone, Copy)]
enum Level {
    Fast,
    None,
}

/// A stream that is compressed piece by piece.
pub(super) struct Deflate {
    state: Option<Compress>,
    level: Level,
}

impl Deflate {
    fn new(level: Level) -> Self {
        let (idle, compression) = match level {
            Level::Fast => (&FAST, Compression::fast()),
            Level::None => (&NONE, Compression::none()),
        };
        let state = idle.take().map(|mut state| {
            state.reset();
            state
        });
        Self { state: Some(state.unwrap_or_else(|| Compress::new(compression, true))), level }
    }

    /// For content that starts with `start`.
    pub(super) fn for_content(start: &[u8]) -> Self {
        Self::new(if pays(start) { Level::Fast } else { Level::None })
    }

    fn all(mut self, data: &[u8], to: &mut Vec<u8>) {
        self.push(data, to);
        self.finish(to);
    }

    pub(super) fn push(&mut self, mut data: &[u8], to: &mut Vec<u8>) {
        while !data.is_empty() {
            let before = self.state().total_in();
            self.step(data, to, FlushCompress::None);
            data = &data[usize::try_from(self.state().total_in() - before).expect("within a buffer")..];
        }
    }

    pub(super) fn finish(mut self, to: &mut Vec<u8>) {
        while self.step(&[], to, FlushCompress::Finish) != Status::StreamEnd {}
    }

    fn step(&mut self, data: &[u8], to: &mut Vec<u8>, flush: FlushCompress) -> Status {
        to.reserve((data.len() / 2).clamp(256, 64 << 10));
        self.state().compress_vec(data, to, flush).expect("compression into memory cannot fail")
    }

    fn state(&mut self) -> &mut Compress {
        self.state.as_mut().expect("taken only when dropped")
    }
}

impl Drop for Deflate {
    fn drop(&mut self) {
        match self.level {
            Level::Fast => FAST.set(self.state.take()),
            Level::None => NONE.set(self.state.take()),
        }
    }
}

fn pays(start: &[u8]) -> bool {
    if start.len() < TINY {
        return false;
    }
    let sample = &start[..start.len().min(SAMPLE)];
    let mut out = Vec::with_capacity(sample.len());
    Deflate::new(Level::Fast).all(sample, &mut out);
    gains(sample.len(), out.len())
}

/// Whether a sixteenth is saved.
fn gains(before: usize, after: usize) -> bool {
    after < before - before / 16
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn what_is_not_compressed_is_a_stream_like_any_other() {
        for length in [0, 1, TINY - 1, TINY, 300, 5552, SAMPLE] {
            for step in [0_usize, 1, 97] {
                let data: Vec<u8> =
                    (0..length).map(|at| u8::try_from((at * step + 255) % 256).unwrap()).collect();
                let mut stream = b"before".to_vec();
                plain(&data, &mut stream);
                let mut found = Vec::new();
                flate2::read::ZlibDecoder::new(&stream[6..]).read_to_end(&mut found).unwrap();
                assert!(found == data, "{length} bytes");
            }
        }
    }

    #[test]
    fn a_wrong_checksum_would_be_noticed() {
        let mut stream = Vec::new();
        plain(b"some bytes", &mut stream);
        *stream.last_mut().unwrap() ^= 1;
        assert!(flate2::read::ZlibDecoder::new(&stream[..]).read_to_end(&mut Vec::new()).is_err());
    }
}
