//! Where the user's own list of ignored files is, by what git's configuration says.

use std::path::{Path, PathBuf};

/// The file that `core.excludesFile` names, as git takes it: from the home directory with `~/`, or from the top of the working
/// tree if it is relative. Where nothing names one it is in the directory of the user's settings. An empty name means none.
pub fn ignore_file(named: Option<&str>, home: Option<&Path>, settings: Option<&Path>) -> Option<PathBuf> {
    match named {
        Some("") => None,
        Some(named) => Some(match (named.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(named),
        }),
        None => Some(settings?.join("git/ignore")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::ignore_file;

    #[test]
    fn a_name_means_what_it_means_to_git() {
        let (home, settings) = (Some(Path::new("/home/u")), Some(Path::new("/home/u/.config")));
        for (named, expected) in [
            (None, Some("/home/u/.config/git/ignore")),
            (Some(""), None),
            (Some("~/list"), Some("/home/u/list")),
            (Some("/etc/list"), Some("/etc/list")),
            (Some("list"), Some("list")),
        ] {
            assert_eq!(ignore_file(named, home, settings), expected.map(PathBuf::from), "{named:?}");
        }
        assert_eq!(ignore_file(None, None, None), None);
    }
}
