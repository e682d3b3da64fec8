//! Experiments beyond the paper: three and four paths, paths that fail, and parameters that may change how the traffic
//! is divided.

use std::collections::BTreeMap;
use std::iter;

use super::setting::{
    AP, EQUAL, LTE_WIMAX, MIN_DELAY, Method, Outcome, RUNS_BEYOND, Row, TOTALS, WIMAX_ONLY, apart, delays_over_time,
    rates_over_time, ratio, session_of,
};
use super::{Found, Lab, Options, Spec, parse_with};
use crate::{Figure, Table};
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim::SimError;

const THREE_PATHS: Spec =
    Spec::shown("beyond.three_paths", "beyond", "6.9 Mbit/s over 3 paths: mean delay of AP over that of Equal.")
        .unit("ratio")
        .ours();
const FOUR_PATHS: Spec =
    Spec::shown("beyond.four_paths", "beyond", "7.7 Mbit/s over 4 paths: mean delay of AP over that of Equal.")
        .unit("ratio")
        .ours();
const SILENT: Spec = Spec::shown(
    "beyond.silent",
    "beyond",
    "1.5 Mbit/s, WiMAX silent from 50 to 60 s: throughput of AP less that of WiMAX-only.",
)
.unit("Mbit/s more")
.ours();
const TAKEN_AWAY: Spec = Spec::shown(
    "beyond.taken_away",
    "beyond",
    "1.5 Mbit/s, WiMAX taken away from 50 to 60 s: throughput of AP less that of WiMAX-only.",
)
.unit("Mbit/s more")
.ours();
const HALVED: Spec = Spec::shown(
    "beyond.halved",
    "beyond",
    "3.0 Mbit/s, WiMAX loses half of its capacity at 50 s: throughput of AP less that of WiMAX-only.",
)
.unit("Mbit/s more")
.ours();

pub(super) const CLAIMS: &[Spec] = &[THREE_PATHS, FOUR_PATHS, SILENT, TAKEN_AWAY, HALVED];

/// An additional path of a scenario: name, rate in Mbit/s, propagation delay in ms. Cross traffic uses a fifth of the
/// path's rate, as on the first two paths.
struct More {
    name: &'static str,
    mbps: f64,
    delay_ms: u32,
}

const MORE: [More; 2] =
    [More { name: "Wi-Fi", mbps: 3.0, delay_ms: 15 }, More { name: "UMTS", mbps: 1.2, delay_ms: 60 }];

impl More {
    /// Returns the text of a scenario file's sections for this path, its link and its cross traffic.
    fn sections(&self) -> String {
        let Self { name, mbps, delay_ms } = self;
        let (burst, others) = (mbps / 2.0, mbps / 20.0);
        format!(
            "\n[[link]]\nname = \"{name}\"\nrate = \"{mbps} Mbit/s\"\ndelay = \"{delay_ms} ms\"\nqueue = \"1 s\"\n\
             \n[[path]]\nname = \"{name}\"\nlinks = [\"{name}\"]\n\
             \n[[flow]]\nname = \"bursts-{name}\"\npath = [\"{name}\"]\npacket_size = \"870 B\"\n\
             source = {{ kind = \"on-off\", rate = \"{burst} Mbit/s\", on = \"1 s\", off = \"2.33 s\" }}\n\
             \n[[flow]]\nname = \"others-{name}\"\npath = [\"{name}\"]\npacket_size = \"170 B\"\n\
             source = {{ kind = \"poisson\", rate = \"{others} Mbit/s\" }}\n"
        )
    }
}

/// Returns the scenario with the first two paths and `count` additional paths.
pub(super) fn with_more(count: usize) -> Scenario {
    let more = MORE.iter().take(count);
    let paths: Vec<_> = ["LTE", "WiMAX"].into_iter().chain(more.clone().map(|more| more.name)).collect();
    let text = more.fold(LTE_WIMAX.to_owned(), |text, more| text + &more.sections());
    parse_with(&text, &[Override::set("flow.call.paths", paths)])
}

/// An experiment in which the faster path fails.
struct Failure {
    spec: Spec,
    name: &'static str,
    /// The total rate of the session, in Mbit/s.
    total: &'static str,
    change: Override,
}

/// Returns three failures of the faster path: it carries nothing for 10 s, its interface is down for 10 s, or it loses
/// half of its capacity.
fn failures() -> [Failure; 3] {
    let step = |at: &'static str, rate: &'static str| BTreeMap::from([("at", at), ("rate", rate)]);
    let silent = vec![step("50 s", "0 bit/s"), step("60 s", "5.1 Mbit/s")];
    let down = vec![BTreeMap::from([("at", "50 s"), ("until", "60 s")])];
    [
        Failure {
            spec: SILENT,
            name: "WiMAX silent, 50 to 60 s",
            total: "1.5",
            change: Override::set("link.wimax.steps", silent),
        },
        Failure {
            spec: TAKEN_AWAY,
            name: "WiMAX taken away, 50 to 60 s",
            total: "1.5",
            change: Override::set("path.WiMAX.down", down),
        },
        Failure {
            spec: HALVED,
            name: "WiMAX halves at 50 s",
            total: "3.0",
            change: Override::set("link.wimax.steps", vec![step("50 s", "2.55 Mbit/s")]),
        },
    ]
}

