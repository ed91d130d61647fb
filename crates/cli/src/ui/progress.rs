//! How far something is, on a terminal only, in one line that goes when it is over.

use std::io::{self, IsTerminal as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sandtable_sandbox::session::CopyNews;

use super::Ui;

/// How often the line changes. Copies that take less time say nothing.
const PAUSE: Duration = Duration::from_millis(200);

/// Whether anything is said of copying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Nothing,
    Line,
}

/// One line about a copy of the source.
#[derive(Debug)]
pub(crate) struct CopyLine {
    ui: Ui,
    state: Mutex<(Instant, Shown)>,
}

impl CopyLine {
    pub(crate) fn new(ui: Ui) -> Self {
        Self { ui, state: Mutex::new((Instant::now(), Shown::Nothing)) }
    }

    pub(crate) fn tell(&self, news: CopyNews) {
        if !io::stderr().is_terminal() {
            return;
        }
        let Ok(mut state) = self.state.lock() else { return };
        match news {
            CopyNews::Going { files, bytes } if state.0.elapsed() >= PAUSE => {
                *state = (Instant::now(), Shown::Line);
                self.ui.write(&format!("\r\u{1b}[Ksandtable: copying the source: {}", amount(files, bytes)));
            }
            CopyNews::Over if state.1 == Shown::Line => self.ui.write("\r\u{1b}[K"),
            _ => {}
        }
    }
}

fn amount(files: u64, bytes: u64) -> String {
    let (whole, tenth) = (bytes / 1_000_000, bytes / 100_000 % 10);
    format!("{files} files, {whole}.{tenth} MB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_readable() {
        assert_eq!(amount(3, 12_345_678), "3 files, 12.3 MB");
    }
}
