//! What the host opens and starts because of what a sandbox did: never something that nobody looked at, and never without an end.

use super::{Source, assert_none, product};

/// Code that works in directories of the user's, where a pipe or a device may be in the place of a file.
const PLACES: [&str; 2] = ["crates/merge/src", "crates/sandbox/src/repository"];
/// The ways to open a file that wait for a pipe, and follow a link that is written.
const OPENS: [&str; 11] = [
    "fs::read(",
    "fs::read_to_string(",
    "fs::write(",
    "fs::copy(",
    "fs_err::read(",
    "fs_err::read_to_string(",
    "fs_err::write(",
    "fs_err::copy(",
    "File::open(",
    "File::create(",
    "OpenOptions::new(",
];

/// Where they are right: the file below one of [`PLACES`], what the line has in it, and the reason.
const OPENED_PLAINLY: [(&str, &str, &str); 19] = [
    ("approval.rs", "fs::read(place.shown", "what was shown, in our state directory"),
    ("approval.rs", "fs::write(&fresh", "what was shown, in our state directory"),
    ("deliver/export.rs", "File::create(self.plan.scratch", "the scratch repository"),
    ("deliver/journal.rs", "File::create(&draft)", "the journal, in our state directory"),
    ("deliver/journal.rs", "File::open(folder)", "the directory of the journal, in our state directory"),
    ("deliver/journal.rs", "fs::read(path)", "the journal, in our state directory"),
    ("deliver/new_file.rs", "OpenOptions::new().write(true).create_new(true)", "made where nothing is"),
    ("deliver/transfer.rs", "File::open(folder)", "a directory into which a file was just renamed"),
    ("deliver/transfer.rs", "fs::read(scratch", "the scratch repository"),
    ("git.rs", "fs_err::read(&file)", "what git said of itself, in our state directory"),
    ("git.rs", "fs_err::write(&file", "what git said of itself, in our state directory"),
    ("history.rs", "File::create(scratch", "the scratch repository"),
    ("index.rs", "File::create(scratch", "the scratch repository"),
    ("index.rs", "fs::write(&copy", "the scratch repository"),
    ("index.rs", "fs::copy(self.file(scratch)", "the scratch repository"),
    ("scratch.rs", "fs::write(path.join(", "the scratch repository"),
    ("scratch.rs", "fs::write(self.path.join(", "the scratch repository"),
    ("seal.rs", "fs::OpenOptions::new()", "our key, in our state directory"),
    ("seal.rs", "fs::read(path)", "our key, in our state directory"),
];

fn is_watched(file: &Source) -> bool {
    PLACES.iter().any(|place| file.is_below(place))
}

#[test]
fn a_merge_opens_no_file_that_may_be_a_pipe() {
    let files: Vec<_> = product().into_iter().filter(|file| is_watched(file)).collect();
    assert!(!files.is_empty(), "looked in the wrong place");
    let lines: Vec<String> = files.iter().flat_map(|file| file.naming(&OPENS)).collect();
    let fits = |line: &str, (file, words, _): &(&str, &str, &str)| {
        let rest = |place: &&str| line.strip_prefix(&format!("{place}/{file}:"));
        PLACES.iter().find_map(rest).is_some_and(|text| text.contains(words))
    };
    let found: Vec<String> =
        lines.iter().filter(|line| !OPENED_PLAINLY.iter().any(|row| fits(line, row))).cloned().collect();
    assert_none("the merge opens files with `store::regular`, by handle, or with `create_new`", &found);
    let stale = OPENED_PLAINLY.iter().filter(|row| !lines.iter().any(|line| fits(line, row)));
    let stale: Vec<String> = stale.map(|(file, words, _)| format!("{file}: {words}")).collect();
    assert_none("there is no such line any more", &stale);
}

/// Who starts programs without bounds, and which. None of them is git, which works on what a sandbox wrote.
const UNBOUNDED: [(&str, &str); 6] = [
    ("crates/sandbox/src/engine/nat.rs", "slirp4netns, which runs as long as its sandbox"),
    ("crates/sandbox/src/engine/oci/image.rs", "a container engine, which pulls and builds"),
    ("crates/sandbox/src/engine/ssh_agent/desktop.rs", "a container engine"),
    ("crates/sandbox/src/engine/ssh_agent/tunnel.rs", "ssh, which runs as long as its sandbox"),
    ("crates/sandbox/src/facts/machine.rs", "what container engines say of themselves, and `mount`"),
    ("crates/tools/src/fetch/client.rs", "a client that fetches, with a watch over it of its own"),
];

#[test]
fn git_is_started_within_bounds_only() {
    let calls: Vec<String> = product()
        .iter()
        .filter(|file| !file.path.ends_with("sandbox/src/process.rs"))
        .flat_map(|file| file.naming(&["Cli::new("]))
        .collect();
    let is_of = |line: &str, file: &str| line.strip_prefix(file).is_some_and(|rest| rest.starts_with(':'));
    let found: Vec<String> = calls
        .iter()
        .filter(|line| !line.contains(".within(") && !UNBOUNDED.iter().any(|(file, _)| is_of(line, file)))
        .cloned()
        .collect();
    assert_none("a program is given its bounds where it is named", &found);
    let stale = UNBOUNDED.iter().filter(|(file, _)| !calls.iter().any(|line| is_of(line, file)));
    assert_none(
        "no program is named there any more",
        &stale.map(|(file, _)| (*file).to_owned()).collect::<Vec<_>>(),
    );
    // These leave a program running, or have their own limit of time and none of memory.
    let ways = [".start(", ".start_apart(", ".lines(", ".finish_within("];
    let git = product().into_iter().filter(|file| is_watched(file) && file.text.contains("Cli::new("));
    let found: Vec<String> = git.flat_map(|file| file.naming(&ways)).collect();
    assert_none("git is run to its end, within its bounds", &found);
}
