//! Repeats Fig. 3 and 4: delay and throughput of all five methods at each total rate.

use super::part::Part;
use super::setting::{
    AP, AP_300, LTE_ONLY, METHODS, Method, Outcome, RUNS, Row, SINGLES, TOTALS, apart, delays_over_time,
    rates_over_time, ratio, session,
};
use super::{Found, Lab, Mean, Options, Rule, Spec};
use crate::{Claim, Figure, Reading, Table};
use equipoise_lab::sim::SimError;

/// The claims about the panels (a), (b) and (c) of the figures. Panel (a) has a total rate of 1.5 Mbit/s. The
/// paper's text does not state the rates of (b) and (c); our main interpretation uses 3.0 and 4.8 Mbit/s.
#[derive(Clone, Copy)]
pub(super) struct Specs {
    /// The names of the two figures in the results.
    pub(super) figures: [&'static str; 2],
    pub(super) quite_well: Spec,
    pub(super) below_min_delay: Spec,
    pub(super) lte_surges: Spec,
    pub(super) min_delay_surges: Spec,
    pub(super) near_best: Spec,
    pub(super) below_single: Spec,
    pub(super) keep_total: Spec,
    pub(super) lte_drops: Spec,
    pub(super) throughput_near_best: Spec,
    pub(super) lte_bottleneck: Spec,
    pub(super) beats_single: Spec,
}

/// Defines the claims. The identifiers of claims about the live experiment differ from the identifiers of claims about
/// the simulated experiment.
macro_rules! specs {
    ($figures:expr, $fig3:literal, $fig4:literal) => {
        Specs {
            figures: $figures,
            quite_well: Spec::new(
                concat!($fig3, "ap_quite_well_low"),
                "Fig. 3(a)",
                "At 1.5 Mbit/s AP handles the traffic quite well: its delay is at most half above the best single path's.",
                Rule::below(1.5),
            )
            .unit("ratio"),
            below_min_delay: Spec::new(
                concat!($fig3, "others_below_min_delay"),
                "Fig. 3(a)",
                "At 1.5 Mbit/s AP, Equal and WiMAX-only have lower delays than Min-delay.",
                Rule::below(1.0).in_every_cell(),
            )
            .unit("ratio"),
            lte_surges: Spec::new(
                concat!($fig3, "lte_only_surges"),
                "Fig. 3(a)",
                "At 1.5 Mbit/s LTE's lower tolerance of bursts lets its delay surge. Our LTE path was made so.",
                Rule::above(2.0),
            )
            .unit("ratio")
            .fitted(),
            min_delay_surges: Spec::new(
                concat!($fig3, "min_delay_surges"),
                "Fig. 3(a)",
                "At 1.5 Mbit/s, Min-delay suffers surges: the traffic that it moves to LTE congests LTE. Our LTE path was made so.",
                Rule::above(2.0),
            )
            .unit("ratio")
            .fitted(),
            near_best: Spec::new(
                concat!($fig3, "ap_near_best_single"),
                "Fig. 3(b)",
                "At a higher total that WiMAX alone can carry, AP has nearly the delay of the best single path, although it does not know the paths.",
                Rule::below(1.2),
            )
            .unit("ratio"),
            below_single: Spec::new(
                concat!($fig3, "ap_below_single_above_capacity"),
                "Fig. 3(c)",
                "At a total that WiMAX alone cannot carry, AP's delay is below that of every single path.",
                Rule::below(1.0),
            )
            .unit("ratio"),
            keep_total: Spec::new(
                concat!($fig4, "others_keep_total"),
                "Fig. 4(a)",
                "At 1.5 Mbit/s, AP, Equal and WiMAX-only each carry at least 99 % of the total.",
                Rule::above(99.0).in_every_cell(),
            )
            .unit("% of the total"),
            lte_drops: Spec::new(
                concat!($fig4, "lte_only_drops"),
                "Fig. 4(a)",
                "At 1.5 Mbit/s the throughput of LTE-only decreases, by congestion. Our LTE path was made so.",
                Rule::below(99.0),
            )
            .unit("% of the total")
            .fitted(),
            throughput_near_best: Spec::new(
                concat!($fig4, "ap_near_best_single"),
                "Fig. 4(b)",
                "At a higher total that WiMAX alone can carry, AP has nearly the throughput of the best single path.",
                Rule::above(0.95),
            )
            .unit("ratio"),
            lte_bottleneck: Spec::new(
                concat!($fig4, "lte_only_bottleneck"),
                "Fig. 4(b)",
                "At a higher total LTE is a bottleneck, whose throughput decreases drastically. Our LTE path was made so.",
                Rule::below(80.0),
            )
            .unit("% of the total")
            .fitted(),
            beats_single: Spec::new(
                concat!($fig4, "ap_beats_single_above_capacity"),
                "Fig. 4(c)",
                "At a total that WiMAX alone cannot carry, AP's throughput is above that of every single path. This claim failed at first; then the law was given a rule for paths without statistics.",
                Rule::above(0.0),
            )
            .unit("Mbit/s more")
            .fitted(),
        }
    };
}
#[cfg(feature = "live")]
pub(super) use specs;

const SIMULATED: Specs = specs!(["Fig. 3", "Fig. 4"], "fig3.", "fig4.");

pub(super) const CLAIMS_3: &[Spec] = &[
    SIMULATED.quite_well,
    SIMULATED.below_min_delay,
    SIMULATED.lte_surges,
    SIMULATED.min_delay_surges,
    SIMULATED.near_best,
    SIMULATED.below_single,
];
pub(super) const CLAIMS_4: &[Spec] = &[
    SIMULATED.keep_total,
    SIMULATED.lte_drops,
    SIMULATED.throughput_near_best,
    SIMULATED.lte_bottleneck,
    SIMULATED.beats_single,
];

/// One way to interpret the paper: the total rates of the panels (a), (b) and (c) in Mbit/s, and the method AP with its
/// coefficient of response b. The first element of `READINGS` is our main interpretation.
struct Setting {
    name: &'static str,
    totals: [&'static str; 3],
    ap: Method,
}

const READINGS: [Setting; 4] = [
    Setting { name: "main: 3.0 and 4.8 Mbit/s for (b) and (c), b = 600", totals: TOTALS, ap: AP },
    Setting { name: "2.5 and 4.5 Mbit/s for (b) and (c)", totals: ["1.5", "2.5", "4.5"], ap: AP },
    Setting { name: "3.5 and 5.2 Mbit/s for (b) and (c)", totals: ["1.5", "3.5", "5.2"], ap: AP },
    Setting { name: "b = 300, as for packets of 1000 bytes", totals: TOTALS, ap: AP_300 },
];

pub(super) fn planned(options: &Options) -> u32 {
    (READINGS.len() * TOTALS.len() * METHODS.len()) as u32 * options.runs(RUNS, 2)
}

/// The results at one total rate: one row for each method, in the order of [`METHODS`]. For live runs, one row of
/// simulated runs for each method follows, in the same order.
pub(super) struct AtTotal {
    pub(super) total: &'static str,
    pub(super) rows: Vec<Row>,
}

impl AtTotal {
    /// Returns the number of runs of each method.
    fn runs(&self) -> u32 {
        self.rows.first().map_or(0, |row| row.outcomes.len() as u32)
    }

