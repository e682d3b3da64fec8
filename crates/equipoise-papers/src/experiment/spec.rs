//! The definition of a claim, and the rule for its verdict.

use super::Mean;
use crate::{Claim, Verdict};
use equipoise_lab::statistics::Estimate;

/// The definition of a claim of a paper: its statement, and a rule, which is a condition on our number.
///
/// The rule is fixed before any run. If a claim compares two of our numbers, the rule judges their ratio or their
/// difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spec {
    /// Stable identifier of the claim, such as `fig7.slope`.
    pub(crate) id: &'static str,
    /// The figure, table or section of the paper that makes the claim.
    pub(crate) figure: &'static str,
    /// The statement of the claim.
    pub(crate) statement: &'static str,
    /// The condition on our number; `None` if the paper has nothing to compare our number with.
    pub(crate) rule: Option<Rule>,
    /// The number that the paper states, if it states one.
    pub(crate) paper: Option<f64>,
    /// Unit of our number, of the paper's number, and of the rule's bounds.
    pub(crate) unit: &'static str,
    basis: Basis,
}

/// Who makes the claim, and when its interpretation was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basis {
    /// A claim of the paper, in an interpretation that was fixed before any run.
    Paper,
    /// A claim of the paper, in an interpretation that was chosen because its results fit the paper.
    Fitted,
    /// A claim that we make, but that the paper does not make.
    Ours,
}

/// A condition on our number: it must be between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rule {
    low: f64,
    high: f64,
    cells: Cells,
}

/// Our result for a claim consists of one or several numbers, called cells. This type says which cells must satisfy the
/// rule: the only cell, every cell, or at least one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cells {
    One,
    Every,
    Some,
}

/// The result of applying a rule to a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    /// The rule holds in the whole interval.
    Holds,
    /// The rule holds nowhere in the interval.
    Fails,
    /// The rule holds in only a part of the confidence interval.
    Open,
}

impl Judgement {
    const fn holds(self) -> Option<bool> {
        match self {
            Self::Holds => Some(true),
            Self::Fails => Some(false),
            Self::Open => None,
        }
    }
}

impl Rule {
    /// Returns the rule that the number is above `low`.
    pub(crate) const fn above(low: f64) -> Self {
        Self::within(low, f64::INFINITY)
    }

    /// Returns the rule that the number is below `high`.
    pub(crate) const fn below(high: f64) -> Self {
        Self::within(f64::NEG_INFINITY, high)
    }

    /// Returns the rule that the number is between both bounds.
    pub(crate) const fn within(low: f64, high: f64) -> Self {
        Self { low, high, cells: Cells::One }
    }

    /// Changes the rule so that it must hold in each of several cells. Each cell is tested separately. The more cells
    /// there are, the stronger is the evidence that a test requires (Holm 1979). Otherwise, one of many cells would be
    /// likely to fail by chance.
    pub(crate) const fn in_every_cell(self) -> Self {
        Self { cells: Cells::Every, ..self }
    }

    /// Changes the rule so that it must hold in at least one of several cells. The cells are tested as in
    /// [`in_every_cell`](Self::in_every_cell).
    pub(crate) const fn in_some_cell(self) -> Self {
        Self { cells: Cells::Some, ..self }
    }

    /// Returns the rule as text.
    pub(crate) fn words(&self) -> String {
        let bound = match (self.low.is_finite(), self.high.is_finite()) {
            (true, true) if self.low >= self.high => format!("is {}", self.low),
            (true, true) => format!("lies from {} to {}", self.low, self.high),
            (true, false) => format!("lies above {}", self.low),
            (false, true) => format!("lies below {}", self.high),
            (false, false) => "is there".to_owned(),
        };
        let cells = match self.cells {
            Cells::One => "",
            Cells::Every => " in every cell (corrected for the number of cells, Holm 1979)",
            Cells::Some => " in one cell at least (corrected for the number of cells, Holm 1979)",
        };
        format!("The whole interval {bound}{cells}.")
    }

