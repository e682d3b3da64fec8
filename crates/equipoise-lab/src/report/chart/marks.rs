//! Draws marks: straight lines across a whole chart, with labels at the chart's edges that do not overlap.

use super::area::{Area, FORMS, HEIGHT, LETTER_WIDTH, TEXT_SIZE, WIDTHS, line_swatch, text};
use super::points::Digits;
use super::{Chart, Mark};

/// If there are more vertical marks than this, they have no labels and share one entry in the legend.
pub(super) const MOST_NAMED_MARKS: usize = 12;
const COLOR: &str = "var(--mark)";
const LINE_WIDTH: f64 = 1.5;
/// Distance between the plot area and the labels above it, in pixels. Labels above a horizontal mark have half this
/// distance from the mark.
const ABOVE: f64 = 8.0;

/// Returns the vertical marks as paths. Their vertical coordinates are 0 to 1, the full height of the plot area.
pub(super) fn verticals(chart: &Chart, digits: &Digits<'_>) -> String {
    chart.verticals.iter().map(|mark| line(mark, &format!("M{} 0V1", digits.x(mark.at)))).collect()
}

/// Returns the horizontal marks as paths from one end of the horizontal axis to the other.
pub(super) fn horizontals(chart: &Chart, digits: &Digits<'_>) -> String {
    let [left, right] = [chart.x.min, chart.x.max].map(|end| digits.x(end));
    chart.horizontals.iter().map(|mark| line(mark, &format!("M{left} {}H{right}", digits.y(mark.at)))).collect()
}

fn line(mark: &Mark, path: &str) -> String {
    let dash = if mark.dash.is_empty() { "none" } else { mark.dash };
    format!("<path d=\"{path}\" stroke=\"{COLOR}\" stroke-width=\"{LINE_WIDTH}\" stroke-dasharray=\"{dash}\"/>")
}

/// Returns the labels of all marks that lie within the axes. A horizontal mark has its label at the right end of its
/// line, a vertical mark above the plot area.
pub(super) fn labels(chart: &Chart, area: &Area<'_>) -> String {
    let seen: Vec<_> = chart.horizontals.iter().filter(|mark| chart.y.contains(mark.at)).collect();
    let heights: Vec<_> = seen.iter().map(|mark| area.y(mark.at) - ABOVE / 2.0).collect();
    let across = seen.iter().zip(apart(&heights, TEXT_SIZE, HEIGHT)).map(|(mark, y)| {
        let attributes = format!(" class=\"level\" data-at=\"{}\" dx=\"-3\" text-anchor=\"end\"", mark.at);
        text(100.0, y, &attributes, &mark.label)
    });
    let across: String = across.collect();
    let up = FORMS.into_iter().zip(WIDTHS).map(|(form, width)| above(chart, area, form, width));
    across + &up.collect::<String>()
}

/// Returns the labels of the vertical marks in a plot of this width; empty if there are more than `MOST_NAMED_MARKS`.
fn above(chart: &Chart, area: &Area<'_>, form: &str, width: f64) -> String {
    if chart.verticals.len() > MOST_NAMED_MARKS {
        return String::new();
    }
    let label = |at: f64, x: f64, anchor: &str, label: &str| {
        text(x, -ABOVE, &format!(" class=\"mark {form}\" data-at=\"{at}\" text-anchor=\"{anchor}\""), label)
    };
    let seen = chart.verticals.iter().zip(1..).filter(|(mark, _)| chart.x.contains(mark.at));
    if are_numbered(chart, area, width) {
        let (marks, numbers): (Vec<_>, Vec<u32>) = seen.unzip();
        let places: Vec<_> = marks.iter().map(|mark| area.x(mark.at) * width / 100.0).collect();
        let places = apart(&places, 3.0 * LETTER_WIDTH, width);
        let numbered = marks.iter().zip(numbers).zip(places);
        return numbered
            .map(|((mark, number), x)| label(mark.at, x / width * 100.0, "middle", &number.to_string()))
            .collect();
    }
    let words = seen.map(|(mark, _)| {
        let (x, half) = (area.x(mark.at), half_width(&mark.label) / width * 100.0);
        let (x, anchor) = match x {
            x if x < half => (0.0, "start"),
            x if x > 100.0 - half => (100.0, "end"),
            x => (x, "middle"),
        };
        label(mark.at, x, anchor, &mark.label)
    });
    words.collect()
}

/// Whether numbers replace the labels of the vertical marks in a plot of this width. Numbers replace the labels if two
/// labels would overlap, or if one label would take more than half of the width.
pub(super) fn are_numbered(chart: &Chart, area: &Area<'_>, width: f64) -> bool {
    let mut right = f64::NEG_INFINITY;
    chart.verticals.iter().any(|mark| {
        let half = half_width(&mark.label);
        let is_long = half > width / 4.0;
        let middle = (area.x(mark.at) * width / 100.0).min(width - half).max(half);
        let overlaps = middle - half < right;
        right = middle + half + LETTER_WIDTH;
        is_long || overlaps
    })
}

/// Returns the symbol of a mark in the legend.
pub(super) fn swatch(mark: &Mark) -> String {
    line_swatch(6.0, COLOR, LINE_WIDTH, mark.dash)
}

fn half_width(label: &str) -> f64 {
    label.chars().count() as f64 * LETTER_WIDTH / 2.0
}

/// Returns positions from 0 to `last` that are at least `distance` apart and near the wanted positions. One pass
/// increases positions, and a second pass decreases them. If the positions do not fit, the distance is smaller.
fn apart(wanted: &[f64], distance: f64, last: f64) -> Vec<f64> {
    let mut order: Vec<_> = (0..wanted.len()).collect();
    order.sort_by(|one, other| wanted[*one].total_cmp(&wanted[*other]));
    let distance = distance.min(last / wanted.len().max(1) as f64);
    let mut places = wanted.to_vec();
    let mut free = 0.0;
    for &index in &order {
        places[index] = places[index].max(free);
        free = places[index] + distance;
    }
    let mut free = last;
    for &index in order.iter().rev() {
        places[index] = places[index].min(free);
        free = places[index] - distance;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_near_marks_are_pushed_apart_as_far_as_there_is_room() {
        let rounded = |wanted: &[f64]| -> Vec<i64> {
            apart(wanted, 20.0, 100.0).into_iter().map(|place| place.round() as i64).collect()
        };
        assert_eq!(rounded(&[10.0, 50.0]), [10, 50]);
        assert_eq!(rounded(&[50.0, 49.0, 52.0]), [69, 49, 89]);
        assert_eq!(rounded(&[95.0, 99.0]), [80, 100]);
        assert_eq!(rounded(&[99.0; 10]), [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
        assert!(apart(&[], 20.0, 100.0).is_empty());
    }
}
