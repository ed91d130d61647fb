//! External programs. Each is named by its absolute path, gets exactly the environment it is given, reads
//! nothing from our standard input, and never goes through a shell.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::attention::Attention;
use crate::model::path::HostPath;

/// How much of the end of standard error an error carries.
const TAIL: usize = 4096;
/// How much of standard error is kept of a program with bounds.
const ERRORS: u64 = 1 << 20;
/// How many characters of a command an error shows.
const LONGEST: usize = 300;
/// How often a program with a time limit is looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// How often a program with bounds is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// A call of an external program, not yet made.
#[derive(Clone, Debug)]
pub struct Cli {
    program: HostPath,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    bounds: Option<Bounds>,
    attention: Attention,
}

/// What a program may take. It is ended when it takes more.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub time: Duration,
    /// Memory of its own; what it maps of files does not count.
    pub memory: u64,
    /// What it may say.
    pub output: u64,
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
    #[error("could not start `{}`", brief(argv))]
    Start { argv: Vec<String>, source: io::Error },
    #[error("`{}` ended with {status}: {stderr}", brief(argv))]
    Failed { argv: Vec<String>, status: ExitStatus, stderr: String },
    #[error("`{}` did not end within {} ms", brief(argv), limit.as_millis())]
    TooSlow { argv: Vec<String>, limit: Duration },
    #[error("`{}` was cancelled", brief(argv))]
    Cancelled { argv: Vec<String> },
    #[error("`{}` said more than {} MiB", brief(argv), limit >> 20)]
    TooMuch { argv: Vec<String>, limit: u64 },
}

/// A command for people: without the settings that we give git, which are always the same, and not longer than a few lines.
fn brief(argv: &[String]) -> String {
    let mut words = argv.iter();
    let mut shown = String::new();
    while let Some(word) = words.next() {
        if word == "-c" && words.as_slice().first().is_some_and(|next| next.contains('=')) {
            words.next();
            continue;
        }
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(word);
    }
    match shown.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    }
}

impl Cli {
    pub fn new(program: HostPath) -> Self {
        Self {
            program,
            arguments: Vec::new(),
            variables: Vec::new(),
            directory: None,
            bounds: None,
            attention: Attention::default(),
        }
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

    /// Ends the program when it takes more than this, whichever way it is run to its end.
    #[must_use]
    pub const fn within(mut self, bounds: Bounds) -> Self {
        self.bounds = Some(bounds);
        self
    }

    /// Ends a program with bounds when a signal comes that is held back from us, and so never reaches it.
    #[must_use]
    pub fn heeding(mut self, attention: Attention) -> Self {
        self.attention = attention;
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
        if let Some(bounds) = self.bounds {
            return self.finish_bounded(&[], bounds);
        }
        let mut command = self.command();
        command.stdin(Stdio::null());
        let output = command.output().map_err(|source| CliError::Start { argv: self.argv(), source })?;
        Ok(Finished { status: output.status, stdout: output.stdout, stderr: output.stderr })
    }

    /// Runs the program to its end, or to the end of its time, when it is killed. What it says to standard output
    /// is nobody's business.
    pub fn finish_within(&self, limit: Duration) -> Result<Finished, CliError> {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|source| CliError::Start { argv: self.argv(), source })?;
        let status = self.ended(&mut child, limit)?;
        let stderr = child.stderr.take().map(|stream| at_hand(&stream)).unwrap_or_default();
        Ok(Finished { status, stdout: Vec::new(), stderr })
    }

    /// Runs the program to its end, or to the end of its bounds, when it is killed; not sooner, whatever signal comes, and out
    /// of reach of what a terminal sends to our process group. It keeps `stdin` open as long as it lives, and is not heard.
    pub fn finish_apart(&self, stdin: OwnedFd, bounds: Bounds) -> Result<ExitStatus, CliError> {
        let mut child = self.start_apart(Stdio::from(stdin), Stdio::null())?;
        crate::os::limit_memory(Pid::from_child(&child), bounds.memory);
        self.ended(&mut child, bounds.time)
    }

