//! A world of its own for the real executable: cleared environment, own home and state, a repository to work
//! on, and the choice to be root or an ordinary user.

use std::os::unix::fs::{PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::fingerprint::Fingerprint;
use crate::process::{Ended, Run};
use crate::require;

/// The search path that every test gives its programs.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Who runs the executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The user who runs the tests.
    Same,
    /// Somebody without privileges; root's tests only.
    Ordinary { uid: u32, gid: u32 },
}

impl Caller {
    /// The ordinary user: the one that `SANDTABLE_TEST_USER` names, else ids that nobody has.
    pub fn ordinary() -> Self {
        let passwd = fs_err::read_to_string("/etc/passwd").unwrap_or_default();
        let named = require::variable("SANDTABLE_TEST_USER").and_then(|name| {
            let line = passwd.lines().find(|line| line.split(':').next() == Some(&name))?;
            let mut fields = line.split(':').skip(2);
            Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        });
        let (uid, gid) = named.unwrap_or((54_321, 54_321));
        Self::Ordinary { uid, gid }
    }
}

/// The world. Gone when dropped.
#[derive(Debug)]
pub struct TestEnv {
    root: TempDir,
    binary: PathBuf,
    caller: Caller,
}

impl TestEnv {
    /// A world around an executable.
    ///
    /// # Panics
    /// If the temporary directory cannot be made.
    pub fn new(binary: &Path, caller: Caller) -> Self {
        let root = tempfile::Builder::new().prefix("st-").tempdir().expect("a temporary directory");
        let env = Self { binary: root.path().join("sandtable"), root, caller };
        // Others must be able to pass through, but the home is the caller's alone.
        set_mode(env.root.path(), 0o755);
        if fs_err::hard_link(binary, &env.binary).is_err() {
            fs_err::copy(binary, &env.binary).expect("room for the executable");
        }
        env.directory(&env.home());
        set_mode(&env.home(), 0o700);
        env
    }

    /// The world of a test that needs nothing but the executable; `None`, said aloud, when it is missing.
    pub fn of_the_executable() -> Option<Self> {
        Self::of_the_executable_as(Caller::Same)
    }

    /// The same for a given caller. An ordinary one needs root and `setpriv`.
    pub fn of_the_executable_as(caller: Caller) -> Option<Self> {
        let Some(binary) = require::sandtable() else {
            require::skip("no executable: build it or set SANDTABLE_BIN");
            return None;
        };
        if caller != Caller::Same && !(require::is_root() && require::program("setpriv").is_some()) {
            require::skip("becoming another user needs root and setpriv");
            return None;
        }
        Some(Self::new(&binary, caller))
    }

    /// The directory that holds everything.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// Where the executable keeps its sandboxes.
    pub fn sandboxes(&self) -> PathBuf {
        self.home().join(".local/share/sandtable/sandboxes")
    }

    /// Everything about a tree, without the links by which living sandboxes and stores of this world hold its files.
    pub fn fingerprint(&self, tree: &Path) -> Fingerprint {
        self.fingerprint_without(tree, &[])
    }

    /// The same without some paths.
    pub fn fingerprint_without(&self, tree: &Path, except: &[&Path]) -> Fingerprint {
        Fingerprint::beside(tree, except, &self.home().join(".local/share/sandtable"))
    }

    pub fn binary(&self) -> &Path {
        &self.binary
    }

    pub fn caller(&self) -> Caller {
        self.caller
    }

    /// Makes a directory that belongs to the caller, with its parents.
    pub fn directory(&self, path: &Path) {
        fs_err::create_dir_all(path).expect("a directory of our own");
        for part in path.ancestors().take_while(|part| *part != self.root()) {
            self.give(part);
        }
    }

    /// Makes a file that belongs to the caller, with its parents.
    pub fn file(&self, path: &Path, contents: impl AsRef<[u8]>) {
        self.directory(path.parent().expect("a file is in a directory"));
        fs_err::write(path, contents).expect("a file of our own");
        self.give(path);
    }

