//! Where unpacked images are kept: one directory per digest, complete or not there.
//!
//! `images/<digest>/root` is the tree and `images/<digest>/image.json` what else is known of it. A builder
//! holds `images/<digest>.lock`, works in `images/<digest>.partial` and renames it when everything is on disk;
//! the next one removes what a killed builder left. `images/known/<stamp>` says which digest a file was found to
//! have, by device, inode, size and times, so that an archive is read once and not at every start.

use std::fmt;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{Mode, OFlags};
use sandtable_store::dir::open_named;
use sandtable_store::lock::FileLock;
use sandtable_store::os::write_out;
use sandtable_store::remove::remove_tree;
use serde::{Deserialize, Serialize};

use super::oci::Layout;
use super::{Error, Limits};
use crate::archive::plant::{Tree, Whiteouts};
use crate::archive::stream::{Hashing, Stream, Wanted};
use crate::archive::{Error as ArchiveError, Reader};

const ROOT: &str = "root";
const META: &str = "image.json";
const KNOWN: &str = "known";
const PARTIAL: &str = "partial";

/// What an image is kept as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A directory that is the root file system itself.
    Directory,
    /// An OCI layout.
    Layout,
    /// An archive, of a root file system or of an OCI layout.
    Archive,
}

/// What is known of an unpacked image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    pub schema: u32,
    /// `NAME=VALUE`, as the image says.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Special files that were left out.
    #[serde(default)]
    pub skipped: Vec<String>,
}

/// An unpacked image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub digest: String,
    pub root: PathBuf,
    pub meta: Meta,
}

/// What `path` is, or why that cannot be said.
pub fn form(path: &Path) -> Result<Form, Error> {
    let found = fs::metadata(path).map_err(Error::file("look at", path))?;
    Ok(match found.is_dir() {
        false => Form::Archive,
        true if path.join("oci-layout").is_file() => Form::Layout,
        true => Form::Directory,
    })
}

/// The name under which the digest of a file is remembered.
pub fn known_name(path: &Path) -> std::io::Result<String> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::metadata(path)?;
    Ok(format!(
        "{:x}-{:x}-{:x}-{:x}.{:x}-{:x}.{:x}",
        found.dev(),
        found.ino(),
        found.size(),
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec()
    ))
}

/// The unpacked images of a user.
#[derive(Clone)]
pub struct Images<'a> {
    root: PathBuf,
    limits: Limits,
    cancelled: &'a dyn Fn() -> bool,
}

