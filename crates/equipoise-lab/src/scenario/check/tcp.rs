//! Checks a flow that is a TCP connection.

use equipoise::units::{Schedule, Span};
use equipoise_sim::tcp::{DelayedAcks, LossRecovery, Supply};
use toml::Spanned;

use super::Check;
use crate::scenario::error::{Problem, ScenarioError};
use crate::scenario::raw::{RawBandwidth, RawFlow, RawTcp};
use crate::scenario::{BandwidthSource, MediaProblem, TcpFlow};

/// Default minimum retransmission timeout (RFC 6298, Sec. 2.4).
const MIN_RTO: Span = Span::from_secs(1);
/// Maximum length of the name of a congestion control (Linux's `TCP_CA_NAME_MAX` minus the terminating zero).
const MOST_KERNEL_NAME: usize = 15;
/// Maximum receive window in segments, which is larger than the number of segments that any path can have in flight.
const MOST_SEGMENTS: u64 = 1 << 30;

impl Check<'_> {
    pub(super) fn tcp(&self, raw: &RawFlow, (start, duration): (Span, Span)) -> Result<TcpFlow, ScenarioError> {
        let none = RawTcp::default();
        let host = raw.tcp.as_ref().unwrap_or(&none);
        let stop = match &raw.stop {
            None => None,
            Some(value) => {
                let stop = self.positive("stop", value)?;
                self.that(stop > start, "stop", value, || Problem::StopBeforeStart { start })?;
                Some(stop)
            }
        };
        Ok(TcpFlow {
            law: match &raw.window {
                None => None,
                Some(law) => Some(self.choice("window", raw, &self.catalogue.window_laws, law)?),
            },
            kernel: raw.kernel.as_ref().map(|name| self.kernel(name)).transpose()?,
            bandwidth: self.bandwidth(raw.bandwidth.as_ref(), duration)?,
            stop,
            supply: self.supply(host)?,
            content: match raw.sources() {
                [] => None,
                [source, others @ ..] => {
                    let other = host.transfer.as_ref().or(host.rate.as_ref());
                    if let Some(other) = other {
                        return Err(self.wrong("tcp", other.span(), Problem::SourceOrSupply));
                    }
                    if let Some(more) = others.first() {
                        return Err(self.wrong("kind", more.kind.span(), MediaProblem::LiveOfWhat.into()));
                    }
                    if let Some(adapt) = source.video.adapt.as_ref().filter(|adapt| adapt.get_ref() == "quantise") {
                        return Err(self.wrong("adapt", adapt.span(), MediaProblem::LiveOfWhat.into()));
                    }
                    Some(self.content(source)?)
                }
            },
            web: raw.web.as_ref().map(|given| self.web(raw, given)).transpose()?,
            recovery: match self.word("recovery", host.recovery.as_ref(), &["sack", "newreno"])? {
                Some("newreno") => LossRecovery::NewReno,
                _ => LossRecovery::Sack,
            },
            receive_window: match &host.receive_window {
                None => None,
                Some(value) => {
                    let right = (1..=MOST_SEGMENTS).contains(value.get_ref());
                    self.that(right, "receive_window", value, || Problem::Segments { most: MOST_SEGMENTS })?;
                    Some(*value.get_ref())
                }
            },
            delayed_acks: self.switch("delayed_acks", host.delayed_acks.as_ref())?.then_some(DelayedAcks::STANDARD),
            limited_transmit: self.switch("limited_transmit", host.limited_transmit.as_ref())?,
            idle_restart: self.switch("idle_restart", host.idle_restart.as_ref())?,
            handshake: self.switch("handshake", host.handshake.as_ref())?,
            min_rto: host.min_rto.as_ref().map_or(Ok(MIN_RTO), |value| self.positive("min_rto", value))?,
        })
    }

    /// Checks the form of the name of a congestion control. Whether this congestion control exists can be checked only
    /// by the kernel.
    fn kernel(&self, name: &Spanned<String>) -> Result<String, ScenarioError> {
        let right = |name: &String| {
            (1..=MOST_KERNEL_NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
        };
        self.that(right(name.get_ref()), "kernel", name, || Problem::KernelName { most: MOST_KERNEL_NAME })?;
        Ok(name.get_ref().clone())
    }

    fn bandwidth(&self, raw: Option<&RawBandwidth>, duration: Span) -> Result<BandwidthSource, ScenarioError> {
        let Some(raw) = raw else { return Ok(BandwidthSource::Unknown) };
        let refuse = |at: &Spanned<String>, problem| Err(self.wrong("kind", at.span(), problem));
        match (raw.kind.get_ref().as_str(), &raw.interval) {
            ("known", Some(interval)) => Ok(BandwidthSource::Known {
                interval: self.positive("interval", interval)?,
                noise: self.noise(raw, duration)?,
            }),
            ("known", None) => refuse(&raw.kind, Problem::NoMeasurementInterval),
            ("inline", None) if raw.noise.is_none() && raw.steps.is_empty() => Ok(BandwidthSource::Inline),
            ("inline", _) => refuse(&raw.kind, Problem::InlineNeedsNothing),
            _ => refuse(&raw.kind, Problem::UnknownBandwidth),
        }
    }

    fn noise(&self, raw: &RawBandwidth, duration: Span) -> Result<Schedule<f64>, ScenarioError> {
        let checked = |value: &Spanned<f64>| -> Result<f64, ScenarioError> {
            let right = value.get_ref().is_finite() && *value.get_ref() >= 0.0;
            self.that(right, "noise", value, || Problem::Negative)?;
            Ok(*value.get_ref())
        };
        let initial = raw.noise.as_ref().map_or(Ok(0.0), checked)?;
        let mut steps: Vec<(Span, f64)> = Vec::new();
        for step in &raw.steps {
            let at = self.step("at", &step.at, steps.last().map(|(at, _)| *at), duration)?;
            steps.push((at, checked(&step.noise)?));
        }
        Ok(Schedule::new(initial, steps))
    }

    fn supply(&self, host: &RawTcp) -> Result<Supply, ScenarioError> {
        match (&host.transfer, &host.rate) {
            (None, None) => Ok(Supply::Unlimited),
            (Some(data), None) => Ok(Supply::Transfer(self.quantity("transfer", data)?)),
            (None, Some(rate)) => Ok(Supply::Rate(self.quantity("rate", rate)?)),
            (Some(data), Some(_)) => Err(self.wrong("transfer", data.span(), Problem::TransferOrRate)),
        }
    }

    /// Whether a switch is on. A switch that the scenario omits is on.
    fn switch(&self, key: &str, value: Option<&Spanned<String>>) -> Result<bool, ScenarioError> {
        Ok(self.word(key, value, &["on", "off"])? != Some("off"))
    }

    pub(super) fn word(
        &self,
        key: &str,
        value: Option<&Spanned<String>>,
        words: &[&'static str],
    ) -> Result<Option<&'static str>, ScenarioError> {
        let Some(value) = value else { return Ok(None) };
        let found = words.iter().find(|word| **word == value.get_ref()).copied();
        self.that(found.is_some(), key, value, || Problem::NotAWord { known: words.join(" or ") })?;
        Ok(found)
    }
}
