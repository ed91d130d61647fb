//! The first state of a repository: the same as by hashing everything, with git's index doing the work, and nothing of the
//! repository touched.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sandtable_store::RelPath;
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::ignore::Rules;
use sandtable_store::object::Memory;
use sandtable_store::objects::{Loose, Objects};
use sandtable_store::snapshot::{
    Ignored, IndexUse, Onboarded, Onboarding, Settings, SizeOf, SkipReason, SnapshotOptions, Store, onboard,
};
use sandtable_store::source::attributes::Conversion;
use sandtable_store::source::index::Unusable;
use sandtable_store::source::{self, Before, Stamp, scan};
use sandtable_store::state::{Editor, What, edit};
use support::git::{git, git_tree};
use support::{Dice, setting};

/// A repository in a directory of its own.
struct Repository {
    dir: tempfile::TempDir,
}

impl Repository {
    fn new(format: &str) -> Self {
        let new = Self { dir: tempfile::tempdir().unwrap() };
        new.git(&["init", "-q", "--object-format", format]);
        new
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn git(&self, arguments: &[&str]) -> Vec<u8> {
        git(&self.at(".git"), self.dir.path(), arguments)
    }

    fn write(&self, name: &str, text: &str) {
        fs_err::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs_err::write(self.at(name), text).unwrap();
    }

    /// Adds everything, with an index that is older than no file by so little that it could not be believed.
    fn settle(&self) {
        std::thread::sleep(std::time::Duration::from_millis(60));
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        std::thread::sleep(std::time::Duration::from_millis(60));
        self.git(&["update-index", "--really-refresh", "--force-write-index"]);
    }
}

fn plain() -> Settings {
    Settings { conversion: Conversion::None, ..Settings::default() }
}

fn onboarded(root: &Path, memory: &Memory, settings: &Settings, sizes: Option<&dyn SizeOf>) -> Onboarded {
    let rules = Rules::default();
    let options = SnapshotOptions { ignored: Ignored::None, ..SnapshotOptions::all(&rules, &|| false) };
    let store = Store { objects: memory, sink: memory };
    onboard(root, store, Onboarding { options, settings, sizes, index: None, cache: None }).unwrap()
}

/// What git itself would say of the same directory, in a repository of its own.
fn expected(root: &Path, format: &str) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let repository = scratch.path().join("scratch");
    git(&repository, root, &["init", "-q", "--object-format", format]);
    fs_err::create_dir_all(repository.join("info")).unwrap();
    // Nothing is converted, whatever the tree's own attributes say.
    let raw = "* -text -eol -ident -filter !working-tree-encoding\n";
    fs_err::write(repository.join("info/attributes"), raw).unwrap();
    git_tree(&repository, root, &["."])
}

#[test]
fn clean_files_are_not_read_and_changed_ones_are() {
    for (format, hash) in [("sha1", HashKind::Sha1), ("sha256", HashKind::Sha256)] {
        for version in ["2", "4"] {
            let source = Repository::new(format);
            for number in 0..40 {
                source.write(&format!("d{}/f{number}", number % 3), &format!("text {number}"));
            }
            source.write(".gitignore", "*.o\nforced/\n");
            source.write("x.o", "ignored");
            source.write("forced/tracked", "tracked all the same");
            source.write("forced/other", "ignored");
            source.git(&["update-index", "--index-version", version]);
            source.git(&["add", "-f", "forced/tracked"]);
            source.settle();
            source.write("d1/f1", "TEXT 1");
            source.write("new", "untracked");
            fs_err::remove_file(source.at("d2/f2")).unwrap();
            let memory = Memory::new(hash);
            let found = onboarded(source.dir.path(), &memory, &plain(), None);
            // Those of 40 that are neither changed nor gone, the rules, and the one that was forced.
            assert_eq!((found.outcome.counts.files_known, found.outcome.counts.files_read), (40, 2));
            assert_eq!(found.outcome.borrowed.len(), 40);
            assert_eq!(found.index, IndexUse::Asked { entries: 42, sparse: false });
            source.git(&["add", "-A"]);
            let tree = String::from_utf8(source.git(&["write-tree"])).unwrap();
            assert_eq!(found.outcome.state.tree.to_string(), tree.trim());
        }
    }
}

