//! Writing the entries of an archive beneath a directory handle.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, fchmod, futimens, linkat, mkdirat, openat, symlinkat,
};
use rustix::io::Errno;
use sandtable_store::dir::{Kind, names, open_below, open_dir, stat_at};
use sandtable_store::os;
use sandtable_store::path::RelPath;
use sandtable_store::remove::remove_at;

use super::tar::{Content, Entry, Reader};
use super::{Error, Limits};

/// Marks a name of a lower layer that is gone.
const WHITEOUT: &[u8] = b".wh.";
/// Marks a directory of which nothing in lower layers is seen.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Other marks of the tool that invented these; they mean nothing to anybody else.
const RESERVED: &[u8] = b".wh..wh.";

/// A tree in the making.
pub(crate) struct Tree {
    root: OwnedFd,
    /// The modes that directories get in the end; until then they are ours to write in.
    modes: BTreeMap<RelPath, u32>,
    /// The directory that was written in last.
    last: Option<(RelPath, OwnedFd)>,
    limits: Limits,
    purpose: Purpose,
    entries: u64,
    bytes: u64,
    /// What was left out: special files below `dev`, where a sandbox has its own.
    pub(crate) skipped: Vec<RelPath>,
}

/// What a tree is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// The root of a sandbox: nobody writes in it, and its links lead wherever they lead inside.
    Root,
    /// A directory to build in: its owner writes in it, and no link leads out of it.
    Work,
}

/// Whether names may be marks that remove something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whiteouts {
    /// A plain archive: every name is a name.
    AreFiles,
    /// A layer of an image; its marks have been obeyed before.
    AreDone,
}

/// What a layer takes away from those below it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Removals {
    gone: Vec<RelPath>,
    opaque: Vec<RelPath>,
}

impl Tree {
    /// An empty tree in the directory `root`, which nobody else writes to.
    pub(crate) fn new(root: OwnedFd, limits: Limits) -> Self {
        Self::for_purpose(root, limits, Purpose::Root)
    }

    /// A tree over what is in the directory `root`, for somebody who builds in it.
    pub(crate) fn writable(root: OwnedFd, limits: Limits) -> Self {
        Self::for_purpose(root, limits, Purpose::Work)
    }

    fn for_purpose(root: OwnedFd, limits: Limits, purpose: Purpose) -> Self {
        Self {
            root,
            modes: BTreeMap::new(),
            last: None,
            limits,
            purpose,
            entries: 0,
            bytes: 0,
            skipped: Vec::new(),
        }
    }

    /// How many entries and bytes were written so far.
    pub(crate) fn counted(&self) -> (u64, u64) {
        (self.entries, self.bytes)
    }

    /// Unpacks one archive over what is there.
    pub(crate) fn unpack<R: Read>(
        &mut self,
        archive: &mut Reader<R>,
        whiteouts: Whiteouts,
    ) -> Result<(), Error> {
        while let Some(entry) = archive.next_entry()? {
            let is_mark = entry.path.name().is_some_and(|name| name.starts_with(WHITEOUT));
            if !(is_mark && whiteouts == Whiteouts::AreDone) {
                self.put(&entry, archive)?;
            }
        }
        Ok(())
    }

    /// Takes away what a layer says is gone.
    pub(crate) fn remove(&mut self, removals: &Removals) -> Result<(), Error> {
        self.last = None;
        for path in &removals.gone {
            let (Some(parent), Some(name)) = (path.parent(), path.name()) else { continue };
            let Some(directory) = self.existing(&parent).map_err(|errno| failed(path, errno))? else {
                continue;
            };
            remove_at(directory.as_fd(), name).map_err(|errno| failed(path, errno))?;
        }
        for path in &removals.opaque {
            let Some(directory) = self.existing(path).map_err(|errno| failed(path, errno))? else { continue };
            for name in names(directory.as_fd()).map_err(|errno| failed(path, errno))? {
                remove_at(directory.as_fd(), &name.bytes).map_err(|errno| failed(path, errno))?;
            }
        }
        Ok(())
    }

