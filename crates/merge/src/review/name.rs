//! Names that something takes for another name.

/// Whether git, or a file system that git runs on, takes this name for `.git`.
pub(super) fn is_dot_git(name: &[u8]) -> bool {
    is_taken_for(name, &[(".git", "git~")])
}

/// The directories of other version control, and how their short names on NTFS begin.
const OTHERS: [(&str, &str); 7] = [
    (".hg", "hg~"),
    (".jj", "jj~"),
    (".sl", "sl~"),
    (".svn", "svn~"),
    ("_darcs", "_darcs~"),
    (".bzr", "bzr~"),
    (".pijul", "pijul~"),
];

/// What CVS keeps in its directories. Other files in a directory of that name, not written in capitals, are sources.
const OF_CVS: [&str; 10] = [
    "root",
    "repository",
    "entries",
    "entries.log",
    "entries.static",
    "tag",
    "template",
    "checkin.prog",
    "update.prog",
    "notify",
];

/// Whether a part of a path is the directory of a version control other than git's.
pub(super) fn is_version_control(parts: &[&[u8]], at: usize) -> bool {
    let of_cvs = |name: &&[u8]| OF_CVS.contains(&String::from_utf8_lossy(name).to_lowercase().as_str());
    let cvs = is_taken_for(parts[at], &[("cvs", "cvs~")])
        && parts.get(at + 1).is_some_and(|next| parts[at] == b"CVS" || of_cvs(next));
    cvs || is_taken_for(parts[at], &OTHERS)
}

/// Whether a file system takes a name for one of these, each with how its short name begins.
fn is_taken_for(name: &[u8], wanted: &[(&str, &str)]) -> bool {
    // Most names are of plain letters and begin otherwise, and a path may have thousands.
    let begins = |word: &str| name.first().is_some_and(|byte| byte.eq_ignore_ascii_case(&word.as_bytes()[0]));
    let plain = name.is_ascii() && !name.contains(&b'\\');
    if plain && !wanted.iter().any(|(name, start)| begins(name) || begins(start)) {
        return false;
    }
    let text = String::from_utf8_lossy(name);
    // HFS+ ignores these characters; NTFS ends a name at a colon and drops dots and spaces at its end.
    let plain: String = text.chars().filter(|char| !is_ignored(*char)).collect::<String>().to_lowercase();
    let plain = plain.replace('\u{131}', "i");
    let short = plain.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    let tilde = |start: &str| {
        let number = short.strip_prefix(start).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    // A backslash separates on Windows.
    wanted.iter().any(|(name, start)| short == *name || tilde(start))
        || (plain.contains('\\') && plain.split('\\').any(|part| is_taken_for(part.as_bytes(), wanted)))
}

fn is_ignored(char: char) -> bool {
    matches!(char, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Whether Windows cannot have such a name, or takes it for a device.
pub(super) fn is_unportable(name: &[u8]) -> bool {
    let text = String::from_utf8_lossy(name).to_lowercase();
    let stem = text.split(['.', ':']).next().unwrap_or_default().trim_end();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.chars().count() == 1 && rest.chars().all(|c| "123456789¹²³".contains(c)))
    };
    matches!(stem, "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
        || numbered("com")
        || numbered("lpt")
        || text.ends_with(['.', ' '])
        || text.contains(['\\', ':', '*', '?', '"', '<', '>', '|'])
}

/// Whether a name has what a terminal obeys, does not show, or cannot show.
pub(super) fn is_odd(name: &[u8]) -> bool {
    match str::from_utf8(name) {
        // As most are, and a path may have thousands.
        Ok(text) if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) => false,
        Err(_) => true,
        Ok(text) => {
            sandtable_store::path::escape(text.replace('\\', "/").as_bytes()) != text.replace('\\', "/")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_git_directory_is_known() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            "git~1",
            "GIT~2",
            ".git.",
            ".git ",
            ".git. .",
            ".git::$INDEX_ALLOCATION",
            ".g\u{200c}it",
            ".g\u{131}t",
            "\u{feff}.git",
            "a\\.git",
            ".git:x",
        ] {
            assert!(is_dot_git(name.as_bytes()), "{name:?}");
        }
        for name in ["git", ".gitignore", ".github", "git~", "x.git", "git~a"] {
            assert!(!is_dot_git(name.as_bytes()), "{name:?}");
        }
    }

    #[test]
    fn directories_of_other_version_control_are_known() {
        let is = |path: &str| {
            let parts: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
            (0..parts.len()).any(|at| is_version_control(&parts, at))
        };
        for path in [
            ".hg/hgrc",
            "a/.HG/hgrc",
            ".hg",
            ".jj/repo/config.toml",
            ".sl/config",
            ".svn/wc.db",
            ".SVN/x",
            "_darcs/prefs/x",
            "_Darcs",
            ".bzr/branch",
            ".pijul/config",
            "CVS/Root",
            "CVS/x",
            "cvs/Entries",
            "a/Cvs/root",
            "HG~1/hgrc",
            ".hg./hgrc",
            ".hg::$INDEX_ALLOCATION/x",
            ".h\u{200c}g/x",
            "a\\.svn",
        ] {
            assert!(is(path), "{path}");
        }
        for path in [
            ".hgignore",
            "hg/x",
            ".svnignore",
            "cvs/parser.c",
            "bin/cvs",
            "CVS",
            "darcs/x",
            ".slx",
            "x.sl",
            ".jjconfig",
        ] {
            assert!(!is(path), "{path}");
        }
    }

    #[test]
    fn names_of_devices_and_what_windows_refuses() {
        for name in ["CON", "aux.c", "COM¹", "lpt9.txt", "a.", "b ", "x:y", "a\\b", "nul "] {
            assert!(is_unportable(name.as_bytes()), "{name:?}");
        }
        for name in ["console", "com", "com10", "auxiliary.c", "a.b"] {
            assert!(!is_unportable(name.as_bytes()), "{name:?}");
        }
    }
}
