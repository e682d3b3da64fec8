//! The raw form of a scenario file, of which only the structure has been checked.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::{Spanned, Value};

use super::raw_link::RawLink;
use super::raw_source::{RawSource, RawSources};

/// Suffix in the name of the flow that describes the reverse media of another flow.
const MEDIA_BACK: &str = " (back)";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScenario {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) description: String,
    pub(super) duration: Spanned<Value>,
    pub(super) warm_up: Option<Spanned<Value>>,
    pub(super) seed: Option<u64>,
    pub(super) sample_interval: Option<Spanned<Value>>,
    pub(super) receiver_rates: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) link: Vec<RawLink>,
    #[serde(default)]
    pub(super) path: Vec<RawPath>,
    #[serde(default)]
    pub(super) flow: Vec<RawFlow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPath {
    pub(super) name: Spanned<String>,
    pub(super) links: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) down: Vec<RawOutage>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawOutage {
    pub(super) at: Spanned<Value>,
    pub(super) until: Option<Spanned<Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFlow {
    pub(super) name: Spanned<String>,
    pub(super) path: Option<Vec<Spanned<String>>>,
    pub(super) back: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) paths: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) direction: Option<Spanned<String>>,
    pub(super) ecn: Option<Spanned<String>>,
    pub(super) scheduler: Option<BTreeMap<String, Spanned<Value>>>,
    pub(super) period: Option<Spanned<Value>>,
    pub(super) packet_size: Spanned<Value>,
    pub(super) start: Option<Spanned<Value>>,
    pub(super) report_interval: Option<Spanned<Value>>,
    pub(super) feedback: Option<Spanned<RawFeedback>>,
    pub(super) circuit_breakers: Option<bool>,
    pub(super) controller: Option<BTreeMap<String, Spanned<Value>>>,
    pub(super) source: Option<RawSources>,
    pub(super) pacing: Option<Spanned<f64>>,
    pub(super) skip_after: Option<Spanned<Value>>,
    pub(super) deadline: Option<Spanned<Value>>,
    #[serde(default)]
    pub(super) pause: Vec<RawOutage>,
    pub(super) playout: Option<Spanned<String>>,
    pub(super) stop: Option<Spanned<Value>>,
    pub(super) window: Option<BTreeMap<String, Spanned<Value>>>,
    pub(super) kernel: Option<Spanned<String>>,
    pub(super) bandwidth: Option<RawBandwidth>,
    pub(super) tcp: Option<RawTcp>,
    pub(super) web: Option<RawWeb>,
    pub(super) pair: Option<RawPair>,
    pub(super) rtcp: Option<RawRtcp>,
    pub(super) media_back: Option<RawMediaBack>,
    pub(super) group: Option<Spanned<RawGroup>>,
}

/// The group of flows with which a flow shares its rate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGroup {
    pub(super) name: Spanned<String>,
    pub(super) priority: Option<Spanned<f64>>,
    pub(super) coupling: Option<Spanned<String>>,
}

