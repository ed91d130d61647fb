//! `sandtable completions`: what a shell needs to complete our commands and options, made from the definitions
//! that read the command line, so that it is never out of date. Names of sandboxes and the like come from the program itself
//! when they are wanted ([`names`]).

use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};

use crate::app::App;
use crate::error::CliError;

mod names;

/// What `completions` takes.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// The shells whose completions are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(app: &App, args: &CompletionsArgs, mut definition: Command) -> Result<ExitCode, CliError> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    if args.shell == Shell::Zsh {
        definition = names::marked(definition);
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition, "sandtable", &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = match args.shell {
        Shell::Bash => names::bash(&definition, &script),
        Shell::Zsh => names::zsh(&script),
        Shell::Fish => names::fish(&definition, &script),
    };
    app.ui.answer(&script)?;
    Ok(ExitCode::SUCCESS)
}
