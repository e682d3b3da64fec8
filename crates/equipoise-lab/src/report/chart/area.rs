//! The plot area of a chart: the positions of values in it, and the widths for which labels are laid out.
//!
//! A chart is as wide as the page allows, and its text has a fixed size, so horizontal positions are percentages. The
//! height is fixed. Some labels have a wide and a narrow form, so that they do not overlap on a phone; the style sheet
//! shows the form that fits.

use super::{Axis, Chart};
use crate::report::escape;

/// Height of the plot area between the axes, in pixels.
pub(super) const HEIGHT: f64 = 250.0;
/// Widths of the plot area for which labels are laid out, in pixels: the minimum width for the wide form of the labels,
/// and the width on a phone for the narrow form.
pub(super) const WIDTHS: [f64; 2] = [560.0, 270.0];
/// CSS classes of the wide and the narrow form of labels.
pub(super) const FORMS: [&str; 2] = ["wide", "narrow"];
/// Font size of the text, in pixels.
pub(super) const TEXT_SIZE: f64 = 13.0;
/// Assumed width of a letter, in pixels; some letters are wider.
pub(super) const LETTER_WIDTH: f64 = 7.2;

/// The plot area between the axes.
pub(super) struct Area<'a> {
    x: &'a Axis,
    y: &'a Axis,
}

impl<'a> Area<'a> {
    pub(super) const fn of(chart: &'a Chart) -> Self {
        Self { x: &chart.x, y: &chart.y }
    }

    /// Horizontal position of a value, in percent. A value outside the axis is drawn at the edge of the area.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.x.share(value) * 100.0
    }

    /// Vertical position of a value, in pixels from the top. A value outside the axis is drawn at the edge of the area.
    pub(super) fn y(&self, value: f64) -> f64 {
        (1.0 - self.y.share(value)) * HEIGHT
    }
}

/// Returns an SVG text element. `x` is in percent from the left, `y` in pixels from the top, and `attributes` are
/// added.
pub(super) fn text(x: f64, y: f64, attributes: &str, text: &str) -> String {
    format!("<text x=\"{x:.2}%\" y=\"{y:.1}\"{attributes}>{}</text>", escape(text))
}

pub(super) fn line_swatch(y: f64, color: &str, width: f64, dash: &str) -> String {
    let dash = if dash.is_empty() { "none" } else { dash };
    format!(
        "<line x1=\"0\" y1=\"{y}\" x2=\"28\" y2=\"{y}\" style=\"stroke:{color};stroke-width:{width};stroke-dasharray:{dash}\"/>"
    )
}
