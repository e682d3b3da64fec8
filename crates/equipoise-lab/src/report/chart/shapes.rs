//! Draws the layers of a chart: lines, steps, bands, points, estimates and boxes.

use super::area::{Area, line_swatch};
use super::points::{Digits, Point, bounded, columns};
use super::{Axis, Chart, Layer, Shape, Style};
use crate::report::escape;

const BAND_OPACITY: f64 = 0.2;
/// Width of the line along a band's upper edge, in pixels. The line has the dash pattern of the band's layer.
const EDGE_WIDTH: f64 = 0.9;
/// Diameter of the dot that shows an isolated point of a line, in pixels. Before and after such a point, the line has a
/// gap.
const DOT_WIDTH: f64 = 5.0;
/// Radius of a symbol in a layer of many points, and radius of a symbol for a single estimate, in pixels.
const RADIUS: f64 = 2.6;
const LARGE_RADIUS: f64 = 4.6;
/// Width of the line that shows the confidence interval of an estimate, in pixels.
const INTERVAL_WIDTH: f64 = 1.2;
/// Half the width of a box, and half the width of the bar at the end of a whisker, in units of the horizontal axis.
const HALF_BOX: f64 = 0.25;
const HALF_END: f64 = 0.12;
/// Half the width, and half the height, of the cross at the mean of a box plot, in pixels.
const ARM: f64 = 5.0;

/// Returns all lines, steps and bands of a chart in the units of the chart's axes. Bands are drawn first, then solid
/// lines, and then dashed lines, so that a solid line and an equal dashed line are both visible.
pub(super) fn lines(chart: &Chart, digits: &Digits<'_>) -> String {
    let mut layers: Vec<_> = chart.layers.iter().collect();
    layers.sort_by_key(|layer| (!matches!(layer.shape, Shape::Band(_)), !layer.style.dash.is_empty()));
    let columns = columns(chart);
    let drawn = layers.into_iter().map(|layer| match &layer.shape {
        Shape::Line(points) => line(layer, "line", digits, &bounded(points, &chart.x, columns)),
        Shape::Steps(points) => line(layer, "steps", digits, &corners(&bounded(points, &chart.x, columns))),
        Shape::Band(points) => band(layer, digits, &bounded(points, &chart.x, columns)),
        Shape::Points(_) | Shape::Estimate { .. } | Shape::Box(..) => String::new(),
    });
    drawn.collect()
}

/// Returns all points, estimates and boxes of a chart. Symbols at the edges of the plot area are not clipped.
pub(super) fn signs(chart: &Chart, area: &Area<'_>) -> String {
    let columns = columns(chart);
    let drawn = chart.layers.iter().map(|layer| {
        let signs = match &layer.shape {
            Shape::Points(points) => {
                let seen = bounded(points, &chart.x, columns).into_iter().filter(Point::is_measured);
                seen.map(|(x, y)| place(area, x, y, &sign(Look::small(layer.style)))).collect()
            }
            Shape::Estimate { x, y, is_filled } if x.iter().chain(y).all(|value| value.is_finite()) => {
                titled(&estimate_words(chart, *x, *y), &estimate(area, *x, *y, Look::large(layer.style, *is_filled)))
            }
            Shape::Box(at, five, mean) if at.is_finite() && five.iter().all(|value| value.is_finite()) => {
                let mean_cross = if mean.is_finite() { place(area, *at, *mean, &cross()) } else { String::new() };
                titled(&box_words(*five, *mean), &(boxed(area, *at, *five, layer.style) + &mean_cross))
            }
            _ => String::new(),
        };
        if signs.is_empty() { signs } else { format!("<g{}>{signs}</g>", named(layer, "signs")) }
    });
    drawn.collect()
}

/// Returns the symbol of a layer in the legend.
pub(super) fn swatch(layer: &Layer) -> String {
    let Style { color, dash, width } = layer.style;
    let area = |opacity: f64| format!("<rect width=\"28\" height=\"12\" style=\"fill:{color};opacity:{opacity}\"/>");
    let sign = |look| format!("<g transform=\"translate(14 6)\">{}</g>", sign(look));
    match layer.shape {
        Shape::Band(_) => area(BAND_OPACITY) + &line_swatch(1.0, color, EDGE_WIDTH, dash),
        Shape::Line(_) | Shape::Steps(_) => line_swatch(6.0, color, width, dash),
        Shape::Points(_) => sign(Look::small(layer.style)),
        Shape::Estimate { is_filled, .. } => sign(Look::large(layer.style, is_filled)),
        Shape::Box(..) => area(BAND_OPACITY) + &line_swatch(6.0, color, 2.5, ""),
    }
}

