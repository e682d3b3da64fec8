use super::readings::Way;
use super::scenarios::FIG10;
use super::series::{dropped_within, samples, timeouts_within};
use super::{Found, Lab, Options, Rule, Spec, parse_with, read};
use crate::experiment::{difference, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95, share_95};

/// Number of runs of each kind: without and with oscillation. The thesis shows one run of each kind.
const RUNS: u32 = 40;
/// Number of runs of each kind in each alternative interpretation of the thesis.
const RUNS_OF_READINGS: u32 = 20;
/// The part of a run in which timeouts count, in seconds. It begins when the available bandwidth drops at 20 s, and is
/// long enough for any timeout that the drop causes. Our choice: later timeouts have other causes.
const BEHIND_DROP: (f64, f64) = (20.0, 24.0);
/// Time at which the available bandwidth rises again, in seconds.
const RISE_S: f64 = 40.0;
/// 90 % of the converged window of 810 packets of 1500 bytes. The converged window is
/// `(γ · 80 + (1 - γ) · 100) Mbit/s · 120 ms`, with γ = 0.95, 80 Mbit/s available and a capacity of 100 Mbit/s.
const NEARLY_BACK: f64 = 0.9 * 810.0;
/// Strength m of the self-induced oscillation in the runs with oscillation (Kodama 2009, Fig. 14).
const STRENGTH: f64 = 0.3;
/// Time between two results of the bandwidth measurement, in seconds: 3.5 round-trip times of 120 ms.
const ONE_RESULT_S: f64 = 0.42;
const READINGS: [Way; 4] = [Way::Known, Way::RoundTrips, Way::KnownRoundTrips, Way::Sack];

pub(super) const CLAIMS: &[Spec] = &[TIMEOUT, DELAY, NO_TIMEOUT, NO_LOSS, FASTER];
const TIMEOUT: Spec = Spec::new(
    "fig10.timeout_without_oscillation",
    "Fig. 10",
    "Without oscillation the timer runs out behind the drop at 20 s, in most runs.",
    Rule::above(0.5),
)
.paper(1.0)
.unit("share of the runs");
const DELAY: Spec = Spec::new(
    "fig10.delay_after_rise",
    "Fig. 10",
    "Without oscillation the window needs some time to fill what is available from 40 s on: longer, to 90 %, than one measurement.",
    Rule::above(ONE_RESULT_S),
)
.unit("s");
const NO_TIMEOUT: Spec = Spec::new(
    "fig14.no_timeout_with_oscillation",
    "Fig. 14",
    "With m = 0.3 no timeout comes behind the drop, in most runs.",
    Rule::below(0.5),
)
.paper(0.0)
.unit("share of the runs");
const NO_LOSS: Spec = Spec::new(
    "fig14.no_loss_with_oscillation",
    "Fig. 14",
    "With m = 0.3 no packet is lost behind the drop, in most runs.",
    Rule::below(0.5),
)
.paper(0.0)
.unit("share of the runs");
const FASTER: Spec = Spec::new(
    "fig14.faster_recovery",
    "Fig. 14",
    "Behind the rise at 40 s the window grows faster with m = 0.3: the time until it is first back at 90 % of its converged value is \
     shorter than without.",
    Rule::below(0.0),
)
.unit("s longer than without");

pub(super) fn planned(options: &Options) -> u32 {
    2 * (options.runs(RUNS, 2) + READINGS.len() as u32 * options.runs(RUNS_OF_READINGS, 1))
}

/// Values from one run, for the claims and figures.
struct Outcome {
    timeouts: u64,
    dropped: u64,
    /// Time in seconds from the rise of the available bandwidth until the window reaches `NEARLY_BACK` or the run ends.
    back_s: f64,
    window: Vec<(f64, f64)>,
}

/// All runs with the same interpretation and the same strength of the oscillation.
struct Row {
    way: Way,
    strength: f64,
    outcomes: Vec<Outcome>,
}

impl Outcome {
    fn of(run: &Run) -> Self {
        let window: Vec<_> = samples(run, 0).iter().map(|sample| (sample.at_s, sample.window_segments)).collect();
        let back = window.iter().find(|(at_s, window)| *at_s > RISE_S && *window >= NEARLY_BACK);
        Self {
            timeouts: timeouts_within(run, 0, BEHIND_DROP),
            dropped: dropped_within(run, "E0-E1", BEHIND_DROP),
            back_s: back.map_or(run.lasted_s, |(at_s, _)| *at_s) - RISE_S,
            window,
        }
    }
}

impl Row {
    fn share(&self, is: impl Fn(&Outcome) -> bool) -> Option<Estimate> {
        share_95(self.outcomes.iter().filter(|outcome| is(outcome)).count(), self.outcomes.len())
    }

    fn timed_out(&self) -> Option<Estimate> {
        self.share(|outcome| outcome.timeouts > 0)
    }

    fn back_s(&self) -> Option<Estimate> {
        mean_95(&self.outcomes.iter().map(|outcome| outcome.back_s).collect::<Vec<_>>())
    }

