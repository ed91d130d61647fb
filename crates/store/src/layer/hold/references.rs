//! Pins the references of a git directory: as one file, like `git pack-refs`.
//!
//! A link for each loose reference would make a start slow in a repository with thousands. Each must still be read, because
//! git updates them one by one. References that `packed-refs` cannot express stay files: symbolic ones, those of one worktree,
//! broken ones, and names that git would not create.

use std::fs::File;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{readlinkat, symlinkat};
use rustix::io::{Errno, Result, read};

use super::Holding;
use super::file::{CONFIG, errno, hold_file, write};
use super::names::Rule;
use super::packed::{Line, can_be_packed, id_in, packed_with};
use crate::dir::{Kind, Meta, Mounts, Name, open_dir, open_file, open_unseen, reopen, stat_at, stat_fd};
use crate::layer::pins::make_dir;
use crate::layer::write::mark::opaque;
use crate::os::each_entry;
use crate::path::RelPath;
use crate::source::repository::hash_in;

pub(super) const REFS: &[u8] = b"refs";
pub(super) const PACKED: &[u8] = b"packed-refs";

/// The most names that are read, and the most bytes in them. More would take seconds.
const MOST: usize = 250_000;
const MOST_BYTES: usize = 64 << 20;
/// As deep are references at most.
const DEEPEST: usize = 32;
/// A larger list is not rewritten.
const LIST: u64 = 32 << 20;
/// Rewriting this much of the list takes about as long as pinning one file.
const WORTH: u64 = 32 << 10;
/// A larger file is not a reference. It would be copied where it cannot be linked.
const LARGEST: u64 = 64 << 10;
/// A reference and the end of its line are shorter.
const SHORT: usize = 128;

/// How much may still be read, in a repository and its submodules together.
#[derive(Clone, Copy)]
pub(super) struct Room {
    names: usize,
    bytes: usize,
}

impl Room {
    pub(super) const ALL: Self = Self { names: MOST, bytes: MOST_BYTES };
}

/// The references in a directory.
struct References {
    /// Letters of an id in this repository.
    width: usize,
    /// References that can be in the list.
    lines: Vec<Line>,
    /// Full names of references that stay files.
    files: Vec<Vec<u8>>,
    /// Whether git follows a symbolic link here, whose target must then stay a file.
    is_linked: bool,
    room: Room,
}

impl Holding<'_> {
    /// Pins the references of a git directory. Everything is read before anything is created, and files before the list: git
    /// deletes the file of a reference only after the list contains it.
    pub(super) fn references(&mut self, ends: (BorrowedFd<'_>, BorrowedFd<'_>)) -> Result<()> {
        let (from, to) = ends;
        // Without this directory git sees no repository. A symbolic link is shown as it is.
        if !stat_at(from, REFS).is_ok_and(|meta| meta.kind == Kind::Directory) {
            return self.level(ends, &[(REFS, Rule::Hold), (PACKED, Rule::Hold)]);
        }
        let refs = open_dir(from, REFS)?;
        let width = hash_in(&config(from)?).bytes() * 2;
        let mut found = References::in_directory(refs.as_fd(), width, self.room)?;
        self.room = found.room;
        let list = found.list(from)?;
        if found.files.len() > self.left {
            return Err(Errno::TOOBIG);
        }
        match list {
            Some((list, meta)) => write(to, PACKED, &meta, &mut list.as_slice())?,
            None => self.level(ends, &[(PACKED, Rule::Hold)])?,
        }
        let made = make_dir(to, REFS, Some(&refs))?;
        opaque(made.as_fd())?;
        self.files((from, to), &found.files)
    }

    /// Pins references as files, directory by directory.
    fn files(&mut self, (from, to): (BorrowedFd<'_>, BorrowedFd<'_>), names: &[Vec<u8>]) -> Result<()> {
        let mut place: Option<(&[u8], OwnedFd, OwnedFd)> = None;
        for path in names {
            self.left = self.left.checked_sub(1).ok_or(Errno::TOOBIG)?;
            let cut = path.iter().rposition(|byte| *byte == b'/').ok_or(Errno::INVAL)?;
            let (above, name) = (&path[..cut], &path[cut + 1..]);
            if place.as_ref().is_none_or(|(at, ..)| *at != above) {
                let at = RelPath::new(above).map_err(|_| Errno::INVAL)?;
                let mut ends = (reopen(from)?, reopen(to)?);
                for component in at.components() {
                    let below = open_dir(ends.0.as_fd(), component)?;
                    let made = make_dir(ends.1.as_fd(), component, Some(&below))?;
                    ends = (below, made);
                }
                place = Some((above, ends.0, ends.1));
            }
            let (_, from, to) = place.as_ref().expect("it was opened just now");
            hold_reference((from.as_fd(), to.as_fd()), name)?;
        }
        Ok(())
    }
}

