//! Time series of the flows of a run, with one value per second, for charts (RFC 8868, Sec. 3: "the measurements in the
//! plot are at one-second intervals"). For the audio of each flow, the module records totals over the whole run.

use equipoise::units::{Size, Span};
use equipoise_path::link::Capacity;
use equipoise_session::{Event, Medium};

use crate::record::{Arrived, LiveRecord, Waits};
use crate::scenario::Scenario;
use crate::sim::RunObserver;

/// Time series of a flow, as the mean over the runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSeries {
    /// The flow's name.
    pub name: String,
    /// Whether the flow is a TCP connection, or web traffic over several connections.
    pub is_tcp: bool,
    /// The values of each second, from the start of the run.
    pub seconds: Vec<Second>,
}

/// The values of a flow in one second; `None` for values that were not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Rate in this second, in bit/s: for media, of the IP packets that arrived; for TCP, the goodput.
    pub rate_bps: Option<f64>,
    /// Mean queueing delay of the packets that arrived in this second, in seconds.
    pub queueing_s: Option<f64>,
    /// Mean time from capture to completion of a video frame, in seconds, over the completed frames that were captured
    /// in this second.
    pub frame_delay_s: Option<f64>,
    /// Share of the packets sent in this second that never arrived, 0 to 1.
    pub loss: Option<f64>,
}

/// Observes the media of a run, and records values for each second.
#[derive(Debug, Default)]
pub(super) struct Watch {
    flows: Vec<Watched>,
}

/// The data recorded so far about one flow.
#[derive(Debug)]
pub(super) struct Watched {
    bins: Vec<Bin>,
    live: LiveRecord,
    /// Queueing delay of the packet that arrived last. If this is a media packet, `on_received` takes the value.
    waited: Option<Span>,
    pub(super) audio: Audio,
}

/// Counters of the audio packets of a flow.
#[derive(Debug, Default)]
pub(super) struct Audio {
    pub(super) sent: u64,
    pub(super) bytes: Size,
    pub(super) received: u64,
    pub(super) waits: Waits,
    /// Total size of all media packets that the session sent, both audio and video.
    pub(super) of_bytes: Size,
}

/// The data recorded so far about one second of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    received: Size,
    arrivals: u32,
    waited: Span,
    sent: u32,
    /// Number of packets sent in this second that have arrived.
    arrived: u32,
    frames: u32,
    frame_delays: Span,
}

/// Maximum number of seconds of a run that are recorded: one day.
const MOST_SECONDS: usize = 86_400;

impl RunObserver for Watch {
    fn on_event(&mut self, at: Span, flow: usize, event: &Event) {
        match event {
            Event::FrameCaptured { medium, size, .. } => self.flow(flow).live.on_captured(at, *medium, *size),
            Event::MediaSent { sequence, size, waited, fragment } => {
                let flow = self.flow(flow);
                flow.live.on_sent(*sequence, *waited, *fragment);
                if fragment.is_some_and(|fragment| fragment.medium == Medium::Audio) {
                    flow.audio.sent += 1;
                    flow.audio.bytes = flow.audio.bytes + *size;
                }
                flow.audio.of_bytes = flow.audio.of_bytes + *size;
                flow.bin(at).sent += 1;
            }
            Event::MediaReceived { sequence, delay, size, .. } => {
                self.flow(flow).on_received(at, *sequence, *delay, *size);
            }
            _ => {}
        }
    }

    fn on_waited(&mut self, _: Span, flow: usize, wait: Span) {
        self.flow(flow).waited = Some(wait);
    }
}

impl Watch {
    fn flow(&mut self, number: usize) -> &mut Watched {
        if number >= self.flows.len() {
            self.flows.resize_with(number + 1, Watched::default);
        }
        &mut self.flows[number]
    }

    /// Returns the flows in the order of the scenario, up to the last flow that has an event or arrival.
    pub(super) fn flows(&self) -> &[Watched] {
        &self.flows
    }

    /// Returns the flows in the order of the scenario, up to the last flow that has an event or arrival.
    pub(super) fn into_flows(self) -> Vec<Watched> {
        self.flows
    }
}

