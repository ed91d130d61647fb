//! The user's own list of ignored files: a state of a source has what git would add, wherever that list is.

use std::path::{Path, PathBuf};

use sandtable_testkit::env::TestEnv;
use sandtable_testkit::process::Run;

/// What git has or would add, sorted.
fn known(env: &TestEnv, source: &Path, variables: &[(&str, &Path)]) -> Vec<PathBuf> {
    let words = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let ended = with(env.run("git").directory(source).args(words), variables).ended();
    sorted(&ended.expect_code(0).stdout)
}

fn with(run: Run, variables: &[(&str, &Path)]) -> Run {
    variables.iter().fold(run, |run, (name, value)| run.variable(name, value))
}

/// Everything in a directory but directories, sorted.
fn files(env: &TestEnv, directory: &Path) -> Vec<PathBuf> {
    let words = [".", "-not", "-type", "d", "-printf", "%P\\n"];
    sorted(&env.run("find").directory(directory).args(words).ended().expect_code(0).stdout)
}

fn sorted(lines: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = lines.lines().map(PathBuf::from).collect();
    paths.sort();
    paths
}

/// Where the list is, made in the home directory; what is to be set for it to be found.
type Place = fn(&TestEnv) -> Vec<(&'static str, PathBuf)>;

const LIST: &str = "*.mine\n";

const PLACES: [(&str, Place); 10] = [
    ("a link where git looks by itself", |env| {
        env.file(&env.home().join("dotfiles/ignore"), LIST);
        env.directory(&env.home().join(".config/git"));
        env.symlink("../../dotfiles/ignore", &env.home().join(".config/git/ignore"));
        Vec::new()
    }),
    ("the directory of settings elsewhere", |env| {
        env.file(&env.home().join("settings/git/ignore"), LIST);
        vec![("XDG_CONFIG_HOME", env.home().join("settings"))]
    }),
    ("named by the user's configuration", |env| {
        env.file(&env.home().join("list"), LIST);
        env.file(&env.home().join(".gitconfig"), "[core]\n\texcludesFile = ~/list\n");
        Vec::new()
    }),
    ("named by what that includes, and not overruled by what comes before", |env| {
        env.file(&env.home().join("more/list"), LIST);
        env.file(&env.home().join("more/config"), "[core]\nexcludesfile = ~/more/list\n");
        let text = "[core]\nexcludesFile = /nowhere\n[include]\n\tpath = more/config\n[user]\nname = x\n";
        env.file(&env.home().join(".gitconfig"), text);
        Vec::new()
    }),
    ("named from the top of the repository, and not from the configuration", |env| {
        env.file(&env.root().join("source/docs/list"), LIST);
        env.file(&env.home().join("docs/list"), "*\n");
        env.file(&env.home().join(".gitconfig"), "[core]\n\texcludesFile = docs/list\n");
        Vec::new()
    }),
    ("named by somebody else's section", |env| {
        env.file(&env.home().join(".config/git/ignore"), LIST);
        env.file(&env.home().join("other"), "*\n");
        env.file(&env.home().join(".gitconfig"), "[core \"x\"]\n\texcludesFile = ~/other\n");
        Vec::new()
    }),
    ("named by another configuration, which a variable names", |env| {
        env.file(&env.home().join("list"), LIST);
        env.file(&env.home().join(".gitconfig"), "[core]\n\texcludesFile = /nowhere\n");
        env.file(&env.home().join("global"), "[core]\n\texcludesFile = ~/list\n");
        vec![("GIT_CONFIG_GLOBAL", env.home().join("global"))]
    }),
    ("named by another configuration of the system", |env| {
        env.file(&env.home().join("list"), LIST);
        env.file(&env.home().join("system"), "[core]\n\texcludesFile = ~/list\n");
        vec![("GIT_CONFIG_SYSTEM", env.home().join("system")), ("GIT_CONFIG_NOSYSTEM", "off".into())]
    }),
    ("named by the system, which is not asked", |env| {
        env.file(&env.home().join(".config/git/ignore"), LIST);
        env.file(&env.home().join("system"), "[core]\n\texcludesFile = /nowhere\n");
        vec![("GIT_CONFIG_SYSTEM", env.home().join("system")), ("GIT_CONFIG_NOSYSTEM", "2".into())]
    }),
    ("named by a variable, after everything else", |env| {
        env.file(&env.home().join("list"), LIST);
        env.file(&env.home().join(".gitconfig"), "[core]\n\texcludesFile = /nowhere\n");
        let setting = [("GIT_CONFIG_KEY_0", "Core.ExcludesFile"), ("GIT_CONFIG_VALUE_0", "~/list")];
        let setting = setting.into_iter().chain([("GIT_CONFIG_COUNT", "1")]);
        setting.map(|(name, value)| (name, value.into())).collect()
    }),
];

#[test]
fn the_users_own_list_is_obeyed_as_git_does() {
    for (what, place) in PLACES {
        let Some(env) = TestEnv::of_the_executable() else { return };
        let source = env.repository("source");
        let variables = place(&env);
        let variables: Vec<(&str, &Path)> =
            variables.iter().map(|(name, path)| (*name, path.as_path())).collect();
        for name in ["a.mine", "kept.mine", "b.txt"] {
            env.file(&source.join(name), name);
        }
        // The repository has the last word.
        env.file(&source.join(".git/info/exclude"), "!kept.mine\n");
        let wanted = known(&env, &source, &variables);
        assert!(
            !wanted.contains(&"a.mine".into()) && wanted.contains(&"kept.mine".into()),
            "{what}: {wanted:?}"
        );
        let call = |words: &[&str]| {
            with(env.sandtable().directory(&source).args(words), &variables).ended().expect_code(0).stdout
        };
        call(&["run", "--name", "box", "--", "true"]);
        let state = call(&["snapshot", "box"]);
        let out = env.root().join("out");
        call(&["checkout", state.split_whitespace().next().unwrap(), out.to_str().unwrap()]);
        assert_eq!(files(&env, &out), wanted, "{what}");
        // What is new inside arrives, unless the list has it.
        call(&["run", "--name", "work", "--", "sh", "-c", "echo 1 > in.mine; echo 2 > in.txt"]);
        call(&["merge", "work"]);
        assert!(source.join("in.txt").exists() && !source.join("in.mine").exists(), "{what}");
        // What is ignored is seen inside, also what came since, and when nothing ignores it any more.
        env.file(&source.join("new.mine"), "new");
        let _other = fs_err::remove_file(env.home().join(".gitconfig"));
        assert_eq!(call(&["exec", "box", "--", "cat", "a.mine", "new.mine"]), "a.minenew", "{what}");
    }
}
