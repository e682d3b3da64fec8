//! The picture of a chart: where values are in it, and how wide it may be.
//!
//! A picture is as wide as there is room, with letters of one size: across, places are percentages. Its height is fixed. Labels that would
//! overlap on a phone have a second form for it; the style sheet shows the one for which there is room.

use super::{Axis, Chart};
use crate::report::escape;

/// Height of the area between the axes, in pixels.
pub(super) const HEIGHT: f64 = 250.0;
/// Width of that area, at the least, where there is room for the wide form of labels, and on a phone.
pub(super) const WIDTHS: [f64; 2] = [560.0, 270.0];
/// The classes of what is shown for these widths alone.
pub(super) const FORMS: [&str; 2] = ["wide", "narrow"];
/// Height of letters.
pub(super) const TEXT_SIZE: f64 = 13.0;
/// Width of a letter, except for rare letters.
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

    /// Horizontal position of a value in percent, at the edge if it is beyond.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.x.share(value) * 100.0
    }

    /// Vertical position of a value in pixels from the top, at the edge if it is beyond.
    pub(super) fn y(&self, value: f64) -> f64 {
        (1.0 - self.y.share(value)) * HEIGHT
    }
}

/// A text with its anchor in percent across and in pixels down, and with further attributes.
pub(super) fn text(x: f64, y: f64, attributes: &str, text: &str) -> String {
    format!("<text x=\"{x:.2}%\" y=\"{y:.1}\"{attributes}>{}</text>", escape(text))
}

pub(super) fn line_swatch(y: f64, color: &str, width: f64, dash: &str) -> String {
    let dash = if dash.is_empty() { "none" } else { dash };
    format!(
        "<line x1=\"0\" y1=\"{y}\" x2=\"28\" y2=\"{y}\" style=\"stroke:{color};stroke-width:{width};stroke-dasharray:{dash}\"/>"
    )
}