impl Default for Watched {
    fn default() -> Self {
        Self { bins: Vec::new(), live: LiveRecord::of_both(), waited: None, audio: Audio::default() }
    }
}

impl Watched {
    fn bin(&mut self, at: Span) -> &mut Bin {
        let place = (at.max(Span::ZERO) / Span::from_secs(1)).and_then(|place| usize::try_from(place).ok());
        let place = place.unwrap_or(MOST_SECONDS).min(MOST_SECONDS);
        if place >= self.bins.len() {
            self.bins.resize(place + 1, Bin::default());
        }
        &mut self.bins[place]
    }

    fn on_received(&mut self, at: Span, sequence: u64, delay: Span, size: Size) {
        let wait = self.waited.take();
        let Arrived { medium, completed } = self.live.on_received(at, sequence);
        if medium == Some(Medium::Audio) {
            self.audio.received += 1;
            if let Some(wait) = wait {
                self.audio.waits.push(wait);
            }
        }
        if let (Some(Medium::Video), Some(captured)) = (medium, completed) {
            let bin = self.bin(captured);
            bin.frames += 1;
            bin.frame_delays = bin.frame_delays + (at - captured);
        }
        self.bin(at - delay).arrived += 1;
        let bin = self.bin(at);
        bin.received = bin.received + size;
        if let Some(wait) = wait {
            bin.arrivals += 1;
            bin.waited = bin.waited + wait;
        }
    }

    /// Returns the number of packets sent from second `from` of the run on, and how many of these packets arrived.
    pub(super) fn sent_and_arrived(&self, from: usize) -> (u64, u64) {
        let bins = self.bins.iter().skip(from);
        bins.fold((0, 0), |(sent, arrived), bin| (sent + u64::from(bin.sent), arrived + u64::from(bin.arrived)))
    }

    /// Returns the values of all whole seconds of a run of this length.
    pub(super) fn seconds(&self, lasted_s: f64) -> Vec<Second> {
        let count = lasted_s.max(0.0) as usize;
        (0..count).map(|place| self.bins.get(place).map_or_else(Second::default, Bin::second)).collect()
    }
}

impl Bin {
    fn second(&self) -> Second {
        let mean = |sum: Span, count: u32| (count > 0).then(|| sum.as_secs_f64() / f64::from(count));
        let lost = f64::from(self.sent.saturating_sub(self.arrived));
        Second {
            rate_bps: (self.sent > 0 || self.received > Size::ZERO).then(|| self.received.as_bits() as f64),
            queueing_s: mean(self.waited, self.arrivals),
            frame_delay_s: mean(self.frame_delays, self.frames),
            loss: (self.sent > 0).then(|| lost / f64::from(self.sent)),
        }
    }
}

impl Second {
    /// Returns the mean of each value. Items of `all` without this value do not count.
    pub(super) fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> Option<f64>| {
            let (sum, count) =
                all.iter().filter_map(of).fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
            (count > 0).then(|| sum / f64::from(count))
        };
        Self {
            rate_bps: mean(|second| second.rate_bps),
            queueing_s: mean(|second| second.queueing_s),
            frame_delay_s: mean(|second| second.frame_delay_s),
            loss: mean(|second| second.loss),
        }
    }
}

/// Returns the capacity of the first link in each second of the run, in bit/s, if the capacity is a trace or has more
/// than `MOST_STEPS` steps. Otherwise, returns an empty list. A capacity with few steps is already in the results of
/// the phases, because each step starts a phase.
pub(super) fn capacity(scenario: &Scenario) -> Vec<f64> {
    let recorded = scenario.links.first().map(|link| &link.forward.capacity).filter(|capacity| match capacity {
        Capacity::Trace(_) => true,
        Capacity::Rate(rate) => rate.steps().len() > crate::phases::MOST_STEPS,
        Capacity::Unlimited | Capacity::Shaped(_) => false,
    });
    let Some(capacity) = recorded else { return Vec::new() };
    let whole = (scenario.duration.as_secs_f64() as i64).min(MOST_SECONDS as i64);
    let second = |number: i64| capacity.bits(Span::from_secs(number), Span::from_secs(number + 1)).unwrap_or(0.0);
    (0..whole).map(second).collect()
}
