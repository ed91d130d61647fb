//! What is on the disk, held against what a state says.

use std::cell::RefCell;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{OFlags, fgetxattr, flistxattr, readlinkat};
use rustix::io::{Errno, Result};

use crate::checkout::{Near, Way};
use crate::dir::{How, Kind, Meta, Mounts, Resolver, open_by, open_dir, open_file, stat_at};
use crate::id::ObjectId;
use crate::object::{Hasher, ObjectKind, ReadObjects};
use crate::os::{REFERENCE, let_owner_in};
use crate::state::{Attribute, Attributes, Node, What, manifest};

/// The tree on the disk.
pub(super) struct Tree<'a> {
    pub(super) root: BorrowedFd<'a>,
    near: RefCell<Near<'a>>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(root: BorrowedFd<'a>) -> Self {
        Self { root, near: RefCell::new(Near::new(root)) }
    }

    /// Forgets what it holds open: directories may have come and gone since.
    pub(super) fn look_again(&self) {
        self.near.replace(Near::new(self.root));
    }

    pub(super) fn open(&self, way: &Arc<Way>) -> Result<OwnedFd> {
        self.near.borrow_mut().open_anew(way)
    }

    /// The directory that an entry is in, if there is one, and the entry's name.
    pub(super) fn parent<'w>(&self, way: &'w Way) -> Result<Option<(OwnedFd, &'w [u8])>> {
        let (Some(above), Some(name)) = (way.parent(), way.name()) else { return Ok(None) };
        match self.open(above) {
            Ok(parent) => Ok(Some((parent, name))),
            // Something else stands where the directory would be.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Lets the owner into a directory again, through a handle that cannot be a symlink.
    pub(super) fn unlock(&self, way: &Way) -> Result<()> {
        let how = How { flags: REFERENCE | OFlags::DIRECTORY, mounts: Mounts::Refuse };
        let handle = match self.parent(way)? {
            Some((parent, name)) => match open_by(Resolver::here(), parent.as_fd(), name, how) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
                opened => opened?,
            },
            None if way.is_root() => open_by(Resolver::here(), self.root, b".", how)?,
            None => return Ok(()),
        };
        let_owner_in(&handle)
    }
}

/// What is there, if anything.
pub(super) fn look(parent: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Meta>> {
    match stat_at(parent, name) {
        Ok(meta) => Ok(Some(meta)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// How an entry's content is known without reading it.
pub(super) type Known<'a> = &'a dyn Fn(&Meta) -> Option<ObjectId>;

/// Whether the entry is what `node` says; of a directory only itself counts.
pub(super) fn is(
    objects: &dyn ReadObjects,
    place: (BorrowedFd<'_>, &[u8]),
    node: &Node,
    known: Known<'_>,
) -> Result<bool> {
    let (parent, name) = place;
    let Some(meta) = look(parent, name)? else { return Ok(false) };
    let bits = meta.mode & 0o777 == node.own.bits & 0o777;
    match (&node.what, meta.kind) {
        (What::File(id), Kind::File) => {
            if !bits {
                return Ok(false);
            }
            let file = open_file(parent, name, &meta)?;
            Ok(attributes(file.as_fd())? == node.own.attributes
                && (known(&meta) == Some(*id) || hash(file, &meta, id)? == Some(*id)))
        }
        (What::Symlink(id), Kind::Symlink) => {
            let wanted = objects.read_kind(id, ObjectKind::Blob).ok();
            let found = readlinkat(parent, name, Vec::new())?.into_bytes();
            Ok(wanted == Some(found))
        }
        (What::Directory(_), Kind::Directory) => {
            Ok(bits && attributes(open_dir(parent, name)?.as_fd())? == node.own.attributes)
        }
        (What::Gitlink(_), Kind::Directory) => Ok(true),
        _ => Ok(false),
    }
}

/// The id of the file's content; nothing if it changes while it is read.
fn hash(file: OwnedFd, meta: &Meta, like: &ObjectId) -> Result<Option<ObjectId>> {
    let mut hasher = Hasher::new(like.kind(), ObjectKind::Blob, meta.size);
    let mut file = std::fs::File::from(file).take(meta.size.saturating_add(1));
    let mut buffer = vec![0; 128 << 10];
    let mut seen = 0;
    loop {
        let count =
            file.read(&mut buffer).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        seen += count as u64;
    }
    Ok(if seen == meta.size { hasher.finish().ok() } else { None })
}

/// The attributes that are part of a state.
pub(super) fn attributes(fd: BorrowedFd<'_>) -> Result<Attributes> {
    const MOST: usize = 64 << 10;
    // Most entries have none, which a single byte is enough to learn.
    match flistxattr(fd, &mut [0_u8; 1][..]) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(Attributes::default()),
        Ok(_) | Err(Errno::RANGE) => {}
        Err(errno) => return Err(errno),
    }
    let mut list = vec![0_u8; MOST];
    let length = flistxattr(fd, &mut list[..])?;
    let mut all = Vec::new();
    let mut value = vec![0_u8; MOST];
    for name in list[..length].split(|byte| *byte == 0).filter(|name| manifest::is_kept(name)) {
        let length = fgetxattr(fd, name, &mut value[..])?;
        all.push(Attribute { name: name.into(), value: value[..length].into() });
    }
    Ok(Attributes::new(all))
}
