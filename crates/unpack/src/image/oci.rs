//! OCI layouts: an index names a manifest, a manifest names layers, each by the hash of its bytes.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};

use sandtable_store::dir::{open_below, open_file, stat_at};
use sandtable_store::path::RelPath;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Error, Limits};
use crate::archive::plant::{Tree, Whiteouts, removals};
use crate::archive::stream::{Hashing, Stream, Wanted, sha256};
use crate::archive::{Error as ArchiveError, Reader};

/// The largest index, manifest or configuration.
const LARGEST_DOCUMENT: u64 = 4 << 20;
/// How deep indexes may be nested.
const DEEPEST_INDEX: usize = 4;
/// How many layers an image may have; overlays of other tools end long before.
const MOST_LAYERS: usize = 1000;

/// A layout that was opened.
pub(super) struct Layout<'a> {
    root: OwnedFd,
    cancelled: &'a dyn Fn() -> bool,
}

/// An image of a layout, with everything but its layers read and checked.
#[derive(Debug)]
pub(super) struct Image {
    /// The hash of the manifest, which names everything else.
    pub(super) digest: String,
    pub(super) environment: Vec<String>,
    layers: Vec<Descriptor>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    digest: String,
    size: u64,
    platform: Option<Platform>,
}

#[derive(Clone, Debug, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

/// A manifest, or an index in its place.
#[derive(Deserialize)]
struct Document {
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
}

#[derive(Deserialize)]
struct Configuration {
    architecture: Option<String>,
    os: Option<String>,
    config: Option<Defaults>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Defaults {
    env: Option<Vec<String>>,
}

impl<'a> Layout<'a> {
    pub(super) fn new(root: OwnedFd, cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { root, cancelled }
    }

    /// The one image for this machine.
    pub(super) fn image(&self) -> Result<Image, Error> {
        let (text, _) = self.read("index.json", LARGEST_DOCUMENT)?;
        let index: Index = parsed("index.json", &text)?;
        let mut here = chosen(&index.manifests)?;
        for _ in 0..DEEPEST_INDEX {
            let document: Document = self.document(&here)?;
            match (document.manifests, document.config, document.layers) {
                (Some(manifests), ..) => here = chosen(&manifests)?,
                (None, Some(config), Some(layers)) => return self.complete(&here, &config, layers),
                _ => return Err(layout(&here.digest, "it is neither an index nor a manifest")),
            }
        }
        Err(layout("index.json", "its indexes are nested too deeply"))
    }

    fn complete(
        &self,
        manifest: &Descriptor,
        config: &Descriptor,
        layers: Vec<Descriptor>,
    ) -> Result<Image, Error> {
        let configuration: Configuration = self.document(config)?;
        let found = (configuration.os.as_deref(), configuration.architecture.as_deref());
        if !fits(found.0.unwrap_or("linux"), found.1.unwrap_or(architecture())) {
            let found = format!("it is for `{}/{}`", found.0.unwrap_or("?"), found.1.unwrap_or("?"));
            return Err(Error::NoSuchPlatform { wanted: wanted(), found });
        }
        if layers.len() > MOST_LAYERS {
            return Err(ArchiveError::TooLarge(format!("{MOST_LAYERS} layers")).into());
        }
        for layer in &layers {
            hash_of(layer)?;
        }
        let environment = configuration.config.and_then(|defaults| defaults.env).unwrap_or_default();
        Ok(Image { digest: hash_of(manifest)?.to_owned(), environment, layers })
    }

    /// Unpacks all layers, lowest first.
    pub(super) fn unpack(&self, image: &Image, tree: &mut Tree, limits: Limits) -> Result<(), Error> {
        for layer in &image.layers {
            // Read twice: what a layer takes away is taken from the layers below it, wherever in the archive it
            // says so; and nothing of a blob is used before all of it was compared with its digest.
            let gone = self.through(layer, limits, removals)?;
            tree.remove(&gone)?;
            self.through(layer, limits, |archive| tree.unpack(archive, Whiteouts::AreDone))?;
        }
        Ok(())
    }

