//! A control group of version 2 that is frozen, for the processes of a sandbox to be put into while it is to be
//! held still. It needs no controller, so it can be made wherever that hierarchy is mounted and we may write,
//! also beside hierarchies of version 1. Made when somebody asks for a freeze and not before: entering a group is
//! slow, and most sandboxes are never frozen.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::hierarchy::{Hierarchy, Version};
use super::place;

/// Makes the group, or finds it, and opens what the first process of the sandbox needs of it: who is inside,
/// whether it is frozen, and what became of that. `None` where there is no such place: not mounted, not ours.
///
/// It lies below the sandbox's own group, which `journal` names, else below that of the supervisor; the
/// journal leads to it afterwards.
pub fn cold(journal: &Path, group: &str, supervisor: i32) -> Option<[OwnedFd; 3]> {
    let hierarchies = Hierarchy::of(supervisor);
    let unified = hierarchies.iter().find(|found| found.version == Version::Two)?;
    let directory = place::named(&parent(journal, unified), &format!("{group}.frozen"), journal).ok()?;
    let write =
        |file: &str, read| fs::OpenOptions::new().write(true).read(read).open(directory.join(file)).ok();
    let read = |file: &str| fs::File::open(directory.join(file)).ok();
    let files = [write("cgroup.procs", true)?, write("cgroup.freeze", false)?, read("cgroup.events")?];
    Some(files.map(|file| file.into_parts().0.into()))
}

fn parent(journal: &Path, unified: &Hierarchy) -> PathBuf {
    let named = fs::read_to_string(journal).unwrap_or_default();
    let own = named.lines().map(Path::new).find(|path| path.starts_with(&unified.top) && !is_cold(path));
    own.unwrap_or(&unified.own).to_owned()
}

fn is_cold(directory: &Path) -> bool {
    directory.extension().is_some_and(|ending| ending == "frozen")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_lies_below_the_sandboxs_own_where_it_has_one() {
        let directory = tempfile::tempdir().unwrap();
        let (journal, top) = (directory.path().join("cgroups"), directory.path().join("two"));
        let unified = Hierarchy {
            version: Version::Two,
            controllers: Vec::new(),
            top: top.clone(),
            own: top.join("login"),
        };
        assert_eq!(parent(&journal, &unified), top.join("login"));
        let frozen = top.join("login/sandtable-a.frozen");
        fs::write(&journal, format!("/one/sandtable-a\n{}\n", frozen.display())).unwrap();
        assert_eq!(parent(&journal, &unified), top.join("login"), "not below itself");
        fs::write(&journal, format!("{}\n", top.join("sandtable-a").display())).unwrap();
        assert_eq!(parent(&journal, &unified), top.join("sandtable-a"));
    }
}