/// Everything about every file of a repository that a program could have changed, except when it was read.
fn fingerprint(root: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, u64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(path) = pending.pop() {
        let meta = fs_err::symlink_metadata(&path).unwrap();
        let content = if meta.is_file() { fs_err::read(&path).unwrap() } else { Vec::new() };
        if meta.is_dir() {
            pending.extend(fs_err::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        all.insert(path, (meta.ino(), meta.mtime_nsec(), meta.ctime_nsec(), meta.nlink(), content));
    }
    all
}

#[test]
fn the_repository_is_not_touched() {
    let source = Repository::new("sha1");
    source.write("a", "a");
    source.settle();
    source.write("b", "b");
    let before = fingerprint(source.dir.path());
    let memory = Memory::new(HashKind::Sha1);
    assert_eq!(onboarded(source.dir.path(), &memory, &plain(), None).outcome.counts.files_known, 1);
    assert_eq!(fingerprint(source.dir.path()), before);
}

#[test]
fn random_edits_are_never_missed() {
    let mut dice = Dice::any();
    let names: Vec<String> = (0..6).map(|number| format!("d{}/f{number}", number % 2)).collect();
    let texts = ["aaaa", "bbbb", "cccc", "longer"];
    let mut known = 0;
    for round in 0..setting("SANDTABLE_ROUNDS", 12) * 4 {
        let source = Repository::new("sha1");
        for _ in 0..12 {
            let (name, text) = (dice.pick(&names), dice.pick::<&str>(&texts));
            source.write(name, text);
            match dice.roll(4) {
                0 => drop(source.git(&["add", "-A"])),
                1 => {
                    // The times are set back to what they were; only the change time knows.
                    let modified = fs_err::metadata(source.at(name)).unwrap().modified().unwrap();
                    source.write(name, dice.pick::<&str>(&texts));
                    let file = std::fs::OpenOptions::new().write(true).open(source.at(name)).unwrap();
                    file.set_modified(modified).unwrap();
                }
                2 if dice.roll(4) == 0 => std::thread::sleep(std::time::Duration::from_millis(30)),
                _ => {}
            }
        }
        let memory = Memory::new(HashKind::Sha1);
        let found = onboarded(source.dir.path(), &memory, &plain(), None);
        known += found.outcome.counts.files_known;
        assert_eq!(
            found.outcome.state.tree.to_string(),
            expected(source.dir.path(), "sha1"),
            "round {round}"
        );
    }
    assert!(known > 0, "the index was never of use");
}

/// Sizes of blobs, from git.
#[derive(Debug)]
struct Sizes<'a>(&'a Path);

impl SizeOf for Sizes<'_> {
    fn size_of(&self, id: &ObjectId) -> Option<u64> {
        let said = git(&self.0.join(".git"), self.0, &["cat-file", "-s", &id.to_string()]);
        str::from_utf8(&said).ok()?.trim().parse().ok()
    }
}

