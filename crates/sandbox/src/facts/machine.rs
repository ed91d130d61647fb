//! The real machine. Every question is a system call or two; nothing is kept.

use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FileType, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::net::connect;

use super::{
    Answer, Entry, Facts, Failure, FileSystem, Kind, MountPoint, Owned, Question, Said, parse_mount_list,
    parse_mountinfo,
};
use crate::model::path::HostPath;
use crate::model::platform::{Os, Platform};
use crate::os::{self, Waiting};
use crate::process::{Cli, CliError};

/// Asks the machine this process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineFacts;

impl Facts for MachineFacts {
    fn ask(&self, question: &Question) -> Answer {
        answer(question).unwrap_or_else(|error| Answer::Failed(failure(&error)))
    }
}

fn answer(question: &Question) -> io::Result<Answer> {
    Ok(match question {
        Question::Kind { path } => Answer::Kind(entry(path)?),
        Question::RealPath { path } => Answer::Path(fs_err::canonicalize(path)?),
        Question::ReadLink { path } => Answer::Path(fs_err::read_link(path)?),
        Question::ReadSmall { path, limit } => Answer::Text(read_small(path, *limit)?),
        Question::Mounts => Answer::Mounts(mounts()?),
        Question::FileSystem { path } => Answer::FileSystem(file_system(path)?),
        Question::TopLevel { path, limit } => Answer::TopLevel(top_level(path, *limit)?),
        Question::Program { name, search } => Answer::Path(program(name, search)?),
        Question::Kernel => Answer::Text(rustix::system::uname().release().to_string_lossy().into_owned()),
        Question::Stamp { path } => Answer::Text(sandtable_unpack::image::known_name(path)?),
        Question::Platform => Answer::Platform(Platform { os: HERE }),
        Question::Output { program, arguments, variables } => {
            Answer::Output(output(program, arguments, variables)?)
        }
        Question::Setting { name } => {
            let text = read_small(&Path::new("/proc/sys").join(name), 4096)?;
            Answer::Text(text.trim().to_owned())
        }
        Question::Landlock => Answer::Version(sandtable_launch::outside::machine::landlock_version()?),
        Question::Accepts { path } => Answer::Truth(accepts(path)?),
        Question::Writable { path } => Answer::Truth(writable(path)?),
        Question::Groups => {
            Answer::Groups(rustix::process::getgroups()?.into_iter().map(rustix::fs::Gid::as_raw).collect())
        }
    })
}

/// The system that this executable was made for.
const HERE: Os = if cfg!(target_os = "macos") { Os::MacOs } else { Os::Linux };

fn mounts() -> io::Result<Vec<MountPoint>> {
    match HERE {
        Os::Linux => parse_mountinfo(&fs_err::read("/proc/self/mountinfo")?).map_err(io::Error::other),
        Os::MacOs => {
            let said = output(Path::new("/sbin/mount"), &[], &[])?;
            if said.code != Some(0) {
                return Err(io::Error::other(said.stderr));
            }
            parse_mount_list(&said.stdout).map_err(io::Error::other)
        }
    }
}

fn output(program: &Path, arguments: &[String], variables: &[(String, String)]) -> io::Result<Said> {
    let program = HostPath::new(program).map_err(io::Error::other)?;
    let call = variables
        .iter()
        .fold(Cli::new(program).args(arguments), |call, (name, value)| call.variable(name, value));
    let finished = call.finish().map_err(|error| match error {
        CliError::Start { source, .. } => source,
        failed => io::Error::other(failed),
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&finished.stdout), text(&finished.stderr));
    Ok(Said { code: finished.status.code(), stdout, stderr })
}

fn failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Failure::Missing,
        io::ErrorKind::PermissionDenied => Failure::Denied,
        _ => Failure::Other(error.to_string()),
    }
}

fn entry(path: &Path) -> io::Result<Entry> {
    let stat = rustix::fs::lstat(path)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Socket => Kind::Socket,
        _ => Kind::Special,
    };
    let (mode, device) = os::mode_and_device(&stat);
    Ok(Entry {
        kind,
        mode,
        uid: stat.st_uid,
        gid: stat.st_gid,
        device,
        inode: stat.st_ino,
        readable: rustix::fs::access(path, Access::READ_OK).is_ok(),
    })
}

