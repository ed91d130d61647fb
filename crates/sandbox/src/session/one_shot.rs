//! One command after the other, each in a sandbox that is made for it and gone with it: no name that anybody gave, no record,
//! no states. Only the layers stay from one command to the next, and go with the last.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::time::Instant;

use sandtable_protocol::invocation::{Carrier, Ending, Invocation};
use sandtable_protocol::log::{Reader, Stream};
use sandtable_protocol::wire::{StartStep, Status};
use sandtable_store::lock::FileLock;

use super::create::{id_base, make, now, renew_work};
use super::directory::{SandboxDirectory, Sandboxes};
use super::disk::{Allowance, Watch};
use super::error::SessionError;
use crate::engine::enforcement::refusal;
use crate::engine::{Handles, Place, can_start, engine};
use crate::model::id::SandboxName;
use crate::model::layer::LayerName;
use crate::model::layout::{LOG, LayerPart};
use crate::model::mount::{Content, MountTable};
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::ResolvedSpec;
use crate::random::random;

/// The sandboxes of some commands: one after the other, with the same layers.
#[derive(Debug)]
pub struct OneShot {
    directory: SandboxDirectory,
    lock: FileLock,
    name: SandboxName,
    id_base: Option<u32>,
    resolved: ResolvedSpec,
}

/// A program inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub argv: Vec<String>,
    pub directory: BoxPath,
    /// All of its environment.
    pub environment: BTreeMap<String, String>,
}

impl Command {
    /// For people.
    pub fn shown(&self) -> String {
        let words = self.argv.iter().map(|word| word.escape_debug().to_string());
        let text = words.collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(200) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    pub end: End,
    /// The end of what it wrote, on both streams.
    pub output: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(u8),
    TimedOut,
    NoProgram,
}

/// How much of what a command wrote is kept.
const TAIL: usize = 16 << 10;

impl OneShot {
    /// A place for sandboxes below `sandboxes`, for `resolved`.
    pub fn new(sandboxes: &Sandboxes, resolved: ResolvedSpec) -> Result<Self, SessionError> {
        let (name, directory, lock) = loop {
            let name = SandboxName::from_random(random());
            if let Some((directory, lock)) = sandboxes.make(&name)? {
                break (name, directory, lock);
            }
        };
        for mount in resolved.mounts.iter() {
            if let Content::Cow { layer, .. } = &mount.content {
                make(&directory.layer(layer, LayerPart::Upper))?;
            }
        }
        Ok(Self { id_base: id_base(&resolved), directory, lock, name, resolved })
    }

    /// Where what changes in a layer is kept.
    pub fn changes(&self, layer: &LayerName) -> HostPath {
        self.directory.layer(layer, LayerPart::Upper)
    }

    /// Uses other mounts from now on. Layers must be the same.
    pub fn remount(&mut self, mounts: MountTable) {
        self.resolved.mounts = mounts;
    }

    /// Runs `command` until `deadline`. When this returns, all it started is gone.
    pub fn run(&self, command: &Command, deadline: Instant) -> Result<Ran, SessionError> {
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
                return Err(SessionError::Directory { directory: command.directory.to_string(), cause });
            }
            Ending::NotStarted { step: StartStep::Process, cause } => {
                return Err(SessionError::Process(cause));
            }
        };
        Ok(Ran { end, output })
    }

    /// What the last command wrote to standard output.
    pub fn said(&self) -> Vec<u8> {
        let frames = Reader::new(self.directory.path().join(LOG).as_path()).frames().unwrap_or_default();
        let own = frames.into_iter().filter(|frame| frame.stream == Stream::Out);
        own.flat_map(|frame| frame.bytes).collect()
    }

    fn launched(&self, command: &Command, deadline: Instant) -> Result<Ending, SessionError> {
        can_start()?;
        let place = Place {
            directory: self.directory.path().clone(),
            name: self.name.clone(),
            id_base: self.id_base,
            pid: std::process::id(),
            started: now(),
        };
        let control = self.directory.listen()?;
        let handles = Handles { control: control.as_fd(), lock: self.lock.as_fd() };
        let allowance = Allowance::of_one_shot(&self.directory, &self.resolved);
        let mut sandbox = engine(self.resolved.engine).plan(&self.resolved, &place).launch(&handles)?;
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
            Some(reason) => Err(SessionError::Overfull(reason.to_string())),
            None => Ok(ending?),
        }
    }
}

impl Drop for OneShot {
    fn drop(&mut self) {
        // It lies in a place of its maker's, who looks after what is left there.
        let _left = self.directory.delete();
    }
}

fn tail(log: &mut Reader) -> String {
    let frames = log.frames().unwrap_or_default();
    let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.bytes.iter().copied()).collect();
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL)..]).into_owned();
    // What comes from inside must not move the cursor of whoever reads it.
    let plain = |letter: char| letter == '\n' || letter == '\t' || !letter.is_control();
    text.chars().filter(|letter| plain(*letter)).collect::<String>().trim_end().to_owned()
}