/// The reverse media in the session of a flow. If the packet size, the start, the report interval or the controller is
/// missing here, the flow's value applies.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMediaBack {
    pub(super) packet_size: Option<Spanned<Value>>,
    pub(super) start: Option<Spanned<Value>>,
    pub(super) report_interval: Option<Spanned<Value>>,
    pub(super) controller: Option<BTreeMap<String, Spanned<Value>>>,
    pub(super) source: Option<RawSources>,
    pub(super) pacing: Option<Spanned<f64>>,
    pub(super) skip_after: Option<Spanned<Value>>,
    pub(super) deadline: Option<Spanned<Value>>,
    #[serde(default)]
    pub(super) pause: Vec<RawOutage>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFeedback {
    pub(super) format: Option<Spanned<String>>,
    pub(super) interval: Option<Spanned<Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPair {
    pub(super) adu: Spanned<Value>,
    pub(super) segment: Option<Spanned<Value>>,
    pub(super) interval: Option<Spanned<Value>>,
    pub(super) between_reductions: Option<RawBetweenReductions>,
    pub(super) tolerance: Option<Spanned<Value>>,
    pub(super) running: Option<Spanned<Value>>,
    pub(super) early_return: Option<RawEarlyReturn>,
    pub(super) law: Option<RawRunningLaw>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBetweenReductions {
    pub(super) at_least: Spanned<Value>,
    pub(super) at_most: Spanned<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEarlyReturn {
    pub(super) reductions: Spanned<u32>,
    pub(super) share: Spanned<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRunningLaw {
    pub(super) name: Spanned<String>,
    pub(super) adapt: Option<Spanned<Value>>,
    pub(super) reduction_factor: Option<Spanned<f64>>,
    pub(super) min_rate: Option<Spanned<Value>>,
    pub(super) target: Option<Spanned<Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRtcp {
    pub(super) sender: Option<Spanned<String>>,
    pub(super) receiver: Option<Spanned<String>>,
    pub(super) seed: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTcp {
    pub(super) recovery: Option<Spanned<String>>,
    pub(super) transfer: Option<Spanned<Value>>,
    pub(super) rate: Option<Spanned<Value>>,
    pub(super) receive_window: Option<Spanned<u64>>,
    pub(super) delayed_acks: Option<Spanned<String>>,
    pub(super) limited_transmit: Option<Spanned<String>>,
    pub(super) idle_restart: Option<Spanned<String>>,
    pub(super) handshake: Option<Spanned<String>>,
    pub(super) min_rto: Option<Spanned<Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWeb {
    pub(super) flows: Option<Spanned<u32>>,
    pub(super) on: Option<Spanned<u32>>,
    pub(super) connections: Option<Spanned<u32>>,
    pub(super) size: Option<Spanned<Vec<Spanned<Value>>>>,
    pub(super) idle: Option<Spanned<Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBandwidth {
    pub(super) kind: Spanned<String>,
    pub(super) interval: Option<Spanned<Value>>,
    pub(super) noise: Option<Spanned<f64>>,
    #[serde(default)]
    pub(super) steps: Vec<RawNoiseStep>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNoiseStep {
    pub(super) at: Spanned<Value>,
    pub(super) noise: Spanned<f64>,
}

impl RawFlow {
    /// Returns a new flow for the media in the reverse direction. The new flow belongs to the session of this flow.
    pub(super) fn with_media_back(&self, back: RawMediaBack) -> Self {
        let span = self.name.span();
        let goes_back = self.direction.as_ref().is_some_and(|direction| direction.get_ref() == "back");
        let direction = if goes_back { "forward" } else { "back" };
        let name = format!("{}{MEDIA_BACK}", self.name.get_ref());
        Self {
            name: Spanned::new(span.clone(), name),
            path: self.path.clone(),
            back: None,
            paths: None,
            direction: Some(Spanned::new(span, direction.to_owned())),
            ecn: self.ecn.clone(),
            scheduler: None,
            period: None,
            packet_size: back.packet_size.unwrap_or_else(|| self.packet_size.clone()),
            start: back.start.or_else(|| self.start.clone()),
            report_interval: back.report_interval.or_else(|| self.report_interval.clone()),
            feedback: None,
            circuit_breakers: self.circuit_breakers,
            controller: back.controller.or_else(|| self.controller.clone()),
            source: back.source,
            pacing: back.pacing,
            skip_after: back.skip_after,
            deadline: back.deadline,
            pause: back.pause,
            playout: None,
            stop: None,
            window: None,
            kernel: None,
            bandwidth: None,
            tcp: None,
            web: None,
            pair: None,
            rtcp: self.rtcp.as_ref().map(|rtcp| RawRtcp {
                sender: rtcp.receiver.clone(),
                receiver: rtcp.sender.clone(),
                seed: None,
            }),
            media_back: None,
            group: None,
        }
    }

    /// Whether the flow is a TCP connection, or a flow pair, which sends over TCP and RTP in turn.
    pub(super) const fn is_tcp(&self) -> bool {
        self.window.is_some() || self.kernel.is_some()
    }

    /// Whether the flow has a controller, a source or a playout buffer, none of which a flow pair can have.
    pub(super) const fn has_other_than_a_pair(&self) -> bool {
        self.controller.is_some() || self.source.is_some() || self.playout.is_some()
    }

    /// The flow's sources, in order.
    pub(super) fn sources(&self) -> &[RawSource] {
        self.source.as_ref().map_or(&[], |sources| &sources.0)
    }

    /// Returns a key of the flow that only live media can have, and the key's location in the file; `None` if there is
    /// no such key.
    pub(super) fn live_only(&self) -> Option<(&'static str, Range<usize>)> {
        let pacing = self.pacing.as_ref().map(|value| ("pacing", value.span()));
        let skip = || self.skip_after.as_ref().map(|value| ("skip_after", value.span()));
        pacing.or_else(skip).or_else(|| self.deadline.as_ref().map(|value| ("deadline", value.span())))
    }

    /// Returns a key of the flow that only flows over several paths can have; `None` if there is no such key.
    pub(super) fn multipath_only(&self) -> Option<&'static str> {
        let given = [("scheduler", self.scheduler.is_some()), ("period", self.period.is_some())];
        given.iter().find(|(_, given)| *given).map(|(key, _)| *key)
    }

    /// Returns a key of the flow that only flows with a TCP connection can have; `None` if there is no such key.
    pub(super) fn tcp_only(&self) -> Option<&'static str> {
        let given = [
            ("stop", self.stop.is_some()),
            ("bandwidth", self.bandwidth.is_some()),
            ("tcp", self.tcp.is_some()),
            ("web", self.web.is_some()),
        ];
        given.iter().find(|(_, given)| *given).map(|(key, _)| *key)
    }
}
