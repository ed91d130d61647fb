//! What a step of a recipe may ask for: the primitives of plans, and composites that are made of them.

use serde::Deserialize;

use super::super::plan::step::{ArchiveFormat, PackageManager, Placement};
use super::super::plan::{FileName, InnerPath, LinuxFamily, Step};

/// What a step of a recipe does.
#[derive(Clone, Debug)]
pub enum Action {
    Primitive(Box<Step>),
    Composite(Composite),
}

/// What recipes have words for and plans do not.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum Composite {
    /// A download, unpacked; files and directories of it (`from` within the archive) make the tool.
    DownloadArchive {
        file: FileName,
        format: Option<ArchiveFormat>,
        #[serde(default)]
        strip: u32,
        install: Vec<Placement>,
        #[serde(default)]
        executables: Vec<InnerPath>,
    },
    /// A download that is the program itself.
    DownloadBinary { file: FileName, to: InnerPath },
    /// A download with source code, unpacked to `to` for the steps that follow.
    SourceArchive {
        file: FileName,
        format: Option<ArchiveFormat>,
        #[serde(default = "one")]
        strip: u32,
        #[serde(default = "source")]
        to: InnerPath,
    },
    /// Packages of the distribution, by the package manager of each family.
    SystemPackages {
        apt: Option<Vec<String>>,
        dnf: Option<Vec<String>>,
        zypper: Option<Vec<String>>,
        pacman: Option<Vec<String>>,
        apk: Option<Vec<String>>,
    },
}

/// The words of composites that no primitive has.
pub(super) const COMPOSITES: &[&str] =
    &["download_archive", "download_binary", "source_archive", "system_packages"];
/// The words of primitives, but for the one that has a composite of the same name.
pub(super) const PRIMITIVES: &[&str] = &[
    "download_file",
    "extract",
    "chmod",
    "install_binaries",
    "install_libraries",
    "set_env",
    "set_rpath",
    "link_dependencies",
    "apply_patch",
    "text_replace",
    "cmake_build",
    "configure_make",
    "meson_build",
    "cargo_build",
    "go_build",
    "npm_exec",
    "pip_install",
    "run_command",
];

/// Why a composite means nothing somewhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    #[error("the name of `{0}` does not say what kind of archive it is; say `format`")]
    Format(FileName),
    #[error("packages for `{0}` are not named")]
    NoPackages(LinuxFamily),
    #[error("packages of a distribution need a family, and none is known")]
    NoFamily,
}

impl Action {
    /// The word that the recipe has for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Primitive(step) => step.action(),
            Self::Composite(Composite::DownloadArchive { .. }) => "download_archive",
            Self::Composite(Composite::DownloadBinary { .. }) => "download_binary",
            Self::Composite(Composite::SourceArchive { .. }) => "source_archive",
            Self::Composite(Composite::SystemPackages { .. }) => "system_packages",
        }
    }

    /// Whether the family of the distribution decides what it does.
    pub fn names_family(&self) -> bool {
        matches!(self, Self::Composite(Composite::SystemPackages { .. }))
    }

    /// The primitives it is made of.
    pub fn lower(&self, family: Option<LinuxFamily>) -> Result<Vec<Step>, LowerError> {
        match self {
            Self::Primitive(step) => Ok(vec![(**step).clone()]),
            Self::Composite(composite) => composite.lower(family),
        }
    }
}

impl Composite {
    fn lower(&self, family: Option<LinuxFamily>) -> Result<Vec<Step>, LowerError> {
        match self {
            Self::DownloadArchive { file, format, strip, install, executables } => {
                let to = below("unpacked", file.as_str());
                let mut steps = unpack(file, *format, *strip, to.clone())?;
                let place = |placement: &Placement| Placement {
                    from: below(to.as_str(), placement.from.as_str()),
                    to: placement.to.clone(),
                };
                let files = install.iter().map(place).collect();
                steps.push(Step::InstallBinaries { files, executables: executables.clone() });
                Ok(steps)
            }
            Self::DownloadBinary { file, to } => {
                let from = below("downloads", file.as_str());
                let files = vec![Placement { from: from.clone(), to: to.clone() }];
                Ok(vec![
                    Step::DownloadFile { file: file.clone(), to: from },
                    Step::InstallBinaries { files, executables: vec![to.clone()] },
                ])
            }
            Self::SourceArchive { file, format, strip, to } => unpack(file, *format, *strip, to.clone()),
            Self::SystemPackages { apt, dnf, zypper, pacman, apk } => {
                let family = family.ok_or(LowerError::NoFamily)?;
                let (manager, packages) = match family {
                    LinuxFamily::Debian => (PackageManager::Apt, apt),
                    LinuxFamily::Rhel => (PackageManager::Dnf, dnf),
                    LinuxFamily::Suse => (PackageManager::Zypper, zypper),
                    LinuxFamily::Arch => (PackageManager::Pacman, pacman),
                    LinuxFamily::Alpine => (PackageManager::Apk, apk),
                };
                let packages = packages.clone().ok_or(LowerError::NoPackages(family))?;
                Ok(vec![Step::SystemPackages { manager, packages }])
            }
        }
    }
}

fn unpack(
    file: &FileName,
    format: Option<ArchiveFormat>,
    strip: u32,
    to: InnerPath,
) -> Result<Vec<Step>, LowerError> {
    let format = format.or_else(|| guess(file.as_str())).ok_or_else(|| LowerError::Format(file.clone()))?;
    let archive = below("downloads", file.as_str());
    Ok(vec![
        Step::DownloadFile { file: file.clone(), to: archive.clone() },
        Step::Extract { archive, format, to, strip },
    ])
}

/// What the ending of a name says.
fn guess(file: &str) -> Option<ArchiveFormat> {
    let endings = [
        (".whl", ArchiveFormat::Zip),
        (".zip", ArchiveFormat::Zip),
        (".crate", ArchiveFormat::TarGz),
        (".tgz", ArchiveFormat::TarGz),
        (".tar.gz", ArchiveFormat::TarGz),
        (".tar.xz", ArchiveFormat::TarXz),
        (".tar.bz2", ArchiveFormat::TarBz2),
        (".tar.zst", ArchiveFormat::TarZst),
        (".tar", ArchiveFormat::Tar),
        (".deb", ArchiveFormat::Deb),
    ];
    endings.iter().find(|(ending, _)| file.ends_with(ending)).map(|(_, format)| *format)
}

fn below(directory: &str, rest: &str) -> InnerPath {
    format!("{directory}/{rest}").parse().expect("both parts are plain")
}

fn one() -> u32 {
    1
}

fn source() -> InnerPath {
    "source".parse().expect("plain")
}
