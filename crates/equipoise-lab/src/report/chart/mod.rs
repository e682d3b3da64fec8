//! The data of a chart. The modules below draw the chart from this data.

mod area;
mod axes;
mod drawing;
mod marks;
mod points;
mod shapes;
mod ticks;

/// A chart before it is drawn.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Identifier, unique within the page.
    pub id: String,
    /// What the chart shows, for screen readers.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Names shown at the positions 1, 2 and so on of the horizontal axis; empty if the axis shows its values.
    pub categories: Vec<String>,
    /// The layers of the chart. Bands with a solid edge are drawn first, then bands with a dashed edge, solid lines,
    /// dashed lines, and finally symbols and boxes. Within each of these groups, later layers are drawn above earlier
    /// ones.
    pub layers: Vec<Layer>,
    /// Horizontal lines at values of the vertical axis, labelled at the right edge.
    pub horizontals: Vec<Mark>,
    /// Vertical lines at values of the horizontal axis, labelled above the plot area.
    pub verticals: Vec<Mark>,
    /// Shaded ranges of the horizontal axis, drawn behind the marks and the layers.
    pub shades: Vec<Shade>,
}

impl Chart {
    /// Returns a chart of layers over two axes, without categories, marks and shades.
    pub fn new(id: String, title: String, x: Axis, y: Axis, layers: Vec<Layer>) -> Self {
        let [horizontals, verticals] = [Vec::new(), Vec::new()];
        Self { id, title, x, y, categories: Vec::new(), layers, horizontals, verticals, shades: Vec::new() }
    }
}

/// An axis from `min` to `max`.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Label of the axis, with the unit.
    pub label: &'static str,
    /// Lower limit of the axis.
    pub min: f64,
    /// Upper limit of the axis, which is above `min`.
    pub max: f64,
    /// Whether the axis is logarithmic. If so, limits and values are decimal logarithms, and the labels show powers of
    /// ten.
    pub is_logarithmic: bool,
}

/// One layer of a chart, with its name in the legend.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Name of the layer in the legend.
    pub name: String,
    /// Colour and dash pattern of the layer.
    pub style: Style,
    /// Shape and values of the layer.
    pub shape: Shape,
}

/// Shape and values of a layer. A value that is not finite was not measured, and leaves a gap.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Points joined by straight lines.
    Line(Vec<(f64, f64)>),
    /// Points joined by steps: each value applies until the next point.
    Steps(Vec<(f64, f64)>),
    /// The area between two curves, as points of x, lower value and upper value.
    Band(Vec<(f64, f64, f64)>),
    /// Single points, not joined.
    Points(Vec<(f64, f64)>),
    /// A point with an interval for each coordinate: lower end, value and upper end.
    Estimate {
        /// Lower end, value and upper end on the horizontal axis.
        x: [f64; 3],
        /// Lower end, value and upper end on the vertical axis.
        y: [f64; 3],
        /// Whether the point is drawn filled, so that it is more visible.
        is_filled: bool,
    },
    /// A box plot. The fields are its position on the horizontal axis, then minimum, quartiles and maximum, then the
    /// mean.
    Box(f64, [f64; 5], f64),
}

/// How a layer is drawn: its colour and, for readers who cannot distinguish colours, its dash pattern.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// A CSS colour.
    pub color: &'static str,
    /// SVG dash pattern; empty for a solid line.
    pub dash: &'static str,
    /// Width of a line, in pixels.
    pub width: f64,
}

/// A straight line across the whole chart.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Position of the line on the axis that it crosses.
    pub at: f64,
    /// The short label at the end of the line.
    pub label: String,
    /// Name of the line in the legend.
    pub name: String,
    /// SVG dash pattern; empty for a solid line.
    pub dash: &'static str,
}

/// A shaded range of the horizontal axis.
#[derive(Clone, Copy, Debug)]
pub struct Shade {
    /// Lower end of the range.
    pub from: f64,
    /// Upper end of the range.
    pub to: f64,
    /// A CSS colour.
    pub color: &'static str,
    /// Name of the shade in the legend. Shades with the same name share one entry.
    pub name: &'static str,
}

impl Axis {
    /// Returns an axis that can always be drawn, whatever `min` and `max` are: the axis has finite limits, and is so
    /// long that floats can distinguish the values on it.
    pub fn new(label: &'static str, min: f64, max: f64) -> Self {
        /// Largest limit and shortest length of an axis. With these bounds, differences of limits stay finite, and
        /// fractions of a length stay above zero.
        const LARGEST: f64 = 1e300;
        const SHORTEST: f64 = 1e-300;
        /// Minimum length of an axis, as a share of the magnitude of `min`. On a shorter axis, the labels of two ticks
        /// could be equal.
        const SHORTEST_SHARE: f64 = 1e-6;
        let min = if min.is_finite() { min.clamp(-LARGEST, LARGEST) } else { 0.0 };
        let length = if max.is_finite() && max > min { max.min(LARGEST) - min } else { 1.0 };
        Self { label, min, max: min + length.max(min.abs() * SHORTEST_SHARE).max(SHORTEST), is_logarithmic: false }
    }

    /// Returns a logarithmic axis from 10 to the power `min` to 10 to the power `max`.
    pub fn logarithmic(label: &'static str, min: i32, max: i32) -> Self {
        Self { is_logarithmic: true, ..Self::new(label, min.into(), max.into()) }
    }

    fn contains(&self, value: f64) -> bool {
        (self.min..=self.max).contains(&value)
    }

    /// Position of `value` on the axis as a share of the axis: 0 at or before the start, 1 at or after the end.
    fn share(&self, value: f64) -> f64 {
        (value.clamp(self.min, self.max) - self.min) / (self.max - self.min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_without_a_length_are_given_one() {
        for (min, max) in [
            (0.0, 0.0),
            (3.0, 1.0),
            (f64::NAN, f64::NAN),
            (0.0, f64::INFINITY),
            (f64::NEG_INFINITY, 1.0),
            (1e300, 1e300),
            (f64::MIN, f64::MAX),
            (0.0, f64::from_bits(1)),
        ] {
            let axis = Axis::new("", min, max);
            assert!(axis.min.is_finite() && (axis.max - axis.min).is_finite(), "{min} {max}: {axis:?}");
            assert!(axis.min < axis.min / 2.0 + axis.max / 2.0, "{min} {max}: {axis:?}");
        }
    }
}
