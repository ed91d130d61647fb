//! `sandtable tool test`: recipes on several families of distributions, as a matrix that says what was really tried.
//!
//! A family is tried on a root file system that somebody brought with `--rootfs`, or on this machine if it is of that
//! family. A root file system says itself what it is, an emulation too. Where there is none, or one without what a
//! recipe needs of it, the cell says `unavailable` and why; nothing is ever called tried that was not.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sandtable_app::workshop::libc_here;
use sandtable_sandbox::model::causes::chained;
use sandtable_sandbox::model::choice::UnknownWord;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::tool::ToolRequest;
use sandtable_tools::assemble::AssembleError;
use sandtable_tools::build::{Error, Rootfs, machine_release, rootfs};
use sandtable_tools::family as families;
use sandtable_tools::plan::{Libc, LinuxFamily, Plan};

use super::ask;
use super::install::{MannerArgs, make};
use super::matrix::{Cell, Matrix, Root, State};
use super::which::{PlatformArgs, WhichArgs};
use crate::app::{self, App};
use crate::commands::SCHEMA;
use crate::error::{CliError, ToolError};
use crate::exit::Own;
use crate::ui::escape;

/// What `tool test` takes.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Tools, as `ninja` or `ninja@1.13`; without any, what the first recipe makes
    #[arg(value_name = "NAME[@VERSION]")]
    tools: Vec<ToolRequest>,
    /// A recipe of your own; more of them may provide what it depends on
    #[arg(long, value_name = "FILE")]
    recipe: Vec<PathBuf>,
    /// Families, with commas between them, or `all`
    #[arg(long, alias = "linux-family", value_name = "LIST", default_value = "all")]
    family: Families,
    /// The root file system of a family: a directory, an archive or an OCI layout
    #[arg(long, value_name = "FAMILY=DIR|TAR|OCI")]
    rootfs: Vec<String>,
    /// A family that cannot be tried here is no failure
    #[arg(long)]
    allow_unavailable: bool,
    #[command(flatten)]
    manner: MannerArgs,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// Families, each once.
#[derive(Clone, Debug)]
struct Families(Vec<LinuxFamily>);

impl std::str::FromStr for Families {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        if text == "all" {
            return Ok(Self(LinuxFamily::ALL.to_vec()));
        }
        let mut found = Vec::new();
        for word in text.split(',') {
            let family = word.parse()?;
            if !found.contains(&family) {
                found.push(family);
            }
        }
        Ok(Self(found))
    }
}

/// A cell that is to be filled.
struct Place<'a> {
    tool: Option<&'a ToolRequest>,
    family: LinuxFamily,
    root: Option<&'a Rootfs>,
}

pub(super) fn run(app: &App, args: &TestArgs) -> Result<ExitCode, CliError> {
    let roots = args.rootfs.iter().map(|text| brought(app, text)).collect::<Result<Vec<_>, _>>()?;
    let tools: Vec<Option<&ToolRequest>> =
        if args.tools.is_empty() { vec![None] } else { args.tools.iter().map(Some).collect() };
    let count = tools.len() * args.family.0.len();
    let mut cells = Vec::new();
    for tool in tools {
        for family in &args.family.0 {
            let root = roots.iter().find(|(of, _)| of == family).map(|(_, root)| root);
            let cell = args.cell(app, &Place { tool, family: *family, root })?;
            let (number, state) = (cells.len() + 1, cell.state.word());
            app.ui.say(&format!("{number}/{count} {} on {family}: {state}", escape::line(&cell.tool)));
            cells.push(cell);
        }
    }
    let bad = |cell: &Cell| match cell.state {
        State::Pass | State::Emulated => false,
        State::Fail => true,
        State::Unavailable => !args.allow_unavailable,
    };
    let failed = cells.iter().any(bad);
    let matrix = Matrix { schema: SCHEMA, cells };
    if args.json {
        app.ui.json(&matrix)?;
    } else {
        app.ui.answer(&matrix.table())?;
    }
    Ok(if failed { ExitCode::from(Own::Failed) } else { ExitCode::SUCCESS })
}

