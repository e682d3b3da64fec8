//! Compares our control law with other laws over recorded links.

use super::{CaseResult, FlowKind, Row, SuiteResult};

/// The control law that is judged.
pub const JUDGED: &str = "equipoise";
/// The judged law is good enough if its rate is at least this share of the fastest other law's rate. It is also good
/// enough if it meets `MOST_DELAY`.
const LEAST_RATE: f64 = 0.9;
/// The judged law is good enough if its frame delay is at most this share of the fastest other law's frame delay.
const MOST_DELAY: f64 = 0.5;

/// The result of the control law [`JUDGED`] over a link, compared with the result of one other law. The other law is
/// the law with the highest mean rate among all laws except [`JUDGED`].
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The name of the other law.
    pub beside: String,
    /// Mean delivered rate of the judged law, divided by the mean delivered rate of the other law.
    pub rate: Option<f64>,
    /// 95th percentile of the judged law's frame delay, divided by that of the other law; `None` if one of the two laws
    /// completed no frame.
    pub delay: Option<f64>,
}

impl Verdict {
    /// Whether the judged law has at least 0.9 of the other law's rate, or at most half of the other law's frame delay.
    pub fn is_good(&self) -> bool {
        self.rate.is_some_and(|rate| rate >= LEAST_RATE) || self.delay.is_some_and(|delay| delay <= MOST_DELAY)
    }

    /// Returns the verdict in words: "yes: 0.97 of the rate of gcc, 0.41 of the delay".
    pub fn in_words(&self) -> String {
        let number = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{share:.2}"));
        let word = if self.is_good() { "yes" } else { "**no**" };
        format!("{word}: {} of the rate of {}, {} of the delay", number(self.rate), self.beside, number(self.delay))
    }
}

fn rate(found: &CaseResult) -> Option<f64> {
    found.flow_mean(FlowKind::Media, "delivered_rate_bps")
}

fn frame_delay(found: &CaseResult) -> Option<f64> {
    found.flow_mean(FlowKind::Media, "frame_delay_p95_s")
}

/// Returns the comparison of [`JUDGED`] with the fastest other law over one link; `None` if [`JUDGED`] or all other
/// laws have no result.
fn verdict(results: &[&CaseResult]) -> Option<Verdict> {
    let (judged, others): (Vec<_>, Vec<_>) = results.iter().partition(|found| found.controller == JUDGED);
    let own = judged.first()?;
    let rate_of = |found: &&CaseResult| rate(found).unwrap_or(0.0);
    let best = others.into_iter().max_by(|one, other| rate_of(one).total_cmp(&rate_of(other)))?;
    let over = |of: fn(&CaseResult) -> Option<f64>| Some(of(own)? / of(best).filter(|value| *value > 0.0)?);
    Some(Verdict { beside: best.controller.clone(), rate: over(rate), delay: over(frame_delay) })
}

impl SuiteResult {
    /// Returns the name of each link, and the verdict that compares the law [`JUDGED`] over this link with the fastest
    /// other law. The list is empty if [`JUDGED`] did not run, or if no other law ran.
    pub fn link_verdicts(&self) -> Vec<(String, Verdict)> {
        self.judged_rows().map(|(row, verdict)| (row.case, verdict)).collect()
    }

    /// Returns the rows of the links that have a verdict, each with its verdict.
    fn judged_rows(&self) -> impl Iterator<Item = (Row<'_>, Verdict)> {
        self.rows().into_iter().filter_map(|row| verdict(&row.results).map(|verdict| (row, verdict)))
    }

    /// Returns a Markdown table with one row for each link. A row contains the results of each controller and the
    /// verdict. Returns an empty text if there are no verdicts.
    pub fn link_verdicts_markdown(&self) -> String {
        let rows: Vec<_> = self.judged_rows().collect();
        let controllers = self.controllers();
        if rows.is_empty() {
            return String::new();
        }
        let mut text = format!(
            "| link | {} | {JUDGED} |\n|---|{}---|\n",
            controllers.join(" | "),
            "---|".repeat(controllers.len())
        );
        for (row, verdict) in &rows {
            let cells: Vec<_> = controllers.iter().map(|name| row.of(name).map_or("–".to_owned(), cell)).collect();
            text.push_str(&format!("| {} | {} | {} |\n", row.case, cells.join(" | "), verdict.in_words()));
        }
        let good = rows.iter().filter(|(_, verdict)| verdict.is_good()).count();
        text.push_str(&format!("\n{JUDGED}: yes over {good} of {} links\n", rows.len()));
        text
    }
}

