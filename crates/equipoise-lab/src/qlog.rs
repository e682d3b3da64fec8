//! Writes the actions and observations of one endpoint of a session as qlog, a JSON text sequence that other programs
//! can display.
//!
//! Source: draft-ietf-quic-qlog-main-schema-14, Sec. 5 and 11.2 (RFC 7464), draft-ietf-quic-qlog-quic-events-13. An
//! event that also exists in QUIC has its name from QUIC's schema: a packet sent, received or declared lost, recovery
//! metrics, the state of a congestion controller, failure of ECN. Every other event has a name in the namespace
//! `equipoise`. These other events have the same data as in [`trace`](crate::trace), except for reports.

use std::fmt::{self, Write as _};

use equipoise::control::Reason;
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};
use equipoise_session::{Ecn, Event, Half};
use serde::{Serialize, Serializer};

use crate::result::World;
use crate::scenario::{Flow, FlowKind, Scenario};
use crate::trace::{Details, details};

/// The byte before each record (RFC 7464, Sec. 2.2).
const RECORD_SEPARATOR: u8 = 0x1E;
/// Event schemas: QUIC's events, our extensions of these events, and our own events. The URIs of our schemas use the
/// domain `invalid`, below which nobody can register a domain (RFC 2606, Sec. 2).
const SCHEMAS: [&str; 3] = [
    "urn:ietf:params:qlog:events:quic-13",
    "https://equipoise.invalid/112026/quic#rtp",
    "https://equipoise.invalid/112026/equipoise",
];
/// The value of `packet_type` for all packets; QUIC defines no such packet type.
const PACKET_TYPE: &str = "rtp";

/// Builds the qlog records of one endpoint of a flow during a run. The memory used does not grow with the length of the
/// run.
#[derive(Debug)]
pub struct Qlog {
    records: Vec<u8>,
    /// Whether the receiver reports losses packet by packet; if not, each report contains only the total number of lost
    /// packets.
    by_packet: bool,
    /// The state of the only path; if the flow has several paths, the state of each path and one entry for all paths
    /// together.
    paths: Vec<PathState>,
    /// Number of packets sent and not yet declared lost, which limits the losses that a report can add.
    not_lost: u64,
}

/// State of a path after its most recent events.
#[derive(Debug)]
struct PathState {
    /// Name of the path; `None` for the only path, and for the entry of all paths together.
    name: Option<String>,
    /// The largest total number of lost packets in any report about this path.
    lost: u64,
    reason: Option<&'static str>,
}

/// Identifies the endpoint to which the records belong.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The scenario of the run.
    pub scenario: &'a Scenario,
    /// The flow, which is one of the scenario's flows.
    pub flow: &'a Flow,
    /// Which endpoint of the flow the records describe.
    pub half: Half,
    /// The seed of the run.
    pub seed: u64,
    /// Whether the run is simulated or live.
    pub world: World,
}

impl Qlog {
    /// Whether qlog records are written for a flow: only for sessions and flow pairs. Background traffic has no
    /// session, and TCP connections are sampled instead.
    pub const fn is_of(flow: &Flow) -> bool {
        matches!(flow.kind, FlowKind::Session { .. } | FlowKind::Multipath(_) | FlowKind::Pair(_))
    }

    /// Begins the records of an endpoint. Returns the first record, which identifies the endpoint.
    pub fn begin(origin: &Origin<'_>) -> (Self, Vec<u8>) {
        let by_packet = origin.flow.reporting().is_some();
        let mut qlog = Self { records: Vec::new(), by_packet, paths: Vec::new(), not_lost: 0 };
        qlog.record(&head(origin));
        let head = std::mem::take(&mut qlog.records);
        (qlog, head)
    }

