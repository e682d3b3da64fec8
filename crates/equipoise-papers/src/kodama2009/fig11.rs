use super::readings::Way;
use super::scenarios::FIG11;
use super::series::{jain_of_means, jain_of_moments, samples, tcp};
use super::{Found, Lab, Options, Rule, Spec, parse_with, read};
use crate::experiment::{difference, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::result::{Run, TcpSample};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95};

/// Number of runs of each kind: without and with oscillation. The thesis shows one run of each kind. A run needs half a
/// minute of processor time.
const RUNS: u32 = 4;
/// Number of runs for each strength of the oscillation in each alternative interpretation of the thesis. It is also the
/// number of runs for `OTHER_STRENGTH` in the main interpretation. All these runs end when all ten connections have
/// been active for 200 s.
const RUNS_OF_READINGS: u32 = 2;
const CONNECTIONS: usize = 10;
/// Time between the starts of two connections, in seconds.
const EVERY_S: f64 = 200.0;
/// Length of the part of a stage that is evaluated, in seconds. In a stage, the number of connections is constant. The
/// part is at the end of the stage, when the windows have settled.
const SETTLED_S: f64 = 100.0;
/// Indices of the fourth to the tenth connection. According to the thesis, the connections do not share the bandwidth
/// fairly after the fourth connection has joined.
const LATE: std::ops::Range<usize> = 3..CONNECTIONS;
/// Maximum time from the start of a connection until the connection has found its minimum round-trip time, in seconds.
/// Our choice: a tenth of the time until the next connection joins.
const BEGINNING_S: f64 = 20.0;
/// The round-trip time of the path without queueing, in ms.
const ROUND_TRIP_MS: f64 = 120.0;
/// A connection's minimum round-trip time counts as wrong if it exceeds the path's round-trip time by more than this,
/// in ms. Our choice: 1 ms changes a window by only 0.8 %.
const WRONG_MS: f64 = 1.0;
/// Strength m of the self-induced oscillation, in the runs with oscillation. The thesis does not state m for Fig. 17,
/// so we use the value of Fig. 14.
const STRENGTH: f64 = 0.3;
/// Another strength m of the self-induced oscillation that the thesis uses. It is tested as another interpretation of
/// Fig. 17.
const OTHER_STRENGTH: f64 = 0.1;
/// The interpretations of the thesis, other than the main one, that are tested here.
const READINGS: [Way; 3] = [Way::Known, Way::RoundTrips, Way::KnownRoundTrips];
/// Indices of the connections that the charts show. With more lines, a chart would be hard to read.
const DRAWN: [usize; 5] = [0, 2, 4, 6, 9];

pub(super) const CLAIMS: &[Spec] = &[WRONG, FIRST_THREE, UNFAIR, UNFAIR_LEAVING, RIGHT, FAIR, FAIR_LEAVING, FAIRER];
const WRONG: Spec = Spec::new(
    "fig11.wrong_minimum",
    "Fig. 11",
    "Without oscillation late connections take a queue that never empties for part of the path: of the fourth to the tenth, those \
     whose minimum round trip is more than 1 ms above 120 ms 20 s after they began.",
    Rule::above(0.5),
)
.unit("share of late connections");
const FIRST_THREE: Spec = Spec::new(
    "fig11.first_three_fair",
    "Fig. 11",
    "Without oscillation the first three connections remain fair to each other: Jain's index of their mean windows over the last \
     100 s of each number of connections, in the mean over four to ten.",
    Rule::above(0.95),
)
.unit("Jain's index");
const UNFAIR: Spec = Spec::new(
    "fig11.unfair_without",
    "Fig. 11",
    "Without oscillation the windows are unfair once the fourth connection has joined: the same index of all windows.",
    Rule::below(0.95),
)
.unit("Jain's index");
const UNFAIR_LEAVING: Spec = Spec::new(
    "fig11.unfair_leaving",
    "Fig. 11",
    "They are still unfair while connections leave, from nine to four: the same index.",
    Rule::below(0.95),
)
.unit("Jain's index");
const RIGHT: Spec = Spec::new(
    "fig17.right_minimum",
    "Fig. 17",
    "With oscillation every connection finds the right minimum at its beginning: the same share as in Fig. 11.",
    Rule::below(0.05),
)
.paper(0.0)
.unit("share of late connections");
const FAIR: Spec = Spec::new(
    "fig17.fair_with",
    "Fig. 17",
    "With oscillation the windows are fair, whatever the number of connections: Jain's index of all mean windows, in the mean over \
     four to ten.",
    Rule::above(0.95),
)
.paper(1.0)
.unit("Jain's index");
const FAIR_LEAVING: Spec = Spec::new(
    "fig17.fair_leaving",
    "Fig. 17",
    "They are fair as well while connections leave, from nine to four: the same index.",
    Rule::above(0.95),
)
.paper(1.0)
.unit("Jain's index");
const FAIRER: Spec = Spec::new(
    "fig17.fairer_with",
    "Fig. 17",
    "With oscillation the windows are fairer than without: the same index, with less without.",
    Rule::above(0.0),
)
.unit("difference of Jain's indices");

