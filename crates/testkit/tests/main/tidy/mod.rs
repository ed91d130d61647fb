//! The rules of the source tree that no compiler holds.

mod documents;
mod packages;
mod policy;
mod source;

use std::path::{Path, PathBuf};

use sandtable_testkit::require::workspace;

/// A file of the source tree.
struct Source {
    /// Relative to the top.
    path: PathBuf,
    text: String,
}

impl Source {
    fn is_below(&self, directory: &str) -> bool {
        self.path.starts_with(directory)
    }

    /// The lines that are neither comments nor unit tests, with their numbers.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = self.text.find("\n#[cfg(test)]\nmod ").unwrap_or(self.text.len());
        let lines = self.text[..tests].lines().enumerate().map(|(index, line)| (index + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// The places where code contains any of the words, as `path:line: text`.
    fn naming(&self, words: &[&str]) -> Vec<String> {
        let named = |line: &str| words.iter().any(|word| line.contains(word));
        let place =
            |(number, line): (usize, &str)| format!("{}:{number}: {}", self.path.display(), line.trim());
        self.code().filter(|(_, line)| named(line)).map(place).collect()
    }
}

/// Every file below `crates` with that ending.
fn sources(extension: &str) -> Vec<Source> {
    let top = workspace();
    let (mut found, mut waiting) = (Vec::new(), vec![top.join("crates")]);
    while let Some(directory) = waiting.pop() {
        for entry in fs_err::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                waiting.push(path);
            } else if path.extension().is_some_and(|end| end == extension) {
                let text = fs_err::read_to_string(&path).unwrap();
                found.push(Source { path: relative(&path, &top), text });
            }
        }
    }
    assert!(!found.is_empty(), "no file with the ending `{extension}`: looked in the wrong place");
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The same without tests and test support.
fn product() -> Vec<Source> {
    let is_test = |file: &Source| {
        file.is_below("crates/testkit") || file.path.components().any(|part| part.as_os_str() == "tests")
    };
    sources("rs").into_iter().filter(|file| !is_test(file)).collect()
}

fn relative(path: &Path, top: &Path) -> PathBuf {
    path.strip_prefix(top).unwrap().to_owned()
}

/// Fails with all lines at once.
#[track_caller]
fn assert_none(rule: &str, violations: &[String]) {
    assert!(violations.is_empty(), "{rule}:\n  {}", violations.join("\n  "));
}
