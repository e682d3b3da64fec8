//! Turns a chart into an SVG with a legend.
//!
//! Colours are CSS variables of the page, so the same SVG is used for light mode, dark mode and print. The coordinates
//! of lines are in the units of the axes, so that the page's script can read the values from the lines. To zoom, the
//! script changes the SVG `transform` of the lines. The legend is HTML below the SVG, so that it wraps on a narrow
//! screen. This module draws the shades; the modules `axes`, `shapes` and `marks` draw the other parts of the SVG.

use super::area::{Area, FORMS, HEIGHT, WIDTHS};
use super::marks::MOST_NAMED_MARKS;
use super::points::Digits;
use super::ticks::{FEWEST_STEPS, NUMBER_GAP, number_width, room_for_numbers, ticks};
use super::{Axis, Chart, Mark, Shade, Shape};
use super::{axes, marks, shapes};
use crate::report::escape;

const SHADE_OPACITY: f64 = 0.6;
/// Height below the plot area for the labels of the horizontal axis, in pixels.
const BELOW: f64 = 24.0;

impl Chart {
    /// Returns the chart as an SVG that fills the available width, followed by the chart's legend.
    pub fn to_html(&self) -> String {
        let area = Area::of(self);
        let (id, zoom) = (&self.id, if self.is_of_lines() { " data-zoom" } else { "" });
        let (x, y) = (axis_data("x", &self.x), axis_data("y", &self.y));
        let (up, across) = (escape(self.y.label), escape(self.x.label));
        let [left, right, top] = self.margins();
        format!(
            "<div class=\"chart\" id=\"{id}\"{x}{y}{zoom}>\n<p class=\"unit\">{up}</p>\n\
             <div class=\"frame\" style=\"padding:{top}px {right:.0}px {BELOW}px {left:.0}px\">{}</div>\n\
             <p class=\"unit across\">{across}</p>\n{}</div>\n",
            self.svg(&area),
            self.legend(&area)
        )
    }

    /// Whether the chart has only lines, steps, bands and points. The reader can zoom into such a chart.
    fn is_of_lines(&self) -> bool {
        self.layers.iter().all(|layer| !matches!(layer.shape, Shape::Box(..) | Shape::Estimate { .. }))
    }

    /// Returns the margins for labels to the left, to the right and above the plot area, in pixels.
    fn margins(&self) -> [f64; 3] {
        /// Height above the plot area with labels of vertical marks, and without such labels, in pixels.
        const LABELLED: f64 = 26.0;
        const BARE: f64 = 8.0;
        let last = ticks(&self.x, FEWEST_STEPS).last().map_or(0.0, |tick| number_width(&tick.label) / 2.0);
        let top = if self.verticals.is_empty() { BARE } else { LABELLED };
        [room_for_numbers(&self.y), last.max(NUMBER_GAP), top]
    }

    fn svg(&self, area: &Area<'_>) -> String {
        let (label, digits) = (escape(&self.title), Digits::of(self));
        let [x, y] = [&self.x, &self.y].map(|axis| 1.0 / (axis.max - axis.min));
        let [left, top] = [-self.x.min * x, self.y.max * y];
        [
            format!("<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" width=\"100%\" height=\"{HEIGHT}\" role=\"img\" "),
            format!("aria-label=\"Chart: {label}\">"),
            axes::svg(self, area),
            "<svg class=\"lines\" viewBox=\"0 0 1 1\" preserveAspectRatio=\"none\" width=\"100%\" height=\"100%\">".to_owned(),
            format!("<g class=\"upright\" transform=\"matrix({x:e} 0 0 1 {left:e} 0)\">"),
            self.shades(&digits),
            marks::verticals(self, &digits),
            format!("</g><g class=\"data\" transform=\"matrix({x:e} 0 0 {:e} {left:e} {top:e})\">", -y),
            shapes::lines(self, &digits),
            marks::horizontals(self, &digits),
            "</g></svg>".to_owned(),
            shapes::signs(self, area),
            marks::labels(self, area),
            "</svg>".to_owned(),
        ]
        .concat()
    }

    fn shades(&self, digits: &Digits<'_>) -> String {
        let shade = |shade: &Shade| {
            let [from, to] = [shade.from, shade.to].map(|end| digits.x(end));
            format!(
                "<path d=\"M{from} 0H{to}V1H{from}Z\" style=\"fill:{};fill-opacity:{SHADE_OPACITY}\"/>",
                shade.color
            )
        };
        self.shades.iter().filter(|shade| shade.from < shade.to).map(shade).collect()
    }

