use std::collections::{BTreeMap, BTreeSet};

use sandtable_store::id::ObjectId;

use super::rules::When;
use super::*;
use crate::tree::Mode;

/// Contents by the last byte of their id.
#[derive(Default)]
pub(super) struct Sample(BTreeMap<u8, Vec<u8>>, BTreeSet<String>);

impl Contents for Sample {
    fn read(&self, entry: &Entry, limit: usize) -> Result<(Vec<u8>, u64), Error> {
        let bytes = self.0.get(entry.id.as_bytes().last().unwrap()).cloned().unwrap_or_default();
        let size = bytes.len() as u64;
        Ok((bytes[..bytes.len().min(limit)].to_vec(), size))
    }

    fn is_file(&self, path: &RelPath) -> Result<bool, Error> {
        Ok(self.1.contains(&path.to_text().0))
    }

    fn levels(&self, path: &RelPath) -> Result<Vec<Parts>, Error> {
        let above = std::iter::successors(path.parent(), RelPath::parent);
        let mut found: Vec<Parts> = above
            .map(|above| {
                let has = |name: &str| {
                    let path = above.join(name.as_bytes()).unwrap().to_text().0;
                    self.1.iter().any(|known| *known == path || known.starts_with(&format!("{path}/")))
                };
                let head = has("HEAD").then(|| entry(Mode::File, HEAD));
                Parts { head, common: has("objects") && has("refs") }
            })
            .collect();
        found.reverse();
        Ok(found)
    }
}

/// The content of every `HEAD`.
const HEAD: u8 = 250;

fn entry(mode: Mode, last: u8) -> Entry {
    let mut bytes = [0; 20];
    bytes[19] = last;
    Entry { mode, id: ObjectId::from_bytes(&bytes).unwrap() }
}

pub(super) fn added(path: impl Into<Vec<u8>>, mode: Mode, last: u8) -> Change {
    Change { path: RelPath::new(path).unwrap(), old: None, new: Some(entry(mode, last)) }
}

fn removed(path: &str) -> Change {
    Change { path: RelPath::new(path).unwrap(), old: Some(entry(Mode::File, 0)), new: None }
}

fn modified(path: &str, mode: Mode) -> Change {
    let (old, new) = (Some(entry(mode, 1)), Some(entry(mode, 2)));
    Change { path: RelPath::new(path).unwrap(), old, new }
}

/// With nothing around it and no approval.
pub(super) fn alone(change: Change, sample: &Sample) -> Review {
    review(&[change], sample, &Surroundings::default(), &Approvals::None).unwrap()
}

fn rules(list: Vec<Finding>) -> Vec<String> {
    list.into_iter().map(|finding| finding.rule.into_owned()).collect()
}

fn rules_for(change: Change, sample: &Sample) -> (Vec<String>, Vec<String>) {
    let review = alone(change, sample);
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
    ".proverc",
    "PRESUBMIT.py",
    "knexfile.js",
    ".amp/settings.json",
];

