//! The ticks of an axis, and the widths of their numbers.

use super::Axis;

/// A position on an axis, and the label at this position.
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

/// Width of a digit, and width of a decimal point, in pixels, in the widest of the page's fonts.
const DIGIT_WIDTH: f64 = 9.0;
const POINT_WIDTH: f64 = 4.5;
/// Distance between the vertical axis and its numbers, and minimum distance between two numbers of the horizontal axis,
/// in pixels.
pub(super) const NUMBER_GAP: f64 = 8.0;
/// The distance between two ticks of a linear axis is at most the axis's length divided by this number. On a horizontal
/// axis, the distance is larger if the labels of the ticks would not fit otherwise.
pub(super) const FEWEST_STEPS: f64 = 4.0;

/// Width to the left of the plot area that the numbers of the vertical axis need, in pixels.
pub(super) fn room_for_numbers(axis: &Axis) -> f64 {
    let widest = ticks(axis, FEWEST_STEPS).iter().map(|tick| number_width(&tick.label)).fold(0.0, f64::max);
    widest + NUMBER_GAP
}

/// Returns ticks at multiples of a step within an axis. The step is 1, 2 or 5 times a power of ten. It is the largest
/// such step for which the axis is at least `fewest` steps long. A logarithmic axis has a tick at every power of ten.
pub(super) fn ticks(axis: &Axis, fewest: f64) -> Vec<Tick> {
    /// Tolerance for rounding errors, as a share of a step.
    const ROUNDING: f64 = 1e-6;
    if axis.is_logarithmic {
        let power = |exponent: i32| {
            let decimals = exponent.min(0).unsigned_abs() as usize;
            Tick { at: exponent.into(), label: format!("{:.decimals$}", 10f64.powi(exponent)) }
        };
        return (axis.min.ceil() as i32..=axis.max.floor() as i32).map(power).collect();
    }
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

/// Returns the exponent of the power of ten that all labels of an axis share. The exponent is 0 unless the numbers
/// would be long.
fn scale(axis: &Axis) -> i32 {
    let largest = axis.min.abs().max(axis.max.abs());
    if (1e-3..=1e6).contains(&largest) { 0 } else { (largest.log10().floor() as i32).div_euclid(3) * 3 }
}

/// Width of a number in the chart, in pixels.
pub(super) fn number_width(number: &str) -> f64 {
    number.chars().map(|letter| if letter == '.' { POINT_WIDTH } else { DIGIT_WIDTH }).sum()
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

    #[test]
    fn a_logarithmic_axis_has_a_tick_at_each_power_of_ten() {
        let ticks = ticks(&Axis::logarithmic("share (%)", -1, 2), FEWEST_STEPS);
        let ticks: Vec<_> = ticks.iter().map(|tick| (tick.at as i32, tick.label.as_str())).collect();
        assert_eq!(ticks, [(-1, "0.1"), (0, "1"), (1, "10"), (2, "100")]);
    }

    proptest! {
        /// If this test fails, some axis has too few or too many ticks, unequal distances between ticks, ticks outside
        /// the axis, two equal labels, or a label that is too long or is not a number.
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
