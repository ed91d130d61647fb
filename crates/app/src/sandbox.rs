//! A command in a sandbox of its own, from any program, and what becomes of its work.
//!
//! ```no_run
//! use sandtable_app::{Caller, Network};
//!
//! let caller = Caller::of_program(std::env::vars_os().collect())?;
//! let finished = caller.sandbox(".").network(Network::None).run(["make", "test"])?;
//! println!("{} changed {} paths", finished.name(), finished.changes().len());
//! # Ok::<(), sandtable_app::SandboxError>(())
//! ```

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;

use sandtable_merge::Approvals;
use sandtable_merge::outcome::MergeOutcome;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::Network;
use sandtable_sandbox::session::record::{ChangeEntry, Outcome};
use sandtable_sandbox::session::spawn::{Job, JobStreams, SpawnError, spawn};

use crate::caller::{Caller, CallerError};
use crate::config::key::{Key, Kind};
use crate::config::layer::Layer;
use crate::config::value::Raw;
use crate::config::{self, ConfigError};
use crate::work::Bring;

/// A sandbox that is to be made.
#[derive(Debug)]
#[must_use = "it is made by `run`"]
pub struct SandboxBuilder<'a> {
    caller: &'a Caller,
    layer: Layer,
    /// The first value that could not be read.
    refused: Option<ConfigError>,
    output: Output,
}

/// Where the output of a command goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// To the output and the error output of this program.
    Inherited,
    /// Nowhere but into the sandbox's log, which `sandtable logs` shows.
    Logged,
}

/// A sandbox whose command has ended.
#[derive(Debug)]
pub struct Finished<'a> {
    caller: &'a Caller,
    outcome: Outcome,
}

/// Why a command did not run in a sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error(transparent)]
    Caller(#[from] CallerError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

impl From<ConfigError> for SandboxError {
    fn from(error: ConfigError) -> Self {
        Self::Caller(error.into())
    }
}

impl Caller {
    /// A sandbox for a directory, or for the repository that the directory is in.
    pub fn sandbox(&self, directory: impl Into<PathBuf>) -> SandboxBuilder<'_> {
        let directory = Some(Setting::new(directory.into(), Origin::Program));
        let layer = Layer { directory, ..Layer::default() };
        SandboxBuilder { caller: self, layer, refused: None, output: Output::Inherited }
    }
}

impl<'a> SandboxBuilder<'a> {
    /// What the command can reach.
    pub fn network(mut self, network: Network) -> Self {
        self.layer.network = Some(Setting::new(network, Origin::Program));
        self
    }

    /// A random name if none is given.
    pub fn name(self, name: &str) -> Self {
        self.set(Key::Name, name)
    }

    /// Any other setting, in the words of variables: `set(Key::Memory, "2g")`, `set(Key::Rm, "true")`. Of a list this is the
    /// only item.
    pub fn set(mut self, key: Key, value: &str) -> Self {
        let raw = match key.kind() {
            Kind::List | Kind::Words => Ok(Raw::List(vec![value.into()])),
            kind => Raw::from_variable(kind, value.into()),
        };
        let read = raw.and_then(|raw| self.layer.set(key, raw, &Origin::Program));
        if let Err(source) = read {
            self.refused.get_or_insert(ConfigError::Flag { name: key.word(), source });
        }
        self
    }

    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Runs a command and waits for its end. Variables and the files of settings hold as on the command line; what the
    /// program sets is stronger.
    pub fn run(
        self,
        command: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Finished<'a>, SandboxError> {
        if let Some(refused) = self.refused {
            return Err(refused.into());
        }
        let caller = self.caller;
        caller.recover(&mut |_| {});
        let loaded = config::load(caller.environment(), self.layer)?;
        let resolved = caller.resolve(&loaded)?;
        caller.whole(resolved.source.root.as_path())?;
        let job = Job {
            resolved,
            name: loaded.spec.name.map(|name| name.value),
            command: command.into_iter().map(Into::into).collect(),
            streams: match self.output {
                Output::Inherited => {
                    JobStreams::Given { input: None, output: Stdio::inherit(), errors: Stdio::inherit() }
                }
                Output::Logged => JobStreams::Log,
            },
        };
        let started = spawn(&caller.executable()?, &caller.sandboxes()?, job)?;
        Ok(Finished { caller, outcome: started.wait(&())? })
    }
}

impl Finished<'_> {
    pub fn name(&self) -> &SandboxName {
        &self.outcome.name
    }

    /// How the command ended: its own code, or 128 and the signal that killed it.
    pub fn code(&self) -> u8 {
        self.outcome.exit.code
    }

    /// Everything there is to know about it.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// What the command changed, against its source.
    pub fn changes(&self) -> &[ChangeEntry] {
        self.outcome.changes.as_ref().map_or(&[], |changes| &changes.entries)
    }

    /// Merges what it changed into the repository, as `sandtable merge` does, and `sandtable undo` takes it back. What needs an
    /// approval is in the answer, and then nothing was done.
    pub fn merge(&self, approvals: Approvals) -> Result<MergeOutcome, CallerError> {
        self.caller.bring(self.name().as_str(), Bring { approvals, ..Bring::merge() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Environment;

    #[test]
    fn a_setting_of_every_kind_can_be_set() {
        let caller = Caller::new(Environment::default());
        for (key, value, shown) in [
            (Key::Memory, "2g", "2g"),
            (Key::Rm, "true", "true"),
            (Key::Hide, "a,b", "a,b"),
            (Key::Mounts, "/a,b:/c", "/a,b:/c:ro"),
            (Key::EngineFlags, "--label 'a b'", "--label a b"),
            (Key::Report, "/r", "/r"),
        ] {
            let sandbox = caller.sandbox("/").set(key, value);
            assert!(sandbox.refused.is_none(), "{key:?}: {:?}", sandbox.refused);
            assert_eq!(sandbox.layer.shown(key), shown);
        }
        assert!(caller.sandbox("/").set(Key::Rm, "maybe").refused.is_some());
    }
}