    fn ended(&self, child: &mut Child, limit: Duration) -> Result<ExitStatus, CliError> {
        let given_up = Instant::now() + limit;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() < given_up => std::thread::sleep(PAUSE),
                Ok(None) | Err(_) => {
                    let _already_gone = child.kill();
                    let _already_taken = child.wait();
                    return Err(CliError::TooSlow { argv: self.argv(), limit });
                }
            }
        }
    }

    /// Starts the program and leaves it running, out of reach of what a terminal sends to our process group.
    pub fn start_apart(&self, stdin: Stdio, stderr: Stdio) -> Result<Child, CliError> {
        let mut command = self.command();
        command.process_group(0).stdin(stdin).stdout(Stdio::null()).stderr(stderr);
        command.spawn().map_err(|source| CliError::Start { argv: self.argv(), source })
    }

    /// Runs the program to its end with these bytes on its standard input.
    pub fn finish_with(&self, input: &[u8]) -> Result<Finished, CliError> {
        if let Some(bounds) = self.bounds {
            return self.finish_bounded(input, bounds);
        }
        let failed = |source| CliError::Start { argv: self.argv(), source };
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let mut stdin = child.stdin.take().expect("it was asked for");
        let output = std::thread::scope(|scope| {
            // A program that has heard enough closes its end; what it made of the rest, its status says.
            let writer = spawn(scope, move || stdin.write_all(input).ok());
            if writer.is_err() {
                end_now(Pid::from_child(&child));
            }
            writer.map_err(failed)?;
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

    /// Runs the program to its end and hands over every line that it prints, on whichever stream, as it comes. Kills the program
    /// once `cancelled` returns `true`.
    pub fn lines(&self, hears: &mut dyn FnMut(&str), cancelled: &dyn Fn() -> bool) -> Result<(), CliError> {
        let failed = |source| CliError::Start { argv: self.argv(), source };
        let (read, write) = io::pipe().map_err(failed)?;
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(write.try_clone().map_err(failed)?).stderr(write);
        let mut child = command.spawn().map_err(failed)?;
        // It holds the pipe open.
        drop(command);
        let mut tail = String::new();
        let mut lines = Lines { pipe: read, pending: Vec::new() };
        while let Some(line) = lines.next(cancelled) {
            let line = String::from_utf8_lossy(&line);
            hears(line.trim_end());
            tail.push_str(line.trim_end());
            tail.push('\n');
            let start = tail.len().saturating_sub(TAIL);
            let start = (start..=tail.len()).find(|at| tail.is_char_boundary(*at)).unwrap_or(0);
            tail.drain(..start);
        }
        if cancelled() {
            let _already_gone = child.kill();
            let _already_taken = child.wait();
            return Err(CliError::Cancelled { argv: self.argv() });
        }
        let status = child.wait().map_err(failed)?;
        if status.success() {
            return Ok(());
        }
        Err(CliError::Failed { argv: self.argv(), status, stderr: tail.trim().to_owned() })
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

/// Programs with bounds.
impl Cli {
    fn finish_bounded(&self, input: &[u8], bounds: Bounds) -> Result<Finished, CliError> {
        let failed = |source| CliError::Start { argv: self.argv(), source };
        let mut command = self.command();
        let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let pid = Pid::from_child(&child);
        crate::os::limit_memory(pid, bounds.memory);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let watched = std::thread::scope(|scope| {
            let (ended, end) = mpsc::channel::<()>();
            let watch = spawn(scope, move || {
                let given_up = Instant::now() + bounds.time;
                while end.recv_timeout(GLANCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                    let late = Instant::now() >= given_up;
                    if late || self.attention.signal().is_some() {
                        end_now(pid);
                        return late;
                    }
                }
                false
            })
            .inspect_err(|_| end_now(pid))?;
            // A program that has heard enough closes its end; what it made of the rest, its status says.
            let said = spawn(scope, move || stdin.map(|mut stdin| stdin.write_all(input)))
                .and_then(|_| spawn(scope, move || stderr.map(complaints)));
            let heard = said.and_then(|said| {
                let stdout = up_to(&mut stdout.expect("it was asked for"), bounds.output)?;
                if stdout.len() as u64 > bounds.output {
                    end_now(pid);
                }
                Ok((stdout, said))
            });
            if heard.is_err() {
                end_now(pid);
            }
            // It is waited for without being taken off the list, so that its number stays its own.
            let waited =
                retry_on_intr(|| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
            drop(ended);
            let late = watch.join().unwrap_or(false);
            let (stdout, said) = heard?;
            waited?;
            let stderr = said.join().ok().flatten().transpose()?.unwrap_or_default();
            io::Result::Ok((late, stdout, stderr))
        });
        let status = child.wait().map_err(failed)?;
        let (late, stdout, stderr) = watched.map_err(failed)?;
        if late {
            return Err(CliError::TooSlow { argv: self.argv(), limit: bounds.time });
        }
        if stdout.len() as u64 > bounds.output {
            return Err(CliError::TooMuch { argv: self.argv(), limit: bounds.output });
        }
        Ok(Finished { status, stdout, stderr })
    }
}

/// What a program prints, line by line.
struct Lines {
    pipe: io::PipeReader,
    pending: Vec<u8>,
}

impl Lines {
    /// The next line; `None` at the end or once cancelled.
    fn next(&mut self, cancelled: &dyn Fn() -> bool) -> Option<Vec<u8>> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let rest = self.pending.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.pending, rest);
                line.pop();
                return Some(line);
            }
            let count = loop {
                if cancelled() {
                    return None;
                }
                if is_readable(&self.pipe) {
                    break self.pipe.read(&mut buffer).unwrap_or(0);
                }
            };
            if count == 0 {
                let last = std::mem::take(&mut self.pending);
                return (!last.is_empty()).then_some(last);
            }
            self.pending.extend_from_slice(&buffer[..count]);
        }
    }
}

/// Waits briefly for data or the end of the pipe.
fn is_readable(pipe: &impl AsFd) -> bool {
    let glance = Timespec { tv_sec: 0, tv_nsec: GLANCE.subsec_nanos().into() };
    !matches!(poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&glance)), Ok(0) | Err(Errno::INTR))
}

