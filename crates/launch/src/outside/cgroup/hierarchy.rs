//! Where control groups are mounted, and where this process stands in them. A machine has the unified
//! hierarchy of version 2, one hierarchy per controller of version 1, or both side by side.

use std::path::{Path, PathBuf};

use fs_err as fs;

/// The two kinds of hierarchies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// One hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) version: Version,
    /// What a hierarchy of version 1 controls. In version 2 that differs from group to group.
    pub(super) controllers: Vec<String>,
    /// Where it is mounted.
    pub(super) top: PathBuf,
    /// The group of this process.
    pub(super) own: PathBuf,
}

impl Hierarchy {
    /// Every hierarchy that this process can see itself in.
    pub(super) fn all() -> Vec<Self> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
    }

    /// Every hierarchy, with the groups of another process as its own.
    pub(super) fn of(process: i32) -> Vec<Self> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        parse(&read("/proc/self/mountinfo"), &read(&format!("/proc/{process}/cgroup")))
    }
}

fn parse(mounts: &str, membership: &str) -> Vec<Hierarchy> {
    mounts.lines().filter_map(|line| mounted(line, membership)).collect()
}

fn mounted(line: &str, membership: &str) -> Option<Hierarchy> {
    let (mount, system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, top) = (Path::new(mount.next()?), PathBuf::from(mount.next()?));
    let mut system = system.split(' ');
    let (kind, options) = (system.next()?, system.nth(1)?);
    let (version, controllers, path) = match kind {
        "cgroup2" => {
            (Version::Two, Vec::new(), membership.lines().find_map(|line| line.strip_prefix("0::"))?)
        }
        "cgroup" => {
            let mut lines = membership.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
            let mounted = |named: &str| {
                !named.is_empty()
                    && named.split(',').all(|word| options.split(',').any(|option| option == word))
            };
            let (named, path) = lines.find(|(named, _)| mounted(named))?;
            (Version::One, named.split(',').map(str::to_owned).collect(), path)
        }
        _ => return None,
    };
    // A path that leads up comes from outside a cgroup namespace and has no place in this mount.
    let below = Path::new(path).strip_prefix(root).ok().filter(|path| !path.starts_with(".."))?;
    // Joining nothing would leave a separator at the end.
    let own = top.join(below).components().collect();
    Some(Hierarchy { version, controllers, top, own })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mounts: &str, membership: &str) -> Vec<String> {
        let line = |found: &Hierarchy| {
            format!("{:?} {} {}", found.version, found.controllers.join(","), found.own.display())
        };
        parse(mounts, membership).iter().map(line).collect()
    }

    #[test]
    fn a_hybrid_machine_has_both() {
        let mounts = "24 22 0:21 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
            25 24 0:22 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            26 24 0:23 / /sys/fs/cgroup/memory rw shared:3 - cgroup cgroup rw,memory\n\
            27 24 0:24 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n\
            28 24 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let membership = "3:memory:/a/b\n2:cpu,cpuacct:/\n1:name=systemd:/x\n0::/x\n";
        assert_eq!(
            shown(mounts, membership),
            [
                "One cpu,cpuacct /sys/fs/cgroup/cpu,cpuacct",
                "One memory /sys/fs/cgroup/memory/a/b",
                "One name=systemd /sys/fs/cgroup/systemd/x",
                "Two  /sys/fs/cgroup/unified/x",
            ]
        );
    }

    #[test]
    fn a_mount_of_a_part_shows_only_what_is_below_it() {
        let mount =
            |root: &str| format!("30 24 0:26 {root} /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
        assert_eq!(shown(&mount("/c1"), "0::/c1/d\n"), ["Two  /sys/fs/cgroup/d"]);
        assert_eq!(shown(&mount("/c1"), "0::/other\n"), [""; 0]);
        assert_eq!(shown(&mount("/"), "0::/../up\n"), [""; 0]);
        assert_eq!(shown(&mount("/"), ""), [""; 0]);
    }
}
