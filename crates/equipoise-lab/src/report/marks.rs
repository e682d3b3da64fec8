//! Marks: straight lines through a whole chart, with labels at its edges that do not overlap.

use super::area::{Area, HEIGHT, LETTER_WIDTH, TEXT_SIZE, WIDTH, line_swatch, text};
use super::chart::{Chart, Mark};

/// More vertical marks than this share one entry in the legend.
pub(super) const MOST_NAMED_MARKS: usize = 12;
const COLOR: &str = "var(--mark)";
const LINE_WIDTH: f64 = 1.5;

/// The lines of all marks within the axes.
pub(super) fn lines(chart: &Chart, area: &Area<'_>) -> String {
    let line = |mark: &Mark, path: String| {
        let dash = if mark.dash.is_empty() { "none" } else { mark.dash };
        format!("<path d=\"{path}\" stroke=\"{COLOR}\" stroke-width=\"{LINE_WIDTH}\" stroke-dasharray=\"{dash}\"/>")
    };
    let Area { left, right, top, bottom, .. } = *area;
    let across = chart.horizontals.iter().filter(|mark| chart.y.contains(mark.at));
    let across = across.map(|mark| line(mark, format!("M{left:.1} {:.1}H{right}", area.y(mark.at))));
    let up = chart.verticals.iter().filter(|mark| chart.x.contains(mark.at));
    across.chain(up.map(|mark| line(mark, format!("M{:.1} {top}V{bottom}", area.x(mark.at))))).collect()
}

/// The labels: of horizontal marks at the right edge, of vertical ones above.
pub(super) fn labels(chart: &Chart, area: &Area<'_>) -> String {
    let mut labels = String::new();
    let seen: Vec<_> = chart.horizontals.iter().filter(|mark| chart.y.contains(mark.at)).collect();
    let heights: Vec<_> = seen.iter().map(|mark| area.y(mark.at) + TEXT_SIZE / 3.0).collect();
    for (mark, y) in seen.iter().zip(apart(&heights, TEXT_SIZE, HEIGHT)) {
        labels.push_str(&text(area.right + 6.0, y, "start", &mark.label));
    }
    if chart.verticals.len() > MOST_NAMED_MARKS {
        return labels;
    }
    let seen = chart.verticals.iter().zip(1..).filter(|(mark, _)| chart.x.contains(mark.at));
    let (middles, texts): (Vec<_>, Vec<_>) = if are_numbered(chart, area) {
        let (places, numbers): (Vec<_>, Vec<_>) =
            seen.map(|(mark, number): (_, u32)| (area.x(mark.at), number.to_string())).unzip();
        (apart(&places, 3.0 * LETTER_WIDTH, WIDTH - LETTER_WIDTH), numbers)
    } else {
        seen.map(|(mark, _)| (middle(area, mark), mark.label.clone())).unzip()
    };
    labels.extend(middles.iter().zip(texts).map(|(x, label)| text(*x, area.top - 10.0, "middle", &label)));
    labels
}

/// Whether the labels of vertical marks would overlap, so that numbers stand for them.
pub(super) fn are_numbered(chart: &Chart, area: &Area<'_>) -> bool {
    let mut right = f64::NEG_INFINITY;
    chart.verticals.iter().any(|mark| {
        let (middle, half) = (middle(area, mark), half_width(&mark.label));
        let overlaps = middle - half < right || half > WIDTH / 4.0;
        right = middle + half + LETTER_WIDTH;
        overlaps
    })
}

/// The sign of a mark in the legend.
pub(super) fn swatch(mark: &Mark) -> String {
    line_swatch(6.0, COLOR, LINE_WIDTH, mark.dash)
}

/// Middle of a vertical mark's label: above the mark, or as near as the chart's edges allow.
fn middle(area: &Area<'_>, mark: &Mark) -> f64 {
    let half = half_width(&mark.label).min(WIDTH / 2.0);
    area.x(mark.at).clamp(half, WIDTH - half)
}

fn half_width(label: &str) -> f64 {
    label.chars().count() as f64 * LETTER_WIDTH / 2.0
}

/// Places from 0 to `last` with at least `distance` between them, as near to the wanted ones as one pass up and one pass
/// down bring them; closer if there is no room.
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
