//! Names that something takes for another name.

/// Whether git, or a file system that git runs on, takes this name for `.git`.
pub(super) fn is_dot_git(name: &[u8]) -> bool {
    let text = String::from_utf8_lossy(name);
    // HFS+ ignores these characters; NTFS ends a name at a colon and drops dots and spaces at its end.
    let plain: String = text.chars().filter(|char| !is_ignored(*char)).collect::<String>().to_lowercase();
    let plain = plain.replace('\u{131}', "i");
    let short = plain.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    let tilde = short
        .strip_prefix("git~")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
    // A backslash separates on Windows.
    short == ".git"
        || tilde
        || (plain.contains('\\') && plain.split('\\').any(|part| is_dot_git(part.as_bytes())))
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
    fn names_of_devices_and_what_windows_refuses() {
        for name in ["CON", "aux.c", "COM¹", "lpt9.txt", "a.", "b ", "x:y", "a\\b", "nul "] {
            assert!(is_unportable(name.as_bytes()), "{name:?}");
        }
        for name in ["console", "com", "com10", "auxiliary.c", "a.b"] {
            assert!(!is_unportable(name.as_bytes()), "{name:?}");
        }
    }
}
