//! A home directory that has two names inside. Where an image brings the system no symbolic link can lead from
//! one to the other, so a file of the user that is shown in one of them is shown in both: a program finds it
//! whichever of the two it takes for the home directory.

use super::case::Case;
use crate::model::mount::Mount;
use crate::model::path::BoxPath;

/// Every name of the home directory inside a container; the host's own real one comes first.
pub(super) fn of(case: &Case<'_>) -> Vec<BoxPath> {
    let own = case.home.iter().flat_map(|home| [home.real.same_inside(), home.written.same_inside()]);
    let mut homes: Vec<BoxPath> = own.chain([case.home_inside()]).collect();
    let mut seen = Vec::new();
    homes.retain(|home| {
        !seen.contains(home) && {
            seen.push(home.clone());
            true
        }
    });
    homes
}

/// `mounts`, and once more at every other home what lies in the first.
pub(super) fn at_each(mounts: Vec<Mount>, homes: &[BoxPath]) -> Vec<Mount> {
    let Some((first, others)) = homes.split_first() else { return mounts };
    let again = |mount: &Mount| {
        let below = mount.target.below(first).filter(|below| !below.as_os_str().is_empty())?.to_owned();
        let mount = mount.clone();
        Some(others.iter().map(move |home| Mount { target: home.join(&below), ..mount.clone() }))
    };
    let twice: Vec<Mount> = mounts.iter().filter_map(again).flatten().collect();
    mounts.into_iter().chain(twice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::mount::{Content, HostAccess, Ownership};
    use crate::model::path::HostPath;
    use crate::model::setting::Origin;

    fn path(text: &str) -> BoxPath {
        BoxPath::new(text).unwrap()
    }

    #[test]
    fn a_file_of_the_home_directory_is_shown_at_both() {
        let mount = |target: &str| Mount {
            target: path(target),
            content: Content::Host {
                source: HostPath::new(target).unwrap(),
                access: HostAccess::Read,
                ownership: Ownership::Caller,
                identity: None,
            },
            reason: String::new(),
            origin: Origin::Default,
        };
        let shown =
            vec![mount("/home/ann/.gitconfig"), mount("/home/ann/.config/git/config"), mount("/ssh-agent")];
        let targets = |homes: &[&str]| {
            let homes: Vec<BoxPath> = homes.iter().map(|home| path(home)).collect();
            let mounts = at_each(shown.clone(), &homes);
            assert!(
                mounts
                    .iter()
                    .all(|mount| matches!(&mount.content, Content::Host { access: HostAccess::Read, .. }))
            );
            let lines = mounts.iter().map(|mount| match &mount.content {
                Content::Host { source, .. } => format!("{source} at {}", mount.target),
                _ => unreachable!("made above"),
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(targets(&["/home/ann", "/home/node"]), @"
        /home/ann/.gitconfig at /home/ann/.gitconfig
        /home/ann/.config/git/config at /home/ann/.config/git/config
        /ssh-agent at /ssh-agent
        /home/ann/.gitconfig at /home/node/.gitconfig
        /home/ann/.config/git/config at /home/node/.config/git/config
        ");
        assert_eq!(targets(&["/home/ann"]).lines().count(), 3, "one home, one mount each");
    }
}
