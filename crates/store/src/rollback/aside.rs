//! The directory aside: new files wait in it, and what they took the place of is kept in it until the result stands.
//!
//! It lies in the git directory where there is one, so that no `git add` takes it for work. A list in it says by which inode,
//! size and time each new file is known, and what the index of git said of its path: after a crash that tells our files from
//! everybody else's. An entry that is neither what was recorded nor ours is somebody's work, and gets a name in the tree.

use std::io::{BufRead, BufReader, BufWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, fchmod, linkat, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::{Errno, Result};

use super::disk;
use super::plan::{Plan, Step};
use crate::dir::{Kind, Meta, open_dir, open_file, stat_fd};
use crate::id::HashKind;
use crate::source::index::{FILE_LIMIT, Index};

pub(super) const GIT: &str = ".git";
const LIST: &str = "list";
const HEADER: &str = "sandtable-aside 1";

/// The name of a new file, and later of what it took the place of.
pub(super) fn new_name(index: usize) -> String {
    format!("n{index}")
}

/// The name of what went without a successor.
pub(super) fn old_name(index: usize) -> String {
    format!("o{index}")
}

/// What tells a file from the one that was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    ino: u64,
    size: u64,
    mtime_ns: i64,
}

impl Stamp {
    pub(super) const fn of(meta: &Meta) -> Self {
        Self { ino: meta.ino, size: meta.size, mtime_ns: meta.mtime_ns }
    }
}

/// What is known of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) new: Option<Stamp>,
    /// What the index said of the path.
    staged: Option<String>,
}

/// The list, by step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    pub(super) lines: Vec<Line>,
    /// Whether the index could be read.
    has_index: bool,
}

impl List {
    /// What is true now, when everything is made.
    pub(super) fn take_down(
        (root, aside): (BorrowedFd<'_>, BorrowedFd<'_>),
        plan: &Plan,
        hash: HashKind,
    ) -> Result<Self> {
        let index = index(root, hash);
        let mut lines = Vec::with_capacity(plan.steps.len());
        for (number, step) in plan.steps.iter().enumerate() {
            let new = disk::look(aside, new_name(number).as_bytes())?.as_ref().map(Stamp::of);
            let staged = index.as_ref().ok().and_then(|index| entry(index.as_ref(), step));
            lines.push(Line { new, staged });
        }
        Ok(Self { lines, has_index: index.is_ok() })
    }

    pub(super) fn write(&self, aside: BorrowedFd<'_>, plan: &Plan) -> std::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(aside, LIST, flags, Mode::RUSR | Mode::WUSR)?;
        let mut text = BufWriter::new(std::fs::File::from(file));
        writeln!(text, "{HEADER} {}", u8::from(self.has_index))?;
        for (line, step) in self.lines.iter().zip(&plan.steps) {
            let Stamp { ino, size, mtime_ns } = line.new.unwrap_or(Stamp { ino: 0, size: 0, mtime_ns: 0 });
            let (staged, path) = (line.staged.as_deref().unwrap_or("-"), label(step));
            writeln!(text, "{ino} {size} {mtime_ns} {staged}\t{path}")?;
        }
        writeln!(text, "end")?;
        text.flush()
    }

    /// The list of this plan; none if there is no such list. Others may have put anything in its place.
    pub(super) fn read(aside: BorrowedFd<'_>, plan: &Plan) -> std::io::Result<Option<Self>> {
        let Some(meta) = disk::look(aside, LIST.as_bytes())?.filter(|meta| meta.kind == Kind::File) else {
            return Ok(None);
        };
        let file = match open_file(aside, LIST.as_bytes(), &meta) {
            Err(Errno::ACCESS | Errno::STALE | Errno::NOENT | Errno::LOOP) => return Ok(None),
            file => std::fs::File::from(file?),
        };
        match Self::parse(&mut BufReader::new(file), plan) {
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Ok(None),
            list => list,
        }
    }

    /// One line after the other: all paths together may be long.
    fn parse(text: &mut dyn BufRead, plan: &Plan) -> std::io::Result<Option<Self>> {
        let mut line = String::new();
        let has_index = next(text, &mut line)?.and_then(|line| Some(line.strip_prefix(HEADER)? == " 1"));
        let Some(has_index) = has_index else { return Ok(None) };
        let mut lines = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            match next(text, &mut line)?.and_then(|line| Line::parse(line, step)) {
                Some(found) => lines.push(found),
                None => return Ok(None),
            }
        }
        let is_whole = next(text, &mut line)? == Some("end") && text.fill_buf()?.is_empty();
        Ok(is_whole.then_some(Self { lines, has_index }))
    }

    /// Which steps somebody has told git something else of since.
    pub(super) fn taken_up(&self, root: BorrowedFd<'_>, plan: &Plan, hash: HashKind) -> Vec<bool> {
        let now = index(root, hash);
        let taken = |(line, step): (&Line, &Step)| match &now {
            _ if !self.has_index => false,
            Ok(now) => entry(now.as_ref(), step) != line.staged,
            // It could be read before and cannot now: somebody changed it.
            Err(()) => true,
        };
        self.lines.iter().zip(&plan.steps).map(taken).collect()
    }
}

