//! Prepares the points of lines and bands: reduces their number, and formats them in the units of the axes, so that the
//! page's script can read the values from the SVG.

use super::{Axis, Chart, Shape};

/// Maximum number of points that all lines of a chart together keep, if there are at most 20 lines. If there are more
/// lines, each line keeps at most 200 points.
const MOST_POINTS: usize = 4000;
/// Points that a line keeps per column: the first and the last point, and the points with the smallest and the largest
/// value. Columns are equal parts of the horizontal axis.
const PER_COLUMN: usize = 4;
/// Minimum and maximum number of columns.
const COLUMNS: [usize; 2] = [50, 500];

/// Formats coordinates: determines the number of decimals for each axis of a chart, and limits how far outside the axes
/// a point may lie.
pub(super) struct Digits<'a> {
    x: &'a Axis,
    y: &'a Axis,
}

impl<'a> Digits<'a> {
    pub(super) const fn of(chart: &'a Chart) -> Self {
        Self { x: &chart.x, y: &chart.y }
    }

    /// Formats a value of the horizontal axis.
    pub(super) fn x(&self, value: f64) -> String {
        written(self.x, value)
    }

    /// Formats a value of the vertical axis.
    pub(super) fn y(&self, value: f64) -> String {
        written(self.y, value)
    }
}

/// Formats a value with a resolution of a hundred-thousandth of the axis' length or finer.
fn written(axis: &Axis, value: f64) -> String {
    /// Number of decimals for an axis of length 1.
    const DECIMALS: f64 = 5.0;
    /// Maximum distance of a value from the range of the axis, in axis lengths. A value that is farther away is clamped
    /// to this distance.
    const FAR: f64 = 1e3;
    let length = axis.max - axis.min;
    let value = value.clamp(axis.min - FAR * length, axis.max + FAR * length);
    let decimals = (DECIMALS - length.log10().floor()).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    let text = if decimals == 0 { &text } else { text.trim_end_matches('0').trim_end_matches('.') };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Returns the number of columns into which each line of a chart is divided if the line has too many points.
pub(super) fn columns(chart: &Chart) -> usize {
    let lines =
        chart.layers.iter().filter(|layer| !matches!(layer.shape, Shape::Box(..) | Shape::Estimate { .. })).count();
    let [fewest, most] = COLUMNS;
    (MOST_POINTS / (PER_COLUMN * lines.max(1))).clamp(fewest, most)
}

/// A point of a line or of a band.
pub(super) trait Point: Copy {
    /// Position of the point on the horizontal axis.
    fn at(&self) -> f64;
    /// Smallest value of the point on the vertical axis.
    fn low(&self) -> f64;
    /// Largest value of the point on the vertical axis.
    fn high(&self) -> f64;

    /// Whether the point was measured.
    fn is_measured(&self) -> bool {
        self.at().is_finite() && self.low().is_finite() && self.high().is_finite()
    }
}

impl Point for (f64, f64) {
    fn at(&self) -> f64 {
        self.0
    }

    fn low(&self) -> f64 {
        self.1
    }

    fn high(&self) -> f64 {
        self.1
    }
}

impl Point for (f64, f64, f64) {
    fn at(&self) -> f64 {
        self.0
    }

    fn low(&self) -> f64 {
        self.1
    }

    fn high(&self) -> f64 {
        self.2
    }
}

/// Returns all points if there are at most four per column on average. Otherwise, returns the first, smallest, largest
/// and last measured point of each column, so that the line looks the same. Points that were not measured
/// are gaps in the line. A gap remains only where a column has points but none of them was measured.
pub(super) fn bounded<P: Point>(points: &[P], axis: &Axis, columns: usize) -> Vec<P> {
    if points.len() <= PER_COLUMN * columns {
        return points.to_vec();
    }
    let column = |point: &P| ((axis.share(point.at()) * columns as f64) as usize).min(columns - 1);
    let mut kept = Vec::with_capacity(PER_COLUMN * columns);
    for part in points.chunk_by(|one, other| column(one) == column(other)) {
        let measured: Vec<_> = part.iter().copied().filter(Point::is_measured).enumerate().collect();
        let (Some(first), Some(last)) = (measured.first(), measured.last()) else {
            kept.extend(part.first());
            continue;
        };
        let least = measured.iter().min_by(|one, other| one.1.low().total_cmp(&other.1.low())).unwrap_or(first);
        let largest = measured.iter().max_by(|one, other| one.1.high().total_cmp(&other.1.high())).unwrap_or(first);
        let mut chosen = [first, least, largest, last];
        chosen.sort_by_key(|(place, _)| *place);
        let mut before = None;
        for (place, point) in chosen {
            if before.replace(place) != Some(place) {
                kept.push(*point);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_have_the_digits_that_matter_on_their_axis() {
        let written = |max, value| written(&Axis::new("", 0.0, max), value);
        assert_eq!(written(40.0, 20.5), "20.5");
        assert_eq!(written(50.0, 7.841_234_56), "7.8412");
        assert_eq!(written(1e-6, 1.234_567_89e-7), "0.00000012346");
        assert_eq!(written(1e-17, 1.234_567_89e-18), "0.0000000000000000012346");
        assert_eq!(written(2e7, 1_234_567.8), "1234568");
        assert_eq!(written(1000.0, 100.0), "100");
        assert_eq!(written(1.0, 1e9), "1001", "beyond all that can be drawn");
        assert_eq!(written(1.0, -1e-9), "0");
    }

    proptest! {
        /// If this test fails, peaks of the data are missing in the chart.
        #[test]
        fn few_points_are_left_and_the_extremes_of_each_column_with_them(
            values in proptest::collection::vec(prop_oneof![9 => -1e3..1e3f64, 1 => Just(f64::NAN)], 0..3000),
            columns in 1usize..40,
        ) {
            let axis = Axis::new("", 0.0, values.len() as f64);
            let points: Vec<_> = values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect();
            let kept = bounded(&points, &axis, columns);
            prop_assert!(kept.len() <= PER_COLUMN * columns.max(1));
            prop_assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0), "each once, in their order");
            for column in 0..columns {
                let of = |points: &[(f64, f64)]| {
                    let inside = points.iter().filter(|point| (axis.share(point.0) * columns as f64) as usize == column);
                    let finite: Vec<_> = inside.map(|point| point.1).filter(|value| value.is_finite()).collect();
                    let least = finite.iter().copied().reduce(f64::min);
                    (finite.first().copied(), least, finite.iter().copied().reduce(f64::max), finite.last().copied())
                };
                prop_assert_eq!(of(&points), of(&kept));
            }
        }
    }
}
