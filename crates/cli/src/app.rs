//! What the commands share: the environment, the terminal, the way from a request to what it means here.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::builder::StyledStr;
use sandtable_app::config::key::closest;
use sandtable_app::config::{self, Loaded};
use sandtable_app::env::Environment;
use sandtable_app::recovery::{self, Recovery};
use sandtable_merge::Recovered;
use sandtable_sandbox::board::Board;
use sandtable_sandbox::facts::{Facts, MachineFacts, Recorded};
use sandtable_sandbox::host::Host;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::model::spec::{MountAccess, Spec, WorkspaceMode};
use sandtable_sandbox::resolve;
use sandtable_sandbox::session::{self, Sandboxes};

use crate::commands;
use crate::error::CliError;
use crate::exit::Own;
use crate::ui::style::Colour;
use crate::ui::{Ui, escape};

/// The directory itself, whatever links lead to it.
pub(crate) fn real(path: &Path) -> Result<PathBuf, CliError> {
    path.canonicalize().map_err(|source| CliError::NoDirectory { path: path.to_owned(), source })
}

/// What a sandbox of `spec` may have written: nothing from there works for us outside.
fn foreign(spec: &Spec) -> impl Iterator<Item = HostPath> {
    let lent = spec.mounts.iter().filter(|mount| mount.value.access == MountAccess::Write);
    let places = lent.map(|mount| &mount.value.source).chain([&spec.directory.value]);
    places.filter_map(|place| HostPath::new(place).ok())
}

/// An error with its causes, on one line.
pub(crate) fn chained(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// One call of the program.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) environment: Environment,
    pub(crate) ui: Ui,
    started: Instant,
    /// What this call found unfinished, and finished.
    recovered: OnceCell<Vec<Recovery>>,
    /// What it could not finish.
    unfinished: OnceCell<Vec<recovery::Error>>,
}

impl App {
    pub(crate) fn new(environment: Environment) -> Self {
        let ui = Ui::new(&environment);
        Self {
            environment,
            ui,
            started: Instant::now(),
            recovered: OnceCell::new(),
            unfinished: OnceCell::new(),
        }
    }

    /// Help, with colours where the answer goes to a terminal that has them.
    pub(crate) fn help(&self, text: &StyledStr) -> Result<(), CliError> {
        match Ui::answer_colour(&self.environment) {
            Colour::Ansi => self.ui.answer(&text.ansi().to_string()),
            Colour::Never => self.ui.answer(&text.to_string()),
        }
    }

    /// What went wrong, why, and what can be done; for the name of a sandbox that does not exist, the one most like it.
    pub(crate) fn error(&self, error: &CliError) {
        self.ui.error(error);
        let names = error.unknown_sandbox().and_then(|_| self.sandboxes().ok()?.names().ok());
        let names: Vec<String> = names.into_iter().flatten().map(|name| name.to_string()).collect();
        let meant = error.unknown_sandbox().and_then(|word| closest(word, names.iter().map(String::as_str)));
        if let Some(meant) = meant {
            self.ui.write(&format!("  try: did you mean `{}`?\n", escape::line(meant)));
        }
    }

    /// Carries to its end what an earlier command left unfinished, and says so. What cannot be carried to its end keeps
    /// nobody from what has nothing to do with it; whoever works on the same files fails by it again.
    pub(crate) fn recover(&self) {
        let Ok(data) = self.environment.data() else { return };
        let means = || commands::merge::found(data.join("merges"), &self.environment);
        let (mut done, mut left) = (Vec::new(), Vec::new());
        for found in recovery::recover(&data, &means) {
            match found {
                Ok(found) => {
                    self.ui.warning("recovered", &crate::ui::recovered(&found));
                    done.push(found);
                }
                Err(error) => {
                    self.ui.warning("not-recovered", &chained(&error));
                    left.push(error);
                }
            }
        }
        self.recovered.set(done).unwrap_or_default();
        self.unfinished.set(left).unwrap_or_default();
    }

    /// Refuses a directory in which something is half done, under whatever name it has now: neither of the two states is
    /// there, so it is not recorded or worked on.
    pub(crate) fn whole(&self, directory: &Path) -> Result<(), CliError> {
        let mut left = self.unfinished.get().into_iter().flatten();
        match left.find_map(|error| error.concerns(directory)) {
            Some(began) => {
                Err(CliError::HalfDone { directory: directory.to_owned(), began: began.to_owned() })
            }
            None => Ok(()),
        }
    }

