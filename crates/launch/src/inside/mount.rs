//! Building the file system of a sandbox: every op of the plan, onto a fresh root, by descriptor.
//!
//! Nothing is mounted by a path that could be swapped in between: a source is opened once, compared with
//! what was checked before, and attached beneath the handle of the new root. What must not be seen later
//! (the lower and upper directories of overlays) is attached to a stage that lies on the old root and
//! vanishes with it.

mod dev;
mod proc;
mod scratch;
mod target;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fstat, mkdirat, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_change,
    move_mount, open_tree, unmount,
};
use rustix::process::{chdir, fchdir, pivot_root};
use sandtable_protocol::op::{Access, Identity, Ids, Op, Owner, Plan, Shift};
use sandtable_protocol::report::Control;
use sandtable_protocol::step::Step;
use sandtable_protocol::wire::Failure;

use crate::failpoint::skips;
use crate::step::Context as _;
use crate::sys::mount::{Attributes, Depth, set_attributes};
use scratch::Scratch;
use target::{Kind, prepare};

pub(crate) use dev::{DIRECTORIES, LINKS, NODES};
pub(crate) use proc::{MASKED_PARTS, READ_ONLY_PARTS};

type Done<T = ()> = Result<T, Failure>;

/// Where on the old root the stage hangs: a directory that every host has and that no op brings in. Not the
/// root itself, where it would come to lie on top of what has to be let go of in the end.
const ANCHOR: &str = "/proc";

const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
const HARMLESS: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// Builds the file system of `plan` and makes it the root of this process.
///
/// `shifted` are the idmapped mounts in the order of [`shifted_sources`], for a sandbox of root.
pub(crate) fn build(plan: &Plan, shifted: Vec<OwnedFd>) -> Done {
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .context(|| Step::PrivateMounts)?;
    let mut builder = Builder::new(plan.ids, shifted)?;
    for op in &plan.ops {
        builder.execute(op)?;
    }
    if !skips(Control::ReadOnlySystem) {
        set_attributes(&builder.root, Attributes { set: READ_ONLY | HARMLESS, id_map: None }, Depth::One)
            .context(|| Step::ReadOnlyRoot)?;
    }
    if skips(Control::RootView) { Ok(()) } else { builder.pivot() }
}

/// The host paths that a supervisor of root opens as idmapped mounts, in the order they are used.
pub(crate) fn shifted_sources(plan: &Plan) -> Vec<Shifted<'_>> {
    let Ids::Range { .. } = plan.ids else { return Vec::new() };
    let sources = plan.ops.iter().flat_map(|op| match op {
        Op::Bind { source, shift: Shift::Shift, pinned, .. } => {
            vec![Shifted { source, pinned: *pinned, depth: Depth::All }]
        }
        Op::Overlay { lower, layers, pinned, .. } => vec![
            Shifted { source: lower, pinned: *pinned, depth: Depth::One },
            Shifted { source: layers, pinned: None, depth: Depth::One },
        ],
        _ => Vec::new(),
    });
    sources.collect()
}

/// A host path whose owners are shifted into the private id range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shifted<'plan> {
    pub(crate) source: &'plan Path,
    pub(crate) pinned: Option<Identity>,
    pub(crate) depth: Depth,
}

/// Opens `source` as a detached mount of its own.
pub(crate) fn open_source(source: &Path, pinned: Option<Identity>, depth: Depth) -> Done<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW
        | OpenTreeFlags::AT_NO_AUTOMOUNT;
    if matches!(depth, Depth::All) {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    let tree = open_tree(CWD, source, flags).context(|| Step::Open(source.into()))?;
    let found = fstat(&tree).context(|| Step::LookAt(source.into()))?;
    match pinned {
        Some(pinned) if (pinned.device, pinned.inode) != (found.st_dev, found.st_ino) => {
            let step = Step::MountReplaced(source.into());
            Err(Failure { step, errno: Errno::STALE.raw_os_error() })
        }
        _ => Ok(tree),
    }
}