impl TestArgs {
    fn cell(&self, app: &App, place: &Place<'_>) -> Result<Cell, CliError> {
        let mut cell = Cell {
            tool: self.which(place, None).title()?,
            family: place.family,
            state: State::Unavailable,
            why: String::new(),
            fix: None,
            root: None,
        };
        let libc = match place.on() {
            Ok((root, libc)) => {
                cell.root = Some(root);
                libc
            }
            Err(why) => {
                cell.why = why;
                return Ok(cell);
            }
        };
        match self.which(place, Some(libc)).plan() {
            Ok(plan) => self.fill(app, &plan, (place, &mut cell))?,
            // What a recipe lacks for one family it may have for the next.
            Err(error) if is_about_the_family(&error) => {
                cell.state = State::Fail;
                cell.why = chained(&error);
            }
            Err(error) => return Err(error),
        }
        Ok(cell)
    }

    fn which(&self, place: &Place<'_>, libc: Option<Libc>) -> WhichArgs {
        let platform = PlatformArgs { arch: None, libc, family: Some(place.family) };
        WhichArgs { tool: place.tool.cloned(), recipe: self.recipe.clone(), plan: None, platform }
    }

    /// Makes the tool there.
    fn fill(&self, app: &App, plan: &Plan, (place, cell): (&Place<'_>, &mut Cell)) -> Result<(), CliError> {
        ask::consent(app, plan, self.manner.answer(), self.manner.stays())?;
        match make(app, plan, self.manner.manner(place.root.map(Rootfs::root))) {
            Ok(_) => {
                let emulated = place.root.is_some_and(|root| root.release.emulated);
                cell.state = if emulated { State::Emulated } else { State::Pass };
                cell.why = String::from("made and verified");
            }
            Err(error) => {
                cell.state = if is_impossible(&error) { State::Unavailable } else { State::Fail };
                cell.why = chained(&error);
                cell.fix = error.hint();
            }
        }
        Ok(())
    }
}

impl Place<'_> {
    /// Where it can be tried, and with which C library; else why it cannot.
    fn on(&self) -> Result<(Root, Libc), String> {
        let family = self.family;
        match self.root {
            Some(root) if root.release.family == Some(family) => {
                Ok((Root::brought(root), root.libc.unwrap_or(families::family(family).libc)))
            }
            Some(root) => {
                let says =
                    root.release.family.map_or("of no known family".to_owned(), |of| format!("of {of}"));
                Err(format!("{} says that it is {says}", root.path))
            }
            None => {
                let here = machine_release();
                if here.family == Some(family) {
                    return Ok((Root::machine(here.name), libc_here()));
                }
                Err(format!(
                    "there is no root file system of it here; bring one: `--rootfs {family}=DIR|TAR|OCI`"
                ))
            }
        }
    }
}

/// Whether a recipe has no plan for this family, and may have one for others.
fn is_about_the_family(error: &CliError) -> bool {
    let CliError::Tool(error) = error else { return false };
    matches!(**error, ToolError::Assemble(AssembleError::Step { .. } | AssembleError::Nothing { .. }))
}

/// Whether nothing was tried, because what it takes is not there.
fn is_impossible(error: &CliError) -> bool {
    let CliError::Tool(error) = error else { return false };
    matches!(**error, ToolError::Make(Error::Packages { .. }))
}

fn brought(app: &App, text: &str) -> Result<(LinuxFamily, Rootfs), CliError> {
    let refused = || CliError::from(ToolError::Rootfs(text.to_owned()));
    let (family, path) = text.split_once('=').ok_or_else(refused)?;
    let family = family.parse().map_err(|_| refused())?;
    let path = HostPath::new(app::real(Path::new(path))?).map_err(CliError::HostPath)?;
    let read = rootfs(&app.environment().data()?, &path);
    let root = read.map_err(|source| ToolError::NoRootfs { path: path.into(), source })?;
    Ok((family, root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_words_with_commas() {
        let read = |text: &str| text.parse::<Families>().map(|families| families.0);
        assert_eq!(read("all").map(|all| all.len()), Ok(5));
        assert_eq!(read("arch,debian,arch"), Ok(vec![LinuxFamily::Arch, LinuxFamily::Debian]));
        assert!(read("arch,plan9").is_err() && read("").is_err());
    }
}