/// Returns the attributes by which the page's script identifies a layer: its shape, name and colour.
fn named(layer: &Layer, shape: &str) -> String {
    let Layer { name, style: Style { color, .. }, .. } = layer;
    format!(" data-shape=\"{shape}\" data-name=\"{}\" data-color=\"{color}\"", escape(name))
}

/// Returns lines through points. A point that was not measured leaves a gap, and a point without neighbours is drawn as
/// a dot.
fn line(layer: &Layer, shape: &str, digits: &Digits<'_>, points: &[(f64, f64)]) -> String {
    let (path, alone) = joined(digits, points);
    if path.is_empty() {
        return path;
    }
    let color = layer.style.color;
    let dots = format!("<path d=\"{alone}\" stroke=\"{color}\" stroke-width=\"{DOT_WIDTH}\"/>");
    stroke(&path, &named(layer, shape), layer.style) + if alone.is_empty() { "" } else { &dots }
}

fn stroke(path: &str, attributes: &str, Style { color, dash, width }: Style) -> String {
    let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
    format!("<path{attributes} d=\"{path}\" stroke=\"{color}\" stroke-width=\"{width}\"{dash}/>")
}

/// Returns a path through all measured points, and a path through only the points that have no measured neighbour.
fn joined(digits: &Digits<'_>, points: &[(f64, f64)]) -> (String, String) {
    let (mut path, mut alone) = (String::new(), String::new());
    for part in points.split(|point| !point.is_measured()).filter(|part| !part.is_empty()) {
        let places = places(digits, part.iter().copied());
        match places.as_slice() {
            [only] => {
                path.push_str(&format!("M{only}h0"));
                alone.push_str(&format!("M{only}h0"));
            }
            places => path.push_str(&format!("M{}", places.join("L"))),
        }
    }
    (path, alone)
}

fn places(digits: &Digits<'_>, points: impl Iterator<Item = (f64, f64)>) -> Vec<String> {
    points.map(|(x, y)| format!("{} {}", digits.x(x), digits.y(y))).collect()
}

/// Returns the corners of a step curve through `points`. Each y value applies until the x value of the next point, even
/// if the y value of the next point was not measured.
fn corners(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners = points.get(..1).unwrap_or_default().to_vec();
    corners.extend(points.windows(2).flat_map(|pair| [(pair[1].0, pair[0].1), pair[1]]));
    corners
}

/// Returns the area between the lower and the upper values, and a line along the upper values.
fn band(layer: &Layer, digits: &Digits<'_>, points: &[(f64, f64, f64)]) -> String {
    let mut path = String::new();
    for part in points.split(|point| !point.is_measured()).filter(|part| !part.is_empty()) {
        let upper = part.iter().map(|&(x, _, high)| (x, high));
        let lower = part.iter().rev().map(|&(x, low, _)| (x, low));
        path.push_str(&format!("M{}Z", places(digits, upper.chain(lower)).join("L")));
    }
    if path.is_empty() {
        return path;
    }
    let upper = |point: &(f64, f64, f64)| (point.0, if point.is_measured() { point.2 } else { f64::NAN });
    let edge: Vec<_> = points.iter().map(upper).collect();
    let (attributes, color) = (named(layer, "band"), layer.style.color);
    let filled = format!("<path{attributes} d=\"{path}\" style=\"fill:{color};fill-opacity:{BAND_OPACITY}\"/>");
    filled + &stroke(&joined(digits, &edge).0, "", Style { width: EDGE_WIDTH, ..layer.style })
}

/// How the symbol of a single value is drawn.
#[derive(Clone, Copy)]
struct Look {
    style: Style,
    radius: f64,
    width: f64,
    is_filled: bool,
}

impl Look {
    /// Returns the look of a symbol in a layer of many points.
    const fn small(style: Style) -> Self {
        Self { style, radius: RADIUS, width: 1.0, is_filled: false }
    }

    /// Returns the look of the symbol of an estimate.
    const fn large(style: Style, is_filled: bool) -> Self {
        Self { style, radius: LARGE_RADIUS, width: 1.8, is_filled }
    }
}

/// Returns a symbol at the position of the point (`x`, `y`). The shape of the symbol does not depend on the width of
/// the plot.
fn place(area: &Area<'_>, x: f64, y: f64, sign: &str) -> String {
    let (left, top) = (area.x(x), area.y(y));
    format!("<svg class=\"sign\" x=\"{left:.2}%\" y=\"{top:.1}\" data-at=\"{x}\" data-value=\"{y}\">{sign}</svg>")
}

