//! Which tool is meant: one of the built-in ones, a recipe or a plan in a file; and for which platform.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use sandtable_app::workshop::{arch_here, libc_here};
use sandtable_sandbox::model::platform::Os;
use sandtable_sandbox::model::tool::ToolRequest;
use sandtable_tools::assemble::Shelf;
use sandtable_tools::builtin;
use sandtable_tools::family as families;
use sandtable_tools::plan::{Arch, Libc, LinuxFamily, Plan, PlanPlatform};
use sandtable_tools::recipe::{self, Recipe};

use crate::args::words;
use crate::error::{CliError, ToolError};

/// No plan needs more bytes.
const LARGEST_PLAN: u64 = 16 << 20;

/// Which tool.
#[derive(Debug, Args)]
pub(super) struct WhichArgs {
    /// A tool, as `ninja` or `ninja@1.13`
    #[arg(value_name = "NAME[@VERSION]")]
    pub(super) tool: Option<ToolRequest>,
    /// A recipe of your own; more of them may provide what it depends on
    #[arg(long, value_name = "FILE")]
    pub(super) recipe: Vec<PathBuf>,
    /// A plan that was made before; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tool", "recipe"])]
    pub(super) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(super) platform: PlatformArgs,
}

/// For which platform; this machine's when left out.
#[derive(Debug, Args)]
pub(super) struct PlatformArgs {
    /// For another processor
    #[arg(long, value_name = "ARCH", value_parser = words(Arch::ALL))]
    pub(super) arch: Option<Arch>,
    /// For another C library
    #[arg(long, value_name = "LIBC", value_parser = words(Libc::ALL))]
    pub(super) libc: Option<Libc>,
    /// For a family of distributions
    #[arg(long, alias = "linux-family", value_name = "FAMILY", value_parser = words(LinuxFamily::ALL))]
    pub(super) family: Option<LinuxFamily>,
}

impl PlatformArgs {
    /// The platform; `usual` is the C library of where it is made for, if that is not this machine.
    pub(super) fn target(&self, usual: Option<Libc>) -> Result<PlanPlatform, ToolError> {
        let family = self.family;
        let usual = usual.or_else(|| family.map(|name| families::family(name).libc));
        Ok(PlanPlatform {
            os: Os::Linux,
            arch: self.arch.map_or_else(arch_here, Ok)?,
            libc: self.libc.or(usual).unwrap_or_else(libc_here),
            linux_family: family,
        })
    }
}

impl WhichArgs {
    /// The plan that is meant, checked.
    pub(super) fn plan(&self) -> Result<Plan, CliError> {
        self.plan_on(None)
    }

    /// The same for a root file system with that C library.
    pub(super) fn plan_on(&self, libc: Option<Libc>) -> Result<Plan, CliError> {
        if let Some(path) = &self.plan {
            return Ok(plan_file(path)?);
        }
        let read = self.read()?;
        let stock = Shelf::new(builtin::recipes(), &read).map_err(ToolError::Assemble)?;
        let recipe = self.chosen(&stock, &read)?;
        Ok(stock.plan(recipe, self.platform.target(libc)?).map_err(ToolError::Assemble)?)
    }

    /// The name and version of what is meant, whether or not there is a plan for it.
    pub(super) fn title(&self) -> Result<String, CliError> {
        let read = self.read()?;
        let stock = Shelf::new(builtin::recipes(), &read).map_err(ToolError::Assemble)?;
        let recipe = self.chosen(&stock, &read)?;
        Ok(format!("{} {}", recipe.name, recipe.version))
    }

    fn read(&self) -> Result<Vec<Recipe>, ToolError> {
        self.recipe.iter().map(|path| recipe_file(path)).collect()
    }

    fn chosen<'a>(&self, stock: &Shelf<'a>, read: &'a [Recipe]) -> Result<&'a Recipe, ToolError> {
        match (&self.tool, read.first()) {
            (Some(request), _) => stock.find(request).map_err(ToolError::Assemble),
            (None, Some(first)) => Ok(first),
            (None, None) => Err(ToolError::Nothing),
        }
    }
}

/// A plan in a file, checked.
pub(super) fn plan_file(path: &Path) -> Result<Plan, ToolError> {
    let text = contents(path, LARGEST_PLAN)?;
    Plan::from_json(&text).map_err(|source| ToolError::Plan { path: path.to_owned(), source })
}

fn recipe_file(path: &Path) -> Result<Recipe, ToolError> {
    let text = contents(path, recipe::LARGEST)?;
    Recipe::parse(&text).map_err(|source| ToolError::Recipe { path: path.to_owned(), source })
}

fn contents(path: &Path, limit: u64) -> Result<String, ToolError> {
    let failed = |source| ToolError::Read { path: path.to_owned(), source };
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(limit + 1).read_to_string(&mut text)
    } else {
        fs_err::File::open(path).map_err(failed)?.take(limit + 1).read_to_string(&mut text)
    };
    read.map_err(failed)?;
    if text.len() as u64 > limit {
        return Err(ToolError::Large { path: path.to_owned(), limit });
    }
    Ok(text)
}
