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
    /// How wide it is on the screen; 0 where it is not there.
    width: usize,
}

impl ProgressLine {
    pub(crate) fn new(ui: Ui) -> Self {
        let state = State { changed: Instant::now(), width: 0 };
        Self { ui, live: io::stderr().is_terminal(), state: Mutex::new(state) }
    }

    /// Replaces the line, on a terminal.
    pub(crate) fn show(&self, text: impl FnOnce() -> String) {
        let mut state = self.state();
        if self.live && state.changed.elapsed() >= PAUSE {
            let text = format!("sandtable: {}", text());
            self.ui.write(&over(state.width, &text));
            *state = State { changed: Instant::now(), width: text.chars().count() };
        }
    }

    /// Prints a line that stays.
    pub(crate) fn say(&self, text: &str) {
        self.clear();
        self.ui.say(text);
    }

    pub(crate) fn clear(&self) {
        let width = std::mem::take(&mut self.state().width);
        if width > 0 {
            self.ui.write(&format!("{}\r", over(width, "")));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line in the place of one that is so wide, in signs that every terminal knows.
fn over(width: usize, text: &str) -> String {
    format!("\r{text:width$}")
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
    fn nothing_of_a_wider_line_is_left() {
        assert_eq!(over(0, "ab"), "\rab");
        assert_eq!(over(4, "ab"), "\rab  ");
        assert_eq!(over(2, ""), "\r  ");
    }

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
