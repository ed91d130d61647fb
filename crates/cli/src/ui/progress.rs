//! Progress in one line, on terminals only, removed at the end.
//!
//! It is our own code: there is one line at a time, and a library for several bars would add three packages to save thirty
//! lines.

use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Ui;
use super::tool::bytes;

/// The shortest time between two changes of the line. Shorter operations print nothing.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a bar is.
const WIDTH: u64 = 20;

/// The line. Any thread may write to it.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    ui: Ui,
    live: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When it last changed, or was made.
    changed: Instant,
    /// Whether it is on the screen.
    drawn: bool,
}

impl ProgressLine {
    pub(crate) fn new(ui: Ui) -> Self {
        let state = State { changed: Instant::now(), drawn: false };
        Self { ui, live: io::stderr().is_terminal(), state: Mutex::new(state) }
    }

    /// Replaces the line, on a terminal.
    pub(crate) fn show(&self, text: impl FnOnce() -> String) {
        let mut state = self.state();
        if self.live && state.changed.elapsed() >= PAUSE {
            *state = State { changed: Instant::now(), drawn: true };
            self.ui.write(&format!("\r\u{1b}[Ksandtable: {}", text()));
        }
    }

    /// Prints a line that stays.
    pub(crate) fn say(&self, text: &str) {
        self.clear();
        self.ui.say(text);
    }

    pub(crate) fn clear(&self) {
        if std::mem::replace(&mut self.state().drawn, false) {
            self.ui.write("\r\u{1b}[K");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A number of things and their size.
pub(crate) fn amount(count: u64, unit: &str, size: u64) -> String {
    format!("{count} {unit}, {}", bytes(size))
}

/// The size so far, as a bar if the total is known.
pub(crate) fn bar(done: u64, size: Option<u64>) -> String {
    let Some(size) = size.filter(|size| *size > 0) else { return bytes(done) };
    let full = done.min(size) * WIDTH / size;
    let bar: String = (0..WIDTH).map(|place| if place < full { '#' } else { '.' }).collect();
    format!("{bar} {} of {}", bytes(done), bytes(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_readable() {
        assert_eq!(amount(3, "files", 12_345_678), "3 files, 12 MiB");
    }

    #[test]
    fn a_bar_is_as_full_as_the_file() {
        assert_eq!(bar(1024, Some(2048)), "##########.......... 1024 B of 2048 B");
        assert_eq!(bar(9999, Some(2048)), "#################### 9999 B of 2048 B");
        assert_eq!(bar(7, None), "7 B");
    }
}