impl Line {
    /// The line of this step.
    fn parse(line: &str, step: &Step) -> Option<Self> {
        let (line, path) = line.split_once('\t')?;
        let mut words = line.splitn(4, ' ');
        let ino: u64 = words.next()?.parse().ok()?;
        let (size, mtime_ns) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let staged = words.next().filter(|word| *word != "-").map(str::to_owned);
        let new = (ino != 0).then_some(Stamp { ino, size, mtime_ns });
        (path == label(step)).then_some(Self { new, staged })
    }
}

/// The next line, if it has an end.
fn next<'l>(text: &mut dyn BufRead, line: &'l mut String) -> std::io::Result<Option<&'l str>> {
    line.clear();
    text.take(LONGEST_LINE).read_line(line)?;
    Ok(line.strip_suffix('\n'))
}

/// A path is taken down as a whole if a program could open it. Of a longer one it is the end: all of them together would be as
/// much as the square of the depth.
const LONGEST: usize = 4095;

/// Every byte of a path may be escaped with four characters.
const LONGEST_LINE: u64 = 4 * LONGEST as u64 + 1024;

fn label(step: &Step) -> String {
    step.way.end(LONGEST).escape_ascii().to_string()
}

/// The path, if git could have it in its index.
fn whole(step: &Step) -> Option<Vec<u8>> {
    let end = step.way.end(LONGEST + 1);
    (end.len() <= LONGEST).then_some(end)
}

/// Whether git holds the lock of its index.
pub(super) fn git_is_at_work(root: BorrowedFd<'_>) -> Result<bool> {
    match open_dir(root, GIT.as_bytes()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
        git => Ok(disk::look(git?.as_fd(), b"index.lock")?.is_some()),
    }
}

/// The index of git; `Ok(None)` if there is none.
fn index(root: BorrowedFd<'_>, hash: HashKind) -> std::result::Result<Option<Index>, ()> {
    let read = || -> std::io::Result<Option<Vec<u8>>> {
        let git = match open_dir(root, GIT.as_bytes()) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            git => git?,
        };
        let Some(meta) = disk::look(git.as_fd(), b"index")? else { return Ok(None) };
        let mut bytes = Vec::new();
        if meta.size <= FILE_LIMIT {
            let file = std::fs::File::from(open_file(git.as_fd(), b"index", &meta)?);
            file.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
        }
        if meta.size.max(bytes.len() as u64) > FILE_LIMIT {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        Ok(Some(bytes))
    };
    match read() {
        Ok(Some(bytes)) => Index::parse(&bytes, hash, 0).map(Some).map_err(|_| ()),
        Ok(None) => Ok(None),
        Err(_) => Err(()),
    }
}

fn entry(index: Option<&Index>, step: &Step) -> Option<String> {
    let entry = index?.find(&whole(step)?)?;
    let unmerged = if entry.is_unmerged() { " unmerged" } else { "" };
    Some(format!("{:o} {}{unmerged}", entry.mode, entry.id))
}

/// An entry of a directory.
pub(super) type At<'a> = (BorrowedFd<'a>, &'a [u8]);

/// Gives an entry a name that nothing has, or says `EXIST`. Not every file system can promise that by itself; there it has both
/// names for a moment, and whoever was killed then is followed by one who ends it.
pub(super) fn put(from: At<'_>, to: At<'_>) -> Result<()> {
    match put_new(from, to) {
        Err(Errno::EXIST) if is_same(from, to)? => unlinkat(from.0, from.1, AtFlags::empty()),
        done => done,
    }
}

/// Does something in a directory whose permissions may keep even its owner from that, and leaves them as they were.
pub(super) fn within<T>(directory: BorrowedFd<'_>, act: impl Fn() -> Result<T>) -> Result<T> {
    match act() {
        Err(Errno::ACCESS) => {}
        done => return done,
    }
    let bits = Mode::from_raw_mode(u32::from(stat_fd(directory)?.mode) & 0o7777);
    fchmod(directory, bits | Mode::RWXU)?;
    let done = act();
    fchmod(directory, bits)?;
    done
}

