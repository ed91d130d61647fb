//! Where sandboxes live on disk, and the lock that says which of them run.

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant, SystemTime};

use fs_err as fs;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, mkdirat, openat, renameat_with};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::rand::{GetRandomFlags, getrandom};
use sandtable_store::lock::FileLock;
use sandtable_store::remove::remove_tree;

use super::error::Error;
use crate::engine;
use crate::model::id::SandboxName;
use crate::model::path::HostPath;

/// The directory of all sandboxes.
#[derive(Clone, Debug)]
pub struct Sandboxes {
    root: HostPath,
}

/// How long an unlocked directory without a name may be a creation still under way.
const YOUNG: Duration = Duration::from_secs(10);

impl Sandboxes {
    /// Sandboxes below our data directory. Nothing is made yet.
    pub fn new(data: &HostPath) -> Self {
        Self { root: data.join("sandboxes") }
    }

    /// The directory of that sandbox, whether or not it exists.
    pub(super) fn at(&self, name: &SandboxName) -> SandboxDirectory {
        SandboxDirectory { path: self.root.join(name.as_str()) }
    }

    /// Makes an unnamed directory with its lock held. It gets its name when it is complete.
    pub(super) fn make(&self) -> Result<(SandboxDirectory, FileLock), Error> {
        let path = self.root.join(format!(".new-{:016x}", random()));
        if let Err(Errno::NOENT) = mkdirat(CWD, path.as_path(), Mode::RWXU) {
            fs::create_dir_all(self.root.as_path()).map_err(Error::state("make", self.root.as_path()))?;
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            fs::set_permissions(self.root.as_path(), private)
                .map_err(Error::state("protect", self.root.as_path()))?;
            mkdirat(CWD, path.as_path(), Mode::RWXU)
                .map_err(|errno| Error::state("make", path.as_path())(errno.into()))?;
        }
        let directory = SandboxDirectory { path };
        let lock = directory.try_lock()?.expect("nobody else knows the random name");
        Ok((directory, lock))
    }

    /// Names of all sandboxes, sorted. What is not a sandbox's name is passed over.
    pub(super) fn names(&self) -> Result<Vec<SandboxName>, Error> {
        let mut names: Vec<SandboxName> =
            self.entries()?.iter().filter_map(|name| name.parse().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Removes creations and removals that died on the way.
    pub(super) fn reap_unnamed(&self) -> Result<(), Error> {
        for name in
            self.entries()?.iter().filter(|name| name.starts_with(".new-") || name.starts_with(".trash-"))
        {
            let directory = SandboxDirectory { path: self.root.join(name) };
            let old = fs::metadata(directory.path.as_path())
                .and_then(|found| found.modified())
                .is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > YOUNG));
            if old && let Ok(Some(_lock)) = directory.try_lock() {
                directory.delete()?;
            }
        }
        Ok(())
    }

    fn entries(&self) -> Result<Vec<String>, Error> {
        let entries = match fs::read_dir(self.root.as_path()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::state("read", self.root.as_path())(error)),
        };
        Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }
}

/// The directory of one sandbox.
#[derive(Clone, Debug)]
pub(super) struct SandboxDirectory {
    path: HostPath,
}

impl SandboxDirectory {
    pub(super) fn path(&self) -> &HostPath {
        &self.path
    }

    pub(super) fn exists(&self) -> bool {
        self.path.join("sandbox.json").as_path().exists()
    }

    /// The lock, unless somebody holds it.
    pub(super) fn try_lock(&self) -> Result<Option<FileLock>, Error> {
        let path = self.path.join("lock");
        FileLock::try_exclusive(path.as_path())
            .map_err(|error| Error::state("lock", path.as_path())(std::io::Error::other(error)))
    }

    /// Takes the final name. `None` if it is taken.
    pub(super) fn name(&self, sandboxes: &Sandboxes, name: &SandboxName) -> Result<Option<Self>, Error> {
        let named = sandboxes.at(name);
        match renameat_with(CWD, self.path.as_path(), CWD, named.path.as_path(), RenameFlags::NOREPLACE) {
            Ok(()) => Ok(Some(named)),
            Err(Errno::EXIST) => Ok(None),
            Err(errno) => Err(Error::state("name", named.path.as_path())(errno.into())),
        }
    }

    /// Removes the control groups that a killed supervisor left. The lock must be held.
    pub(super) fn reap_groups(&self) {
        engine::reap(&self.path);
    }

    /// Removes everything. The name is free at once; a crash on the way leaves something to reap.
    pub(super) fn delete(&self) -> Result<(), Error> {
        self.reap_groups();
        let trash = self.path.parent().expect("below the root").join(format!(".trash-{:016x}", random()));
        fs::rename(self.path.as_path(), trash.as_path())
            .map_err(Error::state("remove", self.path.as_path()))?;
        remove_tree(trash.as_path()).map_err(|error| Error::state("remove", trash.as_path())(error.source))
    }

    /// A socket that listens for commands in this sandbox. The lock must be held.
    pub(super) fn listen(&self) -> Result<OwnedFd, Error> {
        let path = self.path.join("control");
        let failed = |errno: Errno| Error::state("listen at", path.as_path())(errno.into());
        let _stale = fs::remove_file(path.as_path());
        let (_directory, address) = self.control_address().map_err(failed)?;
        let socket = stream_socket().map_err(failed)?;
        bind(&socket, &address).map_err(failed)?;
        listen(&socket, 64).map_err(failed)?;
        Ok(socket)
    }

    /// A connection to PID 1 of this sandbox, if it listens.
    pub(super) fn connect(&self) -> Option<OwnedFd> {
        let (_directory, address) = self.control_address().ok()?;
        let socket = stream_socket().ok()?;
        connect(&socket, &address).ok()?;
        Some(socket)
    }

    /// The address of the control socket, through a handle of its directory: the path itself may be longer
    /// than an address can be.
    fn control_address(&self) -> Result<(OwnedFd, SocketAddrUnix), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, self.path.as_path(), flags, Mode::empty())?;
        let address =
            SocketAddrUnix::new(format!("/proc/self/fd/{}/control", directory.as_fd().as_raw_fd()))?;
        Ok((directory, address))
    }

    /// Tries `attempt` until it yields something or `limit` has passed.
    pub(super) fn retry<T>(
        limit: Duration,
        mut attempt: impl FnMut() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let end = Instant::now() + limit;
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(found) = attempt()? {
                return Ok(Some(found));
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

fn stream_socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// A random number for names.
pub(super) fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty()).expect("the kernel has randomness");
    u64::from_ne_bytes(bytes)
}
