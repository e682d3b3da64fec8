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

/// What is drawn.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    /// Name of its own within the page.
    pub(super) id: String,
    /// What it shows, for those who cannot see it.
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) layers: Vec<Layer>,
    pub(super) horizontals: Vec<f64>,
    pub(super) verticals: Vec<f64>,
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

/// What a layer is.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// Points joined by straight lines.
    Line(Vec<(f64, f64)>),
    /// Points joined by steps: each value holds until the next.
    Steps(Vec<(f64, f64)>),
    /// The area between two values: x, lower, upper.
    Band(Vec<(f64, f64, f64)>),
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

/// A stretch of the horizontal axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shade {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) color: &'static str,
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 340.0;
/// How the library's names of clipping areas begin; a chart has one.
const CLIP_ID: &str = "kuva-clip-";
const BAND_OPACITY: f64 = 0.22;
const SHADE_OPACITY: f64 = 0.35;
/// Colour of target and steps.
pub(super) const MARK: &str = "var(--mark)";

impl Chart {
    /// The chart as SVG that fills the width it is given, with its legend.
    pub(super) fn to_html(&self) -> String {
        let svg = self.with_own_ids(&kuva::render_to_svg(self.plots(), self.layout()));
        let label = escape(&self.title);
        let size = format!("width=\"{WIDTH}\" height=\"{HEIGHT}\"");
        let scalable = format!("viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\"");
        let svg = svg.replacen(&size, &scalable, 1);
        format!("<div class=\"chart\">{svg}</div>\n{}", self.legend())
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

    fn plots(&self) -> Vec<Plot> {
        let x = |at: f64| at.clamp(self.x.min, self.x.max);
        let y = |at: f64| at.clamp(self.y.min, self.y.max);
        let mut plots = Vec::new();
        for layer in &self.layers {
            let style = layer.style;
            let line = |points: &[(f64, f64)]| {
                let line = LinePlot::new()
                    .with_data(points.iter().map(|&(at, value)| (x(at), y(value))))
                    .with_color(style.color)
                    .with_stroke_width(style.width);
                if style.dash.is_empty() {
                    line
                } else {
                    line.with_line_style(kuva::plot::LineStyle::Custom(style.dash.to_owned()))
                }
            };
            plots.push(match &layer.shape {
                Shape::Line(points) => line(points).into(),
                Shape::Steps(points) => line(points).with_step().into(),
                Shape::Band(points) => BandPlot::new(
                    points.iter().map(|point| x(point.0)),
                    points.iter().map(|point| y(point.1)),
                    points.iter().map(|point| y(point.2)),
                )
                .with_color(style.color)
                .with_opacity(BAND_OPACITY)
                .into(),
            });
        }
        plots
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
            .with_force_margins(70.0, 16.0)
            .with_force_margins_y(12.0, 54.0)
            .with_x_axis_min(self.x.min)
            .with_x_axis_max(self.x.max)
            .with_y_axis_min(self.y.min)
            .with_y_axis_max(self.y.max);
        for shade in &self.shades {
            let region = ShadedRegion::vertical(shade.from.max(self.x.min), shade.to.min(self.x.max));
            layout = layout.with_shaded_region(region.with_color(shade.color).with_opacity(SHADE_OPACITY));
        }
        for &at in &self.horizontals {
            layout = layout.with_reference_line(ReferenceLine::horizontal(at).with_color(MARK).with_stroke_width(1.5));
        }
        for &at in &self.verticals {
            let line = ReferenceLine::vertical(at).with_color(MARK).with_dasharray("2 3");
            layout = layout.with_reference_line(line);
        }
        layout
    }

    fn legend(&self) -> String {
        let entries: String = self.layers.iter().map(Layer::legend_entry).collect();
        format!("<ul class=\"legend\">{entries}</ul>\n")
    }
}

impl Layer {
    fn legend_entry(&self) -> String {
        let Style { color, dash, width } = self.style;
        let swatch = match self.shape {
            Shape::Band(_) => {
                format!("<rect width=\"28\" height=\"12\" style=\"fill:{color};opacity:{BAND_OPACITY}\"/>")
            }
            Shape::Line(_) | Shape::Steps(_) => format!(
                "<line x1=\"0\" y1=\"6\" x2=\"28\" y2=\"6\" style=\"stroke:{color};stroke-width:{width};stroke-dasharray:{dash}\"/>"
            ),
        };
        let svg = format!("<svg viewBox=\"0 0 28 12\" width=\"28\" height=\"12\" aria-hidden=\"true\">{swatch}</svg>");
        format!("<li>{svg} {}</li>", escape(&self.name))
    }
}

/// A legend entry for a mark that is no layer: a target, a step, a shade.
pub(super) fn mark_entry(name: &str, dash: &str) -> String {
    let line = format!(
        "<line x1=\"0\" y1=\"6\" x2=\"28\" y2=\"6\" style=\"stroke:{MARK};stroke-width:1.5;stroke-dasharray:{dash}\"/>"
    );
    format!(
        "<li><svg viewBox=\"0 0 28 12\" width=\"28\" height=\"12\" aria-hidden=\"true\">{line}</svg> {}</li>",
        escape(name)
    )
}
