//! What users read is plain: no expression that the glossary lists under "Words not to use" stands in a message, a help text,
//! a data file or a document.

use std::path::Path;
use std::sync::LazyLock;

use proc_macro2::{Literal, TokenStream, TokenTree};
use sandtable_testkit::require::workspace;

use super::{assert_none, product, sources};

/// The crate whose documentation comments are help texts.
const HELP: &str = "crates/cli/src";
/// Documents that users do not read, or that have to name the words.
const EXEMPT: [&str; 2] = ["docs/glossary.md", "docs/internal"];

/// Files that have such expressions still. A file that has lost its last one leaves the list, and none comes in.
const LEFT: [&str; 39] = [
    "crates/app/src/recovery.rs",
    "crates/app/src/why/path.rs",
    "crates/cli/src/command_line.rs",
    "crates/cli/src/commands/background.rs",
    "crates/cli/src/commands/diff.rs",
    "crates/cli/src/commands/doctor/again.rs",
    "crates/cli/src/commands/doctor/answer.rs",
    "crates/cli/src/commands/doctor/mod.rs",
    "crates/cli/src/commands/doctor/trial.rs",
    "crates/cli/src/commands/merge/ask.rs",
    "crates/cli/src/commands/store.rs",
    "crates/cli/src/commands/target.rs",
    "crates/cli/src/commands/told.rs",
    "crates/cli/src/commands/trust.rs",
    "crates/cli/src/commands/turn/held.rs",
    "crates/cli/src/ui/summary.rs",
    "crates/launch/build.rs",
    "crates/launch/src/outside/attach/filter/controls.rs",
    "crates/launch/src/outside/cgroup/systemd/mod.rs",
    "crates/merge/src/error.rs",
    "crates/merge/src/story.rs",
    "crates/merge/src/way_back.rs",
    "crates/sandbox/policy/build.rs",
    "crates/sandbox/src/board/error.rs",
    "crates/sandbox/src/doctor/containers.rs",
    "crates/sandbox/src/doctor/podman.rs",
    "crates/sandbox/src/engine/enforcement.rs",
    "crates/sandbox/src/engine/oci/launch.rs",
    "crates/sandbox/src/engine/ssh_agent/tunnel.rs",
    "crates/sandbox/src/resolve/card.rs",
    "crates/sandbox/src/resolve/error.rs",
    "crates/sandbox/src/resolve/overlay.rs",
    "crates/sandbox/src/resolve/secrets.rs",
    "crates/sandbox/src/resolve/ssh_agent/podman.rs",
    "crates/sandbox/src/resolve/warnings.rs",
    "crates/sandbox/src/session/capture.rs",
    "crates/sandbox/src/session/error.rs",
    "crates/store/src/meta/mod.rs",
    "crates/store/src/meta/schema.rs",
];

/// Whether documentation comments are texts too, as where they are help.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comments {
    Read,
    Skipped,
}

/// An expression, and what to write instead.
struct Expression {
    words: Vec<String>,
    instead: String,
}

/// A piece of text for users, and where it begins.
struct Text {
    line: usize,
    content: String,
}

#[test]
fn users_read_plain_words() {
    let mut wrong = Vec::new();
    for source in product() {
        let comments = if source.is_below(HELP) { Comments::Read } else { Comments::Skipped };
        let texts = literals(&source.text, comments).into_iter().filter(|text| !source.is_test(text.line));
        let found = complaints(&source.path, texts);
        match LEFT.iter().any(|left| source.is_below(left)) {
            true if found.is_empty() => wrong.push(format!("{}: is plain by now", source.path.display())),
            true => {}
            false => wrong.extend(found),
        }
    }
    for data in sources("toml").iter().filter(|file| !file.path.ends_with("Cargo.toml")) {
        wrong.extend(complaints(&data.path, lines(&data.text).filter(|line| !line.content.starts_with('#'))));
    }
    for (path, text) in documents() {
        wrong.extend(complaints(&path, prose(&text).into_iter()));
    }
    assert_none("docs/glossary.md knows a better word", &wrong);
}

/// Every document that is for users.
fn documents() -> Vec<(std::path::PathBuf, String)> {
    let top = workspace();
    let (mut found, mut waiting) = (Vec::new(), vec![top.join("docs")]);
    let mut add = |path: &Path| {
        let relative = path.strip_prefix(&top).expect("it was found below the top").to_owned();
        if !EXEMPT.iter().any(|exempt| relative.starts_with(exempt)) {
            found.push((relative, fs_err::read_to_string(path).unwrap()));
        }
    };
    for name in ["README.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md"] {
        add(&top.join(name));
    }
    while let Some(directory) = waiting.pop() {
        for entry in fs_err::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => waiting.push(path),
                Some(end) if end == "md" => add(&path),
                _ => {}
            }
        }
    }
    found
}