    /// Applies the rule to a single number.
    fn judge(&self, ours: &Estimate) -> Judgement {
        let [low, high] = ours.ci95;
        // A number without any variance, for example a count that is equal in all runs, may be equal to a bound. The
        // interval of any other number must be strictly between the bounds.
        let is_exact = low >= high;
        if low > self.low && high < self.high || is_exact && low >= self.low && high <= self.high {
            Judgement::Holds
        } else if high < self.low || low > self.high {
            Judgement::Fails
        } else {
            Judgement::Open
        }
    }

    /// Applies the rule to all cells together.
    fn judge_cells(&self, cells: &[Estimate]) -> Judgement {
        let holds = holm(&cells.iter().map(|cell| self.doubt(cell)).collect::<Vec<_>>());
        let fails = holm(&cells.iter().map(|cell| self.doubt_of_failure(cell)).collect::<Vec<_>>());
        let (all, any) =
            (|of: &[bool]| !of.is_empty() && of.iter().all(|it| *it), |of: &[bool]| of.iter().any(|it| *it));
        let (yes, no) = match self.cells {
            Cells::Some => (any(&holds), all(&fails)),
            Cells::One | Cells::Every => (all(&holds), any(&fails)),
        };
        match (yes, no) {
            (true, _) => Judgement::Holds,
            (false, true) => Judgement::Fails,
            (false, false) => Judgement::Open,
        }
    }

    /// Returns the p-value of the hypothesis that the true value is outside the bounds.
    fn doubt(&self, ours: &Estimate) -> f64 {
        above(ours, self.low).max(below(ours, self.high))
    }

    /// Returns the p-value of the hypothesis that the true value is between the bounds.
    fn doubt_of_failure(&self, ours: &Estimate) -> f64 {
        below(ours, self.low).min(above(ours, self.high))
    }
}

/// Returns the p-value of the hypothesis that the true value is not above the bound.
fn above(ours: &Estimate, bound: f64) -> f64 {
    tail(ours.value - bound, ours.value - ours.ci95[0])
}

fn below(ours: &Estimate, bound: f64) -> f64 {
    tail(bound - ours.value, ours.ci95[1] - ours.value)
}

/// Returns the probability that a normally distributed variable exceeds its mean by `distance`. `half` is half the
/// width of the variable's 95 % interval.
fn tail(distance: f64, half: f64) -> f64 {
    let deviations = if half > 0.0 { distance / half * 1.959_964 } else { distance.signum() * f64::INFINITY };
    if deviations.is_nan() { 0.5 } else { 0.5 * libm::erfc(deviations / 2f64.sqrt()) }
}

/// Returns which of several hypotheses are rejected, given their p-values (Holm 1979). The probability that at least
/// one true hypothesis is rejected is at most 2.5 %, as at each end of a 95 % interval.
fn holm(doubts: &[f64]) -> Vec<bool> {
    let mut order: Vec<_> = (0..doubts.len()).collect();
    order.sort_by(|a, b| doubts[*a].total_cmp(&doubts[*b]));
    let mut rejected = vec![false; doubts.len()];
    for (rank, at) in order.into_iter().enumerate() {
        if doubts[at] > 0.025 / (doubts.len() - rank) as f64 {
            break;
        }
        rejected[at] = true;
    }
    rejected
}

impl Spec {
    /// Defines a claim of the paper, with the rule for its verdict.
    pub(crate) const fn new(id: &'static str, figure: &'static str, statement: &'static str, rule: Rule) -> Self {
        Self { id, figure, statement, rule: Some(rule), paper: None, unit: "", basis: Basis::Paper }
    }

    /// Defines a number that is only shown, because the paper has nothing to compare it with.
    pub(crate) const fn shown(id: &'static str, figure: &'static str, statement: &'static str) -> Self {
        Self { id, figure, statement, rule: None, paper: None, unit: "", basis: Basis::Paper }
    }

    /// Sets the number that the paper states.
    pub(crate) const fn paper(self, paper: f64) -> Self {
        Self { paper: Some(paper), ..self }
    }

    /// Sets the unit of the claim's numbers.
    pub(crate) const fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// Marks a claim that depends on our interpretation of the paper. This interpretation was chosen because the
    /// results then fit the paper. Such a claim never counts as reproduced.
    pub(crate) const fn fitted(self) -> Self {
        Self { basis: Basis::Fitted, ..self }
    }

    /// Marks a claim that we make, but that the paper does not make.
    pub(crate) const fn ours(self) -> Self {
        Self { basis: Basis::Ours, ..self }
    }

