use equipoise::units::{Instant, Rate, Size, Span};
use equipoise_pair::tpba::{ProbeInterval, Progress, Tolerance, Tpba, TpbaConfig};

use super::fig22::response_s as response_of_pair_s;
use super::setting::{FIG10, TABLE3, Testbed, Trace, run_all};
use super::{Found, Lab, Options, Rule, Spec, mean_of, parse_with, read, read_all, with_interval};
use crate::{Claim, Figure, Table};
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim::SimError;

/// Number of runs. Our choice: twice the ten trials of the paper (Tobe 1999, Sec. 6.1).
const RUNS: u32 = 20;
const INTERVAL_S: f64 = 0.4;
const CHANGE_S: f64 = 10.0;

const T_PR: Spec = Spec::new(
    "table3.t_pr",
    "Table 3",
    "Flow 3's rate is stable 2.0 s after flow 2 begins, on average, give or take two of the intervals of 0.4 s that rates are taken \
     over.",
    Rule::within(1.2, 2.8),
)
.paper(2.0)
.unit("s");
const T_PI: Spec = Spec::new("table3.t_pi", "Table 3", "The same after flow 2 ends: 2.8 s.", Rule::within(2.0, 3.6))
    .paper(2.8)
    .unit("s");
#[cfg(test)]
pub(super) const CLAIMS: [Spec; 2] = [T_PR, T_PI];

/// Flow 3 is either a flow pair or a TCP flow. Its rate must become stable after flow 2 starts or ends.
#[derive(Clone, Copy)]
enum Response {
    /// A flow pair, whose rate is stable when a running period begins. The text is the length of a probing interval.
    Pair(&'static str),
    /// A TCP flow without RTP. Its rate counts as stable when TPBA with this tolerance ε would end a probing period.
    Tcp(Rate),
}

/// The main interpretation, which follows the text of the paper (see `ASSUMPTIONS` in `mod.rs`).
const MAIN: Response = Response::Pair("400 ms");
const OTHERS: [(&str, Response); 3] = [
    ("Table 3: T_TCP = 1 s", Response::Pair("1 s")),
    ("Table 3: flow 3 is TCP, ε = 30 kbit/s", Response::Tcp(Rate::from_bps(30_000))),
    // One acknowledgement covers two segments, so the rate in an interval of 400 ms changes in steps of 60 kbit/s. A
    // tolerance of 75 kbit/s allows one step. A tolerance of 30 kbit/s does not.
    ("Table 3: flow 3 is TCP, ε = 75 kbit/s", Response::Tcp(Rate::from_bps(75_000))),
];

/// Times until the rate is stable, in seconds, one for each run. The first list is for the start of flow 2, the second
/// list for its end.
type Responses = [Vec<f64>; 2];

pub(super) fn planned(options: &Options) -> u32 {
    2 * (Testbed::runs_of_all(options, RUNS) + OTHERS.len() as u32 * options.runs(RUNS, 2))
}

impl Response {
    /// Returns two scenarios. In the first, flow 2 starts at 10 s. In the second, flow 2 ends at 10 s.
    fn scenarios(self) -> [Scenario; 2] {
        let second = |key: &str| format!("flow.\"flow 2\".{key}");
        let comes = vec![Override::set(second("start"), "10 s")];
        let goes = vec![Override::remove(second("start")), Override::set(second("stop"), "10 s")];
        [comes, goes].map(|mut overrides| match self {
            Self::Pair(interval) => {
                if overrides.len() == 1 {
                    overrides.push(Override::remove(second("stop")));
                }
                overrides.push(Override::remove("flow.\"flow 3\".start"));
                overrides.push(Override::set("flow.\"flow 3\".pair.interval", interval));
                parse_with(FIG10, &overrides)
            }
            Self::Tcp(_) => parse_with(TABLE3, &overrides),
        })
    }

    /// Returns the time from the change at 10 s until the rate of flow 3 is stable, in seconds; `NaN` if the rate never
    /// becomes stable.
    fn seconds(self, trace: &Trace) -> f64 {
        match self {
            Self::Pair(_) => response_of_pair_s(trace, CHANGE_S),
            Self::Tcp(tolerance) => response_of_tcp_s(trace, tolerance),
        }
    }

    fn measured(self, lab: &Lab<'_>, testbed: &Testbed, runs: u32) -> Result<Responses, SimError> {
        let [comes, goes] =
            self.scenarios().map(|scenario| run_all(lab, &testbed.of(scenario), runs, |trace| self.seconds(&trace)));
        Ok([comes?, goes?])
    }
}

/// Returns the time from the change at 10 s until TPBA's rule finds the rate of flow 3 stable, in seconds; `NaN` if it
/// never does.
fn response_of_tcp_s(trace: &Trace, tolerance: Rate) -> f64 {
    let interval = Span::from_millis(400);
    let config = TpbaConfig {
        interval: ProbeInterval::Fixed(interval),
        tolerance: Tolerance::Absolute(tolerance),
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

fn claims(found: &Responses) -> Vec<Claim> {
    let claim = |(spec, seconds): (&Spec, &Vec<f64>)| {
        let (runs, never) = (seconds.len(), seconds.iter().filter(|seconds| seconds.is_nan()).count());
        if never == runs && runs > 1 {
            return spec.never(runs as u32, format!("In none of {runs} runs does it become stable within the run."));
        }
        let note = format!("At most {:.1} s; in {never} of {runs} runs it did not become stable.", most(seconds));
        spec.decide(runs as u32, mean_of(seconds.iter().copied()), note)
    };
    [T_PR, T_PI].iter().zip(found).map(claim).collect()
}

/// Returns the largest value; `NaN` if there are no values.
fn most(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::NAN, f64::max)
}

/// Runs Table 3, which shows the time until the rate is stable after a flow starts, and after a flow ends.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let mut rows = Vec::new();
    let mut add = |name: &str, measured: &Responses| {
        let cells = measured
            .iter()
            .flat_map(|seconds| [with_interval(mean_of(seconds.iter().copied()), 2), format!("{:.1}", most(seconds))]);
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    };
    read_all(found, |testbed| {
        let measured = MAIN.measured(lab, testbed, testbed.runs(&lab.options, RUNS))?;
        add(testbed.name, &measured);
        Ok(claims(&measured))
    })?;
    for (name, response) in OTHERS {
        let measured = response.measured(lab, &Testbed::MAIN, lab.options.runs(RUNS, 2))?;
        add(name, &measured);
        read(found, name, claims(&measured));
    }
    rows.insert(0, ["paper", "2.0", "2.8", "2.8", "3.2"].map(str::to_owned).to_vec());
    found.figures.push(Figure {
        name: "Table 3".to_owned(),
        title: "Response to a change".to_owned(),
        text:
            "From the change until flow 3's next running period begins, with T_TCP = 400 ms; and other ways to read it."
                .to_owned(),
        charts: Vec::new(),
        tables: vec![Table {
            caption: "Time from the change until the rate is stable".to_owned(),
            columns: ["", "T_pr, mean (s)", "T_pr, most (s)", "T_pi, mean (s)", "T_pi, most (s)"]
                .map(str::to_owned)
                .to_vec(),
            rows,
        }],
    });
    Ok(())
}