/// Returns the symbol of a single value, drawn around the origin. Each dash pattern of `variant_style` has its own
/// shape, so that layers with different dash patterns differ not only in colour. Any other dash pattern has a cross,
/// like the last pattern of `variant_style`.
fn sign(Look { style, radius: r, width, is_filled }: Look) -> String {
    let fill = if is_filled { style.color } else { "none" };
    let look = format!("fill:{fill};stroke:{};stroke-width:{width}", style.color);
    let path = match style.dash {
        "" => return format!("<circle r=\"{r}\" style=\"{look}\"/>"),
        "6 3" => format!("M-{r} -{r}H{r}V{r}H-{r}Z"),
        "2 3" => format!("M0 -{r}L{r} 0L0 {r}L-{r} 0Z"),
        "9 3 2 3" => format!("M-{r} {r}L0 -{r}L{r} {r}Z"),
        _ => format!("M-{r} -{r}L{r} {r}M-{r} {r}L{r} -{r}"),
    };
    format!("<path d=\"{path}\" style=\"{look}\"/>")
}

/// Returns a drawing with a text of its values. The page's script shows this text among the chart's values. Without
/// scripts, the browser shows it when the pointer is on the drawing.
fn titled(words: &str, drawing: &str) -> String {
    format!("<g class=\"titled\"><title>{}</title>{drawing}</g>", escape(words))
}

/// Returns the coordinates `x` and `y` of a point, each with its confidence interval, as text.
fn estimate_words(chart: &Chart, x: [f64; 3], y: [f64; 3]) -> String {
    let one = |axis: &Axis, values: [f64; 3]| {
        let [low, value, high] = values.map(|value| if axis.is_logarithmic { 10f64.powf(value) } else { value });
        format!("{} {value:.3} ({low:.3} to {high:.3})", axis.label)
    };
    format!("{}; {}", one(&chart.x, x), one(&chart.y, y))
}

fn box_words([least, lower, median, upper, largest]: [f64; 5], mean: f64) -> String {
    let mean = if mean.is_finite() { format!(", mean {mean:.3}") } else { String::new() };
    format!("median {median:.3}, quartiles {lower:.3} and {upper:.3}, from {least:.3} to {largest:.3}{mean}")
}

/// Returns a straight line between two positions, each in percent from the left and in pixels from the top.
fn straight(from: (f64, f64), to: (f64, f64), color: &str, width: f64) -> String {
    let ((x1, y1), (x2, y2)) = (from, to);
    format!(
        "<line x1=\"{x1:.2}%\" y1=\"{y1:.1}\" x2=\"{x2:.2}%\" y2=\"{y2:.1}\" style=\"stroke:{color};stroke-width:{width}\"/>"
    )
}

/// Returns a point, a horizontal line for the interval of x, and a vertical line for the interval of y.
fn estimate(area: &Area<'_>, [left, x, right]: [f64; 3], [low, y, high]: [f64; 3], look: Look) -> String {
    let color = look.style.color;
    let line = |from: (f64, f64), to: (f64, f64)| {
        let at = |(x, y)| (area.x(x), area.y(y));
        straight(at(from), at(to), color, INTERVAL_WIDTH)
    };
    [line((left, y), (right, y)), line((x, low), (x, high)), place(area, x, y, &sign(look))].concat()
}

/// Returns a box plot: whiskers from the minimum to the maximum, a box from quartile to quartile, a bar at the median.
fn boxed(area: &Area<'_>, at: f64, [least, lower, median, upper, largest]: [f64; 5], style: Style) -> String {
    let line = |half: f64, from: f64, to: f64, width: f64| {
        straight((area.x(at - half), area.y(from)), (area.x(at + half), area.y(to)), style.color, width)
    };
    let [left, right, top, bottom] = [area.x(at - HALF_BOX), area.x(at + HALF_BOX), area.y(upper), area.y(lower)];
    let (width, height) = (right - left, (bottom - top).max(0.0));
    let look = format!("fill:{0};fill-opacity:{BAND_OPACITY};stroke:{0};stroke-width:1.5", style.color);
    [
        line(0.0, least, lower, 1.2),
        line(0.0, upper, largest, 1.2),
        line(HALF_END, least, least, 1.2),
        line(HALF_END, largest, largest, 1.2),
        format!(
            "<rect x=\"{left:.2}%\" y=\"{top:.1}\" width=\"{width:.2}%\" height=\"{height:.1}\" style=\"{look}\"/>"
        ),
        line(HALF_BOX, median, median, 2.5),
    ]
    .concat()
}

fn cross() -> String {
    format!(
        "<path d=\"M-{ARM} -{ARM}L{ARM} {ARM}M-{ARM} {ARM}L{ARM} -{ARM}\" style=\"stroke:var(--text);stroke-width:1.5\"/>"
    )
}
