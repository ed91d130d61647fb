//! The words of a command line that may be files of the worktree. Shells and interpreters take a word for a path as it
//! stands, however it looks: `sh deploy` runs the file `deploy`. A word at the start of a command is looked for in PATH,
//! which may have a relative directory in it, so it counts as well.

use std::path::{Path, PathBuf};

use super::pattern::Folded;

/// What goes before a word in which more words begin from another directory.
const ENTERS: [&str; 3] = ["cd", "pushd", "-C"];
/// Options with which a command of git's own runs another.
const RUNS: [&str; 7] =
    ["-c", "-x", "--exec", "--extcmd", "--upload-pack", "--receive-pack", "--open-files-in-pager"];
/// What interpreters put after a name.
const ENDS: [&str; 10] = [".py", ".js", ".cjs", ".mjs", ".ts", ".rb", ".pl", ".pm", ".lua", ".php"];
/// What they run in a directory.
const STARTS: [&str; 5] = ["__main__.py", "__init__.py", "index.js", "index.cjs", "index.mjs"];

/// A word, and how it is meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// From one of the directories in which the command may be by then.
    Path(PathBuf),
    /// Behind a variable or a command whose answer nobody knows here: it may be any of these.
    Behind(PathBuf),
}

/// Whether an alias that is a command of git's has another command in it.
pub(super) fn runs(alias: &str) -> bool {
    alias.starts_with('!')
        || split(alias).any(|word| RUNS.contains(&word.split('=').next().unwrap_or_default()))
}

/// The words that may be paths, and the directories that the command enters.
pub(super) fn words(line: &str) -> (Vec<Word>, Vec<&str>) {
    let (mut found, mut entered) = (Vec::new(), Vec::new());
    let mut before = "";
    for word in split(line) {
        if ENTERS.contains(&before) {
            entered.push(word);
        }
        if before == "-m" {
            found.push(Word::Path(word.replace('.', "/").into()));
        }
        if !word.starts_with('-') {
            found.push(Word::Path(word.into()));
            found.extend(behind(word).map(Word::Behind));
        }
        before = word;
    }
    (found, entered)
}

fn split(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| c.is_whitespace() || "'\"`;|&()<>=!${},".contains(c));
    words.filter(|word| !word.is_empty())
}

/// The end of a path whose start was cut off: `/x` of `$(git rev-parse --show-toplevel)/x`, and `x` of `$HOME/x`.
fn behind(word: &str) -> Option<PathBuf> {
    let (start, rest) = word.split_once('/')?;
    let is_name =
        start.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    is_name.then(|| Path::new(rest.trim_start_matches('/')).to_owned())
}

/// Whether an interpreter that is given one name runs the file with the other.
pub(super) fn is_run_by(named: &Folded, path: &Folded) -> bool {
    let (named, path) = (named.names(), path.names());
    let Some((last, above)) = named.split_last() else { return false };
    if let [starts @ .., file] = path
        && starts == named
    {
        return STARTS.iter().any(|name| name.as_bytes() == file);
    }
    let ended = |file: &[u8]| {
        let end = file.strip_prefix(last.as_slice());
        end.is_some_and(|end| end.is_empty() || ENDS.iter().any(|known| known.as_bytes() == end))
    };
    path.split_last().is_some_and(|(file, folders)| folders == above && ended(file))
}

#[cfg(test)]
mod tests {
    use sandtable_store::RelPath;

    use super::*;

    #[test]
    fn every_word_that_is_no_option_may_be_a_path() {
        let paths = |line: &str| {
            let (words, entered) = words(line);
            let text = |word: &Word| match word {
                Word::Path(path) => path.display().to_string(),
                Word::Behind(path) => format!("…{}", path.display()),
            };
            (words.iter().map(text).collect::<Vec<_>>(), entered.join(" "))
        };
        for (line, expected, entered) in [
            ("sh deploy", &["sh", "deploy"][..], ""),
            ("!$(git rev-parse --show-toplevel)/x/y", &["git", "rev-parse", "/x/y", "…x/y"], ""),
            ("$HOME/proj/x", &["HOME/proj/x", "…proj/x"], ""),
            ("${TOP}/x", &["TOP", "/x", "…x"], ""),
            ("!cd tools && ./run", &["cd", "tools", "./run"], "tools"),
            ("!make -C sub all", &["make", "sub", "all"], "sub"),
            ("python3 -m pkg.tool", &["python3", "pkg/tool", "pkg.tool"], ""),
        ] {
            assert_eq!(paths(line), (expected.iter().map(ToString::to_string).collect(), entered.to_owned()));
        }
    }

    #[test]
    fn an_alias_runs_a_command_where_it_says_so() {
        for alias in ["!x", "-c core.pager=tools/p log", "rebase --exec tools/x", "difftool --extcmd=./x"] {
            assert!(runs(alias), "{alias}");
        }
        for alias in ["status ./src", "log --color", "commit --amend"] {
            assert!(!runs(alias), "{alias}");
        }
    }

    #[test]
    fn interpreters_complete_names() {
        let is = |named: &str, path: &str| {
            let folded = |path: &str| Folded::new(&RelPath::new(path).unwrap());
            is_run_by(&folded(named), &folded(path))
        };
        for path in ["server", "server.js", "server/index.js", "server/__main__.py"] {
            assert!(is("server", path), "{path}");
        }
        for path in ["server.md", "server/x.js", "a/server", "servers", "server.js/x"] {
            assert!(!is("server", path), "{path}");
        }
        assert!(is("pkg/tool", "pkg/tool.py") && !is("pkg/tool", "tool.py"));
    }
}