#[test]
fn what_git_converts_is_read() {
    let source = Repository::new("sha1");
    source.write(".gitattributes", "*.txt text\n*.secret filter=x\n");
    source.write("unix.txt", "one\ntwo\n");
    source.write("dos.txt", "one\r\ntwo\r\n");
    source.write("a.secret", "filtered");
    source.write("plain", "as it is");
    source.git(&["config", "filter.x.clean", "tr a-z A-Z"]);
    source.settle();
    let memory = Memory::new(HashKind::Sha1);
    let found = onboarded(source.dir.path(), &memory, &plain(), None);
    assert_eq!((found.outcome.counts.files_known, found.outcome.counts.files_read), (2, 3));
    assert_eq!(found.outcome.state.tree.to_string(), expected(source.dir.path(), "sha1"));
    // Whoever can tell sizes need not read what was not converted after all.
    let sizes = Sizes(source.dir.path());
    let found = onboarded(source.dir.path(), &memory, &plain(), Some(&sizes));
    assert_eq!((found.outcome.counts.files_known, found.outcome.counts.files_read), (3, 2));
    assert_eq!(found.outcome.state.tree.to_string(), expected(source.dir.path(), "sha1"));
    // A caller who knows nothing of the user's settings gets everything hashed.
    let found = onboarded(source.dir.path(), &memory, &Settings::default(), None);
    assert_eq!(found.outcome.counts.files_known, 0);
}

#[test]
fn an_index_that_refers_to_others_is_not_asked() {
    let source = Repository::new("sha1");
    source.write("a", "a");
    source.settle();
    source.git(&["update-index", "--split-index"]);
    let memory = Memory::new(HashKind::Sha1);
    let found = onboarded(source.dir.path(), &memory, &plain(), None);
    assert_eq!(found.index, IndexUse::Refused(Unusable::Extension(*b"link")));
    assert_eq!(found.outcome.counts.files_read, 1);
    assert_eq!(found.outcome.state.tree.to_string(), expected(source.dir.path(), "sha1"));
}

#[test]
fn an_index_of_gigabytes_is_not_read() {
    let source = Repository::new("sha1");
    source.write("a", "a");
    source.settle();
    let index = fs_err::File::create(source.dir.path().join(".git/index")).unwrap();
    index.set_len(3 << 30).unwrap();
    let memory = Memory::new(HashKind::Sha1);
    let found = onboarded(source.dir.path(), &memory, &plain(), None);
    assert_eq!(found.index, IndexUse::Refused(Unusable::TooLarge));
    assert_eq!(found.outcome.counts.files_read, 1);
}

#[test]
fn a_linked_worktree_has_its_own_index_and_shared_rules() {
    let source = Repository::new("sha1");
    source.write("a", "a");
    source.settle();
    fs_err::write(source.at(".git/info/exclude"), "*.tmp\n").unwrap();
    let place = tempfile::tempdir().unwrap();
    let linked = place.path().join("linked");
    source.git(&["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap()]);
    fs_err::write(linked.join("b"), "b").unwrap();
    fs_err::write(linked.join("c.tmp"), "c").unwrap();
    let memory = Memory::new(HashKind::Sha1);
    let found = onboarded(&linked, &memory, &plain(), None);
    let repository = found.repository.unwrap();
    assert_ne!(repository.git_dir, repository.common_dir);
    assert!(repository.objects().is_dir());
    assert!(matches!(found.index, IndexUse::Asked { entries: 1, .. }));
    fs_err::remove_file(linked.join("c.tmp")).unwrap();
    assert_eq!(found.outcome.state.tree.to_string(), expected(&linked, "sha1"));
}

#[test]
fn a_submodule_is_named_and_its_files_are_not_taken() {
    let inner = Repository::new("sha1");
    inner.write("x", "x");
    inner.settle();
    let source = Repository::new("sha1");
    source.write("a", "a");
    let from = inner.dir.path().to_str().unwrap();
    source.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "sub"]);
    source.settle();
    let memory = Memory::new(HashKind::Sha1);
    let found = onboarded(source.dir.path(), &memory, &plain(), None);
    let path = RelPath::new("sub").unwrap();
    let node = found.outcome.state.lookup(&memory, &path).unwrap().unwrap();
    assert!(matches!(node.what, What::Gitlink(_)));
    let skipped: Vec<_> = found.outcome.skipped.iter().map(|one| (one.path.clone(), one.why)).collect();
    assert_eq!(skipped, [(path, SkipReason::Submodule)]);
    let tree = String::from_utf8(source.git(&["write-tree"])).unwrap();
    assert_eq!(found.outcome.state.tree.to_string(), tree.trim());
}

