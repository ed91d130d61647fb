//! The command line: hidden subcommands first, then parse, dispatch, exit. Only this crate prints, reads
//! the environment or decides an exit code.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

mod app;
mod args;
mod command_line;
mod commands;
mod env;
mod error;
mod exit;
#[cfg(target_os = "linux")]
mod inside;
mod report;
mod ui;

use app::App;
use command_line::{Command, Stop};
use error::CliError;
use sandtable_sandbox::board::Direction;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    #[cfg(target_os = "linux")]
    if let Some(code) = inside::main(&args) {
        return code;
    }
    if let Some(code) = commands::complete::main(&args, env::of_process) {
        return code;
    }
    sandtable_launch::outside::attach::outlive_file_limits();
    // A panic drops nothing, so whatever has the terminal then must be made to let go of it.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        sandtable_launch::outside::attach::restore_terminal();
        report(panic);
    }));
    let app = App::new(env::of_process());
    let result = match command_line::parse(&args) {
        Ok(cli) => dispatch(&app, cli.command),
        Err(Stop::Answer(text)) => app.help(&text).map(|()| ExitCode::SUCCESS),
        Err(Stop::Refused(error)) => Err(error),
    };
    result.unwrap_or_else(|error| {
        app.error(&error);
        error.signal().map_or_else(|| error.exit().into(), exit::after_signal)
    })
}

fn dispatch(app: &App, command: Command) -> Result<ExitCode, CliError> {
    if !matches!(command, Command::Completions(_) | Command::Man(_)) {
        app.recover();
    }
    match command {
        Command::Run(args) => commands::run::run(app, *args),
        Command::Shell(args) => commands::shell::run(app, *args),
        Command::Exec(args) => commands::exec::run(app, args),
        Command::Ls(args) => commands::ls::run(app, &args),
        Command::Inspect(args) => commands::inspect::run(app, &args),
        Command::Logs(args) => commands::logs::run(app, &args),
        Command::Events(args) => commands::events::run(app, &args),
        Command::Diff(args) => commands::diff::run(app, &args),
        Command::Log(args) => commands::log::run(app, &args),
        Command::Snapshot(args) => commands::snapshot::run(app, &args),
        Command::Onboard(args) => commands::snapshot::onboard(app, &args),
        Command::Checkout(args) => commands::turn::checkout(app, &args),
        Command::Rollback(args) => commands::turn::rollback(app, &args),
        Command::Undo(args) => commands::turn::step(app, &args, Direction::Undo),
        Command::Redo(args) => commands::turn::step(app, &args, Direction::Redo),
        Command::Fork(args) => commands::fork::run(app, *args),
        Command::Verify(args) => commands::verify::run(app, *args),
        Command::Merge(args) => commands::merge::merge(app, &args),
        Command::Apply(args) => commands::merge::apply(app, &args),
        Command::Export(args) => commands::merge::export(app, &args),
        Command::Store(command) => commands::store::run(app, command),
        Command::Stop(args) => commands::stop::run(app, &args),
        Command::Rm(args) => commands::rm::run(app, &args),
        Command::Prune(args) => commands::prune::run(app, &args),
        Command::Policy(command) => commands::policy::run(app, command),
        Command::Tool(command) => commands::tool::run(app, command),
        Command::Trust(args) => commands::trust::run(app, &args),
        Command::Doctor(args) => commands::doctor::run(app, &args),
        Command::Completions(args) => commands::completions::run(app, &args, command_line::help::command()),
        Command::Man(args) => commands::man::run(app, &args, command_line::help::command()),
    }
}
