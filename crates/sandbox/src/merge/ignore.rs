//! Which new files a repository would not track: build results and the like stay where they are.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;

use super::error::Error;
use super::lookup::lookup;
use super::scratch::Scratch;
use super::target::Repository;
use super::tree::Mode;
use crate::model::path::HostPath;

/// The longest path for which a rule file is made; nobody has rules that deep.
const LONGEST: usize = 2000;

/// The paths that the rules in `tree`, and those of the user, ignore.
///
/// The rule files are written alone into a directory of the scratch repository, and git is asked there.
pub(super) fn ignored(
    scratch: &Scratch,
    repository: &Repository,
    home: Option<&HostPath>,
    (tree, paths): (&ObjectId, &[&RelPath]),
) -> Result<BTreeSet<RelPath>, Error> {
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let folder = scratch.path().join("rules");
    fs::create_dir_all(&folder)?;
    let wanted: BTreeSet<RelPath> = paths.iter().flat_map(|path| rule_files(path)).collect();
    for (path, entry) in lookup(scratch, tree, wanted.iter())? {
        let name = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes())).to_owned();
        if entry.mode.is_regular() && entry.mode != Mode::Gitlink {
            let file = folder.join(&name);
            fs::create_dir_all(file.parent().expect("it is below the folder"))?;
            fs::write(file, scratch.blob(&entry.id)?)?;
        }
    }
    fs::create_dir_all(scratch.path().join("info"))?;
    fs::write(scratch.path().join("info/exclude"), users_rules(repository, home))?;
    // Here alone git takes no literal paths. A name that it would take for a pattern is not ignored, so it is seen.
    let plain = paths.iter().filter(|path| !path.as_bytes().starts_with(b":"));
    let input: Vec<u8> = plain.flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
    let call = scratch.call().work_tree(&folder).without("GIT_LITERAL_PATHSPECS");
    let call = call.args(["check-ignore", "--no-index", "-z", "--stdin"]);
    let answer = call.finished(Some(&input), &[0, 1])?.stdout;
    answer.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(super::tree::foreign).collect()
}

/// The rule files that have a say about a path.
fn rule_files(path: &RelPath) -> Vec<RelPath> {
    let mut files = Vec::new();
    let mut folder = path.parent();
    while let Some(at) = folder {
        if at.as_bytes().len() < LONGEST {
            files.extend(at.join(b".gitignore"));
        }
        folder = at.parent();
    }
    files
}

/// Rules that are in no tree.
fn users_rules(repository: &Repository, home: Option<&HostPath>) -> Vec<u8> {
    let global = match (repository.settings.excludes_file(), home) {
        (Some(path), home) => match (path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => Some(home.as_path().join(rest)),
            _ => Some(PathBuf::from(path)),
        },
        (None, Some(home)) => Some(home.as_path().join(".config/git/ignore")),
        (None, None) => None,
    };
    let files = [global, Some(repository.common_dir.join("info/exclude"))];
    let mut rules = Vec::new();
    for file in files.into_iter().flatten() {
        rules.extend(fs::read(file).unwrap_or_default());
        rules.push(b'\n');
    }
    rules
}
