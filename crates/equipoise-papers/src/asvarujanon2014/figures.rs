//! Fig. 3 and 4: all five methods at each total.

use super::part::Part;
use super::setting::{
    LTE_ONLY, METHODS, Method, Outcome, RUNS, Row, SINGLES, TOTALS, apart, delays_over_time, rates_over_time, ratio,
    session,
};
use super::{Found, Lab, Options, drafts};
use crate::{Claim, Figure, Table};
use equipoise_lab::sim::SimError;

/// How far above the best single path's delay AP may be to be close to it. Ours.
const NEAR: f64 = 1.2;

pub(super) fn planned(options: &Options) -> u32 {
    (TOTALS.len() * METHODS.len()) as u32 * options.runs(RUNS, 2)
}

/// The methods at a total, in the order of [`METHODS`].
pub(super) struct AtTotal {
    pub(super) total: &'static str,
    pub(super) rows: Vec<Row>,
}

/// What the figures and claims of a world are called.
pub(super) struct Names {
    pub(super) figures: [&'static str; 2],
    pub(super) near_best_single: &'static str,
    pub(super) min_delay_surges: &'static str,
    pub(super) below_single: &'static str,
    pub(super) beats_single: &'static str,
    pub(super) lte_only_drops: &'static str,
}

const SIMULATED: Names = Names {
    figures: ["Fig. 3", "Fig. 4"],
    near_best_single: "fig3.ap_near_best_single",
    min_delay_surges: "fig3.min_delay_surges",
    below_single: "fig3.ap_below_single_above_capacity",
    beats_single: "fig4.ap_beats_single_above_capacity",
    lte_only_drops: "fig4.lte_only_drops",
};

impl AtTotal {
    /// How often each method ran.
    fn runs(&self) -> u32 {
        self.rows.first().map_or(0, |row| row.outcomes.len() as u32)
    }

