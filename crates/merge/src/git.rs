//! The one way git is run.
//!
//! Git is a program that runs programs: hooks, filters, drivers, pagers, signers, transports, each named by
//! some configuration, attribute or variable. So every call names the executable by its absolute path, starts
//! from an empty environment, reads no configuration of the system or of a home directory, and carries the
//! settings of `hardening.toml` on its command line. Nearly all of them run in a `Scratch`
//! repository whose configuration we wrote. What a sandbox wrote is data: trees and blobs, never a git directory.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use sandtable_sandbox::attention::Attention;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::process::{Bounds, Cli, CliError, Finished};
use sandtable_store::id::{IdError, ObjectId};
use serde::{Deserialize, Serialize};

/// The oldest git that merges trees in memory and takes attributes from a tree.
pub const MINIMUM: Version = Version(2, 41, 0);

/// What one call may take: it works on what a sandbox wrote. The largest honest work is far below this.
const BOUNDS: Bounds = Bounds { time: Duration::from_mins(1), memory: 1 << 30, output: 1 << 30 };

/// What a question may take that is asked before anything was looked over.
const SHORTLY: Duration = Duration::from_secs(15);

/// Where git is looked for when the caller names no place.
pub const FOLDERS: [&str; 5] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin"];

/// The first three numbers of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version(pub u32, pub u32, pub u32);

/// A git that was found and is new enough.
#[derive(Clone, Debug)]
pub struct Git {
    program: HostPath,
    version: Version,
    attention: Attention,
}

/// Why git did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git was not found in {}", folders.iter().map(|f| format!("`{}`", f.display())).collect::<Vec<_>>().join(", "))]
    Missing { folders: Vec<PathBuf> },
    #[error("git {found} at `{program}` is too old: {MINIMUM} is needed")]
    TooOld { program: HostPath, found: Version },
    #[error("git said something that is not understood: {0}")]
    Answer(String),
    #[error(transparent)]
    Call(#[from] CliError),
}

impl From<IdError> for GitError {
    fn from(error: IdError) -> Self {
        Self::Answer(error.to_string())
    }
}

impl Git {
    /// Finds git in the first of the folders that has one, and asks for its version.
    pub fn find(folders: impl IntoIterator<Item = impl Into<PathBuf>>) -> Result<Self, GitError> {
        let folders: Vec<PathBuf> = folders.into_iter().map(Into::into).collect();
        let found = folders.iter().map(|folder| folder.join("git")).find(|path| path.is_file());
        let program = found.and_then(|path| HostPath::new(path).ok());
        let Some(program) = program else { return Err(GitError::Missing { folders }) };
        let answer = hardened(Cli::new(program.clone())).within(BOUNDS).arg("--version").output()?;
        let text = String::from_utf8_lossy(&answer).into_owned();
        let version = parsed_version(&text).ok_or(GitError::Answer(text))?;
        if version < MINIMUM {
            return Err(GitError::TooOld { program, found: version });
        }
        Ok(Self::new(program, version))
    }

    /// The same, remembering in the directory `state` which program said what about itself: it is asked again once the
    /// file is another.
    pub fn find_known(
        folders: impl IntoIterator<Item = impl Into<PathBuf>>,
        state: &HostPath,
    ) -> Result<Self, GitError> {
        let folders: Vec<PathBuf> = folders.into_iter().map(Into::into).collect();
        let file = state.as_path().join("git.json");
        let look = |program: &HostPath| Some(Look::of(&fs_err::metadata(program.as_path()).ok()?));
        let known: Option<Known> =
            fs_err::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let first = folders.iter().map(|folder| folder.join("git")).find(|path| path.is_file());
        let first = first.and_then(|path| HostPath::new(path).ok());
        if let (Some(known), Some(program)) = (known, &first)
            && known.program == *program
            && look(program) == Some(known.look)
            && known.version >= MINIMUM
        {
            return Ok(Self::new(known.program, known.version));
        }
        let found = Self::find(folders)?;
        if let Some(look) = look(&found.program) {
            let known = Known { program: found.program.clone(), version: found.version, look };
            let text = serde_json::to_vec(&known).expect("plain data");
            // Not to be able to remember is no harm.
            let private = |path| {
                use std::os::unix::fs::DirBuilderExt as _;
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
            };
            let written = private(state.as_path()).and_then(|()| fs_err::write(&file, text));
            drop(written);
        }
        Ok(found)
    }

    pub const fn version(&self) -> Version {
        self.version
    }

    fn new(program: HostPath, version: Version) -> Self {
        Self { program, version, attention: Attention::default() }
    }

