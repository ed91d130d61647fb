//! The log of a command that runs without a caller: what it wrote, to which stream, and when.
//!
//! A log is two files at most, `PATH` and the older `PATH.1`, each a row of frames: the stream, the time, how
//! much was written before, the length, the bytes. A full file becomes the older one and takes the place of
//! the one before, so that a command that writes for ever fills no disk. A reader can tell from the count in
//! each frame what it missed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::follow::{Follow, older};

/// When a file is full.
const CAP: u64 = 8 << 20;
const HEADER: usize = 21;
/// No frame is longer: what a longer one says is not ours.
const LONGEST: usize = 1 << 20;

/// Which stream a frame came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub stream: Stream,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// How many bytes were written before this one that the reader has not seen.
    pub missed: u64,
    pub bytes: Vec<u8>,
}

/// Writes a log.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    size: u64,
    written: u64,
    cap: u64,
}

impl Writer {
    /// Starts a log at `path`.
    pub fn new(path: &Path) -> io::Result<Self> {
        Self::with_cap(path, CAP)
    }

    fn with_cap(path: &Path, cap: u64) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: fresh(path)?, size: 0, written: 0, cap })
    }

    /// Adds what came from `stream`.
    pub fn write(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        if self.size >= self.cap {
            fs_err::rename(&self.path, older(&self.path))?;
            self.file = fresh(&self.path)?;
            self.size = 0;
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        for bytes in bytes.chunks(LONGEST) {
            let length = u32::try_from(bytes.len()).expect("at most LONGEST");
            let mut frame = vec![match stream {
                Stream::Out => 1,
                Stream::Err => 2,
            }];
            frame.extend(at.to_le_bytes());
            frame.extend(self.written.to_le_bytes());
            frame.extend(length.to_le_bytes());
            frame.extend(bytes);
            self.file.write_all(&frame)?;
            self.size += u64::try_from(frame.len()).expect("a length");
            self.written += u64::from(length);
        }
        Ok(())
    }
}

/// Reads a log, also while it is written.
#[derive(Debug)]
pub struct Reader {
    files: Follow,
    /// Bytes that are no whole frame yet.
    rest: Vec<u8>,
    seen: u64,
}

impl Reader {
    /// Starts at the oldest frame there is. A log that does not exist yet is an empty one.
    pub fn new(path: &Path) -> Self {
        Self { files: Follow::new(path), rest: Vec::new(), seen: 0 }
    }

    /// Every frame that is there now.
    pub fn frames(&mut self) -> io::Result<Vec<Frame>> {
        let mut frames = Vec::new();
        for (index, piece) in self.files.pieces()?.into_iter().enumerate() {
            if index > 0 {
                self.rest.clear();
            }
            self.rest.extend(piece);
            self.take(&mut frames);
        }
        Ok(frames)
    }

    fn take(&mut self, frames: &mut Vec<Frame>) {
        let mut start = 0;
        while let Some((frame, place, length)) = parse(&self.rest[start..]) {
            start += length;
            let missed = place.saturating_sub(self.seen);
            self.seen = place + u64::try_from(frame.bytes.len()).expect("a length");
            frames.push(Frame { missed, ..frame });
        }
        self.rest.drain(..start);
    }
}

/// The first whole frame of `bytes`, where in the whole log it stands, and how long it is.
fn parse(bytes: &[u8]) -> Option<(Frame, u64, usize)> {
    let header: &[u8; HEADER] = bytes.first_chunk()?;
    let number =
        |range: std::ops::Range<usize>| u64::from_le_bytes(header[range].try_into().expect("eight bytes"));
    let length = u32::from_le_bytes(header[17..21].try_into().expect("four bytes"));
    let length = usize::try_from(length).ok().filter(|length| *length <= LONGEST)?;
    let body = bytes[HEADER..].get(..length)?.to_vec();
    let stream = if header[0] == 2 { Stream::Err } else { Stream::Out };
    Some((Frame { stream, at_ms: number(1..9), missed: 0, bytes: body }, number(9..17), HEADER + length))
}

fn fresh(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(frames: &[Frame]) -> String {
        frames.iter().map(|frame| String::from_utf8_lossy(&frame.bytes)).collect()
    }

    #[test]
    fn a_reader_follows_a_writer_over_full_files() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("log");
        let mut reader = Reader::new(&path);
        assert!(reader.frames().expect("nothing yet").is_empty());
        let mut writer = Writer::with_cap(&path, 100).expect("can be made");
        let mut expected = String::new();
        for round in 0..50 {
            let line = format!("line {round}\n");
            writer
                .write(if round % 2 == 0 { Stream::Out } else { Stream::Err }, line.as_bytes())
                .expect("room");
            expected = line;
            let frames = reader.frames().expect("readable");
            assert_eq!((text(&frames), frames[0].missed), (expected.clone(), 0));
        }
        let late = Reader::new(&path).frames().expect("readable");
        assert!(late.len() < 20 && late[0].missed > 0, "two files at most are kept");
        assert!(text(&late).ends_with(&expected));
        assert_eq!(late.last().map(|frame| frame.stream), Some(Stream::Err));
    }

    #[test]
    fn half_a_frame_waits_for_its_rest() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (whole, path) = (directory.path().join("whole"), directory.path().join("log"));
        Writer::new(&whole).and_then(|mut log| log.write(Stream::Out, b"abc")).expect("room");
        let bytes = fs_err::read(&whole).expect("written");
        let mut file = File::create(&path).expect("a fresh directory");
        let mut reader = Reader::new(&path);
        for byte in &bytes[..bytes.len() - 1] {
            file.write_all(&[*byte]).expect("room");
            assert!(reader.frames().expect("readable").is_empty());
        }
        file.write_all(&bytes[bytes.len() - 1..]).expect("room");
        assert_eq!(text(&reader.frames().expect("readable")), "abc");
    }
}