    /// Reads a layer to its end and compares it with its digest.
    fn through<T>(
        &self,
        layer: &Descriptor,
        limits: Limits,
        each: impl FnOnce(&mut Reader<Wanted<'a, Stream<Hashing<File>>>>) -> Result<T, ArchiveError>,
    ) -> Result<T, Error> {
        let hash = hash_of(layer)?;
        let bytes = Stream::new(Hashing::new(self.blob(hash)?))?;
        let mut archive = Reader::new(Wanted::new(bytes, self.cancelled), limits);
        let answer = each(&mut archive)?;
        let found = archive.into_inner().into_inner().into_inner().finish().map_err(ArchiveError::Read)?;
        if found != (hash.to_owned(), layer.size) {
            return Err(Error::Digest { name: layer.digest.clone() });
        }
        Ok(answer)
    }

    fn document<T: DeserializeOwned>(&self, descriptor: &Descriptor) -> Result<T, Error> {
        let hash = hash_of(descriptor)?;
        let (text, _) = self.read(&format!("blobs/sha256/{hash}"), LARGEST_DOCUMENT)?;
        if sha256(text.as_bytes()) != hash || text.len() as u64 != descriptor.size {
            return Err(Error::Digest { name: descriptor.digest.clone() });
        }
        parsed(&descriptor.digest, &text)
    }

    fn blob(&self, hash: &str) -> Result<File, Error> {
        self.file(&format!("blobs/sha256/{hash}"))
    }

    fn read(&self, name: &str, limit: u64) -> Result<(String, u64), Error> {
        let mut text = String::new();
        let read = self.file(name)?.take(limit + 1).read_to_string(&mut text);
        let read = read.map_err(Error::file("read", name))? as u64;
        if read > limit { Err(layout(name, "it is too large")) } else { Ok((text, read)) }
    }

    /// A file of the layout, never by way of a symbolic link.
    fn file(&self, name: &str) -> Result<File, Error> {
        let path = RelPath::new(name).expect("we wrote it, or it is a hash");
        let (parent, last) = (path.parent().expect("not the root"), path.name().expect("not the root"));
        let opened = open_below(self.root.as_fd(), &parent).and_then(|parent| {
            let found = stat_at(parent.as_fd(), last)?;
            open_file(parent.as_fd(), last, &found)
        });
        opened.map(File::from).map_err(|errno| Error::file("open", name)(errno.into()))
    }
}

/// The one entry that is for this machine.
fn chosen(manifests: &[Descriptor]) -> Result<Descriptor, Error> {
    let names = |manifests: &[Descriptor]| {
        let name = |entry: &Descriptor| match &entry.platform {
            Some(platform) => format!("`{}/{}`", platform.os, platform.architecture),
            None => format!("`{}`", entry.digest),
        };
        manifests.iter().take(8).map(name).collect::<Vec<_>>().join(", ")
    };
    let fit = |entry: &&Descriptor| {
        entry.platform.as_ref().is_none_or(|platform| fits(&platform.os, &platform.architecture))
    };
    let mut found: Vec<Descriptor> = manifests.iter().filter(fit).cloned().collect();
    found.dedup_by(|a, b| a.digest == b.digest);
    match found.len() {
        0 => Err(Error::NoSuchPlatform { wanted: wanted(), found: format!("it has {}", names(manifests)) }),
        1 => Ok(found.remove(0)),
        _ => Err(Error::Several(names(&found))),
    }
}

/// The hexadecimal hash of a descriptor. Nothing else may become part of a path.
fn hash_of(descriptor: &Descriptor) -> Result<&str, Error> {
    let hash = descriptor.digest.strip_prefix("sha256:");
    let plain =
        |hash: &&str| hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    hash.filter(plain).ok_or_else(|| layout(&descriptor.digest, "its digest is no SHA-256"))
}

fn parsed<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| layout(name, &error.to_string()))
}

fn layout(name: &str, why: &str) -> Error {
    Error::Layout { name: name.escape_debug().to_string(), why: why.to_owned() }
}

fn fits(os: &str, machine: &str) -> bool {
    os == "linux" && machine == architecture()
}

fn wanted() -> String {
    format!("linux/{}", architecture())
}

/// How images call the architecture of this machine.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
