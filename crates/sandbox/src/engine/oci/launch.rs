//! Starting a container and taking it down. Whatever the way out, nothing of it stays behind.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fs_err as fs;
use rustix::io::Errno;
use sandtable_launch::error::DoorError;
use sandtable_launch::outside::attach;
use sandtable_launch::outside::door::{Contained, Door};
use sandtable_launch::outside::host;
use sandtable_protocol::invocation::{AttachError, Ending, Invocation};
use sandtable_protocol::report::Report;
use sandtable_protocol::terms::Terms;

use super::image::{Cause, engine_of};
use super::journal::Journal;
use super::plan::ContainerPlan;
use super::{Dialect, ground, points, proxy};
use crate::engine::native::CHANGED_WAY;
use crate::engine::ssh_agent::Guard;
use crate::engine::{Handles, Running};
use crate::model::container::PROXY_PORT;
use crate::model::diagnosis::{Diagnose, Fault};
use crate::model::path::PathError;
use crate::model::resolved::Warning;
use crate::os;
use crate::process::CliError;

/// How long an engine may take from the call to our PID 1.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long it may take to remove a container whose PID 1 has ended.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(20);

/// Why there is no container. Nothing has run.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    #[error("the sandbox image `{image}` {}{}", cause.verdict(), behind(said))]
    Image { image: String, cause: Cause, said: String, support: String },
    #[error("the sandbox image `{image}` could not be built from `{}`{}", file.display(), behind(said))]
    Build { image: String, file: PathBuf, said: String, support: String },
    #[error("the engine does not answer: {said}")]
    Down { said: String },
    #[error("the engine does not let you in: {said}")]
    Denied { said: String },
    #[error("the engine could not start the container: {said}")]
    Refused { said: String, cause: Option<Cause>, image: String },
    #[error("a port that is to be published is taken: {said}")]
    PortTaken { said: String },
    #[error("the container did not reach its supervisor within {} seconds{}", PATIENCE.as_secs(), behind(said))]
    Silent { said: String },
    #[error("the proxy command `{command}` is no way out: {said}")]
    Proxy { command: String, said: String },
    #[error(transparent)]
    Door(#[from] DoorError),
    #[error(transparent)]
    Call(CliError),
    #[error("cannot write `{}`", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot make the mount point `{}`", target.display())]
    Point {
        target: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("a path for the engine is not usable")]
    Path(#[source] PathError),
    #[error("cannot look at the host")]
    Host(#[source] Errno),
}

impl ContainerError {
    /// What a failed call of the engine means.
    pub(super) fn of_engine(error: CliError) -> Self {
        let CliError::Failed { stderr, .. } = &error else { return Self::Call(error) };
        let said = stderr.lines().last().unwrap_or_default().to_owned();
        let lower = stderr.to_lowercase();
        if lower.contains("permission denied") && lower.contains("sock") {
            Self::Denied { said }
        } else if lower.contains("cannot connect") || lower.contains("is the docker daemon running") {
            Self::Down { said }
        } else {
            Self::Call(error)
        }
    }

    /// What the words of an engine that did not start a container mean.
    fn of_start(said: String, plan: &ContainerPlan) -> Self {
        let lower = said.to_lowercase();
        let image = plan.image.clone();
        if lower.contains("no such image") || lower.contains("unable to find image") {
            return Self::Image { image, cause: Cause::NotHere, said, support: plan.support.clone() };
        }
        if lower.contains("port is already allocated") || lower.contains("address already in use") {
            return Self::PortTaken { said };
        }
        let cause = Some(Cause::of(&said)).filter(|cause| *cause == Cause::Platform);
        Self::Refused { said, cause, image }
    }
}

impl Diagnose for ContainerError {
    fn fault(&self) -> Fault {
        match self {
            Self::Image { cause: Cause::NotHere | Cause::Unknown | Cause::Platform, .. }
            | Self::Build { .. }
            | Self::PortTaken { .. }
            | Self::Proxy { .. } => Fault::Input,
            _ => Fault::Machine,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Image { cause, .. } => match cause {
                Cause::NotHere | Cause::Unknown => "image-missing",
                Cause::Authentication => "image-authentication",
                Cause::Offline => "image-offline",
                Cause::Platform => "image-platform",
                Cause::Other => "image",
            },
            Self::Build { .. } => "image-build",
            Self::Down { .. } => "engine-down",
            Self::Denied { .. } => "engine-denied",
            Self::Refused { .. } => "container-refused",
            Self::Silent { .. } => "container-silent",
            Self::Proxy { .. } => "proxy",
            Self::PortTaken { .. } => "port-taken",
            Self::Point { .. } => "mount-point",
            _ => "launch",
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Image { image, cause, support, .. } => {
                Some(format!("{}\nvisit {support} if the issue persists", cause.remedy(image)))
            }
            Self::Build { support, .. } => {
                Some(format!("mend the recipe, which the engine complains about above\nvisit {support} if the issue persists"))
            }
            Self::Down { .. } => {
                Some("start it: `systemctl start docker`, or `dockerd` as root; `docker info` says more".to_owned())
            }
            Self::Denied { .. } => Some(
                "`sudo usermod -aG docker $USER` and log in again, or use `--engine podman`, which needs no group"
                    .to_owned(),
            ),
            Self::Proxy { .. } => Some(format!(
                "the program must be in the image and listen at port {PROXY_PORT}; `--network none` goes without"
            )),
            Self::PortTaken { .. } => {
                Some("name another port of this machine: `--publish OTHER:PORT`".to_owned())
            }
            Self::Refused { cause: Some(cause), image, .. } => Some(cause.remedy(image)),
            // Podman gives root's containers more than root itself may have where it is not allowed to raise limits.
            Self::Refused { said, .. } if said.contains("rlimit") => Some(
                "set `default_ulimits` below `[containers]` in `containers.conf` to what you have yourself \
                 (`ulimit -Hn`, `ulimit -Hu`), as `[\"nofile=1024:4096\", \"nproc=4096:4096\"]`"
                    .to_owned(),
            ),
            Self::Point { .. } => Some(CHANGED_WAY.to_owned()),
            _ => None,
        }
    }
}

fn behind(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

/// A container, from its first trace to its last.
#[derive(Debug)]
pub(super) struct Launched {
    contained: Option<Contained>,
    client: Option<Child>,
    journal: Journal,
    directory: PathBuf,
    /// Both outlive the container.
    agent: Guard,
    proxy: Option<proxy::Guard>,
    /// What it goes without.
    warnings: Vec<Warning>,
}

/// Starts the container of `plan` and returns when its PID 1 has reported what holds.
pub(super) fn launch(
    plan: &ContainerPlan,
    handles: &Handles<'_>,
    agent: Guard,
) -> Result<Launched, ContainerError> {
    let journal = Journal::of(plan);
    journal.clear(&plan.directory);
    journal.write(&plan.directory)?;
    // From here on dropping it removes what was made.
    let mut launched = Launched {
        contained: None,
        client: None,
        journal,
        directory: plan.directory.clone(),
        agent,
        proxy: None,
        warnings: Vec::new(),
    };
    points::check(&plan.points)?;
    furnish(plan)?;
    let grounded = ground::lay(plan)?;
    launched.warnings.extend(grounded.warning());
    launched.proxy = proxy::start(plan)?;
    let door = Door::make(&plan.door)?.expecting(&plan.init)?;
    let words = os::memory_file("words").map_err(ContainerError::Host)?;
    let heard = File::from(words.try_clone().map_err(|_| ContainerError::Host(Errno::MFILE))?);
    let argv = grounded.words(plan);
    let client = engine_of(plan)?
        .args(argv)
        .start_apart(Stdio::null(), Stdio::from(words))
        .map_err(ContainerError::Call)?;
    let client = launched.client.insert(client);
    let end = Instant::now() + PATIENCE;
    let socket = door.wait(|| matches!(client.try_wait(), Ok(None)) && Instant::now() < end)?;
    let Some(socket) = socket else {
        let said = last_words(heard);
        return Err(if Instant::now() < end {
            ContainerError::of_start(said, plan)
        } else {
            ContainerError::Silent { said }
        });
    };
    let terms = Terms {
        landlock: plan.landlock.clone(),
        network: plan.network.clone(),
        set_ids: plan.set_ids,
        port: plan.proxy.as_ref().map(|_| PROXY_PORT),
        search: plan.search.clone(),
        host: host::look().map_err(ContainerError::Host)?,
    };
    let mut contained =
        Contained::adopt(socket, terms, [handles.control, handles.lock], plan.limits.as_ref())?;
    if let (Some(proxy), Some(port)) = (&mut launched.proxy, contained.take_port()) {
        proxy.take(port);
    }
    launched.contained = Some(contained);
    Ok(launched)
}

/// Makes what has to be there before the container.
fn furnish(plan: &ContainerPlan) -> Result<(), ContainerError> {
    let made = |path: &PathBuf| {
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(path)
            .map_err(|source| ContainerError::File { path: path.clone(), source })
    };
    made(&plan.door)?;
    if !plan.files.is_empty() {
        made(&plan.directory.join("inside"))?;
    }
    for file in &plan.files {
        fs::write(&file.path, &file.contents)
            .map_err(|source| ContainerError::File { path: file.path.clone(), source })?;
    }
    if let Some(proxy) = &plan.proxy {
        made(&proxy.directory)?;
    }
    let label = format!("sandtable.directory={}", plan.directory.display());
    if let Some(network) = &plan.network_name {
        let call = engine_of(plan)?.args(["network", "create", "--driver", "bridge", "--label", &label]);
        let call = match plan.dialect {
            Dialect::Docker => call,
            // Names of neighbours are of no use where there are none, and other networks are not reached.
            Dialect::Podman => call.args(["--disable-dns", "--opt", "isolate=true"]),
        };
        call.arg(network).output().map_err(ContainerError::of_engine)?;
    }
    for volume in &plan.volumes {
        let options = format!("o={}", volume.options);
        let kind =
            ["volume", "create", "--driver", "local", "--opt", "type=overlay", "--opt", "device=overlay"];
        let call = engine_of(plan)?.args(kind).args(["--label", &label, "--opt", &options, &volume.name]);
        call.output().map_err(ContainerError::of_engine)?;
    }
    Ok(())
}

impl Launched {
    fn contained(&self) -> &Contained {
        self.contained.as_ref().expect("only a launch that succeeded is handed out")
    }
}

impl Running for Launched {
    fn report(&self) -> &Report {
        self.contained().report()
    }

    fn run(&self, invocation: Invocation, started: &mut dyn FnMut()) -> Result<Ending, AttachError> {
        attach::run(self.contained().socket(), invocation, |_| {
            self.agent.start();
            if let Some(proxy) = &self.proxy {
                proxy.carry();
            }
            started();
        })
    }

    fn connection(&self) -> BorrowedFd<'_> {
        self.contained().socket()
    }

    fn end(&mut self) {
        if let Some(contained) = &mut self.contained {
            contained.end();
        }
    }

    fn wait_for_others(&self, deadline: Option<Instant>, waiting: &mut dyn FnMut(usize)) {
        attach::wait_for_others(self.contained().socket(), deadline, waiting);
    }

    fn ran_out_of_memory(&self) -> bool {
        self.contained().ran_out_of_memory()
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

impl Drop for Launched {
    /// The engine's client ends when the container is gone. What does not go by itself is removed by force.
    fn drop(&mut self) {
        self.end();
        if let Some(mut client) = self.client.take() {
            let reached = self.contained.is_some();
            let end = Instant::now() + if reached { PATIENCE_AT_THE_END } else { Duration::ZERO };
            while matches!(client.try_wait(), Ok(None)) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _already_ended = client.kill();
            let _already_taken = client.wait();
        }
        // Its container goes by itself when nobody holds it.
        drop(self.proxy.take());
        self.journal.clear(&self.directory);
    }
}

/// The last that the engine or PID 1 said.
pub(super) fn last_words(mut heard: File) -> String {
    let mut text = Vec::new();
    let read = heard.rewind().and_then(|()| heard.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| is_telling(line)).rev().take(3).collect();
    match read {
        Ok(_) if !lines.is_empty() => lines.into_iter().rev().collect::<Vec<_>>().join("; "),
        _ => "it said nothing".to_owned(),
    }
}

/// Whether a line is about what went wrong, and not advice or a complaint about something else.
fn is_telling(line: &str) -> bool {
    let is_logged_warning = line.starts_with("time=") && line.contains(" level=warning ");
    let is_aside = line.starts_with("See '") || line.starts_with("WARNING:") || is_logged_warning;
    !line.trim().is_empty() && !is_aside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_may_not_raise_limits_is_told_how_to() {
        let refused = |said: &str| ContainerError::Refused {
            said: said.to_owned(),
            cause: None,
            image: "i".to_owned(),
        };
        let limits = refused("error setting rlimit type 7: operation not permitted").remedy();
        assert!(limits.is_some_and(|remedy| remedy.contains("default_ulimits")));
        assert_eq!(refused("no space left on device").remedy(), None);
    }
}
