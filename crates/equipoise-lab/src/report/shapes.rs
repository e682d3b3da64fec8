//! Points and boxes, which are drawn over the library's picture: its own boxes have other whiskers than papers have.

use super::chart::{Chart, Shape, Style};

/// Radius of a point.
const RADIUS: f64 = 2.6;
/// Half the width of a box in units of the horizontal axis, and that of a whisker's end.
const HALF_BOX: f64 = 0.25;
const HALF_END: f64 = 0.12;
/// Half the length of a cross's arms, in pixels.
const ARM: f64 = 5.0;

/// All points and boxes of a chart.
pub(super) fn svg(chart: &Chart) -> String {
    let mut drawn = String::new();
    for layer in &chart.layers {
        match &layer.shape {
            Shape::Points(points) => {
                let seen = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
                drawn.extend(seen.map(|&(x, y)| {
                    let (x, y) = chart.place(x, y);
                    point(x, y, layer.style)
                }));
            }
            Shape::Box(at, five, mean) if five.iter().all(|value| value.is_finite()) => {
                drawn.push_str(&boxed(chart, *at, *five, layer.style));
                if mean.is_finite() {
                    drawn.push_str(&cross(chart.place(*at, *mean)));
                }
            }
            _ => {}
        }
    }
    drawn
}

/// A sign that stands for a single value, another for each kind of dashes: colour is not the only thing that tells.
pub(super) fn point(x: f64, y: f64, style: Style) -> String {
    let (l, r, t, b) = (x - RADIUS, x + RADIUS, y - RADIUS, y + RADIUS);
    let path = match style.dash {
        "" => {
            let look = look(style);
            return format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{RADIUS}\" style=\"{look}\"/>");
        }
        "6 3" => format!("M{l:.1} {t:.1}H{r:.1}V{b:.1}H{l:.1}Z"),
        "2 3" => format!("M{x:.1} {t:.1}L{r:.1} {y:.1}L{x:.1} {b:.1}L{l:.1} {y:.1}Z"),
        "9 3 2 3" => format!("M{l:.1} {b:.1}L{x:.1} {t:.1}L{r:.1} {b:.1}Z"),
        _ => format!("M{l:.1} {t:.1}L{r:.1} {b:.1}M{l:.1} {b:.1}L{r:.1} {t:.1}"),
    };
    format!("<path d=\"{path}\" style=\"{}\"/>", look(style))
}

fn look(style: Style) -> String {
    format!("fill:none;stroke:{};stroke-width:1", style.color)
}

/// Whiskers from the least to the largest, a box from quartile to quartile, a bar at the median.
fn boxed(chart: &Chart, at: f64, [least, lower, median, upper, largest]: [f64; 5], style: Style) -> String {
    let line = |from: (f64, f64), to: (f64, f64), width: f64| {
        let ((x1, y1), (x2, y2)) = (chart.place(from.0, from.1), chart.place(to.0, to.1));
        let look = format!("stroke:{};stroke-width:{width}", style.color);
        format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" style=\"{look}\"/>")
    };
    let ((left, top), (right, bottom)) = (chart.place(at - HALF_BOX, upper), chart.place(at + HALF_BOX, lower));
    let (width, height) = (right - left, bottom - top);
    let look = format!("fill:{0};fill-opacity:0.2;stroke:{0};stroke-width:1.5", style.color);
    [
        line((at, least), (at, lower), 1.2),
        line((at, upper), (at, largest), 1.2),
        line((at - HALF_END, least), (at + HALF_END, least), 1.2),
        line((at - HALF_END, largest), (at + HALF_END, largest), 1.2),
        format!("<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" style=\"{look}\"/>"),
        line((at - HALF_BOX, median), (at + HALF_BOX, median), 2.5),
    ]
    .concat()
}

fn cross((x, y): (f64, f64)) -> String {
    let (l, r, t, b) = (x - ARM, x + ARM, y - ARM, y + ARM);
    format!(
        "<path d=\"M{l:.1} {t:.1}L{r:.1} {b:.1}M{l:.1} {b:.1}L{r:.1} {t:.1}\" style=\"stroke:var(--text);stroke-width:1.5\"/>"
    )
}
