//! The places of mounts that lie in directories which a command of the sandbox may have changed.
//!
//! An engine resolves the target of a mount inside the container and follows links. A link that an earlier command
//! left would lead the mount to another place. So every such place is walked here first, by handle and through no
//! link, while the sandbox's lock is held and nothing of it runs. What stands in the way ends the start.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use fs_err as fs;
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Stat, Uid, XattrFlags, chownat, fchmod, fsetxattr, fstat, mkdirat, openat,
    unlinkat,
};
use rustix::io::{Errno, Result};
use sandtable_store::dir::{Kind, attribute_value, open_named, stat_at};

use super::launch::ContainerError;
use super::plan::{Missing, Point, PointKind};
use crate::engine::Place;
use crate::model::layout::{LayerPart, Layout};
use crate::model::mount::{Content, HostAccess, Mount, Pins};
use crate::model::resolved::ResolvedSpec;
use crate::os;

/// The attributes by which an overlay's directory hides those below it, and a file says that it is not there.
const OPAQUE: &[u8] = b"user.overlay.opaque";
const WHITEOUT: &[u8] = b"user.overlay.whiteout";

/// Every place of a mount that lies in another one with files of the host.
pub(super) fn lower(spec: &ResolvedSpec, place: &Place) -> Vec<Point> {
    let point = |mount: &Mount| {
        let above = mount.target.parent().and_then(|parent| spec.mounts.at(&parent))?;
        let below = mount.target.below(&above.target)?.to_owned();
        let (layers, missing) = layers(&above.content, place)?;
        Some(Point {
            target: mount.target.as_path().to_owned(),
            layers,
            below,
            kind: kind(&mount.content)?,
            missing,
        })
    };
    spec.mounts.iter().filter_map(point).collect()
}

/// What of the host a mount shows.
fn layers(content: &Content, place: &Place) -> Option<(Vec<PathBuf>, Missing)> {
    let layout = Layout::of(&place.directory);
    match content {
        Content::Private { area } => Some((vec![place.directory.join(area).into()], Missing::Make)),
        Content::Copy { layer, .. } => Some((vec![layout.copy(layer).into()], Missing::Make)),
        Content::Cow { source, layer, pins, .. } => {
            let pins = (*pins == Pins::Present).then(|| layout.layer(layer, LayerPart::Pins).into());
            let upper = layout.layer(layer, LayerPart::Upper).into();
            let all = [upper].into_iter().chain(pins).chain([source.as_path().to_owned()]);
            Some((all.collect(), Missing::Make))
        }
        Content::Host { source, access: HostAccess::Write, .. } => {
            Some((vec![source.as_path().to_owned()], Missing::Make))
        }
        Content::Host { source, .. } => Some((vec![source.as_path().to_owned()], Missing::Leave)),
        _ => None,
    }
}

/// What a mount needs to be mounted on.
fn kind(content: &Content) -> Option<PointKind> {
    match content {
        Content::Host { source, .. } => Some(PointKind::Like(source.as_path().to_owned())),
        Content::Text { .. } | Content::Agent => Some(PointKind::File),
        Content::Link { .. } | Content::Processes | Content::Devices => None,
        _ => Some(PointKind::Directory),
    }
}

/// Walks to every place, and makes what is missing and may be made.
pub(super) fn check(points: &[Point]) -> std::result::Result<(), ContainerError> {
    points.iter().try_for_each(|point| {
        walk(point).map_err(|errno| ContainerError::Point {
            target: point.target.clone(),
            source: io::Error::from(errno),
        })
    })
}

fn walk(point: &Point) -> Result<()> {
    let wanted = match &point.kind {
        PointKind::Directory => Kind::Directory,
        PointKind::Like(source) if fs::metadata(source).is_ok_and(|found| found.is_dir()) => Kind::Directory,
        PointKind::File | PointKind::Like(_) => Kind::File,
    };
    let mut top = Top::of(&point.layers)?;
    let mut here: Vec<OwnedFd> = point.layers.iter().map(|layer| open_named(layer)).collect::<Result<_>>()?;
    let names: Vec<&OsStr> = point.below.components().map(name).collect::<Result<_>>()?;
    for (index, name) in names.iter().enumerate() {
        let wanted = if index + 1 == names.len() { wanted } else { Kind::Directory };
        here = match (top.look(&here, name)?, point.missing) {
            (Found::Directories(next), _) if wanted == Kind::Directory => {
                top.enter(name, next.first())?;
                next
            }
            (Found::Directories(_), _) => return Err(Errno::ISDIR),
            // What is bound onto a file may be of any kind but a directory.
            (Found::Entry(kind), _) if kind != Kind::Symlink && wanted == Kind::File => return Ok(()),
            (Found::Entry(Kind::Symlink), _) => return Err(Errno::LOOP),
            (Found::Entry(_), _) => return Err(Errno::NOTDIR),
            (Found::Nothing, Missing::Leave) => return Ok(()),
            (Found::Nothing, Missing::Make) => vec![top.make(name, wanted)?],
        };
    }
    Ok(())
}

