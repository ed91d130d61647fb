//! A repository, a sandbox's copy of it, and a store with the snapshots of both.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sandtable_merge::git::FOLDERS;
use sandtable_merge::{
    Approvals, Binding, CommitText, Effect, Git, Means, MergeOutcome, MergeRequest, Mode, Outcome, Reason,
    Way, merge,
};
use sandtable_sandbox::model::path::HostPath;
use sandtable_store::id::ObjectId;
use sandtable_store::{RelPath, state};
use sandtable_testkit::env::PATH;
use sandtable_testkit::fingerprint::Fingerprint;
use sandtable_testkit::process::{Ended, Run};
use tempfile::TempDir;

/// Everything a merge needs, in a directory of its own.
pub(crate) struct World {
    root: PathBuf,
    _dir: Option<TempDir>,
    pub(crate) means: Means,
}

/// A repository at one moment.
pub(crate) struct Untouched(Fingerprint, BTreeMap<PathBuf, Vec<u8>>);

impl Untouched {
    pub(crate) fn differences(&self, later: &Self) -> Vec<String> {
        let mut lines = self.0.differences(&later.0);
        let differs = |path: &&PathBuf| self.1.get(*path) != later.1.get(*path);
        let all: BTreeSet<&PathBuf> = self.1.keys().chain(later.1.keys()).collect();
        lines.extend(all.into_iter().filter(differs).map(|path| path.display().to_string()));
        lines
    }
}

pub(crate) fn host(path: &Path) -> HostPath {
    HostPath::new(path).unwrap()
}

pub(crate) fn rel(path: &str) -> RelPath {
    RelPath::new(path).unwrap()
}

impl World {
    /// Empty: no repository yet.
    pub(crate) fn bare() -> Self {
        let dir = tempfile::Builder::new().prefix("st-").tempdir().unwrap();
        fs_err::create_dir_all(dir.path().join("home")).unwrap();
        let world = Self::at(dir.path());
        Self { _dir: Some(dir), ..world }
    }

    /// One that another process made.
    pub(crate) fn at(root: &Path) -> Self {
        let means = Means {
            git: Git::find(FOLDERS).unwrap(),
            state: host(&root.join("state")),
            home: Some(host(&root.join("home"))),
            git_variables: Vec::new(),
        };
        Self { root: root.to_owned(), _dir: None, means }
    }

    /// A repository with a few files and one commit.
    pub(crate) fn new() -> Self {
        Self::with_init(&[])
    }

    pub(crate) fn with_init(options: &[&str]) -> Self {
        let world = Self::bare();
        fs_err::create_dir_all(world.repo()).unwrap();
        world.git_in(&world.root, &[&["init", "-q", "-b", "main"], options, &["repo"]].concat());
        for (path, text) in SAMPLE {
            world.write(path, text);
        }
        world.write("build.sh", "#!/bin/sh\necho built\n");
        fs_err::set_permissions(world.repo().join("build.sh"), PermissionsExt::from_mode(0o755)).unwrap();
        fs_err::os::unix::fs::symlink("README", world.repo().join("link")).unwrap();
        world.git(&["add", "-A"]);
        world.git(&["commit", "-q", "-m", "first"]);
        let format = if options.iter().any(|option| option.contains("sha256")) { "sha256" } else { "sha1" };
        let format = format!("--object-format={format}");
        world.git_in(&world.root, &["init", "-q", "--bare", &format, "store"]);
        world
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.root.join("repo")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    pub(crate) fn inside(&self) -> PathBuf {
        self.root.join("box")
    }

    /// The user's git, with the user's home.
    pub(crate) fn run_git(&self, directory: &Path, args: &[&str]) -> Ended {
        Run::new("git", directory)
            .variable("PATH", PATH)
            .variable("HOME", self.root.join("home"))
            .variable("GIT_CONFIG_NOSYSTEM", "1")
            .args(["-c", "user.name=Sample", "-c", "user.email=sample@example.invalid"])
            .args(["-c", "init.defaultRefFormat=files", "-c", "advice.detachedHead=false"])
            .args(args)
            .ended()
    }

    pub(crate) fn git_in(&self, directory: &Path, args: &[&str]) -> String {
        self.run_git(directory, args).expect_code(0).stdout
    }

    /// In the repository.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.repo(), args)
    }

