//! Archives and image layouts made by hand, well-formed or not: a test says exactly which bytes it means.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// A tar archive in the making. Names are written as they are given.
#[derive(Clone, Debug, Default)]
pub struct Tar(Vec<u8>);

/// A header, field by field.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    pub name: &'a [u8],
    pub kind: u8,
    pub mode: u32,
    /// What the header claims, which need not be true.
    pub size: u64,
    pub link: &'a [u8],
}

impl Tar {
    #[must_use]
    pub fn directory(self, name: &str) -> Self {
        self.entry(Header { name: name.as_bytes(), kind: b'5', mode: 0o755, size: 0, link: b"" }, b"")
    }

    #[must_use]
    pub fn file(self, name: &str, mode: u32, content: &[u8]) -> Self {
        let size = content.len() as u64;
        self.entry(Header { name: name.as_bytes(), kind: b'0', mode, size, link: b"" }, content)
    }

    #[must_use]
    pub fn symlink(self, name: &str, to: &str) -> Self {
        self.entry(
            Header { name: name.as_bytes(), kind: b'2', mode: 0o777, size: 0, link: to.as_bytes() },
            b"",
        )
    }

    #[must_use]
    pub fn hard_link(self, name: &str, to: &str) -> Self {
        self.entry(
            Header { name: name.as_bytes(), kind: b'1', mode: 0o644, size: 0, link: to.as_bytes() },
            b"",
        )
    }

    /// A file whose name is in an extension header.
    #[must_use]
    pub fn long(self, name: &str, content: &[u8]) -> Self {
        let record = |length: usize| format!("{length} path={name}\n");
        let length = (0..10_000).find(|length| record(*length).len() == *length).expect("a name is short");
        let record = record(length).into_bytes();
        let size = record.len() as u64;
        let extension = Header { name: b"extension", kind: b'x', mode: 0o644, size, link: b"" };
        self.entry(extension, &record).file("short", 0o644, content)
    }

    /// A header as it is given, with a right checksum, and content filled up to whole blocks.
    #[must_use]
    pub fn entry(mut self, header: Header<'_>, content: &[u8]) -> Self {
        let mut block = [0_u8; 512];
        block[..header.name.len()].copy_from_slice(header.name);
        block[100..107].copy_from_slice(format!("{:07o}", header.mode).as_bytes());
        block[108..116].copy_from_slice(b"0000000\0");
        block[116..124].copy_from_slice(b"0000000\0");
        // Large numbers are written as bytes.
        if header.size < 1 << 33 {
            block[124..135].copy_from_slice(format!("{:011o}", header.size).as_bytes());
        } else {
            block[124] = 0x80;
            block[128..136].copy_from_slice(&header.size.to_be_bytes());
        }
        block[136..147].copy_from_slice(b"14200000000");
        block[156] = header.kind;
        block[157..157 + header.link.len()].copy_from_slice(header.link);
        block[257..265].copy_from_slice(b"ustar\x0000");
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        self.0.extend_from_slice(&block);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    /// The archive with its end mark.
    pub fn finished(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

/// Compresses as `gzip` does.
///
/// # Panics
/// If there is no memory.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("written to memory")
}

/// The hexadecimal SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> String {
    let digits =
        |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).expect("below 16"));
    Sha256::digest(bytes).iter().flat_map(digits).collect()
}

/// Files by their paths.
pub type Files = Vec<(String, Vec<u8>)>;

/// The files of an OCI layout with one image for this machine, by their paths.
///
/// # Panics
/// If the architecture is one that images have no name for here.
pub fn layout(layers: &[Vec<u8>], environment: &[&str]) -> Files {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => panic!("no image is made for {other}"),
    };
    let env = environment.iter().map(|variable| format!("{variable:?}")).collect::<Vec<_>>().join(",");
    let config = format!(
        r#"{{"architecture":"{architecture}","os":"linux","config":{{"Env":[{env}],"Entrypoint":["/nowhere"],"User":"7"}},"rootfs":{{"type":"layers","diff_ids":[]}}}}"#
    );
    let descriptor = |kind: &str, bytes: &[u8]| {
        format!(r#"{{"mediaType":"{kind}","digest":"sha256:{}","size":{}}}"#, sha256(bytes), bytes.len())
    };
    let kind = |layer: &[u8]| match layer {
        [0x1f, ..] => "application/vnd.oci.image.layer.v1.tar+gzip",
        _ => "application/vnd.oci.image.layer.v1.tar",
    };
    let each: Vec<String> = layers.iter().map(|layer| descriptor(kind(layer), layer)).collect();
    let manifest = format!(
        r#"{{"schemaVersion":2,"config":{},"layers":[{}]}}"#,
        descriptor("application/vnd.oci.image.config.v1+json", config.as_bytes()),
        each.join(",")
    );
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[{}]}}"#,
        descriptor("application/vnd.oci.image.manifest.v1+json", manifest.as_bytes())
    );
    let blobs = layers.iter().cloned().chain([config.into_bytes(), manifest.into_bytes()]);
    let mut files: Files = blobs.map(|bytes| (format!("blobs/sha256/{}", sha256(&bytes)), bytes)).collect();
    files.push(("index.json".to_owned(), index.into_bytes()));
    files.push(("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()));
    files
}

/// Writes the files of a layout below `directory`.
///
/// # Panics
/// If they cannot be written.
pub fn write_layout(directory: &Path, files: &[(String, Vec<u8>)]) {
    for (name, bytes) in files {
        let path = directory.join(name);
        fs_err::create_dir_all(path.parent().expect("below the directory")).expect("a directory of our own");
        fs_err::write(path, bytes).expect("a file of our own");
    }
}
