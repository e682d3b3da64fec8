//! The metrics of flows, runs and phases: how each is named, formatted and read from a result. Tables, summaries and
//! comparisons all use these metrics.

mod media;

use serde::{Serialize, Serializer};

use crate::result::FlowResult;
use crate::scenario::{FlowKind, TcpFlow};
pub use media::{PHASE, RUN};

/// A metric, whose value is read from a result of type `T`. By default, `T` is the result of a flow.
#[derive(Debug)]
pub struct Metric<T = FlowResult> {
    /// Key of the metric in JSON. The key ends with the unit of the values, if they have one.
    pub key: &'static str,
    /// Name of the metric in tables.
    pub name: &'static str,
    /// Unit of the metric in tables; empty if the metric has no unit.
    pub unit: &'static str,
    /// Factor that converts a value from the unit of the key to the unit in tables.
    pub scale: f64,
    /// Number of decimals in tables.
    pub decimals: usize,
    /// Whether comparisons include this metric.
    pub is_compared: bool,
    of: fn(&T) -> Option<f64>,
}

impl<T> Metric<T> {
    /// Reads the metric's value from a result, in the unit of the metric's key; `None` if the metric was not measured.
    pub fn of(&self, result: &T) -> Option<f64> {
        (self.of)(result)
    }

    /// Returns the metric's name and unit.
    pub fn label(&self) -> String {
        if self.unit.is_empty() { self.name.to_owned() } else { format!("{} ({})", self.name, self.unit) }
    }

    /// Formats a value in the unit and with the number of decimals that tables use, without the unit's name.
    pub fn number(&self, value: f64) -> String {
        format!("{:.*}", self.decimals, value * self.scale)
    }

    /// Formats a mean in the unit that tables use, with half the width of its confidence interval if the mean has one.
    pub fn mean(&self, mean: f64, half_width: Option<f64>) -> String {
        let interval = half_width.map(|half| format!(" ± {}", self.number(half))).unwrap_or_default();
        self.number(mean) + &interval
    }

    const fn compared(self) -> Self {
        Self { is_compared: true, ..self }
    }
}

/// A metric is serialised as its key.
impl<T> Serialize for Metric<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key)
    }
}

/// Returns the metrics of a flow, which depend on the flow's kind.
pub fn of(flow: &FlowResult) -> &'static [Metric] {
    match (&flow.tcp, &flow.pair) {
        (Some(tcp), _) if tcp.web.is_some() => WEB,
        (Some(_), _) => TCP,
        (None, Some(_)) => PAIR,
        (None, None) => MEDIA,
    }
}

/// Returns the metrics of a flow in a scenario, which depend on the flow's kind.
pub(crate) const fn of_kind(kind: &FlowKind) -> &'static [Metric] {
    match kind {
        FlowKind::Tcp(TcpFlow { web: Some(_), .. }) => WEB,
        FlowKind::Tcp(_) => TCP,
        FlowKind::Pair(_) => PAIR,
        FlowKind::Session { .. } | FlowKind::Multipath(_) | FlowKind::Background { .. } => MEDIA,
    }
}

/// Returns the kind of a flow in one word: `media` (including background traffic), `tcp`, `web` or `pair`.
#[cfg(feature = "sweep")]
pub(crate) fn kind_name(flow: &FlowResult) -> &'static str {
    match (&flow.tcp, &flow.pair) {
        (Some(tcp), _) if tcp.web.is_some() => "web",
        (Some(_), _) => "tcp",
        (None, Some(_)) => "pair",
        (None, None) => "media",
    }
}

/// Returns the keys of the metrics of all kinds of flows, without repetitions.
#[cfg(feature = "sweep")]
pub(crate) fn keys() -> Vec<&'static str> {
    let mut keys = Vec::new();
    for metric in [MEDIA, TCP, WEB, PAIR].into_iter().flatten() {
        if !keys.contains(&metric.key) {
            keys.push(metric.key);
        }
    }
    keys
}

