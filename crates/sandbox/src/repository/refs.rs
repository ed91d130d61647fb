//! Where `HEAD` is, read from the files that git keeps it in. Whatever is not plain (another way of keeping references,
//! links, references to references) is not understood here, and git is asked.

use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use fs_err as fs;
use sandtable_store::id::ObjectId;
use sandtable_store::regular;

/// The largest file with one reference, and with all that are packed.
const LINE: u64 = 1 << 16;
const PACKED: u64 = 256 << 20;

/// References of one worktree alone, which lie elsewhere.
const OWN: [&str; 3] = ["refs/bisect/", "refs/worktree/", "refs/rewritten/"];

/// What `HEAD` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    Branch {
        name: String,
        tip: ObjectId,
    },
    /// A branch without a commit.
    Unborn {
        name: String,
    },
    Detached {
        tip: ObjectId,
    },
}

impl Head {
    pub const fn tip(&self) -> Option<&ObjectId> {
        match self {
            Self::Branch { tip, .. } | Self::Detached { tip } => Some(tip),
            Self::Unborn { .. } => None,
        }
    }

    /// The full name of the branch.
    pub fn branch(&self) -> Option<&str> {
        match self {
            Self::Branch { name, .. } | Self::Unborn { name } => Some(name),
            Self::Detached { .. } => None,
        }
    }

    /// The branch as people call it.
    pub fn short(&self) -> String {
        short(self.branch().unwrap_or("HEAD")).to_owned()
    }
}

/// A branch as people call it.
pub fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

/// `HEAD`, or nothing if git must be asked.
pub fn head(git_dir: &Path, common_dir: &Path) -> Option<Head> {
    let file = git_dir.join("HEAD");
    let tables = common_dir.join("reftable");
    if !fs::symlink_metadata(&file).ok()?.is_file() || (tables.exists() && !is_whiteout(&tables)) {
        return None;
    }
    let text = regular::read_to_string(&file, LINE).ok()?;
    let text = text.trim_end();
    let Some(name) = text.strip_prefix("ref: ").map(str::trim_start) else {
        return Some(Head::Detached { tip: text.parse().ok()? });
    };
    if !is_plain(name) {
        return None;
    }
    let name = name.to_owned();
    match tip(common_dir, &name)? {
        Reference::At(tip) => Some(Head::Branch { name, tip }),
        Reference::Nowhere => Some(Head::Unborn { name }),
    }
}

/// Where a reference is; nothing if git must be asked.
pub fn reference_at(common_dir: &Path, name: &str) -> Option<Reference> {
    if !is_plain(name) || common_dir.join("reftable").exists() {
        return None;
    }
    tip(common_dir, name)
}

/// Where a reference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    At(ObjectId),
    Nowhere,
}

impl From<Option<ObjectId>> for Reference {
    fn from(id: Option<ObjectId>) -> Self {
        id.map_or(Self::Nowhere, Self::At)
    }
}

/// Where a branch is; nothing if git must be asked.
fn tip(common_dir: &Path, name: &str) -> Option<Reference> {
    let file = common_dir.join(name);
    match fs::symlink_metadata(&file) {
        Ok(meta) if meta.is_file() => {
            return Some(Reference::At(regular::read_to_string(&file, LINE).ok()?.trim_end().parse().ok()?));
        }
        Ok(meta) if meta.is_dir() => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
        _ => return None,
    }
    // Looked for second: a reference that is packed meanwhile has its file removed after that.
    let packed = common_dir.join("packed-refs");
    if is_whiteout(&packed) {
        return Some(Reference::Nowhere);
    }
    let packed = match regular::read(&packed, PACKED) {
        Ok(packed) => packed,
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(Reference::Nowhere),
        Err(_) => return None,
    };
    let mut lines = packed.split(|byte| *byte == b'\n');
    let found = lines.find_map(|line| line.strip_suffix(name.as_bytes())?.strip_suffix(b" "));
    match found {
        Some(id) => Some(Reference::At(str::from_utf8(id).ok()?.parse().ok()?)),
        None => Some(Reference::Nowhere),
    }
}

/// Whether a layer of ours says that there is no such file.
fn is_whiteout(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_char_device() && meta.rdev() == 0)
}

/// A name that cannot lead anywhere but below `refs`.
pub fn is_plain(name: &str) -> bool {
    let fine = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains("..");
    name.starts_with("refs/") && name.split('/').all(fine) && !OWN.iter().any(|own| name.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn at(id: &str) -> Reference {
        Reference::At(id.parse().unwrap())
    }

    #[test]
    fn a_file_comes_before_the_packed_list() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path();
        fs::write(place.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(head(place, place), Some(Head::Unborn { name: "refs/heads/main".to_owned() }));
        let list = format!(
            "# pack-refs with: peeled fully-peeled sorted \n{ONE} refs/heads/main\n^{TWO}\n{TWO} refs/heads/other/refs/heads/main\n"
        );
        fs::write(place.join("packed-refs"), list).unwrap();
        assert_eq!(tip(place, "refs/heads/main"), Some(at(ONE)));
        fs::create_dir_all(place.join("refs/heads")).unwrap();
        fs::write(place.join("refs/heads/main"), format!("{TWO}\n")).unwrap();
        assert_eq!(tip(place, "refs/heads/main"), Some(at(TWO)));
        fs::write(place.join("HEAD"), format!("{ONE}\n")).unwrap();
        assert_eq!(head(place, place), Some(Head::Detached { tip: ONE.parse().unwrap() }));
    }

    #[test]
    fn what_is_not_plain_is_left_to_git() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path();
        for text in ["ref: ../../etc/passwd", "ref: refs/heads/../../x", "ref: refs/bisect/bad", "nonsense"] {
            fs::write(place.join("HEAD"), text).unwrap();
            assert_eq!(head(place, place), None, "{text}");
        }
        fs::create_dir_all(place.join("refs/heads")).unwrap();
        fs::write(place.join("refs/heads/main"), "ref: refs/heads/other\n").unwrap();
        assert_eq!(tip(place, "refs/heads/main"), None);
        fs::create_dir(place.join("reftable")).unwrap();
        fs::write(place.join("HEAD"), "ref: refs/heads/.invalid\n").unwrap();
        assert_eq!(head(place, place), None);
    }
}
