use equipoise::units::Span;
use equipoise_pair::tpba::{EarlyReturn, ProbeInterval, RunningConfig, Tolerance, TpbaConfig};

use super::fig29::setting;
use super::measures::{deviations, mean_fairness, mean_rate};
use super::setting::{ADU2, Kind, OPEN_WINDOW, PAPER_WINDOW, Plan, RunningLaw, Setting, Trace, run_all};
use super::{Found, Lab, Options, drafts, mean_of, seeds, with_interval};
use crate::{Figure, Table};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::Estimate;

const RUNS: u32 = 10;
/// Where flow 4 begins in Sec. 6.2.
const CHANGE_S: usize = 200;
/// Many TPBA flows beside as many TCP flows.
const PAIRS: [usize; 4] = [1, 2, 4, 8];
const MANY_S: f64 = 200.0;
/// One-way delay that AP is to hold: a tenth of what the full queue has, on a path of 6 ms.
const AP_TARGET_MS: i64 = 50;

pub(super) fn planned(options: &Options) -> u32 {
    let cases = 2 * PAIRS.len() + 2 * rivals().len() + ceilings().len();
    options.runs(RUNS, 2) * cases as u32
}

/// What the paper leaves to the future, and later comparators.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    many(lab, found)?;
    compare(lab, found)?;
    ceiling(lab, found)
}

fn pair(tpba: TpbaConfig, law: RunningLaw) -> Kind {
    Kind::Pair { tpba, law, report: Span::from_secs(1), adu: ADU2 }
}

/// The paper's improvements, all three (Tobe 1999, Sec. 4 and 7).
const IMPROVED: TpbaConfig = TpbaConfig {
    // Ours: a reduction within a round trip of a full queue belongs to the one before; without any, the paper's second.
    interval: ProbeInterval::BetweenReductions { at_least: Span::from_millis(600), at_most: Span::from_secs(1) },
    tolerance: Tolerance::PROPORTIONAL,
    early_return: Some(EarlyReturn::STANDARD),
    ..TpbaConfig::PAPER
};

fn rate(name: &'static str) -> Kind {
    Kind::Rate { name, parameters: vec![("max_rate", "1.2 Mbit/s".to_owned())], report: Span::from_millis(100) }
}

fn ap() -> Kind {
    let parameters = vec![
        ("target", format!("{AP_TARGET_MS} ms")),
        ("min_rate", "10 kbit/s".to_owned()),
        ("max_rate", "1.2 Mbit/s".to_owned()),
    ];
    Kind::Rate { name: "ap", parameters, report: Span::from_secs(1) }
}

const LOSS: RunningLaw = RunningLaw::Loss(RunningConfig::PAPER);

fn rivals() -> Vec<(&'static str, Kind)> {
    vec![
        ("TPBA", pair(TpbaConfig::PAPER, LOSS)),
        ("TPBA with the paper's improvements", pair(IMPROVED, LOSS)),
        ("LDA-1-0.5-100-3", super::fig3::lda("lda", (1.0, 0.5), (10, 100), 3.0)),
        ("RAP", rate("rap")),
        ("TFRC", rate("tfrc")),
        ("TCP", Kind::Tcp),
    ]
}

fn ceilings() -> Vec<(&'static str, Kind)> {
    let ap_law = RunningLaw::Ap(Span::from_millis(AP_TARGET_MS));
    vec![
        ("AP", ap()),
        ("AP below TPBA's ceiling", pair(TpbaConfig::PAPER, ap_law)),
        ("TPBA", pair(TpbaConfig::PAPER, LOSS)),
        ("TCP", Kind::Tcp),
    ]
}

/// Mean of the first flows' rates over that of the others.
fn share(trace: &Trace, media: usize, stretch: (f64, f64)) -> f64 {
    let mean = |flows: std::ops::Range<usize>| {
        let count = flows.len() as f64;
        flows.map(|flow| mean_rate(trace, flow, stretch)).sum::<f64>() / count
    };
    mean(0..media) / mean(media..trace.rates.len())
}