    /// Makes a symbolic link.
    pub fn symlink(&self, to: impl AsRef<Path>, path: &Path) {
        self.directory(path.parent().expect("a link is in a directory"));
        fs_err::os::unix::fs::symlink(to, path).expect("a link of our own");
        self.give(path);
    }

    /// A program with this world's environment, run by its caller.
    pub fn run(&self, program: impl AsRef<std::ffi::OsStr>) -> Run {
        let home = self.home();
        let run = Run::new(program, self.root())
            .variable("PATH", PATH)
            .variable("HOME", &home)
            .variable("LANG", "C.UTF-8")
            .variable("TERM", "dumb")
            .variable("GIT_CONFIG_NOSYSTEM", "1")
            // Nothing is said about an agent where a test is not about it.
            .variable("SANDTABLE_SSH_AGENT", "off")
            .variable("XDG_DATA_HOME", home.join(".local/share"))
            .variable("XDG_STATE_HOME", home.join(".local/state"))
            .variable("XDG_CACHE_HOME", home.join(".cache"))
            .variable("XDG_CONFIG_HOME", home.join(".config"));
        match self.caller {
            Caller::Same => run,
            Caller::Ordinary { uid, gid } => run.through([
                "setpriv",
                &format!("--reuid={uid}"),
                &format!("--regid={gid}"),
                "--clear-groups",
                "--inh-caps=-all",
                "--",
            ]),
        }
    }

    /// The executable under test.
    pub fn sandtable(&self) -> Run {
        self.run(&self.binary)
    }

    /// `sandtable run OPTIONS -- sh -c SCRIPT` in a directory.
    pub fn run_script(&self, directory: &Path, options: &[&str], script: &str) -> Ended {
        self.sandtable()
            .directory(directory)
            .arg("run")
            .args(options)
            .args(["--", "sh", "-c", script])
            .ended()
    }

    /// A git repository with two commits, a sub-directory, an executable and a link.
    ///
    /// # Panics
    /// If git is missing or fails.
    pub fn repository(&self, name: &str) -> PathBuf {
        let top = self.root().join(name);
        for (path, contents) in [
            ("README", "A sample.\n"),
            ("src/main.c", "int main(void) { return 0; }\n"),
            ("src/deep/er/util.c", "int util;\n"),
            ("docs/guide.txt", "Read me.\n"),
        ] {
            self.file(&top.join(path), contents);
        }
        self.file(&top.join("build.sh"), "#!/bin/sh\necho built\n");
        set_mode(&top.join("build.sh"), 0o755);
        self.symlink("README", &top.join("link"));
        // Git reads files again that are as young as its index; these are not.
        let past = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
        for path in ["README", "src/main.c", "src/deep/er/util.c", "docs/guide.txt", "build.sh"] {
            let file = fs_err::File::options().write(true).open(top.join(path)).expect("made above");
            file.set_modified(past).expect("a file of our own");
        }
        for args in [
            vec!["init", "-q", "-b", "main"],
            vec!["add", "-A"],
            vec!["commit", "-q", "-m", "first"],
            vec!["commit", "-q", "--allow-empty", "-m", "second"],
        ] {
            self.git(&top, &args);
        }
        top
    }

    /// Runs git as the caller.
    ///
    /// # Panics
    /// If it fails.
    pub fn git(&self, directory: &Path, args: &[&str]) -> String {
        let identity = ["-c", "user.name=Sample", "-c", "user.email=sample@example.invalid"];
        let ended = self.run("git").directory(directory).args(identity).args(args).ended();
        ended.expect_code(0).stdout
    }

    /// Makes a file the caller's.
    fn give(&self, path: &Path) {
        if let Caller::Ordinary { uid, gid } = self.caller {
            lchown(path, Some(uid), Some(gid)).expect("root may give files away");
        }
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a file of our own");
}