pub(super) fn planned(options: &Options) -> u32 {
    2 * options.runs(RUNS, 1) + (2 * READINGS.len() as u32 + 1) * options.runs(RUNS_OF_READINGS, 1)
}

/// A line for each connection: a list of points (x, y).
type Lines = Vec<Vec<(f64, f64)>>;

/// Values from one run, for the claims and figures.
struct Outcome {
    /// Jain's index with one to ten active connections. `jain` is the index of the mean windows. For comparison,
    /// `jain_of_moments` is computed from the windows at each sampling time, and then averaged over time.
    jain: Vec<f64>,
    jain_of_moments: Vec<f64>,
    /// Jain's index of the first three connections only, with one to ten active connections.
    first_three: Vec<f64>,
    /// Jain's index in the stages in which connections leave, with one to nine remaining connections.
    leaving: Vec<f64>,
    /// Each connection's minimum round-trip time minus the path's minimum round-trip time, in ms. `excess_ms` has the
    /// values `BEGINNING_S` after the connection's start, and `last_excess_ms` has the values at the connection's end.
    excess_ms: Vec<f64>,
    last_excess_ms: Vec<f64>,
    timeouts: u64,
    /// The window and the minimum round-trip time of each connection over time.
    windows: Lines,
    round_trips: Lines,
}

/// Returns the start and the end, in seconds, of the part of a run that is evaluated for the stage in which `count`
/// connections are active and no connection has left yet.
fn joining(count: usize) -> (f64, f64) {
    let end = EVERY_S * count as f64;
    (end - SETTLED_S, end)
}

/// Returns the start and the end, in seconds, of the part of a run that is evaluated for the stage in which `count`
/// connections are active and the others have left.
fn leaving(count: usize) -> (f64, f64) {
    joining(2 * CONNECTIONS - count)
}

impl Outcome {
    fn of(run: &Run) -> Self {
        let there = |flow: usize| {
            let last = 2.0 * CONNECTIONS as f64 - 1.0 - flow as f64;
            let stretch = EVERY_S * flow as f64..EVERY_S * last;
            samples(run, flow).iter().filter(move |sample| stretch.contains(&sample.at_s))
        };
        let excess = |least: Option<f64>| least.map_or(f64::NAN, |least| least * 1e3) - ROUND_TRIP_MS;
        let at_first = |flow: usize| {
            let by = EVERY_S * flow as f64 + BEGINNING_S;
            let sample = samples(run, flow).iter().take_while(|sample| sample.at_s <= by + 1e-6).last();
            excess(sample.and_then(|sample| sample.min_round_trip_s))
        };
        let at_last = |flow: usize| excess(tcp(run, flow).and_then(|tcp| tcp.min_round_trip_s));
        let line = |of: fn(&TcpSample) -> Option<f64>| {
            let line = |flow| there(flow).filter_map(|sample| Some((sample.at_s, of(sample)?))).collect();
            (0..CONNECTIONS).map(line).collect()
        };
        let all = || 1..=CONNECTIONS;
        Self {
            jain: all().map(|count| jain_of_means(run, 0..count, joining(count))).collect(),
            jain_of_moments: all().map(|count| jain_of_moments(run, 0..count, joining(count))).collect(),
            first_three: all().map(|count| jain_of_means(run, 0..count.min(3), joining(count))).collect(),
            leaving: (1..CONNECTIONS).map(|count| jain_of_means(run, 0..count, leaving(count))).collect(),
            excess_ms: (0..CONNECTIONS).map(at_first).collect(),
            last_excess_ms: (0..CONNECTIONS).map(at_last).collect(),
            timeouts: (0..CONNECTIONS).filter_map(|flow| tcp(run, flow)?.timeouts).sum(),
            windows: line(|sample| Some(sample.window_segments)),
            round_trips: line(|sample| sample.min_round_trip_s.map(|least| least * 1e3)),
        }
    }
}

/// Returns the share of connections with a wrong minimum round-trip time among the fourth to the tenth connection.
fn late_wrong(excess_ms: &[f64]) -> f64 {
    excess_ms[LATE].iter().filter(|&&excess| excess > WRONG_MS).count() as f64 / LATE.len() as f64
}

