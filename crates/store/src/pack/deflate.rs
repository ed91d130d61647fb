//! Compression: little of it, since time counts more than space here, and none where it gains nothing.

use flate2::{Compress, Compression, FlushCompress, Status};

/// Below this a header is all that compression adds.
const TINY: usize = 64;
/// As much is tried to see whether the rest is worth it.
const SAMPLE: usize = 8 << 10;

/// `data` as a zlib stream, appended to `to`.
pub(super) fn deflate(data: &[u8], to: &mut Vec<u8>) {
    let mut deflate = Deflate::for_content(data);
    deflate.push(data, to);
    deflate.finish(to);
}

/// A stream that is compressed piece by piece.
pub(super) struct Deflate(Compress);

impl Deflate {
    /// For content that starts with `start`.
    pub(super) fn for_content(start: &[u8]) -> Self {
        let level = if pays(start) { Compression::fast() } else { Compression::none() };
        Self(Compress::new(level, true))
    }

    pub(super) fn push(&mut self, mut data: &[u8], to: &mut Vec<u8>) {
        while !data.is_empty() {
            let before = self.0.total_in();
            self.step(data, to, FlushCompress::None);
            data = &data[usize::try_from(self.0.total_in() - before).expect("within a buffer")..];
        }
    }

    pub(super) fn finish(&mut self, to: &mut Vec<u8>) {
        while self.step(&[], to, FlushCompress::Finish) != Status::StreamEnd {}
    }

    fn step(&mut self, data: &[u8], to: &mut Vec<u8>, flush: FlushCompress) -> Status {
        to.reserve((data.len() / 2).clamp(256, 64 << 10));
        self.0.compress_vec(data, to, flush).expect("compression into memory cannot fail")
    }
}

fn pays(start: &[u8]) -> bool {
    if start.len() < TINY {
        return false;
    }
    let sample = &start[..start.len().min(SAMPLE)];
    let mut out = Vec::with_capacity(sample.len() + 64);
    let mut compress = Compress::new(Compression::fast(), true);
    let status = compress.compress_vec(sample, &mut out, FlushCompress::Finish);
    matches!(status, Ok(Status::StreamEnd)) && out.len() < sample.len() - sample.len() / 16
}
