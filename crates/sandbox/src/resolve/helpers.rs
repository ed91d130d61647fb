//! Programs of this machine that work for us outside a sandbox: container engines, `slirp4netns`, `ssh`, `git`, and the clients
//! of registries.
//!
//! They come from the caller's PATH, but never from what is worked on. `npm run` and direnv put a directory of the
//! project there, and what a project or a sandbox has put into it must not run on the host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::environment::RULES;
use super::error::ResolveError;
use super::search::{self, PATH};
use crate::facts::Facts;
use crate::host::Host;
use crate::model::path::HostPath;

/// The program `name` that works for us. It is the one way to find such a program.
pub fn helper(name: &str, host: &Host, facts: &dyn Facts) -> Option<PathBuf> {
    let foreign = Foreign::of(host, facts);
    let mut directories = foreign.leaves(host);
    loop {
        let found = facts.program(name, &directories).ok()?;
        if !foreign.holds(&found) || found.parent().is_some_and(is_systems) {
            return Some(found);
        }
        // A link into what is worked on.
        directories.retain(|directory| Some(directory.as_path()) != found.parent());
    }
}

/// PATH for a program that works for us: what it starts in turn is no program of what is worked on either.
pub(super) fn helper_path(host: &Host, facts: &dyn Facts) -> String {
    let kept = Foreign::of(host, facts).leaves(host);
    kept.iter().map(|directory| directory.to_string_lossy()).collect::<Vec<_>>().join(":")
}

/// The caller's environment for a program that works for us: that PATH, and no variable that leads into what is worked on.
/// Interpreters load what such variables name (`PYTHONPATH`, `NODE_OPTIONS`, `LD_LIBRARY_PATH`).
pub fn helper_environment(host: &Host, facts: &dyn Facts) -> BTreeMap<String, String> {
    let foreign = Foreign::of(host, facts);
    let mut environment = host.environment.clone();
    environment.retain(|name, value| name == PATH || !foreign.is_named_in(value));
    if let Some(path) = environment.get_mut(PATH) {
        *path = helper_path(host, facts);
    }
    environment
}

/// Refuses a data directory below what is worked on. Clients of registries are started in a directory of their own there, and
/// many of them read settings from every directory above it (`.cargo/config.toml`, `.npmrc`, `rust-toolchain.toml`).
pub fn data_is_apart(host: &Host, facts: &dyn Facts) -> Result<(), ResolveError> {
    let real = real(host.data.as_path(), facts);
    let holder = Foreign::of(host, facts).tops.into_iter().find(|top| real.starts_with(top));
    match holder.and_then(|top| HostPath::new(top).ok()) {
        Some(path) => Err(ResolveError::SourceHoldsState { path, state: host.data.clone() }),
        None => Ok(()),
    }
}

/// What is worked on.
struct Foreign<'a> {
    tops: Vec<PathBuf>,
    facts: &'a dyn Facts,
}

impl<'a> Foreign<'a> {
    fn of(host: &Host, facts: &'a dyn Facts) -> Self {
        Self { tops: host.foreign.iter().filter_map(|place| top(place, host, facts)).collect(), facts }
    }

    fn holds(&self, path: &Path) -> bool {
        if self.tops.is_empty() {
            return false;
        }
        let real = real(path, self.facts);
        self.tops.iter().any(|top| real.starts_with(top) || path.starts_with(top))
    }

    /// The directories of the caller's PATH without its own.
    fn leaves(&self, host: &Host) -> Vec<PathBuf> {
        let mut directories = search::directories(host);
        directories.retain(|directory| is_systems(directory) || !self.holds(directory));
        directories
    }

    /// Whether a value may lead there: by a path alone, in a list or within a word (`-I/p/include`,
    /// `file://localhost/p/x`), or by one that climbs, since nothing says where from.
    fn is_named_in(&self, value: &str) -> bool {
        if self.tops.is_empty() {
            return false;
        }
        let climbs = value.split(|sign| sign == '/' || separates(sign)).any(|part| part == "..");
        let words = value.split(separates).chain(value.split(':')).chain(std::iter::once(value));
        climbs
            || self.tops.iter().any(|top| is_glued(value, top))
            || words.flat_map(paths).any(|path| self.holds(path))
    }
}

/// The real path of something that need not be there: that of the deepest directory above it, and the rest.
fn real(path: &Path, facts: &dyn Facts) -> PathBuf {
    let known = path.ancestors().find_map(|above| {
        let rest = path.strip_prefix(above).expect("it is above");
        Some(facts.real_path(above).ok()?.join(rest))
    });
    known.unwrap_or_else(|| path.to_owned())
}

