//! An image as the root of a sandbox on this kernel: its directories stand where the host's would.
//!
//! The root itself stays ours. An image's directory is one read-only mount, unless something of ours belongs
//! below it at a place that the image does not have: then it becomes a directory of ours that shows the image's
//! entries one by one. Nothing is ever made in the image. `ENTRYPOINT`, `USER` and the rest of an image's
//! configuration are wishes about how to start it and are not taken; its `PATH` is, since only the image knows
//! where its programs are.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::case::Case;
use super::error::ResolveError;
use super::{user_mounts, warnings};
use crate::facts::Kind;
use crate::model::engine::System;
use crate::model::image::ResolvedImage;
use crate::model::mount::{Content, HostAccess, Mount, Ownership};
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::Warning;
use crate::model::setting::{Origin, Setting};

/// Where below our state unpacked images are. The store writes them.
const IMAGES: &str = "images";
/// The largest description of an unpacked image.
const LARGEST_META: u64 = 1 << 20;
/// How many entries a directory may have that is shown entry by entry.
const MOST_ENTRIES: usize = 10_000;
const REASON: &str = "part of the image";

/// An image that can be shown.
#[derive(Debug)]
pub(super) struct Rootfs {
    pub(super) image: ResolvedImage,
    root: HostPath,
    /// Where the image says its programs are.
    pub(super) search: Option<String>,
    origin: Origin,
}

/// What the store wrote beside an unpacked image; the rest of it is of no use here.
#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    environment: Vec<String>,
}

/// The image that is asked for, if one is.
pub(super) fn find(case: &Case<'_>) -> Result<Option<Rootfs>, ResolveError> {
    let Some(Setting { value: image, origin }) = &case.spec.image else { return Ok(None) };
    if case.traits().system == System::Image {
        return Ok(None);
    }
    if !image.is_path() {
        return Err(ResolveError::ImageNamed { image: image.to_string() });
    }
    let (path, entry) = user_mounts::source(case, Path::new(image.as_str()))?;
    let anchor = match entry.kind {
        Kind::Directory if !is_file(case, &path.join("oci-layout")) => {
            let image = tree(&path, origin, path.clone(), None);
            return Ok(Some(Rootfs { image, root: path, search: None, origin: origin.clone() }));
        }
        Kind::Directory => path.join("index.json"),
        _ => path.clone(),
    };
    let images = case.state.real.join(IMAGES);
    let missing = || ResolveError::ImageNotUnpacked { path: path.clone() };
    let stamp = case
        .facts
        .stamp(&anchor)
        .map_err(|why| ResolveError::MountMissing { path: anchor.clone().into(), why })?;
    let digest = case.facts.read_small(images.join("known").join(stamp), 200).map_err(|_| missing())?;
    let plain = digest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') && !digest.is_empty();
    let place = images.join(if plain { &digest } else { "none" });
    let meta = case.facts.read_small(place.join("image.json"), LARGEST_META).map_err(|_| missing())?;
    let meta: Meta = serde_json::from_str(&meta).map_err(|_| missing())?;
    let search =
        meta.environment.iter().find_map(|variable| variable.strip_prefix("PATH=")).map(str::to_owned);
    let root = place.join("root");
    let image = tree(&path, origin, root.clone(), Some(digest));
    Ok(Some(Rootfs { image, root, search, origin: origin.clone() }))
}

impl Rootfs {
    /// The image's part of the file system, around `others`, which come before it.
    pub(super) fn mounts(
        &self,
        case: &Case<'_>,
        others: &[Mount],
        found: &mut Vec<Warning>,
    ) -> Result<Vec<Mount>, ResolveError> {
        let mut view = View { case, others, origin: &self.origin, mounts: Vec::new(), odd: Vec::new() };
        view.entries(&self.root, &BoxPath::new("/").expect("absolute"))?;
        if !view.odd.is_empty() {
            found.push(warnings::image_entries(&view.odd));
        }
        Ok(view.mounts)
    }

    /// Whether the image has `path`, whatever it is.
    pub(super) fn has(&self, case: &Case<'_>, path: &str) -> bool {
        case.facts.kind(self.root.join(path.trim_start_matches('/'))).is_ok()
    }
}