#[test]
fn everything_listed_is_held_with_a_reason() {
    for path in LISTED {
        for name in [(*path).to_owned(), path.to_uppercase(), format!("deep/er/{path}")] {
            let held = alone(added(name.as_str(), Mode::File, 0), &Sample::default()).held;
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
        let found = alone(added(path, Mode::File, 0), &Sample::default());
        assert_eq!(found, Review::default(), "{path}");
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
    assert_eq!(rules_for(executable, &sample).0, ["changed-executable"]);
    let renewed = |old, new| Change {
        path: RelPath::new("tool").unwrap(),
        old: Some(entry(old, 6)),
        new: Some(entry(new, 6)),
    };
    assert!(
        rules_for(renewed(Mode::Executable, Mode::File), &sample).0.is_empty(),
        "the same content, less of it"
    );
    assert_eq!(rules_for(renewed(Mode::File, Mode::Executable), &sample).0, ["executable"]);
    assert_eq!(rules_for(renewed(Mode::Executable, Mode::Symlink), &sample).0, ["changed-executable"]);
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
fn a_link_above_what_is_held_is_held_itself() {
    let sample = Sample(BTreeMap::from([1, 2].map(|last| (last, b"cfg".to_vec()))), BTreeSet::new());
    for (path, rule) in [
        (".config", ".config/mise/"),
        ("sub/debian", "debian/rules"),
        ("node_modules", "node_modules/.bin/"),
        (".github/mise", "mise/config.toml"),
    ] {
        let held = rules_for(added(path, Mode::Symlink, 1), &sample).0;
        assert!(held.contains(&rule.to_owned()), "{path}: {held:?}");
    }
    for path in ["cfg.d", "src/config", "debian/changelog"] {
        assert_eq!(rules_for(added(path, Mode::Symlink, 1), &sample), (vec![], vec![]), "{path}");
    }
    assert_eq!(rules_for(added("debian/x", Mode::File, 1), &sample), (vec![], vec![]));
    let guide =
        Sample(BTreeMap::from([(1, b"../guide.md".to_vec())]), BTreeSet::from(["guide.md".to_owned()]));
    assert_eq!(rules_for(added("docs/guide.md", Mode::Symlink, 1), &guide), (vec![], vec![]), "to a file");
    assert_eq!(rules_for(added("docs/guide", Mode::Symlink, 1), &sample).0, ["docs/*/conf.py"]);
    // By the name of a link whose way goes through it.
    let mut around = Surroundings::default();
    let path = |path: &str| RelPath::new(path).unwrap();
    around.links.add([(path("mid"), b"other".to_vec()), (path("debian"), b"mid/deb".to_vec())]);
    let turned = review(&[modified("mid", Mode::Symlink)], &sample, &around, &Approvals::None).unwrap();
    assert_eq!(turned.held.len(), 1);
    assert_eq!(turned.held[0].alias.as_ref().unwrap().path, "debian");
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
    let files = ["x/HEAD", "x/objects", "x/refs", "e/HEAD", "c/objects", "c/refs"].map(str::to_owned);
    let with_head = |text: &str| {
        Sample(BTreeMap::from([(HEAD, text.as_bytes().to_vec())]), BTreeSet::from(files.clone()))
    };
    let held = |path: &str, sample: &Sample| {
        rules_for(added(path, Mode::File, 0), sample).0.contains(&"bare-repository".to_owned())
    };
    for text in ["ref: refs/heads/main\n", "ref:refs/x", &"a".repeat(40)] {
        let sample = with_head(text);
        for path in ["x/config", "e/commondir", "e/HEAD", "e/config.worktree", "c/config", "c/hooks/x"] {
            assert!(held(path, &sample), "{path}: {text}");
        }
        for path in ["y/config", "e/README", "x/src/main.c", "config"] {
            assert!(!held(path, &sample), "{path}: {text}");
        }
    }
    assert!(!held("e/config", &with_head("Notes on heads\n")));
    assert!(held("x/config", &with_head("Notes on heads\n")), "with both directories beside it");
}

#[test]
fn an_approval_releases_exactly_what_it_names() {
    let changes = [added("Makefile", Mode::File, 0), added("sub/Makefile", Mode::File, 0)];
    let named = Approvals::Paths(BTreeSet::from([RelPath::new("Makefile").unwrap()]));
    let around = Surroundings::default();
    let one = review(&changes, &Sample::default(), &around, &named).unwrap();
    assert_eq!(one.approved.len(), 1);
    assert_eq!(one.held.iter().map(|f| f.path.path.as_str()).collect::<Vec<_>>(), ["sub/Makefile"]);
    let all = review(&changes, &Sample::default(), &around, &Approvals::All).unwrap();
    assert!(all.held.is_empty() && all.approved.len() == 2);
    let git = [added(".git/x", Mode::File, 0), added(".hg/hgrc", Mode::File, 0)];
    let git = review(&git, &Sample::default(), &around, &Approvals::All).unwrap();
    assert_eq!(git.refused.len(), 2, "nothing approves that");
}

#[test]
fn removing_is_held_where_a_guard_goes() {
    assert!(rules_for(removed("Makefile"), &Sample::default()).0.is_empty());
    assert!(rules_for(removed("src/main.rs"), &Sample::default()).0.is_empty());
    for path in [
        ".gitattributes",
        ".gitignore",
        "sub/.dockerignore",
        ".npmignore",
        ".npmrc",
        ".cargo/config.toml",
        "pip.conf",
        "Cargo.lock",
        "package-lock.json",
        "requirements.txt",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        "CODEOWNERS",
        ".github/CODEOWNERS",
        ".pre-commit-config.yaml",
        ".husky/pre-commit",
        ".githooks/pre-push",
        "lefthook.yml",
        "commitlint.config.js",
        ".claude/settings.json",
        "AGENTS.md",
        ".cursorignore",
        ".gitleaks.toml",
        ".trivyignore",
        "deny.toml",
    ] {
        assert!(!rules_for(removed(path), &Sample::default()).0.is_empty(), "{path}");
    }
}

#[test]
fn a_path_is_judged_by_every_name_that_a_link_gives_it() {
    let path = |path: &str| RelPath::new(path).unwrap();
    let mut around = Surroundings::default();
    let links =
        [(".vscode", "tools/editor"), ("Makefile", "meta/rules.txt"), ("dev/x", "../y"), (".hg", "data/hg")];
    around.links.add(links.map(|(link, text)| (path(link), text.as_bytes().to_vec())));
    let of = |name: &str| {
        let changes = [modified(name, Mode::File)];
        review(&changes, &Sample::default(), &around, &Approvals::None).unwrap()
    };
    for (name, alias) in [("tools/editor/tasks.json", ".vscode/tasks.json"), ("meta/rules.txt", "Makefile")] {
        let held = of(name).held;
        assert_eq!(held.len(), 1, "{name}: {held:?}");
        assert_eq!(
            (held[0].path.path.as_str(), held[0].alias.as_ref().unwrap().path.as_str()),
            (name, alias)
        );
    }
    assert_eq!(of("data/hg/hgrc").refused.len(), 1);
    for name in ["tools/other/tasks.json", "meta/rules", "y/z", "tools/editors/tasks.json"] {
        assert_eq!(of(name), Review::default(), "{name}");
    }
}

#[test]
fn of_a_path_that_nothing_can_open_only_that_is_said() {
    let deep = |end: &str| format!("{}{end}", "d/".repeat(2040));
    let long = format!("{}/.git/hooks/Makefile", deep(&"x".repeat(30)));
    assert_eq!(
        rules_for(added(long.clone(), Mode::Executable, 0), &Sample::default()),
        (vec![], vec![LONG.to_owned()])
    );
    assert!(rules_for(removed(&long), &Sample::default()).1.contains(&"git-directory".to_owned()));
    let short = added(deep("Makefile"), Mode::File, 0);
    assert_eq!(rules_for(short, &Sample::default()), (vec!["Makefile".to_owned()], vec![]));
}

#[test]
fn every_rule_is_matched_by_what_it_says_and_tells_why() {
    for rule in &RULES.path {
        assert!(rule.described.reason.len() > 10 && !rule.patterns.is_empty());
        for pattern in &rule.patterns {
            let sample = pattern.text().trim_end_matches('/').replace('*', "x");
            let change = if rule.when == When::Removed {
                removed(&sample)
            } else {
                added(sample.as_str(), Mode::File, 0)
            };
            let found = alone(change, &Sample::default());
            let list = [found.held, found.flagged, found.refused].concat();
            assert!(list.iter().any(|finding| finding.reason.len() > 10), "{}", pattern.text());
        }
    }
}

#[test]
fn among_too_many_links_a_forbidden_name_refuses_what_may_be_behind_it() {
    let crowd = (0..600).map(|n| (format!("l{n}"), "d"));
    let links = |more: &[(&'static str, &'static str)]| {
        let more: Vec<_> = more.iter().map(|(link, text)| ((*link).to_owned(), *text)).collect();
        let mut around = Surroundings::default();
        let all = crowd.clone().chain(more);
        around.links.add(all.map(|(link, text)| (RelPath::new(link).unwrap(), text.as_bytes().to_vec())));
        review(&[added("d/f", Mode::File, 0)], &Sample::default(), &around, &Approvals::All).unwrap()
    };
    let harmless = links(&[]);
    assert_eq!((rules(harmless.refused), rules(harmless.approved)), (vec![], vec!["many-links".to_owned()]));
    assert_eq!(rules(links(&[(".hg", "d")]).refused).len(), 1);
}

#[test]
fn permissions_that_let_others_in_or_start_a_program_are_held() {
    let around = Surroundings::default();
    let of = |before: Option<u16>, after: u16, is_directory: bool| {
        rules(wider(&RelPath::new("x").unwrap(), &Permissions { before, after, is_directory }, &around))
    };
    assert_eq!(of(Some(0o600), 0o666, false), ["wider-permissions"]);
    assert_eq!(of(Some(0o600), 0o640, false), ["wider-permissions"]);
    assert_eq!(of(Some(0o700), 0o777, true), ["wider-permissions"]);
    assert_eq!(of(Some(0o700), 0o711, true), ["wider-permissions"]);
    assert_eq!(of(None, 0o655, false), ["executable"]);
    assert_eq!(of(None, 0o755, false), ["executable"]);
    assert_eq!(of(Some(0o644), 0o645, false), ["executable"]);
    assert_eq!(of(None, 0o666, false), ["wider-permissions"]);
    assert_eq!(of(None, 0o777, true), ["wider-permissions"]);
    let harmless =
        [(Some(0o644), 0o600, false), (Some(0o755), 0o700, true), (None, 0o644, false), (None, 0o755, true)];
    for (before, after, is_directory) in harmless {
        assert!(of(before, after, is_directory).is_empty(), "{before:?} {after:o}");
    }
    for name in [".hg", "a/.svn", "a/.git", "CVS"] {
        assert!(!refused_directory(&RelPath::new(name).unwrap(), &around).is_empty(), "{name}");
    }
    assert!(refused_directory(&RelPath::new("src/cvs").unwrap(), &around).is_empty());
}

/// Directories made at random of what git looks for: whatever git takes for a repository is held. Git itself decides.
#[test]
fn whatever_git_takes_for_a_repository_is_held() {
    use sandtable_sandbox::model::path::HostPath;
    use sandtable_sandbox::process::Cli;

    let git = ["/usr/bin/git", "/usr/local/bin/git", "/bin/git"].map(std::path::Path::new);
    let git = HostPath::new(*git.iter().find(|git| git.exists()).expect("git is needed")).unwrap();
    let mut dice: u64 = 7;
    let mut roll = |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % sides
    };
    let heads = ["ref: refs/heads/main\n", "ref:\trefs/x", "words\n", &"ab".repeat(20), "ref: main\n"];
    let commons = ["../c\n", "c", ".", "../e"];
    let mut accepted = 0;
    for round in 0..250 {
        let dir = tempfile::tempdir().unwrap();
        let (mut files, mut changes) = (BTreeMap::new(), Vec::new());
        let mut names = BTreeSet::new();
        for folder in ["e", "c", "e/c"] {
            let mut put = |name: &str, text: &str, last: u8| {
                let path = format!("{folder}/{name}");
                fs_err::create_dir_all(dir.path().join(&path).parent().unwrap()).unwrap();
                fs_err::write(dir.path().join(&path), text).unwrap();
                files.insert(last, text.as_bytes().to_vec());
                names.insert(path.clone());
                changes.push(added(path, Mode::File, last));
            };
            // One text for all of a round, as the sample has one.
            if roll(3) > 0 {
                put("HEAD", heads[round % heads.len()], HEAD);
            }
            if roll(3) == 0 {
                put("commondir", commons[usize::try_from(roll(4)).unwrap()], 1);
            }
            for name in ["objects", "refs"] {
                match roll(3) {
                    0 => {}
                    1 => fs_err::create_dir_all(dir.path().join(folder).join(name)).unwrap(),
                    _ => put(&format!("{name}/x"), "x", 2),
                }
            }
            put("config", "[core]\n", 3);
        }
        let sample = Sample(files, names);
        for folder in ["e", "c", "e/c"] {
            let at = dir.path().join(folder);
            let asked = Cli::new(git.clone()).arg("-C").arg(&at).args(["rev-parse", "--git-dir"]);
            let asked = asked.variable("GIT_CEILING_DIRECTORIES", &at).variable("GIT_CONFIG_NOSYSTEM", "1");
            if !asked.finish().unwrap().status.success() {
                continue;
            }
            accepted += 1;
            let below = changes.iter().filter(|change| change.path.to_text().0.starts_with(folder));
            let held = below
                .map(|change| rules_for(change.clone(), &sample).0)
                .any(|rules| rules.contains(&"bare-repository".to_owned()));
            assert!(held, "round {round}: `{folder}` of {:?}", sample.1);
        }
    }
    assert!(accepted > 20, "git took only {accepted} for repositories");
}

#[test]
fn more_names_than_can_be_judged_in_time_are_too_much() {
    let deep = added([b"d/".repeat(1999), b"f".to_vec()].concat(), Mode::File, 1);
    let look = |count: usize| {
        let changes = vec![deep.clone(); count];
        let around = Surroundings::default();
        let judged = review(&changes, &Sample::default(), &around, &Approvals::None);
        (takes(&changes), judged.map(drop), refusals(&changes, &Sample::default(), &around).map(drop))
    };
    assert!(matches!(look(3), (Ok(()), Ok(()), Ok(()))));
    let too_much = |found: Result<(), Error>| matches!(found, Err(Error::TooMuch { .. }));
    let (taken, judged, refused) = look(1501);
    assert!(too_much(taken) && too_much(judged) && too_much(refused));
}
