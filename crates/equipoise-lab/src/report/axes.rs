//! The frame of a chart: axes with ticks and labels, and the grid.

use super::chart::{Area, Axis, Chart, HEIGHT, LETTER_WIDTH, TEXT_SIZE, WIDTH, text};
use super::format::escape;

/// A place on an axis, and its label.
struct Tick {
    at: f64,
    label: String,
}

/// Width of a digit, and that of a point or a comma, in the widest of the page's fonts.
const DIGIT_WIDTH: f64 = 9.0;
const POINT_WIDTH: f64 = 4.5;
const TICK_LENGTH: f64 = 5.0;
/// Distance of a number of the vertical axis from the axis, and that between two numbers of the horizontal axis.
const NUMBER_GAP: f64 = 8.0;
/// Baseline of the vertical axis' label, and where the numbers beside it begin at the earliest.
const LABEL_BASE: f64 = 16.0;
const LABEL_END: f64 = 24.0;
/// Height of the letters of an axis' label.
const LABEL_SIZE: f64 = 15.0;
/// Steps between ticks, at the least: then there are fewer than ten.
const FEWEST_STEPS: f64 = 4.0;

/// The frame as SVG.
pub(super) fn svg(chart: &Chart, area: &Area<'_>) -> String {
    let Area { left, right, top, bottom, .. } = *area;
    let [mut grid, mut lines, mut labels] = [String::new(), String::new(), String::new()];
    let named = !chart.categories.is_empty();
    for tick in if named { names(chart, area) } else { numbers(chart, area) } {
        let x = area.x(tick.at);
        if !named && x > left {
            grid.push_str(&format!("M{x:.1} {top}V{bottom}"));
        }
        lines.push_str(&format!("M{x:.1} {bottom}v{TICK_LENGTH}"));
        let half = if named { name_width(&tick.label) } else { number_width(&tick.label) } / 2.0;
        // The picture ends where a long label at the end of the axis goes on.
        let middle = x.min(WIDTH - half).max(half);
        labels.push_str(&text(middle, bottom + TICK_LENGTH + TEXT_SIZE, "middle", &tick.label));
    }
    for tick in ticks(&chart.y, FEWEST_STEPS) {
        let y = area.y(tick.at);
        if y < bottom {
            grid.push_str(&format!("M{left:.1} {y:.1}H{right}"));
        }
        lines.push_str(&format!("M{left:.1} {y:.1}h-{TICK_LENGTH}"));
        labels.push_str(&text(left - NUMBER_GAP, y + TEXT_SIZE / 3.0, "end", &tick.label));
    }
    let axis_label = |place: String, label: &str| {
        format!("<text {place} font-size=\"{LABEL_SIZE}\" text-anchor=\"middle\">{}</text>", escape(label))
    };
    let (across, up) = (f64::midpoint(left, right), f64::midpoint(top, bottom));
    [
        format!("<path d=\"{grid}\" fill=\"none\" stroke=\"var(--grid)\"/>"),
        format!("<path d=\"M{left:.1} {top}V{bottom}H{right}{lines}\" fill=\"none\" stroke=\"var(--axis)\"/>"),
        labels,
        axis_label(format!("x=\"{across:.1}\" y=\"{:.1}\"", HEIGHT - 8.0), chart.x.label),
        axis_label(format!("transform=\"translate({LABEL_BASE} {up:.1}) rotate(-90)\""), chart.y.label),
    ]
    .concat()
}

/// Room at the left of the area that the vertical axis needs for its label and numbers.
pub(super) fn room_for_numbers(axis: &Axis) -> f64 {
    LABEL_END + widest(&ticks(axis, FEWEST_STEPS)) + NUMBER_GAP
}

/// Whether names are too long to stand side by side, so that numbers stand for them.
pub(super) fn names_are_numbered(chart: &Chart, area: &Area<'_>) -> bool {
    let room = area.x(chart.x.min + 1.0) - area.left;
    chart.categories.iter().any(|name| name_width(name) + 2.0 * LETTER_WIDTH > room)
}

/// Names at 1, 2 and so on, or numbers for them; where not even the numbers have room, only some of them.
fn names(chart: &Chart, area: &Area<'_>) -> Vec<Tick> {
    let numbered = names_are_numbered(chart, area);
    let label = |(index, name): (usize, &String)| if numbered { (index + 1).to_string() } else { name.clone() };
    let labels: Vec<_> = chart.categories.iter().enumerate().map(label).collect();
    let room = area.x(chart.x.min + 1.0) - area.left;
    let widest = labels.iter().map(|label| name_width(label) + LETTER_WIDTH).fold(0.0, f64::max);
    let every = if numbered { (widest / room).ceil().max(1.0) as usize } else { 1 };
    let ticks = labels.into_iter().zip(1..).map(|(label, place)| Tick { at: f64::from(place), label });
    ticks.filter(|tick| chart.x.contains(tick.at)).step_by(every).collect()
}

