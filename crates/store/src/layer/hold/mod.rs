//! Holds a git directory to what it is now, for as long as a layer lasts.
//!
//! An overlay shows its source as it goes on. For a git directory that would mean that a commit, a rebase or another
//! branch outside moves `HEAD`, references and index inside, below files that stay what they were. So everything that
//! says where the user is (`names`) is put into the *pins* layer between upper and source before anything is mounted: as
//! it is, or as absent. Objects are not, since they are only ever added, and git finds those that it packed meanwhile: the layer
//! gets a directory for new ones that borrows the source's (`objects`). References are packed (`references`).
//!
//! What is held is a hard link to the user's own file, which costs the same whatever the size and shares nothing that
//! is written to: git replaces these files by a rename, so the link keeps what it was made of, and inside the file is
//! copied before it is changed. Where there can be no link, across file systems, it is a copy; so is what is small and may be
//! written in place by others than git (`names::COPIED`).
//!
//! Of submodules the same is held in their git directories, since the repository around them sees what is checked out there.

mod file;
mod names;
mod objects;
mod packed;
mod references;

use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{AtFlags, linkat};
use rustix::io::{Errno, Result};

use self::file::{copy_file, hold_file, reworded};
use self::names::{COMMON, COPIED, MODULES, OWN, Rule, SHARED_INDEX};
use self::objects::{OBJECTS, borrow};
use self::references::{PACKED, REFS, Room, hold_link};
use super::pins::make_dir;
use super::write::mark::{opaque, whiteout};
use crate::dir::{Kind, Meta, names, open_below, open_dir, reopen, stat_at};
use crate::path::RelPath;
use crate::remove::remove_at;
use crate::source::GitState;

pub use self::objects::can_lend;

/// More entries than this are not held: it would take longer than anybody waits for a start.
const MOST: usize = 50_000;
/// As deep are references at most.
const DEEPEST: usize = 32;
/// How often it is tried again while git is at work, and how long is waited before.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(4);

/// Gives the contents of a configuration another form, unless they can stay.
pub type Reword<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;

/// A git directory that is to be held.
#[derive(Clone, Copy)]
pub struct GitDirectory<'a> {
    /// What the layer lies above, or another layer that holds the same.
    pub lower: BorrowedFd<'a>,
    /// Where the git directory is in it, the common one of a linked worktree.
    pub at: &'a RelPath,
    /// The name of a linked worktree.
    pub worktree: Option<&'a [u8]>,
    /// How the configuration is shown, if not as it is.
    pub reword: Option<Reword<'a>>,
    /// Where the objects are shown to whoever looks at the layer, if not in their place below it.
    pub lender: Option<&'a [u8]>,
}

impl fmt::Debug for GitDirectory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitDirectory").field("at", &self.at).finish_non_exhaustive()
    }
}

/// Holds a git directory in the layer `pins`. If it fails, nothing of it is held.
///
/// What is read is one state of the repository: while git is seen to be at work it is read again, a few times.
pub fn hold_git(pins: BorrowedFd<'_>, git: &GitDirectory<'_>) -> Result<()> {
    let mut tries = TRIES;
    loop {
        let before = Moment::look(git)?;
        let held = Holding { pins, git, left: MOST, room: Room::ALL, absent: None }.all();
        tries -= 1;
        let is_one = held.is_ok() && before.is_quiet && before == Moment::look(git)?;
        // Whoever holds the lock of the index all this time is not about to move anything: an editor is open.
        if is_one || (held.is_ok() && tries == 0) {
            return Ok(());
        }
        release(pins, git)?;
        match held {
            // Something went away while it was read.
            Ok(()) | Err(Errno::NOENT | Errno::STALE) if tries > 0 => std::thread::sleep(PAUSE),
            held => return held,
        }
    }
}

