//! The primitive steps of a plan. A recipe has more words; all of them are made of these.
//!
//! Unless a field says otherwise its paths are below the work directory of the plan. `out` in a name means below the output
//! directory. Commands are programs with arguments and never go through a shell of ours.

use std::collections::BTreeMap;

use sandtable_sandbox::model::choice::choice;
use sandtable_sandbox::model::tool::ToolName;
use serde::{Deserialize, Serialize};

use super::download::FileName;
use super::path::InnerPath;

choice! {
    /// How an archive is packed. A wheel is a `zip`; a crate and an npm package are `tar.gz`.
    ArchiveFormat {
        Tar = "tar",
        TarGz = "tar.gz",
        TarXz = "tar.xz",
        TarBz2 = "tar.bz2",
        TarZst = "tar.zst",
        Zip = "zip",
        Deb = "deb",
    }
}

choice! {
    /// The program that installs packages of a family of distributions.
    PackageManager { Apt = "apt", Dnf = "dnf", Zypper = "zypper", Pacman = "pacman", Apk = "apk" }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Puts a download, which was fetched and checked before, into the work directory.
    DownloadFile { file: FileName, to: InnerPath },
    /// Unpacks an archive of the work directory into `to`, without its first `strip` path components.
    Extract {
        archive: InnerPath,
        format: ArchiveFormat,
        to: InnerPath,
        #[serde(default, skip_serializing_if = "is_zero")]
        strip: u32,
    },
    /// Sets the permission bits of files.
    Chmod { files: Vec<InnerPath>, mode: FileMode },
    /// Copies files or whole directories into the output, and makes `executables` there executable.
    InstallBinaries { files: Vec<Placement>, executables: Vec<InnerPath> },
    /// Copies what matches `patterns` (`*` and `?` within one name) in the directory `from` to `to` in the output. A
    /// pattern without a match is an error.
    InstallLibraries { from: InnerPath, patterns: Vec<String>, to: InnerPath },
    /// Variables for the steps that follow.
    SetEnv { vars: BTreeMap<String, String> },
    /// Sets where programs in the output look for their libraries. `$ORIGIN` is theirs.
    SetRpath { binaries: Vec<InnerPath>, rpath: String },
    /// Links files of a dependency (paths below its place) into the directory `to` of the output.
    LinkDependencies { dependency: ToolName, files: Vec<InnerPath>, to: InnerPath },
    /// Applies a unified diff, from a file of the work directory or written here, in `directory`.
    ApplyPatch {
        patch: Patch,
        #[serde(default, skip_serializing_if = "is_zero")]
        strip: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<InnerPath>,
    },
    /// Replaces a text in a file, everywhere. Not finding it is an error.
    TextReplace { file: InnerPath, find: String, replace: String },
    /// Configures, builds and installs with cmake and make; `zig` is the compiler.
    CmakeBuild(CmakeBuild),
    /// Configures with the package's own script, builds and installs with make; `zig` is the compiler.
    ConfigureMake(ConfigureMake),
    /// Configures with meson, builds and installs with ninja; `zig` is the compiler.
    MesonBuild(MesonBuild),
    /// Builds a Rust package from its lock file and the crates among the downloads, offline.
    CargoBuild(CargoBuild),
    /// Builds a Go package from the modules that are in its tree or among the downloads, offline.
    GoBuild(GoBuild),
    /// Installs an npm package with the packages among the downloads, offline, without their scripts.
    NpmExec(NpmExec),
    /// Installs the wheels among the downloads into the output, offline.
    PipInstall(PipInstall),
    /// Runs a program.
    RunCommand {
        command: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<InnerPath>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    /// Installs packages of the distribution into the root file system of the sandbox, and nowhere else.
    SystemPackages { manager: PackageManager, packages: Vec<String> },
}

/// Where a patch is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Patch {
    File(InnerPath),
    Data(String),
}

