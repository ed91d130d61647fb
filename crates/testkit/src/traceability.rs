//! `docs/internal/traceability.md` as data, and whether a run of the suite shows what it says.

use std::collections::BTreeSet;

/// An item that was asked for and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    pub id: &'a str,
    pub status: Status<'a>,
}

/// What the last cell of a row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status<'a> {
    /// Shown by every run.
    Test(Vec<&'a str>),
    /// Shown by `./test --long`.
    Long(Vec<&'a str>),
    /// Its decisions are shown by every run.
    Logic(Vec<&'a str>),
    /// A reason instead of a test: `departure`, `declined` or `planned`.
    Reason {
        kind: &'a str,
        why: &'a str,
    },
    Unknown(&'a str),
}

impl<'a> Status<'a> {
    fn parse(cell: &'a str) -> Self {
        let cell = cell.trim_matches('`');
        let (kind, rest) = cell.split_once(':').unwrap_or((cell, ""));
        let names = || -> Vec<&'a str> {
            let words = rest.split([',', ' ']);
            let name = |word: &'a str| word.trim_matches('`').trim_start_matches("test:");
            words.map(name).filter(|name| !name.is_empty()).collect()
        };
        match kind {
            "test" if !names().is_empty() => Self::Test(names()),
            "long" if !names().is_empty() => Self::Long(names()),
            "logic" if !names().is_empty() => Self::Logic(names()),
            "departure" | "declined" | "planned" if !rest.trim().is_empty() => {
                Self::Reason { kind, why: rest.trim() }
            }
            _ => Self::Unknown(cell),
        }
    }

    /// The tests that show it, in a run of any size.
    pub fn tests(&self) -> &[&'a str] {
        match self {
            Self::Test(names) | Self::Long(names) | Self::Logic(names) => names,
            Self::Reason { .. } | Self::Unknown(_) => &[],
        }
    }
}

/// The items of the document, in its order.
pub fn rows(text: &str) -> Vec<Row<'_>> {
    let lines = text.lines().filter(|line| line.starts_with('|'));
    let row = |line| {
        let mut cells = str::trim_matches(line, '|').split('|').map(str::trim);
        let id = cells.next().filter(|id| is_item(id))?;
        Some(Row { id, status: Status::parse(cells.next_back()?) })
    };
    lines.filter_map(row).collect()
}

fn is_item(cell: &str) -> bool {
    let mut letters = cell.chars();
    matches!(letters.next(), Some('R' | 'S')) && letters.next().is_some_and(|letter| letter.is_ascii_digit())
}

/// How long a run was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Sampled,
    Long,
}

/// What a whole run of the suite did not show: tests that are named and did not pass, or that passed because they were
/// skipped. `output` is what `cargo test` printed.
pub fn not_shown(rows: &[Row<'_>], output: &str, length: Length) -> Vec<String> {
    let last = |path: &str| path.rsplit("::").next().unwrap_or(path).to_owned();
    let skipped: BTreeSet<String> =
        output.lines().filter_map(|line| line.strip_prefix(crate::require::NOT_RUN)).map(last).collect();
    let passed: BTreeSet<String> = output.lines().filter_map(passed).map(last).collect();
    let mut missing = Vec::new();
    for row in rows {
        if length == Length::Sampled && matches!(row.status, Status::Long(_)) {
            continue;
        }
        for name in row.status.tests().iter().map(|name| last(name)) {
            if skipped.contains(&name) {
                missing.push(format!("{}: {name} was skipped", row.id));
            } else if !passed.contains(&name) {
                missing.push(format!("{}: {name} did not run and pass", row.id));
            }
        }
    }
    missing
}

/// The name in `test a::b ... ok`, also with what stands between (`- should panic`).
fn passed(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... ok")?.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "| id | what | status |\n|---|---|---|\n| R1.1 | a | test:first module::second |\n\
        | R1.2 | b | long:slow |\n| S003.F1 | c | departure:for a reason |\n| S004.2 | d | maybe |\n";

    #[test]
    fn rows_have_their_status() {
        let statuses: Vec<Status<'_>> = rows(DOCUMENT).into_iter().map(|row| row.status).collect();
        let reason = Status::Reason { kind: "departure", why: "for a reason" };
        let expected = [
            Status::Test(vec!["first", "module::second"]),
            Status::Long(vec!["slow"]),
            reason,
            Status::Unknown("maybe"),
        ];
        assert_eq!(statuses, expected);
    }

    #[test]
    fn a_named_test_must_have_run() {
        let rows = rows(DOCUMENT);
        let all = "test a::first ... ok\ntest module::second - should panic ... ok\n";
        assert_eq!(not_shown(&rows, all, Length::Sampled), [""; 0]);
        assert_eq!(not_shown(&rows, all, Length::Long), ["R1.2: slow did not run and pass"]);
        let failed = "test a::first ... FAILED\ntest module::second ... ok\n";
        assert_eq!(not_shown(&rows, failed, Length::Sampled), ["R1.1: first did not run and pass"]);
        let filtered = "test module::second ... ok\n";
        assert_eq!(not_shown(&rows, filtered, Length::Sampled), ["R1.1: first did not run and pass"]);
        let skipped = format!("{all}{}a::first\n", crate::require::NOT_RUN);
        assert_eq!(not_shown(&rows, &skipped, Length::Sampled), ["R1.1: first was skipped"]);
    }
}