/// Returns the mean of the numbers from the fourth number on.
fn late(numbers: &[f64]) -> f64 {
    let numbers = numbers.get(LATE.start..).unwrap_or_default();
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> Option<Estimate> {
    mean_95(&outcomes.iter().map(of).collect::<Vec<_>>())
}

/// Makes the runs of one interpretation, with oscillation of strength `m` and with additional overrides. Returns no
/// outcomes if the interpretation does not allow this strength.
fn outcomes(lab: &Lab<'_>, (way, m): (Way, f64), runs: u32, more: &[Override]) -> Result<Vec<Outcome>, SimError> {
    let Some(strength) = way.strength(m) else { return Ok(Vec::new()) };
    let scenario = |place: f64| {
        // Without oscillation the scenario has no randomness, and all runs would be equal. So that they differ, the
        // second connection joins at a different time in each run.
        let mut overrides = way.overrides("*");
        overrides.extend([
            Override::set("flow.*.window.oscillation", strength),
            Override::set("flow.connection 2.start", format!("{:.3} s", EVERY_S + 0.42 * place)),
        ]);
        overrides.extend_from_slice(more);
        parse_with(FIG11, &overrides)
    };
    lab.spread(runs, scenario, Outcome::of)
}

/// Runs Fig. 11 and 17, in which the number of connections rises from one to ten and falls to one again.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 1);
    let main = |m| outcomes(lab, (Way::Main, m), runs, &[]);
    let (without, with) = (main(0.0)?, main(STRENGTH)?);
    found.claims.extend(of_fig11(&without, runs));
    found.claims.push(UNFAIR_LEAVING.decide(runs, leaving_fairness(&without), ""));
    found.claims.extend(of_fig17(&without, &with, runs));
    found.claims.push(FAIR_LEAVING.decide(runs, leaving_fairness(&with), ""));
    found.figures.push(figure(&without, &with));
    let runs = lab.options.runs(RUNS_OF_READINGS, 1);
    let joined = joined();
    let of = |way, m| outcomes(lab, (way, m), runs, &joined);
    read(found, &format!("Fig. 17: m = {OTHER_STRENGTH}"), of_fig17(&without, &of(Way::Main, OTHER_STRENGTH)?, runs));
    for way in READINGS {
        let (without, with) = (of(way, 0.0)?, of(way, STRENGTH)?);
        read(found, way.name(), of_fig11(&without, runs));
        read(found, way.name(), of_fig17(&without, &with, runs));
    }
    Ok(())
}

/// Returns the overrides that end a run before any connection leaves.
fn joined() -> Vec<Override> {
    let stops = (2..=CONNECTIONS).map(|number| Override::remove(format!("flow.connection {number}.stop")));
    std::iter::once(Override::set("duration", format!("{} s", EVERY_S * CONNECTIONS as f64))).chain(stops).collect()
}

fn leaving_fairness(outcomes: &[Outcome]) -> Option<Estimate> {
    mean(outcomes, |outcome| late(&outcome.leaving))
}

fn fairness(outcomes: &[Outcome]) -> Option<Estimate> {
    mean(outcomes, |outcome| late(&outcome.jain))
}

fn wrong(outcomes: &[Outcome]) -> Option<Estimate> {
    mean(outcomes, |outcome| late_wrong(&outcome.excess_ms))
}

fn moments(outcomes: &[Outcome]) -> String {
    format!("Moment by moment {}.", with_interval(mean(outcomes, |outcome| late(&outcome.jain_of_moments)), 3))
}

fn excess(outcomes: &[Outcome]) -> String {
    format!(
        "Above 120 ms by {} ms in the mean after 20 s. At their end {} of them are still wrong.",
        with_interval(mean(outcomes, |outcome| late(&outcome.excess_ms)), 2),
        with_interval(mean(outcomes, |outcome| late_wrong(&outcome.last_excess_ms)), 2)
    )
}

fn of_fig11(without: &[Outcome], runs: u32) -> Vec<Claim> {
    vec![
        WRONG.decide(runs, wrong(without), excess(without)),
        FIRST_THREE.decide(runs, mean(without, |outcome| late(&outcome.first_three)), ""),
        UNFAIR.decide(runs, fairness(without), moments(without)),
    ]
}

fn of_fig17(without: &[Outcome], with: &[Outcome], runs: u32) -> Vec<Claim> {
    let better = fairness(with).zip(fairness(without)).map(|(with, without)| difference(with, without));
    let note = format!("{} {WANDER}", moments(with));
    let both = format!("With: {} Without: {}", moments(with), moments(without));
    vec![
        RIGHT.decide(runs, wrong(with), excess(with)),
        FAIR.decide(runs, fairness(with), note),
        FAIRER.decide(runs, better, both),
    ]
}

