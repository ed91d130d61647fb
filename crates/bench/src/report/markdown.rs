//! The report for people: the promises first, then each row with its numbers, then how they were taken.

use std::fmt::{Result, Write};

use super::super::outcome::{EntryOutcome, Judged, RowOutcome, State};
use super::super::row::OURS;
use super::{Report, has_numbers, plot_name};

/// The whole page.
pub(super) fn render(report: &Report) -> String {
    let mut page = String::new();
    write_page(&mut page, report).expect("a string takes any text");
    page
}

fn write_page(page: &mut String, report: &Report) -> Result {
    writeln!(page, "# Benchmark report\n")?;
    write_machine(page, report)?;
    write_promises(page, report)?;
    writeln!(page, "\n## Growth\n")?;
    if report.growth.is_empty() {
        writeln!(page, "No kind of row was measured at more than one size.")?;
    }
    for growth in &report.growth {
        writeln!(page, "![{0} over the number of files](plots/{1})\n", growth.id, plot_name(&growth.id))?;
    }
    writeln!(page, "\n## Rows\n\nTimes in milliseconds, from fork to the end of wait.")?;
    report.rows.iter().try_for_each(|row| write_row(page, row))
}

fn write_machine(page: &mut String, report: &Report) -> Result {
    let machine = &report.machine;
    writeln!(page, "| | |\n|---|---|")?;
    writeln!(page, "| date | {} |\n| kernel | {} |", machine.date, machine.kernel)?;
    writeln!(page, "| CPU | {}, {} cores |", cell(&machine.cpu), machine.cores)?;
    writeln!(page, "| memory | {} |\n| file system | {} |", machine.memory, machine.file_system)?;
    writeln!(page, "| load before, after | {}, {} |", machine.load_before, machine.load_after)?;
    writeln!(page, "| rounds | {} after {} to warm up |", report.rounds, report.warm_up)?;
    writeln!(page, "| scale | {} |", report.scale)?;
    for program in &report.versions {
        let version = match (&program.version, &program.absent) {
            (_, Some(reason)) => format!("absent: {}", cell(reason)),
            (Some(version), None) => cell(version),
            (None, None) => "unknown".to_owned(),
        };
        writeln!(page, "| {} | {version} |", program.name)?;
    }
    Ok(())
}

fn write_promises(page: &mut String, report: &Report) -> Result {
    writeln!(page, "\n## Targets\n\n| row | target | reached | verdict |\n|---|---|---|---|")?;
    for row in &report.rows {
        row.targets.iter().try_for_each(|judged| write_promise(page, &row.id, judged))?;
    }
    for growth in &report.growth {
        growth.flat.iter().try_for_each(|judged| write_promise(page, &growth.id, judged))?;
    }
    Ok(())
}

fn write_promise(page: &mut String, id: &str, judged: &Judged) -> Result {
    let reached = judged.reached.as_deref().unwrap_or("–");
    writeln!(page, "| {id} | {} | {reached} | {} |", judged.promise, judged.verdict.word())
}

fn write_row(page: &mut String, row: &RowOutcome) -> Result {
    writeln!(page, "\n### {}: {}\n", row.id, row.title)?;
    if let Some(note) = &row.note {
        writeln!(page, "{note}\n")?;
    }
    writeln!(
        page,
        "| {} | median | p10 | p90 | min | max | samples | {OURS} ÷ it |\n|---|--:|--:|--:|--:|--:|--:|--:|",
        row.unit
    )?;
    let ours = row.summary(OURS).map(|summary| summary.median);
    row.entries.iter().try_for_each(|entry| write_entry(page, entry, ours))?;
    if has_numbers(row) {
        writeln!(page, "\n![{}](plots/{})", row.id, plot_name(&row.id))?;
    }
    writeln!(page, "\n<details><summary>command lines</summary>\n\n```sh")?;
    row.entries
        .iter()
        .filter_map(|entry| entry.command.as_ref())
        .try_for_each(|line| writeln!(page, "{line}"))?;
    writeln!(page, "```\n</details>")
}

fn write_entry(page: &mut String, entry: &EntryOutcome, ours: Option<f64>) -> Result {
    let name = &entry.name;
    match &entry.state {
        State::Measured { summary: s, .. } => {
            let ratio = ours.map_or_else(|| "–".to_owned(), |ours| format!("{:.2}", ours / s.median));
            let times = [s.median, s.p10, s.p90, s.min, s.max].map(|time| format!("{time:.2}")).join(" | ");
            writeln!(page, "| {name} | {times} | {} | {ratio} |", s.samples)
        }
        State::Absent { reason } => writeln!(page, "| {name} | absent: {} | | | | | | |", cell(reason)),
        State::Failed { reason } => writeln!(page, "| {name} | failed: {} | | | | | | |", cell(reason)),
    }
}

/// Foreign text inside a table.
fn cell(text: &str) -> String {
    text.replace('|', r"\|").replace('<', "&lt;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn page_states_machine_versions_promises_and_rows() {
        let page = render(&sample());
        for line in [
            "| date | 2026-01-02 03:04 UTC |",
            "| CPU | Fast, 2 cores |",
            "| bwrap | bubblewrap 0.8 |",
            "| docker | absent: no &lt;daemon> |",
            "| start/root/1k | ≤ 1.0 × bwrap | 0.50 × | pass |",
            "| start/root/10k | ≤ 1.0 × bwrap | 2.00 × | **miss** |",
            "| start/root/1k | ≥ 30 × faster than docker | – | not measured |",
            "| start/root | flat in files: largest tree ≤ 1.15 × smallest | 4.00 × | **miss** |",
            "| sandtable | 5.00 | 5.00 | 5.00 | 5.00 | 5.00 | 1 | 1.00 |",
            "| bwrap | 10.00 | 10.00 | 10.00 | 10.00 | 10.00 | 1 | 0.50 |",
            "| docker | absent: no &lt;daemon> | | | | | | |",
            "bwrap it",
        ] {
            assert!(page.lines().any(|found| found == line), "no line `{line}` in\n{page}");
        }
    }

    #[test]
    fn foreign_text_cannot_break_a_table() {
        assert_eq!(cell("a|b\n<c>"), r"a\|b &lt;c>");
    }
}