/// A file or directory of the work directory, and its place in the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    pub from: InnerPath,
    pub to: InnerPath,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CmakeBuild {
    pub source: InnerPath,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    #[serde(default = "release", skip_serializing_if = "is_release")]
    pub build_type: String,
    /// Targets that are built before the installation; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Files that must be in the output afterwards.
    pub outputs: Vec<InnerPath>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigureMake {
    pub source: InnerPath,
    /// Whether there is a `configure` to run; a package may have a makefile only.
    #[serde(default, skip_serializing_if = "Configure::is_run")]
    pub configure: Configure,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configure_arguments: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub make_arguments: Vec<String>,
    /// Targets that are built before `make install`; empty means the default one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    pub outputs: Vec<InnerPath>,
}

/// Whether a package's `configure` is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Configure {
    #[default]
    Run,
    Skip,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MesonBuild {
    pub source: InnerPath,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    #[serde(default = "release", skip_serializing_if = "is_release")]
    pub build_type: String,
    pub outputs: Vec<InnerPath>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CargoBuild {
    pub source: InnerPath,
    /// The crates that its lock file names: files of the downloads of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crates: Vec<FileName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Programs that it makes, by name; they go to `bin/` of the output.
    pub binaries: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoBuild {
    pub source: InnerPath,
    /// What to build, as `go build` names it.
    pub package: String,
    /// Module archives among the downloads, unpacked as if they had been vendored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<GoModule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The program that it makes; it goes to `bin/` of the output.
    pub binary: String,
}

/// A module of Go that stands in the work directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoModule {
    pub path: String,
    pub directory: InnerPath,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NpmExec {
    /// The package itself first, then all it depends on: files of the downloads, each with its place below
    /// `lib/` of the output, as in `node_modules/a/node_modules/b`.
    pub packages: Vec<NpmPackage>,
    /// Programs that are offered in `bin/` of the output: name and the script below `lib/` that node runs.
    pub binaries: BTreeMap<String, InnerPath>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NpmPackage {
    pub file: FileName,
    pub to: InnerPath,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipInstall {
    /// Wheels among the downloads. They go to `lib/python` of the output.
    pub wheels: Vec<FileName>,
    /// Programs that are offered in `bin/` of the output: name and entry point as `module:function`.
    pub binaries: BTreeMap<String, String>,
}

/// Permission bits: no more than everybody may read and execute and the owner may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileMode(u32);

/// Why a text is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a mode: use octal digits, at most 755, without set-id and sticky bits")]
pub struct ModeError(String);

impl FileMode {
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl TryFrom<String> for FileMode {
    type Error = ModeError;

    fn try_from(text: String) -> Result<Self, ModeError> {
        match u32::from_str_radix(&text, 8) {
            Ok(bits) if bits & !0o755 == 0 && text.len() <= 4 && !text.starts_with('+') => Ok(Self(bits)),
            _ => Err(ModeError(text)),
        }
    }
}

impl From<FileMode> for String {
    fn from(mode: FileMode) -> Self {
        format!("{:o}", mode.0)
    }
}

impl Step {
    /// The word that names it in plans and recipes.
    pub fn action(&self) -> &'static str {
        match self {
            Self::DownloadFile { .. } => "download_file",
            Self::Extract { .. } => "extract",
            Self::Chmod { .. } => "chmod",
            Self::InstallBinaries { .. } => "install_binaries",
            Self::InstallLibraries { .. } => "install_libraries",
            Self::SetEnv { .. } => "set_env",
            Self::SetRpath { .. } => "set_rpath",
            Self::LinkDependencies { .. } => "link_dependencies",
            Self::ApplyPatch { .. } => "apply_patch",
            Self::TextReplace { .. } => "text_replace",
            Self::CmakeBuild(_) => "cmake_build",
            Self::ConfigureMake(_) => "configure_make",
            Self::MesonBuild(_) => "meson_build",
            Self::CargoBuild(_) => "cargo_build",
            Self::GoBuild(_) => "go_build",
            Self::NpmExec(_) => "npm_exec",
            Self::PipInstall(_) => "pip_install",
            Self::RunCommand { .. } => "run_command",
            Self::SystemPackages { .. } => "system_packages",
        }
    }

    /// Whether it compiles something.
    pub fn builds(&self) -> bool {
        matches!(
            self,
            Self::CmakeBuild(_)
                | Self::ConfigureMake(_)
                | Self::MesonBuild(_)
                | Self::CargoBuild(_)
                | Self::GoBuild(_)
        )
    }

    /// The downloads it takes.
    pub fn files(&self) -> Vec<&FileName> {
        match self {
            Self::DownloadFile { file, .. } => vec![file],
            Self::CargoBuild(build) => build.crates.iter().collect(),
            Self::NpmExec(exec) => exec.packages.iter().map(|package| &package.file).collect(),
            Self::PipInstall(install) => install.wheels.iter().collect(),
            _ => Vec::new(),
        }
    }
}

impl Configure {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
    fn is_run(&self) -> bool {
        *self == Self::Run
    }
}

fn release() -> String {
    "release".to_owned()
}

fn is_release(text: &str) -> bool {
    text == "release"
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