type Get = fn(&FlowResult) -> Option<f64>;

/// Number format of a metric in tables.
#[derive(Clone, Copy)]
struct Print {
    unit: &'static str,
    /// Factor that converts a value from the unit of the key to the unit in tables.
    scale: f64,
    decimals: usize,
}

const MEGABITS: Print = Print { unit: "Mbit/s", scale: 1e-6, decimals: 3 };
const MILLIS: Print = Print { unit: "ms", scale: 1e3, decimals: 3 };
const COUNT: Print = Print { unit: "", scale: 1.0, decimals: 0 };
const SECONDS: Print = Print { unit: "s", scale: 1.0, decimals: 3 };
const MILLIS_SQUARED: Print = Print { unit: "ms²", scale: 1e6, decimals: 3 };
const PERCENT: Print = Print { unit: "%", scale: 100.0, decimals: 3 };

impl Print {
    const fn decimals(self, decimals: usize) -> Self {
        Self { decimals, ..self }
    }
}

const fn metric<T>(key: &'static str, name: &'static str, print: Print, of: fn(&T) -> Option<f64>) -> Metric<T> {
    let Print { unit, scale, decimals } = print;
    Metric { key, name, unit, scale, decimals, is_compared: false, of }
}

const fn rate(key: &'static str, name: &'static str, of: Get) -> Metric {
    metric(key, name, MEGABITS, of)
}

const fn millis(key: &'static str, name: &'static str, of: Get) -> Metric {
    metric(key, name, MILLIS, of)
}

const fn count(key: &'static str, name: &'static str, of: Get) -> Metric {
    metric(key, name, COUNT, of)
}

const fn seconds(key: &'static str, name: &'static str, of: Get) -> Metric {
    metric(key, name, SECONDS, of)
}

const fn millis_squared(key: &'static str, name: &'static str, of: Get) -> Metric {
    metric(key, name, MILLIS_SQUARED, of)
}

const fn percent(key: &'static str, name: &'static str, of: Get) -> Metric {
    metric(key, name, PERCENT, of)
}

fn lost(flow: &FlowResult) -> Option<f64> {
    (flow.packets_sent > 0).then(|| flow.packets_lost as f64 / flow.packets_sent as f64)
}

/// Returns the share of the received packets that had an ECN congestion mark; `None` if no packet was received or marks
/// were not counted.
fn marked(flow: &FlowResult) -> Option<f64> {
    (flow.packets_received > 0).then_some(flow.packets_marked? as f64 / flow.packets_received as f64)
}

/// The rate at which a flow's media or data arrive, defined for every kind of flow.
pub(crate) const DELIVERED: Metric = rate("delivered_rate_bps", "delivered rate", |flow| {
    let of_tcp = || flow.tcp.as_ref()?.goodput_bps;
    let of_pair = || flow.pair.as_ref()?.received_bps;
    if flow.pair.is_some() { of_pair() } else { of_tcp().or(flow.delivered_rate_bps) }
})
.compared();

/// The mean one-way delay of an RTP flow.
pub(crate) const MEAN_DELAY: Metric =
    millis("delay_mean_s", "one-way delay: mean", |flow| flow.delay.mean_s).compared();

