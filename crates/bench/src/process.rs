//! Programs under measurement: who calls them, with which environment, and from where. Every contender of a
//! row is started by the same code with the same environment, so that only the program differs.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

/// Somebody who starts programs.
#[derive(Debug)]
pub struct Caller {
    /// `root` or `user`, as rows are named.
    pub name: &'static str,
    /// Changed to between fork and exec, so that no helper program is timed; `None`: who we already are.
    pub ids: Option<(u32, u32)>,
    /// A directory of the caller's own; everything it makes is below.
    pub area: PathBuf,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
}

impl Caller {
    pub fn home(&self) -> PathBuf {
        self.area.join("home")
    }

    /// A program this caller starts in `directory`.
    pub fn invoke<S: Into<String>>(
        self: &Rc<Self>,
        directory: &Path,
        argv: impl IntoIterator<Item = S>,
    ) -> Invocation {
        let argv = argv.into_iter().map(Into::into).collect();
        Invocation { argv, caller: Rc::clone(self), directory: directory.to_owned() }
    }
}

/// One program, ready to be started any number of times.
#[derive(Clone, Debug)]
pub struct Invocation {
    argv: Vec<String>,
    caller: Rc<Caller>,
    directory: PathBuf,
}

impl Invocation {
    /// Starts it with all three streams on `/dev/null`.
    pub fn spawn_silent(&self) -> io::Result<Child> {
        self.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }

    /// Runs it to its end; the error is one line that says why it did not succeed.
    pub fn output(&self) -> Result<String, String> {
        let output = self.command().output().map_err(|error| format!("`{}`: {error}", self.program()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(format!("`{}`: {}: {}", self.program(), output.status, last_words(&stderr)))
    }

    /// The command line, for people.
    pub fn line(&self) -> String {
        self.argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    fn program(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    #[expect(clippy::disallowed_methods, reason = "the time of a bare fork, exec and wait is the subject")]
    fn command(&self) -> Command {
        let mut command = Command::new(self.program());
        command.args(self.argv.iter().skip(1)).current_dir(&self.directory).stdin(Stdio::null());
        command.env_clear().envs(self.caller.environment.iter().map(|(name, value)| (name, value)));
        if let Some((uid, gid)) = self.caller.ids {
            // The standard library drops the supplementary groups along with root.
            command.gid(gid).uid(uid);
        }
        command
    }
}

/// The last two lines that say something: the very last one is often only a hint.
fn last_words(stderr: &str) -> String {
    let mut lines: Vec<_> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let words = lines.split_off(lines.len().saturating_sub(2)).join("; ");
    if words.is_empty() { "no message".to_owned() } else { words }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller() -> Rc<Caller> {
        let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        Rc::new(Caller { name: "user", ids: None, area: PathBuf::from("/"), environment })
    }

    #[test]
    fn environment_is_only_what_was_given() {
        let seen = caller().invoke(Path::new("/"), ["env"]).output().unwrap();
        assert_eq!(seen, "PATH=/usr/bin:/bin");
    }

    #[test]
    fn failure_carries_status_and_last_words() {
        let script = ["sh", "-c", "echo first >&2; echo; echo cause >&2; echo hint >&2; exit 3"];
        let error = caller().invoke(Path::new("/"), script).output().unwrap_err();
        assert_eq!(error, "`sh`: exit status: 3: cause; hint");
    }

    #[test]
    fn missing_program_is_named() {
        let error = caller().invoke(Path::new("/"), ["no-such-program"]).output().unwrap_err();
        assert!(error.starts_with("`no-such-program`: "), "{error}");
    }

    #[test]
    fn command_line_can_be_pasted() {
        let line = caller().invoke(Path::new("/"), ["sh", "-c", "echo 'x' >> README"]).line();
        assert_eq!(line, r"sh -c 'echo '\''x'\'' >> README'");
    }
}