    /// A file of the user's.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        write(&self.repo().join(path), text.as_ref());
    }

    pub(crate) fn read(&self, path: &str) -> String {
        String::from_utf8_lossy(&fs_err::read(self.repo().join(path)).unwrap()).into_owned()
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// Takes the base, and gives the sandbox its copy of it.
    pub(crate) fn enter(&self) -> ObjectId {
        let base = self.snapshot(&self.repo(), None);
        fs_err::remove_dir_all(self.inside()).ok();
        let copy = Run::new("cp", &self.root).variable("PATH", PATH);
        let _copied = copy.args(["-a", "repo", "box"]).ended().expect_code(0);
        fs_err::remove_dir_all(self.inside().join(".git")).ok();
        fs_err::remove_file(self.inside().join(".git")).ok();
        base
    }

    /// A file that the sandbox wrote.
    pub(crate) fn inside_write(&self, path: &str, text: impl AsRef<[u8]>) {
        write(&self.inside().join(path), text.as_ref());
    }

    /// The state of a directory as a commit in the store, raw as it is on disk.
    pub(crate) fn snapshot(&self, directory: &Path, parent: Option<&ObjectId>) -> ObjectId {
        let store = self.store();
        let index = self.root.join("snapshot.index");
        fs_err::remove_file(&index).ok();
        let run = |args: &[&str]| {
            let run = Run::new("git", directory).variable("PATH", PATH).variable("GIT_DIR", &store);
            let run = run.variable("GIT_INDEX_FILE", &index).variable("GIT_WORK_TREE", directory);
            let run = run.variable("HOME", "/nonexistent").variable("GIT_ATTR_SOURCE", self.empty_tree());
            run.args(["-c", "core.autocrlf=false", "-c", "core.excludesFile=/dev/null"]).args(args).ended()
        };
        let _added = run(&["add", "-A", "-f", "."]).expect_code(0);
        let tree = run(&["write-tree"]).expect_code(0).stdout.trim().to_owned();
        self.snapshot_of_tree(&tree, parent)
    }

    pub(crate) fn snapshot_of_tree(&self, tree: &str, parent: Option<&ObjectId>) -> ObjectId {
        let parent = parent.map(ToString::to_string);
        let mut args = vec!["commit-tree", "-m", "snapshot", tree];
        if let Some(parent) = &parent {
            args.extend(["-p", parent]);
        }
        self.git_in(&self.store(), &args).trim().parse().unwrap()
    }

    fn empty_tree(&self) -> String {
        let made = self.run_git(&self.store(), &["hash-object", "-w", "-t", "tree", "/dev/null"]);
        made.expect_code(0).stdout.trim().to_owned()
    }

    /// A request for everything between the base and what is inside now.
    pub(crate) fn request(&self, base: ObjectId, mode: Mode) -> MergeRequest {
        self.request_of(base, self.snapshot(&self.inside(), Some(&base)), mode)
    }

    pub(crate) fn request_of(&self, base: ObjectId, snapshot: ObjectId, mode: Mode) -> MergeRequest {
        MergeRequest {
            target: host(&self.repo()),
            store: host(&self.store()),
            base,
            snapshot,
            base_head: None,
            mode,
            effect: Effect::Deliver,
            only: Vec::new(),
            exclude: Vec::new(),
            hunks: BTreeMap::new(),
            history: None,
            way: Way::There,
            approvals: Approvals::None,
            binding: Binding::default(),
            drifted: BTreeSet::new(),
            commit: CommitText { message: "Work".to_owned(), ..CommitText::default() },
            log: None,
            unrecorded: state::LeftOut::default(),
            beyond_git: Vec::new(),
        }
    }

    pub(crate) fn merge(&self, request: &MergeRequest) -> MergeOutcome {
        merge(&self.means, request).unwrap()
    }

    /// Everything about the repository that must not change. Git may note on an object that it was needed again; so of
    /// those only names and contents count.
    pub(crate) fn fingerprint(&self) -> Untouched {
        let objects = self.repo().join(".git/objects");
        let mut listed = BTreeMap::new();
        let mut waiting = vec![objects.clone()];
        while let Some(folder) = waiting.pop() {
            for entry in fs_err::read_dir(&folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    waiting.push(path);
                } else {
                    listed.insert(path.clone(), fs_err::read(path).unwrap());
                }
            }
        }
        Untouched(Fingerprint::of(&self.repo(), &[&objects]), listed)
    }

    /// Runs a request that must be refused for this reason, and holds that nothing was touched.
    #[track_caller]
    pub(crate) fn refused(&self, request: &MergeRequest, reason: Reason) -> MergeOutcome {
        let before = self.fingerprint();
        let outcome = self.merge(request);
        let same = before.differences(&self.fingerprint());
        assert_eq!(same, [""; 0], "{:?}", outcome.outcome);
        match &outcome.outcome {
            Outcome::Refused { refusal } => assert_eq!(refusal.reason, reason, "{refusal:?}"),
            other => panic!("not refused: {other:?}"),
        }
        assert!(!outcome.success);
        outcome
    }

    /// Runs a request that must succeed, and lets git check the repository.
    #[track_caller]
    pub(crate) fn succeeds(&self, request: &MergeRequest) -> MergeOutcome {
        let outcome = self.merge(request);
        assert!(outcome.success, "{outcome:#?}");
        self.sound();
        outcome
    }

    /// Nothing is left lying about and git finds no fault.
    #[track_caller]
    pub(crate) fn sound(&self) {
        self.git(&["fsck", "--strict", "--no-dangling"]);
        let git_dir = self.git(&["rev-parse", "--absolute-git-dir"]);
        for entry in fs_err::read_dir(git_dir.trim()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.contains("sandtable") && !name.contains(".lock"), "{name} was left");
        }
    }

    pub(crate) fn status(&self) -> String {
        self.git(&["status", "--porcelain"])
    }
}

const SAMPLE: [(&str, &str); 4] = [
    ("README", "A sample.\n"),
    ("src/main.c", "int main(void)\n{\n\tint a = 1;\n\tint b = 2;\n\tint c = 3;\n\treturn 0;\n}\n"),
    ("src/deep/er/util.c", "int util;\n"),
    ("docs/guide.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"),
];

pub(crate) fn write(path: &Path, text: &[u8]) {
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}
