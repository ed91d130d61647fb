//! Compression: little of it while somebody waits, since time counts more than space then; more when packs are made
//! compact; and none where it gains nothing.

use std::cell::Cell;

use flate2::{Compress, Compression, FlushCompress, Status};

/// Below this a header is all that compression adds.
const TINY: usize = 64;
/// As much is tried to see whether the rest is worth it.
const SAMPLE: usize = 8 << 10;

thread_local! {
    /// Setting one up costs more than a small object does.
    static FAST: Cell<Option<Compress>> = const { Cell::new(None) };
    static SMALL: Cell<Option<Compress>> = const { Cell::new(None) };
    static NONE: Cell<Option<Compress>> = const { Cell::new(None) };
}

/// `data` as a zlib stream, appended to `to`; quickly.
pub(super) fn deflate(data: &[u8], to: &mut Vec<u8>) {
    deflate_at(Level::Fast, data, to);
}

/// `data` as a zlib stream, appended to `to`; as small as is reasonable.
pub(super) fn deflate_small(data: &[u8], to: &mut Vec<u8>) {
    deflate_at(Level::Small, data, to);
}

fn deflate_at(level: Level, data: &[u8], to: &mut Vec<u8>) {
    let start = to.len();
    if data.len() < TINY || data.len() > SAMPLE {
        return Deflate::new(if pays(data) { level } else { Level::None }).all(data, to);
    }
    Deflate::new(level).all(data, to);
    if !gains(data.len(), to.len() - start) {
        to.truncate(start);
        Deflate::new(Level::None).all(data, to);
    }
}

#[derive(Clone, Copy)]
enum Level {
    Fast,
    /// As git has it.
    Small,
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
            Level::Small => (&SMALL, Compression::default()),
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
            Level::Small => SMALL.set(self.state.take()),
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