impl fmt::Debug for Images<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Images").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<'a> Images<'a> {
    /// Images below the directory `root`, which is made when it is needed.
    pub fn new(root: impl Into<PathBuf>, limits: Limits) -> Self {
        Self { root: root.into(), limits, cancelled: &|| false }
    }

    /// The same with cancellation: once `cancelled` returns `true`, unpacking ends with [`Error::Cancelled`].
    #[must_use]
    pub fn unless(self, cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { cancelled, ..self }
    }

    /// The unpacked form of the archive or layout at `path`; unpacks it if that was not done before.
    pub fn unpacked(&self, path: &Path) -> Result<Kept, Error> {
        // The failure of a read that was cancelled has that reason.
        self.whole(path).map_err(|error| if (self.cancelled)() { Error::Cancelled } else { error })
    }

    fn whole(&self, path: &Path) -> Result<Kept, Error> {
        let private =
            std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700)
                .create(self.root.join(KNOWN));
        private.map_err(Error::file("make", &self.root))?;
        self.reap();
        let anchor = match form(path)? {
            Form::Layout => path.join("index.json"),
            Form::Archive | Form::Directory => path.to_owned(),
        };
        let known = known_name(&anchor).map_err(Error::file("look at", &anchor))?;
        if let Some(kept) = self.known(&known) {
            return Ok(kept);
        }
        let kept = match form(path)? {
            Form::Layout => self.layout(&Layout::new(opened(path)?, self.cancelled))?,
            Form::Archive | Form::Directory => self.archive(path)?,
        };
        // A file that was changed meanwhile is not what was unpacked.
        if known_name(&anchor).is_ok_and(|now| now == known) {
            self.remember(&known, &kept.digest)?;
        }
        Ok(kept)
    }

    /// What is remembered of a file, if its image is still there.
    pub fn known(&self, name: &str) -> Option<Kept> {
        let digest = fs::read_to_string(self.root.join(KNOWN).join(name)).ok()?;
        self.kept(&digest)
    }

    /// The image of that digest, if it is there.
    fn kept(&self, digest: &str) -> Option<Kept> {
        let place = self.root.join(digest);
        let meta = serde_json::from_str(&fs::read_to_string(place.join(META)).ok()?).ok()?;
        Some(Kept { digest: digest.to_owned(), root: place.join(ROOT), meta })
    }

    /// A note that is cut short by a crash names no image and is written again.
    fn remember(&self, name: &str, digest: &str) -> Result<(), Error> {
        let path = self.root.join(KNOWN).join(name);
        fs::write(&path, digest).map_err(Error::file("write", &path))
    }

    fn layout(&self, layout: &Layout<'_>) -> Result<Kept, Error> {
        let image = layout.image()?;
        self.build(&format!("sha256-{}", image.digest), |tree| {
            layout.unpack(&image, tree, self.limits)?;
            Ok(image.environment.clone())
        })
    }

    fn archive(&self, path: &Path) -> Result<Kept, Error> {
        let survey = Survey::of(path, (self.limits, self.cancelled))?;
        let digest = format!("sha256-{}", survey.hash);
        let unpack = |tree: &mut Tree| {
            let bytes = Wanted::new(Stream::new(Hashing::new(open_file(path)?))?, self.cancelled);
            let mut archive = Reader::new(bytes, self.limits);
            tree.unpack(&mut archive, Whiteouts::AreFiles)?;
            let (hash, _) =
                archive.into_inner().into_inner().into_inner().finish().map_err(ArchiveError::Read)?;
            let same = hash == survey.hash;
            if same { Ok(Vec::new()) } else { Err(Error::Digest { name: path.display().to_string() }) }
        };
        match survey.holds {
            Holds::Root => self.build(&digest, unpack),
            Holds::Layout => self.by_way_of(&digest, unpack),
        }
    }

    /// Unpacks an archive of a layout, then the image in it. What is in between is gone afterwards.
    fn by_way_of(
        &self,
        digest: &str,
        unpack: impl FnOnce(&mut Tree) -> Result<Vec<String>, Error>,
    ) -> Result<Kept, Error> {
        let (_held, partial) = self.begin(digest)?;
        let image = self
            .fill(&partial, unpack)
            .and_then(|()| self.layout(&Layout::new(opened(&partial.join(ROOT))?, self.cancelled)));
        // What remains is removed by the next builder.
        let _left = remove_tree(&partial);
        image
    }

    /// Takes the lock of `digest` and clears the place where it is made.
    fn begin(&self, digest: &str) -> Result<(FileLock, PathBuf), Error> {
        let lock = self.root.join(format!("{digest}.lock"));
        let held = FileLock::exclusive(&lock).map_err(|error| Error::file("lock", &lock)(error.source))?;
        let partial = self.root.join(format!("{digest}.{PARTIAL}"));
        remove_tree(&partial).map_err(|error| Error::file("remove", &partial)(error.source))?;
        Ok((held, partial))
    }

    /// Makes the image `digest`, unless it is there. One builder at a time; others wait for it.
    fn build(
        &self,
        digest: &str,
        fill: impl FnOnce(&mut Tree) -> Result<Vec<String>, Error>,
    ) -> Result<Kept, Error> {
        let (_held, partial) = self.begin(digest)?;
        if let Some(kept) = self.kept(digest) {
            return Ok(kept);
        }
        let place = self.root.join(digest);
        remove_tree(&place).map_err(|error| Error::file("remove", &place)(error.source))?;
        let built = self
            .fill(&partial, fill)
            .and_then(|()| fs::rename(&partial, &place).map_err(Error::file("rename", &partial)));
        if built.is_err() {
            // What remains is removed by the next builder.
            let _left = remove_tree(&partial);
        }
        built?;
        self.kept(digest)
            .ok_or_else(|| Error::file("read", place.join(META))(std::io::ErrorKind::NotFound.into()))
    }

    fn fill(
        &self,
        partial: &Path,
        fill: impl FnOnce(&mut Tree) -> Result<Vec<String>, Error>,
    ) -> Result<(), Error> {
        let root = partial.join(ROOT);
        let private =
            std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(partial);
        private.and_then(|()| fs::create_dir(&root)).map_err(Error::file("make", partial))?;
        let mut tree = Tree::new(opened(&root)?, self.limits);
        let environment = fill(&mut tree)?;
        let skipped = tree.finish()?.iter().map(sandtable_store::path::RelPath::display_escaped).collect();
        let meta = Meta { schema: 1, environment, skipped };
        let text = serde_json::to_vec(&meta).expect("text and numbers only");
        fs::write(partial.join(META), text).map_err(Error::file("write", partial))?;
        // A name must not come to stand for a tree that a crash of the machine then empties.
        write_out(opened(partial)?).map_err(|errno| Error::file("write out", partial)(errno.into()))
    }

    /// Removes what builders left that died.
    fn reap(&self) {
        let Ok(entries) = fs::read_dir(&self.root) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|ending| ending == PARTIAL)
                && let Ok(Some(_lock)) = FileLock::try_exclusive(&path.with_extension("lock"))
            {
                // If it cannot be removed now, the next builder says why.
                let _left = remove_tree(&path);
            }
        }
    }
}

/// What can be said of an archive without unpacking it.
struct Survey {
    hash: String,
    holds: Holds,
}

enum Holds {
    Root,
    Layout,
}

impl Survey {
    /// Reads all of it once. A name or a size that would be refused is refused here, before anything is written.
    fn of(path: &Path, (limits, cancelled): (Limits, &dyn Fn() -> bool)) -> Result<Self, Error> {
        let bytes = Wanted::new(Stream::new(Hashing::new(open_file(path)?))?, cancelled);
        let mut archive = Reader::new(bytes, limits);
        let (mut layout, mut manifest, mut system) = (false, false, false);
        while let Some(entry) = archive.next_entry()? {
            match entry.path.as_bytes() {
                b"oci-layout" => layout = true,
                b"manifest.json" => manifest = true,
                _ => system |= matches!(entry.path.components().next(), Some(b"usr" | b"bin")),
            }
        }
        if manifest && !layout && !system {
            return Err(Error::DockerArchive);
        }
        let (hash, _) =
            archive.into_inner().into_inner().into_inner().finish().map_err(ArchiveError::Read)?;
        Ok(Self { hash, holds: if layout { Holds::Layout } else { Holds::Root } })
    }
}

/// Opens an archive that the user named. A pipe in its place does not hold us up.
fn open_file(path: &Path) -> Result<File, Error> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty());
    let file = file.map(File::from).map_err(|errno| Error::file("open", path)(errno.into()))?;
    match file.metadata() {
        Ok(found) if found.is_file() => Ok(file),
        Ok(_) => Err(Error::file("read", path)(std::io::Error::other("it is no regular file"))),
        Err(error) => Err(Error::file("look at", path)(error)),
    }
}

fn opened(path: &Path) -> Result<OwnedFd, Error> {
    open_named(path).map_err(|errno| Error::file("open", path)(errno.into()))
}
