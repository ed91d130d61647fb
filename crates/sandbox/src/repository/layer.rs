//! The layer of a git directory, as the list of files that it is in the snapshot.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, io};

use fs_err as fs;
use sandtable_store::id::ObjectId;
use sandtable_store::layer::opaque::{LayerName, open};
use sandtable_store::object::{ObjectKind, ReadObjects};
use sandtable_store::state::{Entry, StateError, What};

use super::BaseHead;
use super::error::RepositoryError;
use crate::attention::{Attention, Interrupted};

/// More files than this are no git directory.
const MOST: usize = 2_000_000;
/// As large a file of text is read.
const TEXT: u64 = 16 << 20;
/// As much of objects is taken at most, compressed as they are.
const ROOM: u64 = 4 << 30;

/// Why the commits of a sandbox cannot be told from what it wrote.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    #[error(
        "the repository keeps its references as reftables, and commits made inside cannot be told from them"
    )]
    Reftable,
    #[error("{0}")]
    Unusable(String),
    #[error(transparent)]
    Failed(#[from] RepositoryError),
}

impl From<Interrupted> for LayerError {
    fn from(interrupted: Interrupted) -> Self {
        Self::Failed(interrupted.into())
    }
}

impl From<io::Error> for LayerError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// The files that the sandbox wrote below `.git`, and the names that it removed.
pub struct Layer<'a> {
    objects: &'a dyn ReadObjects,
    files: BTreeMap<Vec<u8>, Option<ObjectId>>,
    attention: &'a Attention,
}

impl fmt::Debug for Layer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer").field("files", &self.files).finish_non_exhaustive()
    }
}

impl<'a> Layer<'a> {
    pub fn open(
        objects: &'a dyn ReadObjects,
        layer: Option<&ObjectId>,
        attention: &'a Attention,
    ) -> Result<Self, LayerError> {
        let mut files = BTreeMap::new();
        let Some(layer) = layer else { return Ok(Self { objects, files, attention }) };
        let root = open(objects, layer).and_then(|state| state.root().read_root(objects));
        let mut waiting = vec![(Vec::new(), root.map_err(|error| unreadable(&error))?.entries)];
        while let Some((above, entries)) = waiting.pop() {
            attention.heed()?;
            for Entry { name, node } in entries {
                let at = |name: &[u8]| [above.as_slice(), name].concat();
                match (LayerName::parse(&name), node.what) {
                    (Some(LayerName::Whiteout(name)), _) => drop(files.insert(at(name), None)),
                    (Some(LayerName::Entry(name)), What::File(id)) => drop(files.insert(at(name), Some(id))),
                    (Some(LayerName::Entry(name)), What::Directory(below)) => {
                        let below = below.read(objects).map_err(|error| unreadable(&error))?;
                        waiting.push(([at(name).as_slice(), b"/"].concat(), below));
                    }
                    // Links lead nowhere here.
                    _ => {}
                }
                if files.len() > MOST {
                    return Err(unreadable(&StateError::TooMany));
                }
            }
        }
        Ok(Self { objects, files, attention })
    }

    /// Where the sandbox's `HEAD` is.
    pub fn tip(&self, base: &BaseHead) -> Result<Option<ObjectId>, LayerError> {
        if self.files.keys().any(|path| path.starts_with(b".git/reftable/")) {
            return Err(LayerError::Reftable);
        }
        let head = self.text(b".git/HEAD")?;
        let branch = match &head {
            None => base.branch.clone(),
            Some(text) => match text.strip_prefix("ref: ") {
                Some(name) => Some(name.trim().to_owned()),
                None => return Ok(text.trim().parse().ok()),
            },
        };
        let Some(branch) = branch else { return Ok(base.commit) };
        if let Some(text) = self.text(&[b".git/", branch.as_bytes()].concat())? {
            return Ok(text.trim().parse().ok());
        }
        let packed = self.text(b".git/packed-refs")?.unwrap_or_default();
        let line = packed.lines().find_map(|line| line.strip_suffix(&branch)?.strip_suffix(' '));
        let unmoved = base.commit.filter(|_| base.branch.as_deref() == Some(&branch));
        Ok(line.and_then(|id| id.parse().ok()).or(unmoved))
    }

    /// Where the sandbox's `HEAD` and all references are that it wrote itself.
    pub(super) fn tips(&self, base: &BaseHead) -> Result<Vec<ObjectId>, LayerError> {
        let mut tips: Vec<ObjectId> = self.tip(base)?.into_iter().collect();
        for path in self.files.keys().filter(|path| path.starts_with(b".git/refs/")) {
            tips.extend(self.text(path)?.and_then(|text| text.trim().parse::<ObjectId>().ok()));
        }
        Ok(tips)
    }

    /// Writes what can be objects into an empty directory, under names that we make.
    pub fn write_objects(&self, to: &Path) -> Result<(), LayerError> {
        let mut left = ROOM;
        fs::create_dir_all(to.join("pack"))?;
        for (path, id) in self.files.iter().filter_map(|(path, id)| Some((path, (*id)?))) {
            let Some(name) = path.strip_prefix(b".git/objects/").and_then(object_name) else { continue };
            self.attention.heed()?;
            let size = self.objects.header(&id).map_or(u64::MAX, |(_, size)| size);
            let text = "the commits made inside are larger than can be brought over";
            left = left.checked_sub(size).ok_or_else(|| LayerError::Unusable(text.to_owned()))?;
            let file = to.join(name);
            fs::create_dir_all(file.parent().expect("it is below the directory"))?;
            let mut out = fs::File::create_new(file)?;
            self.objects.stream(&id, &mut out).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn text(&self, path: &[u8]) -> Result<Option<String>, LayerError> {
        let Some(Some(id)) = self.files.get(path) else { return Ok(None) };
        let size = self.objects.header(id).map_or(u64::MAX, |(_, size)| size);
        let data = self.objects.read_kind(id, ObjectKind::Blob).ok().filter(|_| size < TEXT);
        let text = data.and_then(|data| String::from_utf8(data).ok());
        let text =
            text.ok_or_else(|| LayerError::Unusable("a reference inside cannot be read".to_owned()))?;
        Ok(Some(text))
    }
}

/// `ab/cdef…` for a loose object, `pack/pack-….pack` or `.idx`; nothing for anything else.
fn object_name(path: &[u8]) -> Option<&Path> {
    let text = str::from_utf8(path).ok()?;
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let (folder, name) = text.split_once('/')?;
    let loose = folder.len() == 2 && hex(folder) && matches!(name.len(), 38 | 62) && hex(name);
    let stem = name.strip_prefix("pack-").and_then(|name| name.split_once('.'));
    let packed =
        folder == "pack" && stem.is_some_and(|(stem, end)| hex(stem) && matches!(end, "pack" | "idx"));
    (loose || packed).then_some(Path::new(text))
}

fn unreadable(error: &StateError) -> LayerError {
    LayerError::Unusable(format!("the git directory inside cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_an_object_is_taken() {
        let id = "0123456789abcdef0123456789abcdef012345";
        for good in [format!("ab/{id}"), format!("pack/pack-{id}.pack"), format!("pack/pack-{id}.idx")] {
            assert!(object_name(good.as_bytes()).is_some(), "{good}");
        }
        let bad =
            ["info/alternates", "ab/../../x", "AB/x", "pack/pack-x.pack", "pack/pack-ab.pack/x", "ab", ""];
        for bad in bad {
            assert!(object_name(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
