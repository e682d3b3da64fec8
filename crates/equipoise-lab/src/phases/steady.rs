//! Evaluates time series of rates: whether and when rates converge, how they oscillate, and how fairly flows share
//! capacity.
//!
//! Source: RFC 8868, Sec. 3, metrics 1 and 7 to 9. Rates are means over bins of 200 ms (metric 1). If the RFC does not
//! specify a number, the number is our choice, and the comment of its constant says so.

use equipoise::units::Span;

use crate::statistics::{coefficient_of_variation, jain, mean};

/// Length of a bin (RFC 8868, Sec. 3, metric 1).
pub(crate) const BIN: Span = Span::from_millis(200);
/// Length of a bin, in seconds.
pub(crate) const BIN_S: f64 = 0.2;
/// Number of bins in a window whose mean shows whether a rate is stable. Our choice: windows of one second, as in the
/// plots of RFC 8868, Sec. 3.
const WINDOW: usize = 5;
/// The last 1/3 of a phase counts as settled. Our choice.
const SETTLED_PART: usize = 3;
/// While a rate is stable, each mean over one second deviates by at most this share from the mean over the last third
/// of the phase. Our choice: more than an encoder or a control law varies around its target, but less than any capacity
/// step in RFC 8867, Sec. 5.
const BAND: f64 = 0.2;
/// The low watermark for counting oscillations, as a share of the settled mean rate. Our choice.
const LOW_WATERMARK: f64 = 0.5;
/// Ratio of the high to the low watermark (RFC 8868, Sec. 3, metric 9).
const WATERMARK_INTERVAL: f64 = 4.0;
/// Largest number of bins in which an oscillation goes from one watermark to the other: 500 ms (RFC 8868, Sec. 3,
/// metric 9), rounded down to whole bins.
const SWING_BINS: usize = 2;
/// Smallest ratio of two flows' rates that counts as fair (RFC 8868, Sec. 3, metric 7: "bounded between 0.333 and 3").
const LEAST_FAIR: f64 = 1.0 / 3.0;

/// How steady a rate was in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Steadiness {
    /// Mean rate in the last third of the phase, in bit/s.
    pub(crate) settled_bps: Option<f64>,
    /// Time from the start of the phase until the rate is stable, in seconds.
    pub(crate) convergence_s: Option<f64>,
    /// Coefficient of variation of the one-second mean rates in the settled part of the phase.
    pub(crate) cv: Option<f64>,
    /// Number of times that the rate went from at most half to at least twice the settled mean, or back, within 500 ms.
    pub(crate) oscillations: u64,
}

impl Steadiness {
    /// Evaluates the rates in the bins of a phase. For a phase shorter than three seconds, only oscillations are
    /// counted.
    pub(crate) fn of(rates: &[f64]) -> Self {
        let settled_from = rates.len() - rates.len() / SETTLED_PART;
        let settled = rates.get(settled_from..).unwrap_or_default();
        let centre = mean(if settled.is_empty() { rates } else { settled });
        let oscillations = centre.map_or(0, |centre| oscillations(rates, LOW_WATERMARK * centre));
        if settled.len() < WINDOW {
            return Self { oscillations, ..Self::default() };
        }
        let windows: Vec<_> = rates.windows(WINDOW).filter_map(mean).collect();
        let settled_windows = windows.get(settled_from..).unwrap_or_default();
        Self {
            settled_bps: centre,
            convergence_s: centre.and_then(|centre| convergence_s(&windows, centre, settled_from)),
            cv: coefficient_of_variation(settled_windows),
            oscillations,
        }
    }
}

/// Returns the earliest time, in seconds, after which all means in `windows` differ from `centre` by at most `BAND`
/// times `centre`. Returns `None` if this time is later than bin `settled_from`, or if `centre` is zero.
fn convergence_s(windows: &[f64], centre: f64, settled_from: usize) -> Option<f64> {
    let is_outside = |mean: &f64| (mean - centre).abs() > BAND * centre;
    let first = windows.iter().rposition(is_outside).map_or(0, |last| last + 1);
    (centre > 0.0 && first <= settled_from).then_some(first as f64 * BIN_S)
}

/// Returns how often a rate goes from at most `low` to at least four times `low`, or back, within 500 ms.
fn oscillations(rates: &[f64], low: f64) -> u64 {
    let mut count = 0;
    // The last bin whose rate is low (at most `low`) or high (at least `WATERMARK_INTERVAL` times `low`), and whether
    // the rate is high.
    let mut last: Option<(usize, bool)> = None;
    for (place, rate) in rates.iter().enumerate() {
        let is_high = *rate >= WATERMARK_INTERVAL * low;
        if !is_high && *rate > low {
            continue;
        }
        count += u64::from(last.is_some_and(|(before, was_high)| was_high != is_high && place - before <= SWING_BINS));
        last = Some((place, is_high));
    }
    count
}

/// How several flows share their total rate, evaluated in windows of equal length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sharing {
    /// Number of whole windows in the phase in which at least one flow has a rate above zero.
    pub(crate) windows: u64,
    /// Mean of Jain's index over the windows.
    pub(crate) jain: f64,
    /// Ratio of the lowest to the highest flow rate, averaged over the windows.
    pub(crate) ratio: f64,
    /// Share of the windows in which the lowest flow rate is at least a third of the highest flow rate.
    pub(crate) fair_share: f64,
}

