//! Plots as plain SVG text. Times are on a logarithmic axis whose range is written at its ticks: peers differ
//! by a factor of a hundred, and on a linear axis the interesting ones would be one pixel each.

use std::fmt::Write;

use super::super::catalogue::short;
use super::super::growth::Growth;
use super::super::outcome::RowOutcome;
use super::super::row::OURS;
use super::super::stats::Summary;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 80.0;
const TOP: f64 = 40.0;
const BAR: f64 = 30.0;
const PLOT_HEIGHT: f64 = 320.0;
const INK: &str = "#444";
const PALETTE: [&str; 7] = ["#c2410c", "#2563eb", "#059669", "#7c3aed", "#ca8a04", "#64748b", "#db2777"];

/// One bar per contender: the median, with a whisker from the 10th to the 90th percentile.
pub(super) fn bars(row: &RowOutcome) -> String {
    let found: Vec<_> = row.entries.iter().filter_map(|e| Some((e.name.as_str(), e.summary()?))).collect();
    let axis = Axis::over(found.iter().flat_map(|(_, s)| [s.p10, s.median, s.p90]), LEFT..WIDTH - RIGHT);
    let height = TOP + BAR * row_count(found.len()) + 40.0;
    let mut svg = Canvas::new(height, &format!("{}: {}, {}", row.id, row.title, row.unit));
    for (value, x) in axis.ticks() {
        svg.line([x, TOP, x, height - 36.0], "#ddd");
        svg.text((x, height - 20.0), "middle", &label(value));
    }
    for (index, (name, summary)) in found.iter().enumerate() {
        svg.bar(&axis, TOP + BAR * row_count(index), (name, summary));
    }
    svg.finish()
}

/// One line per contender over the number of files.
pub(super) fn lines(growth: &Growth) -> String {
    let points = || growth.series.iter().flat_map(|series| series.points.iter());
    let across = Axis::over(points().map(|(files, _)| f64::from(*files)), 60.0..WIDTH - LEFT);
    let up = Axis::over(points().map(|(_, time)| *time), TOP + PLOT_HEIGHT..TOP);
    let mut svg = Canvas::new(TOP + PLOT_HEIGHT + 40.0, &format!("{}: median ms over files", growth.id));
    for (value, y) in up.ticks() {
        svg.line([60.0, y, WIDTH - LEFT, y], "#ddd");
        svg.text((52.0, y + 4.0), "end", &label(value));
    }
    let mut sizes: Vec<u32> = points().map(|(files, _)| *files).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for files in sizes {
        svg.text((across.place(f64::from(files)), TOP + PLOT_HEIGHT + 20.0), "middle", &short(files));
    }
    let mut last_label = f64::INFINITY;
    let mut series: Vec<_> = growth.series.iter().zip(PALETTE.iter().cycle()).collect();
    // Fastest first, from the bottom up, so that labels that would touch can be moved apart.
    series.sort_by(|(a, _), (b, _)| end(a).total_cmp(&end(b)));
    for (series, colour) in series {
        let places: Vec<_> =
            series.points.iter().map(|(f, t)| (across.place(f64::from(*f)), up.place(*t))).collect();
        svg.polyline(&places, colour);
        let y = up.place(end(series)).min(last_label - 14.0);
        last_label = y;
        svg.coloured(
            (WIDTH - LEFT + 10.0, y + 4.0),
            colour,
            &format!("{} {}", series.name, label(end(series))),
        );
    }
    svg.finish()
}

fn end(series: &super::super::growth::Series) -> f64 {
    series.points.last().map_or(0.0, |(_, time)| *time)
}

fn row_count(rows: usize) -> f64 {
    f64::from(u32::try_from(rows).unwrap_or(u32::MAX))
}

