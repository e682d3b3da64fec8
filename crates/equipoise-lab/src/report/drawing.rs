//! How a chart becomes an SVG with a legend.
//!
//! Colours are CSS variables of the page, so that one SVG serves light, dark and print. The legend is HTML below the
//! SVG, so that it wraps on a narrow screen. The parts of the SVG are drawn by `axes`, `shapes` and `marks`.

use super::area::{Area, HEIGHT, WIDTH};
use super::chart::{Chart, Mark, Shade, Shape};
use super::format::escape;
use super::marks::MOST_NAMED_MARKS;
use super::{axes, marks, shapes};

const SHADE_OPACITY: f64 = 0.6;

impl Chart {
    /// The chart as an SVG that fills the width of the page, with its legend.
    pub fn to_html(&self) -> String {
        let area = Area::of(self);
        let label = escape(&self.title);
        format!(
            "<div class=\"chart\" tabindex=\"0\" role=\"region\" aria-label=\"Chart: {label}\">{}</div>\n{}",
            self.svg(&area),
            self.legend(&area)
        )
    }

    fn svg(&self, area: &Area<'_>) -> String {
        let (label, clip) = (escape(&self.title), format!("clip-{}", self.id));
        [
            format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" "),
            format!("aria-label=\"{label}\" font-family=\"inherit\" fill=\"var(--text)\">"),
            format!("<clipPath id=\"{clip}\">{}</clipPath>", rect(area, area.left, area.right, "")),
            axes::svg(self, area),
            format!("<g clip-path=\"url(#{clip})\">"),
            self.shades(area),
            shapes::lines(self, area),
            marks::lines(self, area),
            "</g>".to_owned(),
            shapes::signs(self, area),
            marks::labels(self, area),
            "</svg>".to_owned(),
        ]
        .concat()
    }

    fn shades(&self, area: &Area<'_>) -> String {
        let shade = |shade: &Shade| {
            let look = format!(" fill=\"{}\" fill-opacity=\"{SHADE_OPACITY}\"", shade.color);
            rect(area, area.x(shade.from), area.x(shade.to), &look)
        };
        self.shades.iter().filter(|shade| shade.from < shade.to).map(shade).collect()
    }

    fn legend(&self, area: &Area<'_>) -> String {
        let mut entries = String::new();
        let mut boxes = 0;
        for layer in &self.layers {
            if !matches!(layer.shape, Shape::Box(..)) {
                entries.push_str(&legend_entry(&shapes::swatch(layer), &layer.name));
            } else if axes::names_are_numbered(self, area) {
                boxes += 1;
                entries.push_str(&legend_entry(&shapes::swatch(layer), &format!("{boxes}: {}", layer.name)));
            }
        }
        let mark_entry = |mark: &Mark, name: &str| legend_entry(&marks::swatch(mark), name);
        entries.extend(self.horizontals.iter().map(|mark| mark_entry(mark, &mark.name)));
        match self.verticals.first() {
            Some(first) if self.verticals.len() > MOST_NAMED_MARKS => {
                entries.push_str(&mark_entry(first, &format!("{} steps, from {}", self.verticals.len(), first.name)));
            }
            _ => {
                let numbered = marks::are_numbered(self, area);
                entries.extend(self.verticals.iter().enumerate().map(|(index, mark)| {
                    let number = if numbered { format!("{}: ", index + 1) } else { String::new() };
                    mark_entry(mark, &format!("{number}{}", mark.name))
                }));
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

/// A rectangle over the whole height of the area, with further attributes.
fn rect(area: &Area<'_>, left: f64, right: f64, attributes: &str) -> String {
    let (top, width, height) = (area.top, right - left, area.bottom - area.top);
    format!("<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"{attributes}/>")
}

fn legend_entry(swatch: &str, name: &str) -> String {
    let svg = format!("<svg viewBox=\"0 0 28 12\" width=\"28\" height=\"12\" aria-hidden=\"true\">{swatch}</svg>");
    format!("<li>{svg} <span>{}</span></li>", escape(name))
}

#[cfg(test)]
mod tests {
    use proptest::num::f64::ANY;
    use proptest::prelude::*;

    use super::*;
    use crate::report::chart::{Axis, Layer, Style};

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

    fn layer(shape: Shape) -> Layer {
        Layer { name: "<layer>".to_owned(), style: Style { color: "red", dash: "", width: 1.0 }, shape }
    }

    fn mark(at: f64, label: &str) -> Mark {
        Mark { at, label: label.to_owned(), name: format!("the step to {label}"), dash: "2 3" }
    }

    /// The paths of the layers: for each the parts that are joined, and their corners.
    fn paths(chart: &Chart) -> Vec<Vec<Vec<(f64, f64)>>> {
        let svg = shapes::lines(chart, &Area::of(chart));
        svg.split("<path d=\"").skip(1).map(|path| corners(path.split('"').next().expect("an end"))).collect()
    }

    /// The parts of a path, and their corners.
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

    /// A line across what was not measured would claim a measurement.
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

    /// The area is 766 wide and 254 high, 70 from the left and 30 from the top; both axes run from 0 to 10.
    #[test]
    fn steps_hold_until_the_next_value() {
        let steps = |points: &[(f64, f64)]| paths(&chart(vec![layer(Shape::Steps(points.to_vec()))], Vec::new()));
        let at = |x: f64, y: f64| ((700.0 + 766.0 * x).round() / 10.0, (2840.0 - 254.0 * y).round() / 10.0);
        let expected = [at(0.0, 5.0), at(4.0, 5.0), at(4.0, 2.0), at(10.0, 2.0)];
        assert_eq!(steps(&[(0.0, 5.0), (4.0, 2.0), (10.0, 2.0)]), [vec![expected.to_vec()]]);
        let gap = steps(&[(0.0, 5.0), (4.0, f64::NAN), (6.0, 2.0), (8.0, 2.0)]);
        assert_eq!(gap, [vec![vec![at(0.0, 5.0), at(4.0, 5.0)], vec![at(6.0, 2.0), at(8.0, 2.0)]]]);
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
    fn names_that_would_overlap_become_numbers_with_their_words_in_the_legend() {
        let boxes = |count: u32| {
            let names: Vec<_> = (1..=count).map(|number| format!("a rather long name {number}")).collect();
            let layers = (1..=count).map(|number| layer(Shape::Box(f64::from(number), [1.0, 2.0, 3.0, 4.0, 5.0], 3.0)));
            let x = Axis::new("case", 0.5, f64::from(count) + 0.5);
            Chart { x, categories: names, ..chart(layers.collect(), Vec::new()) }.to_html()
        };
        assert!(boxes(3).contains(">a rather long name 3</text>") && !boxes(3).contains("3: "));
        assert!(
            boxes(9).contains(">9</text>") && boxes(9).contains("9: &lt;layer&gt;") && !boxes(9).contains("long name")
        );
    }

    /// Whether all tags of a document are closed in their order.
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

    /// Values of an attribute in all elements.
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
            let mut places: Vec<(f64, f64)> = values(&svg, "d").into_iter().flat_map(corners).flatten().collect();
            for (x, y) in [("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")] {
                let numbers = |name| values(&svg, name).into_iter().map(|number| number.parse::<f64>().expect("a number"));
                places.extend(numbers(x).zip(numbers(y)));
            }
            let within = |&(x, y): &(f64, f64)| (0.0..=WIDTH).contains(&x) && (0.0..=HEIGHT).contains(&y);
            prop_assert!(places.iter().all(within), "{svg}");
            for size in values(&svg, "width").into_iter().chain(values(&svg, "height")) {
                prop_assert!((0.0..=WIDTH).contains(&size.parse::<f64>().expect("a number")), "{svg}");
            }
        }
    }
}
