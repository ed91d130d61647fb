//! `sandtable tool test`: one recipe on several families of distributions, as a matrix that says what was really tried.
//!
//! A family is tried on a root file system that somebody brought with `--rootfs`, or on this machine if it is of that
//! family. Where neither is there the cell says `unavailable` and why; nothing is ever called tried that was not.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sandtable_sandbox::model::choice::UnknownWord;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::session::tools::BuildRoot;
use sandtable_sandbox::tools::plan::{Libc, LinuxFamily};
use serde::Serialize;

use super::ask;
use super::install::{MannerArgs, make};
use super::which::{PlatformArgs, ToolError, WhichArgs, libc_here};
use crate::app::{self, App};
use crate::commands::SCHEMA;
use crate::error::CliError;
use crate::exit::Own;
use crate::ui::{escape, table};

/// What `tool test` takes.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// A tool, as `ninja` or `ninja@1.13`
    #[arg(value_name = "NAME[@VERSION]")]
    tool: Option<sandtable_sandbox::model::tool::ToolRequest>,
    /// A recipe of your own; more of them may provide what it depends on
    #[arg(long, value_name = "FILE")]
    recipe: Vec<PathBuf>,
    /// Families, with commas between them, or `all`
    #[arg(long, alias = "linux-family", value_name = "LIST", default_value = "all")]
    family: Families,
    /// A directory that is the root file system of a family
    #[arg(long, value_name = "FAMILY=DIR")]
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

#[derive(Serialize)]
struct Matrix {
    schema: u32,
    cells: Vec<Cell>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Cell {
    family: LinuxFamily,
    state: State,
    /// Where it was tried, or why it was not.
    why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Pass,
    Fail,
    Unavailable,
}

pub(super) fn run(app: &App, args: &TestArgs) -> Result<ExitCode, CliError> {
    let roots = args.rootfs.iter().map(|text| root(text)).collect::<Result<Vec<_>, _>>()?;
    let mut cells = Vec::new();
    for family in &args.family.0 {
        let brought = roots.iter().find(|(of, _)| of == family).map(|(_, path)| path.clone());
        cells.push(cell(app, args, *family, brought)?);
    }
    let bad = |cell: &Cell| match cell.state {
        State::Pass => false,
        State::Fail => true,
        State::Unavailable => !args.allow_unavailable,
    };
    let failed = cells.iter().any(bad);
    if args.json {
        app.ui.json(&Matrix { schema: SCHEMA, cells })?;
    } else {
        let row =
            |cell: &Cell| [cell.family.to_string(), word(cell.state).to_owned(), escape::line(&cell.why)];
        app.ui.answer(&table::aligned(&cells.iter().map(row).collect::<Vec<_>>()))?;
    }
    Ok(if failed { ExitCode::from(Own::Failed) } else { ExitCode::SUCCESS })
}

fn cell(
    app: &App,
    args: &TestArgs,
    family: LinuxFamily,
    brought: Option<HostPath>,
) -> Result<Cell, CliError> {
    let here = family_here() == Some(family);
    let (root, why, libc) = match brought {
        Some(path) => {
            let libc = libc_of(path.as_path());
            let digest = format!("tree {path}");
            let why = format!("on {path}");
            (Some(BuildRoot::Tree { path, digest }), why, libc)
        }
        None if here => (None, "on this machine".to_owned(), libc_here()),
        None => {
            let why = format!("there is no root file system of it here; bring one: `--rootfs {family}=DIR`");
            return Ok(Cell { family, state: State::Unavailable, why });
        }
    };
    let platform = PlatformArgs { arch: None, libc: Some(libc), family: Some(family) };
    let which = WhichArgs { tool: args.tool.clone(), recipe: args.recipe.clone(), plan: None, platform };
    let plan = which.plan()?;
    ask::consent(app, &plan, args.manner.answer(), args.manner.stays())?;
    Ok(match make(app, &plan, args.manner.manner(root)) {
        Ok(_) => Cell { family, state: State::Pass, why },
        Err(error) => Cell { family, state: State::Fail, why: format!("{why}: {}", chain(&error)) },
    })
}

fn chain(error: &CliError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn root(text: &str) -> Result<(LinuxFamily, HostPath), CliError> {
    let refused = || CliError::from(ToolError::Rootfs(text.to_owned()));
    let (family, path) = text.split_once('=').ok_or_else(refused)?;
    let family = family.parse().map_err(|_| refused())?;
    Ok((family, HostPath::new(app::real(Path::new(path))?).map_err(CliError::HostPath)?))
}

/// The family of this machine, if it says so.
fn family_here() -> Option<LinuxFamily> {
    let text =
        fs_err::read_to_string("/etc/os-release").or_else(|_| fs_err::read_to_string("/usr/lib/os-release"));
    family_of(&text.unwrap_or_default())
}

fn family_of(release: &str) -> Option<LinuxFamily> {
    let value = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches(['"', '\'']).to_owned()
    };
    let (id, like) = (value("ID"), value("ID_LIKE"));
    std::iter::once(id.as_str()).chain(like.split(' ')).find_map(|word| match word {
        "debian" | "ubuntu" => Some(LinuxFamily::Debian),
        "rhel" | "fedora" | "centos" => Some(LinuxFamily::Rhel),
        "arch" => Some(LinuxFamily::Arch),
        "alpine" => Some(LinuxFamily::Alpine),
        "suse" | "opensuse" | "sles" => Some(LinuxFamily::Suse),
        _ => None,
    })
}

fn libc_of(root: &Path) -> Libc {
    let loader = root.join(format!("lib/ld-musl-{}.so.1", std::env::consts::ARCH));
    if loader.symlink_metadata().is_ok() { Libc::Musl } else { Libc::Glibc }
}

fn word(state: State) -> &'static str {
    match state {
        State::Pass => "pass",
        State::Fail => "fail",
        State::Unavailable => "unavailable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_read_from_what_the_system_says() {
        assert_eq!(family_of("ID=debian\n"), Some(LinuxFamily::Debian));
        assert_eq!(
            family_of("NAME=x\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"),
            Some(LinuxFamily::Rhel)
        );
        assert_eq!(family_of("ID=opensuse-leap\nID_LIKE='suse opensuse'"), Some(LinuxFamily::Suse));
        assert_eq!(family_of("ID=haiku\n"), None);
    }

    #[test]
    fn families_are_words_with_commas() {
        let read = |text: &str| text.parse::<Families>().map(|families| families.0);
        assert_eq!(read("all").map(|all| all.len()), Ok(5));
        assert_eq!(read("arch,debian,arch"), Ok(vec![LinuxFamily::Arch, LinuxFamily::Debian]));
        assert!(read("arch,plan9").is_err() && read("").is_err());
    }

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        let cell = |state| Cell { family: LinuxFamily::Arch, state, why: "on this machine".to_owned() };
        let cells = [State::Pass, State::Fail, State::Unavailable].map(cell).to_vec();
        crate::schema::check("tool-test.json", &Matrix { schema: SCHEMA, cells });
    }
}