/// The note of a claim. It states how unequal the windows become due to oscillation.
const WANDER: &str = "n equal connections that fill the link rest at a queue of (n - 1) (1 - γ) K τ packets, as A_i is what the others' rates \
     leave (Eq. 8 with rates of w / (τ + queueing delay)). There a difference of two windows dies out at a rate of ε (1 - γ), 1 / 10 s \
     with ε = 1.95 / s, whatever n is; noise of strength m keeps windows apart by m / √(2 ε (1 - γ)) = 0.68 of their mean. Where \
     A is known, Jain's index of a moment's windows is then about 1 / (1 + 0.68²) = 0.68; the means over 100 s are fairer, the more so \
     the sooner differences die out.";

fn figure(without: &[Outcome], with: &[Outcome]) -> Figure {
    let plot = |title: String, y, limits, of: fn(&Outcome) -> &Lines, outcomes: &[Outcome]| Plot {
        title,
        x: "time (s)",
        y,
        y_limits: Some(limits),
        layers: outcomes.first().map_or(Vec::new(), |outcome| {
            let line = |flow: usize| PlotLayer {
                name: format!("connection {}", flow + 1),
                data: PlotData::Line(of(outcome)[flow].clone()),
            };
            DRAWN.map(line).into()
        }),
        marks: Vec::new(),
    };
    let charts = [(without, "without oscillation"), (with, "m = 0.3")].into_iter().flat_map(|(outcomes, kind)| {
        let window =
            plot(format!("Congestion window, {kind}"), "window (packets)", (0.0, 1200.0), |o| &o.windows, outcomes);
        let title = format!("Minimum round-trip time, {kind}");
        [window, plot(title, "minimum round trip (ms)", (100.0, 240.0), |o| &o.round_trips, outcomes)]
    });
    let row = |flow: usize| {
        let cells = [without, with].map(|outcomes| {
            let left = mean(outcomes, |outcome| outcome.leaving.get(flow).copied().unwrap_or(f64::NAN));
            [
                with_interval(mean(outcomes, |outcome| outcome.jain[flow]), 3),
                with_interval(mean(outcomes, |outcome| outcome.jain_of_moments[flow]), 3),
                with_interval(left.filter(|left| left.value.is_finite()), 3),
                with_interval(mean(outcomes, |outcome| outcome.excess_ms[flow]), 2),
                with_interval(mean(outcomes, |outcome| outcome.last_excess_ms[flow]), 2),
            ]
        });
        let mut row = vec![(flow + 1).to_string()];
        row.extend(cells.into_iter().flatten());
        row
    };
    let heads = ["m = 0", "m = 0.3"].map(|m| {
        [
            format!("Jain's index with so many, {m}"),
            format!("moment by moment, {m}"),
            format!("with so many left, {m}"),
            format!("its minimum above 120 ms after 20 s (ms), {m}"),
            format!("and at its end (ms), {m}"),
        ]
    });
    let timeouts = |outcomes: &[Outcome]| with_interval(mean(outcomes, |outcome| outcome.timeouts as f64), 0);
    Figure {
        name: "Fig. 11, 17".to_owned(),
        title: "One to ten to one connections".to_owned(),
        text: format!(
            "One more every 200 s, from 1800 s on ten, from 2000 s on one less every 200 s, the last first. Five of the ten \
             are drawn. Timeouts of all ten in a run: {} without oscillation, {} with.",
            timeouts(without),
            timeouts(with)
        ),
        charts: charts.collect(),
        tables: vec![Table {
            caption: "Fairness of the mean windows over the last 100 s of each number of connections, and minimum round trips"
                .to_owned(),
            columns: std::iter::once("connection".to_owned()).chain(heads.into_iter().flatten()).collect(),
            rows: (0..CONNECTIONS).map(row).collect(),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The third connection joins at 400 s, the tenth at 1800 s. After 2000 s nine are left, and after 2200 s eight. If
    /// this test fails, Jain's indices are computed over the wrong part of a stage.
    #[test]
    fn the_last_half_of_each_number_of_connections_counts() {
        assert_eq!([joining(3), joining(10)], [(500.0, 600.0), (1900.0, 2000.0)]);
        assert_eq!([leaving(9), leaving(8), leaving(1)], [(2100.0, 2200.0), (2300.0, 2400.0), (3700.0, 3800.0)]);
        assert!((late(&[0.0, 0.0, 0.0, 1.0, 0.5, 0.9, 0.0]) - 0.6).abs() < 1e-12);
    }
}
