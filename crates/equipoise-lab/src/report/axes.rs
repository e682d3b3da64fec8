//! The frame of a chart: axes with ticks and labels, and the grid.

use super::area::{Area, HEIGHT, LETTER_WIDTH, TEXT_SIZE, WIDTH, text};
use super::chart::Chart;
use super::format::escape;
use super::ticks::{FEWEST_STEPS, NUMBER_GAP, Tick, number_width, ticks, widest};

const TICK_LENGTH: f64 = 5.0;
/// Baseline of the vertical axis' label.
const LABEL_BASE: f64 = 16.0;
/// Height of the letters of an axis' label.
const LABEL_SIZE: f64 = 15.0;
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

fn name_width(name: &str) -> f64 {
    name.chars().count() as f64 * LETTER_WIDTH
}
