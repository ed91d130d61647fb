//! Files of the host: reading what was not exposed, writing what is shared.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use sandtable_protocol::report::Control::{self, MinimalDev, ReadOnlySystem, RootView};

use super::finding::describe;
use super::procfs::bytes;
use super::{Attempt, Finding, Probe};

pub(super) const PROBES: &[Probe] = &[
    probe("open-sensitive", &["box/F1"], &[RootView], open_sensitive),
    probe("read-mark", &["box/F3", "box/F4"], &[RootView], read_mark),
    probe("write-path", &["box/F16", "box/F21"], &[ReadOnlySystem], write_path),
    probe("create-path", &["box/F21"], &[ReadOnlySystem], create_path),
    probe("append", &["box/F7", "box/F9", "box/F20"], &[RootView], append),
    probe("rename", &["box/F6"], &[RootView], rename),
    probe("hard-link", &["box/F9"], &[RootView], hard_link),
    probe("dev-nodes", &["box/F18", "box/P22"], &[MinimalDev], |_| dev_nodes()),
    probe("nosuid", &["box/F17"], &[Control::NoNewPrivileges], nosuid),
    probe("size-limit", &["box/F19", "box/P16"], &[], size_limit),
    probe("sparse-file", &["box/F19"], &[], |_| sparse_file()),
];

/// What a sandbox may have in `/dev`.
const DEVICES: &[&str] = &[
    "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "stdin", "stdout",
    "stderr", "console", "mqueue", "core",
];

const fn probe(
    name: &'static str,
    attacks: &'static [&'static str],
    claims: &'static [Control],
    steps: fn(&[OsString]) -> Finding,
) -> Probe {
    Probe { name, attacks, claims, attempt: Attempt::Steps(steps) }
}

/// `PATH…`: files or directories of the host that must not be there, or not to be opened.
fn open_sensitive(paths: &[OsString]) -> Finding {
    none_of(paths, |path| File::open(path).is_ok_and(|file| !is_empty_directory(&file, path)))
}

/// A directory that is there only as the way to something else shows nothing.
fn is_empty_directory(file: &File, path: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.is_dir())
        && path.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}

/// `MARK PATH…`: files that may be there, but not with these contents.
fn read_mark(args: &[OsString]) -> Finding {
    let Some((mark, paths)) = args.split_first() else { return Finding::unsupported("needs a mark") };
    let mark = mark.as_encoded_bytes();
    none_of(paths, |path| {
        let contents = bytes(path, 1 << 20).unwrap_or_default();
        contents.windows(mark.len().max(1)).any(|window| window == mark)
    })
}

/// `PATH…`: opened for writing, not written.
fn write_path(paths: &[OsString]) -> Finding {
    none_of(paths, |path| match OpenOptions::new().write(true).open(path) {
        Ok(_) => true,
        Err(error) => error.raw_os_error() == Some(libc::ETXTBSY),
    })
}

/// `PATH…`: files that do not exist, made and removed again.
fn create_path(paths: &[OsString]) -> Finding {
    none_of(paths, |path| {
        let made = OpenOptions::new().write(true).create_new(true).open(path).is_ok();
        made && rustix::fs::unlink(path).is_ok()
    })
}

/// `PATH`: really written. Where it went is for the caller to find out.
fn append(args: &[OsString]) -> Finding {
    let Some(path) = args.first() else { return Finding::unsupported("needs a path") };
    let file = OpenOptions::new().append(true).create(true).open(path);
    Finding::of_work(file.and_then(|mut file| file.write_all(b"probe\n")), "written")
}

/// `FROM TO`: really renamed. Where it went is for the caller to find out.
fn rename(args: &[OsString]) -> Finding {
    let [from, to] = args else { return Finding::unsupported("needs two paths") };
    Finding::of_work(rustix::fs::rename(Path::new(from), Path::new(to)).map_err(Into::into), "renamed")
}

/// `FROM TO`: a second name, in a place that can be written, for a file that cannot.
fn hard_link(args: &[OsString]) -> Finding {
    let [from, to] = args else { return Finding::unsupported("needs two paths") };
    Finding::of_io(rustix::fs::link(Path::new(from), Path::new(to)).map_err(Into::into), "linked")
}

fn dev_nodes() -> Finding {
    let entries = match Path::new("/dev").read_dir() {
        Ok(entries) => entries,
        Err(error) => return Finding::blocked(describe(&error)),
    };
    let names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let count = names.len();
    let others: Vec<String> = names.into_iter().filter(|name| !DEVICES.contains(&name.as_str())).collect();
    Finding::leak_if_any(&others, format!("only {count} known ones"))
}

/// `PATH…`: writable file systems on which a set-user-id bit must mean nothing.
fn nosuid(paths: &[OsString]) -> Finding {
    none_of(paths, |path| {
        rustix::fs::statvfs(path)
            .is_ok_and(|data| !data.f_flag.contains(rustix::fs::StatVfsMountFlags::NOSUID))
    })
}

/// `PATH…`: those that are file systems in memory must have limits that come to half of the memory at most.
fn size_limit(paths: &[OsString]) -> Finding {
    let info = rustix::system::sysinfo();
    let memory = u64::from(info.mem_unit).saturating_mul(info.totalram);
    let mut sizes = std::collections::BTreeMap::new();
    for path in paths.iter().map(Path::new) {
        let (Ok(found), Ok(entry)) = (rustix::fs::statfs(path), rustix::fs::stat(path)) else { continue };
        if found.f_type == libc::TMPFS_MAGIC {
            let block = u64::try_from(found.f_bsize).unwrap_or(0);
            let size = if found.f_blocks == 0 { u64::MAX } else { found.f_blocks.saturating_mul(block) };
            sizes.insert(entry.st_dev, size);
        }
    }
    let sum = sizes.values().fold(0_u64, |sum, size| sum.saturating_add(*size));
    if sum <= memory / 2 + (1 << 20) {
        Finding::works(format!("{} limited, {} MiB in all", sizes.len(), sum >> 20))
    } else {
        Finding::blocked(format!("{} MiB of {} can be filled", sum >> 20, memory >> 20))
    }
}

/// Ten terabytes that take no room.
fn sparse_file() -> Finding {
    let name = Path::new("probe-sparse");
    let made = File::create(name).and_then(|file| file.set_len(10 << 40));
    rustix::fs::unlink(name).ok();
    match made {
        Ok(()) => Finding::works("takes no room"),
        Err(error) => Finding::works(format!("refused cleanly: {}", describe(&error))),
    }
}

/// A leak if the attempt succeeds on any of the paths.
fn none_of(paths: &[OsString], succeeds: impl Fn(&Path) -> bool) -> Finding {
    if paths.is_empty() {
        return Finding::unsupported("needs a path");
    }
    let found: Vec<String> = paths
        .iter()
        .filter(|path| succeeds(Path::new(path)))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    Finding::leak_if_any(&found, format!("none of {}", paths.len()))
}
