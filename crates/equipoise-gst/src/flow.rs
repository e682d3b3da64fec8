//! The loop without threads and pads: what came, in order; what may pass, and when; what feedback says, and what the encoder may have.

use std::collections::VecDeque;

use equipoise::control::QueuedFrame;
use equipoise::pace::{Pacer, Readiness};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};
use equipoise_session::guest::{Guest, MediaShare};

use crate::config::{Settings, SettingsError};
use crate::departures::Departures;
use crate::event::Status;
use crate::packet::PacketInfo;

/// Where GStreamer's system clock begins in our time: so far from zero that a receiver's times may lie before it, as they wrap.
pub(crate) const EPOCH_NS: u64 = 1 << 60;

/// A time of GStreamer's system clock as ours.
pub(crate) const fn time(system_ns: u64) -> Instant<SenderClock> {
    Instant::from_nanos(EPOCH_NS.saturating_add(system_ns))
}

/// Packets on their way through the element, and what controls them.
#[derive(Debug)]
pub(crate) struct Flow {
    guest: Guest,
    pacer: Pacer<SenderClock>,
    departures: Departures,
    reports: Spacing,
    share: MediaShare,
    queue: VecDeque<Item>,
    /// Packets in the queue, and their size.
    packets: usize,
    waiting: Size,
    /// The limits of the estimate, in bit/s.
    min_bps: u32,
    max_bps: u32,
    /// What the encoder was told, in bit/s, and when.
    told_bps: u32,
    told_at: Instant<SenderClock>,
    is_ending: bool,
    dropped: u64,
    /// Packets that left, with and without room for a transport-wide number.
    numbered: u64,
    unnumbered: u64,
}

/// What came, in the order in which it passes.
#[derive(Debug)]
enum Item {
    Packet { buffer: gst::Buffer, info: PacketInfo, size: Size, since: Instant<SenderClock> },
    Event(gst::Event),
}

/// What passes next.
#[derive(Debug)]
pub(crate) enum Turn {
    Buffer(gst::Buffer),
    Event(gst::Event),
    /// Nothing before this time, or before something else happens.
    Wait(Option<Instant<SenderClock>>),
}

/// Packets of a frame follow each other at so many times the rate, unless the controller has a view of its own.
const PACING: f64 = 1.5;
/// So many packets may wait: a second of 50 Mbit/s. Of a sender that does not follow its bitrate the newest ones are dropped.
const MOST: usize = 4096;
/// So many seconds of the rate may wait, as frames are spread over time; what exceeds that is sent within this many seconds, out of what
/// the encoder would have otherwise. Ours: an encoder that has not followed a fall yet would be late until it makes less than the rate.
const SPREAD_S: f64 = 0.1;
const DRAINED_S: f64 = 0.5;
/// IPv4 and UDP around an RTP packet.
const OVERHEAD: u64 = 28;
/// An encoder is told of changes by one part in so many, this often at the most, as it is set up anew each time. Ours.
const NOTICED: u32 = 100;
const TOLD_EVERY: Span = Span::from_millis(100);
/// A fall by one part in so many is told at once.
const URGENT: u32 = 10;

impl Flow {
    /// A flow that begins at `now`.
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

    /// A packet came.
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

    /// A serialised event came, which passes after all packets before it.
    pub(crate) fn on_event(&mut self, event: gst::Event) {
        match event.type_() {
            gst::EventType::Eos => self.is_ending = true,
            gst::EventType::StreamStart => self.is_ending = false,
            _ => {}
        }
        self.queue.push_back(Item::Event(event));
    }

    /// Everything that waits is gone, and what comes is a new stream. Returns the events among it.
    pub(crate) fn flush(&mut self) -> Vec<gst::Event> {
        (self.packets, self.waiting, self.is_ending) = (0, Size::ZERO, false);
        let events = self.queue.drain(..).filter_map(|item| match item {
            Item::Event(event) => Some(event),
            Item::Packet { .. } => None,
        });
        events.collect()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the end of the stream has come, and perhaps waits.
    pub(crate) const fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// What passes at `now`.
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
                    // Nothing may be sent any more, and the end is not to wait for that to change.
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

    /// Feedback came at `now`.
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

    /// Whether as much is under way as may be, without what reports had no time to tell of.
    fn is_window_full(&self) -> bool {
        let untold = self.guest.rate().as_bps_f64() * self.reports.apart().as_secs_f64() / 8.0;
        // One packet may always be under way: nothing would ever be heard without.
        let window =
            self.guest.window().map(|window| window.max(Size::from_bytes(1)) + Size::from_bytes(untold as u64));
        window.is_some_and(|window| self.departures.in_flight() >= window)
    }

    fn keep_pace(&mut self) {
        self.pacer.set_rate(self.guest.pace(PACING));
    }

    /// The frame whose last packet has just come, and what waits before it.
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

    /// How long the oldest packet has waited.
    fn waited(&self, now: Instant<SenderClock>) -> Span {
        let since = self.queue.iter().find_map(|item| match item {
            Item::Packet { since, .. } => Some(*since),
            Item::Event(_) => None,
        });
        since.map_or(Span::ZERO, |since| now - since)
    }

    /// What the encoder may have, in bit/s: the rate without headers, within the limits; less while so much waits that it would be late.
    fn estimate_bps(&self) -> u32 {
        let rate = self.guest.rate();
        let late_bits = self.waiting.as_bits() as f64 - rate.as_bps_f64() * SPREAD_S;
        let left = Rate::from_bps_f64(rate.as_bps_f64() - late_bits.max(0.0) / DRAINED_S).unwrap_or(Rate::ZERO);
        let bps = u32::try_from(self.share.of(left).as_bps()).unwrap_or(u32::MAX);
        bps.clamp(self.min_bps, self.max_bps)
    }

    /// The bitrate that the encoder was told last, in bit/s.
    pub(crate) const fn told_bps(&self) -> u32 {
        self.told_bps
    }

    /// Whether the encoder is to be told another bitrate at `now`, which counts as told then.
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

    /// Whether a hundred packets left and none of them had room for a transport-wide number.
    pub(crate) const fn is_unnumbered(&self) -> bool {
        self.numbered == 0 && self.unnumbered >= 100
    }

    /// Counts, and what the controller says, for people.
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

/// How far reports are apart: a receiver in GStreamer collects those of 300 ms until it has measured what RTCP may take.
#[derive(Debug, Default)]
struct Spacing {
    last: Option<Instant<SenderClock>>,
    apart: Span,
}

impl Spacing {
    /// Reports that come closer together came together. Ours.
    const TOGETHER: Span = Span::from_millis(20);
    /// Reports that are farther apart are missing. Ours.
    const MOST: Span = Span::from_millis(500);

    /// A report came.
    fn take(&mut self, now: Instant<SenderClock>) {
        let since = self.last.map_or(Span::ZERO, |last| now - last);
        if since > Self::TOGETHER {
            // The longest of the last ones: an eighth shorter with each.
            let kept = Span::from_nanos(self.apart.as_nanos() / 8 * 7);
            self.apart = since.min(Self::MOST).max(kept);
        }
        if since > Self::TOGETHER || self.last.is_none() {
            self.last = Some(now);
        }
    }

    /// From one to the next, the longest of late.
    const fn apart(&self) -> Span {
        self.apart
    }
}
