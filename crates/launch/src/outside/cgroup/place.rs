//! Where the group of a sandbox can be made: directly below the group of the supervisor in version 1, and in
//! version 2 below the nearest one that may have groups with controllers.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_protocol::op::Limits;
use sandtable_protocol::report::Control;

use super::hierarchy::{Hierarchy, Version};
use super::knob::{cause, controller};
use super::{remove, systemd};

/// The outcome of a search in version 2.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) directory: Option<PathBuf>,
    pub(super) carried: Vec<Control>,
    pub(super) refused: BTreeMap<Control, String>,
}

/// The hierarchy of version 1 that a limit belongs to, if it belongs to one.
pub(super) fn version_one(hierarchies: &[Hierarchy], control: Control) -> Option<&Hierarchy> {
    let wanted = controller(control);
    hierarchies.iter().find(|found| found.controllers.iter().any(|name| name == wanted))
}

/// The place of version 2 that carries most of `controls`, the nearest first.
pub(super) fn version_two(hierarchies: &[Hierarchy], limits: &Limits, controls: &[Control]) -> Found {
    let unified = hierarchies.iter().find(|found| found.version == Version::Two);
    let ancestors = unified.into_iter().flat_map(|found| {
        let last = highest(found, limits);
        found.own.ancestors().take_while(move |group| group.starts_with(last)).map(Path::to_owned)
    });
    let mut why = "this machine has no such controller".to_owned();
    let mut best: Option<(PathBuf, Vec<Control>)> = None;
    for parent in ancestors {
        let carried: Vec<Control> =
            controls.iter().copied().filter(|control| enabled(&parent, controller(*control))).collect();
        if carried.len() > best.as_ref().map_or(0, |(_, carried)| carried.len()) {
            let complete = carried.len() == controls.len();
            best = Some((parent, carried));
            if complete {
                break;
            }
        }
    }
    let mut found = Found::default();
    if let Some((parent, carried)) = best {
        match below(&parent, limits) {
            Ok(directory) => {
                found.directory = Some(directory);
                found.carried = carried;
            }
            Err(refusal) => why = refusal,
        }
    } else if unified.is_some() {
        "no control group with this controller is delegated to this user".clone_into(&mut why);
    }
    let left = controls.iter().filter(|control| !found.carried.contains(control));
    found.refused = left.map(|control| (*control, why.clone())).collect();
    found
}

/// How far up a place may be: what lies above the unit that we are in is systemd's, where there is one.
fn highest<'a>(unified: &'a Hierarchy, limits: &Limits) -> &'a Path {
    let unit = limits.systemd.as_ref().and_then(|_| systemd::top_of_unit(&unified.own));
    unit.filter(|unit| unit.starts_with(&unified.top)).unwrap_or(&unified.top)
}

/// Makes the group below `parent`. What an earlier launch left at that place is removed first.
pub(super) fn below(parent: &Path, limits: &Limits) -> Result<PathBuf, String> {
    let directory = parent.join(&limits.group);
    let made = note(&limits.journal, &directory).and_then(|()| match fs::create_dir(&directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            remove(&directory)?;
            fs::create_dir(&directory)
        }
        made => made,
    });
    match made {
        Ok(()) => Ok(directory),
        Err(error) => {
            Err(format!("cannot make a control group below `{}`: {}", parent.display(), cause(&error)))
        }
    }
}

/// Makes a group of that name below `parent`, unless it is there already.
pub(super) fn named(parent: &Path, name: &str, journal: &Path) -> io::Result<PathBuf> {
    let directory = parent.join(name);
    if directory.is_dir() {
        return Ok(directory);
    }
    // What cannot be made need not be looked for.
    if !writable(parent) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    note(journal, &directory)?;
    match fs::create_dir(&directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(directory),
    }
}

