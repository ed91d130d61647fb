//! The root file system that steps see: the base programs of this machine with the libraries they need, or a whole
//! tree that somebody brought, or an image of a container engine.

use fs_err as fs;
use sandtable_sandbox::model::layer::LayerName;
use sandtable_sandbox::model::mount::{Content, HostAccess, Mount, Ownership, Pins};
use sandtable_sandbox::model::path::{BoxPath, HostPath};
use sandtable_sandbox::model::resolved::Identity;
use sandtable_sandbox::model::setting::Origin;
use sandtable_sandbox::model::tool::bare;
use sha2::Digest as _;

use super::DepsMode;
use super::error::Error;
use super::image::{self, BuildImage};
use crate::elf::{Libc, Root};
use crate::execute::{HOME, base_commands};
use crate::family::Release;
use crate::plan::Sha256;

/// Where the system of a sandbox comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildRoot {
    /// This machine's: libraries, and of its programs only the base ones.
    Machine,
    /// All programs of this machine.
    WholeMachine,
    /// A directory that is a root file system; `digest` is what it is known by.
    Tree { path: HostPath, digest: String },
    /// An image of a container engine, which then also runs the steps.
    Image(Box<BuildImage>),
}

/// Directories of the machine that programs need and that hold no programs.
const LIBRARIES: [&str; 4] = ["/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec"];
/// Data that programs of the base read.
const DATA: [&str; 1] = ["/usr/share"];
/// Places that are links into `/usr` on most machines, and directories on others.
const MERGED: [&str; 3] = ["/lib", "/lib32", "/lib64"];
/// Entries of a tree that every sandbox has its own of.
pub(super) const OWN: [&str; 8] = ["proc", "dev", "sys", "tmp", "run", "opt", "home", "build"];
/// No `os-release` needs more bytes.
const LARGEST_RELEASE: u64 = 64 << 10;
const USERS: &str = "root:x:0:0:root:/root:/bin/sh\nbuilder:x:1000:1000:builder:/home/builder:/bin/sh\n";
const GROUPS: &str = "root:x:0:\nbuilder:x:1000:\n";

/// A root file system that was looked at.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) digest: String,
    pub(super) libc: Libc,
    /// What it says about itself.
    pub(super) release: Release,
    pub(super) system: System,
    mounts: Vec<Mount>,
}

/// Whose a root file system is, and its files where they can be read from here.
#[derive(Debug)]
pub(super) enum System {
    /// This machine's, or parts of it.
    Machine(Root),
    /// One that somebody brought, into a view of which packages can be installed.
    Tree(Root),
    /// One that only its engine can show.
    Image(Box<BuildImage>),
}

impl BuildRoot {
    /// As much of this machine as a step sees when nobody names another system: all of it where no dependency is ours.
    pub fn here(deps: DepsMode) -> Self {
        match deps {
            DepsMode::Image => Self::WholeMachine,
            DepsMode::Store | DepsMode::Isolated => Self::Machine,
        }
    }

    pub(super) fn seen(&self) -> Result<Seen, Error> {
        let (known, mounts, files) = match self {
            Self::Machine => ("base", machine(&Programs::Base), Root::new("/")),
            Self::WholeMachine => ("machine", machine(&Programs::All), Root::new("/")),
            Self::Tree { path, digest } => (digest.as_str(), tree(path)?, Root::new(path.as_path())),
            Self::Image(image) => return Ok(Seen::of_image(image)),
        };
        let libc = files.libc().clone();
        let bytes = release_bytes(&files);
        let digest = digest([known.as_bytes(), &bytes, libc.to_string().as_bytes()]);
        let release = Release::read(&String::from_utf8_lossy(&bytes));
        let system =
            if matches!(self, Self::Tree { .. }) { System::Tree(files) } else { System::Machine(files) };
        Ok(Seen { digest, libc, release, system, mounts })
    }
}

/// What tools are known by that were made on an image: the image's id and nothing else, since that covers all of it.
pub(super) fn image_digest(id: &str) -> String {
    digest([b"image", bare(id).as_bytes(), b""])
}

/// With its length before it no part can be read as the end of another.
fn digest(parts: [&[u8]; 3]) -> String {
    let mut hash = sha2::Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).expect("memory is smaller").to_be_bytes());
        hash.update(part);
    }
    Sha256(hash.finalize().into()).to_string()
}

/// What a root file system says about itself.
pub(super) fn release(files: &Root) -> Release {
    Release::read(&String::from_utf8_lossy(&release_bytes(files)))
}

pub(super) fn release_bytes(files: &Root) -> Vec<u8> {
    let read = |path| files.read(path, LARGEST_RELEASE);
    read("/etc/os-release").or_else(|| read("/usr/lib/os-release")).unwrap_or_default()
}

impl Seen {
    fn of_image(image: &BuildImage) -> Self {
        Self {
            digest: image_digest(&image.made_on.id),
            libc: image.looked.libc.clone(),
            release: Release::read(&image.looked.release),
            system: System::Image(Box::new(image.clone())),
            mounts: Vec::new(),
        }
    }

    /// The image, if it is one.
    pub(super) fn image(&self) -> Option<&BuildImage> {
        match &self.system {
            System::Image(image) => Some(image),
            System::Machine(_) | System::Tree(_) => None,
        }
    }