/// Number of additional paths, and total rate of the session in Mbit/s. On all paths together, the cross traffic leaves
/// 8.0 Mbit/s to the session with one additional path, and 9.0 Mbit/s with two. The total rate is about 86 % of this
/// capacity. On the two original paths, the highest rate in [`TOTALS`] is also about 86 % of the capacity that the
/// session can use.
const MANY: [(usize, &str); 2] = [(1, "6.9"), (2, "7.7")];
const RIVALS: [Method; 4] = [AP, EQUAL, MIN_DELAY, WIMAX_ONLY];
const VARIANTS: [Method; 6] = [
    Method::new("b = 600", "ap").with("b", "600"),
    Method::new("b = 150", "ap").with("b", "150"),
    Method::new("b = 2400", "ap").with("b", "2400"),
    Method::new("b learned, from 300", "ap").with("learn", "adapt"),
    Method::new("steps of 5 % at the most", "ap").with("longest_step", "0.05"),
    Method::new("steps of 30 % at the most", "ap").with("longest_step", "0.3"),
];

pub(super) fn planned(options: &Options) -> u32 {
    let cases = RIVALS.len() * (MANY.len() + failures().len()) + VARIANTS.len() * TOTALS.len();
    cases as u32 * options.runs(RUNS_BEYOND, 2)
}

pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    many(lab, found)?;
    over_failures(lab, found)?;
    variants(lab, found)
}

fn rows(lab: &Lab<'_>, text: &str, total: &str, methods: &[Method]) -> Result<Vec<Row>, SimError> {
    let runs = lab.options.runs(RUNS_BEYOND, 2);
    methods.iter().map(|&method| Row::run(lab, method.name, &session_of(text, total, method), runs)).collect()
}

fn table(caption: &str, rows: &[Row]) -> Table {
    Table {
        caption: format!("{caption}: means over the runs with their 95 % intervals"),
        columns: iter::once("method").chain(Row::COLUMNS).map(str::to_owned).collect(),
        rows: rows.iter().map(|row| [vec![row.name.clone()], row.cells()].concat()).collect(),
    }
}

const DELAY: fn(&Outcome) -> f64 = |outcome| outcome.delay_ms;
const THROUGHPUT: fn(&Outcome) -> f64 = |outcome| outcome.throughput_mbps;

/// Runs the session with three and with four paths.
fn many(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS_BEYOND, 2);
    let (mut tables, mut charts) = (Vec::new(), Vec::new());
    for (more, total) in MANY {
        let rows = rows(lab, &with_more(more).text, total, &RIVALS)?;
        let [ap, equal, ..] = rows.as_slice() else { continue };
        let (paths, spec) = if more == 1 { (3, THREE_PATHS) } else { (4, FOUR_PATHS) };
        let note = format!("AP's throughput less Equal's: {} Mbit/s.", apart(ap, equal, THROUGHPUT).words(3));
        found.claims.push(spec.decide(runs, ratio(ap, equal, DELAY), note));
        charts.push(rates_over_time(format!("{paths} paths: AP's rates, first run"), ap));
        tables.push(table(&format!("{paths} paths, {total} Mbit/s"), &rows));
    }
    let more = MORE.iter().map(|more| format!("{}: {} Mbit/s, {} ms", more.name, more.mbps, more.delay_ms));
    found.figures.push(Figure {
        name: "More paths".to_owned(),
        title: "Three and four paths".to_owned(),
        text: format!("Beside LTE and WiMAX {}; others take a fifth of each.", more.collect::<Vec<_>>().join("; ")),
        charts,
        tables,
    });
    Ok(())
}

/// Runs the session while one of its paths fails or loses half of its capacity.
fn over_failures(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS_BEYOND, 2);
    let (mut tables, mut charts) = (Vec::new(), Vec::new());
    for Failure { spec, name, total, change } in failures() {
        let rows = rows(lab, &parse_with(LTE_WIMAX, &[change]).text, total, &RIVALS)?;
        let [ap, .., single] = rows.as_slice() else { continue };
        let note = format!(
            "AP loses {} % of its packets; its largest mean delay of a period is {} ms.",
            ap.mean(|outcome| outcome.lost_percent).words(2),
            ap.mean(|outcome| outcome.surge_ms).words(0)
        );
        let ours = apart(ap, single, THROUGHPUT);
        found.claims.push(spec.decide(runs, ours, note));
        charts.push(rates_over_time(format!("{name}, {total} Mbit/s: AP's rates, first run"), ap));
        charts.push(delays_over_time(format!("{name}, {total} Mbit/s: mean delay, first run"), &rows));
        tables.push(table(&format!("{name}, {total} Mbit/s"), &rows));
    }
    found.figures.push(Figure {
        name: "Failures".to_owned(),
        title: "The wide path fails for 10 s, or loses half of its capacity".to_owned(),
        text: "What is silent keeps what waits in front of it, for as long as there is room; what is taken away is known to be \
               away. LTE alone cannot carry the total meanwhile."
            .to_owned(),
        charts,
        tables,
    });
    Ok(())
}

/// Runs AP with other parameters, to show which parameters change the result.
fn variants(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let mut tables = Vec::new();
    for total in TOTALS {
        tables.push(table(&format!("{total} Mbit/s"), &rows(lab, LTE_WIMAX, total, &VARIANTS)?));
    }
    found.figures.push(Figure {
        name: "Parameters".to_owned(),
        title: "What AP hangs on".to_owned(),
        text: "The paper's setting, with other coefficients b, in 1/(s·Mbit/s), and other limits of a step.".to_owned(),
        charts: Vec::new(),
        tables,
    });
    Ok(())
}
