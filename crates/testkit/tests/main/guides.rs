//! Every line of the README and the guides that begins with `$` is run, and its output compared with what the document
//! shows below it.
//!
//! The lines of one document run in one shell: a directory that is entered and a variable that is set hold for the next
//! line. In the output that a document shows, `…` stands for any text within a line and, alone on a line, for any lines.
//! Ids, sizes and durations differ from run to run and compare equal. `SANDTABLE_UPDATE=1` writes the real output into the
//! documents, for a look with `git diff`.

use std::fmt::Write as _;
use std::path::Path;

use sandtable_testkit::env::{Caller, PATH, TestEnv};
use sandtable_testkit::require;

/// Printed between the outputs of two lines.
const BETWEEN: &str = "\u{1e}";

/// Documents with examples. The README has some by rule.
fn documents() -> Vec<std::path::PathBuf> {
    let top = require::workspace();
    let mut found = vec![top.join("README.md")];
    let guides = fs_err::read_dir(top.join("docs/guides")).unwrap().map(|entry| entry.unwrap().path());
    found.extend(guides.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    found.sort();
    found
}

#[test]
fn every_example_of_the_documents_says_what_really_happens() {
    for caller in [Caller::Same, Caller::ordinary()] {
        for document in documents() {
            let Some(env) = TestEnv::of_the_executable_as(caller) else { return };
            check(&env, &document);
        }
    }
}

fn check(env: &TestEnv, document: &Path) {
    let text = fs_err::read_to_string(document).unwrap();
    let examples = examples(&text);
    let outputs = outputs(env, &examples);
    if require::variable("SANDTABLE_UPDATE").is_some() {
        return fs_err::write(document, updated(&text, &examples, &outputs)).unwrap();
    }
    let wrong: String =
        examples.iter().zip(&outputs).filter_map(|(example, output)| example.wrong(output)).collect();
    assert!(wrong.is_empty(), "{}:\n{wrong}", document.display());
}

/// A line to run, and the output that the document shows for it.
struct Example {
    /// The place of the line in the document.
    line: usize,
    indent: String,
    command: String,
    shown: Vec<String>,
}

impl Example {
    fn wrong(&self, output: &[String]) -> Option<String> {
        let (shown, seen) = (plain_all(&self.shown), plain_all(output));
        if fits(&shown, &seen) {
            return None;
        }
        let mut text = format!("line {}: $ {}\n", self.line + 1, self.command);
        for (title, lines) in [("shown", &shown), ("seen", &seen)] {
            for line in lines {
                writeln!(text, "  {title:>5} | {line}").unwrap();
            }
        }
        Some(text)
    }
}

/// Output ends where the block ends, and at the next line that is run. A block is indented or fenced.
fn examples(text: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut open = false;
    for (line, words) in text.lines().enumerate() {
        let bare = words.trim_start();
        if let Some(command) = bare.strip_prefix("$ ") {
            let indent = words[..words.len() - bare.len()].to_owned();
            found.push(Example { line, indent, command: command.to_owned(), shown: Vec::new() });
            open = true;
        } else if let Some(example) = found.last_mut().filter(|_| open) {
            let inside = words.strip_prefix(&example.indent).filter(|rest| !rest.starts_with("```"));
            match inside.or(bare.is_empty().then_some("")) {
                Some(rest) => example.shown.push(rest.to_owned()),
                None => open = false,
            }
        }
    }
    for example in &mut found {
        while example.shown.last().is_some_and(String::is_empty) {
            example.shown.pop();
        }
    }
    found
}

/// What each line prints, both streams together.
fn outputs(env: &TestEnv, examples: &[Example]) -> Vec<Vec<String>> {
    let mut script = String::from("exec 2>&1\n");
    for example in examples {
        writeln!(script, "{}\nprintf '\\n%s\\n' '{BETWEEN}'", example.command).unwrap();
    }
    let name = |key: &str, value: &str| env.git(env.root(), &["config", "--global", key, value]);
    name("user.name", "Ada");
    name("user.email", "ada@example.org");
    name("init.defaultBranch", "main");
    let path = format!("{}:{PATH}", env.binary().parent().unwrap().display());
    let work = env.root().join("work");
    env.directory(&work);
    let run = env.run("bash").directory(&work).variable("PATH", path);
    let ended = run.args(["-c", &script]).ended();
    let home = env.home().display().to_string();
    let stdout = ended.stdout.replace(&home, "~").replace(&work.display().to_string(), "/home/ada");
    let of_one = |part: &str| {
        let lines = part.trim_end_matches('\n').lines().skip_while(|line| line.is_empty());
        lines.map(|line| line.trim_end().to_owned()).collect()
    };
    let found: Vec<Vec<String>> = stdout.split(BETWEEN).map(of_one).collect();
    // Nothing comes after the last line.
    assert_eq!(found.len(), examples.len() + 1, "{}{}", ended.stdout, ended.stderr);
    found[..examples.len()].to_vec()
}

/// The document with the output as it is, but for what is shown with gaps and fits.
fn updated(text: &str, examples: &[Example], outputs: &[Vec<String>]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut new = String::new();
    let mut next = 0;
    for (example, output) in examples.iter().zip(outputs) {
        for line in &lines[next..=example.line] {
            writeln!(new, "{line}").unwrap();
        }
        let right = example.wrong(output).is_none();
        for line in if right { &example.shown } else { output } {
            let line = format!("{}{line}", example.indent);
            writeln!(new, "{}", line.trim_end()).unwrap();
        }
        next = example.line + 1 + example.shown.len();
    }
    for line in &lines[next..] {
        writeln!(new, "{line}").unwrap();
    }
    new
}

fn plain_all(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| plain(line)).collect()
}

