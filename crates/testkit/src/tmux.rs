//! A terminal for tests: `tmux` with a shell of the host in it, driven by keys and read as text.

use std::time::{Duration, Instant};

use crate::env::TestEnv;
use crate::process::Run;
use crate::require;

/// How long something may take to show.
const PATIENCE: Duration = Duration::from_secs(30);

/// A terminal of 80 by 24 with a shell at its prompt. Gone when dropped.
#[derive(Debug)]
pub struct Tmux<'env> {
    env: &'env TestEnv,
}

impl<'env> Tmux<'env> {
    /// Starts it in `directory`; `None`, said aloud, where there is no `tmux`. `$S` is the executable.
    pub fn start(env: &'env TestEnv, directory: &std::path::Path) -> Option<Self> {
        if require::program("tmux").is_none() || require::program("bash").is_none() {
            require::skip("no tmux or no bash");
            return None;
        }
        let tmux = Self { env };
        let shell = ["bash", "--norc", "--noprofile"];
        let start = tmux.call().directory(directory).args(["-f", "/dev/null"]);
        let start = start.args(["new-session", "-d", "-x", "80", "-y", "24"]).args(shell);
        drop(start.variable("TERM", "screen").variable("PS1", "host> ").ended().expect_code(0));
        tmux.line(&format!("S={}; clear; echo re''ady", env.binary().display()));
        tmux.shows("ready");
        tmux.line("clear");
        tmux.until("the prompt", |screen| screen.starts_with("host>"));
        Some(tmux)
    }

    /// Types a line and Enter when the shell of the host is at its prompt: what is typed earlier belongs to the
    /// command that is still ending.
    pub fn command(&self, text: &str) {
        let prompt = |screen: &str| {
            let row: usize = self.value("cursor_y").parse().expect("a row");
            screen.lines().nth(row).is_some_and(|line| line.trim_end().ends_with("host>"))
        };
        self.until("the prompt", prompt);
        self.line(text);
    }

    /// Types a line and Enter.
    pub fn line(&self, text: &str) {
        drop(self.call().args(["send-keys", "-l", text]).ended().expect_code(0));
        self.key("Enter");
    }

    /// Presses a key by its name: `C-c`, `Escape`, `q`.
    pub fn key(&self, name: &str) {
        drop(self.call().args(["send-keys", name]).ended().expect_code(0));
    }

    /// What the screen shows.
    pub fn screen(&self) -> String {
        self.call().args(["capture-pane", "-p"]).ended().expect_code(0).stdout
    }

    /// Waits until the screen shows these words.
    ///
    /// # Panics
    /// If it does not, with what it shows.
    pub fn shows(&self, words: &str) {
        self.until(words, |screen| screen.contains(words));
    }

    /// Waits until the screen is as wanted.
    ///
    /// # Panics
    /// If it never is, with what it shows.
    pub fn until(&self, what: &str, wanted: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return;
            }
            assert!(Instant::now() < deadline, "no `{what}` on:\n{screen}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Another size.
    pub fn resize(&self, columns: u16, rows: u16) {
        let size = ["-x", &columns.to_string(), "-y", &rows.to_string()];
        drop(self.call().arg("resize-window").args(size).ended().expect_code(0));
    }

    /// A value that tmux knows about the terminal, as `alternate_on`.
    pub fn value(&self, name: &str) -> String {
        let ended = self.call().args(["display-message", "-p", &format!("#{{{name}}}")]).ended();
        ended.expect_code(0).stdout.trim().to_owned()
    }

    /// A call of the client.
    pub fn call(&self) -> Run {
        self.env.run("tmux").arg("-S").arg(self.env.home().join("tmux"))
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.call().arg("kill-server").ended();
    }
}
