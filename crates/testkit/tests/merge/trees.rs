//! Trees that no honest tool makes (board/P1–P9, G5–G8, G14 and box/G3, G8): refused by name, nothing touched.

use sandtable_merge::{Approvals, Mode, Outcome};
use sandtable_store::id::ObjectId;
use sandtable_testkit::env::PATH;
use sandtable_testkit::process::Run;

use crate::world::World;

/// One raw entry of a tree.
struct Raw<'a>(&'a str, &'a [u8], String);

impl World {
    fn blob(&self, text: &str) -> String {
        let file = self.root().join("blob");
        fs_err::write(&file, text).unwrap();
        let name = file.to_str().unwrap();
        self.git_in(&self.store(), &["hash-object", "-w", "--no-filters", name]).trim().to_owned()
    }

    /// A tree exactly as written, however wrong.
    fn raw_tree(&self, entries: &[Raw<'_>]) -> String {
        let mut bytes = Vec::new();
        for Raw(mode, name, id) in entries {
            bytes.extend([mode.as_bytes(), b" ", name, b"\0"].concat());
            bytes.extend_from_slice(id.parse::<ObjectId>().unwrap().as_bytes());
        }
        let file = self.root().join("tree");
        fs_err::write(&file, bytes).unwrap();
        let made = Run::new("git", &self.store()).variable("PATH", PATH).variable("HOME", "/nonexistent");
        let made = made.args(["hash-object", "-t", "tree", "-w", "--literally"]).arg(&file).ended();
        made.expect_code(0).stdout.trim().to_owned()
    }

    /// The base's entries and some more, sorted as they come.
    fn base_entries(&self, base: &ObjectId) -> Vec<(String, Vec<u8>, String)> {
        let listed = self.git_in(&self.store(), &["ls-tree", "-z", &base.to_string()]);
        let entry = |line: &str| {
            let (head, name) = line.split_once('\t').unwrap();
            let words: Vec<&str> = head.split(' ').collect();
            let mode = words[0].trim_start_matches('0').to_owned();
            (mode, name.as_bytes().to_vec(), words[2].to_owned())
        };
        listed.split('\0').filter(|line| !line.is_empty()).map(entry).collect()
    }

    /// Merges a snapshot with these entries besides those of the base; says what came of it.
    fn hostile(&self, extra: &[Raw<'_>]) -> Outcome {
        let base = self.enter();
        let mut entries = self.base_entries(&base);
        entries
            .extend(extra.iter().map(|Raw(mode, name, id)| ((*mode).to_owned(), name.to_vec(), id.clone())));
        let raw: Vec<Raw<'_>> = entries.iter().map(|(mode, name, id)| Raw(mode, name, id.clone())).collect();
        let tree = self.raw_tree(&raw);
        let commit = self.snapshot_of_tree(&tree, Some(&base));
        let mut request = self.request_of(base, commit, Mode::Merge);
        request.approvals = Approvals::All;
        let before = self.fingerprint();
        let outcome = sandtable_merge::merge(&self.means, &request);
        assert_eq!(before.differences(&self.fingerprint()), [""; 0]);
        match outcome {
            Ok(outcome) => outcome.outcome,
            // Git itself would not read such a tree.
            Err(error) => Outcome::RolledBack { reason: error.to_string() },
        }
    }
}

#[track_caller]
fn assert_stopped(outcome: &Outcome, what: &str) {
    let stopped =
        matches!(outcome, Outcome::Refused { .. } | Outcome::RolledBack { .. } | Outcome::Conflicts { .. });
    assert!(stopped, "{what}: {outcome:?}");
}

#[test]
fn names_that_lead_out_or_into_git_are_refused_by_name() {
    for name in [
        ".git",
        ".GIT",
        ".Git",
        "git~1",
        "GIT~2",
        ".git.",
        ".git ",
        ".git::$INDEX_ALLOCATION",
        ".g\u{200c}it",
        "..",
        ".",
        "a/b",
        "a/../../x",
    ] {
        let world = World::new();
        let id = world.blob("x\n");
        let outcome = world.hostile(&[Raw("100644", name.as_bytes(), id.clone())]);
        assert_stopped(&outcome, name);
        if let Outcome::Refused { refusal } = &outcome {
            let named =
                refusal.paths.iter().any(|path| path.path.path.contains(name)) || refusal.text.contains(name);
            assert!(named || refusal.text.contains("check"), "{refusal:?}");
        }
        let inner = world.raw_tree(&[Raw("100644", b"config", id)]);
        assert_stopped(&world.hostile(&[Raw("40000", name.as_bytes(), inner)]), name);
    }
}

#[test]
fn trees_that_are_not_in_order_are_refused() {
    let world = World::new();
    let (id, other) = (world.blob("x\n"), world.blob("y\n"));
    let folder = world.raw_tree(&[Raw("100644", b"f", id.clone())]);
    let cases: [(&str, Vec<Raw<'_>>); 6] = [
        ("duplicate", vec![Raw("100644", b"zz", id.clone()), Raw("100644", b"zz", other.clone())]),
        ("unsorted", vec![Raw("100644", b"zz", id.clone()), Raw("100644", b"zy", other)]),
        ("link and directory", vec![Raw("120000", b"zz", id.clone()), Raw("40000", b"zz", folder.clone())]),
        ("zero-padded", vec![Raw("040000", b"zz", folder)]),
        ("missing object", vec![Raw("100644", b"zz", "1".repeat(40))]),
        ("empty name", vec![Raw("100644", b"", id)]),
    ];
    for (what, extra) in cases {
        let outcome = world.hostile(&extra);
        assert_stopped(&outcome, what);
    }
}

#[test]
fn links_into_git_and_linked_settings_are_refused() {
    let world = World::new();
    let (hooks, inside) = (world.blob(".git/hooks"), world.blob("README"));
    assert_stopped(&world.hostile(&[Raw("120000", b"zz", hooks)]), "into git");
    for name in [".gitattributes", ".gitmodules", ".GitModules", "gitmod~1"] {
        assert_stopped(&world.hostile(&[Raw("120000", name.as_bytes(), inside.clone())]), name);
    }
}

#[test]
fn dangerous_module_files_are_refused_even_when_approved() {
    let world = World::new();
    for text in [
        "[submodule \"../../x\"]\n\tpath = x\n\turl = ./x\n",
        "[submodule \"x\"]\n\tpath = x\n\turl = -u./payload\n",
        "[submodule \"x\"]\n\tpath = -x\n\turl = ./x\n",
    ] {
        let id = world.blob(text);
        assert_stopped(&world.hostile(&[Raw("100644", b".gitmodules", id)]), text);
    }
}

#[test]
fn a_repository_inside_the_tree_is_held_and_a_commit_of_one_too() {
    let world = World::new();
    let base = world.enter();
    world.git_in(&world.inside(), &["init", "-q", "nested"]);
    world.inside_write("nested/file", "x\n");
    world.git_in(&world.inside().join("nested"), &["add", "file"]);
    world.git_in(&world.inside().join("nested"), &["commit", "-q", "-m", "nested"]);
    world.git_in(&world.inside(), &["init", "-q", "--bare", "naked"]);
    world.inside_write("naked/objects/x", "x");
    world.inside_write("naked/refs/x", "x");
    let request = world.request(base, Mode::Merge);
    let before = world.fingerprint();
    let outcome = world.merge(&request);
    assert_eq!(before.differences(&world.fingerprint()), [""; 0]);
    let Outcome::Held { held } = &outcome.outcome else { panic!("{outcome:?}") };
    let rules: Vec<(&str, &str)> = held.iter().map(|f| (f.path.path.as_str(), f.rule.as_ref())).collect();
    assert!(rules.contains(&("nested", "gitlink")), "{rules:?}");
    assert!(rules.contains(&("naked/config", "bare-repository")), "{rules:?}");
}
