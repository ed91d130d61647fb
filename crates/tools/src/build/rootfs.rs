//! Root file systems that somebody brings along: a directory, an archive or an OCI layout, known by what is in it.
//!
//! An archive or a layout is unpacked as images are, and known by its digest. A directory is read through once: its
//! digest covers every name, mode, link and byte that a sandbox would show of it, so a tool that was made in it is not
//! taken for one that was made in what it is today. Nothing is made in a directory, and whatever it says about itself is
//! only text.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::readlinkat;
use rustix::io::Errno;
use sandtable_sandbox::attention::Interruptible;
use sandtable_sandbox::model::observe::Observer as _;
use sandtable_sandbox::model::path::HostPath;
use sandtable_store::RelPath;
use sandtable_store::dir::{Kind, Meta, names, open_dir, open_file, open_named, stat_at};
use sandtable_unpack::image::{self, Form, Images, Limits};
use sha2::Digest as _;

use super::root::{self, BuildRoot};
use crate::elf;
use crate::family::Release;
use crate::plan::{Libc, Sha256};

/// How deep its directories may be.
const DEEPEST: usize = 128;

/// A root file system, ready to be used.
#[derive(Clone, Debug)]
pub struct Rootfs {
    /// What was named, and what that is.
    pub path: HostPath,
    form: Form,
    /// The directory that is the root.
    pub tree: HostPath,
    /// What it is known by.
    pub digest: String,
    /// What it says about itself.
    pub release: Release,
    /// Its C library, if it has one that we know.
    pub libc: Option<Libc>,
}

/// Why something is no root file system.
#[derive(Debug, thiserror::Error)]
pub enum RootfsError {
    #[error(transparent)]
    Image(#[from] image::Error),
    #[error("its `{path}` cannot be read")]
    Read {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("its directories are nested too deeply")]
    Deep,
    #[error("the path of what was unpacked cannot be used")]
    Path,
}

/// The root file system at `path`; archives and layouts are unpacked below our `data` directory, once.
pub fn rootfs(data: &HostPath, path: &HostPath) -> Result<Rootfs, RootfsError> {
    let form = image::form(path.as_path())?;
    let (tree, digest) = match form {
        Form::Directory => (path.clone(), format!("tree-sha256-{}", digest(path)?)),
        Form::Archive | Form::Layout => {
            let observer = Interruptible::new(&());
            let cancelled = || observer.cancelled();
            let images = Images::new(data.join("images"), Limits::default()).unless(&cancelled);
            let kept = images.unpacked(path.as_path())?;
            (HostPath::new(kept.root).map_err(|_| RootfsError::Path)?, kept.digest)
        }
    };
    let files = elf::Root::new(tree.as_path());
    let release = root::release(&files);
    let libc = files.libc().name().parse().ok();
    Ok(Rootfs { path: path.clone(), form, tree, digest, release, libc })
}

/// What this machine says about itself.
pub fn machine_release() -> Release {
    root::release(&elf::Root::new("/"))
}

impl Rootfs {
    /// What was named, in a word.
    pub fn form(&self) -> &'static str {
        match self.form {
            Form::Directory => "directory",
            Form::Archive => "archive",
            Form::Layout => "layout",
        }
    }

    /// To make tools in.
    pub fn root(&self) -> BuildRoot {
        BuildRoot::Tree { path: self.tree.clone(), digest: self.digest.clone() }
    }
}

/// The hash of all that a sandbox would show of a directory.
fn digest(path: &HostPath) -> Result<Sha256, RootfsError> {
    let mut reading = Reading { hash: sha2::Sha256::new(), buffer: vec![0; 128 << 10] };
    let top = open_named(path.as_path())
        .map_err(|errno| RootfsError::Read { path: ".".to_owned(), source: errno.into() })?;
    reading.directory(top.as_fd(), &RelPath::root())?;
    Ok(Sha256(reading.hash.finalize().into()))
}

struct Reading {
    hash: sha2::Sha256,
    buffer: Vec<u8>,
}

impl Reading {
    fn directory(&mut self, directory: BorrowedFd<'_>, path: &RelPath) -> Result<(), RootfsError> {
        let depth = path.components().count();
        if depth > DEEPEST {
            return Err(RootfsError::Deep);
        }
        let mut found = names(directory).map_err(|errno| failed(path, errno))?;
        found.sort_by(|a, b| a.bytes.cmp(&b.bytes));
        for name in found {
            // Every sandbox has its own of these.
            let own = || root::OWN.iter().any(|own| own.as_bytes() == name.bytes);
            if depth == 0 && own() {
                continue;
            }
            let below = path.join(&name.bytes).map_err(|_| failed(path, Errno::INVAL))?;
            self.entry(directory, &name.bytes, &below)?;
        }
        self.part(b"end");
        Ok(())
    }