/// Returns three values as text, such as "4.31 · 113 · 23": the mean rate in Mbit/s, the 95th percentile of the frame
/// delay in ms, and the 95th percentile of the queueing delay in ms.
fn cell(found: &CaseResult) -> String {
    let number = |value: Option<f64>, scale: f64, decimals: usize| {
        value.map_or_else(|| "–".to_owned(), |value| format!("{:.decimals$}", value * scale))
    };
    let queueing = found.metric("queueing_p95_s").map(|found| found.mean);
    let (rate, frames) = (number(rate(found), 1e-6, 2), number(frame_delay(found), 1e3, 0));
    format!("{rate} · {frames} · {}", number(queueing, 1e3, 0))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{CaseFlow, Estimate};
    use super::*;
    use crate::result::World;

    /// Returns the result of the law `controller` on `link`. The mean delivered rate is `mean`, in bit/s.
    fn found(link: &str, controller: &str, mean: f64) -> CaseResult {
        let rate = Estimate { mean, lo: None, hi: None, runs: 1 };
        let metrics = BTreeMap::from([("delivered_rate_bps".to_owned(), Some(rate))]);
        CaseResult {
            case: link.to_owned(),
            title: String::new(),
            variant: String::new(),
            description: String::new(),
            world: World::Sim,
            controller: controller.to_owned(),
            implementation: String::new(),
            version: String::new(),
            seed: 1,
            parameters: BTreeMap::new(),
            runs: 1,
            duration_s: 1.0,
            flows: vec![CaseFlow { name: "media".to_owned(), kind: FlowKind::Media, metrics }],
            phases: Vec::new(),
            metrics: BTreeMap::new(),
            machine: None,
            series: Vec::new(),
            capacity: Vec::new(),
        }
    }

    /// If this test fails, a link over which only the judged law has a result gets the verdict of another link.
    #[test]
    fn each_verdict_stands_in_the_row_of_its_link() {
        let results = vec![
            found("alone", JUDGED, 3e6),
            found("good", JUDGED, 2e6),
            found("good", "gcc", 2e6),
            found("bad", JUDGED, 1e6),
            found("bad", "gcc", 4e6),
        ];
        let suite = SuiteResult {
            suite: "traces".to_owned(),
            version: String::new(),
            seed: 1,
            runs: 1,
            live_runs: None,
            aqm: None,
            bars: Vec::new(),
            results,
            not_run: Vec::new(),
        };
        let links: Vec<_> = suite.link_verdicts().into_iter().map(|(link, verdict)| (link, verdict.rate)).collect();
        assert_eq!(links, [("good".to_owned(), Some(1.0)), ("bad".to_owned(), Some(0.25))]);
        let table = suite.link_verdicts_markdown();
        let lines: Vec<_> = table.lines().skip(2).collect();
        assert!(lines[0].starts_with("| good | 2.00 · – · – | 2.00 · – · – | yes: 1.00 of the rate of gcc"), "{table}");
        assert!(
            lines[1].starts_with("| bad | 1.00 · – · – | 4.00 · – · – | **no**: 0.25 of the rate of gcc"),
            "{table}"
        );
        assert_eq!(lines[3], "equipoise: yes over 1 of 2 links");
    }

    #[test]
    fn nine_tenths_of_the_rate_or_half_of_the_delay_will_do() {
        let verdict = |rate, delay| Verdict { beside: "gcc".to_owned(), rate, delay };
        assert!(verdict(Some(0.9), None).is_good() && verdict(Some(0.1), Some(0.5)).is_good());
        let bad = verdict(Some(0.899), Some(0.501));
        assert!(!bad.is_good() && !verdict(None, None).is_good());
        assert_eq!(bad.in_words(), "**no**: 0.90 of the rate of gcc, 0.50 of the delay");
    }
}