    /// Decides the claim by the confidence interval of our number. If there is no interval, for example after a single
    /// run, the claim is not comparable.
    pub(crate) fn decide(&self, runs: u32, ours: impl Into<Mean>, note: impl Into<String>) -> Claim {
        let ours = ours.into();
        let holds = self.rule.zip(ours.estimate).map(|(rule, estimate)| rule.judge(&estimate));
        self.claim(runs, ours, holds, note)
    }

    /// Decides the claim if the event to measure occurs in no run. The claim then has no number, and its rule does not
    /// hold.
    pub(crate) fn never(&self, runs: u32, note: impl Into<String>) -> Claim {
        self.claim(runs, None.into(), Some(Judgement::Fails), note)
    }

    /// Decides the claim by several of our numbers (cells). The claim shows the number that is furthest from satisfying
    /// the rule or, if one cell is enough, the number that is nearest to satisfying it.
    pub(crate) fn decide_cells(&self, runs: u32, cells: &[Estimate], note: impl Into<String>) -> Claim {
        let rule = self.rule.filter(|_| !cells.is_empty());
        let holds = rule.map(|rule| rule.judge_cells(cells));
        let shown = rule.and_then(|rule| {
            let by = |a: &&Estimate, b: &&Estimate| rule.doubt(a).total_cmp(&rule.doubt(b));
            if rule.cells == Cells::Some { cells.iter().min_by(by) } else { cells.iter().max_by(by) }
        });
        self.claim(runs, shown.copied().into(), holds, note)
    }

