//! Draws the frame of a chart: axes with ticks and labels, and the grid.

use super::Chart;
use super::area::{Area, FORMS, HEIGHT, LETTER_WIDTH, TEXT_SIZE, WIDTHS, text};
use super::ticks::{FEWEST_STEPS, NUMBER_GAP, number_width, ticks};

const TICK_LENGTH: f64 = 5.0;
/// Baseline of the labels below the plot area, in pixels from the top of the area.
const BASELINE: f64 = HEIGHT + TICK_LENGTH + TEXT_SIZE;

/// Returns the frame of a chart as SVG.
pub(super) fn svg(chart: &Chart, area: &Area<'_>) -> String {
    let across = if chart.categories.is_empty() { numbers(chart, area) } else { names(chart, area) };
    let up = ticks(&chart.y, FEWEST_STEPS).into_iter().map(|tick| {
        let y = area.y(tick.at);
        let label = text(0.0, y + TEXT_SIZE / 3.0, &format!(" dx=\"-{NUMBER_GAP}\" text-anchor=\"end\""), &tick.label);
        format!("<line class=\"grid\" y1=\"{y:.1}\" x2=\"100%\" y2=\"{y:.1}\"/>{label}")
    });
    let up: String = up.collect();
    let axes = format!(
        "<line class=\"axis\" y2=\"{HEIGHT}\"/><line class=\"axis\" y1=\"{HEIGHT}\" x2=\"100%\" y2=\"{HEIGHT}\"/>"
    );
    format!("<g class=\"ticks across\">{across}</g><g class=\"ticks up\">{up}</g>{axes}")
}

/// Whether the names are too long to fit next to each other in a plot of this width, so that numbers replace them.
pub(super) fn names_are_numbered(chart: &Chart, area: &Area<'_>, width: f64) -> bool {
    let room = room_of_one(chart, area, width);
    chart.categories.iter().any(|name| name_width(name) + 2.0 * LETTER_WIDTH > room)
}

/// Width available to each name on the horizontal axis, in pixels.
fn room_of_one(chart: &Chart, area: &Area<'_>, width: f64) -> f64 {
    area.x(chart.x.min + 1.0) * width / 100.0
}

/// Returns the labels of a chart's categories, which are at the positions 1, 2 and so on. The labels are the
/// categories' names. If the names do not fit, the labels are the positions. If even these numbers do not fit, only
/// every n-th number is shown.
fn names(chart: &Chart, area: &Area<'_>) -> String {
    let numbered = WIDTHS.map(|width| names_are_numbered(chart, area, width));
    let mut labels = String::new();
    for ((width, form), numbered) in WIDTHS.into_iter().zip(FORMS).zip(numbered) {
        let places = chart.categories.iter().zip(1u32..);
        let all =
            places.map(|(name, place)| (f64::from(place), if numbered { place.to_string() } else { name.clone() }));
        let all: Vec<_> = all.filter(|(at, _)| chart.x.contains(*at)).collect();
        let widest = all.iter().map(|(_, label)| name_width(label) + LETTER_WIDTH).fold(0.0, f64::max);
        let every = if numbered { fitting(widest, room_of_one(chart, area, width)) } else { 1 };
        let drawn = all.iter().step_by(every);
        labels.extend(drawn.map(|(at, label)| {
            text(area.x(*at), BASELINE, &format!(" class=\"{form}\" text-anchor=\"middle\""), label)
        }));
    }
    labels
}

/// Returns the ticks of the horizontal axis with their grid lines. On a phone, only the labels that fit are shown.
fn numbers(chart: &Chart, area: &Area<'_>) -> String {
    let [wide, narrow] = WIDTHS;
    let fits = |steps: &f64| {
        let ticks = ticks(&chart.x, *steps);
        let widest = ticks.iter().map(|tick| number_width(&tick.label)).fold(0.0, f64::max);
        ticks.windows(2).all(|pair| (area.x(pair[1].at) - area.x(pair[0].at)) * wide / 100.0 >= widest + NUMBER_GAP)
    };
    let steps = [FEWEST_STEPS, 3.0, 2.0].into_iter().find(fits).unwrap_or(1.0);
    let ticks = ticks(&chart.x, steps);
    let widest = ticks.iter().map(|tick| number_width(&tick.label)).fold(0.0, f64::max);
    let room =
        ticks.windows(2).next().map_or(narrow, |pair| (area.x(pair[1].at) - area.x(pair[0].at)) * narrow / 100.0);
    let every = fitting(widest + NUMBER_GAP, room);
    let tick = |(place, tick): (usize, &super::ticks::Tick)| {
        let x = area.x(tick.at);
        let class = if place % every == 0 { "" } else { " class=\"wide\"" };
        let label = text(x, BASELINE, &format!("{class} text-anchor=\"middle\""), &tick.label);
        format!("<line class=\"grid\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y2=\"{HEIGHT}\"/>{label}")
    };
    ticks.iter().enumerate().map(tick).collect()
}

/// Returns the smallest n for which all labels fit if only every n-th position has a label. `width` is the width of the
/// widest label with the gap to the next label. `room` is the width available per position.
fn fitting(width: f64, room: f64) -> usize {
    (width / room.max(1e-3)).ceil().clamp(1.0, 1e3) as usize
}

fn name_width(name: &str) -> f64 {
    name.chars().count() as f64 * LETTER_WIDTH
}