/// A line without what differs from run to run. Blanks that align columns differ with it.
fn plain(line: &str) -> String {
    let words = line.split(' ').filter(|word| !word.is_empty()).map(|word| {
        if is_moment(word) {
            return "WHEN".to_owned();
        }
        let (before, rest) = split_at(word, |letter| !letter.is_ascii_alphanumeric());
        let (core, after) = split_at(rest, |letter| letter.is_ascii_alphanumeric() || letter == '.');
        let core = if is_id(core) { "ID" } else { core };
        // What follows may be an id again, as in `all@ID`.
        let after = match after.split_at_checked(1) {
            Some((mark, rest)) if !rest.is_empty() => format!("{mark}{}", plain(rest)),
            _ => after.to_owned(),
        };
        format!("{before}{core}{after}")
    });
    let mut words: Vec<String> = words.collect();
    for at in 1..words.len() {
        let unit = words[at].trim_end_matches([',', ';']);
        if ["ms", "s", "min", "B", "KiB", "MiB"].contains(&unit)
            && words[at - 1].starts_with(|digit: char| digit.is_ascii_digit())
        {
            "N".clone_into(&mut words[at - 1]);
            "UNIT".clone_into(&mut words[at]);
        }
    }
    words.join(" ")
}

fn split_at(text: &str, goes_on: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|letter| !goes_on(letter)).unwrap_or(text.len()))
}

/// A hexadecimal name of at least seven digits. One in a thousand has letters only, and no word in the documents looks like one.
fn is_id(word: &str) -> bool {
    word.len() >= 7 && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Such as `2026-01-31T12:00:00.000Z`.
fn is_moment(word: &str) -> bool {
    word.len() >= 20 && word.ends_with('Z') && word.as_bytes()[4] == b'-' && word.as_bytes()[10] == b'T'
}

/// Whether lines are as shown.
fn fits(shown: &[String], seen: &[String]) -> bool {
    match shown.split_first() {
        None => seen.is_empty(),
        Some((gap, rest)) if gap == "…" => (0..=seen.len()).any(|skipped| fits(rest, &seen[skipped..])),
        Some((line, rest)) => {
            seen.split_first().is_some_and(|(first, others)| fits_line(line, first) && fits(rest, others))
        }
    }
}

fn fits_line(shown: &str, seen: &str) -> bool {
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = seen.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[test]
fn a_wrong_example_is_noticed_and_what_differs_in_each_run_is_not() {
    let lines = |text: &str| text.lines().map(plain).collect::<Vec<_>>();
    for (shown, seen) in [
        ("state 95f543a27689, as before", "state 0123456789ab, as before"),
        ("try · exit 0 · 2 changes · 757 ms", "try · exit 0 · 2 changes · 1.2 s"),
        ("held run.sh@24c9fea3ddd5: new", "held run.sh@94c9fea3ddd5: new"),
        ("4fe1a2b exec", "fccbecc exec"),
        ("ab1 2026-11-18T20:10:28.712Z run", "ab1  2027-01-01T00:00:00.000Z  run"),
        ("a\n…\nz", "a\nb\nc\nz"),
        ("diff …", "diff --git a/x b/x"),
    ] {
        assert!(fits(&lines(shown), &lines(seen)), "{shown}");
    }
    for (shown, seen) in [
        ("try · exit 0 · 2 changes · 757 ms", "try · exit 1 · 2 changes · 757 ms"),
        ("one", "one\ntwo"),
        ("one\ntwo", "one"),
        ("held run.sh@24c9fea3ddd5: new", "held build.sh@24c9fea3ddd5: new"),
        ("a … z", "a b c"),
    ] {
        assert!(!fits(&lines(shown), &lines(seen)), "{shown}");
    }
    let text = "Text.\n\n    $ true\n    $ echo x\n    x\n\n    y\n\nMore.\n";
    let found = examples(text);
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].shown, ["x", "", "y"]);
}