    /// The single path that is better by this: by the least or by the largest mean.
    fn best_single(&self, of: fn(&Outcome) -> f64, sign: f64) -> Option<&Row> {
        let singles = SINGLES.iter().filter_map(|place| self.rows.get(*place));
        let mean = |row: &Row| row.values(of).iter().sum::<f64>() * sign;
        singles.min_by(|one, other| mean(one).total_cmp(&mean(other)))
    }
}

fn measure(lab: &Lab<'_>) -> Result<Vec<AtTotal>, SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let at = |total: &'static str| {
        let row = |method: Method| Row::run(lab, method.name, &session(total, method), runs);
        Ok(AtTotal { total, rows: METHODS.into_iter().map(row).collect::<Result<_, SimError>>()? })
    };
    TOTALS.into_iter().map(at).collect()
}

const DELAY: fn(&Outcome) -> f64 = |outcome| outcome.delay_ms;
const THROUGHPUT: fn(&Outcome) -> f64 = |outcome| outcome.throughput_mbps;

/// Both figures or one of them, of the same runs.
pub(super) fn run(lab: &Lab<'_>, parts: &[Part], found: &mut Found) -> Result<(), SimError> {
    draw(parts, &measure(lab)?, &SIMULATED, found);
    Ok(())
}

/// The figures that are among the parts, of what was measured at totals from the lowest to the highest.
pub(super) fn draw(parts: &[Part], measured: &[AtTotal], names: &Names, found: &mut Found) {
    if parts.contains(&Part::Fig3) {
        delays(measured, names, found);
    }
    if parts.contains(&Part::Fig4) {
        throughputs(measured, names, found);
    }
}

/// Fig. 3: mean delays, and the claims on them.
fn delays(measured: &[AtTotal], names: &Names, found: &mut Found) {
    let [low, .., high] = measured else { return };
    let claims = [near_best_single(low, names), surges(low, names), below_single(high, names)];
    found.claims.extend(claims.into_iter().flatten());
    // More lines than the methods and one to compare with could not be told apart.
    let over_time = |at: &AtTotal| {
        let shown = at.rows.iter().take(METHODS.len() + 1);
        delays_over_time(format!("{} Mbit/s: mean delay, first run", at.total), shown)
    };
    found.figures.push(Figure {
        name: names.figures[0].to_owned(),
        title: "End-to-end delay of the five methods".to_owned(),
        text: "All methods of a run meet the same traffic of others.".to_owned(),
        charts: measured.iter().map(over_time).collect(),
        tables: measured.iter().map(table).collect(),
    });
}

fn near_best_single(low: &AtTotal, names: &Names) -> Option<Claim> {
    let (ap, equal, best) = (low.rows.first()?, low.rows.get(1)?, low.best_single(DELAY, 1.0)?);
    let draft = drafts("Fig. 3", low.runs())(
        names.near_best_single,
        "At 1.5 Mbit/s AP, which does not know the paths, has nearly the delay of the best single path. Rule: the interval of the \
         ratio of their mean delays ends below 1.2.",
        None,
        "ratio",
    );
    let note = format!(
        "The best is {}: {} ms; AP {} ms, Equal {} ms. Between bursts LTE is the nearer path, so AP moves towards it, and in a burst \
         back by a tenth of the total a period.",
        best.name,
        best.mean(DELAY).words(1),
        ap.mean(DELAY).words(1),
        equal.mean(DELAY).words(1)
    );
    Some(draft.decide(ratio(ap, best, DELAY), |ours| ours.ci95[1] < NEAR, note))
}

fn surges(low: &AtTotal, names: &Names) -> Option<Claim> {
    let [ap, _, wimax, _, min_delay, ..] = low.rows.as_slice() else { return None };
    let draft = drafts("Fig. 3", low.runs())(
        names.min_delay_surges,
        "At 1.5 Mbit/s Min-delay suffers surges: it moves everything to LTE when that was nearer, which congests it. Rule: the \
         interval of the ratio of its largest mean delay of a period to WiMAX-only's lies above 2.",
        None,
        "ratio",
    );
    let note = format!("Mean delay of Min-delay over AP's: {}.", ratio(min_delay, ap, DELAY).words(2));
    Some(draft.decide(ratio(min_delay, wimax, |outcome| outcome.surge_ms), |ours| ours.ci95[0] > 2.0, note))
}

fn below_single(high: &AtTotal, names: &Names) -> Option<Claim> {
    let (ap, best) = (high.rows.first()?, high.best_single(DELAY, 1.0)?);
    let draft = drafts("Fig. 3", high.runs())(
        names.below_single,
        "At a total above what WiMAX carries AP's delay is below that of every single path. Rule: the interval of the ratio to the \
         best of them ends below 1.",
        None,
        "ratio",
    );
    let note =
        format!("The best is {}: {} ms; AP {} ms.", best.name, best.mean(DELAY).words(1), ap.mean(DELAY).words(1));
    Some(draft.decide(ratio(ap, best, DELAY), |ours| ours.ci95[1] < 1.0, note))
}

/// Fig. 4: throughputs, and the claims on them.
fn throughputs(measured: &[AtTotal], names: &Names, found: &mut Found) {
    let [low, .., high] = measured else { return };
    let draft = drafts("Fig. 4", low.runs());
    if let (Some(ap), Some(best)) = (high.rows.first(), high.best_single(THROUGHPUT, -1.0)) {
        found.claims.push(
            draft(
                names.beats_single,
                "At a total above what WiMAX carries AP's throughput is above that of every single path. Rule: the interval of the \
                 difference to the best of them lies above zero.",
                None,
                "Mbit/s more",
            )
            .decide(
                apart(ap, best, THROUGHPUT),
                |ours| ours.ci95[0] > 0.0,
                format!(
                    "Of {} Mbit/s: AP {}, {} {}. AP begins with equal shares, of which LTE's is more than it has.",
                    high.total,
                    ap.mean(THROUGHPUT).words(3),
                    best.name,
                    best.mean(THROUGHPUT).words(3)
                ),
            ),
        );
    }
    if let (Some(lte), Ok(total)) = (low.rows.get(LTE_ONLY), low.total.parse::<f64>()) {
        let above = measured.iter().skip(1).filter_map(|at| {
            let lte = at.rows.get(LTE_ONLY)?;
            Some(format!(" Of {}: {}.", at.total, lte.mean(THROUGHPUT).words(3)))
        });
        found.claims.push(
            draft(
                names.lte_only_drops,
                "At 1.5 Mbit/s the throughput of LTE-only decreases, by congestion. Rule: its interval ends below 99 % of the total.",
                None,
                "Mbit/s",
            )
            .decide(
                lte.mean(THROUGHPUT),
                |ours| ours.ci95[1] < 0.99 * total,
                format!(
                    "Mean delay {} ms.{}",
                    lte.mean(DELAY).words(1),
                    above.collect::<String>()
                ),
            ),
        );
    }
    let of_ap =
        |at: &AtTotal| Some(rates_over_time(format!("{} Mbit/s: AP's rates, first run", at.total), at.rows.first()?));
    found.figures.push(Figure {
        name: names.figures[1].to_owned(),
        title: "Throughput of the five methods".to_owned(),
        text: "What is sent in the 100 s and arrives.".to_owned(),
        charts: measured.iter().filter_map(of_ap).collect(),
        tables: measured.iter().map(table).collect(),
    });
}

fn table(at: &AtTotal) -> Table {
    let row = |row: &Row| [vec![row.name.clone()], row.cells()].concat();
    Table {
        caption: format!("{} Mbit/s: means over the runs with their 95 % intervals", at.total),
        columns: std::iter::once("method").chain(Row::COLUMNS).map(str::to_owned).collect(),
        rows: at.rows.iter().map(row).collect(),
    }
}