    /// Refuses a sandbox whose commands work on such a directory itself.
    pub(crate) fn whole_sandbox(&self, name: &SandboxName) -> Result<(), CliError> {
        if self.unfinished.get().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        let resolved = session::inspect(&self.sandboxes()?, name)?.record.resolved;
        match resolved.mode.value {
            WorkspaceMode::Live => self.whole(resolved.source.root.as_path()),
            WorkspaceMode::Auto | WorkspaceMode::Overlay | WorkspaceMode::Copy => Ok(()),
        }
    }

    /// What became of something that was interrupted on this target.
    pub(crate) fn recovered(&self, target: &HostPath) -> Option<Recovered> {
        let found = self.recovered.get()?.iter().find(|found| found.target == target.as_path());
        found.map(|found| found.outcome)
    }

    /// Milliseconds since the program started.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn sandboxes(&self) -> Result<Sandboxes, CliError> {
        Ok(Sandboxes::new(&self.environment.data()?).obeying(self.ignore_file()?))
    }

    /// The recorded states.
    pub(crate) fn board(&self) -> Result<Board, CliError> {
        Ok(Board::new(&self.environment.data()?).obeying(self.ignore_file()?))
    }

    /// The user's own list of ignored files.
    fn ignore_file(&self) -> Result<Option<PathBuf>, CliError> {
        let (home, config) = (self.environment.home()?, self.environment.settings()?);
        let variables = self.environment.git_variables();
        let found = |(home, settings)| resolve::ignore_file(&MachineFacts, &home, &settings, &variables);
        Ok(home.zip(config).and_then(found))
    }

    /// The source around `directory`, or around the current one, as `run` would take it.
    pub(crate) fn source(&self, directory: Option<PathBuf>) -> Result<PathBuf, CliError> {
        let directory = match directory {
            Some(directory) => directory,
            None => std::env::current_dir().map_err(config::Error::CurrentDirectory)?,
        };
        let loaded = config::plain(real(&directory)?);
        let root = resolve::source_of(&loaded.spec, &self.environment.host()?, &MachineFacts)?;
        Ok(root.as_path().to_owned())
    }

    /// What a request means on this machine, with our own warnings among those of the library.
    pub(crate) fn resolve(&self, loaded: &Loaded) -> Result<ResolvedSpec, CliError> {
        self.resolve_with(loaded, &MachineFacts)
    }

    /// The same for a source of which only what was recorded counts, whatever is there now.
    pub(crate) fn resolve_recorded(&self, loaded: &Loaded, source: &Path) -> Result<ResolvedSpec, CliError> {
        let host = self.environment.host()?;
        let facts = Recorded::new(MachineFacts, source, host.data.as_path(), (host.uid, host.gid));
        self.resolve_with(loaded, &facts)
    }

    /// The caller, for a sandbox of `spec`.
    pub(crate) fn host_of(&self, spec: &Spec) -> Result<Host, CliError> {
        let mut host = self.environment.host()?;
        host.foreign.extend(foreign(spec));
        Ok(host)
    }

    fn resolve_with(&self, loaded: &Loaded, facts: &dyn Facts) -> Result<ResolvedSpec, CliError> {
        let mut host = self.host_of(&loaded.spec)?;
        host.tools = commands::tool::kept(self, &loaded.spec)?;
        let resolved = match resolve::resolve(&loaded.spec, &host, facts) {
            // Only the unpacked image can say what it will show.
            Err(resolve::Error::ImageNotUnpacked { path }) => {
                session::unpack_image(&host.data, &path)?;
                resolve::resolve(&loaded.spec, &host, facts)
            }
            answer => answer,
        };
        let mut resolved = resolved?;
        resolved.warnings.splice(0..0, loaded.warnings.iter().cloned());
        Ok(resolved)
    }

    /// Does something to each of several sandboxes. One that fails does not keep the others from theirs;
    /// the code of the gravest failure is the answer.
    pub(crate) fn for_each(
        &self,
        names: &[SandboxName],
        act: impl Fn(&SandboxName) -> Result<(), CliError>,
    ) -> Option<Own> {
        let mut worst = None;
        for name in names {
            if let Err(error) = act(name) {
                worst = worst.max(Some(error.exit()));
                self.ui.error(&error);
            }
        }
        worst
    }
}
