//! The one place that knows the plotting library: a chart in our words becomes an SVG.
//!
//! Colours are CSS variables of the page, so that one SVG serves light, dark and print. The legend stands beside the
//! chart in HTML, because the library's leaves out dashes.

use kuva::plot::{BandPlot, LinePlot};
use kuva::render::annotations::{ReferenceLine, ShadedRegion};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::theme::Theme;

use super::format::escape;
use super::shapes;

/// What is drawn.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    /// Name of its own within the page.
    pub(super) id: String,
    /// What it shows, for those who cannot see it.
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// Names at 1, 2 and so on of the horizontal axis, in place of numbers; none for numbers.
    pub(super) categories: Vec<String>,
    pub(super) layers: Vec<Layer>,
    /// Values of `y`, labelled at the right edge.
    pub(super) horizontals: Vec<Mark>,
    /// Values of `x`, labelled above.
    pub(super) verticals: Vec<Mark>,
    pub(super) shades: Vec<Shade>,
}

/// An axis from `min` to `max`.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) label: &'static str,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// One thing in a chart, with its words in the legend.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) name: String,
    pub(super) style: Style,
    pub(super) shape: Shape,
}

/// What a layer is. A value that is not finite was not measured, and leaves a gap.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// Points joined by straight lines.
    Line(Vec<(f64, f64)>),
    /// Points joined by steps: each value holds until the next.
    Steps(Vec<(f64, f64)>),
    /// The area between two values: x, lower, upper.
    Band(Vec<(f64, f64, f64)>),
    /// Points on their own.
    Points(Vec<(f64, f64)>),
    /// A box over a value of x: minimum, quartiles and maximum, and the mean.
    Box(f64, [f64; 5], f64),
}

/// How a layer looks: in colour and, for those who see none, in its dashes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// A CSS colour.
    pub(super) color: &'static str,
    /// SVG dash pattern; empty for a solid line.
    pub(super) dash: &'static str,
    pub(super) width: f64,
}

/// A straight line through the whole chart.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) at: f64,
    /// What stands beside the line: short.
    pub(super) label: String,
    /// What stands in the legend.
    pub(super) name: String,
    /// SVG dash pattern; empty for a solid line.
    pub(super) dash: &'static str,
}

/// A stretch of the horizontal axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shade {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) color: &'static str,
    /// What stands in the legend, once for all shades of the name.
    pub(super) name: &'static str,
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 70.0;
/// Room for the label of a horizontal mark.
const RIGHT: f64 = 64.0;
/// Room for the labels of vertical marks.
const TOP: f64 = 30.0;
const BOTTOM: f64 = 56.0;
/// Heights of letters: large enough for a phone, where a chart is shown at 0.8 of its size.
const TICK_SIZE: u32 = 14;
const LABEL_SIZE: u32 = 15;
/// Width of a letter of a mark's label, at the most but for rare letters.
const LETTER_WIDTH: f64 = 7.5;
/// More vertical marks than this share one entry in the legend.
const MOST_NAMED_MARKS: usize = 12;
/// How the library's names of clipping areas begin; a chart has one.
const CLIP_ID: &str = "kuva-clip-";
const BAND_OPACITY: f64 = 0.2;
/// A band's upper edge, in the dashes of its world.
const EDGE_WIDTH: f64 = 0.9;
const SHADE_OPACITY: f64 = 0.6;
/// Colour of target and steps.
const MARK: &str = "var(--mark)";
const MARK_WIDTH: f64 = 1.5;

impl Axis {
    /// An axis that can be drawn, whatever the limits.
    pub(super) fn new(label: &'static str, min: f64, max: f64) -> Self {
        let min = if min.is_finite() { min } else { 0.0 };
        let max = if max.is_finite() && max > min { max } else { min + 1.0 };
        Self { label, min, max }
    }

    fn clamp(&self, value: f64) -> f64 {
        value.clamp(self.min, self.max)
    }

    fn contains(&self, value: f64) -> bool {
        (self.min..=self.max).contains(&value)
    }

    /// Where on the axis `value` lies: 0 at its start, 1 at its end.
    fn share(&self, value: f64) -> f64 {
        (self.clamp(value) - self.min) / (self.max - self.min)
    }
}