struct Builder {
    ids: Ids,
    /// On the old root; holds what overlays need and what nobody may see.
    stage: OwnedFd,
    root: OwnedFd,
    /// What every file system in memory is a part of.
    memory: Scratch,
    shifted: std::vec::IntoIter<OwnedFd>,
    staged: usize,
}

impl Builder {
    fn new(ids: Ids, shifted: Vec<OwnedFd>) -> Done<Self> {
        let stage = tmpfs(&[("mode", "0700")]).context(|| Step::MakeStage)?;
        attach(&stage, CWD, Path::new(ANCHOR)).context(|| Step::AttachStage)?;
        mkdirat(&stage, "root", Mode::RWXU).context(|| Step::MakeStage)?;
        let root =
            tmpfs(&[("mode", "0755"), ("size", "4m"), ("nr_inodes", "4k")]).context(|| Step::MakeRoot)?;
        attach(&root, stage.as_fd(), Path::new("root")).context(|| Step::AttachRoot)?;
        let memory = Scratch::new(stage.as_fd())?;
        Ok(Self { ids, stage, root, memory, shifted: shifted.into_iter(), staged: 0 })
    }

    fn execute(&mut self, op: &Op) -> Done {
        match op {
            Op::Directory { target } => prepare(&self.root, target, Kind::Directory).map(drop),
            Op::Symlink { target, to } => target::link(&self.root, target, to),
            Op::File { target, contents } => self.file(target, contents),
            Op::Bind { source, target, access, shift, pinned } => {
                let tree = match (self.ids, shift) {
                    (Ids::Range { .. }, Shift::Shift) => self.next_shifted(source)?,
                    _ => open_source(source, *pinned, Depth::All)?,
                };
                self.bind(&tree, target, *access)
            }
            Op::Overlay { .. } => self.overlay(op),
            Op::Tmpfs { target, size, owner } => self.scratch(target, *size, *owner),
            Op::Proc { target } => proc::mount(&self.root, target),
            Op::Dev { target } => dev::mount(&self.root, target, &mut self.memory),
            Op::Mask { target } => mask(self.root.as_fd(), target),
        }
    }

    fn bind(&self, tree: &OwnedFd, target: &Path, access: Access) -> Done {
        let read_only = match access {
            Access::Read if !skips(Control::ReadOnlySystem) => READ_ONLY,
            _ => 0,
        };
        let wanted = Attributes { set: HARMLESS | read_only, id_map: None };
        set_attributes(tree, wanted, Depth::All).context(|| Step::RestrictMount(target.into()))?;
        let found = fstat(tree).context(|| Step::LookAtMount(target.into()))?;
        let place = prepare(&self.root, target, Kind::of(found.st_mode))?;
        place.attach(tree)
    }

    fn overlay(&mut self, op: &Op) -> Done {
        let Op::Overlay { lower, layers, name, target, pins, pinned } = op else { return Ok(()) };
        let (below, above) = match self.ids {
            Ids::Range { .. } => (self.next_shifted(lower)?, self.next_shifted(layers)?),
            Ids::Same { .. } => {
                (open_source(lower, *pinned, Depth::One)?, open_source(layers, None, Depth::One)?)
            }
        };
        let (below, above) = (self.stage_mount(&below)?, self.stage_mount(&above)?);
        let layer = format!("{above}/{name}");
        let lowers = if *pins { format!("{layer}.pins:{below}") } else { below };
        let what = || Step::MountView(lower.into());
        // Layers are named relative to the stage, so that no character of a path needs escaping.
        fchdir(&self.stage).context(what)?;
        let merged = mount_overlay(&lowers, &layer).context(what)?;
        chdir("/").context(what)?;
        prepare(&self.root, target, Kind::Directory)?.attach(&merged)
    }

    /// Attaches a mount under a fresh name on the stage.
    fn stage_mount(&mut self, tree: &OwnedFd) -> Done<String> {
        let name = format!("m{}", self.staged);
        self.staged += 1;
        mkdirat(&self.stage, &name, Mode::RWXU).context(|| Step::MakeStagePlace)?;
        attach(tree, self.stage.as_fd(), Path::new(&name)).context(|| Step::AttachLayer)?;
        Ok(name)
    }

