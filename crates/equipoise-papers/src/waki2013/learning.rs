use equipoise::control::ap::md1;
use equipoise::units::{Size, Span};

use super::scenarios::AP_LEARN;
use super::{Found, Lab, Options, Rule, Spec, parse_with, ratio, with_interval};
use crate::{Claim, Figure, Table};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, jain, median_95};

/// Number of runs of each setting.
const RUNS: u32 = 30;
/// Number of runs of a setting with a wide link. These runs have the most packets and the least variation, and no claim
/// uses them.
const WIDE_RUNS: u32 = 10;
/// A link counts as wide if its capacity, in Mbit/s, is at least this value.
const WIDE: f64 = 50.0;
/// How the session determines the coefficient of response b: values of the controller's parameter `learn`.
const FORMS: [&str; 3] = ["never", "probe", "adapt"];
/// Capacities of the bottleneck, in Mbit/s.
const CAPACITIES: [f64; 5] = [2.0, 5.0, 15.0, 50.0, 100.0];
/// Report intervals, in seconds.
const INTERVALS: [f64; 3] = [0.2, 1.0, 10.0];
/// The right value of the coefficient of response b, as stated in Waki 2013.
const PAPER: f64 = 300.0;
/// Wrong values of the coefficient of response b: a quarter of the right value, and four times the right value.
const WRONG: [f64; 2] = [75.0, 1200.0];
/// The settings that the claims use: the report interval in seconds, and the coefficient of response b that is given to
/// the session.
const JUDGED: [(f64, f64); 2] = [(1.0, WRONG[0]), (1.0, WRONG[1])];
/// Numbers of sessions that share the bottleneck.
const SESSIONS: [u32; 4] = [1, 2, 4, 8];
/// The load of the bottleneck at which the mean delay equals the target.
const LOAD: f64 = 0.8;
/// Propagation delay of the path, in seconds.
const PROPAGATION_S: f64 = 7e-3;

const UNIT: &str = "ratio of medians";
const FOUND: Rule = Rule::within(0.5, 2.0);
const GAINED: Rule = Rule::below(1.0);
const FROM_BELOW: Spec = Spec::new(
    "learned.from_below",
    "Sec. 8",
    "From b = 75, adapting leads to the b of an M/D/1 queue at the target's load, or half or twice of it, with a report every second.",
    FOUND,
)
.unit(UNIT)
.ours();
const GAIN_BELOW: Spec = Spec::new(
    "learned.gain_below",
    "Sec. 8",
    "From b = 75, adapting holds the delay closer than the wrong b does.",
    GAINED,
)
.unit(UNIT)
.ours();
const FROM_ABOVE: Spec = Spec::new(
    "learned.from_above",
    "Sec. 8",
    "From b = 1200, adapting leads to the b of an M/D/1 queue at the target's load, or half or twice of it, with a report every second.",
    FOUND,
)
.unit(UNIT)
.ours();
const GAIN_ABOVE: Spec = Spec::new(
    "learned.gain_above",
    "Sec. 8",
    "From b = 1200, adapting holds the delay closer than the wrong b does.",
    GAINED,
)
.unit(UNIT)
.ours();

pub(super) const CLAIMS: &[Spec] = &[FROM_BELOW, GAIN_BELOW, FROM_ABOVE, GAIN_ABOVE];

/// A setting of the comparison.
#[derive(Clone, Copy)]
struct Setting {
    capacity_mbps: f64,
    interval_s: f64,
    given: f64,
    sessions: u32,
    learn: &'static str,
}

/// The results of a run with a setting.
struct Outcome {
    /// `settled_delay_s` of the first session minus the target, divided by the queueing delay at the target.
    error: f64,
    /// Root mean squared error of the first session's interval delays against the target, divided by the queueing delay
    /// at the target.
    deviation: f64,
    /// Rate of all sessions together, divided by the capacity of the bottleneck.
    rate: f64,
    /// Jain's index of the rates of all sessions.
    jain: f64,
    /// The first session's estimate of b, the coefficient of response, at the end of the run.
    response: f64,
}

impl Setting {
    fn target_s(&self) -> f64 {
        let mu = self.capacity_mbps * 125.0;
        PROPAGATION_S + md1::mean_time(LOAD * mu, mu)
    }