fn name(part: Component<'_>) -> Result<&OsStr> {
    match part {
        Component::Normal(name) => Ok(name),
        _ => Err(Errno::INVAL),
    }
}

/// The uppermost layer, the only one that anything is made in.
struct Top<'a> {
    /// The last directory on the way that it has.
    directory: OwnedFd,
    /// The directories behind that which only layers below have, and what they are like.
    below: Vec<(&'a OsStr, Stat)>,
    layers: usize,
}

impl<'a> Top<'a> {
    fn of(layers: &[PathBuf]) -> Result<Self> {
        let directory = open_named(layers.first().ok_or(Errno::INVAL)?)?;
        Ok(Self { directory, below: Vec::new(), layers: layers.len() })
    }

    /// What a name stands for. Only in layers that lie over each other an entry can say that something is not there.
    fn look(&self, layers: &[OwnedFd], name: &OsStr) -> Result<Found> {
        let found = enter(layers, name)?;
        match (&found, layers) {
            (Found::Nothing, [only]) if self.layers == 1 => {
                match stat_at(only.as_fd(), name.as_encoded_bytes()) {
                    Ok(entry) => Ok(Found::Entry(entry.kind)),
                    Err(Errno::NOENT) => Ok(found),
                    Err(errno) => Err(errno),
                }
            }
            _ => Ok(found),
        }
    }