    /// Returns at least one record for an event of this endpoint. `at` is the time from the start of the run to the
    /// event. The run starts at `origin`.
    pub fn records(&mut self, at: Span, path: Option<&str>, origin: Instant<SenderClock>, event: &Event) -> &[u8] {
        self.records.clear();
        let at = Moment { time: at.as_nanos() as f64 / 1e6, path };
        match *event {
            Event::MediaSent { sequence, size, .. } => {
                self.not_lost += 1;
                self.event(at, Name::Quic("packet_sent"), Packet::new(sequence, size));
            }
            Event::MediaReceived { sequence, delay, size, ecn, .. } => {
                let (delay_s, marked) = (Some(delay.as_secs_f64()), ecn == Ecn::Marked);
                self.event(
                    at,
                    Name::Quic("packet_received"),
                    Packet { delay_s, marked, ..Packet::new(sequence, size) },
                );
            }
            Event::ReportApplied { round_trip, lost, fraction_lost, fraction_marked, .. } => {
                self.event(at, Name::Quic("recovery_metrics_updated"), Metrics::round_trip(round_trip));
                if !self.by_packet {
                    let newly = self.newly_lost(path, lost);
                    self.lose(at, newly);
                }
                let details = details(origin, event);
                self.event(at, Name::of(event), Report { details, fraction_lost, fraction_marked, lost });
            }
            Event::PacketsReported { arrived, lost, unknown, round_trip } => {
                if let Some(round_trip) = round_trip {
                    self.event(at, Name::Quic("recovery_metrics_updated"), Metrics::round_trip(round_trip));
                }
                self.lose(at, lost);
                self.event(at, Name::of(event), Fates { arrived, lost, unknown });
            }
            Event::RateDecided { rate, snapshot } => {
                let reason = snapshot.reason.map(Reason::name);
                self.event(at, Name::Quic("recovery_metrics_updated"), Metrics::rate(rate, reason));
                let last = &mut self.path(path).reason;
                if let Some(new) = reason.filter(|_| reason != *last) {
                    let old = last.replace(new);
                    self.event(at, Name::Quic("congestion_state_updated"), State { old, new });
                }
            }
            Event::EcnFailed { .. } => {
                self.event(at, Name::Quic("ecn_state_updated"), State { old: None, new: "failed" });
            }
            _ => self.event(at, Name::of(event), details(origin, event)),
        }
        &self.records
    }

    /// Returns by how much the loss count in a path's report exceeds the largest count in the path's earlier reports. A
    /// packet that arrives late lowers the count, but a loss that was recorded is not withdrawn.
    fn newly_lost(&mut self, path: Option<&str>, lost: u64) -> u64 {
        let most = &mut self.path(path).lost;
        let newly = lost.saturating_sub(*most);
        *most = lost.max(*most);
        newly
    }

    fn path(&mut self, name: Option<&str>) -> &mut PathState {
        let place = self.paths.iter().position(|path| path.name.as_deref() == name).unwrap_or_else(|| {
            self.paths.push(PathState { name: name.map(str::to_owned), lost: 0, reason: None });
            self.paths.len() - 1
        });
        &mut self.paths[place]
    }

    /// Writes one record for each packet that a report declares lost. The records do not contain packet numbers,
    /// because the event of a report contains only the number of lost packets.
    fn lose(&mut self, at: Moment<'_>, packets: u64) {
        #[derive(Serialize)]
        struct Nothing {}
        let packets = packets.min(self.not_lost);
        self.not_lost -= packets;
        for _ in 0..packets {
            self.event(at, Name::Quic("packet_lost"), Nothing {});
        }
    }

    fn event(&mut self, at: Moment<'_>, name: Name, data: impl Serialize) {
        self.record(&Record { time: at.time, name, tuple: at.path, data });
    }

    fn record(&mut self, record: &impl Serialize) {
        self.records.push(RECORD_SEPARATOR);
        // Serialisation cannot fail: the record contains only booleans, numbers and strings.
        serde_json::to_writer(&mut self.records, record).expect("records are plain numbers and texts");
        self.records.push(b'\n');
    }
}

