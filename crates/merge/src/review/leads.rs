//! Where a path of the host leads, through links of the host, whether something is there yet or not.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use fs_err as fs;

/// As long a chain of links is followed, as in the kernel.
const LONGEST: usize = 40;

/// A path as it is written, as it is after each link on its way, and last as the place that it leads to. A name that is
/// not there stands for itself: somebody may make it.
pub(super) fn spellings(path: &Path) -> Vec<PathBuf> {
    followed(path, |_| true)
}

/// The same as far as the way goes through directories above, at or below some places. What is in another one is not
/// looked up.
pub(super) fn spellings_near(path: &Path, near: &[PathBuf]) -> Vec<PathBuf> {
    followed(path, |at| near.iter().any(|place| place.starts_with(at) || at.starts_with(place)))
}

fn followed(path: &Path, is_looked_into: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let (mut at, mut rest) = (PathBuf::from("/"), names(path));
    let mut found = vec![plain(path)];
    let mut hops = 0;
    while let Some(name) = rest.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let here = at.join(name);
        let link = if is_looked_into(&at) { fs::read_link(&here).ok() } else { None };
        match link {
            Some(text) if hops < LONGEST => {
                hops += 1;
                if text.is_absolute() {
                    at = PathBuf::from("/");
                }
                rest.extend(names(&text));
                found.push(plain(&rest.iter().rev().fold(at.clone(), |path, name| path.join(name))));
            }
            _ => at = here,
        }
    }
    found.push(at);
    found
}

/// The names of a path, the first one last.
fn names(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    names.collect()
}

/// A path without `.` and `..`, by its words.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use fs_err::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_followed_through_links_to_what_is_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir_all(place.join("proj/deep")).unwrap();
        for (text, name) in [
            ("proj/dev", "dead"),
            ("../proj/dev", "proj/up"),
            ("proj/deep", "there"),
            ("one", "two"),
            ("two", "one"),
        ] {
            symlink(text, place.join(name)).unwrap();
        }
        symlink(place.join("there/x"), place.join("far")).unwrap();
        for (path, expected) in [
            ("plain/a", &["plain/a", "plain/a"][..]),
            ("dead/hooks", &["dead/hooks", "proj/dev/hooks", "proj/dev/hooks"]),
            ("there/../x", &["x", "proj/x", "proj/x"]),
            ("proj/up", &["proj/up", "proj/dev", "proj/dev"]),
            ("far", &["far", "there/x", "proj/deep/x", "proj/deep/x"]),
        ] {
            let expected: Vec<PathBuf> = expected.iter().map(|path| place.join(path)).collect();
            assert_eq!(spellings(&place.join(path)), expected, "{path}");
        }
        assert_eq!(spellings(&place.join("one")).len(), LONGEST + 2, "a circle ends");
        let near = |at: &str| spellings_near(&place.join("far"), &[place.join(at)]).pop().unwrap();
        assert_eq!((near("proj"), near("elsewhere")), (place.join("proj/deep/x"), place.join("proj/deep/x")));
        symlink("deep/none", place.join("proj/odd")).unwrap();
        let near = |at: &str| spellings_near(&place.join("proj/odd"), &[place.join(at)]).pop().unwrap();
        assert_eq!((near("proj"), near("other")), (place.join("proj/deep/none"), place.join("proj/odd")));
    }
}
