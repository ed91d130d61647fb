//! An image of a container engine as the root file system that steps see.
//!
//! Nothing of it is unpacked here: what has to be known of it our own executable finds out in a container of it, with no
//! network and nothing of the host's but itself. A tool that was made on an image is known by the image's id.

use std::time::{Duration, Instant};

use sandtable_sandbox::attention::Interruptible;
use sandtable_sandbox::engine::oci::image::ensure;
use sandtable_sandbox::engine::{LaunchError, can_start};
use sandtable_sandbox::model::container::Container;
use sandtable_sandbox::model::image::ResolvedImage;
use sandtable_sandbox::model::limits::Limits;
use sandtable_sandbox::model::mount::{Content, Mount};
use sandtable_sandbox::model::observe::Observer;
use sandtable_sandbox::model::path::{BoxPath, HostPath};
use sandtable_sandbox::model::resolved::{EngineName, Identity};
use sandtable_sandbox::model::tool::MadeOn;
use sandtable_sandbox::resolve::Engaged;
use sandtable_sandbox::session::Sandboxes;
use sandtable_sandbox::session::SessionError;
use sandtable_sandbox::session::one_shot::OneShot;

use super::ISOLATED;
use super::error::Error;
use super::fit::{Answer, Looked, Question, ask};
use super::root::{mount, own};
use super::spec::{Steps, spec};
use crate::depot::Depot;
use crate::execute::HOME;
use crate::plan::Libc;

/// How long a look at an image may take once its container runs.
const LOOKING: Duration = Duration::from_mins(1);

/// An image that is there and was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildImage {
    pub(super) container: Container,
    pub(super) image: ResolvedImage,
    /// What it is, for people and for later.
    pub made_on: MadeOn,
    pub(super) looked: Looked,
}

/// Why an image is no place to make tools on.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// What would keep a sandbox from being made on it as well.
    #[error(transparent)]
    Sandbox(#[from] SessionError),
    #[error("the image `{0}` has no shell, and the steps of a tool are commands for one")]
    NoShell(String),
    #[error("a container of the image `{0}` did not say what is in it")]
    NoAnswer(String),
}

impl From<LaunchError> for ImageError {
    fn from(error: LaunchError) -> Self {
        Self::Sandbox(error.into())
    }
}

/// The image that a container engine is asked for, fetched if it may be, and looked at in a container of it. That lives
/// below `sandboxes`, where the next call finds what a killed one left.
pub fn build_image(
    sandboxes: &Sandboxes,
    engaged: Engaged,
    identity: Identity,
    observer: &dyn Observer,
) -> Result<BuildImage, ImageError> {
    can_start()?;
    sandboxes.reap_containers()?;
    let Engaged { engine, container, mut image } = engaged;
    ensure(&container, &mut image, &Interruptible::new(observer)).map_err(LaunchError::from)?;
    let made_on = made_on(engine, &image);
    let looked = Looked { libc: crate::elf::Libc::None, release: String::new(), has_shell: false };
    let unseen = BuildImage { container, image, made_on, looked };
    let steps = Steps {
        on: Some(&unseen),
        identity,
        source: HostPath::new("/").expect("absolute"),
        directory: BoxPath::new("/").expect("absolute"),
        mounts: mounts(identity),
        limits: Limits::default(),
    };
    let inside = OneShot::new(sandboxes, spec(steps)?)?;
    let answer = ask(&inside, &Question::Look, Instant::now() + LOOKING)?;
    let Some(Answer::Looked(looked)) = answer else {
        return Err(ImageError::NoAnswer(unseen.made_on.image));
    };
    if !looked.has_shell {
        return Err(ImageError::NoShell(unseen.made_on.image));
    }
    Ok(BuildImage { looked, ..unseen })
}

/// Whether tools can be made in containers below `depot`: what the options of an overlay are separated by cannot be in the
/// path of one.
pub(super) fn check_place(depot: &HostPath) -> Result<(), Error> {
    let path = depot.to_string();
    if path.contains([',', ':', '"', '\\']) { Err(Error::Place(path)) } else { Ok(()) }
}

/// Removes the containers and volumes that killed builders left, of whichever tool. Those of a living one are locked.
pub(super) fn reap(depot: &HostPath) {
    let entries = fs_err::read_dir(depot.as_path()).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let isolated = names.filter(|name| name.starts_with(ISOLATED)).map(|name| depot.join(name));
    for depot in isolated.chain([depot.clone()]) {
        for partial in Depot::new(depot).partials() {
            // What cannot be removed now is removed by the next builder.
            let _left = Sandboxes::new(&partial).reap_containers();
        }
    }
}

fn made_on(engine: EngineName, image: &ResolvedImage) -> MadeOn {
    match image {
        ResolvedImage::Named { name, id, .. } => {
            MadeOn { engine, image: name.to_string(), id: id.clone().unwrap_or_default() }
        }
        ResolvedImage::Tree { .. } => unreachable!("no container engine is asked for a directory"),
    }
}

impl BuildImage {
    /// The C library of the image, if it has one that we know.
    pub fn libc(&self) -> Option<Libc> {
        self.looked.libc.name().parse().ok()
    }
}

/// What stands in an image besides its own files.
pub(super) fn mounts(identity: Identity) -> Vec<Mount> {
    let text = |contents: String| Content::Text { contents };
    let mut mounts = own();
    mounts.push(mount("/var/tmp", Content::Scratch { size: 0 }, "the other place for temporary files"));
    mounts.push(mount("/etc/passwd", text(users(identity)), "names for the ids inside"));
    mounts.push(mount("/etc/group", text(groups(identity)), "names for the ids inside"));
    mounts
}

fn users(Identity { uid, gid }: Identity) -> String {
    let builder =
        if uid == 0 { String::new() } else { format!("builder:x:{uid}:{gid}:builder:{HOME}:/bin/sh\n") };
    format!("root:x:0:0:root:/root:/bin/sh\n{builder}")
}

fn groups(Identity { gid, .. }: Identity) -> String {
    let builder = if gid == 0 { String::new() } else { format!("builder:x:{gid}:\n") };
    format!("root:x:0:\n{builder}")
}