impl Chart {
    /// The chart as SVG that fills the width it is given, with its legend.
    pub(super) fn to_html(&self) -> String {
        let svg = self.with_own_ids(&kuva::render_to_svg(self.plots(), self.layout()));
        let label = escape(&self.title);
        let size = format!("width=\"{WIDTH}\" height=\"{HEIGHT}\"");
        let scalable = format!("viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\"");
        let svg = svg.replacen(&size, &scalable, 1);
        let svg = match svg.rsplit_once("</svg>") {
            Some((drawn, rest)) => format!("{drawn}{}{}</svg>{rest}", shapes::svg(self), self.mark_labels()),
            None => svg,
        };
        let scroll = format!("class=\"chart\" tabindex=\"0\" role=\"region\" aria-label=\"Chart: {label}\"");
        format!("<div {scroll}>{svg}</div>\n{}", self.legend())
    }

    /// The library numbers its clipping areas through the whole process, which would make equal reports unequal.
    fn with_own_ids(&self, svg: &str) -> String {
        let mut parts = svg.split(CLIP_ID);
        let mut own = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            own.push_str(&format!("clip-{}{rest}", self.id));
        }
        own
    }

    /// Bands below lines, and solid lines below dashed ones, so that of two equal lines both can be seen.
    fn plots(&self) -> Vec<Plot> {
        let mut layers: Vec<_> = self.layers.iter().collect();
        layers.sort_by_key(|layer| (!matches!(layer.shape, Shape::Band(_)), !layer.style.dash.is_empty()));
        let mut plots: Vec<Plot> = layers.into_iter().flat_map(|layer| self.layer_plots(layer)).collect();
        if plots.is_empty() {
            // The library draws no axes around nothing.
            let unseen = Style { color: "none", dash: "", width: 0.0 };
            plots.push(self.line(&[(self.x.min, self.y.min), (self.x.max, self.y.max)], unseen).into());
        }
        plots
    }

    fn layer_plots(&self, layer: &Layer) -> Vec<Plot> {
        let (x, y) = (|at| self.x.clamp(at), |value| self.y.clamp(value));
        let mut plots: Vec<Plot> = Vec::new();
        match &layer.shape {
            Shape::Line(points) | Shape::Steps(points) => {
                for part in points.split(|point| !point.1.is_finite()).filter(|part| !part.is_empty()) {
                    let line = self.line(part, layer.style);
                    let line = if matches!(layer.shape, Shape::Steps(_)) { line.with_step() } else { line };
                    plots.push(line.into());
                }
            }
            Shape::Band(points) => {
                let parts = points.split(|(_, low, high)| !low.is_finite() || !high.is_finite());
                for part in parts.filter(|part| !part.is_empty()) {
                    let [at, low, high] = [
                        part.iter().map(|point| x(point.0)).collect::<Vec<_>>(),
                        part.iter().map(|point| y(point.1)).collect(),
                        part.iter().map(|point| y(point.2)).collect(),
                    ];
                    let band = BandPlot::new(at, low, high).with_color(layer.style.color).with_opacity(BAND_OPACITY);
                    plots.push(band.into());
                    let edge: Vec<_> = part.iter().map(|point| (point.0, point.2)).collect();
                    plots.push(self.line(&edge, Style { width: EDGE_WIDTH, ..layer.style }).into());
                }
            }
            // Drawn over the library's picture.
            Shape::Points(_) | Shape::Box(..) => {}
        }
        plots
    }

    /// A line through points without a gap; a single point becomes a short line.
    fn line(&self, points: &[(f64, f64)], style: Style) -> LinePlot {
        let short = (self.x.max - self.x.min) / 200.0;
        let points = match points {
            &[(at, value)] => vec![(at - short, value), (at + short, value)],
            points => points.to_vec(),
        };
        let line = LinePlot::new()
            .with_data(points.into_iter().map(|(at, value)| (self.x.clamp(at), self.y.clamp(value))))
            .with_color(style.color)
            .with_stroke_width(style.width);
        if style.dash.is_empty() {
            line
        } else {
            line.with_line_style(kuva::plot::LineStyle::Custom(style.dash.to_owned()))
        }
    }

    fn layout(&self) -> Layout {
        let theme = Theme {
            background: "none".to_owned(),
            axis_color: "var(--axis)".to_owned(),
            grid_color: "var(--grid)".to_owned(),
            tick_color: "var(--axis)".to_owned(),
            text_color: "var(--text)".to_owned(),
            font_family: Some("inherit".to_owned()),
            ..Theme::light()
        };
        let mut layout = Layout::new((self.x.min, self.x.max), (self.y.min, self.y.max))
            .with_width(WIDTH)
            .with_height(HEIGHT)
            .with_x_label(self.x.label)
            .with_y_label(self.y.label)
            .with_theme(theme)
            .with_tick_size(TICK_SIZE)
            .with_label_size(LABEL_SIZE)
            .with_force_margins(LEFT, RIGHT)
            .with_force_margins_y(TOP, BOTTOM)
            .with_x_axis_min(self.x.min)
            .with_x_axis_max(self.x.max)
            .with_y_axis_min(self.y.min)
            .with_y_axis_max(self.y.max);
        if !self.categories.is_empty() {
            layout = layout.with_x_categories(self.categories.clone());
        }
        for shade in &self.shades {
            let region = ShadedRegion::vertical(shade.from.max(self.x.min), shade.to.min(self.x.max));
            layout = layout.with_shaded_region(region.with_color(shade.color).with_opacity(SHADE_OPACITY));
        }
        for mark in self.horizontals.iter().filter(|mark| self.y.contains(mark.at)) {
            let line = ReferenceLine::horizontal(mark.at).with_color(MARK).with_dasharray(mark.dash);
            layout = layout.with_reference_line(line.with_stroke_width(MARK_WIDTH));
        }
        for mark in self.verticals.iter().filter(|mark| self.x.contains(mark.at)) {
            let line = ReferenceLine::vertical(mark.at).with_color(MARK).with_dasharray(mark.dash);
            layout = layout.with_reference_line(line.with_stroke_width(MARK_WIDTH));
        }
        layout
    }

    /// Where a point stands in the picture, at the edge where it lies beyond.
    pub(super) fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let across = LEFT + self.x.share(x) * (WIDTH - LEFT - RIGHT);
        (across, HEIGHT - BOTTOM - self.y.share(y) * (HEIGHT - TOP - BOTTOM))
    }

    /// The labels of the marks, as SVG.
    fn mark_labels(&self) -> String {
        let mut labels = String::new();
        for mark in self.horizontals.iter().filter(|mark| self.y.contains(mark.at)) {
            let y = HEIGHT - BOTTOM - self.y.share(mark.at) * (HEIGHT - TOP - BOTTOM) + f64::from(TICK_SIZE) / 3.0;
            labels.push_str(&label(WIDTH - RIGHT + 6.0, y, "start", &mark.label));
        }
        let numbered = self.marks_are_numbered();
        for (index, mark) in self.verticals.iter().enumerate().filter(|(_, mark)| self.x.contains(mark.at)) {
            let text = if numbered { (index + 1).to_string() } else { mark.label.clone() };
            if self.verticals.len() <= MOST_NAMED_MARKS {
                labels.push_str(&label(self.label_middle(mark, &text), TOP - 10.0, "middle", &text));
            }
        }
        labels
    }

    /// Whether vertical marks stand too near each other for their labels, and have numbers instead.
    fn marks_are_numbered(&self) -> bool {
        let mut right = f64::NEG_INFINITY;
        self.verticals.iter().any(|mark| {
            let (middle, half) = (self.label_middle(mark, &mark.label), half_width(&mark.label));
            let overlaps = middle - half < right || half > WIDTH / 4.0;
            right = middle + half + LETTER_WIDTH;
            overlaps
        })
    }

    /// Where a vertical mark's label has its middle: above the mark, or as near as the chart's edges allow.
    fn label_middle(&self, mark: &Mark, label: &str) -> f64 {
        let half = half_width(label).min(WIDTH / 2.0);
        (LEFT + self.x.share(mark.at) * (WIDTH - LEFT - RIGHT)).clamp(half, WIDTH - half)
    }

    fn legend(&self) -> String {
        let mut entries: String = self.layers.iter().map(Layer::legend_entry).collect();
        entries.extend(self.horizontals.iter().map(|mark| mark.legend_entry(&mark.name)));
        match self.verticals.first() {
            Some(first) if self.verticals.len() > MOST_NAMED_MARKS => {
                entries.push_str(&first.legend_entry(&format!("{} steps, from {}", self.verticals.len(), first.name)));
            }
            _ => {
                let numbered = self.marks_are_numbered();
                entries.extend(self.verticals.iter().enumerate().map(|(index, mark)| {
                    let number = if numbered { format!("{}: ", index + 1) } else { String::new() };
                    mark.legend_entry(&format!("{number}{}", mark.name))
                }));
            }
        }
        for (index, Shade { color, name, .. }) in self.shades.iter().enumerate() {
            if self.shades.iter().position(|shade| shade.name == *name) == Some(index) {
                let shade =
                    format!("<rect width=\"28\" height=\"12\" style=\"fill:{color};opacity:{SHADE_OPACITY}\"/>");
                entries.push_str(&legend_entry(&shade, name));
            }
        }
        format!("<ul class=\"legend\">{entries}</ul>\n")
    }
}

