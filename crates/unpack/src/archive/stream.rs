//! The bytes of an archive: hashed as they are read, and decompressed where they are compressed.

use std::io::{self, BufRead, BufReader, Read};
use std::num::NonZeroUsize;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use sandtable_store::hex;
use sha2::{Digest as _, Sha256};
use xz4rust::{XzDecoder, XzReader};

use super::Error;

/// How much is read at once.
const AT_ONCE: usize = 128 * 1024;
/// The largest window of earlier bytes that a compressed archive may refer to: what the most thorough settings of
/// the usual programs use. It is memory that an archive makes us take.
const LARGEST_WINDOW: usize = 128 << 20;

/// Passes bytes on and remembers their hash.
#[derive(Debug)]
pub(crate) struct Hashing<R> {
    inner: R,
    hash: Sha256,
    count: u64,
}

impl<R: Read> Hashing<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, hash: Sha256::new(), count: 0 }
    }

    /// Reads to the end and says what the hash of everything is, and how many bytes it was.
    pub(crate) fn finish(mut self) -> io::Result<(String, u64)> {
        io::copy(&mut self, &mut io::sink())?;
        Ok((hex::encode(&self.hash.finalize()), self.count))
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

/// Passes bytes on until the operation is cancelled.
pub(crate) struct Wanted<'a, R> {
    inner: R,
    cancelled: &'a dyn Fn() -> bool,
}

impl<'a, R> Wanted<'a, R> {
    pub(crate) fn new(inner: R, cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { inner, cancelled }
    }

    pub(crate) fn into_inner(self) -> R {
        self.inner
    }
}

impl<R: Read> Read for Wanted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.cancelled)() { Err(io::Error::other("cancelled")) } else { self.inner.read(buffer) }
    }
}

/// The hash of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}

/// A tar archive as it lies on disk.
pub(crate) enum Stream<R: Read + 'static> {
    Plain(BufReader<R>),
    Gzip(Box<MultiGzDecoder<BufReader<R>>>),
    Xz(Box<XzReader<BufReader<R>>>),
    Zstd(Box<StreamingDecoder<BufReader<R>, FrameDecoder>>),
}

impl<R: Read + 'static> Stream<R> {
    /// Looks at the first bytes; what cannot be decompressed is refused by its name.
    pub(crate) fn new(input: R) -> Result<Self, Error> {
        let mut input = BufReader::with_capacity(AT_ONCE, input);
        let start = input.fill_buf().map_err(Error::Read)?;
        match start {
            [0x1f, 0x8b, ..] => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(input)))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                let decoder = StreamingDecoder::new_with_max_window_size(input, LARGEST_WINDOW as u64);
                decoder
                    .map(|decoder| Self::Zstd(Box::new(decoder)))
                    .map_err(|_| Error::Damaged("it does not begin as zstd does"))
            }
            [0xfd, b'7', b'z', b'X', b'Z', ..] => {
                let decoder = XzDecoder::in_heap_with_alloc_dict_size(1 << 16, LARGEST_WINDOW);
                let buffer = NonZeroUsize::new(AT_ONCE).expect("not zero");
                let reader = XzReader::new_with_buffer_size_and_decoder(input, buffer, decoder);
                Ok(Self::Xz(Box::new(reader)))
            }
            [b'B', b'Z', b'h', ..] => Err(Error::Compression("bzip2")),
            _ => Ok(Self::Plain(input)),
        }
    }

    /// What it reads from. Bytes that were read ahead have passed through it already.
    pub(crate) fn into_inner(self) -> R {
        match self {
            Self::Plain(input) => input.into_inner(),
            Self::Gzip(decoder) => decoder.into_inner().into_inner(),
            Self::Xz(reader) => reader.into_inner().0.into_inner(),
            Self::Zstd(decoder) => decoder.into_inner().into_inner(),
        }
    }
}

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Xz(reader) => reader.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
        }
    }
}