struct View<'a> {
    case: &'a Case<'a>,
    others: &'a [Mount],
    origin: &'a Origin,
    mounts: Vec<Mount>,
    /// Entries that cannot be shown.
    odd: Vec<PathBuf>,
}

impl View<'_> {
    /// Shows the entries of `directory` one by one at `target`.
    fn entries(&mut self, directory: &HostPath, target: &BoxPath) -> Result<(), ResolveError> {
        let path = || directory.as_path().to_owned();
        let names = self.case.facts.top_level(directory, MOST_ENTRIES);
        for entry in names.map_err(|why| ResolveError::MountMissing { path: path(), why })? {
            let (source, place) = (directory.join(&entry.name), target.join(&entry.name));
            if self.others.iter().all(|mount| mount.target != place) {
                self.entry(source, place)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, source: HostPath, target: BoxPath) -> Result<(), ResolveError> {
        let content = match self.case.facts.kind(&source).map(|entry| entry.kind) {
            Ok(Kind::Directory) if !self.fits(&source, &target) => {
                self.push(target.clone(), Content::Empty);
                return self.entries(&source, &target);
            }
            // The caller's, whoever owns it: an unpacked image lies where nobody else can look.
            Ok(Kind::Directory | Kind::File) => Content::Host {
                source,
                access: HostAccess::Read,
                ownership: Ownership::Caller,
                identity: None,
            },
            Ok(Kind::Symlink) => {
                match self.case.facts.read_link(&source).ok().and_then(|to| to.to_str().map(str::to_owned)) {
                    Some(to) => Content::Link { to },
                    None => return self.odd(target),
                }
            }
            Ok(Kind::Socket | Kind::Special) | Err(_) => return self.odd(target),
        };
        self.push(target, content);
        Ok(())
    }

    fn push(&mut self, target: BoxPath, content: Content) {
        self.mounts.push(Mount { target, content, reason: REASON.to_owned(), origin: self.origin.clone() });
    }

    #[expect(clippy::unnecessary_wraps, reason = "it ends what may fail")]
    fn odd(&mut self, target: BoxPath) -> Result<(), ResolveError> {
        self.odd.push(target.into());
        Ok(())
    }

    /// Whether everything of ours below `target` has its place in the image.
    fn fits(&self, source: &HostPath, target: &BoxPath) -> bool {
        let below = self.others.iter().filter_map(|mount| Some((mount, mount.target.below(target)?)));
        below.into_iter().all(|(mount, rest)| self.has_place(source, rest, &mount.content))
    }

    /// Whether `rest` below `source` is there, by way of directories only, and of the kind that is mounted on it.
    fn has_place(&self, source: &HostPath, rest: &Path, content: &Content) -> bool {
        let kind = |path: &HostPath| self.case.facts.kind(path).ok().map(|entry| entry.kind);
        let wanted = match content {
            // These are made, not mounted.
            Content::Link { .. } | Content::Empty => return false,
            // What is not there needs no mask.
            Content::Masked => return true,
            Content::Text { .. } | Content::Agent => Kind::File,
            Content::Host { source, .. } => match kind(source) {
                Some(Kind::Directory) => Kind::Directory,
                _ => Kind::File,
            },
            Content::Cow { .. }
            | Content::Copy { .. }
            | Content::Private { .. }
            | Content::Scratch { .. }
            | Content::Processes
            | Content::Devices => Kind::Directory,
        };
        let mut ways = rest.ancestors().filter(|part| !part.as_os_str().is_empty());
        let last = ways.next().is_some_and(|rest| kind(&source.join(rest)) == Some(wanted));
        last && ways.all(|rest| kind(&source.join(rest)) == Some(Kind::Directory))
    }
}

fn tree(path: &HostPath, origin: &Origin, root: HostPath, digest: Option<String>) -> ResolvedImage {
    ResolvedImage::Tree { path: path.clone(), origin: origin.clone(), root, digest }
}

fn is_file(case: &Case<'_>, path: &HostPath) -> bool {
    case.facts.kind(path).is_ok_and(|entry| entry.kind == Kind::File)
}
