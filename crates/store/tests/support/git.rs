//! Stock git as the oracle, with settings that convert nothing and read nobody's configuration.

use std::path::Path;

/// Runs git on the repository `git_dir` with the work tree `tree`; gives what it printed.
pub(crate) fn git(git_dir: &Path, tree: &Path, arguments: &[&str]) -> Vec<u8> {
    git_with(git_dir, tree, arguments, b"")
}

#[expect(clippy::disallowed_methods, reason = "the oracle is a program")]
pub(crate) fn git_with(git_dir: &Path, tree: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut command = std::process::Command::new("git");
    command.current_dir(tree).arg("--git-dir").arg(git_dir).arg("--work-tree").arg(tree);
    for setting in ["core.autocrlf=false", "core.excludesFile=/dev/null", "core.attributesFile=/dev/null"] {
        command.args(["-c", setting]);
    }
    command.args(arguments).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    for variable in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        command.env(variable, "/dev/null");
    }
    for variable in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
        command.env(variable, "test");
    }
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    });
    let said = String::from_utf8_lossy(&output.stderr);
    // `check-ignore` says by 1 that it found nothing.
    assert!(matches!(output.status.code(), Some(0 | 1)), "git {arguments:?}: {said}");
    output.stdout
}

/// The tree that git makes of a directory, with `extra` arguments for `add`.
pub(crate) fn git_tree(git_dir: &Path, tree: &Path, extra: &[&str]) -> String {
    git(git_dir, tree, &[&["add", "-A"], extra].concat());
    String::from_utf8(git(git_dir, tree, &["write-tree"])).unwrap().trim().to_owned()
}
