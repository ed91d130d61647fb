//! Many attempts in one sandbox, each in a process of its own: what one does to itself is no matter to the
//! next, and one that dies of its attempt is an answer too.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use sandtable_protocol::probe::{Case, Class, Line};

/// Makes every attempt of the file `cases`, a list in JSON, and writes one [`Line`] each to `answers`.
pub(super) fn run(cases: &Path, answers: &Path) -> io::Result<()> {
    let cases: Vec<Case> = serde_json::from_reader(File::open(cases)?)?;
    let mut out = File::create(answers)?;
    for case in &cases {
        let line = attempt(case).unwrap_or_else(|error| Line {
            case: case.probe.clone(),
            class: Class::Unsupported,
            detail: format!("no answer: {error}"),
        });
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
    }
    Ok(())
}

fn attempt(case: &Case) -> io::Result<Line> {
    #[expect(clippy::disallowed_methods, reason = "this runs inside a sandbox, where it starts only itself")]
    let mut child = std::process::Command::new("/proc/self/exe");
    let output = child.arg("__probe").arg(&case.probe).args(&case.args).output()?;
    serde_json::from_slice(&output.stdout).map_err(|_| io::Error::other(output.status.to_string()))
}
