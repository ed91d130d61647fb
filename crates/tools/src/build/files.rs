//! What is done to the directories of a plan from outside. Commands of the plan have written there, so every name is
//! reached by handle and nothing is followed.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, fchmod, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::os;
use sandtable_store::dir::{names, open_dir, open_named};
use sandtable_store::open_safe;
use sandtable_store::wildcard::{Syntax, Wildcard};
use sandtable_unpack::archive::{Format, Limits, Options, unpack};

use super::error::StepError;
use crate::plan::InnerPath;
use crate::plan::step::ArchiveFormat;

/// The largest file that a text is replaced in.
const LARGEST_TEXT: u64 = 16 << 20;
/// How much one archive of a tool may hold.
const LIMITS: Limits = Limits { bytes: 8 << 30, entries: 500_000 };

/// A directory that foreign commands write to.
#[derive(Debug)]
pub(super) struct Foreign(OwnedFd);

impl Foreign {
    pub(super) fn open(path: &HostPath) -> Result<Self, StepError> {
        open_named(path.as_path()).map(Self).map_err(|errno| failed("open", &path.to_string())(errno.into()))
    }

    /// Writes a file anew, whatever was in its place.
    pub(super) fn write(
        &self,
        path: &InnerPath,
        content: &mut dyn io::Read,
        mode: u32,
    ) -> Result<(), StepError> {
        let file = self.fresh(path)?;
        let mut file = File::from(file);
        io::copy(content, &mut file).map_err(failed("write", path.as_str()))?;
        file.flush().map_err(failed("write", path.as_str()))?;
        fchmod(&file, os::mode(mode)).map_err(|errno| failed("protect", path.as_str())(errno.into()))
    }

    /// Opens a file to read it.
    pub(super) fn read(&self, path: &InnerPath) -> Result<File, StepError> {
        let opened = open_safe(self.0.as_fd(), path.as_str().as_bytes())
            .map_err(|source| StepError::Unsafe { path: path.to_string(), source })?;
        opened.open_file().map(File::from).map_err(|errno| failed("open", path.as_str())(errno.into()))
    }

    pub(super) fn replace(&self, path: &InnerPath, find: &str, replace: &str) -> Result<(), StepError> {
        let file = self.read(path)?;
        let mode = file.metadata().map_err(failed("look at", path.as_str()))?;
        let mut text = Vec::new();
        file.take(LARGEST_TEXT).read_to_end(&mut text).map_err(failed("read", path.as_str()))?;
        let text = String::from_utf8(text).map_err(|error| {
            failed("read", path.as_str())(io::Error::new(io::ErrorKind::InvalidData, error))
        })?;
        if find.is_empty() || !text.contains(find) {
            return Err(StepError::NoText(path.to_string()));
        }
        let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o755;
        self.write(path, &mut text.replace(find, replace).as_bytes(), mode)
    }

    pub(super) fn unpack(
        &self,
        to: &InnerPath,
        archive: File,
        (format, strip): (ArchiveFormat, u32),
    ) -> Result<(), sandtable_unpack::archive::Error> {
        let into = self.directory(to).map_err(|errno| sandtable_unpack::archive::Error::Write {
            name: to.to_string(),
            source: errno.into(),
        })?;
        let format = match format {
            ArchiveFormat::Zip => Format::Zip,
            ArchiveFormat::Deb => Format::Deb,
            _ => Format::Tar,
        };
        let strip = usize::try_from(strip).unwrap_or(usize::MAX);
        let options = Options { format: Some(format), strip, limits: LIMITS, ..Options::default() };
        unpack(archive, into, &options).map(drop)
    }

    /// The names in a directory that match, sorted.
    pub(super) fn matching(&self, path: &InnerPath, pattern: &str) -> Result<Vec<String>, StepError> {
        let directory = self.existing(path).map_err(|errno| failed("open", path.as_str())(errno.into()))?;
        let all = names(directory.as_fd()).map_err(|errno| failed("read", path.as_str())(errno.into()))?;
        let texts = all.into_iter().filter_map(|name| String::from_utf8(name.bytes).ok());
        let wildcard = Wildcard::new(pattern, Syntax::Name);
        let mut found: Vec<String> = texts.filter(|name| wildcard.matches(name)).collect();
        found.sort();
        if found.is_empty() { Err(StepError::NoMatch(format!("{path}/{pattern}"))) } else { Ok(found) }
    }

    /// Whether anything has that name; a link counts, as most libraries are found by one, and no directory on the way may be one.
    pub(super) fn has(&self, path: &InnerPath) -> bool {
        let text = path.as_str();
        let (above, name) = text.rsplit_once('/').map_or(("", text), |(above, name)| (above, name));
        let steps = above.split('/').filter(|name| !name.is_empty());
        let directory = reopened(self.0.as_fd()).and_then(|top| {
            steps.into_iter().try_fold(top, |here, name| open_dir(here.as_fd(), name.as_bytes()))
        });
        directory.is_ok_and(|directory| statat(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }

    fn existing(&self, path: &InnerPath) -> Result<OwnedFd, Errno> {
        path.as_str()
            .split('/')
            .try_fold(reopened(self.0.as_fd())?, |here, name| open_dir(here.as_fd(), name.as_bytes()))
    }

    /// The directory at `path`, made where it is missing.
    fn directory(&self, path: &InnerPath) -> Result<OwnedFd, Errno> {
        path.as_str().split('/').try_fold(reopened(self.0.as_fd())?, |here, name| enter(here.as_fd(), name))
    }

    fn fresh(&self, path: &InnerPath) -> Result<OwnedFd, StepError> {
        let make = || {
            let parent = match path.parent() {
                Some(parent) => self.directory(&parent)?,
                None => reopened(self.0.as_fd())?,
            };
            match unlinkat(&parent, path.file_name(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(&parent, path.file_name(), flags, Mode::RUSR | Mode::WUSR)
        };
        make().map_err(|errno| failed("make", path.as_str())(errno.into()))
    }
}

fn reopened(directory: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    sandtable_store::dir::reopen(directory)
}

fn enter(here: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    match open_dir(here, name.as_bytes()) {
        Err(Errno::NOENT) => {
            mkdirat(here, name, Mode::from_raw_mode(0o755))?;
            open_dir(here, name.as_bytes())
        }
        opened => opened,
    }
}

fn failed(what: &'static str, path: &str) -> impl FnOnce(io::Error) -> StepError {
    let path = path.to_owned();
    move |source| StepError::File { what, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recipe says the pattern, and a command of its plan the names.
    #[test]
    fn no_pattern_and_name_take_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("d")).unwrap();
        for name in ["a".repeat(250), "libx.so.1".to_owned()] {
            fs_err::write(dir.path().join("d").join(name), "").unwrap();
        }
        let foreign = Foreign::open(&HostPath::new(dir.path()).unwrap()).unwrap();
        let path = "d".parse::<InnerPath>().unwrap();
        assert_eq!(foreign.matching(&path, "lib?.so*").unwrap(), ["libx.so.1"]);
        assert!(foreign.matching(&path, &("*a".repeat(120) + "b")).is_err());
    }
}
