//! Which new files a repository would not track: build results and the like stay where they are.

use std::collections::BTreeSet;

use sandtable_sandbox::model::ignore_file::ignore_file;
use sandtable_sandbox::model::path::HostPath;
use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;
use sandtable_store::ignore::{self, EntryKind, FILE_LIMIT, Rules, Verdict};
use sandtable_store::object::{EntryMode, TreeEntry};
use sandtable_store::regular;

use super::error::Error;
use super::request::Means;
use super::scratch::Scratch;
use super::target::Repository;

/// The paths that the rules in `tree`, and those of the user, ignore. The paths come sorted.
///
/// The rules are a sandbox's, so they are read by our own matcher: there are patterns that keep git's busy for ever.
pub(super) fn ignored(
    scratch: &Scratch,
    repository: &Repository,
    means: &Means,
    (tree, paths): (&ObjectId, &[&RelPath]),
) -> Result<BTreeSet<RelPath>, Error> {
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let rules = Rules::default().and(&users_rules(repository, means), b"").unwrap_or_default();
    let mut walk = Walk { scratch, folder: Vec::new(), levels: Vec::new() };
    walk.enter(Some(*tree), (rules, Verdict::Kept))?;
    let mut ignored = BTreeSet::new();
    for path in paths {
        if walk.verdict(path)? == Verdict::Ignored {
            ignored.insert((*path).clone());
        }
    }
    Ok(ignored)
}

/// The way to the directory of the path that was asked about last.
struct Walk<'a> {
    scratch: &'a Scratch,
    /// With a slash at its end, unless it is the root.
    folder: Vec<u8>,
    levels: Vec<Level>,
}

struct Level {
    /// How long the way to it is, with the slash.
    length: usize,
    tree: Option<ObjectId>,
    rules: Rules,
    verdict: Verdict,
}

impl Walk<'_> {
    fn verdict(&mut self, path: &RelPath) -> Result<Verdict, Error> {
        let path = path.as_bytes();
        while !path.starts_with(&self.folder) {
            self.levels.pop();
            self.folder.truncate(self.here().length);
        }
        while let Some(end) = path[self.folder.len()..].iter().position(|byte| *byte == b'/') {
            let (start, end) = (self.folder.len(), self.folder.len() + end);
            let here = self.here();
            let verdict = here.about(&path[..end], EntryKind::Directory);
            let tree = here.tree.and_then(|tree| self.entry(&tree, &path[start..end]));
            let tree = tree.filter(|found| found.mode == EntryMode::Tree).map(|found| found.id);
            let rules = here.rules.clone();
            self.folder.extend_from_slice(&path[start..=end]);
            self.enter(tree, (rules, verdict))?;
        }
        Ok(self.here().about(path, EntryKind::Other))
    }

    /// Goes into `folder`, where the rules above hold and its own, which have more weight.
    fn enter(&mut self, tree: Option<ObjectId>, (above, verdict): (Rules, Verdict)) -> Result<(), Error> {
        let file = tree.and_then(|tree| self.entry(&tree, ignore::FILE));
        let file = file.filter(|found| matches!(found.mode, EntryMode::File | EntryMode::Executable));
        let rules = match file {
            Some(file) if self.scratch.trees().blob_size(&file.id).is_ok_and(|size| size <= FILE_LIMIT) => {
                above.and(&self.scratch.blob(&file.id)?, &self.folder).unwrap_or(above)
            }
            _ => above,
        };
        self.levels.push(Level { length: self.folder.len(), tree, rules, verdict });
        Ok(())
    }

    /// What cannot be read has no rules: then nothing is left out.
    fn entry(&self, tree: &ObjectId, name: &[u8]) -> Option<TreeEntry> {
        let name = RelPath::root().join(name).ok()?;
        self.scratch.trees().at(tree, &name).ok().flatten()
    }

    fn here(&self) -> &Level {
        self.levels.last().expect("the root is never left")
    }
}

impl Level {
    /// What is in an ignored directory is ignored, whatever else is said about it.
    fn about(&self, path: &[u8], kind: EntryKind) -> Verdict {
        match self.verdict {
            Verdict::Ignored => Verdict::Ignored,
            Verdict::Kept => self.rules.verdict(path, kind),
        }
    }
}

/// Rules that are in no tree.
fn users_rules(repository: &Repository, means: &Means) -> Vec<u8> {
    let home = means.home.as_ref().map(HostPath::as_path);
    let settings = means.config_home();
    let top = repository.root.as_ref().map_or(repository.git_dir.as_path(), HostPath::as_path);
    let own = ignore_file(repository.settings.excludes_file(), home, settings.as_deref());
    let own = own.map(|file| top.join(file));
    let files = [own, Some(repository.common_dir.join("info/exclude"))];
    let mut rules = Vec::new();
    for file in files.into_iter().flatten() {
        rules.extend(regular::read(&file, FILE_LIMIT).unwrap_or_default());
        rules.push(b'\n');
    }
    rules
}
