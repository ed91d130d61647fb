//! A real ssh-agent with one key, for tests of forwarding. It ends when dropped.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::env::TestEnv;
use crate::require;

/// How long a program may take to be ready before the test gives up on it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The agent of a world's caller.
#[derive(Debug)]
pub struct SshAgent {
    process: Child,
    socket: PathBuf,
    key: PathBuf,
    fingerprint: String,
}

impl SshAgent {
    /// Starts an agent, makes a key, and adds it. `None`, said aloud, without OpenSSH's programs.
    ///
    /// # Panics
    /// If one of the programs fails.
    pub fn start(env: &TestEnv) -> Option<Self> {
        if ["ssh-agent", "ssh-add", "ssh-keygen"].iter().any(|name| require::program(name).is_none()) {
            require::skip("no ssh-agent, ssh-add and ssh-keygen: install openssh-client");
            return None;
        }
        let (socket, key) = (env.home().join("agent.socket"), env.home().join("keys/id_test"));
        env.directory(&env.home().join("keys"));
        let made = env.run("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "a-test-key", "-f"]);
        let _made = made.arg(&key).ended().expect_code(0);
        let process = env.run("ssh-agent").args(["-D", "-a"]).arg(&socket).started();
        let mut agent = Self { process, socket, key, fingerprint: String::new() };
        let Self { socket, key, .. } = &agent;
        wait_for("agent", || std::os::unix::net::UnixStream::connect(socket).is_ok());
        let add = env.run("ssh-add").arg("-q").arg(key).variable("SSH_AUTH_SOCK", socket);
        let _added = add.ended().expect_code(0);
        let shown = env.run("ssh-keygen").arg("-lf").arg(key).ended().expect_code(0).stdout;
        shown.split_whitespace().nth(1).unwrap_or_default().clone_into(&mut agent.fingerprint);
        Some(agent)
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The private key's file.
    pub fn key(&self) -> &Path {
        &self.key
    }

    /// What `ssh-add -l` shows of the key.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

impl Drop for SshAgent {
    fn drop(&mut self) {
        let _already_gone = self.process.kill();
        let _already_taken = self.process.wait();
    }
}

/// Waits for something that a program does in its own time.
///
/// # Panics
/// If it does not happen within the time that says that something is broken.
pub fn wait_for(what: &str, ready: impl Fn() -> bool) {
    let given_up = Instant::now() + PATIENCE;
    while !ready() {
        assert!(Instant::now() < given_up, "still no {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