fn many(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    let mut last = None;
    for (window, words) in [(PAPER_WINDOW, "16 kB"), (OPEN_WINDOW, "open")] {
        for pairs in PAIRS {
            let media = (0..pairs).map(|number| Plan::tpba(number as f64 / 10.0, ADU2));
            let flows: Vec<_> = media.chain((0..pairs).map(|_| Plan::tcp(0.0))).collect();
            let of = |seed| Setting { round_trip_ms: 12, duration_s: MANY_S, window, flows: flows.clone(), seed };
            let settings: Vec<_> = seeds(lab, runs).map(of).collect();
            let settled = (MANY_S / 4.0, MANY_S);
            let all: Vec<_> = (0..2 * pairs).collect();
            let keep =
                |_: &Setting, trace: Trace| (mean_fairness(&trace, &all, settled), share(&trace, pairs, settled));
            let seen = run_all(lab, &settings, 1.0, keep)?;
            let fair = mean_of(seen.iter().map(|seen| seen.0));
            let share = mean_of(seen.iter().map(|seen| seen.1));
            rows.push(vec![words.to_owned(), pairs.to_string(), with_interval(fair, 3), with_interval(share, 2)]);
            last = fair;
        }
    }
    found.claims.push(
        drafts("beyond", runs)(
            "beyond.many_tpba_flows",
            "Fairness among eight TPBA and eight TCP flows whose windows are open; rates are means over seconds.",
            None,
            "Jain's index",
        )
        .beyond(last, "A smaller number, and the paper's windows, stand in the table."),
    );
    let columns = ["TCP's windows", "flows of each kind", "fairness", "TPBA's mean rate over TCP's"];
    found.figures.push(table_of("Many flows", "Many TPBA flows beside as many TCP flows", &columns, rows));
    Ok(())
}

fn compare(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    for (window, words) in [(PAPER_WINDOW, "16 kB"), (OPEN_WINDOW, "open")] {
        for (name, kind) in rivals() {
            let settings: Vec<_> = seeds(lab, runs).map(|seed| setting(kind.clone(), CHANGE_S, window, seed)).collect();
            let keep = |_: &Setting, trace: Trace| {
                let [tcp, media] = [[0, 1], [2, 2]]
                    .map(|flows| flows.map(|flow| mean_rate(&trace, flow, (50.0, 200.0))).iter().sum::<f64>() / 2.0);
                (deviations(&trace.rates, CHANGE_S), media / tcp)
            };
            let seen = run_all(lab, &settings, 1.0, keep)?;
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
            let id = match (window, name) {
                (PAPER_WINDOW, "RAP") => "beyond.rap_share",
                (OPEN_WINDOW, "RAP") => "beyond.rap_share_open",
                (PAPER_WINDOW, "TFRC") => "beyond.tfrc_share",
                (OPEN_WINDOW, "TFRC") => "beyond.tfrc_share_open",
                (OPEN_WINDOW, "TPBA") => "beyond.tpba_share_open",
                (OPEN_WINDOW, "TPBA with the paper's improvements") => "beyond.improved_share_open",
                _ => continue,
            };
            let statement =
                format!("Mean rate of {name} over that of two TCP flows, 50 to 200 s; TCP's windows: {words}.");
            found
                .claims
                .push(drafts("beyond", runs)(id, &statement, None, "ratio").beyond(share, "1 is TCP's own share."));
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

/// AP beside one TCP flow whose window is open.
fn ceiling(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    for (name, kind) in ceilings() {
        let media = Plan { kind, start_s: 0.0, stop_s: None };
        let flows = vec![media, Plan::tcp(0.0)];
        let of =
            |seed| Setting { round_trip_ms: 12, duration_s: MANY_S, window: OPEN_WINDOW, flows: flows.clone(), seed };
        let settings: Vec<_> = seeds(lab, runs).map(of).collect();
        let stretch = (MANY_S / 4.0, MANY_S);
        let keep = |_: &Setting, trace: Trace| {
            let delay = trace.delays_s.first().copied().unwrap_or(f64::NAN);
            (mean_rate(&trace, 0, stretch) / 1e3, share(&trace, 1, stretch), 1e3 * delay)
        };
        let seen = run_all(lab, &settings, 1.0, keep)?;
        let [rate, share, delay] = [
            mean_of(seen.iter().map(|seen| seen.0)),
            mean_of(seen.iter().map(|seen| seen.1)),
            mean_of(seen.iter().map(|seen| seen.2)),
        ];
        rows.push(vec![name.to_owned(), with_interval(rate, 0), with_interval(share, 2), with_interval(delay, 0)]);
        let id = match name {
            "AP" => "beyond.ap_share",
            "AP below TPBA's ceiling" => "beyond.ap_share_under_ceiling",
            _ => continue,
        };
        let statement = format!("Mean rate of {name} over that of one TCP flow whose window is open, 50 to 200 s.");
        let note = format!(
            "Mean one-way delay of its RTP packets {} ms, of which {AP_TARGET_MS} are its target.",
            with_interval(delay, 0)
        );
        found.claims.push(drafts("beyond", runs)(id, &statement, None, "ratio").beyond(share, note));
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
