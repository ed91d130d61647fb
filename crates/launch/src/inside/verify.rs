//! Reading back what holds, after every step was done and before any command runs.
//!
//! Nothing in here trusts that a step was executed: each control is looked for in the kernel's own answers.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::path::Path;

use fs_err as fs;
use rustix::fs::{Mode, OFlags, StatVfsMountFlags, open, stat, statvfs};
use rustix::process::{DumpableBehavior, Resource, dumpable_behavior, getrlimit};
use rustix::thread::{CapabilitiesSecureBits, capabilities_secure_bits};
use sandtable_protocol::op::{Access, Op, Plan};
use sandtable_protocol::report::{Control, Observed, Report};
use sandtable_protocol::terms::HostView;

use crate::inside::confine::Confined;
use crate::inside::mount;
use crate::namespaces::{NAMESPACES, namespaces};
use crate::sys::process::leads_session;

/// What the process sees of itself.
pub(crate) struct Seen<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) host: &'a HostView,
    pub(crate) confined: Confined,
    pub(crate) keep: &'a [BorrowedFd<'a>],
}

/// Every control, observed.
pub(crate) fn observe(seen: &Seen<'_>) -> Report {
    let status = read("/proc/self/status");
    let mut controls = common(&status, &Sealed { forgotten: seen.confined.forgotten });
    let ours = namespaces().unwrap_or(seen.host.namespaces);
    for (((control, _, _), ours), theirs) in NAMESPACES.into_iter().zip(ours).zip(seen.host.namespaces) {
        controls.insert(control, Observed::when(ours != theirs, "the namespace is the host's"));
    }
    if !seen.plan.network.is_own() {
        let why = "the host's network was asked for".to_owned();
        controls.insert(Control::NetworkNamespace, Observed::Absent { why });
    }
    controls.insert(Control::PrivateIds, private_ids(&read("/proc/self/uid_map")));
    controls.insert(Control::RootView, root_view(seen.host));
    controls.insert(Control::ReadOnlySystem, read_only_system(seen.plan));
    controls.insert(Control::ProcMasks, proc_masks());
    controls.insert(Control::MinimalDev, minimal_dev(&[]));
    let own_keyring = seen.confined.keyring.is_none() || seen.confined.keyring != seen.host.keyring;
    controls.insert(Control::Keyring, Observed::when(own_keyring, "the session keyring is the host's"));
    controls.insert(Control::Session, session());
    controls.insert(Control::Descriptors, descriptors(seen.keep));
    controls.insert(Control::NoCapabilities, no_capabilities(&status));
    controls.insert(Control::Landlock, seen.confined.landlock.clone());
    // A container may have put a filter on the supervisor already: ours must have come on top.
    let filtered = field(&status, "Seccomp") == Some("2") && filters(&status) != Some(seen.host.filters);
    controls.insert(Control::Seccomp, Observed::when(filtered, "no system call filter is in force"));
    Report { controls }
}

/// Whether the kernel shows nothing of what this process was started with.
pub(crate) struct Sealed {
    pub(crate) forgotten: bool,
}

/// What is looked for in the same way whoever built the sandbox.
pub(crate) fn common(status: &str, sealed: &Sealed) -> BTreeMap<Control, Observed> {
    let core = getrlimit(Resource::Core);
    let no_core = core.current == Some(0) && core.maximum == Some(0);
    let privileges = field(status, "NoNewPrivs") == Some("1");
    let hidden = dumpable_behavior() == Ok(DumpableBehavior::NotDumpable);
    let sealed = hidden && sealed.forgotten;
    BTreeMap::from([
        (Control::NoCoreDumps, Observed::when(no_core, "core dumps are possible")),
        (Control::NoNewPrivileges, Observed::when(privileges, "programs can gain privileges")),
        (Control::SealedInit, Observed::when(sealed, "PID 1 can be inspected from inside")),
    ])
}

/// The first namespace of `plan` that is still the host's: the check before anything is mounted.
pub(crate) fn shared_namespace(plan: &Plan, host: &HostView) -> Option<Control> {
    let ours = namespaces().unwrap_or(host.namespaces);
    let mut pairs = NAMESPACES.into_iter().zip(ours).zip(host.namespaces);
    let shared = pairs.find(|(((control, _, _), ours), theirs)| {
        let wanted = plan.network.is_own() || *control != Control::NetworkNamespace;
        wanted && ours == theirs
    });
    shared.map(|(((control, _, _), _), _)| control)
}

