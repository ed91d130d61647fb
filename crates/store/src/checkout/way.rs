//! Where a directory of a state is, however deep, without its path.
//!
//! A state may be ten thousand directories deep. A path for each would be as much memory as the depth squared, and a way
//! from the top to each as much time. So a [`Way`] is a name and the way above it, and [`Near`] starts from what it
//! opened last. What it holds open is a directory that was made here, or that somebody put in its place: going on from
//! it leads nowhere but below it, wherever it was moved to meanwhile.

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Result;

use crate::dir::open_below;
use crate::object::name::git_refuses;
use crate::path::RelPath;

/// A directory by the names that lead to it.
#[derive(Debug)]
pub(crate) struct Way {
    above: Option<Arc<Way>>,
    name: Box<[u8]>,
    depth: usize,
}

impl Way {
    pub(crate) fn root() -> Arc<Self> {
        Arc::new(Self { above: None, name: Box::default(), depth: 0 })
    }

    /// One level further down; none if that is no name, or one that is never written.
    pub(crate) fn to(self: &Arc<Self>, name: &[u8]) -> Option<Arc<Self>> {
        (!git_refuses(name)).then(|| self.below(name))
    }

    /// The same for a name that a state has: whether it may be written is for the caller to say.
    pub(crate) fn below(self: &Arc<Self>, name: &[u8]) -> Arc<Self> {
        Arc::new(Self { above: Some(Arc::clone(self)), name: name.into(), depth: self.depth + 1 })
    }

    /// The directory that it is in; the root is in none.
    pub(crate) fn parent(&self) -> Option<&Arc<Self>> {
        self.above.as_ref()
    }

    /// The last name; the root has none.
    pub(crate) fn name(&self) -> Option<&[u8]> {
        self.above.as_ref().map(|_| &*self.name)
    }

    pub(crate) fn is_root(&self) -> bool {
        self.depth == 0
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// For people, and for what is far from everything that is open.
    pub(crate) fn path(&self) -> RelPath {
        self.path_from(0)
    }

    /// The path of an entry of this directory. A name that is none is left out: whoever uses it was told before.
    pub(crate) fn path_of(&self, name: &[u8]) -> RelPath {
        let path = self.path();
        path.join(name).unwrap_or(path)
    }

    /// The directory so many levels above, or the root.
    fn above_by(self: &Arc<Self>, levels: usize) -> &Arc<Self> {
        let up = std::iter::successors(Some(self), |way| way.above.as_ref());
        up.take(levels + 1).last().unwrap_or(self)
    }

    /// The end of the path, so many bytes or the whole.
    pub(crate) fn end(&self, most: usize) -> Vec<u8> {
        let (mut names, mut length, mut at) = (Vec::new(), 0, self);
        while let Some(above) = at.above.as_ref().filter(|_| length <= most) {
            names.push(&*at.name);
            length += at.name.len() + 1;
            at = above;
        }
        names.reverse();
        let end: Vec<u8> = names.join(&b'/');
        end[end.len().saturating_sub(most)..].to_vec()
    }

    /// What leads here from the level `depth` on.
    fn path_from(&self, depth: usize) -> RelPath {
        let mut names = Vec::with_capacity(self.depth - depth);
        let mut at = self;
        while at.depth > depth {
            names.push(&at.name);
            at = at.above.as_ref().expect("only the root has nothing above it");
        }
        let mut path = RelPath::root();
        for name in names.into_iter().rev() {
            path.push(name)
                .expect("a way has names of states only, and those are never empty and have no slash");
        }
        path
    }
}

impl Drop for Way {
    /// One after the other: each in the end of the one before would be as deep a recursion as the state is deep.
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(mut way) = above.and_then(Arc::into_inner) {
            above = way.above.take();
        }
    }
}

/// How many directories are kept open.
const OPEN: usize = 16;
/// How far up from a directory one is looked for that is open.
const STEPS: usize = 64;

/// Opens directories, from those that it opened last.
pub(crate) struct Near<'a> {
    top: BorrowedFd<'a>,
    open: VecDeque<(Arc<Way>, OwnedFd)>,
}

impl<'a> Near<'a> {
    pub(crate) fn new(top: BorrowedFd<'a>) -> Self {
        Self { top, open: VecDeque::new() }
    }

