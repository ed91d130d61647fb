//! From samples to the five numbers of the report. Medians and percentiles only: a mean of start times says
//! more about the worst interruption of the machine than about the program.

use std::time::Duration;

use serde::Serialize;

/// What a series of samples says, in the unit of its row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub samples: usize,
    pub min: f64,
    pub p10: f64,
    pub median: f64,
    pub p90: f64,
    pub max: f64,
}

impl Summary {
    /// `None` for no samples: there is no honest number for that.
    pub fn of(samples: &[Duration]) -> Option<Self> {
        let samples: Vec<f64> = samples.iter().map(|sample| milliseconds(*sample)).collect();
        Self::of_values(&samples)
    }

    /// The same of numbers that are no times.
    pub fn of_values(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            samples: sorted.len(),
            min: *sorted.first()?,
            p10: quantile(&sorted, 0.1)?,
            median: quantile(&sorted, 0.5)?,
            p90: quantile(&sorted, 0.9)?,
            max: *sorted.last()?,
        })
    }
}

/// A duration as the report counts it.
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Linear interpolation between the two nearest ranks of an ascending list.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let mut left = share * f64::from(u32::try_from(sorted.len().checked_sub(1)?).ok()?);
    let mut values = sorted.iter();
    let mut below = *values.next()?;
    for above in values {
        if left < 1.0 {
            return Some(below + (above - below) * left);
        }
        left -= 1.0;
        below = *above;
    }
    Some(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(samples: &[u64]) -> Summary {
        let samples: Vec<_> = samples.iter().map(|ms| Duration::from_millis(*ms)).collect();
        Summary::of(&samples).unwrap()
    }

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn nothing_measured_has_no_summary() {
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn one_sample_is_every_percentile() {
        let one = summary(&[7]);
        for value in [one.min, one.p10, one.median, one.p90, one.max] {
            close(value, 7.0);
        }
    }

    #[test]
    fn order_of_samples_does_not_matter() {
        assert_eq!(summary(&[5, 1, 3]), summary(&[1, 3, 5]));
    }

    #[test]
    fn median_of_an_even_count_lies_between() {
        close(summary(&[1, 2, 4, 100]).median, 3.0);
    }

    #[test]
    fn percentiles_interpolate_between_ranks() {
        let eleven = summary(&[0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
        close(eleven.p10, 10.0);
        close(eleven.p90, 90.0);
        let two = summary(&[0, 10]);
        close(two.p10, 1.0);
        close(two.p90, 9.0);
    }

    #[test]
    fn an_outlier_moves_the_maximum_only() {
        let calm = summary(&[4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]);
        let hit = summary(&[4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 900]);
        close(hit.median, calm.median);
        close(hit.p90, calm.p90);
        close(hit.max, 900.0);
    }
}
