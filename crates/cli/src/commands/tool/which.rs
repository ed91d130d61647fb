//! Which tool is meant: one of the built-in ones, a recipe or a plan in a file; and for which platform.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use sandtable_app::workshop::{UnknownMachine, arch_here, libc_here};
use sandtable_sandbox::model::platform::Os;
use sandtable_sandbox::model::spec::EngineChoice;
use sandtable_sandbox::model::tool::ToolRequest;
use sandtable_tools::assemble::{AssembleError, Shelf};
use sandtable_tools::build::{Error as MakeError, ImageError, RootfsError};
use sandtable_tools::builtin;
use sandtable_tools::consent::ConsentError;
use sandtable_tools::depot::DepotError;
use sandtable_tools::family as families;
use sandtable_tools::plan::{Arch, Libc, LinuxFamily, Plan, PlanError, PlanPlatform};
use sandtable_tools::recipe::{self, Recipe, RecipeError};

use crate::args::words;
use crate::error::CliError;

/// No plan needs more bytes.
const LARGEST_PLAN: u64 = 16 << 20;

/// Why a tool command did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    #[error("name a tool, or say `--recipe FILE` or `--plan FILE`")]
    Nothing,
    #[error("could not read `{}`", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("`{}` is larger than {limit} bytes", path.display())]
    Large { path: PathBuf, limit: u64 },
    #[error("`{}` is no recipe that can be used", path.display())]
    Recipe { path: PathBuf, source: RecipeError },
    #[error("`{}` is no plan that can be used", path.display())]
    Plan { path: PathBuf, source: PlanError },
    #[error("there is no plan")]
    Assemble(#[source] AssembleError),
    #[error(transparent)]
    Machine(#[from] UnknownMachine),
    #[error(transparent)]
    Consent(#[from] ConsentError),
    #[error(transparent)]
    Make(#[from] MakeError),
    #[error(transparent)]
    Depot(#[from] DepotError),
    #[error("tool `{0}` is not kept here yet")]
    NotKept(ToolRequest),
    #[error("no kept tool is called `{0}`")]
    NoSuchTool(String),
    #[error("`{word}` means several kept tools: {}", keys.join(", "))]
    Several { word: String, keys: Vec<String> },
    #[error("`{0}` is not a root file system: say `FAMILY=DIR`, `FAMILY=TAR` or `FAMILY=OCI`")]
    Rootfs(String),
    #[error("`{}` cannot be used as a root file system", path.display())]
    NoRootfs { path: PathBuf, source: RootfsError },
    #[error(transparent)]
    Image(ImageError),
    #[error("on `{0}` a tool is made on an image, and none was named")]
    NoImage(EngineChoice),
    #[error("natively a tool is made on this machine, and on no image")]
    NativeImage,
    #[error("`{0}` did not come with the program and nobody consented to it")]
    NoConsent(String),
}

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
    #[arg(long, value_name = "ARCH", value_parser = words(Arch::ALL, Arch::word))]
    pub(super) arch: Option<Arch>,
    /// For another C library
    #[arg(long, value_name = "LIBC", value_parser = words(Libc::ALL, Libc::word))]
    pub(super) libc: Option<Libc>,
    /// For a family of distributions
    #[arg(long, alias = "linux-family", value_name = "FAMILY", value_parser = words(LinuxFamily::ALL, LinuxFamily::word))]
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

impl From<AssembleError> for ToolError {
    fn from(error: AssembleError) -> Self {
        Self::Assemble(error)
    }
}