    /// Gives the directories their modes. Nobody writes in the tree after this.
    pub(crate) fn finish(self) -> Result<Vec<RelPath>, Error> {
        for (path, mode) in self.modes.iter().rev() {
            // A later entry may have put something else in its place.
            if let Some(directory) = self.existing(path).map_err(|errno| failed(path, errno))? {
                fchmod(&directory, self.purpose.mode(*mode, 0o500)).map_err(|errno| failed(path, errno))?;
            }
        }
        Ok(self.skipped)
    }

    /// Writes one entry.
    pub(crate) fn put(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<(), Error> {
        self.count(entry)?;
        let path = &entry.path;
        if entry.content == Content::Directory {
            self.modes.insert(path.clone(), entry.mode);
            self.make_way(path)?;
            return self.directory(path).map(drop);
        }
        let refused = |why| Error::Entry { name: path.display_escaped(), why };
        if entry.content == Content::Special {
            if path.components().next() != Some(b"dev") {
                return Err(refused("is a device or a named pipe"));
            }
            self.skipped.push(path.clone());
            return Ok(());
        }
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            return Err(refused("takes the place of the root"));
        };
        let link = match &entry.content {
            Content::HardLink { to } if to == path => return Err(refused("is a hard link to itself")),
            Content::HardLink { to } => {
                Some(self.linked(to).map_err(|_| refused("is a hard link to no file of the image"))?)
            }
            _ => None,
        };
        self.directory(&parent)?;
        let purpose = self.purpose;
        let (_, directory) = self.last.as_ref().expect("just opened");
        let directory = directory.as_fd();
        // Whatever an earlier entry or a lower layer put there makes way.
        remove_at(directory, name).map_err(|errno| failed(path, errno))?;
        match (&entry.content, link) {
            (Content::Symlink { to }, _) if purpose == Purpose::Work && leaves(&parent, to) => {
                Err(refused("is a symbolic link that leads out"))
            }
            (Content::Symlink { to }, _) => {
                symlinkat(to, directory, name).map_err(|errno| failed(path, errno))
            }
            (_, Some((from, old))) => linkat(&from, &old[..], directory, name, AtFlags::empty())
                .map_err(|errno| failed(path, errno)),
            (_, None) => {
                write(directory, name, &Written { entry, purpose }, content).map_err(|source| match source {
                    Failure::Short => Error::Damaged("it ends within a file"),
                    Failure::Failed(source) => Error::Write { name: path.display_escaped(), source },
                })
            }
        }
    }

    /// Removes what is no directory from the place of a directory.
    fn make_way(&mut self, path: &RelPath) -> Result<(), Error> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return Ok(()) };
        let parent = self.directory(&parent)?;
        match stat_at(parent, name).map(|found| found.kind) {
            Ok(Kind::Directory) | Err(Errno::NOENT) => Ok(()),
            Ok(_) => remove_at(parent, name).map_err(|errno| failed(path, errno)),
            Err(errno) => Err(failed(path, errno)),
        }
    }

    fn count(&mut self, entry: &Entry) -> Result<(), Error> {
        self.entries += 1;
        if let Content::File { size } = entry.content {
            self.bytes = self.bytes.saturating_add(size);
        }
        if self.entries > self.limits.entries {
            return Err(Error::TooLarge(format!("{} entries", self.limits.entries)));
        }
        if self.bytes > self.limits.bytes {
            return Err(Error::TooLarge(format!("{} bytes", self.limits.bytes)));
        }
        Ok(())
    }

    /// The directory at `path`, made with its parents where it is missing, and kept at hand. A symbolic link
    /// or a file in the place of any of them is refused.
    fn directory(&mut self, path: &RelPath) -> Result<BorrowedFd<'_>, Error> {
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            let opened = self.entered(path)?;
            self.last = Some((path.clone(), opened));
        }
        Ok(self.last.as_ref().expect("just set").1.as_fd())
    }

    fn entered(&self, path: &RelPath) -> Result<OwnedFd, Error> {
        let mut here =
            sandtable_store::dir::reopen(self.root.as_fd()).map_err(|errno| failed(path, errno))?;
        for name in path.components() {
            here = enter(here.as_fd(), name).map_err(|errno| match errno {
                Errno::LOOP | Errno::NOTDIR => {
                    Error::Entry { name: path.display_escaped(), why: "lies below a symbolic link or a file" }
                }
                errno => failed(path, errno),
            })?;
        }
        Ok(here)
    }

    /// The directory at `path`, if there is one.
    fn existing(&self, path: &RelPath) -> Result<Option<OwnedFd>, Errno> {
        match open_below(self.root.as_fd(), path) {
            Ok(directory) => Ok(Some(directory)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The regular file at `path`, as its directory and its name.
    fn linked(&self, path: &RelPath) -> Result<(OwnedFd, Vec<u8>), Errno> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return Err(Errno::ISDIR) };
        let directory = open_below(self.root.as_fd(), &parent)?;
        match stat_at(directory.as_fd(), name)?.kind {
            Kind::File => Ok((directory, name.to_vec())),
            _ => Err(Errno::INVAL),
        }
    }
}

