use std::collections::{BTreeMap, BTreeSet};

use sandtable_store::id::ObjectId;

use super::*;

/// Contents by the last byte of their id.
#[derive(Default)]
struct Sample(BTreeMap<u8, Vec<u8>>, BTreeSet<String>);

impl Contents for Sample {
    fn read(&self, entry: &Entry, limit: usize) -> Result<(Vec<u8>, u64), Error> {
        let bytes = self.0.get(entry.id.as_bytes().last().unwrap()).cloned().unwrap_or_default();
        let size = bytes.len() as u64;
        Ok((bytes[..bytes.len().min(limit)].to_vec(), size))
    }

    fn has(&self, path: &RelPath) -> Result<bool, Error> {
        Ok(self.1.contains(&path.to_text().0))
    }
}

fn entry(mode: Mode, last: u8) -> Entry {
    let mut bytes = [0; 20];
    bytes[19] = last;
    Entry { mode, id: ObjectId::from_bytes(&bytes).unwrap() }
}

fn added(path: impl Into<Vec<u8>>, mode: Mode, last: u8) -> Change {
    Change { path: RelPath::new(path).unwrap(), old: None, new: Some(entry(mode, last)) }
}

fn rules_for(change: Change, sample: &Sample) -> (Vec<&'static str>, Vec<&'static str>) {
    let review = review(&[change], sample, &Approvals::None).unwrap();
    let rules = |list: Vec<Finding>| list.into_iter().map(|finding| finding.rule).collect();
    (rules(review.held), rules(review.refused))
}

/// The list of `snapshots.md` §5.7 and box/G4, one name of each.
const LISTED: &[&str] = &[
    ".gitattributes",
    "a/.gitmodules",
    ".gitconfig",
    ".githooks/pre-commit",
    ".husky/pre-push",
    "lefthook.yml",
    ".pre-commit-config.yaml",
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".vscode/launch.json",
    ".idea/workspace.xml",
    ".devcontainer/devcontainer.json",
    ".envrc",
    "Makefile",
    "justfile",
    "build.rs",
    "crates/x/build.rs",
    "package.json",
    "setup.py",
    "conftest.py",
    ".cargo/config.toml",
    ".npmrc",
    ".yarnrc.yml",
    "pip.conf",
    "CLAUDE.md",
    "AGENTS.md",
    ".claude/settings.json",
    ".codex/config.toml",
    ".mcp.json",
    ".cursor/rules",
    ".gemini/settings.json",
    "Cargo.lock",
    "package-lock.json",
    "sitecustomize.py",
    "venv/bin/python",
    ".env",
    "deploy.pem",
    "id_ed25519",
];

#[test]
fn everything_listed_is_held_with_a_reason() {
    for path in LISTED {
        for name in [(*path).to_owned(), path.to_uppercase(), format!("deep/er/{path}")] {
            let review = review(&[added(name.as_str(), Mode::File, 0)], &Sample::default(), &Approvals::None);
            let held = review.unwrap().held;
            assert!(!held.is_empty(), "{name}");
            assert!(held.iter().all(|finding| finding.reason.len() > 10));
        }
    }
}

#[test]
fn plain_source_is_not_held() {
    for path in
        ["src/main.rs", "README.md", "docs/guide.txt", "lib/a.py", "web/index.html", "src/makefile.rs"]
    {
        assert_eq!(rules_for(added(path, Mode::File, 0), &Sample::default()), (vec![], vec![]), "{path}");
    }
}

#[test]
fn what_only_the_content_tells_is_held() {
    let large = vec![b'a'; (5 << 20) + 1];
    let texts: [(u8, &[u8]); 6] = [
        (1, b"\0\x01"),
        (2, "a\u{202e}b".as_bytes()),
        (3, b"-----BEGIN OPENSSH PRIVATE KEY-----\n"),
        (4, b"key = AKIAABCDEFGHIJKLMNOP\n"),
        (5, &large),
        (6, b"nothing of the sort, not even task-AKIA\n"),
    ];
    let sample = Sample(texts.iter().map(|(id, text)| (*id, text.to_vec())).collect(), BTreeSet::new());
    let held = |id| rules_for(added("x", Mode::File, id), &sample).0;
    assert_eq!(held(1), ["binary"]);
    assert_eq!(held(2), ["hidden-characters"]);
    assert_eq!(held(3), ["secret"]);
    assert_eq!(held(4), ["secret"]);
    assert_eq!(held(5), ["large"]);
    assert!(held(6).is_empty());
    assert_eq!(rules_for(added("tool", Mode::Executable, 6), &sample).0, ["executable"]);
    assert_eq!(rules_for(added("sub", Mode::Gitlink, 6), &sample).0, ["gitlink"]);
    let executable = Change {
        path: RelPath::new("tool").unwrap(),
        old: Some(entry(Mode::Executable, 9)),
        new: Some(entry(Mode::Executable, 6)),
    };
    assert!(rules_for(executable, &sample).0.is_empty(), "it was a program before");
}