    /// The same, whose calls end when a signal comes.
    pub(super) fn heeding(&self, attention: &Attention) -> Self {
        Self { attention: attention.clone(), ..self.clone() }
    }

    pub(super) const fn attention(&self) -> &Attention {
        &self.attention
    }

    /// A call on one git directory, which is never searched for.
    pub(super) fn call(&self, git_dir: &Path) -> Call {
        Call::of(self).variable("GIT_DIR", git_dir)
    }
}

/// What a program said about itself, and what tells it from another one in its place.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    program: HostPath,
    version: Version,
    look: Look,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Look {
    ino: u64,
    size: u64,
    ctime: (i64, i64),
}

impl Look {
    fn of(meta: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self { ino: meta.ino(), size: meta.size(), ctime: (meta.ctime(), meta.ctime_nsec()) }
    }
}

/// A call not yet made.
#[derive(Clone, Debug)]
pub(super) struct Call {
    program: HostPath,
    settings: Vec<(String, String)>,
    variables: Vec<(OsString, OsString)>,
    arguments: Vec<OsString>,
    directory: Option<PathBuf>,
    dropped: Vec<String>,
    attention: Attention,
    bounds: Bounds,
}

impl Call {
    fn of(git: &Git) -> Self {
        Self {
            program: git.program.clone(),
            attention: git.attention.clone(),
            bounds: BOUNDS,
            settings: Vec::new(),
            variables: Vec::new(),
            arguments: Vec::new(),
            directory: None,
            dropped: Vec::new(),
        }
    }

    pub(super) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub(super) fn id(self, id: &ObjectId) -> Self {
        self.arg(id.to_string())
    }

    pub(super) fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub(super) fn variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Takes a variable out again that every call has.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.dropped.push(name.to_owned());
        self
    }

    /// A setting that is data, such as how lines end.
    pub(super) fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn settings(self, all: &[(String, String)]) -> Self {
        all.iter().fold(self, |call, (name, value)| call.setting(name, value))
    }

    pub(super) fn work_tree(mut self, path: &Path) -> Self {
        self.directory = Some(path.to_owned());
        self.variable("GIT_WORK_TREE", path)
    }

    pub(super) fn index(self, path: &Path) -> Self {
        self.variable("GIT_INDEX_FILE", path)
    }

    /// For a question whose answer takes git no time, unless somebody has made it so that it does.
    pub(super) const fn shortly(mut self) -> Self {
        self.bounds.time = SHORTLY;
        self
    }

    /// How many settings it has on its command line.
    pub(super) fn settings_given(&self) -> usize {
        HARDENING.settings.len() + self.settings.len()
    }

    /// Takes attributes from a tree and from nowhere else.
    pub(super) fn attributes(self, tree: &ObjectId) -> Self {
        self.variable("GIT_ATTR_SOURCE", tree.to_string())
    }

    pub(super) fn output(&self) -> Result<Vec<u8>, GitError> {
        Ok(self.cli().output()?)
    }

    pub(super) fn output_with(&self, input: &[u8]) -> Result<Vec<u8>, GitError> {
        Ok(self.finished(Some(input), &[0])?.stdout)
    }

    /// The status is one of `allowed`; anything else is an error.
    pub(super) fn finished(&self, input: Option<&[u8]>, allowed: &[i32]) -> Result<Finished, GitError> {
        let cli = self.cli();
        let finished = match input {
            Some(input) => cli.finish_with(input)?,
            None => cli.finish()?,
        };
        let expected = finished.status.code().is_some_and(|code| allowed.contains(&code));
        if expected { Ok(finished) } else { Err(cli.failure(&finished).into()) }
    }

    /// Runs with a descriptor that stays open as long as the program lives, whatever becomes of us, and out of reach of what a
    /// terminal sends to our group: it must not be broken off.
    pub(super) fn succeeds_holding(&self, held: OwnedFd) -> Result<bool, GitError> {
        Ok(self.cli().finish_apart(held, self.bounds)?.success())
    }

    /// One object name.
    pub(super) fn object(&self) -> Result<ObjectId, GitError> {
        object(&self.output()?)
    }

    pub(super) fn object_with(&self, input: &[u8]) -> Result<ObjectId, GitError> {
        object(&self.output_with(input)?)
    }

    fn cli(&self) -> Cli {
        let mut cli = Cli::new(self.program.clone()).within(self.bounds);
        cli = cli.heeding(self.attention.clone()).arg("--no-pager");
        let kept = HARDENING.variables.iter().filter(|line| !self.dropped.contains(&line.name));
        cli = kept.fold(cli, |cli, line| cli.variable(&line.name, &line.value));
        let given = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let ours = HARDENING.settings.iter().map(|line| (line.name.as_str(), line.value.as_str()));
        for (name, value) in ours.chain(given) {
            cli = cli.arg("-c").arg(format!("{name}={value}"));
        }
        cli = self.variables.iter().fold(cli, |cli, (name, value)| cli.variable(name, value));
        cli = cli.args(&self.arguments);
        // The program's own directory is nowhere a sandbox can write; a repository's could be.
        cli.directory(self.directory.clone().unwrap_or_else(|| PathBuf::from("/")))
    }
}

