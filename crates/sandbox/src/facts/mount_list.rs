//! The list of mounts as the program `mount` of macOS prints it: one line each, `DEVICE on PATH (KIND, option, …)`.
//!
//! It was made for people: a line that could mean two things, or nothing, is an error. The list decides what lies below
//! a directory, so half of it would be worse than none.

use std::path::PathBuf;

use super::MountPoint;

/// A line that is not of that form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0} of the list of mounts is not understood")]
pub struct MountListError(usize);

/// Reads what `mount` printed.
pub fn parse_mount_list(text: &str) -> Result<Vec<MountPoint>, MountListError> {
    let lines = text.lines().enumerate();
    lines.map(|(number, line)| mount_point(line).ok_or(MountListError(number + 1))).collect()
}

fn mount_point(line: &str) -> Option<MountPoint> {
    let (head, options) = line.strip_suffix(')')?.rsplit_once(" (")?;
    let (_device, target) = head.split_once(" on /")?;
    if target.contains(" on /") {
        return None;
    }
    let mut options = options.split(", ");
    let file_system = options.next()?.to_owned();
    Some(MountPoint {
        target: PathBuf::from(format!("/{target}")),
        // Parts of file systems are not mounted.
        root: PathBuf::from("/"),
        file_system,
        read_only: options.any(|option| option == "read-only"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_mac_are_understood() {
        let text = "/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)\n\
                    devfs on /dev (devfs, local, nobrowse)\n\
                    map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)\n\
                    //me@host/a%20b on /Volumes/a b (old) (smbfs, nodev, nosuid, mounted by me)\n";
        let found = parse_mount_list(text).unwrap();
        let shown: Vec<_> = found
            .iter()
            .map(|mount| (mount.target.to_str().unwrap(), mount.file_system.as_str(), mount.read_only))
            .collect();
        let home = "/System/Volumes/Data/home";
        let share = "/Volumes/a b (old)";
        assert_eq!(
            shown,
            [("/", "apfs", true), ("/dev", "devfs", false), (home, "autofs", false), (share, "smbfs", false)]
        );
    }

    #[test]
    fn what_is_not_understood_is_no_list() {
        for line in ["/dev/disk1 on /a", "/dev/disk1 /a (apfs)", "x on /a on /b (apfs)", "rest of a name (x)"]
        {
            let text = format!("/dev/disk0 on / (apfs)\n{line}\n");
            assert_eq!(parse_mount_list(&text), Err(MountListError(2)), "{line}");
        }
    }
}
