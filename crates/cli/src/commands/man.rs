//! `sandtable man`: manual pages, one per command, made from the definitions that read the command line.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use sandtable_app::config::key::Heading;

use crate::app::App;
use crate::error::CliError;

/// What `man` takes.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command whose page is printed, as in `policy why`; the overview when left out
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write every page into DIR instead
    #[arg(long, value_name = "DIR", conflicts_with = "command", help_heading = Heading::Output.title())]
    directory: Option<PathBuf>,
}

/// A page in roff and the name of its file.
#[derive(Debug)]
struct Page {
    name: String,
    roff: Vec<u8>,
}

pub(crate) fn run(app: &App, args: &ManArgs, definition: Command) -> Result<ExitCode, CliError> {
    let pages = pages(definition)?;
    if let Some(directory) = &args.directory {
        pages.iter().try_for_each(|page| write(directory, page))?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = file_name(std::iter::once("sandtable").chain(args.command.iter().map(String::as_str)));
    let Some(page) = pages.iter().find(|page| page.name == name) else {
        let text = format!("there is no command `{}`", args.command.join(" "));
        return Err(CliError::Usage { text, hint: Some("`sandtable --help` lists the commands".to_owned()) });
    };
    app.ui.answer(&String::from_utf8_lossy(&page.roff))?;
    Ok(ExitCode::SUCCESS)
}

fn write(directory: &Path, page: &Page) -> Result<(), CliError> {
    let path = directory.join(&page.name);
    fs_err::write(&path, &page.roff).map_err(|source| CliError::PageWrite { path, source })
}

fn pages(mut root: Command) -> Result<Vec<Page>, CliError> {
    root.build();
    let mut pages = Vec::new();
    add(&root, &["sandtable"], &mut pages).map_err(CliError::Answer)?;
    Ok(pages)
}

fn add(command: &Command, words: &[&str], pages: &mut Vec<Page>) -> io::Result<()> {
    let mut roff = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut roff)?;
    pages.push(Page { name: file_name(words.iter().copied()), roff });
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && !is_help(below)) {
        add(below, &[words, &[below.get_name()]].concat(), pages)?;
    }
    Ok(())
}

/// What `help` says of a command is on the page of that command.
fn is_help(command: &Command) -> bool {
    command.get_name() == "help"
}

fn file_name<'a>(words: impl Iterator<Item = &'a str>) -> String {
    format!("{}.1", words.collect::<Vec<_>>().join("-"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::command_line::Cli;

    /// The text of a page without roff's escapes.
    fn plain(roff: &[u8]) -> String {
        String::from_utf8_lossy(roff)
            .replace("\\-", "-")
            .replace("\\fB", "")
            .replace("\\fR", "")
            .replace("\\fI", "")
    }

    #[test]
    fn every_command_has_a_page_that_names_all_its_options() {
        let mut root = Cli::command();
        root.build();
        let pages = pages(Cli::command()).expect("written to memory");
        let mut commands = vec![("sandtable".to_owned(), &root)];
        let mut seen = 0;
        while let Some((name, command)) = commands.pop() {
            let page = pages
                .iter()
                .find(|page| page.name == format!("{name}.1"))
                .unwrap_or_else(|| panic!("{name}"));
            let text = plain(&page.roff);
            assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{name}");
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let long = argument.get_long().map(|long| format!("--{long}"));
                let short = argument.get_short().map(|short| format!("-{short}"));
                let named = [long, short].into_iter().flatten().all(|word| text.contains(&word));
                assert!(named, "{name}: {}", argument.get_id());
            }
            let below = command.get_subcommands().filter(|below| !is_help(below));
            commands.extend(below.map(|below| (format!("{name}-{}", below.get_name()), below)));
            seen += 1;
        }
        assert_eq!(seen, pages.len());
        assert!(seen > 8);
    }
}