    fn next_shifted(&mut self, source: &Path) -> Done<OwnedFd> {
        self.shifted.next().ok_or_else(|| Failure {
            step: Step::MountMissing(source.into()),
            errno: Errno::BADF.raw_os_error(),
        })
    }

    fn file(&mut self, target: &Path, contents: &str) -> Done {
        let what = || Step::Write(target.into());
        let name = format!("f{}", self.staged);
        self.staged += 1;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&self.stage, &name, flags, Mode::from_raw_mode(0o644)).context(what)?;
        std::io::Write::write_all(&mut std::fs::File::from(file), contents.as_bytes()).context(what)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::OPEN_TREE_CLONE;
        let tree = open_tree(&self.stage, &name, flags).context(what)?;
        self.bind(&tree, target, Access::Read)
    }

    fn scratch(&mut self, target: &Path, size: u64, owner: Owner) -> Done {
        let what = || Step::MountPrivate(target.into());
        let mode = match owner {
            Owner::Everybody => 0o1777,
            Owner::Workload => 0o700,
        };
        let mount = match size {
            0 => self.memory.part(mode).context(what)?,
            size => tmpfs(&[("mode", &format!("{mode:o}")), ("size", &size.to_string())]).context(what)?,
        };
        prepare(&self.root, target, Kind::Directory)?.attach(&mount)
    }

    /// Makes the new root the root and lets go of the old one with everything on it.
    fn pivot(self) -> Done {
        let what = || Step::LeaveRoot;
        fchdir(&self.root).context(what)?;
        pivot_root(".", ".").context(what)?;
        unmount(".", UnmountFlags::DETACH).context(what)?;
        chdir("/").context(what)
    }
}

fn mount_overlay(lowers: &str, layer: &str) -> rustix::io::Result<OwnedFd> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "sandtable")?;
    fsconfig_set_string(&context, "lowerdir", lowers)?;
    fsconfig_set_string(&context, "upperdir", format!("{layer}.upper"))?;
    fsconfig_set_string(&context, "workdir", format!("{layer}.work"))?;
    fsconfig_set_flag(&context, "userxattr")?;
    // Without this the end of every sandbox would write out the whole file system that holds the layer, with
    // everything that other programs left to be written. The mark it leaves is removed before the next mount.
    fsconfig_set_flag(&context, "volatile")?;
    // Inode numbers of the source stay as they are, also when the layer lies on another file system:
    // git's index remains valid.
    fsconfig_set_string(&context, "xino", "auto")?;
    fsconfig_create(&context)?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

/// Hides what is at `target`: a file behind a device that cannot be opened, a directory behind an empty one.
/// What does not exist needs no hiding.
fn mask(root: BorrowedFd<'_>, target: &Path) -> Done {
    let what = || Step::Mask(target.into());
    let Some(place) = target::existing(root, target)? else { return Ok(()) };
    place.attach(&cover(place.kind).context(what)?)
}

/// What hides a file, a device that cannot be opened, or a directory, an empty one.
fn cover(kind: Kind) -> rustix::io::Result<OwnedFd> {
    let cover = match kind {
        Kind::Directory => tmpfs(&[("mode", "0555"), ("nr_inodes", "1")])?,
        Kind::File => {
            open_tree(CWD, "/dev/null", OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::OPEN_TREE_CLONE)?
        }
    };
    set_attributes(&cover, Attributes { set: READ_ONLY | HARMLESS, id_map: None }, Depth::One)?;
    Ok(cover)
}

/// A new file system in memory, not attached anywhere yet.
fn tmpfs(options: &[(&str, &str)]) -> rustix::io::Result<OwnedFd> {
    file_system("tmpfs", options, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV)
}

fn file_system(kind: &str, options: &[(&str, &str)], flags: MountAttrFlags) -> rustix::io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, *value)?;
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

fn attach(mount: &OwnedFd, onto: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<()> {
    move_mount(mount, "", onto, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}