/// Takes out of the layer what it holds of a git directory.
fn release(pins: BorrowedFd<'_>, git: &GitDirectory<'_>) -> Result<()> {
    let own = git.own()?;
    for (at, rules) in [(git.at, COMMON), (&own, OWN)] {
        let Ok(held) = open_below(pins, at) else { continue };
        rules.iter().try_for_each(|(name, _)| remove_at(held.as_fd(), name))?;
        [MODULES, OBJECTS, REFS, PACKED].iter().try_for_each(|name| remove_at(held.as_fd(), name))?;
        for entry in names(reopen(held.as_fd())?.as_fd())? {
            if entry.bytes.starts_with(SHARED_INDEX) {
                remove_at(held.as_fd(), &entry.bytes)?;
            }
        }
    }
    Ok(())
}

impl GitDirectory<'_> {
    /// The directory of the worktree, which is the common one unless it is a linked one.
    fn own(&self) -> Result<RelPath> {
        let Some(name) = self.worktree else { return Ok(self.at.clone()) };
        self.at.join(b"worktrees").and_then(|way| way.join(name)).map_err(|_| Errno::INVAL)
    }
}

/// What a git directory looks like, to tell whether it moved while it was read.
#[derive(PartialEq, Eq)]
struct Moment {
    /// Of the common directory, where that is another one.
    common: Option<GitState>,
    own: GitState,
    /// Whether nobody has the lock of the index.
    is_quiet: bool,
}

impl Moment {
    fn look(git: &GitDirectory<'_>) -> Result<Self> {
        let own = open_below(git.lower, &git.own()?)?;
        let common = match git.worktree {
            None => None,
            Some(_) => Some(GitState::of(open_below(git.lower, git.at)?.as_fd())),
        };
        let is_quiet = stat_at(own.as_fd(), b"index.lock").is_err();
        Ok(Self { common, own: GitState::of(own.as_fd()), is_quiet })
    }
}

struct Holding<'a> {
    pins: BorrowedFd<'a>,
    git: &'a GitDirectory<'a>,
    /// How many more entries may be held.
    left: usize,
    room: Room,
    /// The first name that is held as absent, and the directory it is in.
    absent: Option<(OwnedFd, Vec<u8>)>,
}

