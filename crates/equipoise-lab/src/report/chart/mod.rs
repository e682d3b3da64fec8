//! The data of a chart; the modules below turn it into a picture.

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
    /// What it shows, for screen readers.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Names at 1, 2 and so on of the horizontal axis, instead of numbers; empty for numbers.
    pub categories: Vec<String>,
    /// The layers, from the lowest to the highest.
    pub layers: Vec<Layer>,
    /// Horizontal lines at values of `y`, labelled at the right edge.
    pub horizontals: Vec<Mark>,
    /// Vertical lines at values of `x`, labelled above the plot area.
    pub verticals: Vec<Mark>,
    /// Ranges of `x` that are shaded, behind everything else.
    pub shades: Vec<Shade>,
}

impl Chart {
    /// A chart of layers over two axes, without categories, marks and shades.
    pub fn new(id: String, title: String, x: Axis, y: Axis, layers: Vec<Layer>) -> Self {
        let [horizontals, verticals] = [Vec::new(), Vec::new()];
        Self { id, title, x, y, categories: Vec::new(), layers, horizontals, verticals, shades: Vec::new() }
    }
}

/// An axis from `min` to `max`.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its label, with the unit.
    pub label: &'static str,
    /// Its lower end.
    pub min: f64,
    /// Its upper end; above `min`.
    pub max: f64,
    /// Whether its values are powers of ten, stored as their exponents.
    pub is_logarithmic: bool,
}

/// One layer of a chart, with its name in the legend.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Its name in the legend.
    pub name: String,
    /// Its colour and dashes.
    pub style: Style,
    /// Its shape and values.
    pub shape: Shape,
}

/// Shape and values of a layer. A value that is not finite was not measured, and leaves a gap.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Points joined by straight lines.
    Line(Vec<(f64, f64)>),
    /// Points joined by steps: each value holds until the next.
    Steps(Vec<(f64, f64)>),
    /// The area between two values: x, lower, upper.
    Band(Vec<(f64, f64, f64)>),
    /// Single points.
    Points(Vec<(f64, f64)>),
    /// A point with an interval of each of its coordinates: lower end, value and upper end.
    Estimate {
        /// On the horizontal axis.
        x: [f64; 3],
        /// On the vertical axis.
        y: [f64; 3],
        /// Whether the point is filled, to stand out.
        is_filled: bool,
    },
    /// A box plot at a value of x: minimum, quartiles and maximum, and the mean.
    Box(f64, [f64; 5], f64),
}

/// How a layer looks: its colour and, for readers who cannot tell colours apart, its dashes.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// A CSS colour.
    pub color: &'static str,
    /// SVG dash pattern; empty for a solid line.
    pub dash: &'static str,
    /// Width of a line, in units of the SVG.
    pub width: f64,
}

/// A straight line across the whole chart.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Its position on its axis.
    pub at: f64,
    /// The short label at the line.
    pub label: String,
    /// Its name in the legend.
    pub name: String,
    /// SVG dash pattern; empty for a solid line.
    pub dash: &'static str,
}

/// A range of the horizontal axis.
#[derive(Clone, Copy, Debug)]
pub struct Shade {
    /// Its lower end.
    pub from: f64,
    /// Its upper end.
    pub to: f64,
    /// A CSS colour.
    pub color: &'static str,
    /// Its name in the legend, once for all shades of that name.
    pub name: &'static str,
}

impl Axis {
    /// An axis that can be drawn, for any limits: finite, and long enough for the precision of a float.
    pub fn new(label: &'static str, min: f64, max: f64) -> Self {
        /// Largest limit and shortest length: differences of limits stay finite, and fractions of a length stay above
        /// zero.
        const LARGEST: f64 = 1e300;
        const SHORTEST: f64 = 1e-300;
        /// Shortest length, relative to the magnitude of the limits, so that ticks stay distinct.
        const SHORTEST_SHARE: f64 = 1e-6;
        let min = if min.is_finite() { min.clamp(-LARGEST, LARGEST) } else { 0.0 };
        let length = if max.is_finite() && max > min { max.min(LARGEST) - min } else { 1.0 };
        Self { label, min, max: min + length.max(min.abs() * SHORTEST_SHARE).max(SHORTEST), is_logarithmic: false }
    }

    /// A logarithmic axis from one power of ten to another. The values on it are exponents as well.
    pub fn logarithmic(label: &'static str, min: i32, max: i32) -> Self {
        Self { is_logarithmic: true, ..Self::new(label, min.into(), max.into()) }
    }

    fn contains(&self, value: f64) -> bool {
        (self.min..=self.max).contains(&value)
    }

    /// Position of `value` on the axis: 0 at its start or before, 1 at its end or after.
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
