//! External programs. Each is named by its absolute path, gets exactly the environment it is given, reads
//! nothing from our standard input, and never goes through a shell.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::model::path::HostPath;

/// How much of the end of standard error an error carries.
const TAIL: usize = 4096;

/// A call of an external program, not yet made.
#[derive(Clone, Debug)]
pub struct Cli {
    program: HostPath,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
}

/// What a program left behind.
#[derive(Clone, Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Why a call did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("could not start `{}`", argv.join(" "))]
    Start { argv: Vec<String>, source: io::Error },
    #[error("`{}` ended with {status}: {stderr}", argv.join(" "))]
    Failed { argv: Vec<String>, status: ExitStatus, stderr: String },
}

impl Cli {
    pub fn new(program: HostPath) -> Self {
        Self { program, arguments: Vec::new(), variables: Vec::new(), directory: None }
    }

    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets a variable; without any the environment is empty.
    #[must_use]
    pub fn variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// The program and its arguments, for people.
    pub fn argv(&self) -> Vec<String> {
        let program = self.program.as_path().as_os_str();
        let words = std::iter::once(program).chain(self.arguments.iter().map(OsString::as_os_str));
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Runs the program to its end, however it ends.
    pub fn finish(&self) -> Result<Finished, CliError> {
        let mut command = self.command();
        command.stdin(Stdio::null());
        let output = command.output().map_err(|source| CliError::Start { argv: self.argv(), source })?;
        Ok(Finished { status: output.status, stdout: output.stdout, stderr: output.stderr })
    }

    /// Runs the program to its end with these bytes on its standard input.
    pub fn finish_with(&self, input: &[u8]) -> Result<Finished, CliError> {
        let failed = |source| CliError::Start { argv: self.argv(), source };
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let mut stdin = child.stdin.take().expect("it was asked for");
        let output = std::thread::scope(|scope| {
            // A program that has heard enough closes its end; what it made of the rest, its status says.
            scope.spawn(move || stdin.write_all(input).ok());
            child.wait_with_output().map_err(failed)
        })?;
        Ok(Finished { status: output.status, stdout: output.stdout, stderr: output.stderr })
    }

    /// Starts the program and leaves it running, with the given standard input and error.
    pub fn start(&self, stdin: Stdio, stderr: Stdio) -> Result<Child, CliError> {
        let mut command = self.command();
        command.stdin(stdin).stdout(Stdio::null()).stderr(stderr);
        command.spawn().map_err(|source| CliError::Start { argv: self.argv(), source })
    }

    /// Runs the program and returns its standard output; any status but success is an error.
    pub fn output(&self) -> Result<Vec<u8>, CliError> {
        let finished = self.finish()?;
        if finished.status.success() { Ok(finished.stdout) } else { Err(self.failure(&finished)) }
    }

    /// The error that a status other than the expected one is.
    pub fn failure(&self, finished: &Finished) -> CliError {
        let tail = &finished.stderr[finished.stderr.len().saturating_sub(TAIL)..];
        let stderr = String::from_utf8_lossy(tail).trim().to_owned();
        CliError::Failed { argv: self.argv(), status: finished.status, stderr }
    }
}

impl Cli {
    fn command(&self) -> Command {
        #[expect(clippy::disallowed_methods, reason = "this is the one place that starts programs")]
        let mut command = Command::new(self.program.as_path());
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        command.args(&self.arguments).env_clear().envs(variables);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &str) -> Cli {
        Cli::new(HostPath::new(path).expect("absolute"))
    }

    #[test]
    fn the_environment_is_what_was_given() {
        let output = program("/usr/bin/env").variable("A", "b c").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output), "A=b c\n");
    }

    #[test]
    fn arguments_meet_no_shell() {
        let output = program("/bin/echo").args(["$HOME", "*"]).arg("; true").directory("/").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output), "$HOME * ; true\n");
    }

    #[test]
    fn a_failure_names_the_call_its_status_and_the_end_of_what_it_said() {
        let noise = "n".repeat(5000);
        let error = program("/bin/sh")
            .args(["-c", "echo \"$1\" the end >&2; exit 3", "sh", &noise])
            .output()
            .unwrap_err();
        let CliError::Failed { argv, status, stderr } = error else { panic!("{error:?}") };
        assert_eq!((argv[0].as_str(), status.code()), ("/bin/sh", Some(3)));
        assert!(stderr.ends_with("the end") && stderr.len() <= TAIL);
    }

    #[test]
    fn input_larger_than_a_pipe_goes_through() {
        let input = vec![b'x'; 1 << 20];
        let finished = program("/bin/cat").finish_with(&input).unwrap();
        assert!(finished.status.success() && finished.stdout == input);
        let deaf = program("/bin/true").finish_with(&input).unwrap();
        assert!(deaf.status.success());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = program("/nonexistent/program").output().unwrap_err();
        assert_eq!(error.to_string(), "could not start `/nonexistent/program`");
    }
}