impl Holding<'_> {
    fn all(&mut self) -> Result<()> {
        let (from, to) = self.way(self.git.at)?;
        self.references((from.as_fd(), to.as_fd()))?;
        self.level((from.as_fd(), to.as_fd()), COMMON)?;
        if let Some(lender) = self.git.lender {
            borrow((from.as_fd(), to.as_fd()), lender)?;
        }
        if self.git.worktree.is_none() {
            return self.worktree((from.as_fd(), to.as_fd()), DEEPEST);
        }
        let (from, to) = self.way(&self.git.own()?)?;
        // A linked worktree has references of its own only for a bisection and the like.
        self.level((from.as_fd(), to.as_fd()), &[(REFS, Rule::IfThere)])?;
        self.worktree((from.as_fd(), to.as_fd()), DEEPEST)
    }

    /// What one worktree has of its own, its submodules among it.
    fn worktree(&mut self, ends: (BorrowedFd<'_>, BorrowedFd<'_>), deep: usize) -> Result<()> {
        self.level(ends, OWN)?;
        for entry in names(reopen(ends.0)?.as_fd())? {
            if entry.bytes.starts_with(SHARED_INDEX) {
                hold_file(ends, &entry.bytes, &stat_at(ends.0, &entry.bytes)?)?;
            } else if entry.bytes == MODULES && stat_at(ends.0, MODULES)?.kind == Kind::Directory {
                let from = open_dir(ends.0, MODULES)?;
                let to = make_dir(ends.1, MODULES, Some(&from))?;
                self.modules((from.as_fd(), to.as_fd()), deep)?;
            }
        }
        Ok(())
    }

    /// Every git directory below a directory. The name of a submodule may have slashes.
    fn modules(&mut self, (from, to): (BorrowedFd<'_>, BorrowedFd<'_>), deep: usize) -> Result<()> {
        let deeper = deep.checked_sub(1).ok_or(Errno::TOOBIG)?;
        for entry in names(reopen(from)?.as_fd())? {
            self.left = self.left.checked_sub(1).ok_or(Errno::TOOBIG)?;
            let meta = stat_at(from, &entry.bytes)?;
            if meta.kind != Kind::Directory {
                continue;
            }
            let below = open_dir(from, &entry.bytes)?;
            let made = make_dir(to, &entry.bytes, Some(&below))?;
            let ends = (below.as_fd(), made.as_fd());
            if stat_at(ends.0, b"HEAD").is_ok() {
                self.left = self.left.checked_sub(COMMON.len() + OWN.len()).ok_or(Errno::TOOBIG)?;
                self.references(ends)?;
                self.level(ends, COMMON)?;
                self.worktree(ends, deeper)?;
            } else {
                self.modules(ends, deeper)?;
            }
        }
        Ok(())
    }

    /// Holds what the rules say of one directory.
    fn level(&mut self, (from, to): (BorrowedFd<'_>, BorrowedFd<'_>), rules: &[(&[u8], Rule)]) -> Result<()> {
        for (name, rule) in rules {
            let found = match stat_at(from, name) {
                Err(Errno::NOENT) => None,
                // Of another layer, which holds it as absent.
                Ok(meta) if meta.is_null_device() => None,
                found => Some(found?),
            };
            match (rule, found) {
                (Rule::Absent, _) | (Rule::Hold, None) => self.hide(to, name)?,
                (Rule::IfThere, None) => {}
                (Rule::Hold | Rule::IfThere, Some(meta)) => {
                    self.hold((from, to), name, &meta)?;
                }
            }
        }
        Ok(())
    }

    /// Says in a directory of the layer that a name is not there. After the first these are links, wherever they are: a new
    /// inode costs ten times as much.
    fn hide(&mut self, to: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
        if let Some((place, first)) = &self.absent
            && linkat(place, first.as_slice(), to, name, AtFlags::empty()).is_ok()
        {
            return Ok(());
        }
        whiteout(to, name)?;
        if self.absent.is_none() {
            self.absent = Some((reopen(to)?, name.to_vec()));
        }
        Ok(())
    }

    /// A directory of the source and the one of the layer that merges with it.
    fn way(&self, at: &RelPath) -> Result<(OwnedFd, OwnedFd)> {
        let (mut from, mut to) = (reopen(self.git.lower)?, reopen(self.pins)?);
        for name in at.components() {
            from = open_dir(from.as_fd(), name)?;
            to = make_dir(to.as_fd(), name, Some(&from))?;
        }
        Ok((from, to))
    }

    fn hold(&mut self, ends: (BorrowedFd<'_>, BorrowedFd<'_>), name: &[u8], meta: &Meta) -> Result<()> {
        match (meta.kind, self.git.reword) {
            (Kind::Directory, _) => {
                let from = open_dir(ends.0, name)?;
                let to = make_dir(ends.1, name, Some(&from))?;
                opaque(to.as_fd())?;
                self.tree((from.as_fd(), to.as_fd()), DEEPEST)
            }
            (Kind::File, Some(reword)) if name.starts_with(b"config") => reworded(ends, name, meta, reword),
            (Kind::File, _) if COPIED.iter().any(|(one, most)| *one == name && meta.size <= *most) => {
                copy_file(ends, name, meta)
            }
            (Kind::File, _) => hold_file(ends, name, meta),
            // Some old repositories have a symbolic link here.
            (Kind::Symlink, _) if name == b"HEAD" => hold_link(ends, name),
            // A link, or worse: nothing that git makes.
            _ => Ok(()),
        }
    }

    /// Everything in a directory, but for locks and for directories in which there is nothing.
    fn tree(&mut self, (from, to): (BorrowedFd<'_>, BorrowedFd<'_>), deep: usize) -> Result<()> {
        for entry in names(from)? {
            self.left = self.left.checked_sub(1).ok_or(Errno::TOOBIG)?;
            if entry.bytes.ends_with(b".lock") {
                continue;
            }
            let meta = stat_at(from, &entry.bytes)?;
            match meta.kind {
                Kind::Directory => {
                    let below = open_dir(from, &entry.bytes)?;
                    if names(reopen(below.as_fd())?.as_fd())?.is_empty() {
                        continue;
                    }
                    let deeper = deep.checked_sub(1).ok_or(Errno::TOOBIG)?;
                    let made = make_dir(to, &entry.bytes, Some(&below))?;
                    self.tree((below.as_fd(), made.as_fd()), deeper)?;
                }
                Kind::File => hold_file((from, to), &entry.bytes, &meta)?,
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    use fs_err as fs;

    use super::*;
    use crate::dir::open_named;

    /// A git directory with a loose reference, and an empty layer.
    fn trees() -> (tempfile::TempDir, tempfile::TempDir) {
        let (source, pins) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let git = source.path().join(".git");
        fs::create_dir_all(git.join("refs/heads/a")).unwrap();
        fs::create_dir_all(git.join("refs/tags")).unwrap();
        for (name, text) in [
            ("HEAD", "ref: refs/heads/a/b\n"),
            ("index", "DIRC"),
            ("config", "[a]\n"),
            ("refs/heads/a/b", "1\n"),
            ("refs/heads/a/b.lock", ""),
        ] {
            fs::write(git.join(name), text).unwrap();
        }
        (source, pins)
    }

    pub(super) fn held(source: &Path, pins: &Path, reword: Option<Reword<'_>>) -> Result<()> {
        let (lower, layer) = (open_named(source)?, open_named(pins)?);
        let at = RelPath::new(".git").expect("a name");
        let lender = Some(&b"/lender"[..]);
        let git = GitDirectory { lower: lower.as_fd(), at: &at, worktree: None, reword, lender };
        hold_git(layer.as_fd(), &git)
    }

    fn is_opaque(path: &Path) -> bool {
        let names = crate::dir::attribute_names(open_named(path).unwrap().as_fd()).unwrap();
        names.iter().any(|name| name.ends_with(b"opaque"))
    }

    fn is_absent(path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|meta| meta.rdev() == 0 && !meta.is_file() && !meta.is_dir())
    }

    #[test]
    fn what_git_replaces_stays_and_what_it_makes_is_not_there() {
        let (source, pins) = trees();
        held(source.path(), pins.path(), None).unwrap();
        let (git, layer) = (source.path().join(".git"), pins.path().join(".git"));
        for name in ["HEAD", "index", "config", "refs/heads/a/b"] {
            let inode = |top: &Path| fs::metadata(top.join(name)).unwrap().ino();
            assert_eq!(inode(&git) == inode(&layer), name.starts_with("refs"), "{name}");
            let before = fs::read(layer.join(name)).unwrap();
            fs::write(git.join("new"), "another").unwrap();
            fs::rename(git.join("new"), git.join(name)).unwrap();
            assert_eq!(fs::read(layer.join(name)).unwrap(), before, "{name}");
        }
        for name in ["packed-refs", "MERGE_HEAD", "index.lock", "rebase-merge"] {
            assert!(is_absent(&layer.join(name)), "{name}");
        }
        assert!(!layer.join("refs/heads/a/b.lock").exists() && !layer.join("refs/tags").exists());
        assert!(is_opaque(&layer.join("refs")));
    }

    #[test]
    fn objects_have_a_place_of_their_own_and_borrow_the_sources() {
        let (source, pins) = trees();
        let git = source.path().join(".git");
        fs::create_dir_all(git.join("objects/ab")).unwrap();
        fs::write(git.join("objects/ab/cdef"), "").unwrap();
        held(source.path(), pins.path(), None).unwrap();
        let second = tempfile::tempdir().unwrap();
        held(pins.path(), second.path(), None).unwrap();
        for layer in [pins.path(), second.path()] {
            let own = layer.join(".git/objects");
            assert!(is_opaque(&own) && !own.join("ab").exists());
            assert_eq!(fs::read_to_string(own.join("info/alternates")).unwrap(), "/lender\n");
        }
    }

    #[test]
    fn objects_whose_list_is_meant_from_where_it_is_are_not_lent() {
        let (source, _) = trees();
        let objects = source.path().join(".git/objects");
        let (lower, at) = (open_named(source.path()).unwrap(), RelPath::new(".git").expect("a name"));
        let lends = || can_lend(lower.as_fd(), &at);
        assert!(!lends());
        fs::create_dir_all(objects.join("info")).unwrap();
        assert!(lends());
        let long = "#\n".repeat(40 << 10);
        for (list, can) in
            [("/a/objects\n# x\n\"/b\\n\"\n", true), ("../../r/objects\n", false), (&long, false)]
        {
            fs::write(objects.join("info/alternates"), list).unwrap();
            assert_eq!(lends(), can, "{list}");
        }
        fs::remove_file(objects.join("info/alternates")).unwrap();
        std::os::unix::fs::symlink("elsewhere", objects.join("info/alternates")).unwrap();
        assert!(!lends());
    }

    #[test]
    fn another_layer_is_held_the_same_and_a_configuration_is_reworded() {
        let (source, first) = trees();
        held(source.path(), first.path(), Some(&|text| Some([text, b"x"].concat()))).unwrap();
        assert_eq!(fs::read(first.path().join(".git/config")).unwrap(), b"[a]\nx");
        assert_eq!(fs::read(source.path().join(".git/config")).unwrap(), b"[a]\n");
        let second = tempfile::tempdir().unwrap();
        held(first.path(), second.path(), None).unwrap();
        assert!(is_absent(&second.path().join(".git/MERGE_HEAD")));
        assert_eq!(fs::read(second.path().join(".git/refs/heads/a/b")).unwrap(), b"1\n");
    }

    #[test]
    fn a_large_index_is_linked_and_a_small_one_can_be_written_in_place() {
        let (source, pins) = trees();
        let git = source.path().join(".git");
        fs::write(git.join("index"), vec![0; 200 << 10]).unwrap();
        fs::write(git.join("sharedindex.01"), "shared").unwrap();
        held(source.path(), pins.path(), None).unwrap();
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        assert_eq!(inode(&git.join("index")), inode(&pins.path().join(".git/index")));
        assert_eq!(inode(&git.join("sharedindex.01")), inode(&pins.path().join(".git/sharedindex.01")));
        for (name, was) in [("HEAD", "ref: refs/heads/a/b\n"), ("config", "[a]\n")] {
            fs::write(git.join(name), "written in place").unwrap();
            assert_eq!(fs::read_to_string(pins.path().join(".git").join(name)).unwrap(), was);
        }
    }

    #[test]
    fn submodules_are_held_and_released() {
        let (source, pins) = trees();
        for module in ["one", "with/slash", "one/modules/within"] {
            let module = source.path().join(".git/modules").join(module);
            fs::create_dir_all(module.join("refs/heads")).unwrap();
            fs::write(module.join("HEAD"), "1\n").unwrap();
        }
        held(source.path(), pins.path(), None).unwrap();
        let modules = pins.path().join(".git/modules");
        for module in ["one", "with/slash", "one/modules/within"] {
            assert_eq!(fs::read(modules.join(module).join("HEAD")).unwrap(), b"1\n");
            assert!(is_absent(&modules.join(module).join("MERGE_HEAD")));
            let inode = |path: &Path| fs::symlink_metadata(path).unwrap().ino();
            let first = pins.path().join(".git/packed-refs");
            assert_eq!(inode(&first), inode(&modules.join(module).join("index.lock")), "one inode for all");
        }
        let (layer, at) = (open_named(pins.path()).unwrap(), RelPath::new(".git").expect("a name"));
        let git = GitDirectory { lower: layer.as_fd(), at: &at, worktree: None, reword: None, lender: None };
        release(layer.as_fd(), &git).unwrap();
        assert_eq!(fs::read_dir(pins.path().join(".git")).unwrap().count(), 0);
    }

    #[test]
    fn too_deep_a_tree_leaves_nothing_held() {
        let (source, pins) = trees();
        let deep = ["d"; DEEPEST + 2].join("/");
        fs::create_dir_all(source.path().join(".git/refs").join(&deep)).unwrap();
        fs::write(source.path().join(".git/refs").join(deep).join("f"), "").unwrap();
        assert_eq!(held(source.path(), pins.path(), None), Err(Errno::TOOBIG));
        assert_eq!(fs::read_dir(pins.path().join(".git")).unwrap().count(), 0);
    }
}
