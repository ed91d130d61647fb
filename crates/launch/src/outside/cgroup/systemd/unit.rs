//! Where a process stands among systemd's units, told by the names of the groups above it and by the mark that
//! systemd leaves on those it has given away.

use std::path::{Component, Path, PathBuf};

use sandtable_protocol::op::Whose;

/// The marks of a delegated group: one for everybody to read, and an older one for root.
const MARKS: [&str; 2] = ["user.delegate", "trusted.delegate"];

/// The group of the unit that `own` belongs to: the nearest scope or service. `None` where names say that
/// systemd did not make it.
pub(in crate::outside::cgroup) fn top_of_unit(own: &Path) -> Option<&Path> {
    own.ancestors()
        .find(|group| group.extension().is_some_and(|ending| ending == "scope" || ending == "service"))
}

/// Whether systemd has given this group away, so that what is below it is not its business.
pub(super) fn is_delegated(unit: &Path) -> bool {
    MARKS.iter().any(|mark| {
        let mut value = [0_u8; 8];
        rustix::fs::getxattr(unit, *mark, &mut value[..]).is_ok_and(|length| value[..length] == *b"1")
    })
}

/// The slice that a process at `path` is counted in, for its scope to stay under the same limits: the last of
/// those that lead to its first unit. `None` where the manager has no say about that place.
pub(super) fn slice(path: &Path, whose: Whose) -> Option<String> {
    let mut names = path.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    if let Whose::User { uid } = whose {
        let manager = format!("user@{uid}.service");
        names.by_ref().find(|name| *name == manager)?;
    }
    let is_slice = |name: &&str| Path::new(name).extension().is_some_and(|ending| ending == "slice");
    names.take_while(is_slice).last().map(str::to_owned)
}

impl super::Hierarchy {
    /// The group of this process, as systemd counts: from the top.
    pub(super) fn path(&self) -> PathBuf {
        self.own.strip_prefix(&self.top).unwrap_or(Path::new("")).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_stays_in_the_slice_of_its_caller() {
        let of = |path: &str, whose: Whose| slice(Path::new(path), whose);
        let user = Whose::User { uid: 1000 };
        let system = Whose::System;
        assert_eq!(of("user.slice/user-0.slice/session-1.scope", system).as_deref(), Some("user-0.slice"));
        assert_eq!(of("system.slice/runner.service/deeper", system).as_deref(), Some("system.slice"));
        let below = "user.slice/user-0.slice/user@0.service/app.slice/a.scope";
        assert_eq!(of(below, system).as_deref(), Some("user-0.slice"), "not one of another manager");
        assert_eq!(of("init.scope", system), None);
        assert_eq!(of("user.slice/user-1000.slice/session-c1.scope", user), None, "not under that manager");
        let below = "user.slice/user-1000.slice/user@1000.service/app.slice/app-x.slice/vte-1.scope";
        assert_eq!(of(below, user).as_deref(), Some("app-x.slice"));
        assert_eq!(of("user.slice/user-7.slice/user@7.service/app.slice/a.scope", user), None);
    }

    #[test]
    fn the_nearest_scope_or_service_is_the_unit() {
        let of = |path: &str| top_of_unit(Path::new(path)).map(|unit| unit.display().to_string());
        let manager = "/c/user.slice/user@1000.service";
        assert_eq!(
            of(&format!("{manager}/app.slice/a.scope/supervisor")),
            Some(format!("{manager}/app.slice/a.scope"))
        );
        assert_eq!(of(&format!("{manager}/init.scope")), Some(format!("{manager}/init.scope")));
        assert_eq!(of("/c/docker/0123"), None);
    }

    #[test]
    fn a_group_without_a_mark_was_not_given_away() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!is_delegated(directory.path()) && !is_delegated(&directory.path().join("none")));
        // A file system that has no such attributes leaves nothing to look at.
        let set = |value: &str| {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(directory.path(), "user.delegate", value.as_bytes(), flags).is_ok()
        };
        if set("0") {
            assert!(!is_delegated(directory.path()));
            assert!(set("1") && is_delegated(directory.path()));
        }
    }
}