/// What the layer in `archive` takes away from those below it.
pub(crate) fn removals<R: Read>(archive: &mut Reader<R>) -> Result<Removals, Error> {
    let mut found = Removals::default();
    while let Some(entry) = archive.next_entry()? {
        let (Some(parent), Some(name)) = (entry.path.parent(), entry.path.name()) else { continue };
        let Some(gone) = name.strip_prefix(WHITEOUT) else { continue };
        if name == OPAQUE {
            found.opaque.push(parent);
        } else if !name.starts_with(RESERVED) {
            let bad = |_| Error::Entry { name: entry.path.display_escaped(), why: "marks no name as gone" };
            found.gone.push(parent.join(gone).map_err(bad)?);
        }
    }
    Ok(found)
}

impl Purpose {
    /// The permissions that an unpacked file keeps: nobody becomes somebody else by it, and nobody may write it
    /// but the owner of a directory to build in.
    fn mode(self, mode: u32, least: u32) -> Mode {
        os::mode(match self {
            Self::Root => mode & 0o555 | least,
            Self::Work => mode & 0o755 | least | 0o200,
        })
    }
}

/// Whether a symbolic link in `directory` leads out of the tree, or could. Dots may stand at its beginning only: what
/// they mean after a name depends on whether that is a link itself.
fn leaves(directory: &RelPath, to: &[u8]) -> bool {
    let mut parts = to.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let up = parts.by_ref().take_while(|part| *part == b"..").count();
    // The first part that is no dots was taken as well; nothing hangs on it.
    to.starts_with(b"/") || up > directory.components().count() || parts.any(|part| part == b"..")
}

enum Failure {
    Short,
    Failed(io::Error),
}

/// A file to be written, and what for.
struct Written<'a> {
    entry: &'a Entry,
    purpose: Purpose,
}

fn write(
    directory: BorrowedFd<'_>,
    name: &[u8],
    file: &Written<'_>,
    content: &mut dyn Read,
) -> Result<(), Failure> {
    let Written { entry, purpose } = file;
    let Content::File { size } = entry.content else { return Ok(()) };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(file.map_err(|errno| Failure::Failed(errno.into()))?);
    let written = copy(content, &mut file).map_err(Failure::Failed)?;
    if written != size {
        return Err(Failure::Short);
    }
    let time = Timespec { tv_sec: entry.mtime, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    fchmod(&file, purpose.mode(entry.mode, 0o400)).map_err(|errno| Failure::Failed(errno.into()))?;
    // A time that the file system cannot hold is no reason to do without the file.
    let _unset = futimens(&file, &times);
    Ok(())
}

fn copy(from: &mut dyn Read, to: &mut File) -> io::Result<u64> {
    let (mut buffer, mut total) = (vec![0; 128 * 1024], 0);
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(total),
            read => {
                to.write_all(&buffer[..read])?;
                total += read as u64;
            }
        }
    }
}

/// Goes one directory down and makes it where nothing is.
fn enter(here: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    match open_dir(here, name) {
        Err(Errno::NOENT) => {
            mkdirat(here, name, Mode::RWXU)?;
            open_dir(here, name)
        }
        answer => answer,
    }
}

fn failed(path: &RelPath, errno: Errno) -> Error {
    Error::Write { name: path.display_escaped(), source: errno.into() }
}
