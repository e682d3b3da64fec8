//! The chart of a delay's distribution.

use super::chart::{Axis, Chart, Layer, Shape};
use super::charts::{name_of, target_mark, target_of};
use super::figure::{Figure, Question, Shown, nice};
use super::format::millis;
use super::spread;
use crate::result::{DelayShare, FlowResult};

/// The vertical axis extends from 10^`LEAST_PERCENT` % (0.1 %) to 10^`MOST_PERCENT` % (100 %).
const LEAST_PERCENT: i32 = -1;
const MOST_PERCENT: i32 = 2;
/// Number of steps of the grid, which divides the range of the delays into equal parts. The distributions of several
/// runs are compared at the positions of the grid.
const GRID: u32 = 200;

/// Returns the complementary distribution of a flow's delay, with percentages on a logarithmic axis. The longest 3 % of
/// the delays take about half of this axis, because long delays decide the quality of media. The 95th and 99th
/// percentiles can be read at 5 % and 1 %.
pub(super) fn figure(flow: usize, shown: &[Shown<'_>]) -> Figure {
    let title = format!("{}: distribution of the one-way delay", name_of(shown));
    let target = target_of(shown);
    let curves: Vec<Vec<_>> = shown.iter().map(curves).collect();
    let delays = || curves.iter().flatten().flatten().map(|point| point.0);
    let (Some(least), Some(longest)) = (delays().reduce(f64::min), delays().reduce(f64::max)) else {
        return Figure {
            question: Question::Cost,
            title,
            chart: None,
            note: "No packet arrived after the warm-up.".to_owned(),
        };
    };
    let mut layers = Vec::new();
    for (shown, curves) in shown.iter().zip(&curves) {
        let Shown { style, world, .. } = *shown;
        layers.extend(match curves.as_slice() {
            [only] => vec![Layer { name: world.to_owned(), style, shape: Shape::Line(only.clone()) }],
            several => {
                let grid: Vec<_> = several.iter().map(|curve| on_grid(curve, least, longest)).collect();
                above_the_axis(spread::layers(style, world, &grid))
            }
        });
    }
    let (left, right) = (least.min(target.unwrap_or(least)), longest.max(target.unwrap_or(longest)));
    let shows = "Share of the packets sent after the warm-up that had at least a given one-way delay";
    let x = Axis::new("one-way delay (ms)", left.floor().max(0.0), nice(right.max(1e-3)));
    let y = Axis::logarithmic("packets with at least this delay (%)", LEAST_PERCENT, MOST_PERCENT);
    let chart = Chart {
        verticals: target.map(|at| target_mark(at, format!("target {}", millis(at / 1e3)))).into_iter().collect(),
        ..Chart::new(format!("distribution-{flow}"), shows.to_owned(), x, y, layers)
    };
    let note = "The share of packets with at least this delay: the 95th percentile is where 5 % are left, the 99th where 1 % are. The \
        curve goes down to one packet in a thousand, or to the last packet if there are fewer; no part of it is cut off."
        .to_owned();
    Figure { question: Question::Cost, title, chart: Some(chart), note }
}

/// Returns the curves of all runs that have a distribution.
fn curves(shown: &Shown<'_>) -> Vec<Vec<(f64, f64)>> {
    shown.runs.iter().map(|flow| complementary(flow)).filter(|curve| !curve.is_empty()).collect()
}

/// Returns the points of the curve: a delay in milliseconds, and the decimal logarithm of the percentage of packets
/// that have at least this delay.
fn complementary(flow: &FlowResult) -> Vec<(f64, f64)> {
    let point = |point: &DelayShare| (point.delay_s * 1e3, (point.share * 100.0).log10());
    flow.distribution.iter().map(point).filter(|(delay, share)| delay.is_finite() && share.is_finite()).collect()
}

/// Returns the curve at the delays of the grid. Before the curve's first point, the value is 100 %. After the last
/// point, the value is less than the lowest value on the chart's axis.
fn on_grid(curve: &[(f64, f64)], least: f64, longest: f64) -> Vec<(f64, f64)> {
    let at = |place: u32| {
        let delay = least + (longest - least) * f64::from(place) / f64::from(GRID);
        let next = curve.partition_point(|point| point.0 < delay);
        let share = match (next.checked_sub(1).and_then(|before| curve.get(before)), curve.get(next)) {
            (None, _) => MOST_PERCENT.into(),
            (Some(_), None) => f64::from(LEAST_PERCENT) - 1.0,
            (Some(before), Some(next)) => before.1 + (next.1 - before.1) * (delay - before.0) / (next.0 - before.0),
        };
        (delay, share)
    };
    (0..=GRID).map(at).collect()
}

/// Hides points below the axis. A point of a band is hidden only if the upper edge of the band is below the axis there.
fn above_the_axis(mut layers: Vec<Layer>) -> Vec<Layer> {
    let least = f64::from(LEAST_PERCENT);
    for layer in &mut layers {
        match &mut layer.shape {
            Shape::Line(points) => {
                points.iter_mut().filter(|point| point.1 < least).for_each(|point| point.1 = f64::NAN);
            }
            Shape::Band(points) => {
                points.iter_mut().filter(|point| point.2 < least).for_each(|point| point.2 = f64::NAN);
            }
            _ => {}
        }
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure::look;
    use crate::report::tests::flow;
    use crate::result::World;

    /// If this test fails, percentiles read from the chart are too low, or the tail is missing.
    #[test]
    fn the_distribution_is_complementary_and_its_tail_is_whole() {
        let (flow, empty) = (flow(&[(1.0, 5.0), (0.05, 18.7), (0.01, 60.0), (1e-3, 192.0)]), flow(&[]));
        let rounded: Vec<_> = complementary(&flow)
            .into_iter()
            .map(|(at, share)| (at.round() as i64, (share * 100.0).round() as i64))
            .collect();
        assert_eq!(rounded, [(5, 200), (19, 70), (60, 0), (192, -100)], "100 %, 5 %, 1 % and 0.1 %");
        let (style, world) = look(World::Sim);
        let drawn = |flow| figure(0, &[Shown { world, style, flow, runs: vec![flow] }]);
        let chart = drawn(&flow).chart.expect("something to draw").to_html();
        for label in [">100<", ">10<", ">1<", ">0.1<", ">200<", "packets with at least this delay (%)"] {
            assert!(chart.contains(label), "{label}: {chart}");
        }
        let nothing = drawn(&empty);
        assert!(nothing.chart.is_none() && nothing.note.contains("No packet arrived"));
    }

    #[test]
    fn curves_of_several_runs_are_compared_at_the_same_delays() {
        let curve = [(5.0, 2.0), (15.0, 0.0)];
        let grid = on_grid(&curve, 0.0, 20.0);
        let at = |delay: usize| grid[delay * GRID as usize / 20];
        for (delay, share) in [(0, 2.0), (5, 2.0), (10, 1.0), (15, 0.0), (20, -2.0)] {
            assert!((at(delay).1 - share).abs() < 1e-9 && (at(delay).0 - delay as f64).abs() < 1e-9, "{:?}", at(delay));
        }
        let Some(Shape::Line(line)) =
            above_the_axis(spread::layers(look(World::Sim).0, "sim", &[grid])).pop().map(|layer| layer.shape)
        else {
            panic!("a line")
        };
        assert!(line[150].1.is_finite() && line[151].1.is_nan(), "the line ends with the curve");
    }
}