fn half_width(label: &str) -> f64 {
    label.chars().count() as f64 * LETTER_WIDTH / 2.0
}

fn label(x: f64, y: f64, anchor: &str, text: &str) -> String {
    let text = escape(text);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{TICK_SIZE}\" text-anchor=\"{anchor}\">{text}</text>")
}

fn legend_entry(swatch: &str, name: &str) -> String {
    let svg = format!("<svg viewBox=\"0 0 28 12\" width=\"28\" height=\"12\" aria-hidden=\"true\">{swatch}</svg>");
    format!("<li>{svg} <span>{}</span></li>", escape(name))
}

fn line_swatch(y: f64, color: &str, width: f64, dash: &str) -> String {
    let dash = if dash.is_empty() { "none" } else { dash };
    format!(
        "<line x1=\"0\" y1=\"{y}\" x2=\"28\" y2=\"{y}\" style=\"stroke:{color};stroke-width:{width};stroke-dasharray:{dash}\"/>"
    )
}

impl Layer {
    fn legend_entry(&self) -> String {
        let Style { color, dash, width } = self.style;
        let swatch = match self.shape {
            Shape::Band(_) => {
                let area = format!("<rect width=\"28\" height=\"12\" style=\"fill:{color};opacity:{BAND_OPACITY}\"/>");
                area + &line_swatch(1.0, color, EDGE_WIDTH, dash)
            }
            Shape::Line(_) | Shape::Steps(_) => line_swatch(6.0, color, width, dash),
            Shape::Points(_) => shapes::point(14.0, 6.0, self.style),
            // The box stands over its name.
            Shape::Box(..) => return String::new(),
        };
        legend_entry(&swatch, &self.name)
    }
}

