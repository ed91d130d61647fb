//! How far something is, on a terminal only, in one line that goes when it is over.

use std::io::{self, IsTerminal as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::Ui;

/// How often the line changes. What takes less time says nothing.
const PAUSE: Duration = Duration::from_millis(200);

/// Whether anything is on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Nothing,
    Line,
}

/// One line about something that takes its time.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    ui: Ui,
    what: &'static str,
    /// What is counted.
    unit: &'static str,
    state: Mutex<(Instant, Shown)>,
}

impl ProgressLine {
    pub(crate) fn new(ui: Ui, what: &'static str) -> Self {
        Self { ui, what, unit: "files", state: Mutex::new((Instant::now(), Shown::Nothing)) }
    }

    /// One that counts something else than files.
    pub(crate) fn counting(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    pub(crate) fn tell(&self, count: u64, bytes: u64) {
        let Ok(mut state) = self.state.lock() else { return };
        if state.0.elapsed() >= PAUSE && io::stderr().is_terminal() {
            *state = (Instant::now(), Shown::Line);
            self.ui.write(&format!(
                "\r\u{1b}[Ksandtable: {}: {}",
                self.what,
                amount(count, bytes, self.unit)
            ));
        }
    }

    pub(crate) fn clear(&self) {
        let Ok(mut state) = self.state.lock() else { return };
        if std::mem::replace(&mut state.1, Shown::Nothing) == Shown::Line {
            self.ui.write("\r\u{1b}[K");
        }
    }
}

fn amount(count: u64, bytes: u64, unit: &str) -> String {
    let (whole, tenth) = (bytes / 1_000_000, bytes / 100_000 % 10);
    format!("{count} {unit}, {whole}.{tenth} MB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_readable() {
        assert_eq!(amount(3, 12_345_678, "files"), "3 files, 12.3 MB");
    }
}