    /// Removes what says that a name is not there any more, if something does.
    fn uncover(&self, name: &OsStr) -> Result<bool> {
        match unlinkat(&self.directory, Path::new(name), AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Goes on to a directory that is there, `shown` being what is seen of it.
    fn enter(&mut self, name: &'a OsStr, shown: Option<&OwnedFd>) -> Result<()> {
        let shown = fstat(shown.ok_or(Errno::NOENT)?)?;
        if self.below.is_empty() {
            match open(self.directory.as_fd(), name, os::REFERENCE | OFlags::DIRECTORY) {
                Ok(own) => {
                    self.directory = own;
                    return Ok(());
                }
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        self.below.push((name, shown));
        Ok(())
    }

    /// Makes what no layer shows. What says in this layer that a name is not there any more goes; a directory in its place must
    /// say itself that it hides those below.
    fn make(&mut self, name: &OsStr, kind: Kind) -> Result<OwnedFd> {
        for (name, like) in std::mem::take(&mut self.below) {
            self.directory = make_like(self.directory.as_fd(), name, &like)?;
        }
        let covered = self.layers > 1 && self.uncover(name)?;
        let made = make(self.directory.as_fd(), name, kind)?;
        if kind == Kind::Directory {
            if covered {
                let itself = open(self.directory.as_fd(), name, OFlags::RDONLY | OFlags::DIRECTORY)?;
                fsetxattr(&itself, OPAQUE, b"y", XattrFlags::empty())?;
            }
            self.directory = open(self.directory.as_fd(), name, os::REFERENCE | OFlags::DIRECTORY)?;
        }
        Ok(made)
    }
}

/// A directory that looks as the one below it, which the overlay shows together with it.
fn make_like(parent: BorrowedFd<'_>, name: &OsStr, like: &Stat) -> Result<OwnedFd> {
    let made = make(parent, name, Kind::Directory)?;
    let own = fstat(&made)?;
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid) {
        let owner = (Some(Uid::from_raw(like.st_uid)), Some(Gid::from_raw(like.st_gid)));
        match chownat(parent, Path::new(name), owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW) {
            // Only root can; to everybody else it is the caller's, as if a command had made it.
            Ok(()) | Err(Errno::PERM) => {}
            Err(errno) => return Err(errno),
        }
    }
    let itself = open(parent, name, OFlags::RDONLY | OFlags::DIRECTORY)?;
    fchmod(&itself, Mode::from_raw_mode(like.st_mode))?;
    Ok(made)
}

/// What a name stands for in layers that lie over each other.
enum Found {
    Nothing,
    /// The directories that are shown as one.
    Directories(Vec<OwnedFd>),
    Entry(Kind),
}

fn enter(layers: &[OwnedFd], name: &OsStr) -> Result<Found> {
    let mut directories = Vec::new();
    for layer in layers {
        let found = match stat_at(layer.as_fd(), name.as_encoded_bytes()) {
            Ok(found) => found,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(errno),
        };
        if found.kind != Kind::Directory {
            let gone =
                found.is_null_device() || (found.kind == Kind::File && is_whiteout(layer.as_fd(), name));
            return Ok(match directories.len() {
                0 if !gone => Found::Entry(found.kind),
                0 => Found::Nothing,
                _ => Found::Directories(directories),
            });
        }
        directories.push(open(layer.as_fd(), name, os::REFERENCE | OFlags::DIRECTORY)?);
        if says(layer.as_fd(), name, OPAQUE) == Some(b"y".to_vec()) {
            break;
        }
    }
    Ok(if directories.is_empty() { Found::Nothing } else { Found::Directories(directories) })
}

fn is_whiteout(layer: BorrowedFd<'_>, name: &OsStr) -> bool {
    says(layer, name, WHITEOUT).is_some()
}

/// An attribute of an entry. One that cannot be opened has none: what is below it counts, too.
fn says(layer: BorrowedFd<'_>, name: &OsStr, attribute: &[u8]) -> Option<Vec<u8>> {
    let entry = open(layer, name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).ok()?;
    attribute_value(entry.as_fd(), attribute).ok().flatten()
}

fn make(parent: BorrowedFd<'_>, name: &OsStr, kind: Kind) -> Result<OwnedFd> {
    if kind == Kind::Directory {
        mkdirat(parent, name, os::mode(0o755))?;
        return open(parent, name, os::REFERENCE | OFlags::DIRECTORY);
    }
    openat(
        parent,
        name,
        OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        os::mode(0o644),
    )
}

fn open(parent: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> Result<OwnedFd> {
    openat(parent, Path::new(name), flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn point(layers: &[&Path], below: &str, missing: Missing) -> Point {
        Point {
            target: Path::new("/home/ann").join(below),
            layers: layers.iter().map(|layer| layer.to_path_buf()).collect(),
            below: below.into(),
            kind: PointKind::Directory,
            missing,
        }
    }

    #[test]
    fn a_link_at_any_place_of_the_way_ends_it() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("w/real")).unwrap();
        symlink("real", home.path().join("w/link")).unwrap();
        symlink("/.sandtable", home.path().join("dangling")).unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        let walked = |below: &str| walk(&point(&[home.path()], below, Missing::Make));
        assert_eq!(walked("w/real/proj"), Ok(()));
        assert!(home.path().join("w/real/proj").is_dir());
        for below in ["w/link", "w/link/proj", "dangling", "dangling/x"] {
            assert_eq!(walked(below), Err(Errno::LOOP), "{below}");
        }
        for below in ["file", "file/x"] {
            assert_eq!(walked(below), Err(Errno::NOTDIR), "{below}");
        }
    }

    #[test]
    fn a_file_is_mounted_on_anything_but_a_directory_or_a_link() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("directory")).unwrap();
        symlink("/etc/passwd", home.path().join("link")).unwrap();
        let walked = |below: &str| {
            walk(&Point { kind: PointKind::File, ..point(&[home.path()], below, Missing::Make) })
        };
        assert_eq!(walked("directory"), Err(Errno::ISDIR));
        assert_eq!(walked("link"), Err(Errno::LOOP));
        assert_eq!((walked("a/new"), walked("a/new")), (Ok(()), Ok(())));
        assert!(home.path().join("a/new").is_file());
        let odd = fs::File::create(home.path().join("odd")).unwrap();
        fsetxattr(&odd, WHITEOUT, b"y", XattrFlags::empty()).unwrap();
        assert_eq!(walked("odd"), Ok(()), "it hides nothing, since there is nothing below");
        assert!(home.path().join("odd").is_file());
    }

    #[test]
    fn of_layers_the_uppermost_decides() {
        let (upper, lower) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(lower.path().join("a/b")).unwrap();
        symlink("a", lower.path().join("linked")).unwrap();
        fs::create_dir(upper.path().join("linked")).unwrap();
        fs::create_dir(upper.path().join("a")).unwrap();
        symlink("/.sandtable", upper.path().join("a/c")).unwrap();
        symlink("/.sandtable", lower.path().join("a/d")).unwrap();
        let walked = |below: &str| walk(&point(&[upper.path(), lower.path()], below, Missing::Leave));
        assert_eq!(walked("a/b"), Ok(()));
        assert_eq!(walked("linked"), Ok(()), "a directory above hides the link below");
        assert_eq!(walked("a/c"), Err(Errno::LOOP));
        assert_eq!(walked("a/d"), Err(Errno::LOOP));
        assert_eq!(walked("nothing/at/all"), Ok(()));
        assert!(!upper.path().join("nothing").exists());
    }

    #[test]
    fn what_is_missing_is_made_in_the_uppermost_layer() {
        let (upper, lower) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(lower.path().join("a/b")).unwrap();
        fs::create_dir_all(lower.path().join("c/gone/old")).unwrap();
        fs::set_permissions(lower.path().join("a"), Permissions::from_mode(0o750)).unwrap();
        fs::create_dir(upper.path().join("c")).unwrap();
        let whiteout = fs::File::create(upper.path().join("c/gone")).unwrap();
        fsetxattr(&whiteout, WHITEOUT, b"y", XattrFlags::empty()).unwrap();
        let walked = |below: &str| walk(&point(&[upper.path(), lower.path()], below, Missing::Make));
        for below in ["a/b/new/er", "c/gone/m", "d/e"] {
            assert_eq!((walked(below), walked(below)), (Ok(()), Ok(())), "{below}");
            assert!(upper.path().join(below).is_dir(), "{below}");
        }
        let like = fs::metadata(upper.path().join("a")).unwrap();
        assert_eq!(like.permissions().mode() & 0o777, 0o750);
        let covered = fs::File::open(upper.path().join("c/gone")).unwrap();
        assert_eq!(attribute_value(covered.as_fd(), OPAQUE).unwrap(), Some(b"y".to_vec()));
        assert!(!lower.path().join("a/b/new").exists() && !lower.path().join("d").exists());
        assert!(lower.path().join("c/gone/old").exists());
    }
}