fn complaints(path: &Path, texts: impl Iterator<Item = Text>) -> Vec<String> {
    static EXPRESSIONS: LazyLock<Vec<Expression>> =
        LazyLock::new(|| expressions(&fs_err::read_to_string(workspace().join("docs/glossary.md")).unwrap()));
    let complaint = |text: &Text, expression: &Expression| {
        format!("{}:{}: `{}`: {}", path.display(), text.line, expression.words.join(" "), expression.instead)
    };
    let mut found = Vec::new();
    for text in texts {
        let words = words(&text.content);
        found.extend(
            EXPRESSIONS
                .iter()
                .filter(|expression| {
                    words.windows(expression.words.len()).any(|part| part == expression.words)
                })
                .map(|expression| complaint(&text, expression)),
        );
    }
    found
}

/// The table under "Words not to use".
fn expressions(glossary: &str) -> Vec<Expression> {
    let (_, section) = glossary.split_once("## Words not to use").expect("the glossary has that section");
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.flat_map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let (not, instead) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        not.split(", ")
            .map(|text| Expression { words: words(text), instead: instead.to_owned() })
            .collect::<Vec<_>>()
    })
    .collect()
}

/// Words in lower case, without the marks between them.
fn words(text: &str) -> Vec<String> {
    let is_mark =
        |letter: char| !letter.is_alphanumeric() && letter != '\'' && letter != '-' && letter != '_';
    text.split(is_mark).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn lines(text: &str) -> impl Iterator<Item = Text> {
    text.lines().enumerate().map(|(index, line)| Text { line: index + 1, content: line.trim().to_owned() })
}

/// The lines of a document without its examples, which show what the program prints: indented blocks behind an empty line.
fn prose(text: &str) -> Vec<Text> {
    let (mut found, mut is_example, mut is_behind_empty) = (Vec::new(), false, true);
    for (text, line) in lines(text).zip(text.lines()) {
        is_example = line.starts_with("    ") && (is_example || is_behind_empty);
        is_behind_empty = line.is_empty();
        if !is_example {
            found.push(text);
        }
    }
    found
}

/// The string literals of a Rust file; its documentation comments are attributes with literals, and help texts in some files.
fn literals(text: &str, comments: Comments) -> Vec<Text> {
    let mut found = Vec::new();
    collect(text.parse().expect("the compiler reads this file"), comments, &mut found);
    found
}

fn collect(tokens: TokenStream, comments: Comments, found: &mut Vec<Text>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Literal(literal) if comments == Comments::Read || !is_comment(&tokens[..index]) => {
                found.extend(string(literal));
            }
            TokenTree::Group(group) => collect(group.stream(), comments, found),
            _ => {}
        }
    }
}

/// Whether these tokens are `doc =`, as which a documentation comment begins.
fn is_comment(before: &[TokenTree]) -> bool {
    matches!(before, [.., TokenTree::Ident(name), TokenTree::Punct(equals)] if name == "doc" && equals.as_char() == '=')
}

fn string(literal: &Literal) -> Option<Text> {
    let text = literal.to_string();
    let inner = text.trim_start_matches('r').trim_matches('#').strip_prefix('"')?.strip_suffix('"')?;
    // A line break that was escaped joins two lines, and no other escape is a word.
    let content = inner.replace("\\\n", " ").replace("\\n", " ");
    Some(Text { line: literal.span().start().line, content })
}

#[test]
fn every_text_for_users_is_read() {
    let glossary = "## Words not to use\n\nNot in messages.\n\n| not | instead |\n|---|---|\n| mend, mends | fix |\n| is told | is shown |\n";
    let read = expressions(glossary);
    let all: Vec<String> = read.iter().map(|expression| expression.words.join(" ")).collect();
    assert_eq!(all, ["mend", "mends", "is told"]);
    assert_eq!(read[1].instead, "fix");

    let code =
        "/// Mends it.\nfn a() { b(\"it is\\n told\"); c!(r#\"raw \"text\"\"#); }\n#[cfg(test)]\nmod t {}\n";
    let texts = |comments| -> Vec<(usize, Vec<String>)> {
        literals(code, comments).iter().map(|text| (text.line, words(&text.content))).collect()
    };
    assert_eq!(texts(Comments::Read)[0], (1, vec!["mends".to_owned(), "it".to_owned()]));
    assert_eq!(texts(Comments::Skipped)[0], (2, ["it", "is", "told"].map(str::to_owned).to_vec()));
    assert_eq!(texts(Comments::Skipped)[1].1, ["raw", "text"]);
}

#[test]
fn examples_of_a_document_are_not_prose() {
    let text = "one\n\n    $ two\n    three\nfour\n- five\n    six\n";
    let found: Vec<usize> = prose(text).iter().map(|text| text.line).collect();
    assert_eq!(found, [1, 2, 5, 6, 7]);
}

#[test]
fn an_expression_is_found_in_a_sentence_and_not_in_a_longer_word() {
    let found = |text: &str| {
        complaints(Path::new("a.md"), std::iter::once(Text { line: 3, content: text.to_owned() }))
    };
    assert_eq!(found("What **mends** it."), ["a.md:3: `mends`: fix, repair"]);
    assert_eq!(found("the amended text"), [""; 0]);
    assert_eq!(found("Bring home the change").len(), 1);
}