/// What ends a path in a list or a command.
fn separates(sign: char) -> bool {
    sign.is_whitespace() || ":=,;'\"@{}()[]".contains(sign)
}

/// The paths that a word may have: itself where it is absolute, else what follows each of its first slashes.
fn paths(word: &str) -> Vec<&Path> {
    const MOST: usize = 64;
    if word.starts_with('/') && !word.starts_with("//") {
        return vec![Path::new(word)];
    }
    word.match_indices('/').take(MOST).map(|(at, _)| Path::new(&word[at..])).collect()
}

/// Whether the path stands in the value as text and is not the end of another path: names may have any sign in them.
fn is_glued(value: &str, top: &Path) -> bool {
    let top = top.to_string_lossy();
    value.match_indices(&*top).any(|(at, found)| {
        let begin = value[..at].rfind(separates).map_or(0, |sign| sign + 1);
        let is_inside = at > begin && value[begin..].starts_with('/') && !value[begin..].starts_with("//");
        let after = value[at + found.len()..].chars().next();
        !is_inside && !after.is_some_and(|sign| sign.is_alphanumeric() || "_-.".contains(sign))
    })
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

    #[test]
    fn what_works_for_us_is_not_led_into_what_is_worked_on() {
        let machine = Fake::new(1000)
            .file("/home/ann/p/.git/HEAD", "ref: refs/heads/main\n")
            .link("/home/ann/link", "/home/ann/p");
        let mut host = host(1000, "/home/ann", "bin:/home/ann/p/bin:/home/ann/link:/home/ann/bin:/usr/bin");
        host.foreign = vec![HostPath::new("/home/ann/p/sub").unwrap()];
        for (name, value) in [
            ("PYTHONPATH", "/usr/lib/x:/home/ann/p/lib"),
            ("NODE_OPTIONS", "--require=/home/ann/p/hook.js"),
            ("INIT_CWD", "/home/ann/p"),
            ("VIRTUAL_ENV", "/home/ann/link"),
            ("URL", "file:///home/ann/p/x"),
            ("HOSTED", "--import=file://localhost/home/ann/p/x.mjs"),
            ("CLIMBS", "--require=../../p/x.cjs"),
            ("PERL5OPT", "-I/home/ann/p/x"),
            ("LINKED", "-I/home/ann/link/x"),
            ("FORCED", "-include/home/ann/p/h"),
            ("RESPONSE", "@/home/ann/p/x"),
            ("BRACED", "${/home/ann/p}"),
            ("KEPT", "/home/ann/project:/home/ann/pip.conf"),
            ("KEPT_TOO", "/srv/home/ann/p:-I/home/ann/p.d a..b"),
        ] {
            host.environment.insert(name.to_owned(), value.to_owned());
        }
        let told = helper_environment(&host, &machine);
        assert_eq!(told["PATH"], "/home/ann/bin:/usr/bin");
        let new: Vec<&str> = told.keys().map(String::as_str).filter(|name| !OWN.contains(name)).collect();
        assert_eq!(new, ["KEPT", "KEPT_TOO"]);
        host.foreign.clear();
        let told = helper_environment(&host, &machine);
        assert_eq!(told.len(), host.environment.len());
        assert_eq!(told["PATH"], "/home/ann/p/bin:/home/ann/link:/home/ann/bin:/usr/bin");
    }

    #[test]
    fn a_data_directory_in_what_is_worked_on_is_refused() {
        let machine = Fake::new(1000)
            .file("/home/ann/p/.git/HEAD", "ref: refs/heads/main\n")
            .link("/home/ann/data", "/home/ann/p");
        let mut host = host(1000, "/home/ann", "/usr/bin");
        host.foreign = vec![HostPath::new("/home/ann/p/sub").unwrap()];
        let refused = |host: &Host, data: &str| {
            let host = Host { data: HostPath::new(data).unwrap(), ..host.clone() };
            data_is_apart(&host, &machine).is_err()
        };
        for (data, expected) in
            [("/home/ann/p/.data", true), ("/home/ann/data/new", true), ("/home/ann/.local/share", false)]
        {
            assert_eq!(refused(&host, data), expected, "{data}");
        }
        host.foreign.clear();
        assert!(!refused(&host, "/home/ann/p/.data"));
    }

    /// What every host of these tests has.
    const OWN: [&str; 8] =
        ["PATH", "HOME", "USER", "TERM", "LC_ALL", "SHELL", "GITHUB_TOKEN", "SSH_AUTH_SOCK"];
}