#[test]
fn a_directory_without_a_repository_is_hashed() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::write(dir.path().join("a"), "a").unwrap();
    let memory = Memory::new(HashKind::Sha1);
    let found = onboarded(dir.path(), &memory, &Settings::default(), None);
    assert_eq!((found.repository, found.index), (None, IndexUse::None));
    assert_eq!(found.outcome.counts.files_read, 1);
}

/// Files that moved while a state was recorded are put back to what they were, and those that came are taken out.
#[test]
fn what_moved_meanwhile_is_taken_from_git() {
    let repository = Repository::new("sha1");
    for name in ["edited", "removed", "renamed", "kept", "dir/deep/gone"] {
        repository.write(name, &format!("old {name}\n"));
    }
    repository.settle();
    repository.write("dirty", "never added\n");
    let old = expected(repository.dir.path(), "sha1");
    std::thread::sleep(std::time::Duration::from_millis(60));
    let moment = Stamp::now();
    repository.write("young", "as old as the command\n");
    let before = Before::look(repository.dir.path(), moment, HashKind::Sha1).unwrap();
    let listing = scan(repository.dir.path(), &source::SourceOptions::new(&|| false)).unwrap();
    repository.write("edited", "new edited\n");
    fs_err::remove_file(repository.at("removed")).unwrap();
    fs_err::rename(repository.at("renamed"), repository.at("other")).unwrap();
    fs_err::remove_dir_all(repository.at("dir")).unwrap();
    repository.write("more/and/more", "came\n");
    repository.write("dirty", "nobody knows\n");
    let memory = Memory::new(HashKind::Sha1);
    let users = Objects::new(&repository.at(".git/objects"), HashKind::Sha1, Loose::Read);
    let outcome = onboarded(repository.dir.path(), &memory, &plain(), Some(&users)).outcome;
    assert!(before.is_since(outcome.counts.newest_ns));
    let state = outcome.state;
    let after = scan(repository.dir.path(), &source::SourceOptions::new(&|| false)).unwrap();
    let corrections = before.corrections((&listing, &after), &users);
    let named: Vec<String> = corrections.keys().map(RelPath::display_escaped).collect();
    assert_eq!(named, ["dir/deep/gone", "edited", "more", "other", "removed", "renamed"]);
    let mut editor = Editor::new(&memory, &memory, &state).unwrap();
    edit::apply(&mut editor, corrections).unwrap();
    let state = editor.finish().unwrap();
    // But for what nobody can know.
    repository.git(&["checkout", "-q", "."]);
    fs_err::remove_dir_all(repository.at("more")).unwrap();
    fs_err::remove_file(repository.at("other")).unwrap();
    assert_eq!(state.tree.to_string(), expected(repository.dir.path(), "sha1"));
    fs_err::remove_file(repository.at("young")).unwrap();
    repository.write("dirty", "never added\n");
    assert_eq!(old, expected(repository.dir.path(), "sha1"));
}

#[test]
fn with_attributes_nothing_is_taken_from_git_for_what_moved() {
    let repository = Repository::new("sha1");
    repository.write("f", "old\n");
    repository.write("d/.gitattributes", "* ident\n");
    repository.settle();
    std::thread::sleep(std::time::Duration::from_millis(60));
    assert!(Before::look(repository.dir.path(), Stamp::now(), HashKind::Sha1).is_none());
    fs_err::remove_file(repository.at("d/.gitattributes")).unwrap();
    repository.settle();
    std::thread::sleep(std::time::Duration::from_millis(60));
    let before = Before::look(repository.dir.path(), Stamp::now(), HashKind::Sha1).unwrap();
    let memory = Memory::new(HashKind::Sha1);
    let outcome = onboarded(repository.dir.path(), &memory, &plain(), None).outcome;
    assert!(!before.is_since(outcome.counts.newest_ns), "nothing moved");
}