/// The longest name that every usual file system takes.
const LONGEST_NAME: usize = 255;

/// Gives a file that somebody wrote to a name beside the one it had, so that it is not thrown away; returns that name, which
/// nothing had before.
pub fn keep_beside(
    file: (BorrowedFd<'_>, &[u8]),
    (directory, name): (BorrowedFd<'_>, &[u8]),
    id: &str,
) -> Result<Vec<u8>> {
    let ends = (0..10).map(|again| match again {
        0 => format!(".sandtable-{id}"),
        again => format!(".sandtable-{id}-{again}"),
    });
    for end in ends {
        let mut beside = cut(name, LONGEST_NAME.saturating_sub(end.len())).to_vec();
        beside.extend_from_slice(end.as_bytes());
        match put(file, (directory, &beside)) {
            Err(Errno::EXIST) => {}
            done => return done.map(|()| beside),
        }
    }
    Err(Errno::EXIST)
}

/// The beginning of a name, without a part of a character at its end.
fn cut(name: &[u8], most: usize) -> &[u8] {
    let starts = |at: &usize| name.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let end = (0..=most.min(name.len())).rev().find(starts).unwrap_or(0);
    // Bytes that are no text are cut anywhere.
    &name[..if end == 0 { most.min(name.len()) } else { end }]
}

/// Whether two names are those of one file.
pub(super) fn is_same(one: At<'_>, other: At<'_>) -> Result<bool> {
    let found = (disk::look(one.0, one.1)?, disk::look(other.0, other.1)?);
    let (Some(one), Some(other)) = found else { return Ok(false) };
    Ok((one.dev, one.ino) == (other.dev, other.ino))
}

fn put_new(from: At<'_>, to: At<'_>) -> Result<()> {
    match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        done => return done,
    }
    match linkat(from.0, from.1, to.0, to.1, AtFlags::empty()) {
        Ok(()) => unlinkat(from.0, from.1, AtFlags::empty()),
        // There is one name for each file here.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) if disk::look(to.0, to.1)?.is_none() => {
            renameat(from.0, from.1, to.0, to.1)
        }
        Err(errno) => Err(errno),
    }
}

/// Exchanges two entries in one step, where the file system can.
pub(super) fn exchange(one: At<'_>, two: At<'_>) -> Result<Exchanged> {
    match renameat_with(one.0, one.1, two.0, two.1, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(Exchanged::Impossible),
        Err(errno) => Err(errno),
        Ok(()) => Ok(Exchanged::Done),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exchanged {
    Done,
    /// The file system has no such step.
    Impossible,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::Way;

    fn step(names: &[&[u8]]) -> Step {
        let way = names.iter().fold(Way::root(), |way, name| way.below(name));
        Step { way, pre: None, post: None }
    }

    #[test]
    fn a_path_that_a_program_could_open_is_taken_down_as_a_whole() {
        let name = &[b'n'; 255][..];
        let (short, longest, longer) = (step(&[b"d", b"f\n"]), step(&[name; 16]), step(&[name; 17]));
        assert_eq!((whole(&short), label(&short).as_str()), (Some(b"d/f\n".to_vec()), r"d/f\n"));
        assert_eq!(whole(&longest).map(|path| path.len()), Some(4095));
        assert_eq!((whole(&longer), label(&longer).len()), (None, 4095));
    }

    #[test]
    fn a_list_is_of_its_plan_and_whole_or_it_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let aside = crate::dir::open_named(dir.path()).unwrap();
        let plan = |names: [&[u8]; 2]| {
            let steps = names.iter().map(|name| step(&[name])).collect();
            Plan { steps, ..Plan::default() }
        };
        let (one, other) = (plan([b"a", b"b"]), plan([b"a", b"c"]));
        let new = Some(Stamp { ino: 7, size: 1, mtime_ns: -1 });
        let lines = vec![Line { new, staged: Some("100644 x".to_owned()) }, Line::default()];
        let list = List { lines, has_index: true };
        list.write(aside.as_fd(), &one).unwrap();
        assert_eq!(List::read(aside.as_fd(), &other).unwrap(), None);
        assert_eq!(List::read(aside.as_fd(), &one).unwrap().as_ref(), Some(&list));
        let text = fs_err::read(dir.path().join(LIST)).unwrap();
        for end in 0..text.len() {
            fs_err::write(dir.path().join(LIST), &text[..end]).unwrap();
            assert_eq!(List::read(aside.as_fd(), &one).unwrap(), None, "{end} bytes");
        }
        fs_err::write(dir.path().join(LIST), [&text[..], b"more"].concat()).unwrap();
        assert_eq!(List::read(aside.as_fd(), &one).unwrap(), None);
    }
}
