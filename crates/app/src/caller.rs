//! Who asks, and what a request means for that user on this machine.

use std::cell::OnceCell;
use std::io;
use std::path::{Path, PathBuf};

use sandtable_merge::git::FOLDERS;
use sandtable_merge::{self as merge, Git, Means, Recovered};
use sandtable_sandbox::board::{self, Board};
use sandtable_sandbox::facts::{Facts, MachineFacts, Recorded};
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::path::{HostPath, PathError};
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::model::spec::WorkspaceMode;
use sandtable_sandbox::resolve;
use sandtable_sandbox::session::{self, Sandboxes};

use crate::config::{self, ConfigError, Loaded};
use crate::env::{Environment, EnvironmentError};
use crate::recovery::{self, Recovery};
use crate::workshop::{self, ToolChoiceError};

/// Our own executable.
const PROGRAM: &str = "sandtable";

/// A user on this machine.
#[derive(Debug)]
pub struct Caller {
    environment: Environment,
    /// What this caller found unfinished, and finished.
    recovered: OnceCell<Vec<Recovery>>,
    /// What could not be finished.
    unfinished: OnceCell<Vec<recovery::Error>>,
}

/// Why it cannot be told what a request means.
#[derive(Debug, thiserror::Error)]
pub enum CallerError {
    #[error(transparent)]
    Config(Box<ConfigError>),
    #[error(transparent)]
    Resolve(Box<resolve::ResolveError>),
    #[error(transparent)]
    Session(Box<session::SessionError>),
    #[error(transparent)]
    Board(Box<board::BoardError>),
    #[error(transparent)]
    Merge(Box<merge::Error>),
    #[error(transparent)]
    Tool(Box<ToolChoiceError>),
    #[error("there is no program `{PROGRAM}` on the search path")]
    NoExecutable,
    #[error("there is no directory `{}`", path.display())]
    NoDirectory { path: PathBuf, source: io::Error },
    #[error("`{word}` is neither a sandbox nor a directory")]
    NoTarget { word: String },
    #[error("no sandbox of `{}` has a recorded state", root.display())]
    NoSandbox { root: PathBuf },
    #[error("a path is not usable here")]
    HostPath(#[source] PathError),
    #[error("the policy of sandbox `{name}` cannot be written as JSON")]
    Policy { name: SandboxName, source: serde_json::Error },
    #[error("`{}` is half changed by an interrupted operation", directory.display())]
    HalfDone { directory: PathBuf, began: PathBuf },
}

/// The directory itself, whatever links lead to it.
pub fn real(path: &Path) -> Result<PathBuf, CallerError> {
    path.canonicalize().map_err(|source| CallerError::NoDirectory { path: path.to_owned(), source })
}

impl Caller {
    pub fn new(environment: Environment) -> Self {
        Self { environment, recovered: OnceCell::new(), unfinished: OnceCell::new() }
    }

    /// For another program than `sandtable`, which is looked for on the user's `PATH`.
    pub fn of_program(environment: Environment) -> Result<Self, CallerError> {
        let found = resolve::helper(PROGRAM, &environment.host()?, &MachineFacts);
        let found = found.and_then(|path| HostPath::new(path).ok()).ok_or(CallerError::NoExecutable)?;
        Ok(Self::new(environment.with_executable(found)))
    }

    /// What supervises sandboxes for other programs.
    pub(crate) fn executable(&self) -> Result<PathBuf, CallerError> {
        let found = self.environment.host()?.executable;
        Ok(found.ok_or(CallerError::NoExecutable)?.as_path().to_owned())
    }

    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Carries to its end what an earlier command left unfinished, and tells of each. What cannot be carried to its end keeps
    /// nobody from what has nothing to do with it; whoever works on the same files fails by it again.
    pub fn recover(&self, tell: &mut dyn FnMut(&Result<Recovery, recovery::Error>)) {
        let Ok(data) = self.environment.data() else { return };
        let means = || self.means_in(data.join("merges"));
        let (mut done, mut left) = (Vec::new(), Vec::new());
        for found in recovery::recover(&data, &means) {
            tell(&found);
            match found {
                Ok(found) => done.push(found),
                Err(error) => left.push(error),
            }
        }
        self.recovered.set(done).unwrap_or_default();
        self.unfinished.set(left).unwrap_or_default();
    }

    /// What became of something that was interrupted on this target.
    pub fn recovered(&self, target: &HostPath) -> Option<Recovered> {
        let found = self.recovered.get()?.iter().find(|found| found.target == target.as_path());
        found.map(|found| found.outcome)
    }

    /// Refuses a directory in which something is half done, under whatever name it has now: neither of the two states is
    /// there, so it is not recorded or worked on.
    pub fn whole(&self, directory: &Path) -> Result<(), CallerError> {
        let mut left = self.unfinished.get().into_iter().flatten();
        match left.find_map(|error| error.concerns(directory)) {
            Some(began) => {
                Err(CallerError::HalfDone { directory: directory.to_owned(), began: began.to_owned() })
            }
            None => Ok(()),
        }
    }

