use super::paper_html;
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Reading, Results, Table, Verdict};

pub(super) fn results(verdict: Verdict, data: PlotData) -> Results {
    let claim = Claim {
        id: "fig1.x".to_owned(),
        figure: "Fig. 1".to_owned(),
        statement: "a < b".to_owned(),
        rule: "The whole interval lies above 1.".to_owned(),
        paper: None,
        ours: Some(1234.5),
        ci95: Some([1200.0, 1300.0]),
        unit: "ms".to_owned(),
        runs: 30,
        holds: None,
        verdict,
        note: "because & so on".to_owned(),
    };
    let plot = Plot {
        title: "a chart".to_owned(),
        x: "time (s)",
        y: "delay (ms)",
        y_limits: Some((0.0, 10.0)),
        layers: vec![PlotLayer { name: "<script>".to_owned(), data }],
        marks: vec![(8.2, "target".to_owned())],
    };
    let table = Table {
        caption: "numbers".to_owned(),
        columns: vec!["law".to_owned(), "delay".to_owned()],
        rows: vec![vec!["<b>".to_owned(), "8.2 ms".to_owned()]],
    };
    let reading = Reading { name: "read <otherwise>".to_owned(), claims: vec![claim.clone()] };
    Results {
        paper: "Waki 2013".to_owned(),
        claims: vec![claim],
        readings: vec![reading],
        world: equipoise_lab::result::World::Sim,
        seed: 1,
        runs: None,
        quick: false,
        version: "0.0.0".to_owned(),
        assumptions: vec!["none".to_owned()],
        figures: vec![Figure {
            name: "Fig. 1".to_owned(),
            title: "a figure".to_owned(),
            text: String::new(),
            charts: vec![plot],
            tables: vec![table],
        }],
    }
}

#[test]
fn names_are_text_and_verdicts_have_their_words() {
    for (verdict, words) in [
        (Verdict::Reproduced, ">reproduced</span>"),
        (Verdict::NotReproduced, ">not reproduced</span>"),
        (Verdict::NotComparable, ">not comparable</span>"),
        (Verdict::TooFewRuns, "1 too few runs."),
        (Verdict::Undecided, "1 undecided,"),
        (Verdict::Ours, ">ours</span>"),
        (Verdict::Fitted, ">fitted</span>"),
    ] {
        let page = paper_html(&results(verdict, PlotData::Line(vec![(0.0, 1.0), (1.0, 2.0)])));
        assert!(page.contains(words) && page.contains("a &lt; b") && page.contains("1200 to 1300"), "{page}");
        assert!(!page.contains("<script>") && !page.contains("<b>"), "a name became markup");
        assert_eq!(page, paper_html(&results(verdict, PlotData::Line(vec![(0.0, 1.0), (1.0, 2.0)]))));
    }
}

/// Returns the value of the attribute `name` of an HTML element, as a number.
fn attribute(element: &str, name: &str) -> f64 {
    let from = element.find(&format!(" {name}=\"")).expect("the attribute") + name.len() + 3;
    let rest = &element[from..];
    rest[..rest.find('"').expect("its end")].parse().expect("a number")
}

/// The drawing area is 250 pixels high, and the vertical axis extends from 0 to 10.
#[test]
fn a_box_stands_at_its_quartiles_and_its_cross_at_the_mean() {
    let data = PlotData::Box { five: [1.0, 2.0, 3.0, 5.0, 9.0], mean: 4.0 };
    let page = paper_html(&results(Verdict::Reproduced, data));
    let y = |value: f64| 250.0 * (1.0 - value / 10.0);
    let rect = page.split("<rect ").find(|part| part.contains("fill-opacity:0.2")).expect("a box");
    let rect = format!(" {rect}");
    let (top, height) = (attribute(&rect, "y"), attribute(&rect, "height"));
    assert!((top - y(5.0)).abs() < 0.1 && (top + height - y(2.0)).abs() < 0.1, "{top} {height}");
    let cross =
        page.split("<svg class=\"sign\"").skip(1).find(|part| part.contains("stroke:var(--text)")).expect("a cross");
    assert!((attribute(cross, "y") - y(4.0)).abs() < 0.1, "{cross}");
    assert!(page.contains("delay (ms)") && page.contains("&lt;script&gt;"), "axes around boxes alone");
}

#[test]
fn what_is_no_number_is_not_drawn() {
    let nothing = f64::NAN;
    for data in [
        PlotData::Points(vec![(nothing, 1.0), (1.0, f64::INFINITY)]),
        PlotData::Box { five: [nothing; 5], mean: nothing },
        PlotData::Line(Vec::new()),
    ] {
        let page = paper_html(&results(Verdict::NotComparable, data.clone()));
        let drawing = &page[page.find("<figure>").expect("a figure")..];
        // The legend may contain one circle, as the symbol of points.
        let circles = drawing.matches("<circle").count();
        assert!(circles <= 1 && !drawing.contains("fill-opacity:0.2") && !page.contains("NaN"), "{data:?}: {drawing}");
    }
}
