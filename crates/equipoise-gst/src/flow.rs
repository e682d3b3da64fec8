//! The control loop, without threads and pads: the queue, pacing, feedback, and the encoder's bitrate.

use std::collections::VecDeque;

use equipoise::control::QueuedFrame;
use equipoise::pace::{Pacer, Readiness};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};
use equipoise_session::guest::{Guest, MediaShare};

use crate::config::{Settings, SettingsError};
use crate::departures::Departures;
use crate::event::Status;
use crate::packet::PacketInfo;

/// The controller's time, in ns, when GStreamer's system clock is zero. A receiver's first unwrapped time is near this
/// value, and later times may be smaller, so the value is far from zero.
pub(crate) const EPOCH_NS: u64 = 1 << 60;

/// Converts a time of GStreamer's system clock, in ns, to the controller's clock.
pub(crate) const fn time(system_ns: u64) -> Instant<SenderClock> {
    Instant::from_nanos(EPOCH_NS.saturating_add(system_ns))
}

/// The packets in the element, and their controller.
#[derive(Debug)]
pub(crate) struct Flow {
    guest: Guest,
    pacer: Pacer<SenderClock>,
    departures: Departures,
    reports: Spacing,
    share: MediaShare,
    queue: VecDeque<Item>,
    /// Number of packets in the queue, and their total size.
    packets: usize,
    waiting: Size,
    /// The limits of the estimate, in bit/s.
    min_bps: u32,
    max_bps: u32,
    /// The bitrate last sent to the encoder, in bit/s, and the time at which it was sent.
    told_bps: u32,
    told_at: Instant<SenderClock>,
    is_ending: bool,
    dropped: u64,
    /// Number of packets sent with a transport-wide number, and without one.
    numbered: u64,
    unnumbered: u64,
}

/// An item in the queue.
#[derive(Debug)]
enum Item {
    Packet { buffer: gst::Buffer, info: PacketInfo, size: Size, since: Instant<SenderClock> },
    Event(gst::Event),
}

/// The next action of the element's task.
#[derive(Debug)]
pub(crate) enum Turn {
    Buffer(gst::Buffer),
    Event(gst::Event),
    /// Wait until this time, or until a packet, an event or feedback arrives; `None` for no time limit.
    Wait(Option<Instant<SenderClock>>),
}

/// The packets of a frame are paced at this multiple of the rate, unless the controller sets its own pacing rate.
const PACING: f64 = 1.5;
/// Maximum number of packets in the queue: about 1 s of packets at 50 Mbit/s. If a sender ignores the estimated
/// bitrate, its newest packets are dropped.
const MOST: usize = 4096;
/// The encoder's bitrate is lowered only if sending the queue takes longer than this time, in s. A shorter queue is
/// normal, because the packets of a frame are spread over time. Our choice.
const SPREAD_S: f64 = 0.1;
/// If the queue is longer than [`SPREAD_S`], the encoder's bitrate is lowered so that the excess is sent within
/// `DRAINED_S`, in s. Otherwise the excess would stay in the queue. Our choice.
const DRAINED_S: f64 = 0.5;
/// Bytes of the IPv4 and UDP headers of an RTP packet.
const OVERHEAD: u64 = 28;
/// The encoder is notified if its bitrate changes by more than 1/`NOTICED`, or if its bitrate reaches a limit. Each
/// change reconfigures the encoder. Therefore the encoder is notified at most once per `TOLD_EVERY`, unless the change
/// is urgent. Our choice.
const NOTICED: u32 = 100;
const TOLD_EVERY: Span = Span::from_millis(100);
/// The encoder is notified at once if its bitrate falls by more than 1/10.
const URGENT: u32 = 10;

impl Flow {
    /// Creates a flow that starts at `now`.
    pub(crate) fn new(settings: &Settings, now: Instant<SenderClock>) -> Result<Self, SettingsError> {
        let guest = settings.guest(now)?;
        let mut flow = Self {
            pacer: Pacer::new(guest.pace(PACING)),
            guest,
            departures: Departures::new(),
            reports: Spacing::default(),
            share: MediaShare::default(),
            queue: VecDeque::new(),
            packets: 0,
            waiting: Size::ZERO,
            min_bps: settings.min_bps,
            max_bps: settings.max_bps,
            told_bps: 0,
            told_at: now,
            is_ending: false,
            dropped: 0,
            numbered: 0,
            unnumbered: 0,
        };
        flow.told_bps = flow.estimate_bps();
        Ok(flow)
    }

    /// Adds a packet to the queue.
    pub(crate) fn on_packet(&mut self, now: Instant<SenderClock>, buffer: gst::Buffer, info: PacketInfo) {
        if self.packets >= MOST {
            self.dropped += 1;
            return;
        }
        if self.packets == 0 {
            self.pacer.rested_until(now);
        }
        let size = Size::from_bytes(u64::from(info.whole) + OVERHEAD);
        self.queue.push_back(Item::Packet { buffer, info, size, since: now });
        self.packets += 1;
        self.waiting = self.waiting + size;
        if info.marker {
            self.guest.on_frame(now, &self.frame(now, info));
        }
        self.keep_pace();
    }

