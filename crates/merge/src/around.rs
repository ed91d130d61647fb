//! What is around the changes: the links of the target, and what of it the user's configuration and home directory name.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use fs_err as fs;
use sandtable_sandbox::model::path::HostPath;
use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;

use super::blobs;
use super::error::Error;
use super::or_git::or_git;
use super::request::Means;
use super::review::{Links, OtherNames, Surroundings, places};
use super::scratch::Scratch;
use super::seal::Seal;
use super::target::Target;
use super::tree::{Change, Entry, Mode, foreign};

/// The longest text of a link that the kernel takes.
const LONGEST: u64 = 4096;

/// What is around changes of a target whose states these trees are.
pub(super) fn surroundings(
    means: &Means,
    scratch: &Scratch,
    target: &Target,
    (base, head): (&ObjectId, Option<&ObjectId>),
) -> Result<Surroundings, Error> {
    let root = target.root().map(HostPath::as_path);
    let mut links = Links::new(root);
    links.other_names = root.map(|root| OtherNames::of(root, means.home.as_ref())).unwrap_or_default();
    let mut found = all(scratch, base)?;
    if let Some(head) = head {
        found.extend(of_changes(&scratch.changes(base, head)?));
    }
    links.add(with_texts(scratch, found)?.into_iter().chain(root.into_iter().flat_map(on_disk)));
    let attention = means.git.attention().clone();
    Ok(Surroundings { links, places: places(target, means), seal: Seal::of(&means.state)?, attention })
}

impl Surroundings {
    /// Takes the links into account that changes bring.
    pub(super) fn with(&mut self, scratch: &Scratch, changes: &[Change]) -> Result<(), Error> {
        let mut fresh = with_texts(scratch, of_changes(changes))?;
        fresh.retain(|(path, text)| !self.links.has(path, text));
        if !fresh.is_empty() {
            self.links.add(fresh);
        }
        Ok(())
    }
}

fn of_changes(changes: &[Change]) -> Vec<(RelPath, ObjectId)> {
    let links = changes.iter().filter_map(|change| Some((change, change.new?)));
    let links = links.filter(|(_, new)| new.mode == Mode::Symlink);
    links.map(|(change, new)| (change.path.clone(), new.id)).collect()
}

/// All links of a tree.
fn all(scratch: &Scratch, tree: &ObjectId) -> Result<Vec<(RelPath, ObjectId)>, Error> {
    or_git(scratch.trees().symlinks(tree), || {
        let mut found = Vec::new();
        let call = scratch.call().args(["ls-tree", "-r", "-z", "--full-tree"]).id(tree);
        for field in call.output()?.split(|byte| *byte == 0).filter(|field| field.starts_with(b"120000 ")) {
            if let Some((path, Entry { id, .. })) = super::lookup::line(field)? {
                found.push((path, id));
            }
        }
        Ok(found)
    })
}

/// What the links say. One that is too long leads nowhere.
fn with_texts(scratch: &Scratch, links: Vec<(RelPath, ObjectId)>) -> Result<Vec<(RelPath, Vec<u8>)>, Error> {
    if links.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<ObjectId> = links.iter().map(|(_, id)| *id).collect();
    let sizes = blobs::sizes(scratch, &ids)?;
    let short: Vec<ObjectId> =
        ids.into_iter().filter(|id| sizes.get(id).is_some_and(|size| *size < LONGEST)).collect();
    let texts = blobs::contents(scratch, &short)?;
    Ok(links.into_iter().filter_map(|(path, id)| Some((path, texts.get(&id)?.clone()))).collect())
}

/// The links at the top of the target, also those that no state records because they are ignored.
fn on_disk(root: &Path) -> Vec<(RelPath, Vec<u8>)> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let read = |entry: fs::DirEntry| {
        let text = fs::read_link(entry.path()).ok()?.into_os_string().into_vec();
        let name: &OsStr = &entry.file_name();
        Some((foreign(name.as_bytes()).ok()?, text))
    };
    links.filter_map(read).collect()
}
