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
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::{Errno, Result};
use sandtable_store::dir::{Kind, attribute_value, open_named, stat_at};

use super::launch::Error;
use super::plan::{Missing, Point, PointKind};
use crate::engine::Place;
use crate::model::mount::{Content, Mount, Pins};
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
    let own = |name: &str| PathBuf::from(place.directory.join(name));
    match content {
        Content::Private { area } => Some((vec![own(area)], Missing::Make)),
        Content::Copy { layer, .. } => Some((vec![own("copies").join(layer)], Missing::Make)),
        Content::Cow { source, layer, pins, .. } => {
            let pins = (*pins == Pins::Present).then(|| own(&format!("{layer}.pins")));
            let upper = own(&format!("{layer}.upper"));
            let all = [upper].into_iter().chain(pins).chain([source.as_path().to_owned()]);
            Some((all.collect(), Missing::Leave))
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
pub(super) fn check(points: &[Point]) -> std::result::Result<(), Error> {
    points.iter().try_for_each(|point| {
        walk(point)
            .map_err(|errno| Error::Point { target: point.target.clone(), source: io::Error::from(errno) })
    })
}

fn walk(point: &Point) -> Result<()> {
    let wanted = match &point.kind {
        PointKind::Directory => Kind::Directory,
        PointKind::Like(source) if fs::metadata(source).is_ok_and(|found| found.is_dir()) => Kind::Directory,
        PointKind::File | PointKind::Like(_) => Kind::File,
    };
    let mut here: Vec<OwnedFd> = point.layers.iter().map(|layer| open_named(layer)).collect::<Result<_>>()?;
    let names: Vec<&OsStr> = point.below.components().map(name).collect::<Result<_>>()?;
    for (index, name) in names.iter().enumerate() {
        let wanted = if index + 1 == names.len() { wanted } else { Kind::Directory };
        here = match (enter(&here, name)?, point.missing) {
            (Found::Directories(next), _) if wanted == Kind::Directory => next,
            (Found::Directories(_), _) => return Err(Errno::ISDIR),
            // What is bound onto a file may be of any kind but a directory.
            (Found::Entry(kind), _) if kind != Kind::Symlink && wanted == Kind::File => return Ok(()),
            (Found::Entry(Kind::Symlink), _) => return Err(Errno::LOOP),
            (Found::Entry(_), _) => return Err(Errno::NOTDIR),
            (Found::Nothing, Missing::Leave) => return Ok(()),
            (Found::Nothing, Missing::Make) => vec![make(here[0].as_fd(), name, wanted)?],
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
    use std::os::unix::fs::symlink;

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
}
