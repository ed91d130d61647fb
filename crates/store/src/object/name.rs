//! Names that git keeps out of a tree: `.git`, and what HFS+ and NTFS take for it.
//!
//! HFS+ leaves some code points out when it compares names, NTFS drops dots and spaces at the end, has short
//! names such as `git~1` and streams behind a colon, and takes a backslash for a separator. A tree that is
//! checked out there could so replace the repository itself. The rules are those of git with `core.protectHFS`
//! and `core.protectNTFS`, on every system.

/// Whether git refuses an entry of this name, whatever it is.
pub fn git_refuses(name: &[u8]) -> bool {
    matches!(name, b"" | b"." | b"..")
        || name.iter().any(|byte| matches!(byte, 0 | b'/'))
        || hfs_is(name, b"git")
        || after_backslashes(name).any(ntfs_is_git)
}

/// Whether git refuses a symlink of this name: `.gitmodules` must be a file, and so must its aliases.
pub fn git_refuses_symlink(name: &[u8]) -> bool {
    git_refuses(name) || hfs_is(name, b"gitmodules") || after_backslashes(name).any(ntfs_is_modules)
}

/// The name, and what follows each backslash in it.
fn after_backslashes(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let behind = name.iter().enumerate().filter(|(_, byte)| **byte == b'\\').map(|(at, _)| &name[at + 1..]);
    std::iter::once(name).chain(behind)
}

fn ntfs_is_git(name: &[u8]) -> bool {
    let rest = strip_fold(name, b".git").or_else(|| strip_fold(name, b"git~1"));
    rest.is_some_and(|rest| {
        let end = rest.iter().find(|byte| !matches!(byte, b'.' | b' '));
        matches!(end, None | Some(b'\\' | b':'))
    })
}

fn ntfs_is_modules(name: &[u8]) -> bool {
    let rest = strip_fold(name, b".gitmodules").or_else(|| short_name(name)).or_else(|| hashed_name(name));
    rest.is_some_and(|rest| {
        let end = rest.iter().find(|byte| !matches!(byte, b'.' | b' '));
        matches!(end, None | Some(b':'))
    })
}

/// `gitmod~1` to `gitmod~4`, the first short names that NTFS gives; what follows it.
fn short_name(name: &[u8]) -> Option<&[u8]> {
    let rest = strip_fold(name, b"gitmod~")?;
    matches!(rest.first(), Some(b'1'..=b'4')).then(|| &rest[1..])
}

/// `gi7eba~1` and shorter beginnings with longer numbers, which NTFS gives when the first are taken; eight bytes.
fn hashed_name(name: &[u8]) -> Option<&[u8]> {
    let short = name.get(..8)?;
    let tilde = short.iter().position(|byte| *byte == b'~')?;
    let (start, number) = (&short[..tilde], &short[tilde + 1..]);
    let fits = strip_fold(b"gi7eba", start).is_some()
        && matches!(number.first(), Some(b'1'..=b'9'))
        && number.iter().all(u8::is_ascii_digit);
    fits.then(|| &name[8..])
}

/// Whether HFS+ takes `name` for a dot and `wanted`.
fn hfs_is(name: &[u8], wanted: &[u8]) -> bool {
    let mut found = HfsFold(name);
    let same = std::iter::once(&b'.').chain(wanted).all(|byte| {
        found.next().is_some_and(|c| c.is_ascii() && c.to_ascii_lowercase() == char::from(*byte))
    });
    // What is not a character ends a name there, as in git.
    same && found.next().is_none()
}

/// The characters of a name that HFS+ compares, up to its end or to what is no character.
struct HfsFold<'a>(&'a [u8]);

impl Iterator for HfsFold<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        loop {
            let found = self.0.utf8_chunks().next()?.valid().chars().next()?;
            self.0 = &self.0[found.len_utf8()..];
            match found {
                '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}' => {}
                // Git's decoder refuses these two.
                '\u{fffe}' | '\u{ffff}' => return None,
                other => return Some(other),
            }
        }
    }
}

/// What follows `start` in `name`, without regard to ASCII case.
fn strip_fold<'a>(name: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = name.split_at_checked(start.len())?;
    head.eq_ignore_ascii_case(start).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_refused() {
        let refused: [&[u8]; 18] = [
            b"",
            b".",
            b"..",
            b"a/b",
            b"a\0",
            b".git",
            b".GiT",
            b".git. .",
            b".git::$INDEX_ALLOCATION",
            b".git:x",
            b"git~1",
            b"GIT~1...",
            b"x\\.git",
            b"x\\git~1\\y",
            ".g\u{200c}it".as_bytes(),
            ".git\u{feff}".as_bytes(),
            b".git\xff",
            ".git\u{fffe}".as_bytes(),
        ];
        for name in refused {
            assert!(git_refuses(name), "{}", name.escape_ascii());
        }
        let fine: [&[u8]; 8] =
            [b"...", b".gitignore", b"git~2", b"git", ".g\u{131}t".as_bytes(), b".gi\xfft", b".git-x", b"\\"];
        for name in fine {
            assert!(!git_refuses(name), "{}", name.escape_ascii());
        }
    }

    #[test]
    fn modules_are_no_symlink() {
        let refused: [&[u8]; 8] = [
            b".gitmodules",
            b".GITMODULES .",
            b".gitmodules:x",
            b"gitmod~1",
            b"GITMOD~4. ",
            b"gi7eba~1",
            b"gi7~1234",
            ".gitmod\u{200d}ules".as_bytes(),
        ];
        for name in refused {
            assert!(git_refuses_symlink(name), "{}", name.escape_ascii());
            assert!(!git_refuses(name), "{}", name.escape_ascii());
        }
        let fine: [&[u8]; 4] = [b"gitmod~5", b"gi7eba~0", b"gi7ebb~1", b".gitattributes"];
        for name in fine {
            assert!(!git_refuses_symlink(name), "{}", name.escape_ascii());
        }
    }
}
