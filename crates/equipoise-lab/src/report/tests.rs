//! Pages of results made by hand: what no run of a right scenario gives.

use std::collections::BTreeMap;

use super::html;
use crate::result::{
    DelayResult, FlowResult, HistogramBin, IntervalResult, LinkResult, Report, Run, Step, StepKind, World,
};

/// A flow with a histogram of bins of 1 ms from 5 ms on, and nothing else measured.
pub(super) fn flow(packets: &[u64]) -> FlowResult {
    let bin = |(index, &packets): (usize, &u64)| {
        let from_s = 0.005 + index as f64 * 0.001;
        HistogramBin { from_s, to_s: from_s + 0.001, packets }
    };
    FlowResult {
        egress: None,
        tcp: None,
        split: None,
        paths: Vec::new(),
        name: "media".to_owned(),
        controller: Some("ap".to_owned()),
        packets_sent: 0,
        packets_received: 0,
        packets_lost: 0,
        mean_rate_bps: None,
        delay: DelayResult::default(),
        target_s: Some(0.0082),
        mse_s2: None,
        cv: None,
        jitter_s: None,
        settled_delay_s: None,
        ignored: BTreeMap::new(),
        pacing_resets: 0,
        reports_missing: 0,
        response: None,
        decisions: BTreeMap::from([("law".to_owned(), 3)]),
        intervals: Vec::new(),
        histogram: packets.iter().enumerate().map(bin).collect(),
    }
}

fn run(world: World, seed: u64, settled_s: f64) -> Run {
    let flow = FlowResult { settled_delay_s: Some(settled_s), ..flow(&[50, 30, 20]) };
    Run {
        world,
        seed,
        lasted_s: 40.0,
        complete: true,
        clock: "simulated time".to_owned(),
        stalls: Vec::new(),
        emulator: None,
        flows: vec![flow],
        links: Vec::new(),
    }
}

fn report(runs: Vec<Run>) -> Report {
    Report {
        scenario: "by hand".to_owned(),
        seed: 1,
        version: "0.0.0".to_owned(),
        description: String::new(),
        scenario_text: String::new(),
        warm_up_s: 10.0,
        duration_s: 40.0,
        steps: Vec::new(),
        outages: Vec::new(),
        runs,
    }
}

#[test]
fn several_runs_of_a_world_share_one_verdict() {
    let runs = [0.0082, 0.0080, 0.0200].iter().zip(1..).map(|(settled, seed)| run(World::Sim, seed, *settled));
    let page = html(&report(runs.chain([run(World::Live, 1, 0.0083)]).collect()));
    assert_eq!(page.matches("<p class=\"verdict").count(), 2, "one a world");
    // The mean of 8.2, 8.0 and 20 ms.
    assert!(
        page.contains("settled at 12.07 ms in the mean against a target of 8.20 ms (+47.2 %): held in 2 of 3 runs")
    );
    assert!(page.contains("settled at 8.30 ms against a target of 8.20 ms (+1.2 %): held within 15 %."));
    assert!(page.contains("<td class=\"text\">decided by law</td><td>9</td><td>3</td>"), "counters are totals");
}

#[test]
fn steps_are_labelled_within_the_run_and_stay_text() {
    let mut results = report(vec![run(World::Sim, 1, 0.0082)]);
    let step = |at_s| Step { at_s, name: "<b>".to_owned(), kind: StepKind::Load, rate_bps: 9_500_000 };
    results.steps = vec![step(0.0), step(20.0), step(60.0)];
    let page = html(&results);
    assert_eq!(page.matches(">&lt;b&gt; 9.5 Mbit/s</text>").count(), 2, "over delay and rate");
    assert!(page.contains("20 s: &lt;b&gt; to 9.5 Mbit/s") && !page.contains("60 s:") && !page.contains("<b>"));
}

