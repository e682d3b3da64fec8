//! The picture of a chart: the positions of values in it, and its minimum widths.
//!
//! A picture is as wide as the page allows, with text of a fixed size, so horizontal positions are percentages. Its
//! height is fixed. Labels that would overlap on a phone have a second, narrow form; the style sheet shows the form
//! that fits.

use super::{Axis, Chart};
use crate::report::escape;

/// Height of the area between the axes, in pixels.
pub(super) const HEIGHT: f64 = 250.0;
/// Minimum width of that area for the wide form of the labels, and its width on a phone.
pub(super) const WIDTHS: [f64; 2] = [560.0, 270.0];
/// CSS classes of elements that only one of these widths shows.
pub(super) const FORMS: [&str; 2] = ["wide", "narrow"];
/// Height of the text.
pub(super) const TEXT_SIZE: f64 = 13.0;
/// Width of a letter; only rare letters are wider.
pub(super) const LETTER_WIDTH: f64 = 7.2;

/// The area between the axes.
pub(super) struct Area<'a> {
    x: &'a Axis,
    y: &'a Axis,
}

impl<'a> Area<'a> {
    pub(super) const fn of(chart: &'a Chart) -> Self {
        Self { x: &chart.x, y: &chart.y }
    }

    /// Horizontal position of a value in percent; a value outside the axis is at the edge.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.x.share(value) * 100.0
    }

    /// Vertical position of a value in pixels from the top; a value outside the axis is at the edge.
    pub(super) fn y(&self, value: f64) -> f64 {
        (1.0 - self.y.share(value)) * HEIGHT
    }
}

/// A text element anchored at a percentage from the left and at pixels from the top, with further attributes.
pub(super) fn text(x: f64, y: f64, attributes: &str, text: &str) -> String {
    format!("<text x=\"{x:.2}%\" y=\"{y:.1}\"{attributes}>{}</text>", escape(text))
}

pub(super) fn line_swatch(y: f64, color: &str, width: f64, dash: &str) -> String {
    let dash = if dash.is_empty() { "none" } else { dash };
    format!(
        "<line x1=\"0\" y1=\"{y}\" x2=\"28\" y2=\"{y}\" style=\"stroke:{color};stroke-width:{width};stroke-dasharray:{dash}\"/>"
    )
}
