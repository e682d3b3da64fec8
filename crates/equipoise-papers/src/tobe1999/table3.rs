use equipoise::units::{Instant, Rate, Size, Span};
use equipoise_pair::tpba::{ProbeInterval, Progress, Tolerance, Tpba, TpbaConfig};

use super::setting::{TABLE3, Trace, run_all};
use super::{Found, Lab, Options, drafts, mean_of, parse, parse_with, with_interval};
use crate::{Figure, Table};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;

/// Tobe 1999, Sec. 6.1: ten trials, rates every 400 ms.
const RUNS: u32 = 10;
const INTERVAL_S: f64 = 0.4;
/// The paper says "stable" without a number. Two segments, which come with one acknowledgement, are 60 kbit/s of a rate over
/// 400 ms, twice the 30 kbit/s that ε has for rates over a second. Ours: some more than that.
const TOLERANCE: Rate = Rate::from_bps(75_000);
const CHANGE_S: f64 = 10.0;

pub(super) fn planned(options: &Options) -> u32 {
    2 * options.runs(RUNS, 2)
}

/// How long TPBA's law takes to call flow 3's rate stable, counted from the change; not a number where it never does.
fn response_s(trace: &Trace) -> f64 {
    let interval = Span::from_millis(400);
    let config = TpbaConfig {
        interval: ProbeInterval::Fixed(interval),
        tolerance: Tolerance::Absolute(TOLERANCE),
        ..TpbaConfig::PAPER
    };
    let Ok(mut tpba) = Tpba::new(config) else { return f64::NAN };
    tpba.on_progress(Instant::ZERO, Progress::default());
    let mut bytes = 0.0;
    let from = (CHANGE_S / INTERVAL_S) as usize;
    let rates = trace.rates.get(2).and_then(|rates| rates.get(from..)).unwrap_or_default();
    for (number, bps) in (1..).zip(rates) {
        let now = Instant::ZERO + interval * number;
        bytes += bps * INTERVAL_S / 8.0;
        tpba.on_progress(now, Progress { acknowledged: Size::from_bytes(bytes as u64), reductions: 0 });
        if tpba.is_over(now) {
            return number as f64 * INTERVAL_S;
        }
    }
    f64::NAN
}

/// How soon the rate is stable after a flow came, and after one went.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    let second = [Override::remove("flow.\"flow 2\".start"), Override::set("flow.\"flow 2\".stop", "10 s")];
    let goes = parse_with(TABLE3, &second);
    let cases = [
        ("table3.t_pr", "T_pr", parse(TABLE3), 2.0, "2.8", "begins"),
        ("table3.t_pi", "T_pi", goes, 2.8, "3.2", "ends"),
    ];
    for (id, name, scenario, paper, paper_most, what) in cases {
        // While it is probing, flow 3 is TCP.
        let times = run_all(lab, &scenario, runs, |trace| response_s(&trace))?;
        let mean = mean_of(times.iter().copied());
        let most = times.iter().copied().fold(f64::NAN, f64::max);
        rows.push(vec![
            name.to_owned(),
            paper.to_string(),
            with_interval(mean, 2),
            paper_most.to_owned(),
            format!("{most:.1}"),
        ]);
        found.claims.push(
            drafts("Table 3", runs)(id, &format!(
                    "Flow 3's rate is stable {paper} s after flow 2 {what}, on average. Rule: within 0.8 s of that, two of \
                     the intervals that rates are taken over."
                ), Some(paper), "s")
            .decide(
                mean,
                |ours| ours.ci95.iter().all(|end| (end - paper).abs() <= 0.8),
                "By the law it takes three intervals at the least, 1.2 s.",
            ),
        );
    }
    found.figures.push(Figure {
        name: "Table 3".to_owned(),
        title: "Response to a change".to_owned(),
        text: "Flow 3 is in its probing period; stable is what TPBA's law says, with rates every 400 ms and ε = 75 kbit/s."
            .to_owned(),
        charts: Vec::new(),
        tables: vec![Table {
            caption: "Time from the change until the rate is stable".to_owned(),
            columns: ["", "paper, mean (s)", "ours, mean (s)", "paper, most (s)", "ours, most (s)"].map(str::to_owned).to_vec(),
            rows,
        }],
    });
    Ok(())
}
