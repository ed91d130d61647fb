//! `sandtable logs`: what detached commands wrote.
//!
//! Standard output and standard error stay apart, as they came. Bytes are passed on as they are, unless they
//! go to a terminal: there, whatever could steer it is spelled out.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session::Log;

use crate::app::App;
use crate::error::CliError;
use crate::ui::lines::{Lines, Piece, Times};

/// What `logs` takes.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The sandboxes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<SandboxName>,
    /// Go on until the commands have ended
    #[arg(short, long)]
    follow: bool,
    /// Only the last N lines of each
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// Say when each line was written
    #[arg(long)]
    timestamps: bool,
}

/// How long to wait for more.
const PAUSE: Duration = Duration::from_millis(100);

/// One log on its way out.
struct Source<'a> {
    name: &'a SandboxName,
    log: Log,
    lines: Lines,
}

pub(crate) fn run(app: &App, args: &LogsArgs) -> Result<ExitCode, CliError> {
    let sandboxes = app.sandboxes()?;
    let mut sources = Vec::new();
    for name in &args.names {
        let prefix = (args.names.len() > 1).then(|| name.to_string());
        let times = if args.timestamps { Times::Said } else { Times::Unsaid };
        let lines = Lines::new(prefix, times);
        sources.push(Source { name, log: Log::open(&sandboxes, name)?, lines });
    }
    for source in &mut sources {
        let mut pieces = source.take(app)?;
        if let Some(tail) = args.tail {
            pieces = Lines::last(pieces, tail);
        }
        app.ui.pass(&pieces)?;
    }
    while args.follow && !sources.is_empty() {
        std::thread::sleep(PAUSE);
        let mut going = Vec::new();
        for mut source in sources {
            // Asked before reading: what came before the end is then read.
            let over = source.log.is_over()?;
            app.ui.pass(&source.take(app)?)?;
            if over {
                app.ui.pass(&source.lines.rest())?;
            } else {
                going.push(source);
            }
        }
        sources = going;
    }
    for mut source in sources {
        app.ui.pass(&source.lines.rest())?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Source<'_> {
    fn take(&mut self, app: &App) -> Result<Vec<Piece>, CliError> {
        let frames = self.log.take()?;
        let missed: u64 = frames.iter().map(|frame| frame.missed).sum();
        if missed > 0 {
            app.ui.say(&format!("{}: {missed} bytes of the log are gone, it keeps the newest", self.name));
        }
        Ok(frames.iter().flat_map(|frame| self.lines.take(frame)).collect())
    }
}
