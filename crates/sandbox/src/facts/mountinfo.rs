//! The kernel's list of mounts (`proc_pid_mountinfo(5)`). Paths in it are bytes; space, tab, newline and
//! backslash are written as three octal digits.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use super::MountPoint;

/// A line that is not of the documented form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0} of the list of mounts is not understood")]
pub struct MountInfoError(usize);

/// Reads the contents of `/proc/self/mountinfo`.
pub fn parse_mountinfo(bytes: &[u8]) -> Result<Vec<MountPoint>, MountInfoError> {
    bytes
        .split(|&byte| byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| mount_point(line).ok_or(MountInfoError(number + 1)))
        .collect()
}

fn mount_point(line: &[u8]) -> Option<MountPoint> {
    let mut fields = line.split(|&byte| byte == b' ');
    // Mount id, parent id and device number come first.
    let root = fields.nth(3)?;
    let target = fields.next()?;
    let options = fields.next()?;
    let file_system = fields.skip_while(|field| *field != b"-").nth(1)?;
    Some(MountPoint {
        target: unescaped(target),
        root: unescaped(root),
        file_system: String::from_utf8_lossy(file_system).into_owned(),
        read_only: options.split(|&byte| byte == b',').any(|option| option == b"ro"),
    })
}

fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let (byte, next) = match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', next @ ..] => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), next)
            }
            _ => (first, tail),
        };
        bytes.push(byte);
        rest = next;
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_optional_fields_are_understood() {
        let text =
            b"36 35 98:0 /a\\040b /mnt/x\\134y\\011z rw,noatime master:1 shared:2 - ext4 /dev/root rw\n\
            37 36 0:5 / /proc ro,nosuid - proc proc rw\n";
        let mounts = parse_mountinfo(text).unwrap();
        assert_eq!(mounts[0].target, PathBuf::from("/mnt/x\\y\tz"));
        assert_eq!(mounts[0].root, PathBuf::from("/a b"));
        assert_eq!((mounts[0].file_system.as_str(), mounts[0].read_only), ("ext4", false));
        assert_eq!((mounts[1].file_system.as_str(), mounts[1].read_only), ("proc", true));
    }

    #[test]
    fn a_broken_line_is_named() {
        assert_eq!(parse_mountinfo(b"\n1 2 3:4 / /x rw ext4 a b\n"), Err(MountInfoError(2)));
    }

    proptest::proptest! {
        #[test]
        fn any_path_survives_the_kernels_escapes(path in proptest::collection::vec(1_u8..=255, 1..20)) {
            let mut escaped = Vec::new();
            for byte in &path {
                match byte {
                    b' ' | b'\t' | b'\n' | b'\\' => escaped.extend(format!("\\{byte:03o}").bytes()),
                    other => escaped.push(*other),
                }
            }
            proptest::prop_assert_eq!(unescaped(&escaped), PathBuf::from(OsString::from_vec(path)));
        }
    }
}