    /// The system's part of the file system of a step. An image names whom the steps run as.
    pub(super) fn mounts(&self, identity: Identity) -> Vec<Mount> {
        self.image().map_or_else(|| self.mounts.clone(), |_| image::mounts(identity))
    }

    /// The same, writable: a view of the tree, directory by directory, that keeps what changes in layers of the
    /// sandbox. The tree stays as it is.
    pub(super) fn writable_mounts(&self, identity: Identity) -> Vec<Mount> {
        let view = |mut mount: Mount| {
            match mount.content {
                Content::Host { source, access: HostAccess::Read, .. } if source.as_path().is_dir() => {
                    let layer = layer(&source);
                    mount.content = Content::Cow { source, layer, pins: Pins::None, identity: None };
                }
                // Package managers have their locks there.
                Content::Empty => mount.content = Content::Scratch { size: 0 },
                _ => {}
            }
            mount
        };
        self.mounts(identity).into_iter().map(view).collect()
    }
}

/// The name of the layer that holds what changes in a directory of a tree.
fn layer(directory: &HostPath) -> LayerName {
    let name = directory.as_path().file_name().unwrap_or_default();
    LayerName::root(&name.to_string_lossy()).expect("the name of a directory is one of a file")
}

enum Programs {
    Base,
    All,
}

fn machine(programs: &Programs) -> Vec<Mount> {
    let mut mounts = own();
    let text = |contents: &str| Content::Text { contents: contents.to_owned() };
    mounts.push(mount("/etc/passwd", text(USERS), "names for the ids inside"));
    mounts.push(mount("/etc/group", text(GROUPS), "names for the ids inside"));
    for path in ["/etc/ld.so.cache", "/etc/os-release"] {
        mounts.extend(
            real(path).map(|source| mount(path, shown(source), "what loaders and scripts ask the system")),
        );
    }
    match programs {
        // On Debian and its kin many programs, the compiler among them, are links by way of the second.
        Programs::All => mounts.extend(
            ["/usr", "/etc/alternatives"]
                .into_iter()
                .filter_map(|path| Some(mount(path, shown(real(path)?), "the system"))),
        ),
        Programs::Base => {
            let places = LIBRARIES.iter().chain(&DATA);
            mounts.extend(places.filter_map(|path| {
                Some(mount(path, shown(real(path)?), "libraries and data of the system"))
            }));
            for name in base_commands() {
                let found = ["/usr/bin", "/bin"].iter().find_map(|place| real(&format!("{place}/{name}")));
                let target = format!("/usr/bin/{name}");
                mounts.extend(found.map(|source| mount(&target, shown(source), "a base program")));
            }
        }
    }
    for path in MERGED {
        let content = match fs::read_link(path) {
            Ok(to) => to.to_str().map(|to| Content::Link { to: to.to_owned() }),
            Err(_) => real(path).map(shown),
        };
        mounts.extend(content.map(|content| mount(path, content, "libraries of the system")));
    }
    for path in ["/bin", "/sbin"] {
        mounts.push(mount(
            path,
            Content::Link { to: "usr/bin".to_owned() },
            "where scripts look for programs",
        ));
    }
    mounts
}

/// The entries of a tree, one by one; nothing is made in it.
fn tree(path: &HostPath) -> Result<Vec<Mount>, Error> {
    let failed = |source| Error::Root { root: path.to_string(), source };
    let mut mounts = own();
    for entry in fs::read_dir(path.as_path()).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if OWN.contains(&name.as_str()) {
            continue;
        }
        let kind = entry.file_type().map_err(failed)?;
        let source = path.join(&name);
        let content = if kind.is_symlink() {
            let to = fs::read_link(source.as_path()).map_err(failed)?;
            to.to_str().map(|to| Content::Link { to: to.to_owned() })
        } else {
            (kind.is_dir() || kind.is_file()).then_some(Content::Host {
                source,
                access: HostAccess::Read,
                ownership: Ownership::Caller,
                identity: None,
            })
        };
        mounts.extend(
            content.map(|content| mount(&format!("/{name}"), content, "part of the root file system")),
        );
    }
    Ok(mounts)
}

pub(super) fn own() -> Vec<Mount> {
    [
        ("/proc", Content::Processes, "the sandbox's own processes"),
        ("/dev", Content::Devices, "the few devices every program may have"),
        ("/tmp", Content::Scratch { size: 0 }, "temporary files, gone with the command"),
        ("/run", Content::Empty, "no socket of the host is reachable"),
        (HOME, Content::Scratch { size: 0 }, "a home directory, gone with the command"),
    ]
    .map(|(path, content, reason)| mount(path, content, reason))
    .into()
}

/// What a path of this machine leads to.
fn real(path: &str) -> Option<HostPath> {
    fs::canonicalize(path).ok().and_then(|path| HostPath::new(path).ok())
}

fn shown(source: HostPath) -> Content {
    Content::Host { source, access: HostAccess::Read, ownership: Ownership::System, identity: None }
}

pub(super) fn mount(path: &str, content: Content, reason: &str) -> Mount {
    let target = BoxPath::new(path).expect("absolute");
    Mount { target, content, reason: reason.to_owned(), origin: Origin::Default }
}