/// Metrics of media sessions and background traffic.
const MEDIA: &[Metric] = &[
    rate("mean_rate_bps", "mean rate", |flow| flow.mean_rate_bps).compared(),
    DELIVERED,
    MEAN_DELAY,
    millis_squared("delay_variance_s2", "variance", |flow| flow.delay.variance_s2),
    millis("delay_p50_s", "median", |flow| flow.delay.p50_s).compared(),
    millis("delay_p95_s", "95th percentile", |flow| flow.delay.p95_s).compared(),
    millis("delay_p99_s", "99th percentile", |flow| flow.delay.p99_s).compared(),
    millis("delay_max_s", "maximum", |flow| flow.delay.max_s),
    millis("queueing_mean_s", "wait in queues: mean", |flow| flow.queueing?.mean_s).compared(),
    millis("queueing_p95_s", "queues: 95th percentile", |flow| flow.queueing?.p95_s).compared(),
    millis("queueing_p99_s", "queues: 99th percentile", |flow| flow.queueing?.p99_s).compared(),
    millis("target_s", "target", |flow| flow.target_s),
    millis("settled_delay_s", "settled delay", |flow| flow.settled_delay_s).compared(),
    millis_squared("mse_s2", "mean squared error", |flow| flow.mse_s2),
    Metric { decimals: 4, ..count("cv", "coefficient of variation", |flow| flow.cv) }.compared(),
    millis("jitter_s", "delay jitter", |flow| flow.jitter_s),
    count("packets_sent", "packets sent", |flow| Some(flow.packets_sent as f64)),
    count("packets_received", "packets received", |flow| Some(flow.packets_received as f64)),
    percent("lost_share", "packets lost", lost).compared(),
    percent("marked_share", "packets marked", marked),
    millis("video_delay_p50_s", "frame delay: median", |flow| flow.video?.delay.p50_s).compared(),
    millis("video_delay_p95_s", "frames: 95th percentile", |flow| flow.video?.delay.p95_s).compared(),
    millis("video_delay_p99_s", "frames: 99th percentile", |flow| flow.video?.delay.p99_s).compared(),
    millis("video_sender_wait_p95_s", "wait at the sender: 95th percentile", |flow| flow.video?.sender_wait.p95_s),
    percent("video_skipped_share", "frames skipped", |flow| flow.video?.share(flow.video?.skipped)).compared(),
    percent("video_lost_share", "frames lost", |flow| flow.video?.share(flow.video?.lost)).compared(),
    percent("video_late_share", "frames late", |flow| flow.video?.share(flow.video?.late)).compared(),
    count("video_freezes", "freezes", |flow| Some(flow.video?.freezes as f64)).compared(),
    seconds("video_frozen_s", "frozen", |flow| Some(flow.video?.frozen_s)).compared(),
    millis("audio_delay_p95_s", "audio delay: 95th percentile", |flow| flow.audio?.delay.p95_s).compared(),
    percent("audio_lost_share", "audio lost", |flow| flow.audio?.share(flow.audio?.lost)).compared(),
    count("pacing_resets", "pacer resets", |flow| Some(flow.pacing_resets as f64)),
    count("reports_missing", "requests skipped for missing reports", |flow| Some(flow.reports_missing as f64)),
    count("circuit_broken", "stopped by a circuit breaker", |flow| {
        Some(flow.circuit_broken.values().sum::<u64>() as f64)
    }),
];

/// Metrics of TCP connections.
const TCP: &[Metric] = &[
    rate("goodput_bps", "goodput", |flow| flow.tcp.as_ref()?.goodput_bps),
    Metric {
        unit: "MB",
        ..rate("delivered_bytes", "data delivered", |flow| Some(flow.tcp.as_ref()?.delivered_bytes as f64))
    },
    count("packets_sent", "segments sent", |flow| Some(flow.packets_sent as f64)),
    count("retransmissions", "segments sent again", |flow| Some(flow.tcp.as_ref()?.retransmissions as f64)).compared(),
    count("resent_in_recovery", "in fast recovery", |flow| Some(flow.tcp.as_ref()?.resent_in_recovery? as f64)),
    count("resent_after_timeout", "after a timeout", |flow| Some(flow.tcp.as_ref()?.resent_after_timeout? as f64)),
    count("recoveries", "fast recoveries", |flow| Some(flow.tcp.as_ref()?.recoveries? as f64)),
    count("timeouts", "timeouts", |flow| Some(flow.tcp.as_ref()?.timeouts? as f64)).compared(),
    millis("queueing_mean_s", "wait in queues: mean", |flow| flow.queueing?.mean_s).compared(),
    millis("queueing_p95_s", "queues: 95th percentile", |flow| flow.queueing?.p95_s).compared(),
    millis("min_round_trip_s", "least round-trip time", |flow| flow.tcp.as_ref()?.min_round_trip_s),
    seconds("finished_s", "transfer finished", |flow| flow.tcp.as_ref()?.finished_s).compared(),
];

