//! The bytes of an archive: hashed as they are read, and decompressed where they are compressed.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest as _, Sha256};

use super::Error;

/// Passes bytes on and remembers their hash.
pub(super) struct Hashing<R> {
    inner: R,
    hash: Sha256,
    count: u64,
}

impl<R: Read> Hashing<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, hash: Sha256::new(), count: 0 }
    }

    /// Reads to the end and says what the hash of everything is, and how many bytes it was.
    pub(super) fn finish(mut self) -> io::Result<(String, u64)> {
        io::copy(&mut self, &mut io::sink())?;
        Ok((hex(&self.hash.finalize()), self.count))
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.count += read as u64;
        Ok(read)
    }
}

/// The hash of some bytes.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string");
        text
    })
}

/// A tar archive as it lies on disk.
pub(super) enum Stream<R: Read> {
    Plain(BufReader<R>),
    Gzip(Box<MultiGzDecoder<BufReader<R>>>),
}

impl<R: Read> Stream<R> {
    /// Looks at the first bytes; what cannot be decompressed is refused by its name.
    pub(super) fn new(input: R) -> Result<Self, Error> {
        let mut input = BufReader::with_capacity(128 * 1024, input);
        let start = input.fill_buf().map_err(Error::Read)?;
        match start {
            [0x1f, 0x8b, ..] => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(input)))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Err(Error::Compression("zstd")),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Err(Error::Compression("xz")),
            [b'B', b'Z', b'h', ..] => Err(Error::Compression("bzip2")),
            _ => Ok(Self::Plain(input)),
        }
    }

    /// What it reads from. Bytes that were read ahead have passed through it already.
    pub(super) fn into_inner(self) -> R {
        match self {
            Self::Plain(input) => input.into_inner(),
            Self::Gzip(decoder) => decoder.into_inner().into_inner(),
        }
    }
}

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
        }
    }
}