/// Whether groups below `parent` have the controller, after giving it to them where we may. The kernel
/// refuses for a group that has processes of its own. Only a place where a group can be made is touched.
fn enabled(parent: &Path, name: &str) -> bool {
    let lists = |file: &str| {
        let text = fs::read_to_string(parent.join(file)).unwrap_or_default();
        text.split_ascii_whitespace().any(|word| word == name)
    };
    if !writable(parent) || !lists("cgroup.controllers") {
        return false;
    }
    lists("cgroup.subtree_control")
        || fs::OpenOptions::new()
            .write(true)
            .open(parent.join("cgroup.subtree_control"))
            .and_then(|mut file| file.write_all(format!("+{name}").as_bytes()))
            .is_ok()
}

fn writable(directory: &Path) -> bool {
    rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Names a directory in the journal before it is made.
fn note(journal: &Path, directory: &Path) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(journal)?;
    writeln!(file, "{}", directory.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of files that looks like a hierarchy of version 2: `user` has both controllers and hands one
    /// of them on, `user/shell` is where this process would stand.
    fn tree() -> (tempfile::TempDir, Hierarchy, Limits) {
        let root = tempfile::tempdir().unwrap();
        for (group, controllers, handed_on) in [
            ("", "cpu memory pids", "memory pids"),
            ("user", "memory pids", "memory"),
            ("user/shell", "memory", ""),
        ] {
            fs::create_dir_all(root.path().join(group)).unwrap();
            fs::write(root.path().join(group).join("cgroup.controllers"), controllers).unwrap();
            fs::write(root.path().join(group).join("cgroup.subtree_control"), handed_on).unwrap();
        }
        let hierarchy = Hierarchy {
            version: Version::Two,
            controllers: Vec::new(),
            top: root.path().to_owned(),
            own: root.path().join("user/shell"),
        };
        let journal = root.path().join("journal");
        let group = "sandtable-a".to_owned();
        (
            root,
            hierarchy,
            Limits { group, journal, memory: Some(1 << 30), cpus: Some(1), pids: Some(9), systemd: None },
        )
    }

    #[test]
    fn the_nearest_place_that_carries_most_is_taken() {
        let (root, hierarchy, limits) = tree();
        let own = hierarchy.own.clone();
        let hierarchies = [hierarchy];
        let memory = version_two(&hierarchies, &limits, &[Control::MemoryLimit]);
        assert_eq!(memory.directory, Some(own.join("sandtable-a")), "a plain file takes `+memory`");
        let both = version_two(&hierarchies, &limits, &[Control::MemoryLimit, Control::PidsLimit]);
        assert_eq!(both.directory, Some(root.path().join("user/sandtable-a")));
        assert!(both.refused.is_empty());
        let all = version_two(&hierarchies, &limits, &Control::LIMITS);
        assert_eq!(all.directory, Some(root.path().join("sandtable-a")));
        let noted = fs::read_to_string(&limits.journal).unwrap();
        assert_eq!(noted.lines().count(), 3, "each is in the journal: {noted}");
    }

    #[test]
    fn what_no_place_carries_is_refused_by_name() {
        let (_root, mut hierarchy, limits) = tree();
        hierarchy.top = hierarchy.own.clone();
        let found = version_two(&[hierarchy], &limits, &Control::LIMITS);
        assert_eq!(found.carried, [Control::MemoryLimit]);
        let refused: Vec<Control> = found.refused.into_keys().collect();
        assert_eq!(refused, [Control::CpuLimit, Control::PidsLimit]);
        let nowhere = version_two(&[], &limits, &[Control::CpuLimit]);
        assert_eq!(nowhere.refused[&Control::CpuLimit], "this machine has no such controller");
    }

    #[test]
    fn the_journal_leads_to_what_was_left() {
        let (root, hierarchy, limits) = tree();
        let made = below(&hierarchy.own, &limits).unwrap();
        let again = below(&hierarchy.own, &limits).unwrap();
        assert_eq!(made, again, "a leftover gives way");
        super::super::reap(&limits.journal);
        assert!(!made.exists() && !limits.journal.exists());
        fs::write(&limits.journal, format!("{}\n", root.path().join("user").display())).unwrap();
        super::super::reap(&limits.journal);
        assert!(root.path().join("user").exists(), "only what carries our name is removed");
    }
}
