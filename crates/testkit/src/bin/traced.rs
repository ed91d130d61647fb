//! `traced OUTPUT`: whether a whole run of the suite showed what `docs/internal/traceability.md` says. OUTPUT is what `cargo test`
//! printed. On a build machine every named test must have run; elsewhere a skipped one is only listed.

use std::process::ExitCode;

use sandtable_testkit::counts;
use sandtable_testkit::require::{is_build_machine, say, workspace};
use sandtable_testkit::traceability::{Length, not_shown, rows};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        say("usage: traced OUTPUT");
        return ExitCode::from(2);
    };
    let read =
        |path: &std::path::Path| fs_err::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let (output, document) =
        match (read(path.as_ref()), read(&workspace().join("docs/internal/traceability.md"))) {
            (Ok(output), Ok(document)) => (output, document),
            (Err(error), _) | (_, Err(error)) => {
                say(&error.to_string());
                return ExitCode::from(2);
            }
        };
    let length = if counts::is_long() { Length::Long } else { Length::Sampled };
    let rows = rows(&document);
    let missing = not_shown(&rows, &output, length);
    let (skipped, wrong): (Vec<_>, Vec<_>) = missing.iter().partition(|line| line.ends_with(" was skipped"));
    for line in &missing {
        say(&format!("not shown: {line}"));
    }
    say(&format!(
        "{} items, {} tests that were skipped, {} that did not pass",
        rows.len(),
        skipped.len(),
        wrong.len()
    ));
    let fails = !wrong.is_empty() || is_build_machine() && !skipped.is_empty();
    ExitCode::from(u8::from(fails))
}
