//! The tunnel into Podman's virtual machine: `ssh` listens there at a socket of this session's own and carries
//! what comes to the caller's agent. Everything that is said to the machine goes over the one connection that
//! was chosen, with a list of known hosts of this session's own and none of the user's settings for `ssh`.
//!
//! The far end waits for the end of our pipe and then removes the socket, so that nothing is left there even if
//! we are killed, when nobody is there to clean up.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::{Place, fingerprint};
use crate::model::agent::Connection;
use crate::model::layout;
use crate::model::path::HostPath;
use crate::process::{Cli, CliError, Finished};

/// How long the machine may take to answer, and the socket to appear.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked for.
const PAUSE: Duration = Duration::from_millis(200);
/// How long one look, or cleaning up, may take.
const MOMENT: Duration = Duration::from_secs(2);
/// How much of what `ssh` said an error repeats.
const WORDS: usize = 4096;

/// A tunnel, before it exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tunnel {
    pub ssh: PathBuf,
    /// How to log in: the words of every call.
    pub login: Vec<String>,
    /// The agent's socket on this side.
    pub near: PathBuf,
    /// Its socket in the machine, alone in a directory of its own.
    pub far: String,
    pub far_directory: String,
    /// Files of this session: what `ssh` says, and whom it knows.
    pub log: PathBuf,
    pub known_hosts: PathBuf,
    pub patience_ms: u64,
}

/// Why there is no tunnel. None is left.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    #[error("cannot write `{}`", path.display())]
    State { path: PathBuf, source: std::io::Error },
    #[error("cannot run `ssh`")]
    Start(#[source] CliError),
    #[error("the machine does not let us in: {said}")]
    Refused { said: String },
    #[error("the tunnel ended before it was ready: {said}")]
    Ended { said: String },
    #[error("the tunnel's socket `{far}` did not appear in the machine within {} s: {said}", *patience_ms / 1000)]
    Silent { far: String, patience_ms: u64, said: String },
}

impl TunnelError {
    /// What helps against it.
    pub fn remedy(&self) -> String {
        match self {
            Self::State { .. } => "make room for, and allow, files in the directory of sandboxes",
            Self::Start(_) => "install OpenSSH's client",
            Self::Refused { .. } => {
                "see that the machine runs: `podman machine list`, `podman machine start`"
            }
            Self::Ended { .. } => {
                "let the machine's sshd forward sockets (`AllowStreamLocalForwarding`), or start it anew: \
                 `podman machine stop`, `podman machine start`"
            }
            Self::Silent { .. } => "start the machine anew: `podman machine stop`, `podman machine start`",
        }
        .to_owned()
    }
}

/// The tunnel for a sandbox.
pub(super) fn plan(ssh: &HostPath, connection: &Connection, agent: &HostPath, place: &Place) -> Tunnel {
    let far_directory = format!("/tmp/sandtable-{:016x}", fingerprint(place.directory.as_path()));
    let file = |name: &str| PathBuf::from(place.directory.join(name));
    let known_hosts = file(layout::TUNNEL_HOSTS);
    Tunnel {
        ssh: ssh.as_path().to_owned(),
        login: login(connection, &known_hosts),
        near: agent.as_path().to_owned(),
        far: format!("{far_directory}/agent"),
        far_directory,
        log: file(layout::TUNNEL_LOG),
        known_hosts,
        patience_ms: u64::try_from(PATIENCE.as_millis()).expect("seconds"),
    }
}

fn login(connection: &Connection, known_hosts: &Path) -> Vec<String> {
    let Connection { user, host, port, identity, .. } = connection;
    let mut options = vec![
        // Nobody is there to be asked.
        "BatchMode=yes".to_owned(),
        // The machine is trusted when it is first met, and must stay the same for this session.
        "StrictHostKeyChecking=accept-new".to_owned(),
        option("UserKnownHostsFile", &known_hosts.to_string_lossy()),
        "GlobalKnownHostsFile=/dev/null".to_owned(),
        // No connection of somebody else's is used, and no agent but with the key that belongs to the machine.
        "ControlMaster=no".to_owned(),
        "ControlPath=none".to_owned(),
        "ForwardAgent=no".to_owned(),
        "LogLevel=ERROR".to_owned(),
        "ServerAliveInterval=15".to_owned(),
    ];
    if let Some(identity) = identity {
        options.extend([
            option("IdentityFile", &identity.to_string()),
            "IdentitiesOnly=yes".to_owned(),
            "IdentityAgent=none".to_owned(),
        ]);
    }
    let mut words = vec!["-F".to_owned(), "none".to_owned(), "-T".to_owned()];
    words.extend(options.into_iter().flat_map(|option| ["-o".to_owned(), option]));
    words.extend(["-p".to_owned(), port.to_string(), "-l".to_owned(), user.clone(), host.clone()]);
    words
}

