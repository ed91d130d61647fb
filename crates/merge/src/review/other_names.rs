//! Other names of the place where a tree of files is: `/tmp/r` for `/private/tmp/r`, or a link in the home directory to the
//! disk that it lies on. A link with such a name in its text leads into the tree like one with the real name.
//!
//! Only links of the host are followed, those beside the tree and beside the directories above it, and in the home directory,
//! and of these only the ones whose words lead near the tree: where any other leads may be a disk on the network that no longer
//! answers. What the text of a link in the tree says is compared with their names and never looked up.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_sandbox::model::path::HostPath;
use sandtable_store::RelPath;

use super::leads::plain;

/// As many entries of one directory are looked at.
const ENTRIES: usize = 4096;

/// Links of the host that lead to a tree, to a directory above it or into it.
#[derive(Clone, Debug, Default)]
pub struct OtherNames {
    root: PathBuf,
    /// Each with the real place.
    names: Vec<(PathBuf, PathBuf)>,
}

impl OtherNames {
    pub fn of(root: &Path, home: Option<&HostPath>) -> Self {
        let folders = root.ancestors().skip(1).chain(home.map(HostPath::as_path));
        let near = near(root, folders.flat_map(links).collect());
        let real = near.into_iter().filter_map(|name| Some((fs::canonicalize(&name).ok()?, name)));
        let leads = real.filter(|(real, _)| root.starts_with(real) || real.starts_with(root));
        Self { root: root.to_owned(), names: leads.map(|(real, name)| (name, real)).collect() }
    }

    /// The text of a link with real names in the place of others.
    pub(super) fn respelled(&self, link: &RelPath, text: &[u8]) -> Vec<Vec<u8>> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let above = self.root.join(OsStr::from_bytes(link.as_bytes()));
        let leads = plain(&above.parent().unwrap_or(&self.root).join(OsStr::from_bytes(text)));
        if leads.starts_with(&self.root) {
            return Vec::new();
        }
        let real = |(name, real): &(PathBuf, PathBuf)| Some(real.join(leads.strip_prefix(name).ok()?));
        self.names.iter().filter_map(real).map(|path| path.into_os_string().into_vec()).collect()
    }
}

/// The links in a directory, and what they say as a path from the root.
fn links(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES);
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links
        .filter_map(|entry| Some((entry.path(), plain(&folder.join(fs::read_link(entry.path()).ok()?)))))
        .collect()
}

/// Those of the links that say a place above, at or below `root`, or one behind another of those. Looks nothing up.
fn near(root: &Path, links: Vec<(PathBuf, PathBuf)>) -> Vec<PathBuf> {
    let (mut near, mut others): (Vec<_>, Vec<_>) =
        links.into_iter().partition(|(_, says)| root.starts_with(says) || says.starts_with(root));
    let mut looked = 0;
    while looked < near.len() {
        let known: Vec<PathBuf> = near[looked..].iter().map(|(name, _)| name.clone()).collect();
        looked = near.len();
        let (more, rest) =
            others.into_iter().partition(|(_, says)| known.iter().any(|name| says.starts_with(name)));
        others = rest;
        near.extend::<Vec<_>>(more);
    }
    near.into_iter().map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use fs_err as fs;
    use fs_err::os::unix::fs::symlink;
    use sandtable_store::RelPath;

    use super::{OtherNames, near};
    use sandtable_sandbox::model::path::HostPath;

    fn near_the_tree(links: &[(&str, &str)]) -> Vec<PathBuf> {
        let links = links.iter().map(|(name, says)| (PathBuf::from(name), PathBuf::from(says))).collect();
        near(Path::new("/mnt/disk/r"), links)
    }

    #[test]
    fn only_links_that_say_a_place_near_the_tree_are_followed() {
        let links = [
            ("/home/u/above", "/mnt/disk"),
            ("/home/u/at", "/mnt/disk/r"),
            ("/home/u/below", "/mnt/disk/r/src"),
            ("/home/u/beside", "/mnt/disk/rest"),
            ("/home/u/dead", "/net/server/share"),
        ];
        assert_eq!(
            near_the_tree(&links),
            ["/home/u/above", "/home/u/at", "/home/u/below"].map(PathBuf::from)
        );
    }

    #[test]
    fn a_link_that_leads_there_through_others_is_followed_in_whatever_order_they_come() {
        let links = [
            ("/home/u/third", "/home/u/second/r"),
            ("/home/u/second", "/disk/x"),
            ("/home/u/dead", "/diskette/r"),
            ("/disk", "/mnt/disk"),
        ];
        assert_eq!(near_the_tree(&links), ["/disk", "/home/u/second", "/home/u/third"].map(PathBuf::from));
        assert!(near_the_tree(&links[..3]).is_empty());
    }

    #[test]
    fn a_link_in_the_home_directory_gives_the_tree_another_name() {
        let directory = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(directory.path()).unwrap();
        let (root, home) = (place.join("disk/r"), place.join("home/u"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&home).unwrap();
        symlink("../../disk", home.join("disk")).unwrap();
        symlink("/nowhere", home.join("dead")).unwrap();
        let says = home.join("disk/r/docs").into_os_string().into_encoded_bytes();
        let respelled = |home: Option<&Path>| {
            let home = home.map(|home| HostPath::new(home).unwrap());
            OtherNames::of(&root, home.as_ref()).respelled(&RelPath::new("link").unwrap(), &says)
        };
        assert_eq!(respelled(Some(&home)), [root.join("docs").into_os_string().into_encoded_bytes()]);
        assert!(respelled(None).is_empty());
    }
}