/// The name in an answer of one line.
pub(super) fn object(answer: &[u8]) -> Result<ObjectId, GitError> {
    let text = str::from_utf8(answer).map_err(|error| GitError::Answer(error.to_string()))?;
    Ok(text.trim_end().parse()?)
}

fn hardened(cli: Cli) -> Cli {
    HARDENING.variables.iter().fold(cli, |cli, line| cli.variable(&line.name, &line.value))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hardening {
    settings: Vec<Line>,
    variables: Vec<Line>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    value: String,
    #[expect(dead_code, reason = "for people")]
    reason: String,
}

static HARDENING: LazyLock<Hardening> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/hardening.json")))
        .expect("the build script read it, and a test does")
});

fn parsed_version(text: &str) -> Option<Version> {
    let number = text.strip_prefix("git version ")?.split_whitespace().next()?;
    let mut parts = number.split('.').map_while(|part| part.parse().ok());
    Some(Version(parts.next()?, parts.next()?, parts.next().unwrap_or(0)))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_vendors_write_them() {
        assert_eq!(parsed_version("git version 2.47.3\n"), Some(Version(2, 47, 3)));
        assert_eq!(parsed_version("git version 2.39.3 (Apple Git-146)\n"), Some(Version(2, 39, 3)));
        assert_eq!(parsed_version("git version 2.45.rc1"), Some(Version(2, 45, 0)));
        assert_eq!(parsed_version("git: not found"), None);
        assert!(MINIMUM < Version(2, 45, 1));
    }

    #[test]
    fn a_git_that_is_missing_or_old_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Git::find([folder.path()]).unwrap_err();
        assert!(matches!(error, GitError::Missing { .. }), "{error}");
        let program = folder.path().join("git");
        fs_err::write(&program, "#!/bin/sh\necho git version 2.30.2\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(&program, mode).unwrap();
        let error = Git::find([folder.path()]).unwrap_err();
        assert!(matches!(error, GitError::TooOld { found: Version(2, 30, 2), .. }), "{error}");
    }

    #[test]
    fn a_git_that_holds_something_has_its_time_too() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("git");
        fs_err::write(&program, "#!/bin/sh\nexec /bin/sleep 600\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(&program, mode).unwrap();
        let git = Git::new(HostPath::new(&program).unwrap(), MINIMUM);
        let mut call = git.call(folder.path()).arg("update-ref");
        call.bounds.time = Duration::from_millis(50);
        let slow = call.succeeds_holding(std::io::pipe().unwrap().0.into());
        assert!(matches!(slow, Err(GitError::Call(CliError::TooSlow { .. }))), "{slow:?}");
    }

    #[test]
    fn a_known_git_is_asked_again_when_it_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let (program, state) =
            (folder.path().join("git"), HostPath::new(folder.path().join("state")).unwrap());
        let install = |version: &str| {
            fs_err::remove_file(&program).ok();
            fs_err::write(&program, format!("#!/bin/sh\necho git version {version}\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs_err::set_permissions(&program, mode).unwrap();
        };
        let version = || Git::find_known([folder.path()], &state).map(|git| git.version());
        install("2.47.1");
        assert_eq!(version().unwrap(), Version(2, 47, 1));
        assert_eq!(version().unwrap(), Version(2, 47, 1));
        install("2.48.0.more");
        assert_eq!(version().unwrap(), Version(2, 48, 0));
        install("2.30.1");
        assert!(version().is_err());
    }

    #[test]
    fn no_variable_of_the_caller_and_no_configuration_reaches_git() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::find(FOLDERS).unwrap();
        let listed = git.call(folder.path()).args(["config", "--list", "--show-scope"]).output();
        let text = String::from_utf8(listed.unwrap()).unwrap();
        assert!(text.lines().all(|line| line.starts_with("command\t")), "{text}");
        assert!(text.contains("core.hookspath=/dev/null"));
    }
}
