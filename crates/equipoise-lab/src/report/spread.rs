//! How far the runs of a world lie apart, over time.

use super::chart::{Layer, Shape, Style};
use crate::statistics::{quantile, sorted};

/// The share of the runs below the band, and below its upper edge.
const BAND: [f64; 2] = [0.1, 0.9];
/// Width of the first run's line: one run of many is context.
const FIRST_RUN_WIDTH: f64 = 0.8;
/// Values of x that differ by less are one moment.
const SAME: f64 = 1e-9;

/// A quantity over time, as points of x and y: of a single run its line; of several the band between their 10th and 90th percentile
/// at each moment, their median, and the first run.
pub(super) fn layers(style: Style, name: &str, runs: &[Vec<(f64, f64)>]) -> Vec<Layer> {
    let line = |name: String, style, points| Layer { name, style, shape: Shape::Line(points) };
    match runs {
        [] => Vec::new(),
        [only] => vec![line(name.to_owned(), style, only.clone())],
        [first, ..] => {
            let count = runs.len();
            let points = over(runs);
            let band = points.iter().map(|point| (point.x, point.low, point.high)).collect();
            let median = points.iter().map(|point| (point.x, point.median)).collect();
            vec![
                Layer { name: format!("{name}: 10 % to 90 % of {count} runs"), style, shape: Shape::Band(band) },
                line(
                    format!("{name}: the first run"),
                    Style { dash: "", width: FIRST_RUN_WIDTH, ..style },
                    first.clone(),
                ),
                line(format!("{name}: median of the runs"), style, median),
            ]
        }
    }
}

/// Quantiles over the runs at one moment; NaN where fewer than half of the runs have a value, which is a gap.
#[derive(Debug)]
struct Point {
    x: f64,
    low: f64,
    median: f64,
    high: f64,
}

fn over(runs: &[Vec<(f64, f64)>]) -> Vec<Point> {
    let mut all: Vec<_> = runs.iter().flatten().copied().filter(|(x, _)| x.is_finite()).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let moments = all.chunk_by(|one, other| (one.0 - other.0).abs() < SAME);
    let point = |moment: &[(f64, f64)]| {
        let finite: Vec<_> = moment.iter().map(|(_, y)| *y).filter(|y| y.is_finite()).collect();
        let values = if 2 * finite.len() < runs.len() { Vec::new() } else { sorted(&finite) };
        let [low, high] = BAND.map(|share| quantile(&values, share));
        Point { x: moment.first().map_or(f64::NAN, |(x, _)| *x), low, median: quantile(&values, 0.5), high }
    };
    moments.map(point).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STYLE: Style = Style { color: "red", dash: "", width: 1.0 };

    #[test]
    fn one_run_is_a_line_and_several_are_a_band_with_their_median_and_the_first() {
        let run = |y: f64| vec![(0.5, y), (1.5, 2.0 * y)];
        assert!(matches!(layers(STYLE, "rate", &[run(1.0)]).as_slice(), [Layer { shape: Shape::Line(_), .. }]));
        assert!(layers(STYLE, "rate", &[]).is_empty());
        let runs: Vec<_> = (0..=10).map(|number| run(f64::from(number))).collect();
        let drawn = layers(STYLE, "rate", &runs);
        let [
            Layer { shape: Shape::Band(band), name, .. },
            Layer { shape: Shape::Line(first), .. },
            Layer { shape: Shape::Line(median), .. },
        ] = drawn.as_slice()
        else {
            panic!("{drawn:?}")
        };
        assert_eq!(name, "rate: 10 % to 90 % of 11 runs");
        assert_eq!(
            (band.as_slice(), median.as_slice()),
            (&[(0.5, 1.0, 9.0), (1.5, 2.0, 18.0)][..], &[(0.5, 5.0), (1.5, 10.0)][..])
        );
        assert_eq!(first, &run(0.0));
    }

    /// Otherwise the few runs that have gone on would look like all of them.
    #[test]
    fn a_moment_that_fewer_than_half_of_the_runs_have_is_a_gap() {
        let runs = [vec![(0.0, 1.0), (1.0, 1.0)], vec![(0.0, 2.0), (1.0, f64::NAN)], vec![(0.0, 3.0)]];
        let points = over(&runs);
        assert_eq!(points.len(), 2);
        assert!((points[0].median - 2.0).abs() < 1e-12 && points[1].median.is_nan(), "{points:?}");
    }

    proptest! {
        #[test]
        fn the_median_lies_in_the_band_and_the_band_among_the_runs(runs in proptest::collection::vec(proptest::collection::vec(-1e6..1e6f64, 1..9), 2..30)) {
            let timed: Vec<Vec<_>> = runs.iter().map(|run| run.iter().enumerate().map(|(at, y)| (at as f64, *y)).collect()).collect();
            for (at, point) in over(&timed).into_iter().enumerate() {
                let values: Vec<f64> = runs.iter().filter_map(|run| run.get(at)).copied().collect();
                if 2 * values.len() >= runs.len() {
                    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    prop_assert!(least <= point.low && point.low <= point.median && point.median <= point.high && point.high <= largest);
                } else {
                    prop_assert!(point.median.is_nan());
                }
            }
        }
    }
}