/// Pins one file or symbolic link. If the text of a link begins with `refs/`, git takes it for the name of another
/// reference; otherwise git follows the link.
fn hold_reference(ends: (BorrowedFd<'_>, BorrowedFd<'_>), name: &[u8]) -> Result<()> {
    let meta = stat_at(ends.0, name)?;
    match meta.kind {
        Kind::File if meta.size <= LARGEST => hold_file(ends, name, &meta),
        Kind::Symlink => hold_link(ends, name),
        // It was a file when it was listed.
        Kind::Directory => Err(Errno::STALE),
        _ => Ok(()),
    }
}

/// Creates a symbolic link with the same text.
pub(super) fn hold_link((from, to): (BorrowedFd<'_>, BorrowedFd<'_>), name: &[u8]) -> Result<()> {
    symlinkat(readlinkat(from, name, Vec::new())?, to, name)
}

impl References {
    fn in_directory(refs: BorrowedFd<'_>, width: usize, room: Room) -> Result<Self> {
        let mut found = Self { width, lines: Vec::new(), files: Vec::new(), is_linked: false, room };
        found.read(refs, &mut REFS.to_vec(), DEEPEST)?;
        Ok(found)
    }

    /// Reads everything in a directory except locks, which belong to a git process outside.
    fn read(&mut self, directory: BorrowedFd<'_>, path: &mut Vec<u8>, deep: usize) -> Result<()> {
        let above = path.len();
        for name in self.listed(directory, above)? {
            if name.bytes.ends_with(b".lock") {
                continue;
            }
            path.push(b'/');
            path.extend_from_slice(&name.bytes);
            let kind = match name.kind {
                Some(kind) => kind,
                None => stat_at(directory, &name.bytes)?.kind,
            };
            match kind {
                Kind::Directory => {
                    let deeper = deep.checked_sub(1).ok_or(Errno::TOOBIG)?;
                    self.read(open_dir(directory, &name.bytes)?.as_fd(), path, deeper)?;
                }
                Kind::File => self.file(directory, &name.bytes, path)?,
                Kind::Symlink => {
                    self.is_linked |=
                        !readlinkat(directory, &name.bytes, Vec::new())?.as_bytes().starts_with(b"refs/");
                    self.files.push(path.clone());
                }
                _ => {}
            }
            path.truncate(above);
        }
        Ok(())
    }

    /// The names in a directory, unless there are too many.
    fn listed(&mut self, directory: BorrowedFd<'_>, above: usize) -> Result<Vec<Name>> {
        let mut names = Vec::new();
        let mut is_all = true;
        each_entry(directory, |bytes, kind| {
            let left =
                self.room.names.checked_sub(1).zip(self.room.bytes.checked_sub(above + 1 + bytes.len()));
            let Some((names_left, bytes_left)) = left else {
                is_all = false;
                return ControlFlow::Break(());
            };
            self.room = Room { names: names_left, bytes: bytes_left };
            names.push(Name { bytes: bytes.to_vec(), kind: Kind::known(kind) });
            ControlFlow::Continue(())
        })?;
        if is_all { Ok(names) } else { Err(Errno::TOOBIG) }
    }