/// Ticks of the horizontal axis: fewer than usual if their labels are long.
fn numbers(chart: &Chart, area: &Area<'_>) -> Vec<Tick> {
    let fits = |ticks: &Vec<Tick>| {
        let room = widest(ticks) + NUMBER_GAP;
        ticks.windows(2).all(|pair| area.x(pair[1].at) - area.x(pair[0].at) >= room)
    };
    let mut choices = [FEWEST_STEPS, 3.0, 2.0].into_iter().map(|steps| ticks(&chart.x, steps));
    choices.find(fits).unwrap_or_else(|| ticks(&chart.x, 1.0))
}

/// Multiples of 1, 2 or 5 times a power of ten within an axis, from `fewest` steps to two and a half times as many.
fn ticks(axis: &Axis, fewest: f64) -> Vec<Tick> {
    /// Errors of rounding, as a share of a step.
    const ROUNDING: f64 = 1e-6;
    let longest = (axis.max - axis.min) / fewest * (1.0 + ROUNDING / fewest);
    let power = longest.log10().floor() as i32;
    let digit = [5.0, 2.0].into_iter().find(|digit| digit * 10f64.powi(power) <= longest).unwrap_or(1.0);
    let step = digit * 10f64.powi(power);
    let (first, last) = (axis.min / step - ROUNDING, axis.max / step + ROUNDING);
    let numbers = first.ceil() as i64..=last.floor() as i64;
    let scale = scale(axis);
    let decimals = (scale - power).max(0) as usize;
    let tick = |number: i64| {
        let at = number as f64 * step;
        let digits = format!("{:.decimals$}", at / 10f64.powi(scale));
        let label = if scale == 0 || number == 0 { digits } else { format!("{digits}e{scale}") };
        Tick { at: at.clamp(axis.min, axis.max), label: label.replace('-', "−") }
    };
    numbers.map(tick).collect()
}

/// The power of ten that all labels of an axis share: 0 unless its numbers would be long.
fn scale(axis: &Axis) -> i32 {
    let largest = axis.min.abs().max(axis.max.abs());
    if (1e-3..=1e6).contains(&largest) { 0 } else { (largest.log10().floor() as i32).div_euclid(3) * 3 }
}

fn name_width(name: &str) -> f64 {
    name.chars().count() as f64 * LETTER_WIDTH
}

fn number_width(number: &str) -> f64 {
    number.chars().map(|letter| if letter == '.' { POINT_WIDTH } else { DIGIT_WIDTH }).sum()
}

fn widest(ticks: &[Tick]) -> f64 {
    ticks.iter().map(|tick| number_width(&tick.label)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use proptest::num::f64::ANY;
    use proptest::prelude::*;

    use super::*;

    fn labels(min: f64, max: f64) -> Vec<String> {
        ticks(&Axis::new("", min, max), FEWEST_STEPS).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_and_have_the_decimals_of_their_step() {
        assert_eq!(labels(0.0, 40.0), ["0", "10", "20", "30", "40"]);
        assert_eq!(labels(0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(-0.3, 0.7), ["−0.2", "0.0", "0.2", "0.4", "0.6"]);
        assert_eq!(labels(34.1, 46.0), ["36", "38", "40", "42", "44", "46"]);
        assert_eq!(labels(0.0, 945.0), ["0", "200", "400", "600", "800"]);
        assert_eq!(labels(99.95, 100.05), ["99.96", "99.98", "100.00", "100.02", "100.04"]);
        assert_eq!(labels(0.0, 0.0004), ["0", "100e−6", "200e−6", "300e−6", "400e−6"]);
        assert_eq!(labels(0.0, 5e7), ["0", "10e6", "20e6", "30e6", "40e6", "50e6"]);
    }

    proptest! {
        /// Whatever the limits: a few ticks, at equal distances within the axis, with different labels of one form.
        #[test]
        fn ticks_are_few_even_and_within_the_axis(min in ANY, max in ANY, near in -1e-7..1e-5f64, fewest in 1u8..5) {
            for axis in [Axis::new("", min, max), Axis::new("", min, min + min.abs() * near)] {
                let fewest = f64::from(fewest);
                let ticks = ticks(&axis, fewest);
                prop_assert!(ticks.len() as f64 >= fewest && ticks.len() as f64 <= 2.5 * fewest + 1.0, "{}", ticks.len());
                prop_assert!(ticks.iter().all(|tick| axis.contains(tick.at)));
                let length = axis.max - axis.min;
                let steps: Vec<_> = ticks.windows(2).map(|pair| (pair[1].at - pair[0].at) / length).collect();
                prop_assert!(steps.iter().all(|step| *step > 0.05 && (step - steps[0]).abs() < 1e-5), "{steps:?}");
                prop_assert!(ticks.windows(2).all(|pair| pair[0].label != pair[1].label));
                prop_assert!(ticks.iter().all(|tick| tick.label.chars().count() < 18 && !tick.label.contains('N')));
            }
        }
    }
}
