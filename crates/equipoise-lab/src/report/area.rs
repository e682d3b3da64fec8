//! The picture of a chart: its size, where values are in it, and what all of its parts are drawn with.

use super::chart::{Axis, Chart};
use super::format::escape;
use super::ticks::room_for_numbers;

pub(super) const WIDTH: f64 = 900.0;
pub(super) const HEIGHT: f64 = 340.0;
/// Room for the ticks and the label of the vertical axis, unless its numbers are long.
const LEFT: f64 = 70.0;
/// Room for the label of a horizontal mark.
const RIGHT: f64 = 64.0;
/// Room for the labels of vertical marks.
const TOP: f64 = 30.0;
const BOTTOM: f64 = 56.0;
/// Height of letters: large enough for a phone, where a chart is shown at 0.8 of its size.
pub(super) const TEXT_SIZE: f64 = 14.0;
/// Width of a letter, except for rare letters.
pub(super) const LETTER_WIDTH: f64 = 7.5;

/// The area between the axes: where values are in the picture.
pub(super) struct Area<'a> {
    x: &'a Axis,
    y: &'a Axis,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl<'a> Area<'a> {
    pub(super) fn of(chart: &'a Chart) -> Self {
        let left = LEFT.max(room_for_numbers(&chart.y));
        Self { x: &chart.x, y: &chart.y, left, right: WIDTH - RIGHT, top: TOP, bottom: HEIGHT - BOTTOM }
    }

    /// Horizontal position of a value, at the edge if it is beyond.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.x.share(value) * (self.right - self.left)
    }

    /// Vertical position of a value, at the edge if it is beyond.
    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom - self.y.share(value) * (self.bottom - self.top)
    }
}

/// A text with its anchor at a point of the baseline.
pub(super) fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    let text = escape(text);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{TEXT_SIZE}\" text-anchor=\"{anchor}\">{text}</text>")
}

pub(super) fn line_swatch(y: f64, color: &str, width: f64, dash: &str) -> String {
    let dash = if dash.is_empty() { "none" } else { dash };
    format!(
        "<line x1=\"0\" y1=\"{y}\" x2=\"28\" y2=\"{y}\" style=\"stroke:{color};stroke-width:{width};stroke-dasharray:{dash}\"/>"
    )
}
