//! What can be seen of a source and of the inside of sandboxes, without times: two equal sights are the same state.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sandtable_testkit::env::TestEnv;

use crate::ground::Ground;

/// Names and what is there.
pub(crate) type Seen = BTreeMap<String, String>;

/// Lists the inside of a sandbox: every file with its mode, size and checksum.
const LISTING: &str = "find . -path ./.git -prune -o ! -type d -exec stat -c '%n %F %a' {} + | sort; \
                       find . -path ./.git -prune -o -type f -exec cksum {} + | sort";

/// Every entry below a directory except `.git`.
pub(crate) fn files(root: &Path) -> Seen {
    let (mut found, mut waiting) = (Seen::new(), vec![root.to_owned()]);
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = fs_err::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path == root.join(".git") {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let what = if meta.is_symlink() {
                format!("-> {}", fs_err::read_link(&path).unwrap().display())
            } else if meta.is_file() {
                format!("{:o} {}", meta.permissions().mode(), fs_err::read(&path).unwrap().escape_ascii())
            } else {
                format!("{:o}", meta.permissions().mode())
            };
            found.insert(path.strip_prefix(root).unwrap().display().to_string(), what);
            if meta.is_dir() {
                waiting.push(path);
            }
        }
    }
    found
}

/// What git says of a repository: commits by their trees, branches, and what is not committed.
pub(crate) fn git(env: &TestEnv, source: &Path) -> Seen {
    let mut seen = Seen::new();
    if source.join(".git").exists() {
        for (name, words) in [
            // By time alone, commits of the same second have no order.
            ("git log", &["log", "--topo-order", "--format=%T %s"][..]),
            ("git branches", &["for-each-ref", "--format=%(refname) %(tree)"]),
            ("git head", &["symbolic-ref", "HEAD"]),
            ("git index", &["ls-files", "--stage"]),
            ("git status", &["status", "--porcelain"]),
        ] {
            seen.insert(name.to_owned(), env.git(source, words));
        }
    }
    seen
}

/// What a bundle brings to a repository, by tree: its commits have a time.
pub(crate) fn bundle(env: &TestEnv, source: &Path, file: &Path) -> String {
    if !file.exists() {
        return "no such file".to_owned();
    }
    let clone = env.home().join("of-a-bundle");
    let [clone_text, source, file] = [&clone, source, file].map(|path| path.display().to_string());
    env.git(env.root(), &["clone", "-q", "--bare", &source, &clone_text]);
    let fetched =
        env.run("git").directory(&clone).args(["fetch", "-q", &file, "refs/heads/*:refs/brought/*"]).ended();
    let brought = match fetched.code {
        0 => env.git(&clone, &["log", "--format=%T %s", "--glob=refs/brought"]),
        _ => format!("not whole: {}", fetched.stderr),
    };
    fs_err::remove_dir_all(clone).unwrap();
    brought
}

/// What a command inside sees; nothing if there is no such sandbox.
pub(crate) fn inside(ground: &Ground, source: &Path, name: &str) -> Seen {
    let listed = ground.done(source, &["ls", "-q"]);
    let said = if listed.lines().any(|line| line == name) {
        ground.done(source, &["exec", "-q", name, "--", "sh", "-c", LISTING])
    } else {
        "no such sandbox".to_owned()
    };
    Seen::from([(format!("inside {name}"), said)])
}

/// The names under which two sights differ, with both sides cut short.
pub(crate) fn difference(one: &Seen, other: &Seen) -> Vec<String> {
    let short = |seen: &Seen, name: &String| {
        let text = seen.get(name).map_or("nothing", String::as_str);
        text.chars().take(120).collect::<String>()
    };
    let names: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differ = names.into_iter().filter(|name| one.get(*name) != other.get(*name));
    differ.take(6).map(|name| format!("{name}: {:?} / {:?}", short(one, name), short(other, name))).collect()
}