/// A thread, or why there can be none.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work)
}

/// Only for a child that nobody has waited for yet.
fn end_now(pid: Pid) {
    let _already_gone = kill_process(pid, Signal::KILL);
}

/// What a stream says, up to one byte more than `limit`.
fn up_to(stream: &mut impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What a program complains of. The rest is heard and forgotten: it must be able to go on.
fn complaints(mut stream: impl Read) -> io::Result<Vec<u8>> {
    let bytes = up_to(&mut stream, ERRORS)?;
    io::copy(&mut stream, &mut io::sink())?;
    Ok(bytes)
}

/// What can be read from a pipe at once. A child of the program may hold its other end for ever.
fn at_hand(pipe: &impl AsFd) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 16];
    let ready = rustix::io::ioctl_fionbio(pipe, true);
    let length = ready.and_then(|()| rustix::io::read(pipe, &mut bytes)).unwrap_or(0);
    bytes.truncate(length);
    bytes
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

    #[test]
    fn an_error_shows_a_command_briefly() {
        let argv =
            ["/usr/bin/git", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "merge-tree", "-c", "a"];
        let argv: Vec<String> = argv.map(str::to_owned).to_vec();
        assert_eq!(brief(&argv), "/usr/bin/git merge-tree -c a");
        let long = vec!["é".repeat(2 * LONGEST)];
        assert_eq!(brief(&long).chars().count(), LONGEST + 1);
    }

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
    fn lines_come_from_both_streams_and_the_last_ones_are_kept() {
        let mut heard = Vec::new();
        let call = program("/bin/sh").args(["-c", "echo one; echo two >&2; exit 4"]);
        let error = call.lines(&mut |line| heard.push(line.to_owned()), &|| false).unwrap_err();
        assert_eq!(heard, ["one", "two"]);
        let CliError::Failed { status, stderr, .. } = error else { panic!("{error:?}") };
        assert_eq!((status.code(), stderr.as_str()), (Some(4), "one\ntwo"));
    }

    #[test]
    fn a_cancelled_program_is_killed() {
        let lines = std::cell::Cell::new(0);
        let call = program("/bin/sh").args(["-c", "echo $$; exec sleep 600"]);
        let mut pid = None;
        let mut hears = |line: &str| {
            pid = line.parse().ok();
            lines.set(lines.get() + 1);
        };
        let ended = call.lines(&mut hears, &|| lines.get() > 0);
        assert!(matches!(ended, Err(CliError::Cancelled { .. })), "{ended:?}");
        let pid = Pid::from_raw(pid.unwrap()).unwrap();
        assert_eq!(
            rustix::process::test_kill_process(pid),
            Err(Errno::SRCH),
            "it is gone and was waited for"
        );
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let slow = program("/bin/sh").args(["-c", "sleep 600"]).finish_within(Duration::from_millis(50));
        assert!(matches!(slow, Err(CliError::TooSlow { .. })), "{slow:?}");
        let said = program("/bin/sh").args(["-c", "echo said >&2; sleep 600 & exit 3"]);
        let said = said.finish_within(Duration::from_mins(10)).unwrap();
        assert_eq!((said.status.code(), said.stderr.as_slice()), (Some(3), &b"said\n"[..]));
    }

    #[test]
    fn a_program_with_bounds_is_ended_at_each_of_them() {
        let bounds = Bounds { time: Duration::from_mins(10), memory: 64 << 20, output: 1 << 20 };
        let shell = |script: &str, bounds| program("/bin/sh").args(["-c", script]).within(bounds).finish();
        let slow = shell("exec sleep 600", Bounds { time: Duration::from_millis(50), ..bounds });
        assert!(matches!(slow, Err(CliError::TooSlow { .. })), "{slow:?}");
        let loud = shell("exec cat /dev/zero", bounds);
        assert!(matches!(loud, Err(CliError::TooMuch { limit: 1_048_576, .. })), "{loud:?}");
        let large = shell("sleep 0.1; x=$(head -c 256M /dev/zero | tr '\\0' x)", bounds).unwrap();
        assert!(!large.status.success(), "{large:?}");
        let noisy = shell("head -c 4M /dev/zero >&2; echo said; exit 3", bounds).unwrap();
        assert_eq!((noisy.status.code(), noisy.stdout.as_slice()), (Some(3), &b"said\n"[..]));
        let fed = program("/bin/cat").within(bounds).finish_with(&vec![b'x'; 1 << 20]).unwrap();
        assert!(fed.status.success() && fed.stdout.len() == 1 << 20);
    }

    #[test]
    fn a_program_that_runs_apart_has_bounds_and_keeps_what_it_was_given() {
        let bounds = Bounds { time: Duration::from_mins(10), memory: 64 << 20, output: 0 };
        let shell = |script: &str, bounds| {
            let (end, _other) = io::pipe().unwrap();
            program("/bin/sh").args(["-c", script]).finish_apart(end.into(), bounds)
        };
        let slow = shell("exec sleep 600", Bounds { time: Duration::from_millis(50), ..bounds });
        assert!(matches!(slow, Err(CliError::TooSlow { .. })), "{slow:?}");
        assert!(!shell("sleep 0.1; x=$(head -c 256M /dev/zero | tr '\\0' x)", bounds).unwrap().success());
        assert!(shell("test -p /dev/stdin && echo unheard", bounds).unwrap().success());
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