fn read_small(path: &Path, limit: u64) -> io::Result<String> {
    // Opened without blocking, so that a named pipe in the place of a file cannot hold us up.
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC | rustix::fs::OFlags::NONBLOCK;
    let file = std::fs::File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    file.take(limit + 1).read_to_string(&mut text)?;
    if text.len() as u64 > limit {
        return Err(io::Error::other(format!("larger than {limit} bytes")));
    }
    Ok(text)
}

fn file_system(path: &Path) -> io::Result<FileSystem> {
    let magic = os::file_system(path)?;
    let flags = rustix::fs::statvfs(path)?.f_flag;
    Ok(FileSystem { magic, read_only: flags.contains(StatVfsMountFlags::RDONLY) })
}

fn writable(path: &Path) -> io::Result<bool> {
    match rustix::fs::access(path, Access::WRITE_OK) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::ROFS | rustix::io::Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Connects without waiting: a full queue is as good as an answer. The path goes through a handle, because it may
/// be longer than an address can be.
fn accepts(path: &Path) -> io::Result<bool> {
    let (_handle, address) = os::address_of(path)?;
    let socket = os::stream_socket(Waiting::No)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::CONNREFUSED | Errno::PROTOTYPE | Errno::NOTSOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn top_level(path: &Path, limit: usize) -> io::Result<Vec<Owned>> {
    let mut entries = Vec::new();
    for entry in fs_err::read_dir(path)?.take(limit) {
        let entry = entry?;
        // An entry that is gone since the directory was read has no owner to speak of.
        let Ok(metadata) = fs_err::symlink_metadata(entry.path()) else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        entries.push(Owned { name, uid: metadata.uid(), gid: metadata.gid() });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

fn program(name: &str, search: &[PathBuf]) -> io::Result<PathBuf> {
    search
        .iter()
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|path| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok())
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn facts() -> Box<dyn Facts> {
        Box::new(MachineFacts)
    }

    #[test]
    fn files_links_and_directories_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().canonicalize().unwrap().join(name);
        fs_err::write(path("file"), "text\n").unwrap();
        symlink("file", path("link")).unwrap();
        let facts = facts();
        let file = facts.kind(path("file")).unwrap();
        assert_eq!((file.kind, file.readable), (Kind::File, true));
        assert_eq!(facts.kind(path("link")).unwrap().kind, Kind::Symlink);
        assert_eq!(facts.real_path(path("link")), Ok(path("file")));
        assert_eq!(facts.read_link(path("link")), Ok("file".into()));
        assert_eq!(facts.kind(path("none")), Err(Failure::Missing));
        assert_eq!(facts.kind(path("file/below")), Err(Failure::Missing));
        assert_eq!(facts.read_small(path("file"), 5), Ok("text\n".to_owned()));
        assert!(matches!(facts.read_small(path("file"), 4), Err(Failure::Other(_))));
        let names: Vec<String> =
            facts.top_level(dir.path(), 10).unwrap().into_iter().map(|owned| owned.name).collect();
        assert_eq!(names, ["file", "link"]);
    }

    #[test]
    fn a_named_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        assert!(matches!(facts().read_small(&pipe, 10), Err(Failure::Other(_))));
    }

    #[test]
    fn a_socket_accepts_while_somebody_listens() {
        let dir = tempfile::tempdir().unwrap();
        let (socket, file) = (dir.path().join("socket"), dir.path().join("file"));
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        fs_err::write(&file, "").unwrap();
        let facts = facts();
        assert_eq!(facts.accepts(&socket), Ok(true));
        drop(listener);
        assert_eq!(facts.accepts(&socket), Ok(false));
        assert_eq!(facts.accepts(&file), Ok(false));
        assert_eq!(facts.accepts(dir.path().join("none")), Err(Failure::Missing));
    }

    #[test]
    fn the_machine_knows_itself() {
        let facts = facts();
        assert!(facts.mounts().unwrap().iter().any(|mount| mount.target == Path::new("/")));
        assert!(facts.kernel().unwrap().contains('.'));
        assert_eq!(facts.program("sh", &["/bin".into()]), Ok("/bin/sh".into()));
        assert_eq!(facts.program("sh", &["bin".into()]), Err(Failure::Missing));
        assert!(facts.file_system("/").unwrap().magic != 0);
        assert_eq!(facts.writable("/dev/null"), Ok(true));
        assert_eq!(facts.writable("/nonexistent"), Err(Failure::Missing));
        assert!(facts.landlock().is_ok_and(|version| version > 0));
        assert!(facts.setting("kernel/pid_max").unwrap().parse::<u32>().is_ok());
    }
}