/// The time of an event in milliseconds, and the path to which the event belongs.
#[derive(Clone, Copy)]
struct Moment<'a> {
    time: f64,
    path: Option<&'a str>,
}

#[derive(Serialize)]
struct Record<'a, D> {
    time: f64,
    name: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuple: Option<&'a str>,
    data: D,
}

/// An event's name and the namespace of the name.
#[derive(Clone, Copy)]
enum Name {
    Quic(&'static str),
    Own(&'static str),
}

impl Name {
    const fn of(event: &Event) -> Self {
        Self::Own(event.name())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quic(name) => write!(f, "quic:{name}"),
            Self::Own(name) => {
                f.write_str("equipoise:")?;
                name.chars().try_for_each(|letter| f.write_char(if letter == '-' { '_' } else { letter }))
            }
        }
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Data of `quic:packet_sent` and `quic:packet_received`, with our additional fields.
#[derive(Serialize)]
struct Packet {
    header: Header,
    raw: Raw,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_s: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    marked: bool,
}

#[derive(Serialize)]
struct Header {
    packet_type: &'static str,
    packet_number: u64,
}

#[derive(Serialize)]
struct Raw {
    length: u64,
}

impl Packet {
    /// Describes an IP packet of size `size`. The record contains the length of the packet's UDP payload, in bytes.
    fn new(packet_number: u64, size: Size) -> Self {
        let length = size.as_bytes().saturating_sub(Size::IPV4_UDP.as_bytes());
        let header = Header { packet_type: PACKET_TYPE, packet_number };
        Self { header, raw: Raw { length }, delay_s: None, marked: false }
    }
}

/// Data of `quic:recovery_metrics_updated`. Times are in milliseconds, and rates in bit/s.
#[derive(Default, Serialize)]
struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pacing_rate: Option<u64>,
    /// Our extension: the controller's reason for its current rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

impl Metrics {
    fn round_trip(round_trip: Span) -> Self {
        Self { latest_rtt: Some(round_trip.as_secs_f64() * 1e3), ..Self::default() }
    }

    fn rate(rate: Rate, reason: Option<&'static str>) -> Self {
        Self { pacing_rate: Some(rate.as_bps()), reason, ..Self::default() }
    }
}

/// Data of `quic:congestion_state_updated` and of `quic:ecn_state_updated`.
#[derive(Serialize)]
struct State {
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<&'static str>,
    new: &'static str,
}

/// Data of `equipoise:report_applied`.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    details: Details,
    fraction_lost: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fraction_marked: Option<f64>,
    lost: u64,
}

/// Data of `equipoise:packets_reported`.
#[derive(Serialize)]
struct Fates {
    arrived: u64,
    lost: u64,
    unknown: u64,
}

/// The first record of a qlog file.
#[derive(Serialize)]
struct Head<'a> {
    file_schema: &'static str,
    serialization_format: &'static str,
    title: String,
    trace: Trace<'a>,
}

#[derive(Serialize)]
struct Trace<'a> {
    common_fields: CommonFields<'a>,
    vantage_point: VantagePoint,
    event_schemas: [&'static str; 3],
}

#[derive(Serialize)]
struct CommonFields<'a> {
    group_id: &'a str,
    time_format: &'static str,
    reference_time: ReferenceTime,
}

#[derive(Serialize)]
struct ReferenceTime {
    clock_type: &'static str,
    epoch: &'static str,
}

#[derive(Serialize)]
struct VantagePoint {
    name: String,
    r#type: &'static str,
}

