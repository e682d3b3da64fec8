//! Shows how several runs of the same kind differ over time.

use super::chart::{Layer, Shape, Style};
use crate::statistics::quantiles_over;

/// Width of the line of the first run, in pixels. This line is thinner than the line of the median of all runs.
const FIRST_RUN_WIDTH: f64 = 0.8;

/// Returns the layers that show a quantity over time or over another axis. A point of a run is a position on this axis
/// and a value. For a single run, the only layer is the run's line. For several runs, there are three layers: a band
/// from the 10th to the 90th percentile of the runs, the line of the first run, and the line of the median.
pub(super) fn layers(style: Style, name: &str, runs: &[Vec<(f64, f64)>]) -> Vec<Layer> {
    let line = |name: String, style, points| Layer { name, style, shape: Shape::Line(points) };
    match runs {
        [] => Vec::new(),
        [only] => vec![line(name.to_owned(), style, only.clone())],
        [first, ..] => {
            let count = runs.len();
            let points = quantiles_over(runs);
            let band = points.iter().map(|point| (point.at, point.low, point.high)).collect();
            let median = points.iter().map(|point| (point.at, point.median)).collect();
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

#[cfg(test)]
mod tests {
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
}
