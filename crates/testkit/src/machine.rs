//! A stand-in for the virtual machine that Podman has on macOS: a real `sshd` whose `/tmp` is its own, run by the
//! ordinary user, and a `podman` that knows the way to it. It ends when dropped.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::agent::wait_for;
use crate::env::{Caller, TestEnv};
use crate::process::{Ended, Run};
use crate::require;

/// Where the machine sees the directory of the test, which lies in a `/tmp` that it does not see.
const SHARED: &str = "/mnt";

/// The first process of the machine. It stays, because it is the one that is killed in the end.
const SCRIPT: &str =
    "mount --bind \"$1\" /mnt && mount -t tmpfs -o mode=1777 tmpfs /tmp && shift && \"$@\"; exit";

/// What `podman` answers: the list it was given, and `run` by using the agent's socket where the machine has it.
const PODMAN: &str = r#"#!/bin/sh
here=$(dirname "$0")
case "$1 $2" in
'system connection')
  test "$*" = 'system connection list --format json' || exit 125
  cat "$here/list"
  ;;
'run '*)
  echo "$*" >> "$here/runs"
  for word; do case $word in *:/ssh-agent) socket=${word%:/ssh-agent} ;; esac; done
  exec "$here/vm" "SSH_AUTH_SOCK=$socket ssh-add -l"
  ;;
*) exit 125 ;;
esac
"#;

/// The machine and the programs that know it.
#[derive(Debug)]
pub struct Machine {
    sshd: Child,
    directory: PathBuf,
    user: String,
    port: u16,
}

impl Machine {
    /// Starts the machine, with more lines for its `sshd`. `None`, said aloud, where that cannot be.
    ///
    /// # Panics
    /// If one of the programs fails.
    pub fn start(env: &TestEnv, settings: &str) -> Option<Self> {
        let programs = ["sshd", "ssh", "ssh-keygen", "unshare", "setpriv"];
        if let Some(name) = programs.iter().find(|name| require::program(name).is_none()) {
            require::skip(&format!("no {name}: install openssh-server and util-linux"));
            return None;
        }
        let user = require::variable("SANDTABLE_TEST_USER").filter(|_| require::is_root());
        let (Some(user), Caller::Ordinary { uid, gid }) = (user, Caller::ordinary()) else {
            require::skip("a machine of its own needs root and SANDTABLE_TEST_USER");
            return None;
        };
        let directory = env.root().join("machine");
        fs_err::create_dir(&directory).expect("a directory of our own");
        for name in ["host_key", "login_key"] {
            let key = directory.join(name);
            let made = env.run("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key);
            let _made = made.ended().expect_code(0);
        }
        for name in ["host_key", "login_key.pub"] {
            std::os::unix::fs::chown(directory.join(name), Some(uid), Some(gid))
                .expect("root gives files away");
        }
        let port = free_port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {SHARED}/host_key\nAuthorizedKeysFile {SHARED}/login_key.pub\n\
             StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\n{settings}\n"
        );
        fs_err::write(directory.join("config"), config).expect("a file of our own");
        let sshd = require::program("sshd").expect("looked for above");
        let run = env.run("unshare").args(["--mount", "--pid", "--fork", "--kill-child"]);
        let run = run.args(["--propagation", "private", "sh", "-c", SCRIPT, "sh"]);
        let run = run.arg(&directory).args(["setpriv", &format!("--reuid={uid}"), &format!("--regid={gid}")]);
        let run = run.args(["--clear-groups", "--inh-caps=-all", "--"]).arg(sshd);
        let run = run.args(["-D", "-e", "-f", &format!("{SHARED}/config")]);
        let machine = Self { sshd: run.started(), directory, user, port };
        machine.program("podman", PODMAN);
        machine.program("vm", &format!("#!/bin/sh\nexec ssh {} \"$@\"\n", machine.login()));
        machine.list(&machine.connection("podman-machine-default", "true"));
        wait_for("sshd", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(machine)
    }

    /// The `podman` that knows this machine.
    pub fn podman(&self) -> PathBuf {
        self.directory.join("podman")
    }

    /// One line of the list of connections.
    pub fn connection(&self, name: &str, default: &str) -> String {
        let Self { user, port, directory, .. } = self;
        let identity = directory.join("login_key").display().to_string();
        format!(
            r#"{{"Name":"{name}","URI":"ssh://{user}@127.0.0.1:{port}/run/podman.sock","Identity":"{identity}","IsMachine":true,"Default":{default}}}"#
        )
    }

    /// What `podman` answers from now on, between brackets.
    pub fn list(&self, lines: &str) {
        self.answer(&format!("[{lines}]"));
    }

    /// What `podman` answers from now on.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn answer(&self, text: &str) {
        fs_err::write(self.directory.join("list"), text).expect("a file of our own");
    }

    /// Runs a command in the machine.
    pub fn run(&self, command: &str) -> Ended {
        self.caller(self.directory.join("vm")).arg(command).ended()
    }

    /// How often `podman run` was called.
    pub fn containers(&self) -> usize {
        fs_err::read_to_string(self.directory.join("runs")).unwrap_or_default().lines().count()
    }

    /// Calls `podman`.
    pub fn call_podman(&self, words: &[String]) -> Ended {
        self.caller(self.podman()).args(words).ended()
    }

    /// Puts a program beside `podman`.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.join(name);
        fs_err::write(&path, text).expect("a file of our own");
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("our own file");
        path
    }

    fn caller(&self, program: PathBuf) -> Run {
        Run::new(program, &self.directory).variable("PATH", crate::env::PATH)
    }

    fn login(&self) -> String {
        let Self { user, port, directory, .. } = self;
        let options =
            "-F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -q";
        format!(
            "{options} -o IdentitiesOnly=yes -i '{}/login_key' -p {port} -l {user} 127.0.0.1",
            directory.display()
        )
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _already_gone = self.sshd.kill();
        let _already_taken = self.sshd.wait();
        // The kernel takes the others down in its own time.
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// A port that nobody had a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("there are free ports");
    listener.local_addr().expect("it is bound").port()
}

/// Whether a process is still there.
pub fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).exists()
}
