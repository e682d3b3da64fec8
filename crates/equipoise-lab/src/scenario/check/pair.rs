//! Checks a flow that is a flow pair.

use equipoise::units::{Rate, Size, Span};
use equipoise_pair::tpba::{EarlyReturn, ProbeInterval, RunningConfig, Tolerance, Tpba, TpbaConfig};
use equipoise_pair::wire::AduHeader;
use equipoise_sim::tcp::Supply;
use toml::{Spanned, Value};

use super::{Check, LARGEST_PACKET, SHORTEST_INTERVAL, SMALLEST_PACKET};
use crate::scenario::error::{Problem, ScenarioError};
use crate::scenario::raw::{RawFlow, RawPair, RawRunningLaw};
use crate::scenario::{PairFlow, RunningLaw, TcpFlow};

/// The largest valid reduction factor. With this factor, a loss of 0.1 % or more reduces the rate to its minimum.
const MOST_REDUCTION_FACTOR: f64 = 1000.0;

/// The values from the rest of the scenario that the checks of a flow pair need.
pub(super) struct Around {
    pub(super) start: Span,
    pub(super) duration: Span,
    /// Propagation delay of the pair's path.
    pub(super) propagation: Span,
}

impl Check<'_> {
    pub(super) fn pair(&self, raw: &RawFlow, pair: &RawPair, around: &Around) -> Result<PairFlow, ScenarioError> {
        let Some(interval) = raw.report_interval.as_ref().filter(|_| raw.is_tcp() && !raw.has_other_than_a_pair())
        else {
            return Err(self.wrong("name", raw.name.span(), Problem::WhatPair));
        };
        let report_interval = self.quantity("report_interval", interval)?;
        let min = SHORTEST_INTERVAL;
        self.that(report_interval >= min, "report_interval", interval, || Problem::ReportInterval { min })?;
        let adu: Size = self.quantity("adu", &pair.adu)?;
        let most = Size::from_bytes(AduHeader::LONGEST.into());
        let fits = (Size::from_bytes(1)..=most).contains(&adu);
        self.that(fits, "adu", &pair.adu, || Problem::AduSize { most })?;
        let segment = pair.segment.as_ref().map_or(Ok(LARGEST_PACKET), |value| self.segment(value))?;
        let law = self.running_law(pair.law.as_ref(), around.propagation)?;
        let tcp = self.tcp_half(raw, around)?;
        Ok(PairFlow { adu, tpba: self.tpba(raw, pair)?, law, report_interval, segment, tcp })
    }

    fn segment(&self, value: &Spanned<Value>) -> Result<Size, ScenarioError> {
        let segment: Size = self.quantity("segment", value)?;
        let (min, max) = (SMALLEST_PACKET, LARGEST_PACKET);
        self.that((min..=max).contains(&segment), "segment", value, || Problem::PacketSize { min, max })?;
        Ok(segment)
    }

    /// Checks the TCP half of a flow pair. The TCP half is a connection to which the pair writes data, and which keeps
    /// its congestion window while idle.
    fn tcp_half(&self, raw: &RawFlow, around: &Around) -> Result<TcpFlow, ScenarioError> {
        let refused = |key: &str, at| Err(self.wrong(key, at, Problem::NotOfAPair));
        if let Some(stop) = &raw.stop {
            return refused("stop", stop.span());
        }
        if let Some(bandwidth) = &raw.bandwidth {
            return refused("bandwidth", bandwidth.kind.span());
        }
        if let Some(host) = &raw.tcp {
            let supply = [("transfer", &host.transfer), ("rate", &host.rate)];
            if let Some((key, value)) = supply.iter().find_map(|(key, value)| Some((*key, value.as_ref()?))) {
                return refused(key, value.span());
            }
            if let Some(idle_restart) = &host.idle_restart {
                return refused("idle_restart", idle_restart.span());
            }
        }
        let tcp = self.tcp(raw, (around.start, around.duration))?;
        Ok(TcpFlow { supply: Supply::Written, idle_restart: false, ..tcp })
    }

    fn tpba(&self, raw: &RawFlow, pair: &RawPair) -> Result<TpbaConfig, ScenarioError> {
        let paper = TpbaConfig::PAPER;
        let config = TpbaConfig {
            interval: self.probe_interval(pair)?,
            tolerance: pair.tolerance.as_ref().map_or(Ok(paper.tolerance), |value| self.tolerance(value))?,
            running: pair.running.as_ref().map_or(Ok(paper.running), |value| self.positive("running", value))?,
            early_return: pair
                .early_return
                .as_ref()
                .map(|early| EarlyReturn { reductions: *early.reductions.get_ref(), share: *early.share.get_ref() }),
        };
        Tpba::new(config).map_err(|problem| self.wrong("pair", raw.name.span(), problem.into()))?;
        Ok(config)
    }

    fn probe_interval(&self, pair: &RawPair) -> Result<ProbeInterval, ScenarioError> {
        match (&pair.interval, &pair.between_reductions) {
            (None, None) => Ok(TpbaConfig::PAPER.interval),
            (Some(interval), None) => Ok(ProbeInterval::Fixed(self.positive("interval", interval)?)),
            (None, Some(between)) => Ok(ProbeInterval::BetweenReductions {
                at_least: self.positive("at_least", &between.at_least)?,
                at_most: self.positive("at_most", &between.at_most)?,
            }),
            (Some(interval), Some(_)) => Err(self.wrong("interval", interval.span(), Problem::IntervalOrReductions)),
        }
    }

    /// Checks a tolerance, which is a rate or a share. A share is a number with a decimal point and without a unit.
    fn tolerance(&self, value: &Spanned<Value>) -> Result<Tolerance, ScenarioError> {
        match value.get_ref() {
            Value::Float(share) => Ok(Tolerance::Share(*share)),
            _ => self.quantity("tolerance", value).map(Tolerance::Absolute),
        }
    }

    fn running_law(&self, law: Option<&RawRunningLaw>, propagation: Span) -> Result<RunningLaw, ScenarioError> {
        let paper = RunningConfig::PAPER;
        let Some(law) = law else { return Ok(RunningLaw::Loss(paper)) };
        let min_rate = law.min_rate.as_ref().map_or(Ok(paper.min_rate), |value| self.min_rate(value))?;
        match (law.name.get_ref().as_str(), &law.target) {
            ("loss", None) => Ok(RunningLaw::Loss(RunningConfig {
                adapt: law.adapt.as_ref().map_or(Ok(paper.adapt), |value| self.positive("adapt", value))?,
                reduction_factor: law.reduction_factor.as_ref().map_or(Ok(paper.reduction_factor), |factor| {
                    self.within("reduction_factor", factor, MOST_REDUCTION_FACTOR)
                })?,
                min_rate,
            })),
            ("ap", Some(target)) if law.adapt.is_none() && law.reduction_factor.is_none() => {
                let found = self.quantity("target", target)?;
                let above = found > propagation;
                self.that(above, "target", target, || Problem::TargetBelowPropagation { propagation })?;
                Ok(RunningLaw::Ap { target: found, min_rate })
            }
            ("loss" | "ap", _) => Err(self.wrong("name", law.name.span(), Problem::RunningParameters)),
            _ => Err(self.wrong("name", law.name.span(), Problem::UnknownRunningLaw)),
        }
    }

    fn min_rate(&self, value: &Spanned<Value>) -> Result<Rate, ScenarioError> {
        let rate = self.quantity("min_rate", value)?;
        self.that(rate > Rate::ZERO, "min_rate", value, || Problem::NotPositive)?;
        Ok(rate)
    }
}
