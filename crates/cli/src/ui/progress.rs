//! How far something is, on a terminal only, in one line that goes when it is over.

use std::io::{self, IsTerminal as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::Ui;

/// How often the line changes. What takes less time says nothing.
const PAUSE: Duration = Duration::from_millis(200);

/// One line about something that takes its time.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    ui: Ui,
    what: &'static str,
    /// What is counted.
    unit: &'static str,
    /// When the line last changed, and how wide it is.
    state: Mutex<(Instant, usize)>,
}

impl ProgressLine {
    pub(crate) fn new(ui: Ui, what: &'static str) -> Self {
        Self { ui, what, unit: "files", state: Mutex::new((Instant::now(), 0)) }
    }

    /// One that counts something else than files.
    pub(crate) fn counting(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    pub(crate) fn tell(&self, count: u64, bytes: u64) {
        let Ok(mut state) = self.state.lock() else { return };
        if state.0.elapsed() >= PAUSE && io::stderr().is_terminal() {
            let text = format!("sandtable: {}: {}", self.what, amount(count, bytes, self.unit));
            self.ui.write(&over(state.1, &text));
            *state = (Instant::now(), text.chars().count());
        }
    }

    pub(crate) fn clear(&self) {
        let Ok(mut state) = self.state.lock() else { return };
        let width = std::mem::take(&mut state.1);
        if width > 0 {
            self.ui.write(&format!("{}\r", over(width, "")));
        }
    }
}

/// A line in the place of one that is so wide, in signs that every terminal knows.
fn over(width: usize, text: &str) -> String {
    format!("\r{text:width$}")
}

fn amount(count: u64, bytes: u64, unit: &str) -> String {
    let (whole, tenth) = (bytes / 1_000_000, bytes / 100_000 % 10);
    format!("{count} {unit}, {whole}.{tenth} MB")
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
        assert_eq!(amount(3, 12_345_678, "files"), "3 files, 12.3 MB");
    }
}