/// Results are public and can be read from JSON: a user of the library may hand in anything.
#[test]
fn no_number_is_too_strange_for_a_page() {
    for strange in [0.0, -1.0, f64::MAX, f64::MIN_POSITIVE, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let interval = IntervalResult {
            start_s: strange,
            end_s: strange,
            rate_bps: strange,
            delay_mean_s: Some(strange),
            delay_variance_s2: None,
            delay_p50_s: Some(strange),
            delay_p95_s: Some(strange),
            delay_p99_s: None,
            delay_max_s: None,
            packets: u64::MAX,
            packets_lost: 0,
            stalled: true,
        };
        let mut odd = run(World::Live, u64::MAX, strange);
        for flow in &mut odd.flows {
            flow.target_s = Some(strange);
            flow.intervals = vec![interval; 3];
            flow.histogram = vec![HistogramBin { from_s: strange, to_s: strange, packets: u64::MAX }; 2];
            flow.histogram.push(HistogramBin { from_s: 0.005, to_s: 0.006, packets: u64::MAX });
        }
        odd.links = vec![LinkResult {
            samples: Vec::new(),
            name: String::new(),
            utilisation: Some(strange),
            packets_dropped: u64::MAX,
            packets_forwarded: u64::MAX,
            mean_queue_packets: None,
            max_queue_packets: 0,
        }];
        let step = Step { at_s: strange, name: String::new(), kind: StepKind::Capacity, rate_bps: u64::MAX };
        let mut results = report(vec![odd]);
        (results.duration_s, results.warm_up_s, results.steps) = (strange, strange, vec![step; 2]);
        assert!(html(&results).ends_with("</html>\n"), "{strange}");
    }
}

mod papers {
    use super::super::paper_html;
    use crate::paper::{Claim, Figure, Plot, PlotData, PlotLayer, Results, Table, Verdict};

    fn results(verdict: Verdict, data: PlotData) -> Results {
        let claim = Claim {
            id: "fig1.x".to_owned(),
            figure: "Fig. 1".to_owned(),
            statement: "a < b".to_owned(),
            paper: None,
            ours: Some(1234.5),
            ci95: Some([1200.0, 1300.0]),
            unit: "ms".to_owned(),
            runs: 30,
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
        Results {
            paper: "Waki 2013".to_owned(),
            claims: vec![claim],
            world: crate::result::World::Sim,
            seed: 1,
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
        ] {
            let page = paper_html(&results(verdict, PlotData::Line(vec![(0.0, 1.0), (1.0, 2.0)])));
            assert!(page.contains(words) && page.contains("a &lt; b") && page.contains("1200 to 1300"), "{page}");
            assert!(!page.contains("<script>") && !page.contains("<b>"), "a name became markup");
            assert_eq!(page, paper_html(&results(verdict, PlotData::Line(vec![(0.0, 1.0), (1.0, 2.0)]))));
        }
    }

    /// The number behind `name="` in an element.
    fn attribute(element: &str, name: &str) -> f64 {
        let from = element.find(&format!(" {name}=\"")).expect("the attribute") + name.len() + 3;
        let rest = &element[from..];
        rest[..rest.find('"').expect("its end")].parse().expect("a number")
    }

    /// The drawing area is 254 high and begins 30 from the top; the axis runs from 0 to 10.
    #[test]
    fn a_box_stands_at_its_quartiles_and_its_cross_at_the_mean() {
        let data = PlotData::Box { five: [1.0, 2.0, 3.0, 5.0, 9.0], mean: 4.0 };
        let page = paper_html(&results(Verdict::Reproduced, data));
        let y = |value: f64| 30.0 + 254.0 * (1.0 - value / 10.0);
        let rect = page.split("<rect ").find(|part| part.contains("fill-opacity:0.2")).expect("a box");
        let rect = format!(" {rect}");
        let (top, height) = (attribute(&rect, "y"), attribute(&rect, "height"));
        assert!((top - y(5.0)).abs() < 0.1 && (top + height - y(2.0)).abs() < 0.1, "{top} {height}");
        let cross = page.split("<path d=\"M").find(|part| part.contains("stroke:var(--text)")).expect("a cross");
        let coordinate = cross.split([' ', 'L']).nth(1).and_then(|text| text.parse::<f64>().ok()).expect("a number");
        assert!((coordinate + 5.0 - y(4.0)).abs() < 0.1, "{cross}");
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
            // A legend shows one circle as the sign of points.
            let circles = drawing.matches("<circle").count();
            assert!(
                circles <= 1 && !drawing.contains("fill-opacity:0.2") && !page.contains("NaN"),
                "{data:?}: {drawing}"
            );
        }
    }
}