    fn legend(&self, area: &Area<'_>) -> String {
        let mut entries = String::new();
        let mut boxes = 0;
        let numbered_names = WIDTHS.map(|width| axes::names_are_numbered(self, area, width));
        for layer in &self.layers {
            if !matches!(layer.shape, Shape::Box(..)) {
                entries.push_str(&legend_entry(&shapes::swatch(layer), &layer.name));
            } else if numbered_names.contains(&true) {
                boxes += 1;
                entries.push_str(&numbered_entry(&shapes::swatch(layer), numbered_names, boxes, &layer.name));
            }
        }
        let mark_entry = |mark: &Mark, name: &str| legend_entry(&marks::swatch(mark), name);
        entries.extend(self.horizontals.iter().map(|mark| mark_entry(mark, &mark.name)));
        match self.verticals.first() {
            Some(first) if self.verticals.len() > MOST_NAMED_MARKS => {
                entries.push_str(&mark_entry(first, &format!("{} steps, from {}", self.verticals.len(), first.name)));
            }
            _ => {
                let numbered = WIDTHS.map(|width| marks::are_numbered(self, area, width));
                entries.extend(
                    self.verticals
                        .iter()
                        .zip(1..)
                        .map(|(mark, number)| numbered_entry(&marks::swatch(mark), numbered, number, &mark.name)),
                );
            }
        }
        for (index, Shade { color, name, .. }) in self.shades.iter().enumerate() {
            if self.shades.iter().position(|shade| shade.name == *name) == Some(index) {
                let look = format!("fill:{color};opacity:{SHADE_OPACITY}");
                entries.push_str(&legend_entry(&format!("<rect width=\"28\" height=\"12\" style=\"{look}\"/>"), name));
            }
        }
        format!("<ul class=\"legend\">{entries}</ul>\n")
    }
}

/// Returns the data of an axis for the page's script: the limits of the axis, and whether the axis is logarithmic.
fn axis_data(name: &str, axis: &Axis) -> String {
    let logarithmic = if axis.is_logarithmic { format!(" data-{name}-exponents") } else { String::new() };
    format!(" data-{name}=\"{} {}\"{logarithmic}", axis.min, axis.max)
}

fn legend_entry(swatch: &str, name: &str) -> String {
    entry(swatch, &escape(name))
}

/// Returns a legend entry. The labels of a chart have a wide and a narrow form. `is_numbered` states whether the wide
/// form, and whether the narrow form, shows `number` instead of `name`. In such a form, the entry begins with `number`.
fn numbered_entry(swatch: &str, is_numbered: [bool; 2], number: u32, name: &str) -> String {
    let number = match is_numbered {
        [true, true] => format!("{number}: "),
        [false, false] => String::new(),
        [is_wide, _] => format!("<span class=\"{}\">{number}: </span>", FORMS[usize::from(!is_wide)]),
    };
    entry(swatch, &(number + &escape(name)))
}

fn entry(swatch: &str, html: &str) -> String {
    let svg = format!("<svg viewBox=\"0 0 28 12\" width=\"28\" height=\"12\" aria-hidden=\"true\">{swatch}</svg>");
    format!("<li>{svg} <span>{html}</span></li>")
}

#[cfg(test)]
mod tests {
    use proptest::num::f64::ANY;
    use proptest::prelude::*;

    use super::*;
    use crate::report::chart::{Layer, Style};

    fn chart(layers: Vec<Layer>, verticals: Vec<Mark>) -> Chart {
        let (x, y) = (Axis::new("time (s)", 0.0, 10.0), Axis::new("delay (ms)", 0.0, 10.0));
        Chart { verticals, ..Chart::new("test".to_owned(), "a chart".to_owned(), x, y, layers) }
    }

    fn layer(shape: Shape) -> Layer {
        Layer { name: "<layer>".to_owned(), style: Style { color: "red", dash: "", width: 1.0 }, shape }
    }

    fn mark(at: f64, label: &str) -> Mark {
        Mark { at, label: label.to_owned(), name: format!("the step to {label}"), dash: "2 3" }
    }

    /// Returns the paths of the lines, steps and bands in a chart's SVG. Each path is a list of connected parts, and
    /// each part is a list of corners.
    fn paths(chart: &Chart) -> Vec<Vec<Vec<(f64, f64)>>> {
        let svg = shapes::lines(chart, &Digits::of(chart));
        svg.split(" d=\"").skip(1).map(|path| corners(path.split('"').next().expect("an end"))).collect()
    }

