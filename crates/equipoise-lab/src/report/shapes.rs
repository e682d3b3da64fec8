//! What a chart's layers look like: lines, steps, bands, points, estimates and boxes.

use super::area::{Area, line_swatch};
use super::chart::{Chart, Layer, Shape, Style};

const BAND_OPACITY: f64 = 0.2;
/// A band's upper edge, in the dashes of its world.
const EDGE_WIDTH: f64 = 0.9;
/// Half the length of the line that stands for a single point of a line.
const HALF_DASH: f64 = 3.8;
/// Radius of a point, and of one of few.
const RADIUS: f64 = 2.6;
const LARGE_RADIUS: f64 = 4.6;
/// Width of the line along an interval.
const INTERVAL_WIDTH: f64 = 1.2;
/// Half the width of a box in units of the horizontal axis, and that of a whisker's end.
const HALF_BOX: f64 = 0.25;
const HALF_END: f64 = 0.12;
/// Half the length of a cross's arms, in pixels.
const ARM: f64 = 5.0;

/// All lines, steps and bands of a chart: bands below lines, and solid lines below dashed ones, so that of two equal
/// lines both can be seen.
pub(super) fn lines(chart: &Chart, area: &Area<'_>) -> String {
    let mut layers: Vec<_> = chart.layers.iter().collect();
    layers.sort_by_key(|layer| (!matches!(layer.shape, Shape::Band(_)), !layer.style.dash.is_empty()));
    let drawn = layers.into_iter().map(|Layer { style, shape, .. }| match shape {
        Shape::Line(points) => line(area, points, *style),
        Shape::Steps(points) => line(area, &corners(points), *style),
        Shape::Band(points) => band(area, points, *style),
        Shape::Points(_) | Shape::Estimate { .. } | Shape::Box(..) => String::new(),
    });
    drawn.collect()
}

/// All points and boxes of a chart, which are whole at the area's edges, too.
pub(super) fn signs(chart: &Chart, area: &Area<'_>) -> String {
    let mut drawn = String::new();
    for Layer { style, shape, .. } in &chart.layers {
        match shape {
            Shape::Points(points) => {
                let seen = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
                drawn.extend(seen.map(|&(x, y)| point(area.x(x), area.y(y), Sign::small(*style))));
            }
            Shape::Estimate { x, y, is_filled } if x.iter().chain(y).all(|value| value.is_finite()) => {
                drawn.push_str(&estimate(area, *x, *y, Sign::large(*style, *is_filled)));
            }
            Shape::Box(at, five, mean) if at.is_finite() && five.iter().all(|value| value.is_finite()) => {
                drawn.push_str(&boxed(area, *at, *five, *style));
                if mean.is_finite() {
                    drawn.push_str(&cross(area.x(*at), area.y(*mean)));
                }
            }
            _ => {}
        }
    }
    drawn
}

/// The sign of a layer in the legend.
pub(super) fn swatch(layer: &Layer) -> String {
    let Style { color, dash, width } = layer.style;
    let area = |opacity: f64| format!("<rect width=\"28\" height=\"12\" style=\"fill:{color};opacity:{opacity}\"/>");
    match layer.shape {
        Shape::Band(_) => area(BAND_OPACITY) + &line_swatch(1.0, color, EDGE_WIDTH, dash),
        Shape::Line(_) | Shape::Steps(_) => line_swatch(6.0, color, width, dash),
        Shape::Points(_) => point(14.0, 6.0, Sign::small(layer.style)),
        Shape::Estimate { is_filled, .. } => point(14.0, 6.0, Sign::large(layer.style, is_filled)),
        Shape::Box(..) => area(BAND_OPACITY) + &line_swatch(6.0, color, 2.5, ""),
    }
}

