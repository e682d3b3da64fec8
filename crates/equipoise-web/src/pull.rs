//! Changes that the user makes by hand while a run is shown. Each change is inserted into the scenario.

use std::collections::BTreeMap;

use equipoise::units::{Rate, Schedule, Share, Span};
use equipoise_lab::scenario::{Link, Override, Scenario, Value};
use equipoise_path::link::{Capacity, Loss};
use serde::Deserialize;
use thiserror::Error;

/// A change that the user makes by hand. From the time `at_s` on, the quantity has the value `value`. The change
/// replaces the scenario's later steps of this quantity.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pull {
    /// Time of the change, in seconds after the start of the run.
    pub at_s: f64,
    /// The quantity that is changed.
    pub quantity: Quantity,
    /// The new value, in the unit of the quantity: bit/s, seconds, or a share from 0 to 1.
    pub value: f64,
}

/// The quantities that can be changed by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Capacity of the bottleneck, in bit/s of IP packets.
    Capacity,
    /// One-way propagation delay of the bottleneck, in seconds.
    Delay,
    /// Random loss in each direction, as a share of the packets, 0 to 1.
    Loss,
    /// Rate of Poisson cross traffic through the bottleneck, in bit/s of IP packets.
    Cross,
}

/// Errors of a change made by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PullError {
    /// The value or the time is invalid for the quantity.
    #[error(
        "a pull has a time of 0 s or more and a value of 0 or more; a capacity is above 0 bit/s, a loss is at most 1"
    )]
    Value,
    /// The capacity cannot be changed, because it is unlimited, follows a trace, or is set by a traffic shaper.
    #[error(
        "the capacity of this scenario's bottleneck cannot be changed by hand, because it is unlimited, comes from \
         `rate_trace`, or has a `rate_burst`"
    )]
    NoRate,
}

/// The name of the flow that the page adds for cross traffic.
pub(crate) const CROSS: &str = "traffic of others";

/// The changes that the user made by hand to one quantity, sorted by time. Each change is a pair: a time, and the value
/// from that time on.
type Pulls<T> = Vec<(Span, T)>;

/// Returns the overrides that insert the changes made by hand into a scenario. If cross traffic was added by hand, also
/// returns the text of the cross traffic's section for the scenario file.
pub(crate) fn steps(link: &Link, pulls: &[Pull]) -> Result<(Vec<Override>, Option<String>), PullError> {
    let capacities = of(pulls, Quantity::Capacity, rate)?;
    if capacities.iter().any(|(_, rate)| *rate == Rate::ZERO) {
        return Err(PullError::Value);
    }
    let rates = match &link.forward.capacity {
        Capacity::Rate(rate) => pulled(rate, capacities),
        _ if capacities.is_empty() => Vec::new(),
        _ => return Err(PullError::NoRate),
    };
    let delays = pulled(&link.forward.delay, of(pulls, Quantity::Delay, span)?);
    let losses =
        pulled(&link.forward.loss, of(pulls, Quantity::Loss, |share| Share::from_fraction(share).map(Loss::Random))?);
    let rates = rates.into_iter().map(|(at, rate)| (at, "rate", rate.to_string()));
    let delays = delays.into_iter().map(|(at, delay)| (at, "delay", delay.to_string()));
    // A step of a scenario can only set random loss, not loss in bursts.
    let losses = losses.into_iter().filter_map(|(at, loss)| match loss {
        Loss::Random(share) => Some((at, "loss", share.to_string())),
        Loss::None | Loss::Burst(_) => None,
    });
    // All changes with the same time become one step.
    let mut steps: BTreeMap<Span, Vec<(&str, String)>> = BTreeMap::new();
    for (at, key, value) in rates.chain(delays).chain(losses) {
        steps.entry(at).or_insert_with(|| vec![("at", at.to_string())]).push((key, value));
    }
    let table = |step: Vec<(&str, String)>| {
        Value::Table(step.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect())
    };
    let steps: Vec<_> = steps.into_values().map(table).collect();
    let key = format!("link.\"{}\".steps", link.name);
    let overrides = if steps.is_empty() { Vec::new() } else { vec![Override::set(key, steps)] };
    Ok((overrides, section(link, &of(pulls, Quantity::Cross, rate)?)))
}

fn rate(bps: f64) -> Option<Rate> {
    (0.0..=MOST_BPS).contains(&bps).then(|| Rate::from_bps(bps as u64))
}

fn span(seconds: f64) -> Option<Span> {
    Span::from_secs_f64(seconds).filter(|span| *span >= Span::ZERO)
}

/// Maximum rate in a request, in bit/s. A larger rate is assumed to be a typing error.
const MOST_BPS: f64 = 1e12;

/// Returns the user's changes of one quantity, sorted by time. If two changes have the same time, the last of them in
/// `pulls` applies.
fn of<T>(pulls: &[Pull], quantity: Quantity, value: impl Fn(f64) -> Option<T>) -> Result<Pulls<T>, PullError> {
    let of_it = pulls.iter().filter(|pull| pull.quantity == quantity);
    let typed = of_it.map(|pull| span(pull.at_s).zip(value(pull.value)).ok_or(PullError::Value));
    let mut typed = typed.collect::<Result<Pulls<T>, _>>()?;
    typed.sort_by_key(|(at, _)| *at);
    Ok(typed)
}

/// Returns the steps of a schedule before the first change made by hand, followed by the changes made by hand.
fn pulled<T: Copy>(planned: &Schedule<T>, pulls: Pulls<T>) -> Pulls<T> {
    let first = pulls.first().map(|(at, _)| *at);
    let before = planned.steps().iter().copied().filter(|(at, _)| first.is_none_or(|first| *at < first));
    before.chain(pulls).collect()
}

/// Returns the cross traffic as a section of a scenario file; `None` if the rate of the cross traffic is always zero.
fn section(link: &Link, pulls: &[(Span, Rate)]) -> Option<String> {
    let from = pulls.iter().position(|(_, rate)| *rate > Rate::ZERO)?;
    let (start, first) = pulls[from];
    let later = pulls[from + 1..].iter().map(|(at, rate)| format!("{{ at = \"{}\", rate = \"{rate}\" }}", *at - start));
    let later = later.collect::<Vec<_>>().join(", ");
    Some(format!(
        "\n[[flow]]\nname = \"{CROSS}\"\npath = [\"{}\"]\npacket_size = \"1000 B\"\nstart = \"{start}\"\n\
         source = {{ kind = \"poisson\", rate = \"{first}\", steps = [{later}] }}\n",
        link.name
    ))
}

/// Returns the link to which changes made by hand apply: the link with the lowest initial capacity on the path of a
/// flow.
pub(crate) fn bottleneck(scenario: &Scenario, flow: usize) -> Option<&Link> {
    let path = &scenario.flows.get(flow)?.path;
    let rate = |link: &&Link| link.forward.capacity.rate().map_or(u64::MAX, |rate| rate.initial().as_bps());
    path.iter().filter_map(|place| scenario.links.get(*place)).min_by_key(rate)
}