    /// Opens a directory.
    pub(crate) fn open(&mut self, way: &Arc<Way>) -> Result<OwnedFd> {
        let mut at = way;
        for _ in 0..=STEPS {
            if let Some((_, fd)) = self.open.iter().find(|(open, _)| Arc::ptr_eq(open, at)) {
                return open_below(fd.as_fd(), &way.path_from(at.depth));
            }
            let Some(above) = &at.above else { return open_below(self.top, &way.path()) };
            at = above;
        }
        // Half the way up, so that the next ones find it, whether they lie higher or deeper.
        let at = way.above_by(STEPS / 2);
        let fd = open_below(self.top, &at.path())?;
        let opened = open_below(fd.as_fd(), &way.path_from(at.depth));
        self.keep(Arc::clone(at), fd);
        opened
    }

    /// The same, looked up from the top whenever that is not far: where others may move directories meanwhile, a name is then
    /// always what it is now.
    pub(crate) fn open_anew(&mut self, way: &Arc<Way>) -> Result<OwnedFd> {
        if way.depth <= STEPS { open_below(self.top, &way.path()) } else { self.open(way) }
    }

    /// Keeps a directory open for those below it.
    pub(crate) fn keep(&mut self, way: Arc<Way>, fd: OwnedFd) {
        self.open.truncate(OPEN - 1);
        self.open.push_front((way, fd));
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, mkdirat};

    use super::*;
    use crate::dir::{open_named, stat_fd};

    /// A way of `levels` directories, made below `top`; each with the number of its inode.
    fn made(top: &OwnedFd, levels: usize) -> Vec<(Arc<Way>, u64)> {
        let mut ways = Vec::new();
        let (mut way, mut at) = (Way::root(), open_below(top.as_fd(), &RelPath::root()).unwrap());
        for _ in 0..levels {
            mkdirat(&at, "d", Mode::RWXU).unwrap();
            way = way.to(b"d").unwrap();
            at = crate::dir::open_dir(at.as_fd(), b"d").unwrap();
            ways.push((Arc::clone(&way), stat_fd(at.as_fd()).unwrap().ino));
        }
        ways
    }

    #[test]
    fn each_is_found_and_seldom_from_the_top() {
        let dir = tempfile::tempdir().unwrap();
        let top = open_named(dir.path()).unwrap();
        let ways = made(&top, 400);
        let down: Vec<_> = ways.iter().collect();
        let up: Vec<_> = ways.iter().rev().collect();
        for order in [down, up] {
            let mut near = Near::new(top.as_fd());
            let mut from_the_top = 0;
            for (way, ino) in order {
                let before = near.open.front().map(|(open, _)| open.depth);
                assert_eq!(stat_fd(near.open(way).unwrap().as_fd()).unwrap().ino, *ino);
                from_the_top += usize::from(near.open.front().map(|(open, _)| open.depth) != before);
                assert!(near.open.len() <= OPEN);
            }
            assert!(from_the_top <= 1 + 400 / (STEPS / 2), "{from_the_top}");
        }
    }

    #[test]
    fn a_way_has_its_path_and_no_name_that_is_none() {
        let root = Way::root();
        assert!(root.is_root() && root.path().is_root());
        let way = root.to(b"a").and_then(|way| way.to(b"b\xff")).unwrap();
        assert_eq!((way.path().as_bytes(), way.depth()), (&b"a/b\xff"[..], 2));
        assert_eq!(way.path_of(b"c").as_bytes(), b"a/b\xff/c");
        assert_eq!((way.name(), way.parent().unwrap().name()), (Some(&b"b\xff"[..]), Some(&b"a"[..])));
        assert!(root.name().is_none() && root.parent().is_none());
        let ends = [(9, &b"a/b\xff"[..]), (4, b"a/b\xff"), (3, b"/b\xff"), (2, b"b\xff"), (0, b"")];
        for (most, end) in ends {
            assert_eq!(way.end(most), end);
        }
        for name in [&b""[..], b".", b"..", b"a/b", b".git", b"a\0"] {
            assert!(root.to(name).is_none());
        }
    }

    #[test]
    fn a_very_long_one_ends_without_recursion() {
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let ended = small.spawn(|| drop((0..200_000).fold(Way::root(), |way, _| way.to(b"d").unwrap())));
        ended.unwrap().join().unwrap();
    }
}