#[test]
fn links_are_held_by_where_they_lead() {
    let targets: [(u8, &[u8]); 8] = [
        (1, b"/etc/passwd"),
        (2, b"../../x"),
        (3, b"../b"),
        (4, b"b/../../../x"),
        (5, b"../.git/hooks/x"),
        (6, b""),
        (7, b"b/c"),
        // Where `b` is a link to `.`, this is out.
        (8, b"b/b/b/../../../x"),
    ];
    let sample = Sample(targets.iter().map(|(id, text)| (*id, text.to_vec())).collect(), BTreeSet::new());
    let of = |id| rules_for(added("d/link", Mode::Symlink, id), &sample);
    for outside in [1, 2, 4, 6, 8] {
        assert_eq!(of(outside).0, ["link-outside"], "{outside}");
    }
    for inside in [3, 7] {
        assert_eq!(of(inside), (vec![], vec![]), "{inside}");
    }
    assert_eq!(of(5).1, ["link-into-git"]);
    assert_eq!(rules_for(added(".gitattributes", Mode::Symlink, 7), &sample).1, ["linked-settings"]);
    assert_eq!(rules_for(added("GITMOD~1", Mode::Symlink, 7), &sample).1, ["linked-settings"]);
}

#[test]
fn names_that_deceive_are_refused_or_held() {
    let sample = Sample::default();
    for name in [".git/config", "a/.GIT/hooks/x", "git~1", "sub/.g\u{200c}it/config"] {
        assert_eq!(rules_for(added(name, Mode::File, 0), &sample).1, ["git-directory"], "{name}");
    }
    assert_eq!(rules_for(added("a\u{202e}b", Mode::File, 0), &sample).0, ["odd-name"]);
    assert_eq!(rules_for(added(b"a\xff".to_vec(), Mode::File, 0), &sample).0, ["odd-name"]);
    assert_eq!(rules_for(added("a\nb", Mode::File, 0), &sample).0, ["odd-name"]);
    assert_eq!(rules_for(added("aux.c", Mode::File, 0), &sample).0, ["unportable-name"]);
}

#[test]
fn a_repository_hidden_in_a_directory_is_held() {
    let files = ["x/HEAD", "x/objects", "x/refs"].map(str::to_owned);
    let sample = Sample(BTreeMap::new(), BTreeSet::from(files));
    assert!(rules_for(added("x/config", Mode::File, 0), &sample).0.contains(&"bare-repository"));
    assert!(!rules_for(added("y/config", Mode::File, 0), &sample).0.contains(&"bare-repository"));
}

#[test]
fn an_approval_releases_exactly_what_it_names() {
    let changes = [added("Makefile", Mode::File, 0), added("sub/Makefile", Mode::File, 0)];
    let named = Approvals::Paths(BTreeSet::from([RelPath::new("Makefile").unwrap()]));
    let one = review(&changes, &Sample::default(), &named).unwrap();
    assert_eq!(one.approved.len(), 1);
    assert_eq!(one.held.iter().map(|f| f.path.path.as_str()).collect::<Vec<_>>(), ["sub/Makefile"]);
    let all = review(&changes, &Sample::default(), &Approvals::All).unwrap();
    assert!(all.held.is_empty() && all.approved.len() == 2);
    let git = review(&[added(".git/x", Mode::File, 0)], &Sample::default(), &Approvals::All).unwrap();
    assert_eq!(git.refused.len(), 1, "nothing approves that");
}

#[test]
fn removing_is_held_only_where_it_changes_what_git_does() {
    let removed =
        |path: &str| Change { path: RelPath::new(path).unwrap(), old: Some(entry(Mode::File, 0)), new: None };
    assert!(rules_for(removed("Makefile"), &Sample::default()).0.is_empty());
    assert_eq!(rules_for(removed(".gitattributes"), &Sample::default()).0, [".gitattributes"]);
}
