//! The list by which one directory of objects borrows from others, as git writes it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// The directories of a list; a relative one is meant below the directory of objects itself.
pub(crate) fn listed(list: &[u8]) -> impl Iterator<Item = PathBuf> {
    let lines = list.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#');
    lines.map(|line| OsString::from_vec(plain(line)).into())
}

/// A line, which git may have put in quotes.
fn plain(line: &[u8]) -> Vec<u8> {
    let Some(quoted) = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")) else {
        return line.to_vec();
    };
    let (mut bytes, mut rest) = (Vec::with_capacity(quoted.len()), quoted);
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let octal = rest.get(..3).and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        match (first, octal, rest.first()) {
            (b'\\', Some(byte), _) => {
                bytes.push(byte);
                rest = &rest[3..];
            }
            (b'\\', None, Some(escaped)) => {
                bytes.push(*escaped);
                rest = &rest[1..];
            }
            _ => bytes.push(*first),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_quoted_line_is_the_path_it_stands_for() {
        assert_eq!(plain(b"/a b"), b"/a b");
        assert_eq!(plain(br#""/a\"b\\c\012d""#), b"/a\"b\\c\nd");
        assert_eq!(plain(b"\""), b"\"");
    }
}
