//! Stock git as the judge of what we write, and the maker of what we read.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::object::ObjectKind;

/// A bare repository of its own, or one that is there.
#[derive(Debug)]
pub(crate) struct Repository {
    pub(crate) path: PathBuf,
    _dir: Option<tempfile::TempDir>,
}

impl Repository {
    pub(crate) fn new(hash: HashKind) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("repository");
        let format = format!("--object-format={}", hash.name());
        git(
            [OsStr::new("init"), OsStr::new("-q"), OsStr::new("--bare"), format.as_ref(), path.as_os_str()],
            b"",
        )
        .0
        .unwrap();
        Self { path, _dir: Some(dir) }
    }

    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), _dir: None }
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    /// What git says, which must succeed.
    pub(crate) fn run(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let (output, said) = self.try_run(arguments, input);
        output.unwrap_or_else(|| panic!("git {arguments:?}: {said}"))
    }

    /// What git says if it succeeds; and its complaints.
    pub(crate) fn try_run(&self, arguments: &[&str], input: &[u8]) -> (Option<Vec<u8>>, String) {
        let dir = [OsStr::new("--git-dir"), self.path.as_os_str()];
        git(dir.into_iter().chain(arguments.iter().map(OsStr::new)), input)
    }

    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.run(arguments, b"")).unwrap().trim().to_owned()
    }

    pub(crate) fn write(&self, kind: ObjectKind, data: &[u8]) -> ObjectId {
        let id = self.run(&["hash-object", "-w", "--stdin", "-t", kind.name()], data);
        str::from_utf8(&id).unwrap().trim().parse().unwrap()
    }
}

/// Git with no configuration but its own.
#[expect(clippy::disallowed_methods, reason = "a test asks git")]
pub(crate) fn git<'a>(
    arguments: impl IntoIterator<Item = &'a OsStr>,
    input: &[u8],
) -> (Option<Vec<u8>>, String) {
    let mut child = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "gc.auto=0"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    });
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success().then_some(output.stdout), said)
}
