//! What `/proc` and `/sys` show of the host and let be changed.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sandtable_protocol::report::Control::{
    self, NoCapabilities, PidNamespace, PrivateIds, ProcMasks, RootView, SealedInit,
};

use super::finding::describe;
use super::{Attempt, Finding, Probe};

const SETTINGS: &[Control] = &[ProcMasks, PrivateIds];

pub(super) const PROBES: &[Probe] = &[
    probe("proc-self-root", &["box/F11"], &[RootView], proc_self_root),
    probe("proc-1-environ", &["box/P1", "box/P18"], &[SealedInit], |_| init_readable("environ")),
    probe("proc-1-mem", &["box/P1"], &[SealedInit], |_| open_for_reading("/proc/1/mem")),
    probe("proc-1-root", &["box/P1", "box/F11"], &[SealedInit], |_| init_link("root")),
    probe("proc-1-cwd", &["box/P1", "box/F11"], &[SealedInit], |_| init_link("cwd")),
    probe("proc-1-fd", &["box/P1", "box/F12"], &[SealedInit], |_| init_descriptors()),
    probe("proc-exe-write", &["box/P2"], &[SealedInit], |_| init_executable()),
    probe("proc-sys-writable", &["box/P3", "box/P19"], SETTINGS, |_| writable_below(&["/proc/sys"])),
    probe("proc-irq-bus-writable", &["box/P3"], SETTINGS, |_| {
        writable_below(&["/proc/irq", "/proc/bus", "/proc/acpi", "/proc/fs"])
    }),
    probe("core-pattern", &["box/P3", "box/P19"], SETTINGS, |_| {
        open_for_writing("/proc/sys/kernel/core_pattern")
    }),
    probe("sysrq", &["box/P3"], SETTINGS, |_| open_for_writing("/proc/sysrq-trigger")),
    probe("kcore", &["box/P18"], SETTINGS, |_| readable("/proc/kcore")),
    probe("proc-keys", &["box/P9", "box/P18"], SETTINGS, |_| readable("/proc/keys")),
    probe("timer-list", &["box/P18"], SETTINGS, |_| readable("/proc/timer_list")),
    probe("kallsyms", &["box/P18"], &[NoCapabilities], |_| kallsyms()),
    probe("sys-writable", &["box/P17"], &[RootView], |_| writable_below(&["/sys/kernel", "/sys/module"])),
    probe("sys-firmware", &["box/P18"], &[RootView], |_| sys_firmware()),
    probe("cgroup-write", &["box/P17"], &[RootView], |_| writable_below(&["/sys/fs/cgroup"])),
    probe("host-process", &["box/P13", "box/P18"], &[PidNamespace], host_process),
];

const fn probe(
    name: &'static str,
    attacks: &'static [&'static str],
    claims: &'static [Control],
    steps: fn(&[OsString]) -> Finding,
) -> Probe {
    Probe { name, attacks, claims, attempt: Attempt::Steps(steps) }
}

/// `PATH…`: canaries of the host, looked for through every link that leads to a root directory.
fn proc_self_root(paths: &[OsString]) -> Finding {
    let roots = ["/proc/self/root", "/proc/1/root", "/proc/self/cwd/../../../../../../../..", "/proc/1/cwd"];
    let mut seen = Vec::new();
    for path in paths {
        let below = Path::new(path).strip_prefix("/").unwrap_or(Path::new(path));
        seen.extend(
            roots.iter().map(|root| Path::new(root).join(below)).filter(|path| File::open(path).is_ok()),
        );
    }
    Finding::leak_if_any(&shown(&seen), format!("{} links lead nowhere", roots.len() * paths.len()))
}

fn init_readable(file: &str) -> Finding {
    match bytes(Path::new("/proc/1").join(file).as_path(), 4096) {
        Ok(bytes) if bytes.is_empty() => Finding::blocked("empty"),
        Ok(bytes) => Finding::leak(format!("{} bytes", bytes.len())),
        Err(error) => Finding::blocked(describe(&error)),
    }
}

fn init_link(link: &str) -> Finding {
    let path = Path::new("/proc/1").join(link);
    Finding::of_io(path.read_dir(), &format!("{} can be listed", path.display()))
}

