//! What more files do to a time: the rows of one kind and one caller, put side by side.

use std::collections::BTreeMap;

use serde::Serialize;

use super::outcome::{Judged, RowOutcome, at_most_times};
use super::row::OURS;

/// Flat means: no more than this times the smallest size, which leaves room for the noise of medians.
pub const FLAT: f64 = 1.15;

/// What is promised not to grow with the tree.
const FLAT_KINDS: [&str; 3] = ["start/", "snapshot/", "rollback/"];

/// One kind of row over the sizes.
#[derive(Clone, Debug, Serialize)]
pub struct Growth {
    /// `kind/caller`.
    pub id: String,
    pub series: Vec<Series>,
    pub flat: Option<Judged>,
}

/// One contender over the sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    pub name: String,
    /// Files and median milliseconds, smallest first.
    pub points: Vec<(u32, f64)>,
}

/// Every kind that was measured at more than one size.
pub fn growth(rows: &[RowOutcome]) -> Vec<Growth> {
    let mut kinds: BTreeMap<&str, Vec<&RowOutcome>> = BTreeMap::new();
    for row in rows {
        let mut parts = row.id.rsplitn(2, '/');
        if let (Some(_size), Some(kind)) = (parts.next(), parts.next())
            && kind.contains('/')
        {
            kinds.entry(kind).or_default().push(row);
        }
    }
    kinds.into_iter().filter(|(_, rows)| rows.len() > 1).map(|(id, rows)| over_sizes(id, &rows)).collect()
}

fn over_sizes(id: &str, rows: &[&RowOutcome]) -> Growth {
    let mut names: Vec<&str> = Vec::new();
    for entry in rows.iter().flat_map(|row| &row.entries) {
        if !names.contains(&entry.name.as_str()) {
            names.push(&entry.name);
        }
    }
    let series = names.into_iter().map(|name| {
        let mut points: Vec<_> =
            rows.iter().filter_map(|row| Some((row.files?, row.summary(name)?.median))).collect();
        points.sort_by_key(|(files, _)| *files);
        Series { name: name.to_owned(), points }
    });
    let series: Vec<_> = series.filter(|series| !series.points.is_empty()).collect();
    let is_flat = FLAT_KINDS.iter().any(|kind| id.starts_with(kind));
    let flat = is_flat.then(|| judge_flat(&series));
    Growth { id: id.to_owned(), series, flat }
}

fn judge_flat(series: &[Series]) -> Judged {
    let ours = series.iter().find(|series| series.name == OURS).map(|series| series.points.as_slice());
    let ratio = match ours {
        Some([smallest, .., largest]) => Some(largest.1 / smallest.1),
        _ => None,
    };
    at_most_times(format!("flat in files: largest tree ≤ {FLAT} × smallest"), ratio, FLAT)
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Verdict;
    use super::super::outcome::tests::{absent, measured};
    use super::*;

    fn row(id: &str, files: u32, ours: u64) -> RowOutcome {
        RowOutcome {
            id: id.into(),
            title: String::new(),
            note: None,
            files: Some(files),
            unit: "ms",
            entries: vec![measured(OURS, ours), absent("docker", "no daemon")],
            targets: Vec::new(),
        }
    }

    #[test]
    fn sizes_become_points_in_order() {
        let rows = [row("start/root/10k", 10_000, 6), row("start/root/1k", 1000, 5)];
        let growth = growth(&rows);
        assert_eq!(growth.len(), 1);
        let expected = Series { name: OURS.into(), points: vec![(1000, 5.0), (10_000, 6.0)] };
        assert_eq!(growth[0].series, [expected]);
    }

    #[test]
    fn flat_is_judged_between_the_ends() {
        let verdict = |large| {
            let rows = [row("start/root/1k", 1000, 100), row("start/root/78k", 78_000, large)];
            growth(&rows)[0].flat.as_ref().unwrap().verdict
        };
        assert_eq!(verdict(115), Verdict::Pass);
        assert_eq!(verdict(116), Verdict::Miss);
    }

    #[test]
    fn rows_of_one_size_and_of_no_size_do_not_grow() {
        let rows =
            [row("start/root/1k", 1000, 5), row("burst/root", 10_000, 5), row("burst/user", 10_000, 5)];
        assert!(growth(&rows).is_empty());
    }

    #[test]
    fn only_what_is_promised_to_be_flat_is_judged() {
        let rows = [row("capture/user/1k", 1000, 5), row("capture/user/10k", 10_000, 50)];
        assert_eq!(growth(&rows)[0].flat, None);
    }
}