impl Mark {
    fn legend_entry(&self, name: &str) -> String {
        legend_entry(&line_swatch(6.0, MARK, MARK_WIDTH, self.dash), name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(layers: Vec<Layer>, verticals: Vec<Mark>) -> Chart {
        Chart {
            id: "test".to_owned(),
            title: "a chart".to_owned(),
            x: Axis::new("time (s)", 0.0, 10.0),
            y: Axis::new("delay (ms)", 0.0, 10.0),
            categories: Vec::new(),
            layers,
            horizontals: Vec::new(),
            verticals,
            shades: Vec::new(),
        }
    }

    fn mark(at: f64, label: &str) -> Mark {
        Mark { at, label: label.to_owned(), name: format!("the step to {label}"), dash: "2 3" }
    }

    const STYLE: Style = Style { color: "red", dash: "", width: 1.0 };

    /// A line across what was not measured would claim a measurement.
    #[test]
    fn what_was_not_measured_is_a_gap() {
        let points = |middle| vec![(1.0, 2.0), (2.0, 2.0), (3.0, middle), (4.0, 2.0), (5.0, 2.0)];
        let lines = |middle| {
            let line = Layer { name: String::new(), style: STYLE, shape: Shape::Line(points(middle)) };
            chart(vec![line], Vec::new()).plots().len()
        };
        assert_eq!((lines(2.0), lines(f64::NAN), lines(f64::INFINITY)), (1, 2, 2));
    }

    #[test]
    fn labels_that_would_overlap_become_numbers_with_their_words_in_the_legend() {
        let far = chart(Vec::new(), vec![mark(2.0, "load 9"), mark(8.0, "load 5")]).to_html();
        assert!(far.contains(">load 9</text>") && !far.contains("1: the step"), "{far}");
        let near = chart(Vec::new(), vec![mark(2.0, "load 9"), mark(2.1, "load 5")]).to_html();
        assert!(near.contains(">1</text>") && !near.contains(">load 9</text>"), "{near}");
        assert!(near.contains("1: the step to load 9") && near.contains("2: the step to load 5"), "{near}");
    }

    #[test]
    fn axes_without_a_length_are_given_one() {
        for (min, max) in [(0.0, 0.0), (3.0, 1.0), (f64::NAN, f64::NAN), (0.0, f64::INFINITY), (f64::NEG_INFINITY, 1.0)]
        {
            let axis = Axis::new("", min, max);
            assert!(axis.min.is_finite() && axis.max.is_finite() && axis.min < axis.max, "{min} {max}: {axis:?}");
        }
    }
}