    /// Returns the scenario file with the values of this setting. If there are several sessions, the session of the
    /// file is copied.
    fn scenario(&self) -> Scenario {
        let capacity = self.capacity_mbps;
        // With a report interval of 10 s, a run measures 400 s (40 intervals) after the warm-up. With shorter
        // intervals, it measures 100 s.
        let (warm_up, lasts) = if self.interval_s > 5.0 { ("200 s", "600 s") } else { ("100 s", "200 s") };
        let overrides = [
            Override::set("duration", lasts),
            Override::set("warm_up", warm_up),
            Override::set("link.bottleneck.rate", format!("{capacity} Mbit/s")),
            Override::set("flow.background.source.rate", format!("{:.4} Mbit/s", capacity * 0.6)),
            Override::set("flow.media.report_interval", format!("{} s", self.interval_s)),
            Override::set("flow.media.controller.target", format!("{:.4} ms", self.target_s() * 1e3)),
            Override::set("flow.media.controller.b", self.given),
            Override::set("flow.media.controller.min_rate", format!("{:.4} Mbit/s", capacity / 150.0)),
            Override::set("flow.media.controller.max_rate", format!("{capacity} Mbit/s")),
            Override::set("flow.media.controller.learn", self.learn),
        ];
        let mut scenario = parse_with(AP_LEARN, &overrides);
        if let Some(session) = scenario.flows.last().cloned() {
            for further in 1..self.sessions {
                let mut session = session.clone();
                session.name = format!("media {}", further + 1);
                // The sessions start one after another, so that later sessions start while others already send.
                session.start = Span::from_nanos((self.interval_s * 1e9 / 3.0) as i64) * i64::from(further);
                scenario.flows.push(session);
            }
        }
        scenario
    }

    fn run(&self, lab: &Lab<'_>) -> Result<Vec<Outcome>, SimError> {
        let waiting_s = self.target_s() - PROPAGATION_S - 8e-3 / self.capacity_mbps;
        lab.runs(&self.scenario(), runs_at(&lab.options, self.capacity_mbps), |run| {
            Outcome::of(run, waiting_s, self.capacity_mbps)
        })
    }
}

impl Outcome {
    fn of(run: &Run, waiting_s: f64, capacity_mbps: f64) -> Self {
        let sessions: Vec<_> = run.flows.iter().filter(|flow| flow.controller.is_some()).collect();
        let rates: Vec<_> = sessions.iter().map(|session| session.mean_rate_bps.unwrap_or(0.0)).collect();
        let first = sessions.first();
        let number = |of: Option<f64>| of.unwrap_or(f64::NAN);
        let target_s = number(first.and_then(|session| session.target_s));
        Self {
            error: (number(first.and_then(|session| session.settled_delay_s)) - target_s) / waiting_s,
            deviation: number(first.and_then(|session| session.mse_s2)).sqrt() / waiting_s,
            rate: rates.iter().sum::<f64>() / 1e6 / capacity_mbps,
            jain: jain(&rates),
            response: number(first.and_then(|session| session.response)),
        }
    }
}

fn grid() -> impl Iterator<Item = (f64, f64, f64)> {
    let all = INTERVALS.into_iter().flat_map(|interval| CAPACITIES.map(|capacity| (interval, capacity, PAPER)));
    let wrong = WRONG.into_iter().flat_map(|given| INTERVALS.map(|interval| (interval, 15.0, given)));
    all.chain(wrong)
}

/// Returns the number of runs of a setting with a given capacity.
fn runs_at(options: &Options, capacity_mbps: f64) -> u32 {
    options.runs(if capacity_mbps < WIDE { RUNS } else { WIDE_RUNS }, 4)
}

pub(super) fn planned(options: &Options) -> u32 {
    let single: u32 = grid().map(|(_, capacity_mbps, _)| runs_at(options, capacity_mbps)).sum();
    (single + SESSIONS.len() as u32 * 2 * runs_at(options, 15.0)) * FORMS.len() as u32
}