    fn entry(&mut self, parent: BorrowedFd<'_>, name: &[u8], path: &RelPath) -> Result<(), RootfsError> {
        let meta = stat_at(parent, name).map_err(|errno| failed(path, errno))?;
        self.part(name);
        self.part(&meta.mode.to_be_bytes());
        match meta.kind {
            Kind::Directory => match open_dir(parent, name) {
                Ok(inner) => {
                    self.part(b"directory");
                    self.directory(inner.as_fd(), path)?;
                }
                Err(errno) => self.closed(path, &meta, errno)?,
            },
            Kind::Symlink => {
                let to = readlinkat(parent, name, Vec::new()).map_err(|errno| failed(path, errno))?;
                self.part(b"link");
                self.part(to.as_bytes());
            }
            Kind::File => match open_file(parent, name, &meta) {
                Ok(file) => {
                    self.part(b"file");
                    self.part(&meta.size.to_be_bytes());
                    self.bytes(File::from(file))
                        .map_err(|source| RootfsError::Read { path: path.display_escaped(), source })?;
                }
                Err(errno) => self.closed(path, &meta, errno)?,
            },
            // A sandbox shows it, and cannot use it.
            _ => self.part(b"special"),
        }
        Ok(())
    }

    /// What we may not read, nobody inside may either.
    fn closed(&mut self, path: &RelPath, meta: &Meta, errno: Errno) -> Result<(), RootfsError> {
        if errno != Errno::ACCESS && errno != Errno::PERM {
            return Err(failed(path, errno));
        }
        self.part(b"closed");
        self.part(&meta.size.to_be_bytes());
        Ok(())
    }

    fn bytes(&mut self, mut file: File) -> io::Result<()> {
        loop {
            match file.read(&mut self.buffer)? {
                0 => return Ok(()),
                read => self.hash.update(&self.buffer[..read]),
            }
        }
    }

    /// With its length before it no part can be read as the end of another.
    fn part(&mut self, bytes: &[u8]) {
        self.hash.update(u64::try_from(bytes.len()).expect("memory is smaller").to_be_bytes());
        self.hash.update(bytes);
    }
}

fn failed(path: &RelPath, errno: Errno) -> RootfsError {
    RootfsError::Read { path: path.display_escaped(), source: errno.into() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for directory in ["etc", "usr/bin", "tmp", "proc"] {
            fs_err::create_dir_all(place.path().join(directory)).unwrap();
        }
        let release = "ID=rhel\nPRETTY_NAME=x\nVARIANT_ID=emulated\n";
        fs_err::write(place.path().join("etc/os-release"), release).unwrap();
        fs_err::os::unix::fs::symlink("usr/bin", place.path().join("bin")).unwrap();
        place
    }

    fn of(place: &tempfile::TempDir) -> Rootfs {
        let path = HostPath::new(place.path()).unwrap();
        rootfs(&path.join("none"), &path).unwrap()
    }

    #[test]
    fn a_directory_is_known_by_all_that_a_sandbox_shows_of_it() {
        let (one, other) = (tree(), tree());
        let first = of(&one);
        assert!(first.digest.starts_with("tree-sha256-") && first.digest == of(&other).digest);
        assert!(first.release.emulated && first.libc.is_none());
        let changes: [&dyn Fn(&std::path::Path); 5] = [
            &|root| fs_err::write(root.join("usr/new"), "").unwrap(),
            &|root| fs_err::write(root.join("usr/new"), "text").unwrap(),
            &|root| {
                fs_err::set_permissions(root.join("usr/new"), std::fs::Permissions::from_mode(0o755))
                    .unwrap();
            },
            &|root| fs_err::rename(root.join("usr/new"), root.join("usr/bin/new")).unwrap(),
            &|root| {
                fs_err::remove_file(root.join("bin")).unwrap();
                fs_err::os::unix::fs::symlink("usr/sbin", root.join("bin")).unwrap();
            },
        ];
        let mut seen = vec![first.digest];
        for change in changes {
            change(one.path());
            let digest = of(&one).digest;
            assert!(!seen.contains(&digest), "after {} changes", seen.len());
            seen.push(digest);
        }
        fs_err::write(one.path().join("tmp/new"), "not shown").unwrap();
        assert_eq!(of(&one).digest, *seen.last().unwrap());
    }

    #[test]
    fn a_pipe_in_a_tree_is_not_waited_for() {
        let place = tree();
        let pipe = place.path().join("etc/ld.so.conf.d");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            rustix::fs::makedev(0, 0),
        )
        .unwrap();
        assert!(!of(&place).digest.is_empty());
    }
}
