use super::*;

const GOOD: &str = r#"format = 1
name = "greet"
version = "1.0"
description = "says hello"
extra_dependencies = ["ninja@1.13"]

[[download]]
source = "crate"
name = "greet"
version = "1.0"
file = "greet-1.0.crate"
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"

[[steps]]
action = "source_archive"
file = "greet-1.0.crate"

[[steps]]
action = "cmake_build"
source = "source"
outputs = ["bin/greet"]
when = { os = "linux", libc = ["glibc", "musl"] }

[verify]
command = ["greet"]
pattern = "hello"

[provides]
binaries = ["bin/greet"]
"#;

#[test]
fn a_recipe_is_read() {
    let recipe = Recipe::parse(GOOD).unwrap();
    assert_eq!(recipe.title(), "greet 1.0");
    assert_eq!(
        recipe.steps.iter().map(|step| step.action.word()).collect::<Vec<_>>(),
        ["source_archive", "cmake_build"]
    );
    assert_eq!(recipe.steps[1].place, Place { line: 18, column: 1 });
}

/// The complaint about the good recipe with one thing changed.
fn complaint(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    Recipe::parse(&GOOD.replace(from, to)).map_or_else(|error| error.to_string(), |_| "none".to_owned())
}

#[test]
fn every_complaint_has_its_line_and_column() {
    let cases = [
        ("format = 1", "format = 2", "line 1, column 10: format 2 is not known"),
        (
            "\"greet\"\nversion = \"1.0\"\ndesc",
            "\"../greet\"\nversion = \"1.0\"\ndesc",
            "line 2, column 8: `../greet` is not the name of a tool",
        ),
        (
            "version = \"1.0\"\ndescription",
            "version = \"1/0\"\ndescription",
            "line 3, column 11: `1/0` is not a version",
        ),
        (
            "description = \"says hello\"",
            "descripton = \"says hello\"",
            "line 4, column 1: unknown field `descripton`",
        ),
        ("0000000000\"", "000000000\"", "line 12, column 10: `000"),
        ("\"crate\"", "\"mars\"", "line 8, column 10: unknown variant `mars`"),
        ("cmake_build", "cmake_bild", "line 19, column 10: unknown action `cmake_bild`"),
        (
            "source = \"source\"",
            "sauce = \"source\"",
            "line 20, column 1: cmake_build: unknown field `sauce`",
        ),
        (
            "outputs = [\"bin/greet\"]",
            "outputs = [\"../greet\"]",
            "line 21, column 12: cmake_build: `../greet` is not a plain relative path",
        ),
        ("os = \"linux\"", "os = \"plan9\"", "`when`: "),
        (
            "file = \"greet-1.0.crate\"\n\n[[steps]]\naction = \"cmake",
            "\n[[steps]]\naction = \"cmake",
            "line 14, column 1: source_archive: missing field `file`",
        ),
        ("command = [\"greet\"]", "command = \"greet\"", "line 25, column 11: invalid type"),
        ("[verify]", "[verify", "line 24, column"),
    ];
    for (from, to, expected) in cases {
        let said = complaint(from, to);
        assert!(said.contains(expected), "{to}: {said}");
    }
}

#[test]
fn whatever_text_it_is_it_is_read_or_refused() {
    // Every prefix of a recipe is a text that nobody meant.
    for end in (0..GOOD.len()).filter(|end| GOOD.is_char_boundary(*end)) {
        if let Err(error) = Recipe::parse(&GOOD[..end]) {
            assert!(error.place.line <= GOOD.lines().count() && !error.message.is_empty(), "{error:?}");
        }
    }
}