    fn cells(&self) -> Vec<String> {
        let dropped: Vec<_> = self.outcomes.iter().map(|outcome| outcome.dropped as f64).collect();
        vec![
            self.way.name().to_owned(),
            self.strength.to_string(),
            with_interval(self.share(|outcome| outcome.dropped > 0), 2),
            with_interval(mean_95(&dropped), 0),
            with_interval(self.timed_out(), 2),
            with_interval(self.back_s(), 2),
        ]
    }
}

/// Runs Fig. 10 and 14, in which the available bandwidth is 80 Mbit/s, then 20 Mbit/s, then 80 Mbit/s again.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = rows(lab, Way::Main, runs)?;
    found.claims.extend(claims(&rows, runs));
    let runs = lab.options.runs(RUNS_OF_READINGS, 1);
    for way in READINGS {
        let of_way = self::rows(lab, way, runs)?;
        read(found, way.name(), claims(&of_way, runs));
        rows.extend(of_way);
    }
    found.figures.push(figure(&rows));
    Ok(())
}

/// Makes all runs of one interpretation, without and with oscillation.
fn rows(lab: &Lab<'_>, way: Way, runs: u32) -> Result<Vec<Row>, SimError> {
    let strengths = [0.0, STRENGTH].into_iter().filter_map(|m| Some((m, way.strength(m)?)));
    let row = |(m, strength): (f64, f64)| {
        let scenario = |place: f64| {
            // In each run, the flow starts at another time. So the time from the last measurement result to the drop of
            // the available bandwidth differs between the runs, too.
            let mut overrides = way.overrides("symbiosis");
            overrides.extend([
                Override::set("flow.symbiosis.start", format!("{:.3} ms", 1e3 * ONE_RESULT_S * place)),
                Override::set("flow.symbiosis.window.oscillation", strength),
            ]);
            parse_with(FIG10, &overrides)
        };
        Ok(Row { way, strength: m, outcomes: lab.spread(runs, scenario, Outcome::of)? })
    };
    strengths.map(row).collect()
}

fn claims(rows: &[Row], runs: u32) -> Vec<Claim> {
    let [without, with] = rows else { return Vec::new() };
    let faster = with.back_s().zip(without.back_s()).map(|(with, without)| difference(with, without));
    let both = format!(
        "{} s with m = 0.3, {} s without. {FROM_BELOW}",
        with_interval(with.back_s(), 2),
        with_interval(without.back_s(), 2)
    );
    vec![
        TIMEOUT.decide(runs, without.timed_out(), ""),
        DELAY.decide(runs, without.back_s(), ""),
        NO_TIMEOUT.decide(runs, with.timed_out(), NO_WAY_OUT),
        NO_LOSS.decide(runs, with.share(|outcome| outcome.dropped > 0), ""),
        FASTER.decide(runs, faster, both),
    ]
}

/// A note that the claim `NO_TIMEOUT` shows: why packets are lost when the available bandwidth drops to 20 Mbit/s.
const NO_WAY_OUT: &str = "A full queue of 1000 packets takes 114 ms; with 20 Mbit/s left, a window above 20 Mbit/s · 234 ms = 390 packets overfills \
     it, and does so within 0.3 s, before a measurement tells of the drop. By Eq. 9 the window is 810 without oscillation, and with \
     m = 0.3 strays from there by m / √(2 ε w* / (K τ)) = 17 % (Eq. 17 made linear, time in seconds): 390 packets are three such \
     deviations away.";

/// A note that the claim `FASTER` shows: the range of the window at 40 s, when the window begins to grow again.
const FROM_BELOW: &str =
    "At 40 s the window with m = 0.3 lies anywhere about 240 packets, by m / √(2 ε w* / (K τ)) = 31 %.";

fn figure(rows: &[Row]) -> Figure {
    let charts = rows.chunks(2).map(|pair| Plot {
        title: format!("Congestion window, {}", pair[0].way.name()),
        x: "time (s)",
        y: "window (packets)",
        y_limits: Some((0.0, 1400.0)),
        layers: pair
            .iter()
            .filter_map(|row| {
                let window = row.outcomes.first()?.window.clone();
                Some(PlotLayer { name: format!("m = {}", row.strength), data: PlotData::Line(window) })
            })
            .collect(),
        marks: vec![(810.0, "converged window for 80 Mbit/s".to_owned()), (240.0, "for 20 Mbit/s".to_owned())],
    });
    let columns = [
        "reading",
        "m",
        "runs with losses behind the drop",
        "packets lost behind it",
        "runs with a timeout behind it",
        "back at 90 % after (s)",
    ];
    Figure {
        name: "Fig. 10, 14".to_owned(),
        title: "80, 20 and again 80 Mbit/s available, without and with oscillation".to_owned(),
        text: "The first run of each; the drop comes at 20 s, the rise at 40 s. Behind the drop means within 4 s."
            .to_owned(),
        charts: charts.collect(),
        tables: vec![Table {
            caption: "All runs, means and shares with 95 % intervals".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.iter().map(Row::cells).collect(),
        }],
    }
}