    /// Refuses a sandbox whose commands work on such a directory itself.
    pub fn whole_sandbox(&self, name: &SandboxName) -> Result<(), CallerError> {
        if self.unfinished.get().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        let resolved = session::inspect(&self.sandboxes()?, name)?.record.resolved;
        match resolved.mode.value {
            WorkspaceMode::Live => self.whole(resolved.source.root.as_path()),
            WorkspaceMode::Auto | WorkspaceMode::Overlay | WorkspaceMode::Copy => Ok(()),
        }
    }

    pub fn sandboxes(&self) -> Result<Sandboxes, CallerError> {
        Ok(Sandboxes::new(&self.environment.data()?).obeying(self.ignore_file()?))
    }

    /// The recorded states.
    pub fn board(&self) -> Result<Board, CallerError> {
        Ok(Board::new(&self.environment.data()?).obeying(self.ignore_file()?))
    }

    /// The user's own list of ignored files.
    fn ignore_file(&self) -> Result<Option<PathBuf>, CallerError> {
        let (home, config) = (self.environment.home()?, self.environment.settings()?);
        let variables = self.environment.git_variables();
        let found = |(home, settings)| resolve::ignore_file(&MachineFacts, &home, &settings, &variables);
        Ok(home.zip(config).and_then(found))
    }

    /// What merges, and their way back, work with.
    pub fn means(&self) -> Result<Means, CallerError> {
        Ok(self.means_in(self.environment.data()?.join("merges"))?)
    }

    fn means_in(&self, state: HostPath) -> Result<Means, merge::Error> {
        let home = self.environment.home().ok().flatten();
        let git_variables = self.environment.git_variables();
        Ok(Means { git: Git::find_known(FOLDERS, &state)?, state, home, git_variables })
    }

    /// The source around `directory`, or around the current one, as a sandbox would take it.
    pub fn source(&self, directory: Option<PathBuf>) -> Result<PathBuf, CallerError> {
        let directory = match directory {
            Some(directory) => directory,
            None => std::env::current_dir().map_err(ConfigError::CurrentDirectory)?,
        };
        let loaded = config::plain(real(&directory)?);
        let root = resolve::source_of(&loaded.spec, &self.environment.host()?, &MachineFacts)?;
        Ok(root.as_path().to_owned())
    }

    /// What a request means on this machine, with the warnings of the settings among those of the library.
    pub fn resolve(&self, loaded: &Loaded) -> Result<ResolvedSpec, CallerError> {
        self.resolve_with(loaded, &MachineFacts)
    }

    /// The same for a source of which only what was recorded counts, whatever is there now.
    pub fn resolve_recorded(&self, loaded: &Loaded, source: &Path) -> Result<ResolvedSpec, CallerError> {
        let host = self.environment.host()?;
        let facts = Recorded::new(MachineFacts, source, host.data.as_path(), (host.uid, host.gid));
        self.resolve_with(loaded, &facts)
    }

    fn resolve_with(&self, loaded: &Loaded, facts: &dyn Facts) -> Result<ResolvedSpec, CallerError> {
        let mut host = self.environment.host_for(&loaded.spec)?;
        host.tools = workshop::kept(&self.environment, &loaded.spec)?;
        let resolved = match resolve::resolve(&loaded.spec, &host, facts) {
            // Only the unpacked image can say what it will show.
            Err(resolve::ResolveError::ImageNotUnpacked { path }) => {
                session::unpack_image(&host.data, &path, &())?;
                resolve::resolve(&loaded.spec, &host, facts)
            }
            answer => answer,
        };
        let mut resolved = resolved?;
        resolved.warnings.splice(0..0, loaded.warnings.iter().cloned());
        Ok(resolved)
    }
}

impl From<EnvironmentError> for CallerError {
    fn from(error: EnvironmentError) -> Self {
        ConfigError::from(error).into()
    }
}

impl From<ConfigError> for CallerError {
    fn from(error: ConfigError) -> Self {
        Self::Config(Box::new(error))
    }
}

impl From<resolve::ResolveError> for CallerError {
    fn from(error: resolve::ResolveError) -> Self {
        Self::Resolve(Box::new(error))
    }
}

impl From<session::SessionError> for CallerError {
    fn from(error: session::SessionError) -> Self {
        Self::Session(Box::new(error))
    }
}

impl From<board::BoardError> for CallerError {
    fn from(error: board::BoardError) -> Self {
        Self::Board(Box::new(error))
    }
}

impl From<merge::Error> for CallerError {
    fn from(error: merge::Error) -> Self {
        Self::Merge(Box::new(error))
    }
}

impl From<ToolChoiceError> for CallerError {
    fn from(error: ToolChoiceError) -> Self {
        Self::Tool(Box::new(error))
    }
}
