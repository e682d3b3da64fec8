//! Beyond the paper: three and four paths, paths that fail, and what the split hangs on.

use super::setting::{
    AP, EQUAL, LTE_WIMAX, MIN_DELAY, Method, Outcome, RUNS, Row, TOTALS, apart, delays_over_time, rates_over_time,
    ratio, session_of,
};
use super::{Found, Lab, Options, drafts};
use crate::{Figure, Table};
use equipoise_lab::sim::SimError;

/// One more path of a scenario: name, rate in Mbit/s, propagation in ms. Others take a fifth of it, as of the first two.
struct More {
    name: &'static str,
    mbps: f64,
    delay_ms: u32,
}

const MORE: [More; 2] =
    [More { name: "Wi-Fi", mbps: 3.0, delay_ms: 15 }, More { name: "UMTS", mbps: 1.2, delay_ms: 60 }];

impl More {
    /// The sections of this path, its link and its others.
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

/// The scenario with so many more paths.
pub(super) fn with_more(count: usize) -> String {
    let more = MORE.iter().take(count);
    let names: String = more.clone().map(|more| format!(", \"{}\"", more.name)).collect();
    let text = LTE_WIMAX.replacen("\"LTE\", \"WiMAX\"", &format!("\"LTE\", \"WiMAX\"{names}"), 1);
    more.fold(text, |text, more| text + &more.sections())
}

/// The scenario in which something becomes of the wide path.
pub(super) fn with_failure(words: (&str, &str)) -> String {
    LTE_WIMAX.replacen(words.0, words.1, 1)
}

/// The wide path is silent for 10 s, or is taken away for so long, or loses half of its capacity.
const FAILURES: [(&str, &str, (&str, &str)); 3] = [
    (
        "WiMAX silent, 50 to 60 s",
        "1.5",
        (
            "rate = \"5.1 Mbit/s\"",
            "rate = \"5.1 Mbit/s\"\nsteps = [{ at = \"50 s\", rate = \"0 bit/s\" }, { at = \"60 s\", rate = \"5.1 Mbit/s\" }]",
        ),
    ),
    (
        "WiMAX taken away, 50 to 60 s",
        "1.5",
        ("links = [\"wimax\"]", "links = [\"wimax\"]\ndown = [{ at = \"50 s\", until = \"60 s\" }]"),
    ),
    (
        "WiMAX halves at 50 s",
        "3.0",
        ("rate = \"5.1 Mbit/s\"", "rate = \"5.1 Mbit/s\"\nsteps = [{ at = \"50 s\", rate = \"2.55 Mbit/s\" }]"),
    ),
];

/// Totals over three and four paths: as near to what they leave, 8.0 and 9.0 Mbit/s, as 4.8 is over two.
const MANY: [(usize, &str); 2] = [(1, "6.9"), (2, "7.7")];
const WIMAX_ONLY: Method = ("WiMAX-only", "name = \"single\", path = 1");
const RIVALS: [Method; 4] = [AP, EQUAL, MIN_DELAY, WIMAX_ONLY];
const VARIANTS: [Method; 6] = [
    ("b = 300", "name = \"ap\""),
    ("b = 75", "name = \"ap\", b = 75"),
    ("b = 1200", "name = \"ap\", b = 1200"),
    ("b learned, from 300", "name = \"ap\", learn = \"adapt\""),
    ("steps of 5 % at the most", "name = \"ap\", longest_step = 0.05"),
    ("steps of 30 % at the most", "name = \"ap\", longest_step = 0.3"),
];

pub(super) fn planned(options: &Options) -> u32 {
    let cases = RIVALS.len() * (MANY.len() + FAILURES.len()) + VARIANTS.len() * TOTALS.len();
    cases as u32 * options.runs(RUNS, 2)
}

pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    many(lab, found)?;
    failures(lab, found)?;
    variants(lab, found)
}

fn rows(lab: &Lab<'_>, text: &str, total: &str, methods: &[Method]) -> Result<Vec<Row>, SimError> {
    let runs = lab.options.runs(RUNS, 2);
    methods.iter().map(|(name, split)| Row::run(lab, name, &session_of(text, total, split), runs)).collect()
}

fn table(caption: &str, rows: &[Row]) -> Table {
    Table {
        caption: format!("{caption}: means over the runs with their 95 % intervals"),
        columns: std::iter::once("method").chain(Row::COLUMNS).map(str::to_owned).collect(),
        rows: rows.iter().map(|row| [vec![row.name.clone()], row.cells()].concat()).collect(),
    }
}

const DELAY: fn(&Outcome) -> f64 = |outcome| outcome.delay_ms;
const THROUGHPUT: fn(&Outcome) -> f64 = |outcome| outcome.throughput_mbps;

/// Three and four paths.
fn many(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let (mut tables, mut charts) = (Vec::new(), Vec::new());
    for (more, total) in MANY {
        let rows = rows(lab, &with_more(more), total, &RIVALS)?;
        let [ap, equal, ..] = rows.as_slice() else { continue };
        let (paths, id) = if more == 1 { (3, "beyond.three_paths") } else { (4, "beyond.four_paths") };
        let statement = format!("{total} Mbit/s over {paths} paths: mean delay of AP over that of Equal.");
        let note = format!("AP's throughput less Equal's: {} Mbit/s.", apart(ap, equal, THROUGHPUT).words(3));
        found.claims.push(drafts("beyond", runs)(id, &statement, None, "ratio").beyond(ratio(ap, equal, DELAY), note));
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

/// A path that fails, or loses half of its capacity.
fn failures(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let (mut tables, mut charts) = (Vec::new(), Vec::new());
    let ids = ["beyond.silent", "beyond.taken_away", "beyond.halved"];
    for ((name, total, words), id) in FAILURES.into_iter().zip(ids) {
        let rows = rows(lab, &with_failure(words), total, &RIVALS)?;
        let [ap, .., single] = rows.as_slice() else { continue };
        let statement = format!("{total} Mbit/s, {name}: throughput of AP less that of WiMAX-only.");
        let note = format!(
            "AP loses {} % of its packets; its largest mean delay of a period is {} ms.",
            ap.mean(|outcome| outcome.lost_percent).words(2),
            ap.mean(|outcome| outcome.surge_ms).words(0)
        );
        let ours = apart(ap, single, THROUGHPUT);
        found.claims.push(drafts("beyond", runs)(id, &statement, None, "Mbit/s more").beyond(ours, note));
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

/// What AP hangs on.
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