    /// Adds a serialised event to the queue. It is pushed after all packets before it.
    pub(crate) fn on_event(&mut self, event: gst::Event) {
        match event.type_() {
            gst::EventType::Eos => self.is_ending = true,
            gst::EventType::StreamStart => self.is_ending = false,
            _ => {}
        }
        self.queue.push_back(Item::Event(event));
    }

    /// Clears the queue for a new stream. Returns the events that were in it.
    pub(crate) fn flush(&mut self) -> Vec<gst::Event> {
        (self.packets, self.waiting, self.is_ending) = (0, Size::ZERO, false);
        let events = self.queue.drain(..).filter_map(|item| match item {
            Item::Event(event) => Some(event),
            Item::Packet { .. } => None,
        });
        events.collect()
    }

    /// Whether the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the event of the end of the stream has arrived; the event may still be in the queue.
    pub(crate) const fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Returns the next action at `now`.
    pub(crate) fn turn(&mut self, now: Instant<SenderClock>) -> Turn {
        if self.guest.next_timer().is_some_and(|at| at <= now) {
            if self.guest.on_timer(now) {
                self.departures.on_silence();
            }
            self.keep_pace();
        }
        loop {
            let is_open = !self.is_window_full();
            let timer = self.guest.next_timer();
            match (self.queue.front(), self.pacer.poll(now)) {
                (Some(Item::Event(_)), _) => {}
                (Some(Item::Packet { .. }), Readiness::Now) if is_open => {}
                (Some(Item::Packet { .. }), Readiness::At(due)) if is_open => {
                    return Turn::Wait(Some(timer.map_or(due, |timer| timer.min(due))));
                }
                (Some(Item::Packet { .. }), Readiness::Never) if self.is_ending => {
                    // The rate is zero at present, but the end of the stream must not wait, so the packet is dropped.
                    self.pop();
                    self.dropped += 1;
                    continue;
                }
                _ => return Turn::Wait(timer),
            }
            match self.pop() {
                Some(Item::Packet { buffer, info, size, .. }) => {
                    self.on_departure(now, info, size);
                    return Turn::Buffer(buffer);
                }
                Some(Item::Event(event)) => return Turn::Event(event),
                None => {}
            }
        }
    }

    fn pop(&mut self) -> Option<Item> {
        let item = self.queue.pop_front()?;
        if let Item::Packet { size, .. } = &item {
            self.packets -= 1;
            self.waiting = self.waiting - *size;
        }
        Some(item)
    }

    fn on_departure(&mut self, now: Instant<SenderClock>, info: PacketInfo, size: Size) {
        self.pacer.on_departure(now, size);
        self.share.take(u64::from(info.payload), size);
        if info.is_numbered {
            self.numbered += 1;
            let sent = self.departures.on_sent(now, info, size);
            self.guest.on_sent(now, sent);
        } else {
            self.unnumbered += 1;
        }
        self.keep_pace();
        if self.packets == 0 {
            let idle = if let Readiness::At(due) = self.pacer.poll(now) { due } else { now };
            self.guest.on_idle(idle);
        }
    }

    /// Handles packet statuses from feedback that arrived at `now`.
    pub(crate) fn on_statuses(&mut self, now: Instant<SenderClock>, statuses: &[Status]) {
        let news = self.departures.on_statuses(now, statuses);
        if news.is_empty() {
            return;
        }
        self.reports.take(now);
        let pacing = self.pacer.rate().as_bps_f64() / self.guest.rate().as_bps_f64().max(1.0);
        self.guest.on_feedback(now, &news.feedback(), pacing);
        self.keep_pace();
    }

    /// Whether the window is full. Packets that have arrived count as in flight until the next report. Therefore the
    /// data that is sent between two reports is added to the window.
    fn is_window_full(&self) -> bool {
        let untold = self.guest.rate().as_bps_f64() * self.reports.apart().as_secs_f64() / 8.0;
        // At least one packet may be in flight; otherwise there would never be feedback.
        let window =
            self.guest.window().map(|window| window.max(Size::from_bytes(1)) + Size::from_bytes(untold as u64));
        window.is_some_and(|window| self.departures.in_flight() >= window)
    }

    fn keep_pace(&mut self) {
        self.pacer.set_rate(self.guest.pace(PACING));
    }

    /// Returns the description of the frame whose last packet was just added, including the amount of data queued
    /// before the frame.
    fn frame(&self, now: Instant<SenderClock>, last: PacketInfo) -> QueuedFrame {
        let own = self.queue.iter().rev().map_while(|item| match item {
            Item::Packet { info, size, .. } => {
                ((info.ssrc, info.timestamp) == (last.ssrc, last.timestamp)).then_some(*size)
            }
            Item::Event(_) => None,
        });
        let (count, size) = own.fold((0, Size::ZERO), |(count, sum), size| (count + 1, sum + size));
        let waited = if self.packets > count { self.waited(now) } else { Span::ZERO };
        QueuedFrame::new(size, self.waiting - size, waited)
    }

