//! The rules of the source tree that no compiler holds.

mod directions;
mod documents;
mod opening;
mod packages;
mod policy;
mod reading;
mod source;
mod words;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use reading::Reading;
use sandtable_testkit::require::workspace;

/// A file of the source tree.
struct Source {
    /// Relative to the top.
    path: PathBuf,
    text: String,
    /// What a Rust file says, read once; empty for every other file.
    reading: Reading,
}

impl Source {
    fn is_below(&self, directory: &str) -> bool {
        self.path.starts_with(directory)
    }

    fn new(path: PathBuf, text: String) -> Self {
        let reading = match path.extension() {
            Some(end) if end == "rs" => reading::read(&text, &module(&path)),
            _ => Reading::default(),
        };
        Self { path, text, reading }
    }

    /// The lines that are neither comments nor unit tests, with their numbers.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        lines.filter(|(number, line)| !self.is_test(*number) && !line.trim_start().starts_with("//"))
    }

    /// Whether a line belongs to unit tests.
    fn is_test(&self, number: usize) -> bool {
        self.reading.tests.iter().any(|lines| lines.contains(&number))
    }

    /// Whether the module that declares this file says that it is for tests only.
    fn is_declared_as_test_in(&self, other: &Self) -> bool {
        let own = module(&self.path);
        let Some((name, parent)) = own.split_last() else { return false };
        self.crate_directory() == other.crate_directory()
            && module(&other.path) == parent
            && other.reading.test_files.iter().any(|test| test == name)
    }

    fn crate_directory(&self) -> PathBuf {
        self.path.components().take(2).collect()
    }

    /// The places where code contains any of the words, as `path:line: text`.
    fn naming(&self, words: &[&str]) -> Vec<String> {
        let named = |line: &str| words.iter().any(|word| line.contains(word));
        let place =
            |(number, line): (usize, &str)| format!("{}:{number}: {}", self.path.display(), line.trim());
        self.code().filter(|(_, line)| named(line)).map(place).collect()
    }
}

/// The names of the modules around the contents of a file, from the root of its crate: `a`, `b` for `src/a/b.rs`.
fn module(path: &Path) -> Vec<&str> {
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().expect("names of ours are text")).collect();
    let below = parts.iter().position(|part| *part == "src").map_or(0, |at| at + 1);
    let mut module = parts[below..].to_vec();
    let file = module.pop().unwrap_or_default().trim_end_matches(".rs");
    if !["lib", "main", "mod"].contains(&file) {
        module.push(file);
    }
    module
}

/// Every Rust file below `crates`.
fn rust() -> &'static [Source] {
    static FILES: LazyLock<Vec<Source>> = LazyLock::new(|| sources("rs"));
    &FILES
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
                found.push(Source::new(relative(&path, &top), text));
            }
        }
    }
    assert!(!found.is_empty(), "no file with the ending `{extension}`: looked in the wrong place");
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The same without tests and test support.
fn product() -> Vec<&'static Source> {
    static FILES: LazyLock<Vec<&Source>> = LazyLock::new(|| {
        let is_test = |file: &Source| {
            file.is_below("crates/testkit")
                || file.is_below("crates/bench")
                || file.path.components().any(|part| part.as_os_str() == "tests")
                || rust().iter().any(|other| file.is_declared_as_test_in(other))
        };
        rust().iter().filter(|file| !is_test(file)).collect()
    });
    FILES.clone()
}

fn relative(path: &Path, top: &Path) -> PathBuf {
    path.strip_prefix(top).unwrap().to_owned()
}

/// Fails with all lines at once.
#[track_caller]
fn assert_none(rule: &str, violations: &[String]) {
    assert!(violations.is_empty(), "{rule}:\n  {}", violations.join("\n  "));
}

#[test]
fn a_violation_below_the_tests_is_noticed() {
    let text = "#[cfg(test)]\nmod tests;\n\nfn a() {\n    println!();\n}\n\n#[cfg(test)]\nmod more {\n    fn b() { println!(); }\n}\n";
    let file = Source::new(PathBuf::from("crates/sandbox/src/merge/mod.rs"), text.to_owned());
    assert_eq!(file.naming(&["println!"]), ["crates/sandbox/src/merge/mod.rs:5: println!();"]);
}

#[test]
fn a_file_of_tests_is_known_by_its_declaration() {
    let file = |path: &str, text: &str| Source::new(PathBuf::from(path), text.to_owned());
    let parent = file("crates/sandbox/src/merge/mod.rs", "#[cfg(test)]\nmod samples;\nmod plan;\n");
    let sample = file("crates/sandbox/src/merge/samples.rs", "");
    let plan = file("crates/sandbox/src/merge/plan.rs", "");
    let elsewhere = file("crates/store/src/merge/samples.rs", "");
    assert!(sample.is_declared_as_test_in(&parent));
    assert!(!plan.is_declared_as_test_in(&parent) && !elsewhere.is_declared_as_test_in(&parent));
}
