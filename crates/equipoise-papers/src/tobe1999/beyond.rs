use equipoise::units::Span;

use std::collections::BTreeMap;

use super::fig29::{CASES, CHANGE_S};
use super::measures::{deviations, mean_fairness, mean_rate};
use super::setting::{
    CEILING, FIG19, FIG22, OPEN_WINDOW, PAPER_WINDOW, RIVALS, Trace, run_all, with_flow_like, with_flows, with_window,
};
use super::{Found, Lab, Options, Spec, acknowledged, mean_of, parse, parse_with, with_interval};
use crate::{Figure, Table};
use equipoise_lab::scenario::{Flow, Override, Scenario, Value};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::Estimate;

const RUNS: u32 = 10;
/// Numbers of TPBA flows. Each scenario has the same number of TCP flows in addition.
const PAIRS: [usize; 4] = [1, 2, 4, 8];
const MANY_S: f64 = 200.0;
/// The target of AP's one-way delay, in ms. Our choice, between the 6 ms of the path without queueing and the 1000 ms
/// that a full queue of packets of 1500 bytes adds.
const AP_TARGET_MS: i64 = 50;

const fn ours(id: &'static str, statement: &'static str) -> Spec {
    Spec::shown(id, "beyond", statement).unit("ratio").ours()
}

const MANY: Spec = ours(
    "beyond.many_tpba_flows",
    "Fairness among eight TPBA and eight TCP flows whose windows are open; rates are means over seconds.",
)
.unit("Jain's index");
/// Name of the variant of RAP in which the receiver acknowledges every packet.
const ACKNOWLEDGED: &str = "RAP, every packet acknowledged";
/// For each row: TCP's window in segments, the name of the controller of flow 3, and the claim.
const SHARES: [(u64, &str, Spec); 8] = [
    (
        PAPER_WINDOW,
        "RAP",
        ours("beyond.rap_share", "Mean rate of RAP over that of two TCP flows, 50 to 200 s; TCP's windows: 16 kB."),
    ),
    (
        PAPER_WINDOW,
        ACKNOWLEDGED,
        ours("beyond.rap_acknowledged_share", "The same of RAP with every packet acknowledged."),
    ),
    (PAPER_WINDOW, "TFRC", ours("beyond.tfrc_share", "The same of TFRC.")),
    (OPEN_WINDOW, "TPBA", ours("beyond.tpba_share_open", "The same of TPBA; TCP's windows: open.")),
    (
        OPEN_WINDOW,
        "TPBA with the paper's improvements",
        ours("beyond.improved_share_open", "The same of TPBA with the paper's improvements; TCP's windows: open."),
    ),
    (OPEN_WINDOW, "RAP", ours("beyond.rap_share_open", "The same of RAP; TCP's windows: open.")),
    (
        OPEN_WINDOW,
        ACKNOWLEDGED,
        ours(
            "beyond.rap_acknowledged_share_open",
            "The same of RAP with every packet acknowledged; TCP's windows: open.",
        ),
    ),
    (OPEN_WINDOW, "TFRC", ours("beyond.tfrc_share_open", "The same of TFRC; TCP's windows: open.")),
];
const AP: Spec =
    ours("beyond.ap_share", "Mean rate of AP over that of one TCP flow whose window is open, 50 to 200 s.");
const AP_UNDER_CEILING: Spec =
    ours("beyond.ap_share_under_ceiling", "The same of AP below the ceiling that TPBA's probing finds.");
#[cfg(test)]
pub(super) const CLAIMS: [Spec; 11] = [
    MANY,
    SHARES[0].2,
    SHARES[1].2,
    SHARES[2].2,
    SHARES[3].2,
    SHARES[4].2,
    SHARES[5].2,
    SHARES[6].2,
    SHARES[7].2,
    AP,
    AP_UNDER_CEILING,
];

pub(super) fn planned(options: &Options) -> u32 {
    let cases = 2 * PAIRS.len() + 2 * rivals().len() + ceilings().len();
    options.runs(RUNS, 2) * cases as u32
}

/// Runs the experiments that the paper calls future work, and newer controllers for comparison.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    many(lab, found)?;
    compare(lab, found)?;
    ceiling(lab, found)
}