/// Lines through points, with a gap at each that is not finite.
fn line(area: &Area<'_>, points: &[(f64, f64)], style: Style) -> String {
    let mut path = String::new();
    for part in points.split(|(x, y)| !x.is_finite() || !y.is_finite()).filter(|part| !part.is_empty()) {
        let places = places(area, part.iter().copied());
        match places.as_slice() {
            [_] => {
                let (x, y) = (area.x(part[0].0), area.y(part[0].1));
                path.push_str(&format!("M{:.1} {y:.1}h{:.1}", x - HALF_DASH, 2.0 * HALF_DASH));
            }
            places => path.push_str(&format!("M{}", places.join("L"))),
        }
    }
    let Style { color, dash, width } = style;
    let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
    if path.is_empty() {
        return path;
    }
    format!("<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"{dash}/>")
}

/// Points in the picture; a point at the place of the one before adds nothing.
fn places(area: &Area<'_>, points: impl Iterator<Item = (f64, f64)>) -> Vec<String> {
    let mut places: Vec<_> = points.map(|(x, y)| format!("{:.1} {:.1}", area.x(x), area.y(y))).collect();
    places.dedup();
    places
}

/// The corners of steps: each value holds until the next, also if the next was not measured.
fn corners(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners = points.get(..1).unwrap_or_default().to_vec();
    corners.extend(points.windows(2).flat_map(|pair| [(pair[1].0, pair[0].1), pair[1]]));
    corners
}

/// The area between the lower and the upper values, and a line along the upper ones.
fn band(area: &Area<'_>, points: &[(f64, f64, f64)], style: Style) -> String {
    let measured = |(x, low, high): &(f64, f64, f64)| x.is_finite() && low.is_finite() && high.is_finite();
    let mut path = String::new();
    for part in points.split(|point| !measured(point)).filter(|part| !part.is_empty()) {
        let upper = part.iter().map(|&(x, _, high)| (x, high));
        let lower = part.iter().rev().map(|&(x, low, _)| (x, low));
        path.push_str(&format!("M{}Z", places(area, upper.chain(lower)).join("L")));
    }
    if path.is_empty() {
        return path;
    }
    let upper = |point: &(f64, f64, f64)| (point.0, if measured(point) { point.2 } else { f64::NAN });
    let edge: Vec<_> = points.iter().map(upper).collect();
    let area_path = format!("<path d=\"{path}\" fill=\"{}\" fill-opacity=\"{BAND_OPACITY}\"/>", style.color);
    area_path + &line(area, &edge, Style { width: EDGE_WIDTH, ..style })
}

/// How the sign of a single value looks.
#[derive(Clone, Copy)]
struct Sign {
    style: Style,
    radius: f64,
    width: f64,
    is_filled: bool,
}

impl Sign {
    /// One of many.
    const fn small(style: Style) -> Self {
        Self { style, radius: RADIUS, width: 1.0, is_filled: false }
    }

    /// One of few.
    const fn large(style: Style, is_filled: bool) -> Self {
        Self { style, radius: LARGE_RADIUS, width: 1.8, is_filled }
    }
}

/// The sign of a single value: a different one for each kind of dashes, so that colour is not the only difference.
fn point(x: f64, y: f64, Sign { style, radius, width, is_filled }: Sign) -> String {
    let (l, r, t, b) = (x - radius, x + radius, y - radius, y + radius);
    let fill = if is_filled { style.color } else { "none" };
    let look = format!("fill:{fill};stroke:{};stroke-width:{width}", style.color);
    let path = match style.dash {
        "" => return format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" style=\"{look}\"/>"),
        "6 3" => format!("M{l:.1} {t:.1}H{r:.1}V{b:.1}H{l:.1}Z"),
        "2 3" => format!("M{x:.1} {t:.1}L{r:.1} {y:.1}L{x:.1} {b:.1}L{l:.1} {y:.1}Z"),
        "9 3 2 3" => format!("M{l:.1} {b:.1}L{x:.1} {t:.1}L{r:.1} {b:.1}Z"),
        _ => format!("M{l:.1} {t:.1}L{r:.1} {b:.1}M{l:.1} {b:.1}L{r:.1} {t:.1}"),
    };
    format!("<path d=\"{path}\" style=\"{look}\"/>")
}

/// A point with a line along each of its intervals.
fn estimate(area: &Area<'_>, [left, x, right]: [f64; 3], [low, y, high]: [f64; 3], sign: Sign) -> String {
    let line = |from: (f64, f64), to: (f64, f64)| {
        let [x1, y1, x2, y2] = [area.x(from.0), area.y(from.1), area.x(to.0), area.y(to.1)];
        let look = format!("stroke:{};stroke-width:{INTERVAL_WIDTH}", sign.style.color);
        format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" style=\"{look}\"/>")
    };
    [line((left, y), (right, y)), line((x, low), (x, high)), point(area.x(x), area.y(y), sign)].concat()
}

/// Whiskers from the least to the largest, a box from quartile to quartile, a bar at the median.
fn boxed(area: &Area<'_>, at: f64, [least, lower, median, upper, largest]: [f64; 5], style: Style) -> String {
    let line = |half: f64, from: f64, to: f64, width: f64| {
        let [x1, x2, y1, y2] = [area.x(at - half), area.x(at + half), area.y(from), area.y(to)];
        let look = format!("stroke:{};stroke-width:{width}", style.color);
        format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" style=\"{look}\"/>")
    };
    let [left, right, top, bottom] = [area.x(at - HALF_BOX), area.x(at + HALF_BOX), area.y(upper), area.y(lower)];
    let (width, height) = (right - left, (bottom - top).max(0.0));
    let look = format!("fill:{0};fill-opacity:{BAND_OPACITY};stroke:{0};stroke-width:1.5", style.color);
    [
        line(0.0, least, lower, 1.2),
        line(0.0, upper, largest, 1.2),
        line(HALF_END, least, least, 1.2),
        line(HALF_END, largest, largest, 1.2),
        format!("<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" style=\"{look}\"/>"),
        line(HALF_BOX, median, median, 2.5),
    ]
    .concat()
}

fn cross(x: f64, y: f64) -> String {
    let (l, r, t, b) = (x - ARM, x + ARM, y - ARM, y + ARM);
    let path = format!("M{l:.1} {t:.1}L{r:.1} {b:.1}M{l:.1} {b:.1}L{r:.1} {t:.1}");
    format!("<path d=\"{path}\" style=\"stroke:var(--text);stroke-width:1.5\"/>")
}