fn init_descriptors() -> Finding {
    match Path::new("/proc/1/fd").read_dir() {
        Ok(entries) => Finding::leak(format!("{} descriptors of PID 1 are listed", entries.count())),
        Err(error) => Finding::blocked(describe(&error)),
    }
}

/// A running program cannot be written to: that answer, too, means that nothing else stood in the way.
fn init_executable() -> Finding {
    match OpenOptions::new().write(true).open("/proc/1/exe") {
        Err(error) if error.raw_os_error() == Some(libc::ETXTBSY) => {
            Finding::leak("ETXTBSY: only because it runs")
        }
        other => Finding::of_io(other, "/proc/1/exe opened for writing"),
    }
}

fn open_for_writing(path: &str) -> Finding {
    Finding::of_io(OpenOptions::new().write(true).open(path), &format!("{path} opened for writing"))
}

fn open_for_reading(path: &str) -> Finding {
    Finding::of_io(File::open(path), &format!("{path} opened"))
}

/// Not there, refused and empty (a mask) are all the same to whoever reads.
fn readable(path: &str) -> Finding {
    match bytes(Path::new(path), 64) {
        Ok(bytes) if bytes.is_empty() => Finding::blocked("empty"),
        Ok(_) => Finding::leak(format!("{path} can be read")),
        Err(error) => Finding::blocked(describe(&error)),
    }
}

/// The names are public; the addresses must not be.
fn kallsyms() -> Finding {
    let text = match bytes(Path::new("/proc/kallsyms"), 64 << 10) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return Finding::blocked(describe(&error)),
    };
    let shows =
        text.lines().any(|line| line.split(' ').next().is_some_and(|at| at.bytes().any(|b| b != b'0')));
    if shows { Finding::leak("kernel addresses are shown") } else { Finding::blocked("no address is shown") }
}

fn sys_firmware() -> Finding {
    let places = ["/sys/firmware", "/sys/kernel/security", "/sys/kernel/debug", "/sys/kernel/tracing"];
    let there: Vec<_> = places.iter().map(Path::new).filter(|path| path.exists()).collect();
    let filled: Vec<_> =
        there.iter().filter(|path| path.read_dir().is_ok_and(|mut d| d.next().is_some())).collect();
    if !filled.is_empty() {
        Finding::leak(format!("{filled:?} have entries"))
    } else if there.is_empty() {
        Finding::blocked("none of them is there")
    } else {
        Finding::blocked(format!("{there:?} are empty"))
    }
}

/// `MARK`: a word in the command line of a process of the host.
fn host_process(args: &[OsString]) -> Finding {
    let Some(mark) = args.first().and_then(|mark| mark.to_str()) else {
        return Finding::unsupported("needs a mark");
    };
    let own = std::process::id().to_string();
    let entries = match Path::new("/proc").read_dir() {
        Ok(entries) => entries,
        Err(error) => return Finding::blocked(describe(&error)),
    };
    let is_number =
        |name: &OsStr| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok() && name != own);
    let pids: Vec<_> =
        entries.flatten().map(|entry| entry.file_name()).filter(|name| is_number(name)).collect();
    let marked = |pid: &&OsString| {
        bytes(&Path::new("/proc").join(pid).join("cmdline"), 4096)
            .is_ok_and(|line| String::from_utf8_lossy(&line).split('\0').any(|word| word == mark))
    };
    let found: Vec<String> =
        pids.iter().filter(marked).map(|pid| pid.to_string_lossy().into_owned()).collect();
    Finding::leak_if_any(&found, format!("not among {} processes", pids.len()))
}

/// Opens every file for writing, writes nothing, and counts.
fn writable_below(roots: &[&str]) -> Finding {
    let (mut tried, mut writable) = (0_usize, Vec::new());
    let mut waiting: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
    while let Some(directory) = waiting.pop() {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    tried += 1;
                    if opens_for_writing(&entry.path()) {
                        writable.push(entry.path());
                    }
                }
                _ => {}
            }
        }
    }
    Finding::leak_if_any(&shown(&writable), format!("none of {tried} files"))
}

fn opens_for_writing(path: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path).is_ok()
}

fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

pub(super) fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
