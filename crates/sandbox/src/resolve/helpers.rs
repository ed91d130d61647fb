//! Programs of this machine that work for us outside a sandbox: container engines, `slirp4netns`, `ssh`, `git`.
//!
//! They come from the caller's PATH, but never from what is worked on. `npm run` and direnv put a directory of the
//! project there, and what a project or a sandbox has put into it must not run on the host.

use std::path::{Path, PathBuf};

use super::environment::RULES;
use super::search;
use crate::facts::Facts;
use crate::host::Host;
use crate::model::path::HostPath;

/// The program `name` that works for us.
pub fn helper(name: &str, host: &Host, facts: &dyn Facts) -> Option<PathBuf> {
    let foreign: Vec<PathBuf> = host.foreign.iter().filter_map(|place| top(place, host, facts)).collect();
    let is_foreign = |path: &Path| {
        let real = facts.real_path(path).unwrap_or_else(|_| path.to_owned());
        foreign.iter().any(|top| real.starts_with(top) || path.starts_with(top))
    };
    let mut directories = search::directories(host);
    directories.retain(|directory| foreign.is_empty() || is_systems(directory) || !is_foreign(directory));
    loop {
        let found = facts.program(name, &directories).ok()?;
        if foreign.is_empty() || !is_foreign(&found) || found.parent().is_some_and(is_systems) {
            return Some(found);
        }
        // A link into what is worked on.
        directories.retain(|directory| Some(directory.as_path()) != found.parent());
    }
}

fn is_systems(directory: &Path) -> bool {
    RULES.path.iter().any(|rule| Path::new(&rule.name) == directory)
}

/// The repository around `place`, or `place` itself; nothing where that holds the home directory, in which the
/// caller's own programs are.
fn top(place: &HostPath, host: &Host, facts: &dyn Facts) -> Option<PathBuf> {
    let real = facts.real_path(place).unwrap_or_else(|_| place.as_path().to_owned());
    let home =
        host.home.as_ref().map(|home| facts.real_path(home).unwrap_or_else(|_| home.as_path().to_owned()));
    let holds_home =
        |path: &Path| path.parent().is_none() || home.as_ref().is_some_and(|home| home.starts_with(path));
    let repository = real
        .ancestors()
        .take_while(|path| !holds_home(path))
        .find(|path| facts.kind(path.join(".git")).is_ok())
        .map(Path::to_owned);
    repository.or_else(|| (!holds_home(&real)).then_some(real))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::fake::Fake;
    use crate::resolve::tests::host;

    fn found(path: &str, place: &str) -> Option<PathBuf> {
        let machine = Fake::new(1000)
            .file("/home/ann/p/.git/HEAD", "ref: refs/heads/main\n")
            .file("/home/ann/p/sub/bin/podman", "")
            .file("/home/ann/.local/bin/podman", "")
            .file("/usr/bin/podman", "");
        let host = Host { foreign: vec![HostPath::new(place).unwrap()], ..host(1000, "/home/ann", path) };
        helper("podman", &host, &machine)
    }

    #[test]
    fn nothing_of_what_is_worked_on_is_started() {
        let found = |path: &str, place: &str| {
            found(path, place).map(|path| path.display().to_string()).unwrap_or_default()
        };
        let path = "/home/ann/p/sub/bin:/home/ann/.local/bin:/usr/bin";
        let own = "/home/ann/.local/bin/podman";
        for place in ["/home/ann/p", "/home/ann/p/sub", "/home/ann/p/sub/bin", "/home/ann/p/other/deep"] {
            assert_eq!(found(path, place), own, "{place}");
        }
        assert_eq!(found("/home/ann/p/sub/bin", "/home/ann/p"), "");
        // From elsewhere it is the caller's own business what PATH says, and the home directory is nobody's project.
        for place in ["/home/ann", "/", "/srv"] {
            assert_eq!(found(path, place), "/home/ann/p/sub/bin/podman", "{place}");
            assert_eq!(found("/usr/bin", place), "/usr/bin/podman");
        }
        assert_eq!(found("/usr/bin", "/usr"), "/usr/bin/podman");
    }
}