/// Compares variants of AP. The coefficient of response b is constant, is learned in a probing phase, or is learned
/// during the whole session.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let mut rows = Vec::new();
    for (interval_s, capacity_mbps, given) in grid() {
        let mut cells = vec![format!("{interval_s} s"), format!("{capacity_mbps}"), format!("{given}")];
        let mut by_form = Vec::new();
        for learn in FORMS {
            let outcomes = Setting { capacity_mbps, interval_s, given, sessions: 1, learn }.run(lab)?;
            let number = |number: fn(&Outcome) -> f64, decimals: usize| {
                middle(&outcomes, number).map_or("–".to_owned(), |of| format!("{:.decimals$}", of.value))
            };
            let error = number(|outcome| outcome.error * 100.0, 0);
            cells.push(format!("{error}; {}", number(|outcome| outcome.deviation * 100.0, 0)));
            cells.push(number(|outcome| outcome.rate, 3));
            if learn != FORMS[0] {
                cells.push(with_interval(middle(&outcomes, |outcome| outcome.response), 0));
            }
            by_form.push(outcomes);
        }
        if let ([never, .., adapt], true) = (by_form.as_slice(), JUDGED.contains(&(interval_s, given))) {
            found.claims.extend(claims(given, never, adapt));
        }
        rows.push(cells);
    }
    let tables = vec![
        Table {
            caption: "One session: medians of the runs, for b given, learned by probing, and adapted".to_owned(),
            columns: heads(
                &["report every", "capacity (Mbit/s)", "b given"],
                &["error; deviation (%)", "rate", "b in the end"],
                &["b in the end"],
            ),
            rows,
        },
        Table {
            caption: "Several sessions at 15 Mbit/s, b = 300 given".to_owned(),
            columns: heads(&["report every", "sessions"], &["error (%)", "rate together", "Jain's index"], &[]),
            rows: shared(lab)?,
        },
    ];
    found.figures.push(Figure {
        name: "b learned".to_owned(),
        title: "b given, learned by a probing phase, and adapted during the session".to_owned(),
        text: "The robust law beside a Poisson load of 0.6, its target the delay of an M/D/1 queue at load 0.8; b(0.8) is 293 \
               there. Error: settled delay beyond the target; deviation: root of the mean squared error of the intervals' \
               means; both as a share of the waiting that the target allows. Rate: as a share of the capacity."
            .to_owned(),
        charts: Vec::new(),
        tables,
    });
    Ok(())
}

fn shared(lab: &Lab<'_>) -> Result<Vec<Vec<String>>, SimError> {
    let mut rows = Vec::new();
    for interval_s in [1.0, 10.0] {
        for sessions in SESSIONS {
            let mut cells = vec![format!("{interval_s} s"), sessions.to_string()];
            for learn in FORMS {
                let outcomes = Setting { capacity_mbps: 15.0, interval_s, given: PAPER, sessions, learn }.run(lab)?;
                let error = middle(&outcomes, |outcome| outcome.error * 100.0);
                cells.extend([
                    error.map_or("–".to_owned(), |error| format!("{:.0}", error.value)),
                    with_interval(middle(&outcomes, |outcome| outcome.rate), 3),
                    with_interval(middle(&outcomes, |outcome| outcome.jain), 2),
                ]);
            }
            rows.push(cells);
        }
    }
    Ok(rows)
}

/// Returns the column headings: the headings in `first`, and then, for each entry of [`FORMS`], the headings in `each`.
/// The entry `FORMS[0]` ("never") means that the coefficient of response b is not learned. For this entry, the headings
/// that are in `learned` are left out.
fn heads(first: &[&str], each: &[&str], learned: &[&str]) -> Vec<String> {
    let forms = FORMS.iter().flat_map(|form| {
        let heads = each.iter().filter(move |head| *form != FORMS[0] || !learned.contains(head));
        heads.map(move |head| format!("{form}: {head}"))
    });
    first.iter().map(|&head| head.to_owned()).chain(forms).collect()
}

fn middle(outcomes: &[Outcome], number: impl Fn(&Outcome) -> f64) -> Option<Estimate> {
    median_95(&outcomes.iter().map(number).collect::<Vec<_>>())
}

/// Returns two claims: a wrong coefficient of response b is corrected, and the correction brings the delay closer to
/// the target.
fn claims(given: f64, never: &[Outcome], adapt: &[Outcome]) -> [Claim; 2] {
    let [found, gain] = if given < PAPER { [FROM_BELOW, GAIN_BELOW] } else { [FROM_ABOVE, GAIN_ABOVE] };
    let runs = adapt.len() as u32;
    let right = md1::response(LOAD, Size::from_bytes(1000));
    let learned = middle(adapt, |outcome| outcome.response / right);
    let deviation = |outcome: &Outcome| outcome.deviation;
    let gained =
        middle(adapt, deviation).zip(middle(never, deviation)).and_then(|(with, without)| ratio(with, without));
    [
        found.decide(
            runs,
            learned,
            format!("The right one is {right:.0}. What was given counts for as much as an answer that is known to half of itself."),
        ),
        gain.decide(runs, gained, "Pushing has a price: the rate that teaches is not the rate that is right."),
    ]
}
