//! What can go wrong about tools.

use std::io;
use std::path::PathBuf;

use sandtable_app::workshop::UnknownMachine;
use sandtable_sandbox::model::spec::EngineChoice;
use sandtable_sandbox::model::tool::ToolRequest;
use sandtable_tools::assemble::AssembleError;
use sandtable_tools::build::{Error as MakeError, ImageError, RootfsError};
use sandtable_tools::consent::ConsentError;
use sandtable_tools::depot::DepotError;
use sandtable_tools::plan::PlanError;
use sandtable_tools::recipe::RecipeError;

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

impl From<AssembleError> for ToolError {
    fn from(error: AssembleError) -> Self {
        Self::Assemble(error)
    }
}