impl Sharing {
    /// Evaluates how fairly several flows share their total rate in a phase. `flows` has the rates of each flow in the
    /// bins of the phase. One window consists of `window` bins. Windows in which all rates are zero do not count.
    /// `None` if there are fewer than two flows or no window counts.
    pub(crate) fn of(flows: &[Vec<f64>], window: usize) -> Option<Self> {
        let bins = flows.iter().map(Vec::len).min().filter(|_| flows.len() > 1)?;
        let mut found = Self { windows: 0, jain: 0.0, ratio: 0.0, fair_share: 0.0 };
        for number in 0..bins / window.max(1) {
            let of_window = |flow: &Vec<f64>| flow.get(number * window..(number + 1) * window).and_then(mean);
            let rates: Vec<_> = flows.iter().filter_map(of_window).collect();
            let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = rates.iter().copied().fold(0.0, f64::max);
            if greatest > 0.0 {
                let ratio = least / greatest;
                found.windows += 1;
                found.jain += jain(&rates);
                found.ratio += ratio;
                found.fair_share += f64::from(u8::from(ratio >= LEAST_FAIR));
            }
        }
        let count = found.windows as f64;
        let Self { windows, jain, ratio, fair_share } = found;
        (windows > 0).then(|| Self {
            windows,
            jain: jain / count,
            ratio: ratio / count,
            fair_share: fair_share / count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates of 9 s, in bins of 0.2 s: 2 s at 0.4 Mbit/s, 1 s at 1.5 Mbit/s, then 6 s at 1 Mbit/s. The band is 0.8
    /// to 1.2 Mbit/s. A window has five bins. The window that starts at 2.4 s has three bins at 1.5 and two at 1
    /// Mbit/s, so it is outside the band. The window that starts at 2.6 s has a mean of exactly 1.2 Mbit/s, so it is in
    /// the band.
    #[test]
    fn a_rate_converges_when_its_means_of_a_second_stay_in_the_band() {
        let mut rates = vec![0.4e6; 10];
        rates.extend([1.5e6; 5]);
        rates.extend([1e6; 30]);
        let found = Steadiness::of(&rates);
        assert!((found.settled_bps.expect("long enough") - 1e6).abs() < 1e-3);
        assert!((found.convergence_s.expect("it settles") - 2.6).abs() < 1e-9, "{found:?}");
        assert!(found.cv.expect("long enough") < 1e-9);
        assert_eq!(Steadiness::of(&[1e6; 15]).convergence_s, Some(0.0));
    }

    #[test]
    fn a_rate_that_leaves_the_band_in_the_end_does_not_converge() {
        let mut rates = vec![1e6; 25];
        rates.extend([1e6, 1e6, 1e6, 1e6, 1e6, 2e6, 2e6, 2e6, 2e6, 2e6]);
        assert_eq!(Steadiness::of(&rates).convergence_s, None);
        // The list contains a phase shorter than three seconds, a phase without bins, and a phase in which all rates
        // are zero.
        for rates in [vec![1e6; 14], Vec::new(), vec![0.0; 40]] {
            let found = Steadiness::of(&rates);
            assert_eq!((found.convergence_s, found.cv, found.oscillations), (None, None, 0));
        }
    }

    /// The settled rate is 1 Mbit/s, so the watermarks are 0.5 and 2 Mbit/s. The rate goes from low to high within one
    /// bin and back to low within two bins: two oscillations. The next rise takes three bins, which is too slow to
    /// count.
    #[test]
    fn swings_between_the_watermarks_count_if_they_are_fast() {
        let mut rates = vec![0.5e6, 2e6, 1e6, 0.4e6, 1e6, 1e6, 2.5e6, 2.5e6, 1e6];
        rates.extend([1e6; 30]);
        assert_eq!(Steadiness::of(&rates).oscillations, 2);
        assert_eq!(oscillations(&[1.0, 4.0, 1.0, 4.0, 1.0], 1.0), 4);
        assert_eq!(oscillations(&[2.0; 50], 1.0), 0);
    }

    /// Two windows of one second. In the first, both flows have 2 Mbit/s; in the second, the flows have 3 and 1 Mbit/s.
    /// Jain's indices are 1 and 16 / 20, and the ratios of the rates are 1 and 1 / 3.
    #[test]
    fn shares_are_those_of_the_hand() {
        let one: Vec<f64> = [[2e6; 5], [3e6; 5]].concat();
        let other: Vec<f64> = [[2e6; 5], [1e6; 5]].concat();
        let found = Sharing::of(&[one.clone(), other.clone()], 5).expect("two windows");
        assert_eq!(found.windows, 2);
        assert!((found.jain - 0.9).abs() < 1e-12 && (found.ratio - 2.0 / 3.0).abs() < 1e-12, "{found:?}");
        assert!((found.fair_share - 1.0).abs() < 1e-12, "a third is just fair");
        assert_eq!(Sharing::of(std::slice::from_ref(&one), 5), None);
        assert_eq!(Sharing::of(&[one, other], 11), None);
        assert_eq!(Sharing::of(&[vec![0.0; 5], vec![0.0; 5]], 5), None);
    }
}