/// As many digits as the number can bear.
fn label(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A logarithmic scale from values to places.
struct Axis {
    low: f64,
    high: f64,
    place: std::ops::Range<f64>,
}

impl Axis {
    /// Room for all values, between steps of the ticks.
    fn over(values: impl Iterator<Item = f64>, place: std::ops::Range<f64>) -> Self {
        let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let low = if low.is_finite() { low } else { 1.0 };
        Self { low: low / 1.5, high: high.max(low) * 1.2, place }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        self.place.start + (self.place.end - self.place.start) * share
    }

    /// 1, 2, 5, 10, 20, 50 …, as far as they lie on the axis.
    fn ticks(&self) -> Vec<(f64, f64)> {
        let decades = (-3..7).map(|power| 10_f64.powi(power));
        let steps = decades.flat_map(|decade| [decade, 2.0 * decade, 5.0 * decade]);
        steps.filter(|v| (self.low..=self.high).contains(v)).map(|v| (v, self.place(v))).collect()
    }
}

/// SVG text that is being written.
struct Canvas(String);

impl Canvas {
    fn new(height: f64, title: &str) -> Self {
        let head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        let mut canvas = Self(head);
        canvas.text((WIDTH / 2.0, 20.0), "middle", title);
        canvas
    }

    fn bar(&mut self, axis: &Axis, top: f64, (name, summary): (&str, &Summary)) {
        let middle = top + BAR / 2.0;
        let colour = if name == OURS { PALETTE[0] } else { "#94a3b8" };
        let width = axis.place(summary.median) - LEFT;
        self.push(format_args!(
            "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            top + 5.0,
            BAR - 10.0
        ));
        let (p10, p90) = (axis.place(summary.p10), axis.place(summary.p90));
        self.line([p10, middle, p90, middle], INK);
        for x in [p10, p90] {
            self.line([x, middle - 5.0, x, middle + 5.0], INK);
        }
        self.text((LEFT - 8.0, middle + 4.0), "end", name);
        self.text((p90.max(LEFT + width) + 8.0, middle + 4.0), "start", &label(summary.median));
    }

    fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], colour: &str) {
        self.push(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
        ));
    }

    fn polyline(&mut self, points: &[(f64, f64)], colour: &str) {
        let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let path = path.join(" ");
        self.push(format_args!(
            "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        ));
        for (x, y) in points {
            self.push(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"));
        }
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let text = escaped(text);
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{INK}\">{text}</text>"
        ));
    }

    fn coloured(&mut self, (x, y): (f64, f64), colour: &str, text: &str) {
        let text = escaped(text);
        self.push(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{text}</text>"));
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{element}").expect("a string takes any text");
    }

    fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn number_after(text: &str, key: &str) -> Vec<f64> {
        text.split(key).skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn bars_show_who_was_measured_in_proportion() {
        let svg = bars(&sample().rows[0]);
        let widths = number_after(&svg, "y=\"45.0\" width=\"")
            .into_iter()
            .chain(number_after(&svg, "y=\"75.0\" width=\""));
        let widths: Vec<_> = widths.collect();
        assert_eq!(widths.len(), 2, "{svg}");
        assert!(widths[0] < widths[1], "5 ms is shorter than 10 ms: {widths:?}");
        assert!(!svg.contains("docker"), "what was not measured has no bar");
        assert!(svg.contains("start &amp; end"), "{svg}");
    }

    #[test]
    fn slower_is_higher_in_the_growth_plot() {
        let svg = lines(&sample().growth[0]);
        let circles = number_after(&svg, "cy=\"");
        // bwrap stays at 10 ms; ours goes from 5 to 20 ms, and a smaller y is higher.
        assert_eq!(circles.len(), 4, "{svg}");
        assert!((circles[0] - circles[1]).abs() < 0.01, "{circles:?}");
        assert!(circles[2] > circles[0] && circles[3] < circles[0], "{circles:?}");
    }

    #[test]
    fn ticks_lie_on_the_axis() {
        let axis = Axis::over([3.0, 40.0].into_iter(), 0.0..100.0);
        let ticks: Vec<f64> = axis.ticks().into_iter().map(|(value, _)| value).collect();
        assert_eq!(ticks, [2.0, 5.0, 10.0, 20.0]);
        assert!(axis.ticks().iter().all(|(_, place)| (0.0..=100.0).contains(place)));
    }

    #[test]
    fn labels_carry_three_figures() {
        assert_eq!([label(5.678), label(56.78), label(567.8)], ["5.68", "56.8", "568"]);
    }
}