/// An option whose value is a path: taken as one word, with nothing in it expanded.
fn option(name: &str, path: &str) -> String {
    let path = path.replace('\\', r"\\").replace('"', r#"\""#).replace('%', "%%");
    format!("{name}=\"{path}\"")
}

impl Tunnel {
    /// The words of `ssh` that make the tunnel. Its command at the far end is there to notice our end.
    pub fn forward(&self) -> Vec<String> {
        let Self { near, far, far_directory, .. } = self;
        let host = self.login.len() - 1;
        let mut words = self.login[..host].to_vec();
        let forward = format!("{far}:{}", near.display());
        words.extend(
            ["-o", "ExitOnForwardFailure=yes", "-o", "StreamLocalBindMask=0177", "-R"].map(str::to_owned),
        );
        words.push(forward);
        words.extend(["--".to_owned(), self.login[host].clone()]);
        words.push(format!("cat > /dev/null; rm -f {far}; rmdir {far_directory}"));
        words
    }

    /// The words of `ssh` that run a command at the far end.
    pub fn command(&self, command: &str) -> Vec<String> {
        let host = self.login.len() - 1;
        let mut words = self.login[..host].to_vec();
        words.extend(["--".to_owned(), self.login[host].clone(), command.to_owned()]);
        words
    }

    /// Makes the directory, for our eyes only, and removes a socket that an earlier session left.
    pub(super) fn make_way(&self) -> String {
        let Self { far, far_directory: directory, .. } = self;
        format!("umask 077; mkdir -p {directory} && test -O {directory} && rm -f {far}")
    }

    pub(super) fn remove(&self) -> String {
        format!("rm -f {}; rmdir {}", self.far, self.far_directory)
    }

    fn call(&self, words: &[String]) -> Result<Cli, TunnelError> {
        let ssh =
            HostPath::new(&self.ssh).map_err(|error| TunnelError::Refused { said: error.to_string() })?;
        Ok(Cli::new(ssh).args(words))
    }

    fn run(&self, command: &str, limit: Duration) -> Result<Finished, TunnelError> {
        self.call(&self.command(command))?.finish_within(limit).map_err(|error| match error {
            CliError::TooSlow { .. } => TunnelError::Refused { said: "it does not answer".to_owned() },
            error => TunnelError::Start(error),
        })
    }
}

/// A tunnel that is there. Dropping it ends it and removes its socket at the far end.
#[derive(Debug)]
pub struct Open {
    tunnel: Tunnel,
    child: Child,
}

impl Open {
    /// Makes the tunnel and waits until its socket is there.
    pub fn new(tunnel: &Tunnel) -> Result<Self, TunnelError> {
        let _none = fs_err::remove_file(&tunnel.known_hosts);
        let made = tunnel.run(&tunnel.make_way(), PATIENCE)?;
        if !made.status.success() {
            return Err(TunnelError::Refused { said: last_words(&made.stderr) });
        }
        let state = |source| TunnelError::State { path: tunnel.log.clone(), source };
        let log = File::create(&tunnel.log).map_err(state)?;
        let child = tunnel.call(&tunnel.forward())?.start_apart(Stdio::piped(), Stdio::from(log));
        let child = child.map_err(TunnelError::Start)?;
        // From here on every way out ends it.
        let mut open = Self { tunnel: tunnel.clone(), child };
        open.wait(Instant::now() + Duration::from_millis(tunnel.patience_ms))?;
        Ok(open)
    }

    fn wait(&mut self, given_up: Instant) -> Result<(), TunnelError> {
        let test = format!("test -S {}", self.tunnel.far);
        loop {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return Err(TunnelError::Ended { said: self.said() });
            }
            if self.tunnel.run(&test, MOMENT).is_ok_and(|finished| finished.status.success()) {
                return Ok(());
            }
            if Instant::now() >= given_up {
                let Tunnel { far, patience_ms, .. } = self.tunnel.clone();
                return Err(TunnelError::Silent { far, patience_ms, said: self.said() });
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn said(&self) -> String {
        last_words(&fs_err::read(&self.tunnel.log).unwrap_or_default())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // The far end hears that we are done and removes the socket itself.
        drop(self.child.stdin.take());
        let given_up = Instant::now() + MOMENT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < given_up {
            std::thread::sleep(PAUSE / 20);
        }
        let by_itself = matches!(self.child.try_wait(), Ok(Some(status)) if status.success());
        if !by_itself {
            let _already_gone = self.child.kill();
            let _already_taken = self.child.wait();
            let _unreachable = self.tunnel.run(&self.tunnel.remove(), MOMENT);
        }
        let _kept = fs_err::remove_file(&self.tunnel.known_hosts);
    }
}

/// The end of what a program said, in one line.
fn last_words(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(&said[said.len().saturating_sub(WORDS)..]);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() { "it said nothing".to_owned() } else { lines.join("; ") }
}