/// Whether no id of a user namespace with this map is root outside it.
pub(crate) fn private_ids(map: &str) -> Observed {
    let holds_root = map.lines().any(|line| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u64>);
        let (_, outside) = (numbers.next(), numbers.next());
        matches!(outside, Some(Ok(0)) | None)
    });
    Observed::when(!map.is_empty() && !holds_root, "an id inside is root for the kernel")
}

pub(crate) fn root_view(host: &HostView) -> Observed {
    let identity = |path: &str| stat(path).map(|found| (found.st_dev, found.st_ino));
    let own = identity("/").is_ok_and(|root| root != host.root);
    // Were anything still mounted over the root, the way up would lead into it.
    let alone = identity("/") == identity("/..");
    Observed::when(own && alone, "the root directory of the host can be reached")
}

fn read_only_system(plan: &Plan) -> Observed {
    let read_only =
        |path: &Path| statvfs(path).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY));
    let wanted = plan.ops.iter().filter_map(|op| match op {
        Op::Bind { target, access: Access::Read, .. } => Some(target.as_path()),
        _ => None,
    });
    let writable = std::iter::once(Path::new("/")).chain(wanted).find(|path| !read_only(path));
    match writable {
        None => Observed::Enforced,
        Some(path) => Observed::Absent { why: format!("`{}` is not mounted read-only", path.display()) },
    }
}

fn proc_masks() -> Observed {
    let proc = Path::new("/proc");
    let loose = mount::READ_ONLY_PARTS
        .iter()
        .map(|part| proc.join(part))
        .find(|path| statvfs(path).is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::RDONLY)));
    let open_part = mount::MASKED_PARTS.iter().map(|part| proc.join(part)).find(|path| {
        let regular =
            stat(path).is_ok_and(|found| rustix::fs::FileType::from_raw_mode(found.st_mode).is_file());
        let filled = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        regular || filled || open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).is_ok()
    });
    match loose.or(open_part) {
        None => Observed::Enforced,
        Some(path) => Observed::Absent { why: format!("`{}` is not masked", path.display()) },
    }
}

pub(crate) fn minimal_dev(besides: &[&str]) -> Observed {
    let known = |name: &str| {
        besides.contains(&name)
            || mount::NODES.contains(&name)
            || mount::DIRECTORIES.contains(&name)
            || mount::LINKS.iter().any(|(link, _)| *link == name)
    };
    let Ok(entries) = fs::read_dir("/dev") else {
        return Observed::Absent { why: "`/dev` cannot be read".to_owned() };
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    match names.into_iter().find(|name| !known(name)) {
        None => Observed::Enforced,
        Some(name) => Observed::Absent { why: format!("`/dev/{name}` is there") },
    }
}

pub(crate) fn session() -> Observed {
    let leader = leads_session();
    let terminal = open("/dev/tty", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).is_ok();
    Observed::when(leader && !terminal, "the session is the host's")
}

pub(crate) fn descriptors(keep: &[BorrowedFd<'_>]) -> Observed {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return Observed::Absent { why: "`/proc/self/fd` cannot be read".to_owned() };
    };
    // Reading the directory takes one descriptor itself.
    let open = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let foreign = open.filter(|fd| *fd > 2 && !keep.iter().any(|kept| kept.as_raw_fd() == *fd)).count();
    let null = |fd: i32| {
        fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|target| target == Path::new("/dev/null"))
    };
    Observed::when(foreign <= 1 && (0..3).all(null), "a descriptor of the host is open")
}

fn no_capabilities(status: &str) -> Observed {
    let locked = capabilities_secure_bits().is_ok_and(|bits| {
        bits.contains(CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED)
    });
    match no_sets(status) {
        Observed::Enforced => Observed::when(locked, "root could regain capabilities"),
        other => other,
    }
}

/// Whether every set of capabilities is empty; with an empty bounding set none can be regained.
pub(crate) fn no_sets(status: &str) -> Observed {
    let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    let left = sets
        .into_iter()
        .find(|set| field(status, set).is_none_or(|bits| u64::from_str_radix(bits, 16) != Ok(0)));
    left.map_or(Observed::Enforced, |set| Observed::Absent { why: format!("{set} is not empty") })
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// How many system call filters are in force, where the kernel says.
pub(crate) fn filters(status: &str) -> Option<u64> {
    field(status, "Seccomp_filters")?.parse().ok()
}

pub(crate) fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let line =
        status.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))?;
    line.split_once(':').map(|(_, value)| value.trim())
}
