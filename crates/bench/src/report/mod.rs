//! The report: everything measured as JSON, the same for people as Markdown, and a plot for each row.

mod markdown;
mod svg;

use std::io;
use std::path::Path;

use serde::Serialize;

use super::growth::Growth;
use super::machine::Machine;
use super::outcome::RowOutcome;
use super::peers::Version;

/// Version of the JSON layout.
pub const SCHEMA: u32 = 2;

/// All that was found out.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub schema: u32,
    pub machine: Machine,
    pub warm_up: usize,
    pub rounds: usize,
    /// `full`, or what was left out.
    pub scale: String,
    pub versions: Vec<Version>,
    pub rows: Vec<RowOutcome>,
    pub growth: Vec<Growth>,
}

impl Report {
    /// Writes `report.md`, `report.json` and `plots/*.svg`. Plots of an earlier run are removed: a plot
    /// without its row would be taken for a result.
    pub fn write(&self, out: &Path) -> io::Result<()> {
        let plots = out.join("plots");
        if plots.exists() {
            fs_err::remove_dir_all(&plots)?;
        }
        fs_err::create_dir_all(&plots)?;
        for row in self.rows.iter().filter(|row| has_numbers(row)) {
            fs_err::write(plots.join(plot_name(&row.id)), svg::bars(row))?;
        }
        for growth in &self.growth {
            fs_err::write(plots.join(plot_name(&growth.id)), svg::lines(growth))?;
        }
        fs_err::write(out.join("report.md"), markdown::render(self))?;
        let json = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        fs_err::write(out.join("report.json"), json + "\n")
    }
}

fn plot_name(id: &str) -> String {
    format!("{}.svg", id.replace('/', "-"))
}

fn has_numbers(row: &RowOutcome) -> bool {
    row.entries.iter().any(|entry| entry.summary().is_some())
}

#[cfg(test)]
mod tests {
    use super::super::growth::growth;
    use super::super::outcome::judge;
    use super::super::outcome::tests::{absent, measured};
    use super::super::row::{OURS, Target};
    use super::*;

    pub(super) fn sample() -> Report {
        let row = |id: &str, files, ours| {
            let entries = vec![measured(OURS, ours), measured("bwrap", 10), absent("docker", "no <daemon>")];
            let targets = [
                Target::Ratio { peer: "bwrap", at_most: 1.0 },
                Target::Faster { peer: "docker", at_least: 30.0 },
            ];
            RowOutcome {
                id: id.into(),
                title: "start & end".into(),
                note: Some("Read me.".into()),
                files: Some(files),
                unit: "ms",
                targets: targets.iter().map(|target| judge(target, &entries)).collect(),
                entries,
            }
        };
        let rows = vec![row("start/root/1k", 1000, 5), row("start/root/10k", 10_000, 20)];
        let machine = Machine {
            date: "2026-01-02 03:04 UTC".into(),
            kernel: "Linux 6".into(),
            cpu: "Fast".into(),
            cores: 2,
            memory: "8 GB".into(),
            file_system: "ext4".into(),
            load_before: "0 0 0".into(),
            load_after: "1 0 0".into(),
        };
        let versions = vec![
            Version { name: "bwrap", version: Some("bubblewrap 0.8".into()), absent: None },
            Version { name: "docker", version: None, absent: Some("no <daemon>".into()) },
        ];
        let growth = growth(&rows);
        Report {
            schema: SCHEMA,
            machine,
            warm_up: 1,
            rounds: 3,
            scale: "full".into(),
            versions,
            rows,
            growth,
        }
    }

    #[test]
    fn files_and_links_agree() {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("plots")).unwrap();
        fs_err::write(dir.path().join("plots/old.svg"), "").unwrap();
        sample().write(dir.path()).unwrap();
        let mut plots: Vec<_> = fs_err::read_dir(dir.path().join("plots"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        plots.sort();
        assert_eq!(plots, ["start-root-10k.svg", "start-root-1k.svg", "start-root.svg"]);
        let text = fs_err::read_to_string(dir.path().join("report.md")).unwrap();
        for plot in plots {
            assert!(text.contains(&format!("(plots/{plot})")), "{plot} is not shown");
        }
    }

    #[test]
    fn json_keeps_every_state_and_verdict() {
        let json = serde_json::to_value(sample()).unwrap();
        let entries = &json["rows"][0]["entries"];
        assert_eq!(entries[0]["state"], "measured");
        assert_eq!(entries[0]["summary"]["median"], 5.0);
        assert_eq!(entries[2]["state"], "absent");
        assert_eq!(entries[2]["reason"], "no <daemon>");
        assert_eq!(json["rows"][0]["targets"][0]["verdict"], "pass");
        assert_eq!(json["rows"][1]["targets"][0]["verdict"], "miss");
        assert_eq!(json["rows"][0]["targets"][1]["verdict"], "unmeasured");
        assert_eq!(json["growth"][0]["flat"]["verdict"], "miss");
    }
}
