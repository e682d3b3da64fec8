//! Checks the links of a scenario, and converts the keys of both directions of a link into configurations.

use std::collections::BTreeMap;
use std::path::Path;

use equipoise::units::{Instant, Rate, Schedule, SenderClock, Share, Span};
use equipoise_path::link::{
    Capacity, Codel, Discipline, DualPi2, FqCodel, GilbertElliott, Loss, Pie, Pipe, PipeConfig, QueueLimit, Queued,
    Reordering, TokenBucket,
};
use toml::{Spanned, Value};

use super::Check;
use crate::capacity::{CapacityError, steps_capacity, trace_capacity};
use crate::scenario::Link;
use crate::scenario::error::ScenarioError;
use crate::scenario::link_problem::LinkProblem;
use crate::scenario::raw_link::{Keys, RawLink, RawLinkStep};

/// Default for the additional delay of a reordered packet; `equipoise link` uses the same default.
const REORDER_BY: Span = Span::from_millis(5);

/// The packet type of a pipe that is created only to check its configuration.
#[derive(Clone)]
struct Any;

impl Queued for Any {}

impl Check<'_> {
    pub(super) fn link(&self, raw: &RawLink, duration: Span) -> Result<Link, ScenarioError> {
        let both = raw.keys();
        let half_duplex = self.word("duplex", raw.duplex.as_ref(), &["half", "full"])? == Some("half");
        if let (true, Some(_), Some(duplex)) = (half_duplex, &raw.back, &raw.duplex) {
            return Err(self.wrong("duplex", duplex.span(), LinkProblem::HalfDuplexBack.into()));
        }
        let back = raw.back.as_ref().map_or(both, |back| back.keys().over(both));
        Ok(Link {
            name: raw.name.get_ref().clone(),
            forward: self.direction((&raw.name, both), duration)?,
            back: self.direction((&raw.name, back), duration)?,
            half_duplex,
        })
    }

    fn direction(
        &self,
        (name, keys): (&Spanned<String>, Keys<'_>),
        duration: Span,
    ) -> Result<PipeConfig, ScenarioError> {
        let usual = PipeConfig::default();
        let no_delay = || self.wrong("name", name.span(), LinkProblem::NoDelay.into());
        let delay = keys.delay.ok_or_else(no_delay)?;
        let config = PipeConfig {
            loss: self.loss(&keys, duration)?,
            policer: self.bucket(("police", keys.police), ("police_burst", keys.police_burst))?,
            duplication: self.or("duplicate", keys.duplicate, usual.duplication)?,
            queue: self.or::<QueueLimit>("queue", keys.queue, usual.queue)?,
            discipline: keys.aqm.map_or(Ok(Discipline::DropTail), |aqm| self.discipline(aqm))?,
            capacity: self.capacity(name, &keys, duration)?,
            delay: self.delay(delay, keys.steps, duration)?,
            jitter: self.or("jitter", keys.jitter, usual.jitter)?,
            reordering: self.reordering(&keys)?,
        };
        let at = keys.aqm.map(Spanned::span).or(keys.rate.map(Spanned::span)).unwrap_or_else(|| name.span());
        Pipe::<SenderClock, Any>::new(config.clone(), Instant::ZERO, 0).map_err(|problem| {
            let key = if keys.aqm.is_some() { "aqm" } else { "rate" };
            self.wrong(key, at, LinkProblem::from(problem).into())
        })?;
        Ok(config)
    }

    /// Returns the quantity that `value` states, or the default `usual` if there is no value.
    fn or<T: std::str::FromStr<Err = equipoise::units::UnitError>>(
        &self,
        key: &str,
        value: Option<&Spanned<Value>>,
        usual: T,
    ) -> Result<T, ScenarioError> {
        value.map_or(Ok(usual), |value| self.quantity(key, value))
    }

    /// Returns the error for a key that excludes another key of the same link, or that requires a key that is missing.
    fn stray(&self, key: &'static str, value: &Spanned<Value>, problem: LinkProblem) -> ScenarioError {
        self.wrong(key, value.span(), problem.into())
    }

    fn loss(&self, keys: &Keys<'_>, duration: Span) -> Result<Schedule<Loss>, ScenarioError> {
        let steps: Vec<(Span, Share)> =
            self.link_steps(keys.steps, duration, |step| Some(("loss", step.loss.as_ref()?)))?;
        let initial = match (keys.loss, keys.loss_burst) {
            (None, None) if steps.is_empty() => Loss::None,
            // Unlike `Loss::None`, `Loss::Random` draws a random number for each packet, even if the share is zero.
            // Therefore, packet n of the run always uses random number n. A simulated and a live run may have different
            // numbers of packets before the first step. Nevertheless, both runs lose the packets with the same numbers.
            (None, None) => Loss::Random(Share::NONE),
            (Some(share), None) => Loss::Random(self.quantity::<Share>("loss", share)?),
            (None, Some(bursts)) => Loss::Burst(self.quantity::<GilbertElliott>("loss_burst", bursts)?),
            (Some(_), Some(bursts)) => {
                return Err(self.stray("loss_burst", bursts, LinkProblem::EitherOf { keys: "`loss` or `loss_burst`" }));
            }
        };
        Ok(Schedule::new(initial, steps.into_iter().map(|(at, share)| (at, Loss::Random(share))).collect()))
    }

    fn bucket(
        &self,
        (rate_key, rate): (&'static str, Option<&Spanned<Value>>),
        (burst_key, burst): (&'static str, Option<&Spanned<Value>>),
    ) -> Result<Option<TokenBucket>, ScenarioError> {
        let Some(given) = rate else {
            let alone = |burst| Err(self.stray(burst_key, burst, LinkProblem::OnlyWith { key: rate_key }));
            return burst.map_or(Ok(None), alone);
        };
        let rate: Rate = self.quantity(rate_key, given)?;
        let usual = TokenBucket::of(rate);
        Ok(Some(TokenBucket { burst: self.or(burst_key, burst, usual.burst)?, ..usual }))
    }

    fn capacity(&self, name: &Spanned<String>, keys: &Keys<'_>, duration: Span) -> Result<Capacity, ScenarioError> {
        let traced = keys.rate_trace.or(keys.rate_csv);
        let has_steps = keys.steps.is_some_and(|steps| steps.iter().any(|step| step.rate.is_some()));
        let given = [keys.rate.is_some(), keys.rate_trace.is_some(), keys.rate_csv.is_some()];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err(self.wrong("name", name.span(), LinkProblem::WhatRate.into()));
        }
        if let (Some(offset), None) = (keys.rate_offset, traced) {
            return Err(self.stray("rate_offset", offset, LinkProblem::OnlyWith { key: "rate_trace` or `rate_csv" }));
        }
        let unlimited = keys.rate.is_some_and(|rate| rate.get_ref().as_str() == Some("unlimited"));
        if has_steps && (traced.is_some() || unlimited || keys.rate_burst.is_some()) {
            return Err(self.wrong("name", name.span(), LinkProblem::StepsOfRate.into()));
        }
        if let Some(burst) = keys.rate_burst.filter(|_| traced.is_some() || unlimited) {
            return Err(self.stray("rate_burst", burst, LinkProblem::BurstOfNoRate));
        }
        if let (Some(file), _) | (None, Some(file)) = (keys.rate_trace, keys.rate_csv) {
            return self.traced(file, keys);
        }
        if unlimited {
            return Ok(Capacity::Unlimited);
        }
        if keys.rate_burst.is_some() {
            let bucket = self.bucket(("rate", keys.rate), ("rate_burst", keys.rate_burst))?;
            return Ok(bucket.map_or(Capacity::Unlimited, Capacity::Shaped));
        }
        let rate = keys.rate.map_or(Ok(Rate::ZERO), |rate| self.quantity("rate", rate))?;
        let steps = self.link_steps(keys.steps, duration, |step| Some(("rate", step.rate.as_ref()?)))?;
        Ok(Capacity::Rate(Schedule::new(rate, steps)))
    }

    /// Checks a capacity that is read from a file.
    fn traced(&self, file: &Spanned<String>, keys: &Keys<'_>) -> Result<Capacity, ScenarioError> {
        let key = if keys.rate_trace.is_some() { "rate_trace" } else { "rate_csv" };
        let read: fn(&Path, Span) -> Result<Capacity, CapacityError> =
            if keys.rate_trace.is_some() { trace_capacity } else { steps_capacity };
        let offset = match keys.rate_offset {
            Some(offset) => self.not_negative("rate_offset", offset)?,
            None => Span::ZERO,
        };
        read(Path::new(file.get_ref()), offset).map_err(|source| {
            self.wrong(key, file.span(), LinkProblem::Capacity { why: capacity_words(&source) }.into())
        })
    }

    fn delay(
        &self,
        delay: &Spanned<Value>,
        steps: Option<&Vec<RawLinkStep>>,
        duration: Span,
    ) -> Result<Schedule<Span>, ScenarioError> {
        let initial = self.not_negative("delay", delay)?;
        let steps: Vec<(Span, Span)> =
            self.link_steps(steps, duration, |step| Some(("delay", step.delay.as_ref()?)))?;
        Ok(Schedule::new(initial, steps))
    }

    /// Checks the rate, delay or loss steps of a link; `of` selects one of these quantities.
    fn link_steps<'r, T: std::str::FromStr<Err = equipoise::units::UnitError>>(
        &self,
        steps: Option<&'r Vec<RawLinkStep>>,
        duration: Span,
        of: impl Fn(&'r RawLinkStep) -> Option<(&'static str, &'r Spanned<Value>)>,
    ) -> Result<Vec<(Span, T)>, ScenarioError> {
        let mut checked = Vec::new();
        let mut previous = None;
        for step in steps.into_iter().flatten() {
            let at = self.step("at", &step.at, previous, duration)?;
            previous = Some(at);
            if step.rate.is_none() && step.delay.is_none() && step.loss.is_none() {
                return Err(self.wrong("at", step.at.span(), LinkProblem::StepOfNothing.into()));
            }
            if let Some((key, value)) = of(step) {
                checked.push((at, self.quantity(key, value)?));
            }
        }
        Ok(checked)
    }

    fn reordering(&self, keys: &Keys<'_>) -> Result<Option<Reordering>, ScenarioError> {
        match (keys.reorder, keys.reorder_by) {
            (None, None) => Ok(None),
            (None, Some(by)) => Err(self.stray("reorder_by", by, LinkProblem::OnlyWith { key: "reorder" })),
            (Some(share), by) => {
                let share = self.quantity::<Share>("reorder", share)?;
                Ok(Some(Reordering { share, by: self.or("reorder_by", by, REORDER_BY)? }))
            }
        }
    }

    /// Checks a discipline of active queue management: its name and its parameters.
    fn discipline(&self, given: &Spanned<BTreeMap<String, Spanned<Value>>>) -> Result<Discipline, ScenarioError> {
        let aqm = Aqm { check: self, given: given.get_ref(), span: given.span() };
        let name = given.get_ref().get("name").and_then(|name| name.get_ref().as_str());
        let (discipline, known): (_, &[&str]) = match name {
            Some("codel") => (Discipline::Codel(aqm.codel()?), &["target", "interval"]),
            Some("fq_codel") => {
                let usual = FqCodel::default();
                let quantum = aqm.get("quantum", usual.quantum)?;
                let flows = aqm.count("flows", usual.flows)?;
                let fq = FqCodel { codel: aqm.codel()?, flows, quantum };
                (Discipline::FqCodel(fq), &["target", "interval", "flows", "quantum"])
            }
            Some("pie") => {
                let usual = Pie::default();
                let pie = Pie {
                    target: aqm.get("target", usual.target)?,
                    update: aqm.get("update", usual.update)?,
                    burst: aqm.get("burst", usual.burst)?,
                };
                (Discipline::Pie(pie), &["target", "update", "burst"])
            }
            Some("dualpi2") => {
                let usual = DualPi2::default();
                let dual = DualPi2 {
                    target: aqm.get("target", usual.target)?,
                    longest_round_trip: aqm.get("longest_round_trip", usual.longest_round_trip)?,
                    coupling: aqm.number("coupling", usual.coupling)?,
                    min_threshold: aqm.get("min_threshold", usual.min_threshold)?,
                    range: aqm.get("range", usual.range)?,
                };
                let known = &["target", "longest_round_trip", "coupling", "min_threshold", "range"];
                (Discipline::DualPi2(dual), known)
            }
            _ => return Err(self.wrong("aqm", given.span(), LinkProblem::UnknownAqm.into())),
        };
        let stray = given.get_ref().iter().find(|(key, _)| *key != "name" && !known.contains(&key.as_str()));
        match stray {
            None => Ok(discipline),
            Some((key, value)) => {
                let known = known.join(", ");
                Err(self.wrong(&super::excerpt::value(key), value.span(), LinkProblem::NotOfThisAqm { known }.into()))
            }
        }
    }
}

/// The table in a scenario that configures active queue management.
struct Aqm<'c, 't> {
    check: &'c Check<'t>,
    given: &'c BTreeMap<String, Spanned<Value>>,
    span: std::ops::Range<usize>,
}

impl Aqm<'_, '_> {
    fn get<T: std::str::FromStr<Err = equipoise::units::UnitError>>(
        &self,
        key: &str,
        usual: T,
    ) -> Result<T, ScenarioError> {
        self.check.or(key, self.given.get(key), usual)
    }

    fn codel(&self) -> Result<Codel, ScenarioError> {
        let usual = Codel::default();
        let interval = self.get("interval", usual.interval)?;
        let codel = Codel { target: self.get("target", usual.target)?, interval };
        // CoDel tolerates a standing delay up to the target, and the interval covers the usual round-trip times (RFC
        // 8289, Sec. 4.2, 4.3). A target above the interval would permit a standing delay longer than a
        // round-trip time, and is therefore a mistake.
        if codel.target > interval {
            return Err(self.check.wrong(
                "aqm",
                self.span.clone(),
                LinkProblem::TargetAboveInterval { interval }.into(),
            ));
        }
        Ok(codel)
    }

    fn count(&self, key: &str, usual: u32) -> Result<u32, ScenarioError> {
        let Some(value) = self.given.get(key) else { return Ok(usual) };
        let count = value.get_ref().as_integer().and_then(|count| u32::try_from(count).ok());
        count.ok_or_else(|| self.check.wrong(key, value.span(), LinkProblem::NotACount.into()))
    }

    fn number(&self, key: &str, usual: f64) -> Result<f64, ScenarioError> {
        let Some(value) = self.given.get(key) else { return Ok(usual) };
        let number = value.get_ref().as_float().or_else(|| value.get_ref().as_integer().map(|number| number as f64));
        number.ok_or_else(|| self.check.wrong(key, value.span(), LinkProblem::NotACount.into()))
    }
}

/// Returns the reason why a file does not contain a capacity, including the underlying cause.
fn capacity_words(error: &CapacityError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