    /// Returns the waiting time of the oldest queued packet.
    fn waited(&self, now: Instant<SenderClock>) -> Span {
        let since = self.queue.iter().find_map(|item| match item {
            Item::Packet { since, .. } => Some(*since),
            Item::Event(_) => None,
        });
        since.map_or(Span::ZERO, |since| now - since)
    }

    /// Returns the encoder's bitrate in bit/s: the rate without headers, reduced if the queue is too long, and within
    /// the limits.
    fn estimate_bps(&self) -> u32 {
        let rate = self.guest.rate();
        let late_bits = self.waiting.as_bits() as f64 - rate.as_bps_f64() * SPREAD_S;
        let left = Rate::from_bps_f64(rate.as_bps_f64() - late_bits.max(0.0) / DRAINED_S).unwrap_or(Rate::ZERO);
        let bps = u32::try_from(self.share.of(left).as_bps()).unwrap_or(u32::MAX);
        bps.clamp(self.min_bps, self.max_bps)
    }

    /// Returns the bitrate last sent to the encoder, in bit/s.
    pub(crate) const fn told_bps(&self) -> u32 {
        self.told_bps
    }

    /// Returns whether to notify the encoder of a new bitrate at `now`. If so, records this bitrate as sent.
    pub(crate) fn tells(&mut self, now: Instant<SenderClock>) -> bool {
        let (bps, told) = (self.estimate_bps(), self.told_bps);
        let is_noticed = bps.abs_diff(told) > told / NOTICED || bps == self.min_bps || bps == self.max_bps;
        let is_urgent = bps < told - told / URGENT;
        let is_new = bps != told && is_noticed && (is_urgent || now - self.told_at >= TOLD_EVERY);
        if is_new {
            (self.told_bps, self.told_at) = (bps, now);
        }
        is_new
    }

    /// Whether 100 packets were sent and none of them had a transport-wide number.
    pub(crate) const fn is_unnumbered(&self) -> bool {
        self.numbered == 0 && self.unnumbered >= 100
    }

    /// Returns statistics and the controller's explanation of its rate, for users.
    pub(crate) fn stats(&self, now: Instant<SenderClock>) -> gst::Structure {
        let counts = self.departures.counts();
        let ns = |span: Span| u64::try_from(span.as_nanos()).unwrap_or(0);
        let mut stats = gst::Structure::builder("equipoise-stats")
            .field("reason", self.guest.snapshot().reason.map_or("", |reason| reason.name()))
            .field("rate", self.guest.rate().as_bps())
            .field("pace", self.pacer.rate().as_bps())
            .field("media-bitrate", self.estimate_bps())
            .field("in-flight-bytes", self.departures.in_flight().as_bytes())
            .field("waiting-packets", self.packets as u64)
            .field("waiting-bytes", self.waiting.as_bytes())
            .field("waited", ns(self.waited(now)))
            .field("packets", self.numbered + self.unnumbered)
            .field("packets-unnumbered", self.unnumbered)
            .field("packets-dropped", self.dropped)
            .field("reports", counts.reports)
            .field("reports-refused", counts.refused);
        if let Some(window) = self.guest.window() {
            stats = stats.field("window-bytes", window.as_bytes());
        }
        if counts.reports > 0 {
            stats = stats.field("round-trip", ns(self.guest.round_trip()));
        }
        if let Some(beliefs) = self.guest.beliefs() {
            stats = stats
                .field("mode", beliefs.mode.name())
                .field("queueing-delay", f64::from(beliefs.queue_s))
                .field("queueing-delay-target", f64::from(beliefs.target_s));
            if let Some(capacity_bps) = beliefs.capacity_bps {
                stats = stats.field("capacity", f64::from(capacity_bps));
            }
        }
        stats.build()
    }
}

/// Estimates the time between reports. This time can be long: GStreamer's receiver sends a report only every 300 ms
/// until it has measured the bandwidth for RTCP.
#[derive(Debug, Default)]
struct Spacing {
    last: Option<Instant<SenderClock>>,
    apart: Span,
}

impl Spacing {
    /// Reports at intervals shorter than this count as one report. Our choice.
    const TOGETHER: Span = Span::from_millis(20);
    /// An interval above this counts as 500 ms, because reports are missing in the interval. Our choice.
    const MOST: Span = Span::from_millis(500);

    /// Records that a report arrived at `now`.
    fn take(&mut self, now: Instant<SenderClock>) {
        let since = self.last.map_or(Span::ZERO, |last| now - last);
        if since > Self::TOGETHER {
            // `apart` is the longest of the recent intervals between reports. Each new interval first reduces `apart`
            // by 1/8, so that an old interval does not count forever.
            let kept = Span::from_nanos(self.apart.as_nanos() / 8 * 7);
            self.apart = since.min(Self::MOST).max(kept);
        }
        if since > Self::TOGETHER || self.last.is_none() {
            self.last = Some(now);
        }
    }

    /// Returns the longest recent time between two reports.
    const fn apart(&self) -> Span {
        self.apart
    }
}
