//! Running programs from tests, with everything they said at hand.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program to be run with nothing of this process's environment.
#[derive(Clone, Debug)]
pub struct Run {
    argv: Vec<OsString>,
    directory: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The exit status as a shell would say it: 128 + n after signal n.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn new(program: impl AsRef<OsStr>, directory: &Path) -> Self {
        Self {
            argv: vec![program.as_ref().to_owned()],
            directory: directory.to_owned(),
            variables: Vec::new(),
        }
    }

    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.argv.push(arg.as_ref().to_owned());
        self
    }

    #[must_use]
    pub fn args<T: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.argv.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        directory.as_ref().clone_into(&mut self.directory);
        self
    }

    #[must_use]
    pub fn variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Puts other words before the program: `setpriv …`, `strace …`.
    #[must_use]
    pub fn through<T: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.argv.splice(0..0, words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Runs it to its end, with empty standard input.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn ended(&self) -> Ended {
        let output = self.command().output();
        let output = output.unwrap_or_else(|error| panic!("cannot start {:?}: {error}", self.argv));
        let code = output.status.code().or_else(|| Some(128 + output.status.signal()?)).unwrap_or(-1);
        Ended {
            code,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts it and lets it run; standard output can be read from the child.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn started(&self) -> Child {
        let mut command = self.command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap_or_else(|error| panic!("cannot start {:?}: {error}", self.argv))
    }

    /// Starts it with a standard input that stays open until the child is dropped.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn waiting(&self) -> Child {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap_or_else(|error| panic!("cannot start {:?}: {error}", self.argv))
    }

    /// Starts it with all three streams as pipes.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn piped(&self) -> Child {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap_or_else(|error| panic!("cannot start {:?}: {error}", self.argv))
    }

    #[expect(clippy::disallowed_methods, reason = "the tests' one place that starts programs")]
    fn command(&self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).current_dir(&self.directory).env_clear().stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl Ended {
    /// Goes on only after this exit code.
    ///
    /// # Panics
    /// With what the program said, if it ended otherwise.
    #[must_use]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "\nstdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Goes on only if standard error has these words.
    ///
    /// # Panics
    /// With what the program said, if it has not.
    #[must_use]
    pub fn expect_stderr(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "no `{words}` in stderr: {}", self.stderr);
        self
    }
}
