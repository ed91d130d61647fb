//! One directory that shows two, for an engine whose overlays have a single lower directory.
//!
//! Rootless Podman runs everything in a user and mount namespace of its own, and its containers start there. Our
//! executable is called in it, and mounts a read-only overlay that Podman then takes as the lower directory. The host
//! sees nothing of it. The overlay is mounted in a directory of a new file system in memory: whoever is not in that
//! namespace does not find the directory at all, so a container can never start on an empty one instead.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;

use rustix::fs::{CWD, Mode, mkdir};
use rustix::io::{Errno, Result};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};

/// The process that mounts. For each: the directory to be shown, in one that is empty, the upper and the lower directory.
pub fn lay(args: &[OsString]) -> ExitCode {
    for ground in args.chunks(3) {
        let [shown, above, below] = ground else { return ExitCode::FAILURE };
        if let Err(errno) = one(Path::new(shown), [above, below]) {
            let _nobody_listens = writeln!(
                std::io::stderr(),
                "cannot mount `{}`: {}",
                Path::new(shown).display(),
                std::io::Error::from(errno)
            );
            for place in args.iter().step_by(3).filter_map(|shown| Path::new(shown).parent()) {
                let _goes_with_the_namespace = off(place);
            }
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The process that unmounts what is at each of `places`.
pub fn lift(places: &[OsString]) -> ExitCode {
    let left = places.iter().filter(|place| off(Path::new(place)).is_err()).count();
    if left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What is not mounted is no failure.
fn off(place: &Path) -> Result<()> {
    match unmount(place, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        done => done,
    }
}

fn one(shown: &Path, lowers: [&OsString; 2]) -> Result<()> {
    let memory = context("tmpfs", &[("mode", "0700".into()), ("size", "4k".into())])?;
    attach(&memory, MountAttrFlags::empty(), shown.parent().ok_or(Errno::INVAL)?)?;
    mkdir(shown, Mode::RWXU)?;
    let [above, below] = lowers.map(|path| path.to_str().ok_or(Errno::INVAL));
    let overlay =
        context("overlay", &[("lowerdir", format!("{}:{}", above?, below?)), ("xino", "auto".into())])?;
    attach(&overlay, MountAttrFlags::MOUNT_ATTR_RDONLY, shown)
}

/// A file system that is ready to be mounted, with the marks of overlays in attributes of users.
fn context(kind: &str, options: &[(&str, String)]) -> Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, value.as_str())?;
    }
    if kind == "overlay" {
        fsconfig_set_flag(&context, "userxattr")?;
    }
    fsconfig_create(&context)?;
    Ok(context)
}

fn attach(context: &OwnedFd, flags: MountAttrFlags, at: &Path) -> Result<()> {
    let flags = flags | MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?;
    move_mount(&mount, "", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}
