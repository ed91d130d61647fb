//! Progress and events on the terminal: one line that changes, and lines that stay.

use sandtable_sandbox::model::observe::{Came, Event, Observer, ToolPlace, ToolStep};

use super::progress::{ProgressLine, amount, bar};
use super::{Ui, escape, tool};

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Normal,
    /// Only warnings and waiting.
    Quiet,
}

/// Prints events on the terminal.
#[derive(Debug)]
pub(crate) struct TerminalObserver {
    ui: Ui,
    verbosity: Verbosity,
    line: ProgressLine,
    /// The text for the recording of a state.
    recorded: &'static str,
    /// The image that tools are made on, if any.
    on: String,
}

impl TerminalObserver {
    pub(crate) fn new(ui: Ui, verbosity: Verbosity) -> Self {
        let (recorded, on) = ("recording the source", String::new());
        Self { ui, verbosity, line: ProgressLine::new(ui), recorded, on }
    }

    /// The same where the recorded directory need not be a source.
    pub(crate) fn recording(self) -> Self {
        Self { recorded: "recording", ..self }
    }

    /// The same for tools that are made on that image.
    pub(crate) fn on(self, image: &str) -> Self {
        Self { on: format!(" on {}", escape::line(image)), ..self }
    }

    /// Removes the changing line.
    pub(crate) fn clear(&self) {
        self.line.clear();
    }

    fn is_talkative(&self) -> bool {
        self.verbosity == Verbosity::Normal
    }

    fn show(&self, text: impl FnOnce() -> String) {
        if self.is_talkative() {
            self.line.show(text);
        }
    }

    fn say(&self, text: &str) {
        self.line.say(text);
    }

    fn tool(&self, tool: ToolPlace<'_>, step: ToolStep) {
        let head = || format!("{}/{} {}", tool.number, tool.of, escape::line(tool.title));
        match step {
            ToolStep::Kept => self.show(|| format!("{} is kept", head())),
            ToolStep::Awaited => self.say(&format!("{}: another process makes it; waiting", head())),
            ToolStep::Begun { number, of, action } => {
                self.show(|| format!("{}: step {number} of {of}, {action}", head()));
            }
            ToolStep::Made => self.say(&format!("{} is made{}", head(), self.on)),
        }
    }
}

impl Observer for TerminalObserver {
    fn event(&self, event: &Event<'_>) {
        match *event {
            Event::Copying { files, bytes } => {
                self.show(|| format!("copying the source: {}", amount(files, "files", bytes)));
            }
            Event::Recording { entries, bytes } => {
                self.show(|| format!("{}: {}", self.recorded, amount(entries, "files", bytes)));
            }
            Event::Copied | Event::Recorded => self.clear(),
            Event::Pulling { image, line } if self.is_talkative() => {
                self.say(&format!("fetching {}: {}", escape::name(image), escape::name(line)));
            }
            Event::Pinned { paths } => self.pinned(paths),
            Event::SourceReplaced => {
                let text = "the source is gone or was replaced; inside is its recorded state, without its git directory and \
                            files that git ignores";
                self.ui.warning("source-replaced", text);
            }
            Event::ObjectsReplaced => {
                let text = "the git directory of the source was replaced since the sandbox was made; its objects are not shown, so \
                            git inside lacks those of earlier commits";
                self.ui.warning("objects-replaced", text);
            }
            Event::NotCompared { why } => {
                let text = format!(
                    "what changed in the source since is seen inside, because it could not be compared: {why}"
                );
                self.ui.warning("source-not-compared", &text);
            }
            Event::Waiting { others } => {
                let whom = match others {
                    1 => "one other command".to_owned(),
                    others => format!("{others} other commands"),
                };
                self.say(&format!(
                    "the command has ended; waiting for {whom} in its sandbox, Ctrl-C ends the wait and them"
                ));
            }
            Event::Fetching { tool, bytes, size } => {
                self.show(|| format!("fetching {} {}", escape::line(tool), bar(bytes, size)));
            }
            Event::Fetched { file, size, came: Came::Fetched } => {
                let size = size.map_or_else(String::new, |size| format!(" {}", tool::bytes(size)));
                self.say(&format!("fetched {}{size}", escape::line(file)));
            }
            Event::Tool { tool, step } => self.tool(tool, step),
            // The command prints for itself, and cached files are not printed.
            _ => {}
        }
    }
}

impl TerminalObserver {
    fn pinned(&self, paths: usize) {
        if paths > 0 {
            let what = if paths == 1 { "one path has".to_owned() } else { format!("{paths} paths have") };
            self.say(&format!("{what} changed in the source since; inside it is as it was"));
        }
    }
}
