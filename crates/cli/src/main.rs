//! The command line: hidden subcommands first, then parse, dispatch, exit. Only this crate prints, reads
//! the environment or decides an exit code.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

mod app;
mod args;
mod commands;
mod config;
mod env;
mod error;
mod exit;
mod report;
#[cfg(test)]
mod schema;
mod ui;
mod why;

use app::App;
use args::{Command, Stop};
use env::Environment;
use error::CliError;
use sandtable_launch::container::outpost;
use sandtable_sandbox::board::Direction;
use sandtable_sandbox::engine::oci::{SUBCOMMAND, SWEEP};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // The probe runs inside sandboxes, where nothing of the user's environment or files is of interest.
    if args.get(1).is_some_and(|word| word == "__probe") {
        return ExitCode::from(sandtable_launch::probe::main(&args[2..]));
    }
    // So is PID 1 of a container, whose every command gets what the image sets; and what empties a directory of
    // an overlay with the rights of an engine.
    match args.get(1).and_then(|word| word.to_str()) {
        Some(SUBCOMMAND) if args.len() == 3 => {
            sandtable_launch::container::serve(Path::new(&args[2]), env::pairs())
        }
        Some(SWEEP) if args.len() == 3 => {
            return if fs_err::remove_dir_all(&args[2]).is_ok() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            };
        }
        Some(outpost::SUBCOMMAND) => {
            if let Some(post) = outpost::Post::of(&args[2..]) {
                outpost::serve(&post)
            }
        }
        _ => {}
    }
    if args.get(1).is_some_and(|word| word == sandtable_launch::relay::REACH) {
        return ExitCode::from(sandtable_launch::relay::reach_main(args.get(2).map(Path::new)));
    }
    // A panic drops nothing, so whatever has the terminal then must be made to let go of it.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        sandtable_launch::attach::restore_terminal();
        report(panic);
    }));
    let app = App::new(Environment::of_process());
    let result = match args::parse(&args) {
        Ok(cli) => dispatch(&app, cli.command),
        Err(Stop::Answer(text)) => app.ui.answer(&text).map(|()| ExitCode::SUCCESS),
        Err(Stop::Refused(error)) => Err(error),
    };
    result.unwrap_or_else(|error| {
        app.ui.error(&error);
        error.exit().into()
    })
}

fn dispatch(app: &App, command: Command) -> Result<ExitCode, CliError> {
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
        Command::Completions(args) => commands::completions::run(app, &args),
        Command::Man(args) => commands::man::run(app, &args),
    }
}