/// Returns the overrides for all three improvements of the paper (Tobe 1999, Sec. 4 and 7).
///
/// Our choice: a probing interval lasts at least 600 ms. It lasts at most 1 s, the fixed interval of the paper's
/// evaluation.
fn improved() -> Vec<Override> {
    let texts = |pairs: [(&str, &str); 2]| pairs.map(|(key, text)| (key.to_owned(), Value::from(text))).into();
    let between: BTreeMap<String, Value> = texts([("at_least", "600 ms"), ("at_most", "1 s")]);
    let early: BTreeMap<String, Value> =
        [("reductions".to_owned(), Value::from(2)), ("share".to_owned(), Value::from(0.25))].into();
    vec![
        Override::remove("flow.\"flow 3\".pair.interval"),
        Override::set("flow.\"flow 3\".pair.between_reductions", between),
        Override::set("flow.\"flow 3\".pair.tolerance", 0.05),
        Override::set("flow.\"flow 3\".pair.early_return", early),
    ]
}

/// Returns the overrides with which AP replaces the paper's control law while TPBA sends over RTP (the running
/// periods). The minimum rate is not changed.
fn governed_by_ap() -> Vec<Override> {
    vec![
        Override::set("flow.\"flow 3\".pair.law.name", "ap"),
        Override::set("flow.\"flow 3\".pair.law.target", format!("{AP_TARGET_MS} ms")),
        Override::remove("flow.\"flow 3\".pair.law.adapt"),
        Override::remove("flow.\"flow 3\".pair.law.reduction_factor"),
    ]
}

/// Returns the scenario in which flow number `index` is replaced by a copy of the TCP flow number `like`.
fn with_tcp(scenario: Scenario, index: usize, like: usize) -> Scenario {
    let tcp = scenario.flows.get(like).cloned();
    tcp.map(|tcp| with_flow_like(scenario.clone(), index, &tcp)).unwrap_or(scenario)
}

/// Returns the scenarios of Sec. 6.2 in which flow 3 uses each of the compared controllers.
fn rivals() -> Vec<(&'static str, Scenario)> {
    vec![
        ("TPBA", parse(FIG22)),
        ("TPBA with the paper's improvements", parse_with(FIG22, &improved())),
        ("LDA-1-0.5-100-3", CASES[CASES.len() - 1].scenario()),
        ("RAP", parse(RIVALS)),
        (ACKNOWLEDGED, acknowledged::scenario()),
        ("TFRC", parse_with(RIVALS, &[Override::set("flow.\"flow 3\".controller.name", "tfrc")])),
        ("TCP", with_tcp(parse(FIG22), 2, 0)),
    ]
}

/// For each compared controller, returns the scenario in which flow 1 uses this controller. The other flow is a TCP
/// flow whose window is unlimited.
fn ceilings() -> Vec<(&'static str, Scenario)> {
    let tpba = |scenario: Scenario| {
        let pair = with_window(scenario, OPEN_WINDOW).flows.swap_remove(2);
        with_flow_like(parse(CEILING), 0, &pair)
    };
    vec![
        ("AP", parse(CEILING)),
        ("AP below TPBA's ceiling", tpba(parse_with(FIG22, &governed_by_ap()))),
        ("TPBA", tpba(parse(FIG22))),
        ("TCP", with_tcp(parse(CEILING), 0, 1)),
    ]
}

/// Returns the mean rate of the first `media` flows, divided by the mean rate of the other flows.
fn share(trace: &Trace, media: usize, stretch: (f64, f64)) -> f64 {
    let mean = |flows: std::ops::Range<usize>| {
        let count = flows.len() as f64;
        flows.map(|flow| mean_rate(trace, flow, stretch)).sum::<f64>() / count
    };
    mean(0..media) / mean(media..trace.rates.len())
}

/// Returns the scenario with `pairs` flow pairs, which start 0.1 s apart, and the same number of TCP flows.
fn many_flows(pairs: usize) -> Scenario {
    let mut scenario = parse(FIG19);
    scenario.duration = Span::from_secs(MANY_S as i64);
    let [Some(tcp), Some(pair)] = [0, 5].map(|place| scenario.flows.get(place).cloned()) else { return scenario };
    let pair = |number| Flow { start: Span::from_millis(100 * number), ..pair.clone() };
    let flows = (0..pairs as i64).map(pair).chain((0..pairs).map(|_| tcp.clone())).collect();
    with_flows(scenario, flows)
}

