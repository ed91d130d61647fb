//! System calls of an operation under strace: which of them write, and a fault at one of them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::operations::{Operation, Scene, Traced};

/// The calls that change a file system. A file that is only opened for writing is changed by the call after that.
const WRITING: &str = "write,pwrite64,writev,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,symlink,\
                       symlinkat,link,linkat,truncate,ftruncate,fallocate,chmod,fchmod,fchmodat,fchown,fchownat,utimensat,\
                       setxattr,fsetxattr,removexattr,fremovexattr,copy_file_range,sendfile,fsync,fdatasync";

/// The calls that need room, so that a full disk lets them fail.
const NEEDS_ROOM: [&str; 19] = [
    "write",
    "pwrite64",
    "writev",
    "rename",
    "renameat",
    "renameat2",
    "mkdir",
    "mkdirat",
    "symlink",
    "symlinkat",
    "link",
    "linkat",
    "ftruncate",
    "fallocate",
    "setxattr",
    "fsetxattr",
    "copy_file_range",
    "fsync",
    "fdatasync",
];

/// What happens at a system call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Kill,
    BrokenDisk,
    FullDisk,
}

impl Fault {
    /// As strace has it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Kill => "signal=KILL",
            Self::BrokenDisk => "error=EIO",
            Self::FullDisk => "error=ENOSPC",
        }
    }

    pub(crate) fn concerns(self, point: &Point) -> bool {
        self != Self::FullDisk || NEEDS_ROOM.contains(&point.call.as_str())
    }

    /// How the trace shows that it happened.
    const fn mark(self) -> &'static str {
        match self {
            Self::Kill => "+++ killed by SIGKILL +++",
            Self::BrokenDisk | Self::FullDisk => "(INJECTED)",
        }
    }
}

/// In which process a fault happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// In the process itself, while its children are well.
    Process,
    /// In each child that comes so far. The process itself, which came there later, is hit as well if it goes on.
    Child,
}

/// The n-th call of its kind that a process makes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) who: Who,
    call: String,
    when: usize,
}

impl fmt::Display for Point {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {}", self.call, self.when)
    }
}

impl Point {
    /// The words before a command that let a fault happen here.
    pub(crate) fn inject(&self, scene: &Scene, fault: Fault) -> Vec<String> {
        let Self { who, call, when } = self;
        let rule = format!("inject={call}:{}:when={when}", fault.word());
        let follow = (*who == Who::Child).then_some("-f");
        strace(scene, follow, &["-q", "-e", &format!("trace={call}"), "-e", &rule])
    }
}

/// Whether the fault happened: a call that is made by chance may be missing.
pub(crate) fn happened(scene: &Scene, fault: Fault) -> bool {
    fs_err::read_to_string(log(scene)).unwrap().contains(fault.mark())
}

/// Does the operation under trace, and names every point of it. A child has a point of its own where it comes first.
pub(crate) fn points(scene: &Scene, words: &[String], operation: &Operation) -> Vec<Point> {
    let follow = (operation.traced == Traced::All).then_some("-f");
    let trace = strace(scene, follow, &["-qq", "-e", &format!("trace={WRITING}")]);
    drop(scene.ground.call(&scene.source, words).through(trace).ended().expect_code(0));
    counted(&log(scene))
}

fn log(scene: &Scene) -> PathBuf {
    scene.ground.env().root().join("trace")
}

fn strace(scene: &Scene, follow: Option<&str>, options: &[&str]) -> Vec<String> {
    let log = log(scene).display().to_string();
    let words = ["strace"].into_iter().chain(follow).chain(["-o", &log]).chain(options.iter().copied());
    words.map(str::to_owned).collect()
}

/// The points in the order of the calls. The first process in the trace is the one that was called.
fn counted(log: &Path) -> Vec<Point> {
    let mut made: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut most: BTreeMap<String, usize> = BTreeMap::new();
    let (mut first, mut points) = (None, Vec::new());
    for line in fs_err::read_to_string(log).unwrap().lines() {
        let Some((head, _)) = line.split_once('(') else { continue };
        let (process, call) = head.trim().rsplit_once(' ').unwrap_or(("", head));
        let (process, call) = (process.trim().to_owned(), call.to_owned());
        // Else it is the end of a call, or a signal.
        if !call.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let who = if *first.get_or_insert(process.clone()) == process { Who::Process } else { Who::Child };
        let made = made.entry((process, call.clone())).or_default();
        *made += 1;
        let most = most.entry(call.clone()).or_default();
        if who == Who::Process || *made > *most {
            points.push(Point { who, call, when: *made });
        }
        *most = (*most).max(*made);
    }
    points
}

#[test]
fn every_call_of_the_process_and_the_first_of_its_children_is_a_point() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let trace = "7 write(1, \"(\", 1) = 1\n8 write(1, <unfinished ...>\n7 fsync(3) = 0\n8 <... write resumed>) = 1\n\
                 8 write(1, \"a\", 1) = 1\n9 write(1, \"a\", 1) = 1\n7 write(1, \"a\", 1) = ?\n\
                 9 copy_file_range(3, NULL, 4, NULL, 9, 0) = 9\n7 +++ killed by SIGKILL +++\n";
    fs_err::write(log.path(), trace).unwrap();
    let points = counted(log.path());
    let of = |who| points.iter().filter(|point| point.who == who).map(Point::to_string).collect::<Vec<_>>();
    assert_eq!(of(Who::Process), ["write 1", "fsync 1", "write 2"]);
    assert_eq!(of(Who::Child), ["write 2", "copy_file_range 1"]);
}
