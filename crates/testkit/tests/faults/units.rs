//! A judge of mixed operations that needs no history. Work is done in units: a directory of files that all hold the same
//! word, written by commands that nobody kills. Every state that operations can lead to, in whatever order they
//! came, has each unit whole or not at all; a state that is half has a unit that is neither.

use std::collections::BTreeMap;
use std::path::Path;

use crate::ground::Ground;

/// How many units there are, and how many files each has.
pub(crate) const UNITS: usize = 4;
const FILES: usize = 9;
/// What never changes, whatever is done: tracked, ignored, and both.
const CONSTANT: [(&str, &str); 4] = [
    ("README", "A sample.\n"),
    (".env", "TOKEN=1\n"),
    ("node_modules/m/index.js", "1\n"),
    ("src/deep/er/util.c", "int util;\n"),
];

/// What a command inside is told, to write a unit or to remove it.
pub(crate) fn script(unit: usize, word: Option<usize>) -> String {
    match word {
        Some(word) => format!(
            "mkdir -p unit-{unit}; for n in 1 2 3 4 5 6 7 8 {FILES}; do echo {word} > unit-{unit}/$n; done"
        ),
        None => format!("rm -rf unit-{unit}"),
    }
}

/// The same for the check: every file of a unit with its word.
pub(crate) const SHOW: &str = "for f in unit-*/*; do test -f $f && echo \"$f $(cat $f)\"; done; true";

/// The files that an operation must leave alone.
pub(crate) fn furnish(ground: &Ground, source: &Path) {
    ground.env().file(&source.join(".gitignore"), ".env\nnode_modules\n");
    for (path, text) in CONSTANT {
        ground.env().file(&source.join(path), text);
    }
}

/// Units that are neither whole nor absent, from lines of `unit-N/FILE WORD`.
pub(crate) fn torn<'a>(lines: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut units: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, word) in lines {
        if let Some((unit, _)) = path.split_once('/').filter(|(unit, _)| unit.starts_with("unit-")) {
            units.entry(unit).or_default().push(word);
        }
    }
    let whole = |words: &Vec<&str>| words.len() == FILES && words.iter().all(|word| *word == words[0]);
    units
        .into_iter()
        .filter(|(_, words)| !whole(words))
        .map(|(unit, words)| format!("{unit} is {words:?}"))
        .collect()
}

/// Torn units in what [`SHOW`] printed.
pub(crate) fn torn_inside(printed: &str) -> Vec<String> {
    torn(printed.lines().filter_map(|line| line.split_once(' ')))
}

/// Torn units in a directory.
pub(crate) fn torn_files(directory: &Path) -> Vec<String> {
    let files = crate::seen::files(directory);
    let word = |text: &str| text.split_once(' ').map(|(_, word)| word.to_owned()).unwrap_or_default();
    let words: Vec<(String, String)> = files.iter().map(|(path, text)| (path.clone(), word(text))).collect();
    let mut found = torn(words.iter().map(|(path, word)| (path.as_str(), word.as_str())));
    let empty = |unit: &String| !files.keys().any(|path| path.starts_with(&format!("{unit}/")));
    let units = files.keys().filter(|path| path.starts_with("unit-") && !path.contains('/'));
    found.extend(units.filter(|unit| empty(unit)).map(|unit| format!("{unit} is empty")));
    found
}

/// Everything that is wrong with a source that nobody works on.
pub(crate) fn wrong(ground: &Ground, source: &Path) -> Vec<String> {
    let mut found = torn_files(source);
    for (path, text) in CONSTANT {
        match fs_err::read_to_string(source.join(path)) {
            Ok(there) if there == text => {}
            other => found.push(format!("{path} is {other:?}")),
        }
    }
    if source.join(".git").exists() {
        for words in [&["ls-tree", "-r", "HEAD"][..], &["ls-files", "--stage"]] {
            let listed = ground.env().run("git").directory(source).args(words).ended();
            if listed.code != 0 {
                found.push(format!("git {}: {}", words[0], listed.stderr));
            }
            let lines = listed.stdout.lines().filter_map(|line| {
                let (data, path) = line.split_once('\t')?;
                Some((path, data))
            });
            let blob =
                |data: &'_ str| data.split(' ').find(|word| word.len() == 40).unwrap_or_default().to_owned();
            let blobs: Vec<(&str, String)> = lines.map(|(path, data)| (path, blob(data))).collect();
            let torn = torn(blobs.iter().map(|(path, blob)| (*path, blob.as_str())));
            found.extend(torn.into_iter().map(|unit| format!("git {}: {unit}", words[0])));
        }
    }
    found
}

#[test]
fn a_torn_unit_is_noticed() {
    let whole: Vec<String> = (0..FILES).map(|n| format!("unit-1/{n} a")).collect();
    assert_eq!(torn_inside(&whole.join("\n")), [""; 0]);
    assert_eq!(torn_inside(&whole[1..].join("\n")).len(), 1);
    assert_eq!(torn_inside(&whole.join("\n").replacen(" a", " b", 1)).len(), 1);
}
