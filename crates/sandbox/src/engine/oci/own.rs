//! Where our own files are inside a container.
//!
//! Engines mount by the number of components of a target, fewest first. Our executable has more than any other
//! mount, so it is mounted last: wherever a link of the image, or one that a workload left in a directory of its own,
//! leads another mount, nothing comes to lie over PID 1.

use std::path::Path;

use crate::model::mount::MountTable;

/// Our own executable inside.
pub const INIT: &str = "/.sandtable/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/init";
/// The directory of the door inside.
pub(super) const DOOR: &str = "/.sandtable/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/door";
/// The socket in it.
pub(super) const SOCKET: &str = "/.sandtable/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/door/socket";

/// Where our executable is in a container with these mounts: at [`INIT`], or below that if something else is as deep.
pub(super) fn init(mounts: &MountTable) -> String {
    let depth = |path: &Path| path.components().count();
    let deepest = mounts.iter().map(|mount| depth(mount.target.as_path())).max().unwrap_or(0);
    let missing = (deepest + 1).saturating_sub(depth(Path::new(INIT)));
    let (directory, name) = INIT.rsplit_once('/').expect("an absolute path");
    format!("{directory}{}/{name}", "/0".repeat(missing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::mount::{Content, Mount};
    use crate::model::path::BoxPath;
    use crate::model::setting::Origin;

    #[test]
    fn nothing_is_as_deep_as_our_executable() {
        let depth = |path: &str| Path::new(path).components().count();
        for deep in [1, 3, 22, 23, 24, 25, 60] {
            let target = BoxPath::new("/a".repeat(deep)).expect("absolute");
            let mount =
                Mount { target, content: Content::Empty, reason: String::new(), origin: Origin::Default };
            let init = init(&MountTable::new(vec![mount]).expect("one mount"));
            assert!(depth(&init) > deep + 1, "{init}");
            assert!(deep > 20 || init == INIT, "{init}");
        }
        assert!(depth(INIT) > depth(DOOR));
    }
}