    /// Returns the connected parts of one SVG path; each part is a list of corners.
    fn corners(path: &str) -> Vec<Vec<(f64, f64)>> {
        let mut parts: Vec<Vec<(f64, f64)>> = Vec::new();
        let (mut x, mut y) = (0.0, 0.0);
        for (command, rest) in path.match_indices(char::is_alphabetic).map(|(at, command)| (command, &path[at + 1..])) {
            let end = rest.find(char::is_alphabetic).unwrap_or(rest.len());
            let numbers: Vec<f64> = rest[..end].split_whitespace().map(|number| number.parse().expect(path)).collect();
            match (command, numbers.as_slice()) {
                ("M" | "L", &[to_x, to_y]) => (x, y) = (to_x, to_y),
                ("H", &[to]) => x = to,
                ("V", &[to]) => y = to,
                ("h", &[by]) => x += by,
                ("v", &[by]) => y += by,
                ("Z", &[]) => continue,
                _ => panic!("{path}"),
            }
            if command == "M" {
                parts.push(Vec::new());
            }
            parts.last_mut().expect(path).push((x, y));
        }
        parts
    }

    /// If this test fails, a line crosses a gap in the measurements, so the chart suggests a measurement that does not
    /// exist.
    #[test]
    fn what_was_not_measured_is_a_gap() {
        let points = |middle| vec![(1.0, 2.0), (2.0, 2.0), (3.0, middle), (4.0, 2.0), (5.0, 2.0)];
        let lines = |middle| paths(&chart(vec![layer(Shape::Line(points(middle)))], Vec::new()))[0].len();
        assert_eq!((lines(2.0), lines(f64::NAN), lines(f64::INFINITY)), (1, 2, 2));
        let band = points(f64::NAN).into_iter().map(|(x, y)| (x, 1.0, y)).collect();
        let band = paths(&chart(vec![layer(Shape::Band(band))], Vec::new()));
        assert_eq!(band.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2], "the area and its edge");
        assert!(paths(&chart(vec![layer(Shape::Line(vec![(f64::NAN, 1.0)]))], Vec::new())).is_empty());
    }

    #[test]
    fn a_point_alone_is_a_dot() {
        let drawn = paths(&chart(
            vec![layer(Shape::Line(vec![(1.0, 2.0), (2.0, f64::NAN), (3.0, 2.0), (4.0, 2.0)]))],
            Vec::new(),
        ));
        let dot = vec![(1.0, 2.0), (1.0, 2.0)];
        assert_eq!(drawn, [vec![dot.clone(), vec![(3.0, 2.0), (4.0, 2.0)]], vec![dot]]);
    }

    #[test]
    fn steps_hold_until_the_next_value() {
        let steps = |points: &[(f64, f64)]| paths(&chart(vec![layer(Shape::Steps(points.to_vec()))], Vec::new()));
        let expected = [(0.0, 5.0), (4.0, 5.0), (4.0, 2.0), (10.0, 2.0), (10.0, 2.0)];
        assert_eq!(steps(&[(0.0, 5.0), (4.0, 2.0), (10.0, 2.0)]), [vec![expected.to_vec()]]);
        let gap = steps(&[(0.0, 5.0), (4.0, f64::NAN), (6.0, 2.0), (8.0, 2.0)]);
        assert_eq!(gap, [vec![vec![(0.0, 5.0), (4.0, 5.0)], vec![(6.0, 2.0), (8.0, 2.0), (8.0, 2.0)]]]);
    }

    /// If this test fails, a chart of a long run has too many points for a browser on a phone, or fewer than 1000
    /// points, which are too few.
    #[test]
    fn a_chart_has_a_few_thousand_points_at_most() {
        let points: Vec<_> = (0..200_000u32).map(|at| (f64::from(at) / 2e4, f64::from(at % 997) / 100.0)).collect();
        let line = || layer(Shape::Line(points.clone()));
        for lines in [1, 3] {
            let drawn = paths(&chart((0..lines).map(|_| line()).collect(), Vec::new()));
            let count: usize = drawn.iter().flatten().map(Vec::len).sum();
            assert!((1000..=4000).contains(&count), "{count} of {lines} lines");
        }
    }

    #[test]
    fn labels_that_would_overlap_become_numbers_with_their_words_in_the_legend() {
        let far = chart(Vec::new(), vec![mark(2.0, "load 9"), mark(8.0, "load 5")]).to_html();
        assert!(far.contains(">load 9</text>") && !far.contains("1: the step"), "{far}");
        let near = chart(Vec::new(), vec![mark(2.0, "load 9"), mark(2.1, "load 5")]).to_html();
        assert!(near.contains(">1</text>") && !near.contains(">load 9</text>"), "{near}");
        let on_a_phone = chart(Vec::new(), vec![mark(2.0, "a long load 9"), mark(5.0, "a long load 5")]).to_html();
        assert!(on_a_phone.contains(">1</text>") && on_a_phone.contains(">a long load 9</text>"), "{on_a_phone}");
        assert!(on_a_phone.contains("<span class=\"narrow\">1: </span>the step to"), "{on_a_phone}");
        assert!(near.contains("1: the step to load 9") && near.contains("2: the step to load 5"), "{near}");
    }

    #[test]
    fn names_that_would_overlap_become_numbers_with_their_words_in_the_legend() {
        let boxes = |count: u32| {
            let names: Vec<_> = (1..=count).map(|number| format!("a rather long name {number}")).collect();
            let layers = (1..=count).map(|number| layer(Shape::Box(f64::from(number), [1.0, 2.0, 3.0, 4.0, 5.0], 3.0)));
            let x = Axis::new("case", 0.5, f64::from(count) + 0.5);
            Chart { x, categories: names, ..chart(layers.collect(), Vec::new()) }.to_html()
        };
        assert!(boxes(3).contains(">a rather long name 3</text>") && !boxes(3).contains(">3: &lt;"));
        assert!(
            boxes(9).contains(">9</text>") && boxes(9).contains("9: &lt;layer&gt;") && !boxes(9).contains("long name")
        );
    }

    /// Whether a document's tags are closed in the correct order, without stray quotes and angle brackets.
    fn is_balanced(document: &str) -> bool {
        let mut open = Vec::new();
        for tag in document.split('<').skip(1) {
            let Some((tag, text)) = tag.split_once('>') else { return false };
            let name = tag.split(' ').next().unwrap_or_default();
            match name.strip_prefix('/') {
                Some(name) if open.pop() != Some(name) => return false,
                None if !tag.ends_with('/') => open.push(name),
                _ => {}
            }
            if text.contains('>') || tag.matches('"').count() % 2 != 0 {
                return false;
            }
        }
        open.is_empty()
    }

    /// Returns the values of an attribute in all elements of an SVG.
    fn values<'a>(svg: &'a str, name: &str) -> Vec<&'a str> {
        svg.split(&format!(" {name}=\"")).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    fn any_chart() -> impl Strategy<Value = Chart> {
        let points = || proptest::collection::vec((ANY, ANY, ANY), 0..6);
        let places = proptest::collection::vec((ANY, -1.0..12.0f64), 0..20);
        (points(), places, (ANY, ANY, ANY, ANY), any::<bool>(), 0usize..60).prop_map(
            |(any, places, limits, small, names)| {
                let pairs: Vec<_> = any.iter().map(|point| (point.0, point.1)).chain(places.clone()).collect();
                let mut layers = vec![
                    layer(Shape::Line(pairs.clone())),
                    layer(Shape::Steps(pairs.clone())),
                    layer(Shape::Points(pairs)),
                    layer(Shape::Band(any.clone())),
                ];
                layers.extend(any.iter().map(|&(x, y, z)| layer(Shape::Box(x, [y, z, y, z, y], z))));
                layers.extend(
                    any.iter()
                        .map(|&(x, y, z)| layer(Shape::Estimate { x: [x, y, z], y: [z, y, x], is_filled: small })),
                );
                let marks: Vec<_> = places.iter().map(|place| mark(place.1, "\"mark\" & co")).collect();
                let (x, y) =
                    if small { ((0.0, 10.0), (-1.0, 10.0)) } else { ((limits.0, limits.1), (limits.2, limits.3)) };
                Chart {
                    x: Axis::new("x", x.0, x.1),
                    y: Axis::new("y", y.0, y.1),
                    categories: vec!["<name>".to_owned(); names],
                    horizontals: marks.clone(),
                    shades: any.iter().map(|&(from, to, _)| Shade { from, to, color: "red", name: "" }).collect(),
                    ..chart(layers, marks)
                }
            },
        )
    }

    proptest! {
        #[test]
        fn any_chart_is_well_formed_and_within_its_picture(chart in any_chart()) {
            prop_assert!(is_balanced(&chart.to_html()));
            let svg = chart.svg(&Area::of(&chart));
            let far = |axis: &Axis| 1.001e3 * (axis.max - axis.min) + axis.min.abs().max(axis.max.abs());
            for (x, y) in values(&shapes::lines(&chart, &Digits::of(&chart)), "d").into_iter().flat_map(corners).flatten() {
                prop_assert!(x.abs() <= far(&chart.x) && y.abs() <= far(&chart.y), "{x} {y}");
            }
            let across = ["x", "x1", "x2"].into_iter().flat_map(|name| values(&svg, name));
            for place in across.filter_map(|place| place.strip_suffix('%')) {
                prop_assert!((0.0..=100.0).contains(&place.parse::<f64>().expect("a number")), "{svg}");
            }
            for place in ["y", "y1", "y2"].into_iter().flat_map(|name| values(&svg, name)) {
                prop_assert!((-20.0..=HEIGHT + BELOW).contains(&place.parse::<f64>().expect("a number")), "{svg}");
            }
            for size in values(&svg, "height").into_iter().filter(|size| !size.ends_with('%')) {
                prop_assert!((0.0..=HEIGHT).contains(&size.parse::<f64>().expect("a number")), "{svg}");
            }
        }
    }
}