    /// Returns the throughput of a method, in % of the total rate.
    fn share(&self, row: &Row) -> Mean {
        let total: f64 = self.total.parse().unwrap_or(f64::NAN);
        Mean::of(&row.values(THROUGHPUT).into_iter().map(|mbps| 100.0 * mbps / total).collect::<Vec<_>>())
    }

    /// Decides a claim about the throughput of the method that uses only the LTE path, in % of the total rate.
    fn share_of_lte(&self, spec: &Spec) -> Option<Claim> {
        let lte = self.rows.get(LTE_ONLY)?;
        Some(spec.decide(self.runs(), self.share(lte), format!("Mean delay {} ms.", lte.mean(DELAY).words(1))))
    }

    /// Returns the row of the single path that has the lowest mean of a value (`sign` 1), or the highest (`sign` -1).
    fn best_single(&self, of: fn(&Outcome) -> f64, sign: f64) -> Option<&Row> {
        let singles = SINGLES.iter().filter_map(|place| self.rows.get(*place));
        let mean = |row: &Row| row.values(of).iter().sum::<f64>() * sign;
        singles.min_by(|one, other| mean(one).total_cmp(&mean(other)))
    }
}

fn measure(lab: &Lab<'_>, setting: &Setting) -> Result<Vec<AtTotal>, SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let at = |total: &'static str| {
        let methods = METHODS.map(|method| if method.name == AP.name { setting.ap } else { method });
        let row = |method: Method| Row::run(lab, method.name, &session(total, method), runs);
        Ok(AtTotal { total, rows: methods.into_iter().map(row).collect::<Result<_, SimError>>()? })
    };
    setting.totals.into_iter().map(at).collect()
}

const DELAY: fn(&Outcome) -> f64 = |outcome| outcome.delay_ms;
const SURGE: fn(&Outcome) -> f64 = |outcome| outcome.surge_ms;
const THROUGHPUT: fn(&Outcome) -> f64 = |outcome| outcome.throughput_mbps;

/// Runs the session with each method, for each interpretation of the paper. Draws the requested figures only for our
/// main interpretation.
pub(super) fn run(lab: &Lab<'_>, parts: &[Part], found: &mut Found) -> Result<(), SimError> {
    for (place, setting) in READINGS.iter().enumerate() {
        let measured = measure(lab, setting)?;
        let mut claims = Vec::new();
        if place == 0 {
            draw(parts, &measured, &SIMULATED, found);
        }
        if let [low, middle, high] = measured.as_slice() {
            let all = (Some(low), Some(middle), Some(high));
            if parts.contains(&Part::Fig3) {
                claims.extend(of_delays(all, &SIMULATED));
            }
            if parts.contains(&Part::Fig4) {
                claims.extend(of_throughputs(all, &SIMULATED));
            }
        }
        found.readings.push(Reading { name: setting.name.to_owned(), claims });
    }
    Ok(())
}

/// The results at the total rates of the panels (a), (b) and (c).
type Panels<'a> = (Option<&'a AtTotal>, Option<&'a AtTotal>, Option<&'a AtTotal>);

/// Draws the requested figures. `measured` contains the results at each total rate, in ascending order of the rates. If
/// `measured` has only two elements, panel (b) is missing.
pub(super) fn draw(parts: &[Part], measured: &[AtTotal], specs: &Specs, found: &mut Found) {
    let middle = if let [_, middle, _] = measured { Some(middle) } else { None };
    let panels = (measured.first(), middle, measured.last());
    if parts.contains(&Part::Fig3) {
        found.claims.extend(of_delays(panels, specs));
        found.figures.push(delays(measured, specs));
    }
    if parts.contains(&Part::Fig4) {
        found.claims.extend(of_throughputs(panels, specs));
        found.figures.push(throughputs(measured, specs));
    }
}

/// Returns the claims about Fig. 3.
fn of_delays((low, middle, high): Panels<'_>, specs: &Specs) -> Vec<Claim> {
    let low = low.into_iter().flat_map(|low| low_delays(low, specs).into_iter().flatten());
    let above = [middle.zip(Some(&specs.near_best)), high.zip(Some(&specs.below_single))];
    low.chain(above.into_iter().flatten().filter_map(|(at, spec)| against_best(at, spec))).collect()
}

/// Returns the claims about Fig. 3(a).
fn low_delays(low: &AtTotal, specs: &Specs) -> Option<[Claim; 4]> {
    let [ap, equal, wimax, lte, min_delay, ..] = low.rows.as_slice() else { return None };
    let below: Vec<_> = [ap, equal, wimax].iter().filter_map(|row| ratio(row, min_delay, DELAY).estimate).collect();
    let means = format!("Min-delay {} ms.", min_delay.mean(DELAY).words(1));
    let surges = |row: &Row, spec: &Spec| {
        let note = format!(
            "The largest mean delay of a period, divided by that of WiMAX-only. The mean of this largest delay over the runs is {} ms.",
            row.mean(SURGE).words(0)
        );
        spec.decide(low.runs(), ratio(row, wimax, SURGE), note)
    };
    Some([
        against_best(low, &specs.quite_well)?,
        specs.below_min_delay.decide_cells(low.runs(), &below, means),
        surges(lte, &specs.lte_surges),
        surges(min_delay, &specs.min_delay_surges),
    ])
}

/// Returns a claim about the ratio of AP's delay to the delay of the better single path.
fn against_best(at: &AtTotal, spec: &Spec) -> Option<Claim> {
    let (ap, equal, best) = (at.rows.first()?, at.rows.get(1)?, at.best_single(DELAY, 1.0)?);
    let note = format!(
        "Of {} Mbit/s. The best is {}: {} ms; AP {} ms, Equal {} ms.",
        at.total,
        best.name,
        best.mean(DELAY).words(1),
        ap.mean(DELAY).words(1),
        equal.mean(DELAY).words(1)
    );
    Some(spec.decide(at.runs(), ratio(ap, best, DELAY), note))
}

/// Returns the claims about Fig. 4.
fn of_throughputs((low, middle, high): Panels<'_>, specs: &Specs) -> Vec<Claim> {
    let low = low.into_iter().flat_map(|low| low_throughputs(low, specs).into_iter().flatten());
    let middle = middle.into_iter().flat_map(|middle| {
        let best = middle.best_single(THROUGHPUT, -1.0).zip(middle.rows.first());
        let near = best.map(|(best, ap)| {
            let note = format!("Of {} Mbit/s: AP {}, {} {}.", middle.total, words(ap), best.name, words(best));
            specs.throughput_near_best.decide(middle.runs(), ratio(ap, best, THROUGHPUT), note)
        });
        [near, middle.share_of_lte(&specs.lte_bottleneck)].into_iter().flatten()
    });
    let high = high.and_then(|high| {
        let (ap, best) = (high.rows.first()?, high.best_single(THROUGHPUT, -1.0)?);
        let note = format!("Of {} Mbit/s: AP {}, {} {}.", high.total, words(ap), best.name, words(best));
        Some(specs.beats_single.decide(high.runs(), apart(ap, best, THROUGHPUT), note))
    });
    low.chain(middle).chain(high).collect()
}

/// Returns the claims about Fig. 4(a).
fn low_throughputs(low: &AtTotal, specs: &Specs) -> [Option<Claim>; 2] {
    let shares: Vec<_> = low.rows.iter().take(LTE_ONLY).filter_map(|row| low.share(row).estimate).collect();
    let kept = specs.keep_total.decide_cells(low.runs(), &shares, "The one that is shown is the least of the three.");
    [Some(kept), low.share_of_lte(&specs.lte_drops)]
}

fn words(row: &Row) -> String {
    row.mean(THROUGHPUT).words(3)
}

/// Returns Fig. 3: the mean delays of all methods.
fn delays(measured: &[AtTotal], specs: &Specs) -> Figure {
    // The chart contains a line for each method. A chart of live runs also contains the line of the first simulated
    // row, for comparison. More lines would be hard to distinguish.
    let over_time = |at: &AtTotal| {
        let shown = at.rows.iter().take(METHODS.len() + 1);
        delays_over_time(format!("{} Mbit/s: mean delay, first run", at.total), shown)
    };
    Figure {
        name: specs.figures[0].to_owned(),
        title: "End-to-end delay of the five methods".to_owned(),
        text: "All methods of a run meet the same traffic of others.".to_owned(),
        charts: measured.iter().map(over_time).collect(),
        tables: measured.iter().map(table).collect(),
    }
}

/// Returns Fig. 4: the throughputs of all methods.
fn throughputs(measured: &[AtTotal], specs: &Specs) -> Figure {
    let of_ap =
        |at: &AtTotal| Some(rates_over_time(format!("{} Mbit/s: AP's rates, first run", at.total), at.rows.first()?));
    Figure {
        name: specs.figures[1].to_owned(),
        title: "Throughput of the five methods".to_owned(),
        text: "What is sent in the 100 s and arrives.".to_owned(),
        charts: measured.iter().filter_map(of_ap).collect(),
        tables: measured.iter().map(table).collect(),
    }
}

fn table(at: &AtTotal) -> Table {
    let row = |row: &Row| [vec![row.name.clone()], row.cells()].concat();
    Table {
        caption: format!("{} Mbit/s: means over the runs with their 95 % intervals", at.total),
        columns: std::iter::once("method").chain(Row::COLUMNS).map(str::to_owned).collect(),
        rows: at.rows.iter().map(row).collect(),
    }
}