/// Metrics of web traffic.
const WEB: &[Metric] = &[
    rate("goodput_bps", "goodput", |flow| flow.tcp.as_ref()?.goodput_bps),
    Metric {
        unit: "MB",
        ..rate("delivered_bytes", "data delivered", |flow| Some(flow.tcp.as_ref()?.delivered_bytes as f64))
    },
    count("fetches", "fetches complete", |flow| Some(flow.tcp.as_ref()?.web?.fetches as f64)).compared(),
    count("fetches_begun", "fetches begun", |flow| Some(flow.tcp.as_ref()?.web?.fetches_begun as f64)),
    seconds("fetch_mean_s", "time of a fetch: mean", |flow| flow.tcp.as_ref()?.web?.time.mean_s),
    seconds("fetch_p50_s", "time of a fetch: median", |flow| flow.tcp.as_ref()?.web?.time.p50_s).compared(),
    seconds("fetch_p95_s", "fetches: 95th percentile", |flow| flow.tcp.as_ref()?.web?.time.p95_s).compared(),
    percent("on_share", "time ON", |flow| flow.tcp.as_ref()?.web?.on_share),
    count("packets_sent", "segments sent", |flow| Some(flow.packets_sent as f64)),
    count("retransmissions", "segments sent again", |flow| Some(flow.tcp.as_ref()?.retransmissions as f64)).compared(),
    count("timeouts", "timeouts", |flow| Some(flow.tcp.as_ref()?.timeouts? as f64)).compared(),
    millis("min_round_trip_s", "least round-trip time", |flow| flow.tcp.as_ref()?.min_round_trip_s),
];

/// Metrics of flow pairs. If a metric covers only the RTP half, its name says so.
const PAIR: &[Metric] = &[
    rate("received_bps", "rate at the receiver", |flow| flow.pair.as_ref()?.received_bps),
    count("adus", "ADUs delivered", |flow| Some(flow.pair.as_ref()?.adus as f64)),
    count("adus_missing", "ADUs missing", |flow| Some(flow.pair.as_ref()?.adus_missing as f64)).compared(),
    count("running_periods", "running periods", |flow| Some(flow.pair.as_ref()?.running_periods() as f64)),
    Metric { name: "RTP: one-way delay, mean", ..MEAN_DELAY },
    millis("delay_p95_s", "RTP: 95th percentile", |flow| flow.delay.p95_s).compared(),
    millis("target_s", "RTP: target", |flow| flow.target_s),
    count("packets_sent", "RTP: packets sent", |flow| Some(flow.packets_sent as f64)),
    percent("lost_share", "RTP: packets lost", lost).compared(),
    count("reports_missing", "RTP: requests skipped for missing reports", |flow| Some(flow.reports_missing as f64)),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_of_a_flow_has_a_key_and_a_name_of_its_own() {
        for list in [MEDIA, TCP, WEB, PAIR] {
            for of in [|metric: &Metric| metric.key, |metric: &Metric| metric.name] {
                assert_eq!(list.iter().map(of).collect::<BTreeSet<_>>().len(), list.len());
            }
        }
    }

    #[test]
    fn a_metric_is_printed_in_the_unit_of_its_label() {
        assert_eq!(
            (MEAN_DELAY.label().as_str(), MEAN_DELAY.number(0.0082)),
            ("one-way delay: mean (ms)", "8.200".to_owned())
        );
        assert_eq!(DELIVERED.mean(3_912_000.0, Some(41_000.0)), "3.912 ± 0.041");
        assert_eq!(DELIVERED.mean(3_912_000.0, None), "3.912");
    }
}
