//! What is said while a tool is made: a line that changes on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sandtable_tools::build::{BuildRoot, ToolWatcher};
use sandtable_tools::fetch::{Came, Hears};
use sandtable_tools::plan::{Download, Plan, PlanDigest, Sha256};

use crate::ui::{Ui, escape, tool};

/// How often a line changes on a terminal.
const PAUSE: Duration = Duration::from_millis(150);

/// Tells what happens to a plan and all below it.
#[derive(Debug)]
pub(super) struct Told {
    ui: Ui,
    live: bool,
    /// Which of how many a tool is, and what is fetched for it.
    places: BTreeMap<PlanDigest, usize>,
    files: BTreeMap<Sha256, String>,
    count: usize,
    /// What it is made on, where that is not this machine.
    on: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    shown: Instant,
    drawn: bool,
}

impl Told {
    pub(super) fn new(ui: Ui, plan: &Plan) -> Self {
        let all = plan.leaves_first();
        let places = all.iter().enumerate().map(|(index, plan)| (plan.digest(), index + 1)).collect();
        let files =
            all.iter().flat_map(|plan| plan.downloads.iter().map(move |file| (file.sha256, plan.title())));
        Self {
            ui,
            live: io::stderr().is_terminal(),
            places,
            files: files.collect(),
            count: all.len(),
            on: String::new(),
            state: Mutex::new(State { shown: Instant::now(), drawn: false }),
        }
    }

    /// The same for tools that are made on `root`, which is named if it is an image.
    pub(super) fn on(self, root: &BuildRoot) -> Self {
        let BuildRoot::Image(image) = root else { return self };
        Self { on: format!(" on {}", escape::line(&image.made_on.to_string())), ..self }
    }

    /// Nothing more will be said.
    pub(super) fn over(&self) {
        self.clear();
    }

    fn head(&self, plan: &Plan) -> String {
        let place = self.places.get(&plan.digest()).copied().unwrap_or_default();
        format!("{place}/{} {}", self.count, escape::line(&plan.title()))
    }

    /// Something that stays.
    fn line(&self, text: &str) {
        self.clear();
        self.ui.say(text);
    }

    /// Something that the next news replaces; only where it can.
    fn passing(&self, text: &str) {
        let Ok(mut state) = self.state.lock() else { return };
        if self.live && state.shown.elapsed() >= PAUSE {
            *state = State { shown: Instant::now(), drawn: true };
            self.ui.write(&format!("\r\u{1b}[Ksandtable: {text}"));
        }
    }

    fn clear(&self) {
        let Ok(mut state) = self.state.lock() else { return };
        if std::mem::replace(&mut state.drawn, false) {
            self.ui.write("\r\u{1b}[K");
        }
    }
}

impl Hears for Told {
    fn coming(&self, download: &Download, bytes: u64) {
        let title = self.files.get(&download.sha256).map_or("", String::as_str);
        self.passing(&format!("fetching {} {}", escape::line(title), amount(bytes, download.size)));
    }

    fn here(&self, download: &Download, how: Came) {
        if how == Came::Fetched {
            let size = download.size.map_or_else(String::new, |size| format!(" {}", tool::bytes(size)));
            self.line(&format!("fetched {}{size}", escape::line(download.file.as_str())));
        }
    }
}

impl ToolWatcher for Told {
    fn kept(&self, plan: &Plan) {
        self.passing(&format!("{} is kept", self.head(plan)));
    }

    fn waiting(&self, plan: &Plan) {
        self.line(&format!("{}: another process makes it; waiting", self.head(plan)));
    }

    fn step(&self, plan: &Plan, number: usize, action: &'static str) {
        self.passing(&format!("{}: step {number} of {}, {action}", self.head(plan), plan.steps.len()));
    }

    fn made(&self, plan: &Plan) {
        self.line(&format!("{} is made{}", self.head(plan), self.on));
    }
}

/// How much has come, as a bar where the whole is known.
fn amount(bytes: u64, size: Option<u64>) -> String {
    const WIDTH: u64 = 20;
    let mut text = String::new();
    if let Some(size) = size.filter(|size| *size > 0) {
        let full = (bytes.min(size) * WIDTH / size).min(WIDTH);
        for place in 0..WIDTH {
            text.push(if place < full { '#' } else { '.' });
        }
        write!(text, " {} of ", tool::bytes(bytes)).expect("a string takes everything");
        return text + &tool::bytes(size);
    }
    tool::bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_file() {
        assert_eq!(amount(1024, Some(2048)), "##########.......... 1024 B of 2048 B");
        assert_eq!(amount(9999, Some(2048)), "#################### 9999 B of 2048 B");
        assert_eq!(amount(7, None), "7 B");
    }
}