fn head<'a>(origin: &Origin<'a>) -> Head<'a> {
    let Origin { scenario, flow, half, seed, world } = *origin;
    // The endpoint that sends the media starts the session, so qlog calls it the client.
    let (end, side) = match half {
        Half::Sending => ("sender", "client"),
        Half::Receiving => ("receiver", "server"),
    };
    Head {
        file_schema: "urn:ietf:params:qlog:file:sequential",
        serialization_format: "application/qlog+json-seq",
        title: format!("{}, {}, seed {seed}", scenario.name, world.name()),
        trace: Trace {
            common_fields: CommonFields {
                group_id: &flow.name,
                time_format: "relative_to_epoch",
                reference_time: ReferenceTime { clock_type: "monotonic", epoch: "unknown" },
            },
            vantage_point: VantagePoint { name: format!("{}: {end}", flow.name), r#type: side },
            event_schemas: SCHEMAS,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;
    use crate::result::Run;
    use crate::{DEMO_SHORT, Progress, sim};

    /// Runs a scenario and returns its result and the parsed records of both endpoints of a flow.
    fn ran(text: &str, flow: &str) -> (Run, [Vec<Value>; 2]) {
        let scenario = Scenario::parse(text).expect("a right scenario");
        let place = scenario.flows.iter().position(|found| found.name == flow).expect("the flow");
        let halves = [Half::Sending, Half::Receiving];
        let begun = halves.map(|half| {
            let flow = &scenario.flows[place];
            Qlog::begin(&Origin { scenario: &scenario, flow, half, seed: 1, world: World::Sim })
        });
        let (mut ends, mut texts) = (Vec::new(), Vec::new());
        for (end, head) in begun {
            ends.push(end);
            texts.push(head);
        }
        let run = sim::simulate(&scenario, 1, &mut |progress| {
            if let Progress::Event { at, origin, flow, half, event, .. } = progress
                && flow == place
            {
                let end = usize::from(half == Half::Receiving);
                texts[end].extend_from_slice(ends[end].records(at, None, origin, &event));
            }
        });
        let read = |text: &Vec<u8>| {
            let records = text.split(|byte| *byte == RECORD_SEPARATOR).skip(1);
            records.map(|record| serde_json::from_slice(record).expect("a record")).collect()
        };
        (run.expect("it runs"), [read(&texts[0]), read(&texts[1])])
    }

    fn counted(records: &[Value]) -> BTreeMap<&str, u64> {
        let mut counts = BTreeMap::new();
        for record in &records[1..] {
            assert!(record["time"].is_f64() && record["data"].is_object(), "{record}");
            *counts.entry(record["name"].as_str().expect("a name")).or_default() += 1;
        }
        let times: Vec<_> = records[1..].iter().filter_map(|record| record["time"].as_f64()).collect();
        assert!(times.is_sorted(), "the events of an end stand in the order of their times");
        counts
    }

    /// Returns the demo scenario with a queue that is so short that packets are lost.
    fn lossy() -> String {
        DEMO_SHORT.replace("queue = \"1000 packets\"", "queue = \"4 packets\"")
    }

    #[test]
    fn the_records_are_the_packets_losses_and_decisions_of_the_result() {
        let (run, [sender, receiver]) = ran(&lossy(), "media");
        let flow = run.flows.iter().find(|flow| flow.name == "media").expect("the flow");
        assert_eq!(sender[0]["trace"]["vantage_point"]["type"], "client");
        assert_eq!(receiver[0]["trace"]["vantage_point"]["name"], "media: receiver");
        let (sent, received) = (counted(&sender), counted(&receiver));
        assert_eq!(sent["quic:packet_sent"], flow.packets_sent);
        assert_eq!(received["quic:packet_received"], flow.packets_received);
        assert!(!sent.contains_key("quic:packet_received") && !received.contains_key("quic:packet_sent"));
        let decided: u64 = flow.decisions.values().sum();
        let with = |key| sender.iter().filter(|record| !record["data"][key].is_null()).count() as u64;
        assert_eq!(with("reason"), decided);
        assert_eq!(with("latest_rtt"), sent["equipoise:report_applied"]);
        assert_eq!(sent["quic:recovery_metrics_updated"], with("pacing_rate") + with("latest_rtt"));
        let last = sender.iter().filter_map(|record| record["data"]["lost"].as_u64()).max();
        assert_eq!(Some(sent["quic:packet_lost"]), last, "as many as the reports contain");
        assert!(flow.packets_lost > 0 && sent["quic:packet_lost"] <= flow.packets_lost);
        let delays: Vec<_> = receiver.iter().filter_map(|record| record["data"]["delay_s"].as_f64()).collect();
        assert!(delays.len() as u64 >= flow.packets_received, "each packet has its delay");
    }

    #[test]
    fn where_losses_are_told_packet_by_packet_they_are_counted_so() {
        let feedback = "feedback = { format = \"rfc8888\", interval = \"50 ms\" }\ncontroller = { name = \"cbr\", rate = \"8 Mbit/s\" }\n";
        let lines = lossy();
        let lines = lines.lines().map(|line| if line.starts_with("controller") { feedback } else { line });
        let (_, [sender, _]) = ran(&lines.collect::<Vec<_>>().join("\n"), "media");
        let told = |key| {
            let reports = sender.iter().filter(|record| record["name"] == "equipoise:packets_reported");
            reports.filter_map(|record| record["data"][key].as_u64()).sum::<u64>()
        };
        let (arrived, lost) = (told("arrived"), told("lost"));
        assert!(arrived > 0 && lost > 0, "{arrived} and {lost}");
        assert_eq!(counted(&sender)["quic:packet_lost"], lost);
    }

    /// With a control law on each path, per-packet reports and receiver reports both contain the losses. If the test
    /// fails, each lost packet is recorded twice.
    #[test]
    fn losses_on_several_paths_are_recorded_once() {
        let link = |name: &str| {
            format!("[[link]]\nname = \"{name}\"\nrate = \"4 Mbit/s\"\ndelay = \"10 ms\"\nloss = \"2 %\"\n")
                + &format!("[[path]]\nname = \"{name}\"\nlinks = [\"{name}\"]\n")
        };
        let flow = "[[flow]]\nname = \"media\"\npaths = [\"one\", \"two\"]\npacket_size = \"1000 B\"\n\
                    report_interval = \"200 ms\"\nperiod = \"1 s\"\n\
                    controller = { name = \"equipoise\" }\nscheduler = { name = \"ap\" }\n";
        let text = format!("name = \"two\"\nduration = \"10 s\"\nseed = 1\n{}{}{flow}", link("one"), link("two"));
        let (_, [sender, _]) = ran(&text, "media");
        let reports = sender.iter().filter(|record| record["name"] == "equipoise:packets_reported");
        let lost: u64 = reports.filter_map(|record| record["data"]["lost"].as_u64()).sum();
        let counts = counted(&sender);
        assert!(lost > 0 && counts["equipoise:report_applied"] > 0, "{counts:?}");
        assert_eq!(counts["quic:packet_lost"], lost);
    }

    #[test]
    fn a_report_makes_no_more_losses_than_packets_were_sent() {
        let scenario = Scenario::parse(DEMO_SHORT).expect("the demo");
        let origin =
            Origin { scenario: &scenario, flow: &scenario.flows[0], half: Half::Sending, seed: 1, world: World::Sim };
        let (mut qlog, _) = Qlog::begin(&origin);
        let sent = Event::MediaSent { sequence: 1, size: Size::from_bytes(1000), waited: Span::ZERO, fragment: None };
        qlog.records(Span::ZERO, None, Instant::ZERO, &sent);
        let lost = Event::PacketsReported { arrived: 0, lost: u64::MAX, unknown: 0, round_trip: None };
        let records = qlog.records(Span::ZERO, None, Instant::ZERO, &lost);
        assert_eq!(records.split(|byte| *byte == RECORD_SEPARATOR).skip(1).count(), 2);
    }
}