fn many(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    let mut last = None;
    for (window, words) in [(PAPER_WINDOW, "16 kB"), (OPEN_WINDOW, "open")] {
        for pairs in PAIRS {
            let scenario = with_window(many_flows(pairs), window);
            let settled = (MANY_S / 4.0, MANY_S);
            let all: Vec<_> = (0..2 * pairs).collect();
            let keep = |trace: Trace| (mean_fairness(&trace, &all, settled), share(&trace, pairs, settled));
            let seen = run_all(lab, &scenario, runs, keep)?;
            let fair = mean_of(seen.iter().map(|seen| seen.0));
            let share = mean_of(seen.iter().map(|seen| seen.1));
            rows.push(vec![words.to_owned(), pairs.to_string(), with_interval(fair, 3), with_interval(share, 2)]);
            last = fair;
        }
    }
    found.claims.push(MANY.decide(runs, last, "A smaller number, and the paper's windows, stand in the table."));
    let columns = ["TCP's windows", "flows of each kind", "fairness", "TPBA's mean rate over TCP's"];
    found.figures.push(table_of("Many flows", "Many TPBA flows beside as many TCP flows", &columns, rows));
    Ok(())
}

fn compare(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    for (window, words) in [(PAPER_WINDOW, "16 kB"), (OPEN_WINDOW, "open")] {
        for (name, scenario) in rivals() {
            let keep = |trace: Trace| {
                let [tcp, media] = [[0, 1], [2, 2]]
                    .map(|flows| flows.map(|flow| mean_rate(&trace, flow, (50.0, 200.0))).iter().sum::<f64>() / 2.0);
                (deviations(&trace.rates, CHANGE_S), media / tcp)
            };
            let seen = run_all(lab, &with_window(scenario, window), runs, keep)?;
            let of = |value: fn(&super::measures::Deviations) -> f64| {
                let known = seen.iter().filter_map(|(found, _)| found.as_ref());
                with_interval(mean_of(known.map(|found| value(found) / 1e3)), 0)
            };
            let share: Option<Estimate> = mean_of(seen.iter().map(|seen| seen.1));
            rows.push(vec![
                words.to_owned(),
                name.to_owned(),
                with_interval(share, 2),
                of(|found| found.intra),
                of(|found| found.average),
                of(|found| found.average_after),
            ]);
            let spec = SHARES.iter().find(|(of, flow, _)| (*of, *flow) == (window, name));
            found.claims.extend(spec.map(|(_, _, spec)| spec.decide(runs, share, "1 is TCP's own share.")));
        }
    }
    let columns = [
        "TCP's windows",
        "flow 3",
        "its rate over TCP's, before the change",
        "δR_intra (kbit/s)",
        "δR_ave1 (kbit/s)",
        "δR_ave2 (kbit/s)",
    ];
    found.figures.push(table_of(
        "Rivals",
        "RAP, TFRC and TPBA's improvements in the setting of Sec. 6.2",
        &columns,
        rows,
    ));
    Ok(())
}

/// Runs AP and other controllers, each with one TCP flow whose window is unlimited.
fn ceiling(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    for (name, scenario) in ceilings() {
        let stretch = (MANY_S / 4.0, MANY_S);
        let keep = |trace: Trace| {
            let delay = trace.delays_s.first().copied().unwrap_or(f64::NAN);
            (mean_rate(&trace, 0, stretch) / 1e3, share(&trace, 1, stretch), 1e3 * delay)
        };
        let seen = run_all(lab, &scenario, runs, keep)?;
        let [rate, share, delay] = [
            mean_of(seen.iter().map(|seen| seen.0)),
            mean_of(seen.iter().map(|seen| seen.1)),
            mean_of(seen.iter().map(|seen| seen.2)),
        ];
        rows.push(vec![name.to_owned(), with_interval(rate, 0), with_interval(share, 2), with_interval(delay, 0)]);
        let spec = match name {
            "AP" => AP,
            "AP below TPBA's ceiling" => AP_UNDER_CEILING,
            _ => continue,
        };
        let note = format!(
            "Mean one-way delay of its RTP packets {} ms, of which {AP_TARGET_MS} are its target.",
            with_interval(delay, 0)
        );
        found.claims.push(spec.decide(runs, share, note));
    }
    let columns = ["flow", "rate (kbit/s)", "rate over TCP's", "one-way delay of its RTP packets (ms)"];
    found.figures.push(table_of("AP", "AP beside TCP, with and without TPBA's ceiling", &columns, rows));
    Ok(())
}

fn table_of(name: &str, title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Figure {
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        text: "1.2 Mbit/s, 12 ms.".to_owned(),
        charts: Vec::new(),
        tables: vec![Table {
            caption: "Means over the runs with their 95 % intervals".to_owned(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows,
        }],
    }
}