    /// Reads one file. It is opened without another `stat`: if it was replaced, opening does not block, and anything but an
    /// id is refused.
    fn file(&mut self, directory: BorrowedFd<'_>, name: &[u8], path: &[u8]) -> Result<()> {
        let id = if can_be_packed(path) { self.id(directory, name)? } else { None };
        match id {
            Some(id) => self.lines.push(Line::new(&id, path)),
            None => self.files.push(path.to_vec()),
        }
        Ok(())
    }

    fn id(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Vec<u8>>> {
        let file = match open_unseen(directory, name, Mounts::Refuse) {
            Err(Errno::ACCESS) => return Ok(None),
            file => file?,
        };
        let mut text = [0; SHORT];
        match read(&file, &mut text) {
            Ok(length) if length < SHORT => Ok(id_in(&text[..length], self.width)),
            _ => Ok(None),
        }
    }

    /// The new list, and the metadata for its file. Without one, all references stay files: none can be in a list, files take
    /// less time, or the old list is not as git writes it.
    fn list(&mut self, git: BorrowedFd<'_>) -> Result<Option<(Vec<u8>, Meta)>> {
        let old = if self.is_linked { None } else { old_list(git, self.lines.len())? };
        let made = old.and_then(|(list, meta)| {
            packed_with(&list, self.width, &mut self.lines).map(|list| (list, meta))
        });
        if made.is_none() {
            self.files.extend(self.lines.drain(..).map(|line| line.name().to_vec()));
            self.files.sort_unstable();
        }
        Ok(made)
    }
}

/// The list of the source, if adding so many lines is worth rewriting it.
fn old_list(git: BorrowedFd<'_>, added: usize) -> Result<Option<(Vec<u8>, Meta)>> {
    let meta = match stat_at(git, PACKED) {
        Err(Errno::NOENT) => None,
        // Another layer pins it as absent.
        Ok(meta) if meta.is_null_device() => None,
        meta => Some(meta?),
    };
    let Some(meta) = meta else {
        let like = stat_fd(git)?;
        let mode = like.mode & 0o666;
        return Ok((added > 0).then_some((Vec::new(), Meta { mode, ..like })));
    };
    let is_worth = u64::try_from(added).is_ok_and(|added| added * WORTH >= meta.size);
    if added == 0 || !is_worth || meta.kind != Kind::File || meta.size > LIST {
        return Ok(None);
    }
    let file = match open_file(git, PACKED, &meta) {
        Err(Errno::ACCESS) => return Ok(None),
        file => File::from(file?),
    };
    let mut list = Vec::new();
    file.take(LIST + 1).read_to_end(&mut list).map_err(|error| errno(&error))?;
    Ok((list.len() as u64 <= LIST).then_some((list, meta)))
}

/// The configuration of a git directory; empty if it cannot be read.
fn config(git: BorrowedFd<'_>) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let meta = match stat_at(git, b"config") {
        Ok(meta) if meta.kind == Kind::File => meta,
        Ok(_) | Err(Errno::NOENT) => return Ok(text),
        Err(errno) => return Err(errno),
    };
    match open_file(git, b"config", &meta) {
        Err(Errno::ACCESS) => {}
        file => {
            File::from(file?).take(CONFIG).read_to_end(&mut text).map_err(|error| errno(&error))?;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::path::Path;

    use fs_err as fs;
    use tempfile::TempDir;

    use super::super::tests::held;
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    /// A git directory with these references as files, and an empty layer.
    fn trees(files: &[(&str, &str)]) -> (TempDir, TempDir) {
        let (source, pins) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(source.path().join(".git/refs")).unwrap();
        for (name, text) in files {
            put(source.path(), name, text);
        }
        (source, pins)
    }

    fn put(top: &Path, name: &str, text: &str) {
        let path = top.join(".git").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(pins: &TempDir, name: &str) -> String {
        fs::read_to_string(pins.path().join(".git").join(name)).unwrap()
    }

    #[test]
    fn references_become_a_list_and_what_it_cannot_say_stays() {
        let stays = [
            ("refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main\n"),
            ("refs/bisect/bad", ONE),
            ("refs/heads/broken", "1\n"),
            ("refs/heads/a..b", ONE),
        ];
        let (source, pins) = trees(&stays);
        for (name, id) in [("refs/heads/main", TWO), ("refs/stash", ONE), ("refs/heads/x.lock", ONE)] {
            put(source.path(), name, &format!("{id}\n"));
        }
        put(source.path(), "packed-refs", &format!("{ONE} refs/heads/main\n{ONE} refs/tags/v1\n"));
        symlink("refs/heads/main", source.path().join(".git/refs/heads/link")).unwrap();
        held(source.path(), pins.path(), None).unwrap();
        // A layer can be pinned from another one.
        let second = tempfile::tempdir().unwrap();
        held(pins.path(), second.path(), None).unwrap();
        for layer in [&pins, &second] {
            let list = format!(
                "# pack-refs with: sorted \n{TWO} refs/heads/main\n{ONE} refs/stash\n{ONE} refs/tags/v1\n"
            );
            assert_eq!(text(layer, "packed-refs"), list);
            for (name, what) in stays {
                assert_eq!(text(layer, name), what, "{name}");
            }
            let link = fs::read_link(layer.path().join(".git/refs/heads/link")).unwrap();
            assert_eq!(link, Path::new("refs/heads/main"));
            for name in ["refs/heads/main", "refs/heads/x.lock", "refs/stash"] {
                assert!(!layer.path().join(".git").join(name).exists(), "{name}");
            }
        }
    }

    #[test]
    fn what_a_link_leads_to_stays_where_it_is() {
        let (source, pins) = trees(&[("refs/heads/main", ONE), ("refs/tags/v1", TWO)]);
        symlink("main", source.path().join(".git/refs/heads/link")).unwrap();
        held(source.path(), pins.path(), None).unwrap();
        for (name, id) in [("refs/heads/link", ONE), ("refs/heads/main", ONE), ("refs/tags/v1", TWO)] {
            assert_eq!(text(&pins, name), id, "{name}");
        }
    }

    #[test]
    fn a_large_list_is_not_made_anew_for_a_few() {
        let (source, pins) = trees(&[("refs/heads/main", TWO)]);
        let list: Vec<String> = (0..3000).map(|number| format!("{ONE} refs/tags/{number:08}\n")).collect();
        put(source.path(), "packed-refs", &list.concat());
        held(source.path(), pins.path(), None).unwrap();
        let inode =
            |top: &TempDir, name: &str| fs::metadata(top.path().join(".git").join(name)).unwrap().ino();
        for name in ["packed-refs", "refs/heads/main"] {
            assert_eq!(inode(&source, name), inode(&pins, name), "{name}");
        }
    }

    #[test]
    fn ids_have_the_length_that_the_configuration_says() {
        let long = "3".repeat(64);
        let (source, pins) = trees(&[("refs/heads/one", ONE), ("refs/heads/long", &long)]);
        put(source.path(), "config", "[extensions]\n\tobjectFormat = sha256\n");
        held(source.path(), pins.path(), None).unwrap();
        assert_eq!(
            text(&pins, "packed-refs"),
            format!("# pack-refs with: sorted \n{long} refs/heads/long\n")
        );
        assert_eq!(text(&pins, "refs/heads/one"), ONE);
    }

    #[test]
    fn too_many_are_refused_before_anything_is_made() {
        let (source, _) = trees(&[("refs/a", ONE), ("refs/b/c", ONE), ("refs/b/d", ONE)]);
        let refs = crate::dir::open_named(&source.path().join(".git/refs")).unwrap();
        let read = |names: usize, bytes: usize| {
            let refs = crate::dir::reopen(refs.as_fd()).unwrap();
            References::in_directory(refs.as_fd(), 40, Room { names, bytes }).map(|found| found.lines.len())
        };
        let bytes = "refs/a".len() + "refs/b".len() + 2 * "refs/b/c".len();
        assert_eq!(read(4, bytes), Ok(3));
        assert_eq!((read(3, bytes), read(4, bytes - 1)), (Err(Errno::TOOBIG), Err(Errno::TOOBIG)));
    }
}