    fn claim(&self, runs: u32, ours: Mean, judgement: Option<Judgement>, note: impl Into<String>) -> Claim {
        let verdict = match (self.basis, judgement) {
            (_, None) => Verdict::NotComparable,
            (Basis::Ours, _) => Verdict::Ours,
            (Basis::Fitted, _) => Verdict::Fitted,
            (Basis::Paper, Some(Judgement::Holds)) => Verdict::Reproduced,
            (Basis::Paper, Some(Judgement::Fails)) => Verdict::NotReproduced,
            (Basis::Paper, Some(Judgement::Open)) => Verdict::Undecided,
        };
        Claim {
            id: self.id.to_owned(),
            figure: self.figure.to_owned(),
            statement: self.statement.to_owned(),
            rule: self.rule.map(|rule| rule.words()).unwrap_or_default(),
            paper: self.paper,
            ours: ours.value,
            ci95: ours.estimate.map(|ours| ours.ci95),
            unit: self.unit.to_owned(),
            runs,
            holds: judgement.and_then(Judgement::holds),
            verdict,
            note: note.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(low: f64, high: f64) -> Estimate {
        Estimate { value: f64::midpoint(low, high), ci95: [low, high] }
    }

    fn verdict(spec: Spec, low: f64, high: f64) -> (Verdict, Option<bool>) {
        let claim = spec.decide(5, Some(estimate(low, high)), "");
        (claim.verdict, claim.holds)
    }

    #[test]
    fn an_interval_inside_reproduces_one_outside_does_not_and_across_the_bound_nothing_is_decided() {
        let above = Spec::new("fig0.x", "Fig. 0", "It is above one.", Rule::above(1.0));
        assert_eq!(verdict(above, 1.1, 1.3), (Verdict::Reproduced, Some(true)));
        assert_eq!(verdict(above, 0.9, 1.3), (Verdict::Undecided, None));
        assert_eq!(verdict(above, 0.7, 0.9), (Verdict::NotReproduced, Some(false)));
        let below = Spec::new("fig0.x", "Fig. 0", "It is below one.", Rule::below(1.0));
        assert_eq!(verdict(below, 0.9, 1.3), (Verdict::Undecided, None));
        assert_eq!(verdict(below, 0.7, 0.9), (Verdict::Reproduced, Some(true)));
        let near = Spec::new("fig0.x", "Fig. 0", "It is one.", Rule::within(0.9, 1.1));
        assert_eq!(verdict(near, 0.95, 1.05), (Verdict::Reproduced, Some(true)));
        assert_eq!(verdict(near, 0.5, 1.5), (Verdict::Undecided, None), "wider than the rule");
        assert_eq!(verdict(near, 1.2, 1.5), (Verdict::NotReproduced, Some(false)));
        // A value whose confidence interval has zero width may be equal to the bound.
        let none = Spec::new("fig0.x", "Fig. 0", "None is lost.", Rule::within(0.0, 0.0));
        assert_eq!(verdict(none, 0.0, 0.0), (Verdict::Reproduced, Some(true)));
        assert_eq!(verdict(none, 0.0, 0.5), (Verdict::Undecided, None));
    }

    #[test]
    fn what_is_fitted_or_ours_never_counts_as_reproduced() {
        let spec = Spec::new("fig0.x", "Fig. 0", "It is above one.", Rule::above(1.0));
        assert_eq!(verdict(spec.fitted(), 2.0, 3.0), (Verdict::Fitted, Some(true)));
        assert_eq!(verdict(spec.ours(), 2.0, 3.0), (Verdict::Ours, Some(true)));
        assert_eq!(verdict(spec.ours(), 0.2, 0.3), (Verdict::Ours, Some(false)));
        let none = Mean { value: Some(2.0), estimate: None };
        assert_eq!(spec.decide(1, none, "").verdict, Verdict::NotComparable);
        assert_eq!(
            Spec::shown("fig0.y", "Fig. 0", "A number.").decide(5, Some(estimate(1.0, 2.0)), "").verdict,
            Verdict::NotComparable
        );
    }

    #[test]
    fn of_many_cells_more_is_asked_of_each() {
        // The value of `just` is 1.96 standard errors above the bound. This is enough for a single cell, but not for
        // one of ten cells.
        let (just, well) = (estimate(1.0001, 3.0), estimate(1.5, 3.5));
        let some = Spec::new("fig0.x", "Fig. 0", "Once above one.", Rule::above(1.0).in_some_cell());
        let every = Spec::new("fig0.x", "Fig. 0", "Always above one.", Rule::above(1.0).in_every_cell());
        let around = vec![estimate(0.5, 1.5); 9];
        let with = |cell: Estimate| [&around[..], &[cell]].concat();
        assert_eq!(some.decide_cells(5, &[just], "").verdict, Verdict::Reproduced);
        assert_eq!(some.decide_cells(5, &with(just), "").verdict, Verdict::Undecided);
        assert_eq!(some.decide_cells(5, &with(estimate(1.9, 2.1)), "").verdict, Verdict::Reproduced);
        assert_eq!(every.decide_cells(5, &with(well), "").verdict, Verdict::Undecided);
        assert_eq!(every.decide_cells(5, &vec![estimate(1.9, 2.1); 10], "").verdict, Verdict::Reproduced);
        assert_eq!(every.decide_cells(5, &with(estimate(0.4, 0.5)), "").verdict, Verdict::NotReproduced);
        assert_eq!(some.decide_cells(5, &vec![estimate(0.4, 0.5); 10], "").verdict, Verdict::NotReproduced);
        assert_eq!(some.decide_cells(5, &[], "").verdict, Verdict::NotComparable);
        assert_eq!(every.decide_cells(5, &with(estimate(0.4, 0.5)), "").ours, Some(0.45), "the worst is shown");
    }

    #[test]
    fn holms_procedure_is_that_of_the_hand() {
        assert_eq!(holm(&[0.001, 0.02, 0.011, 0.5]), [true, false, false, false]);
        assert_eq!(holm(&[0.006, 0.008, 0.012, 0.025]), [true, true, true, true]);
        assert!((tail(1.959_964, 1.959_964) - 0.025).abs() < 1e-6);
        assert_eq!([1.0, -1.0, 0.0].map(|over| tail(over, 0.0).to_string()), ["0", "1", "0"]);
    }

    #[test]
    fn a_rule_says_what_it_asks_for() {
        let words = [Rule::above(0.5), Rule::below(2.0).in_some_cell(), Rule::within(0.9, 1.1), Rule::within(0.0, 0.0)];
        assert_eq!(
            words.map(|rule| rule.words()),
            [
                "The whole interval lies above 0.5.",
                "The whole interval lies below 2 in one cell at least (corrected for the number of cells, Holm 1979).",
                "The whole interval lies from 0.9 to 1.1.",
                "The whole interval is 0.",
            ]
        );
    }
}
