//! Running one command of a plan in a sandbox that is made for it and gone with it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::time::Instant;

use sandtable_protocol::invocation::{Carrier, Ending, Invocation};
use sandtable_protocol::log::{Reader, Stream};
use sandtable_protocol::wire::{StartStep, Status};
use sandtable_store::lock::FileLock;

use super::super::create::{id_base, make, now, renew_work};
use super::super::directory::{Part, SandboxDirectory, Sandboxes};
use super::super::disk::{Allowance, Watch};
use super::super::error::Error;
use super::super::logs::LOG;
use super::fit::{ASK, Answer, Question};
use crate::engine::enforcement::refusal;
use crate::engine::oci::INIT;
use crate::engine::{Handles, Place, can_start, engine};
use crate::model::id::SandboxName;
use crate::model::mount::{Content, Mount, MountTable};
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::ResolvedSpec;
use crate::random::random;
use crate::tools::execute::Command;

/// The sandboxes of one plan: one after the other, with the same layers.
#[derive(Debug)]
pub(super) struct Inside {
    directory: SandboxDirectory,
    lock: FileLock,
    name: SandboxName,
    id_base: Option<u32>,
    resolved: ResolvedSpec,
}

/// How a command ended.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) end: End,
    /// The end of what it wrote, on both streams.
    pub(super) output: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Exited(u8),
    TimedOut,
    NoProgram,
}

/// How much of what a command wrote is kept.
const TAIL: usize = 16 << 10;

impl Inside {
    /// A place for sandboxes below `sandboxes`, for `resolved`.
    pub(super) fn new(sandboxes: &Sandboxes, resolved: ResolvedSpec) -> Result<Self, Error> {
        let (name, directory, lock) = loop {
            let name = SandboxName::from_random(random());
            if let Some((directory, lock)) = sandboxes.make(&name)? {
                break (name, directory, lock);
            }
        };
        for mount in resolved.mounts.iter() {
            if let Content::Cow { layer, .. } = &mount.content {
                make(&directory.layer(layer, Part::Upper))?;
            }
        }
        Ok(Self { id_base: id_base(&resolved), directory, lock, name, resolved })
    }

    /// Where what changes in a layer is kept.
    pub(super) fn changes(&self, layer: &str) -> HostPath {
        self.directory.layer(layer, Part::Upper)
    }

    /// Uses other mounts from now on. Layers must be the same.
    pub(super) fn remount(&mut self, mounts: Vec<Mount>) -> Result<(), Error> {
        self.resolved.mounts = table(mounts)?;
        Ok(())
    }

    /// Runs `command` until `deadline`. When this returns, all it started is gone.
    pub(super) fn run(&self, command: &Command, deadline: Instant) -> Result<Ran, Error> {
        renew_work(&self.directory, &self.resolved)?;
        let log = self.directory.path().join(LOG);
        let _none_yet = fs_err::remove_file(log.as_path());
        let ending = self.launched(command, deadline);
        self.directory.reap_groups();
        self.directory.stop_listening();
        let output = tail(&mut Reader::new(log.as_path()));
        let end = match ending? {
            Ending::Ended(Status::Exited { code }) => {
                End::Exited(u8::try_from(code & 0xff).expect("the low eight bits"))
            }
            Ending::Ended(Status::Signalled { number }) => {
                End::Exited(u8::try_from(128 + number).unwrap_or(u8::MAX))
            }
            Ending::TimedOut => End::TimedOut,
            Ending::NotStarted { step: StartStep::Program, .. } => End::NoProgram,
            Ending::NotStarted { step: StartStep::Directory, cause } => {
                return Err(Error::Directory { directory: command.directory.to_string(), cause });
            }
            Ending::NotStarted { step: StartStep::Process, cause } => return Err(Error::Process(cause)),
        };
        Ok(Ran { end, output })
    }

    /// Asks our own executable in a container; nothing if it does not answer, or not in its words.
    pub(super) fn ask(&self, question: &Question, deadline: Instant) -> Result<Option<Answer>, Error> {
        let words = [INIT.to_owned(), ASK.to_owned(), serde_json::to_string(question).expect("plain data")];
        let command = Command {
            argv: words.into(),
            directory: BoxPath::new("/").expect("absolute"),
            environment: BTreeMap::new(),
        };
        let ran = self.run(&command, deadline)?;
        let said = spoken(&mut Reader::new(self.directory.path().join(LOG).as_path()));
        Ok((ran.end == End::Exited(0)).then(|| serde_json::from_slice(&said).ok()).flatten())
    }

    fn launched(&self, command: &Command, deadline: Instant) -> Result<Ending, Error> {
        can_start()?;
        let engine = engine(self.resolved.engine);
        let place = Place {
            directory: self.directory.path().clone(),
            name: self.name.clone(),
            id_base: self.id_base,
            pid: std::process::id(),
            started: now(),
        };
        let control = self.directory.listen()?;
        let handles = Handles { control: control.as_fd(), lock: self.lock.as_fd() };
        let allowance = Allowance::of_steps(&self.directory, &self.resolved);
        let mut sandbox = engine.launch(&engine.plan(&self.resolved, &place), &handles)?;
        if let Some(refusal) = refusal(&self.resolved, &allowance.added_to(sandbox.report())) {
            return Err(refusal.into());
        }
        let environment =
            command.environment.iter().map(|(name, value)| OsString::from(format!("{name}={value}")));
        let invocation = Invocation {
            argv: command.argv.iter().map(OsString::from).collect(),
            environment: environment.collect(),
            directory: command.directory.as_path().to_owned(),
            carrier: Carrier::Log(self.directory.path().join(LOG).into()),
            deadline: Some(deadline),
        };
        let (mut allowance, mut disk) = (Some(allowance), None);
        let ending = sandbox.run(invocation, &mut || {
            disk = allowance.take().map(|allowance| allowance.watch(sandbox.as_ref()));
        });
        let overfull = disk.and_then(Watch::finish);
        sandbox.end();
        drop(sandbox);
        match overfull {
            Some(reason) => Err(Error::Overfull(reason.to_string())),
            None => Ok(ending?),
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // It lies in the place of the build, which is removed in any case.
        let _left = self.directory.delete();
    }
}

/// The mounts, in order.
pub(super) fn table(mounts: Vec<Mount>) -> Result<MountTable, Error> {
    MountTable::new(mounts).map_err(|conflict| Error::Meaning(crate::resolve::Error::Conflict(conflict)))
}

/// What was written to standard output.
fn spoken(log: &mut Reader) -> Vec<u8> {
    let frames = log.frames().unwrap_or_default();
    let own = frames.into_iter().filter(|frame| frame.stream == Stream::Out);
    own.flat_map(|frame| frame.bytes).collect()
}

fn tail(log: &mut Reader) -> String {
    let frames = log.frames().unwrap_or_default();
    let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.bytes.iter().copied()).collect();
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL)..]).into_owned();
    // What comes from inside must not move the cursor of whoever reads it.
    let plain = |letter: char| letter == '\n' || letter == '\t' || !letter.is_control();
    text.chars().filter(|letter| plain(*letter)).collect::<String>().trim_end().to_owned()
}
