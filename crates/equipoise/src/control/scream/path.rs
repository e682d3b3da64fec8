use super::law::{ScreamLaw, VIRTUAL_ROUND_TRIP_S};
use crate::control::base_delay::BaseDelay;
use crate::control::{Ecn, Fate, PacketFeedback, PacketReport};
use crate::units::{Instant, SenderClock, Size, Span};

/// The path state of `SCReAM` (draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.1, 4.2.1, 4.5).
#[derive(Clone, Debug)]
pub(super) struct Path {
    target_s: f64,
    /// `s_rtt`, the smoothed round-trip time, in s; `None` before the first sample.
    round_trip_s: Option<f64>,
    base: BaseDelay,
    has_arrival_times: bool,
    /// `queue_s` is `qdelay`, the last queueing delay, and `queue_average_s` is `qdelay_avg`, in s.
    queue_s: f64,
    queue_average_s: f64,
    jitter: Jitter,
    drift: Drift,
    averaged: Option<Instant<SenderClock>>,
    marks: Marks,
    flight: Flight,
    /// `loss_rate`, the smoothed share of packets lost, 0 to 1.
    loss_rate: f64,
    /// Whether a packet arrived as ECT(1). If so, `Marking::ByCodepoint` treats all marks as L4S marks.
    saw_ect1: bool,
    /// A loss or a classic ECN mark is ignored if its packet left before this time, because the last reaction covers
    /// it.
    answered: Instant<SenderClock>,
    pub(super) news: News,
}

/// Feedback to which the window has not reacted yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct News {
    /// Bytes that arrived unmarked: `bytes_newly_acked` less `bytes_newly_acked_ce`.
    pub(super) unmarked_bytes: f64,
    /// Whether a packet was lost since the last reaction. Two kinds of losses do not count: losses of packets that left
    /// before `Path::answered`, and losses that `Form::Full` ignored because losses were rare and the queue was short.
    pub(super) is_lost: bool,
    /// Whether a packet was marked since the last reaction.
    pub(super) is_marked: bool,
    /// The same as `is_marked`, but marks of packets that left before `Path::answered` do not count.
    pub(super) is_marked_anew: bool,
}

/// `l4s_alpha`, the smoothed fraction of marks, and the counts from which it is updated.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    alpha: f64,
    delivered: u64,
    marked: u64,
    updated: Option<Instant<SenderClock>>,
}

/// How much the queueing delay varies (Sec. 4.2.1.4), in s.
#[derive(Clone, Copy, Debug)]
struct Jitter {
    high_s: f64,
    low_s: f64,
    deviation_s: f64,
    /// `ref_wnd_delay_scale`: 1 without jitter, 0 with much jitter.
    calm: f64,
}

/// The minimum queueing delay of the current round trip, and the average of these minima over round trips, in s. Both
/// values together show whether the base delay is too low (Sec. 4.5.1).
#[derive(Clone, Copy, Debug)]
struct Drift {
    least_s: f64,
    average_s: f64,
}

/// Bytes in flight and bytes acknowledged, in the current round trip and in the previous one.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    /// `most` is `max_bytes_in_flight`, and `most_before` is `max_bytes_in_flight_prev`.
    most: f64,
    most_before: f64,
    acknowledged: f64,
    began: Option<Instant<SenderClock>>,
    /// `acked_bitrate`, the acknowledged rate, in bit/s; `None` before a round trip has passed.
    acknowledged_bps: Option<f64>,
}

/// Weight of a new round-trip time in the smoothed round-trip time (RFC 6298, Sec. 2).
const ROUND_TRIP_GAIN: f64 = 1.0 / 8.0;
/// `QDELAY_AVG_G`, weight of a new queueing delay in the average. With a larger value, the average reacts more to
/// spikes (Sec. 4.2.1.4).
const QUEUE_GAIN: f64 = 1.0 / 4.0;
/// The jitter is the smoothed difference between the recent maximum and minimum of the queueing delay (Sec. 4.2.1.4).
/// `EXTREME_GAIN` is the speed at which the two extremes are forgotten (`QDELAY_MIN_MAX_AVG_G`). `DEVIATION_GAIN` is
/// the weight of a new difference (`QDELAY_DEV_AVG_G`). A jitter above `MUCH_JITTER_S`, in s, counts as high
/// (`QDELAY_DEV_THRESHOLD`).
const EXTREME_GAIN: f64 = 1.0 / 16.0;
const DEVIATION_GAIN: f64 = 1.0 / 32.0;
const MUCH_JITTER_S: f64 = 0.01;
/// `QDELAY_MIN_AVG_ALPHA`, weight of a round trip in the average of the minimum queueing delays (Sec. 4.5.1).
const DRIFT_GAIN: f64 = 1.0 / 256.0;
/// Minimum time between updates of `l4s_alpha`, in s. If the round trip is shorter, the minimum is a round trip
/// (Sec. 4.2.1.3).
const ALPHA_EVERY_S: f64 = 0.01;
/// `LOSS_RATE_THRESHOLD`, the loss rate up to which losses count as rare (Sec. 4.5.2).
pub(super) const LOSSY: f64 = 0.01;
/// Duration of two frames, the minimum time over which an acknowledged rate is measured, in s (Sec. 4.5.3,
/// `frame_period`).
const TWO_FRAMES_S: f64 = 0.04;

impl Path {
    pub(super) const fn new(target_s: f64) -> Self {
        Self {
            target_s,
            round_trip_s: None,
            base: BaseDelay::new(),
            has_arrival_times: false,
            queue_s: 0.0,
            queue_average_s: 0.0,
            jitter: Jitter { high_s: target_s, low_s: 0.0, deviation_s: 0.0, calm: 1.0 },
            drift: Drift { least_s: f64::INFINITY, average_s: 0.0 },
            averaged: None,
            marks: Marks { alpha: 0.0, delivered: 0, marked: 0, updated: None },
            flight: Flight { most: 0.0, most_before: 0.0, acknowledged: 0.0, began: None, acknowledged_bps: None },
            loss_rate: 0.0,
            saw_ect1: false,
            answered: Instant::ZERO,
            news: News { unmarked_bytes: 0.0, is_lost: false, is_marked: false, is_marked_anew: false },
        }
    }

    /// Returns `s_rtt`, the smoothed round-trip time, in s.
    pub(super) const fn round_trip_s(&self) -> Option<f64> {
        self.round_trip_s
    }

    pub(super) const fn queue_s(&self) -> f64 {
        self.queue_s
    }

    pub(super) const fn queue_average_s(&self) -> f64 {
        self.queue_average_s
    }

    pub(super) const fn alpha(&self) -> f64 {
        self.marks.alpha
    }

    pub(super) const fn calm(&self) -> f64 {
        self.jitter.calm
    }

    pub(super) const fn loss_rate(&self) -> f64 {
        self.loss_rate
    }

    pub(super) const fn saw_ect1(&self) -> bool {
        self.saw_ect1
    }

    /// Returns `acked_bitrate`, the acknowledged rate, in bit/s.
    pub(super) const fn acknowledged_bps(&self) -> Option<f64> {
        self.flight.acknowledged_bps
    }

    /// Returns the maximum of the bytes in flight in the previous round trip.
    pub(super) const fn most_in_flight_before(&self) -> f64 {
        self.flight.most_before
    }

    /// Returns the maximum of the bytes in flight in the current round trip and the previous one.
    pub(super) const fn most_in_flight(&self) -> f64 {
        self.flight.most.max(self.flight.most_before)
    }

    /// Records the data in flight.
    pub(super) fn on_flight(&mut self, in_flight: Size) {
        self.flight.most = self.flight.most.max(in_flight.as_bytes() as f64);
    }

    /// Records that the law reacted at `now` to all earlier feedback. `is_event` says whether the law reacted to a loss
    /// or a classic mark. If so, losses and classic marks of packets that left before `now` are ignored from then on.
    pub(super) fn on_reaction(&mut self, now: Instant<SenderClock>, is_event: bool) {
        self.news.is_lost = false;
        self.news.is_marked = false;
        self.news.is_marked_anew = false;
        if is_event {
            self.answered = now;
        }
    }

    /// Processes feedback. Returns whether the base delay proved to be too low and was discarded.
    pub(super) fn push(
        &mut self,
        now: Instant<SenderClock>,
        feedback: &PacketFeedback<'_>,
        window: f64,
        law: &ScreamLaw,
    ) -> bool {
        if let Some(sample) = feedback.round_trip.map(Span::as_secs_f64).filter(|sample| *sample > 0.0) {
            self.round_trip_s =
                Some(self.round_trip_s.map_or(sample, |old| (1.0 - ROUND_TRIP_GAIN) * old + ROUND_TRIP_GAIN * sample));
        }
        self.on_flight(feedback.in_flight);
        let loss_gain = (LOSSY / 4.0).min(law.segment / window / 2.0);
        for packet in feedback.packets {
            self.push_packet(now, packet, loss_gain);
        }
        let has_arrived = feedback.packets.iter().any(|packet| packet.fate != Fate::Lost);
        if let (false, true, Some(round_trip)) = (self.has_arrival_times, has_arrived, feedback.round_trip) {
            self.push_delay(now, round_trip);
        }
        self.update_marks(now);
        self.update_queue(now);
        self.turn_round_trip(now)
    }

    fn push_packet(&mut self, now: Instant<SenderClock>, packet: &PacketReport, loss_gain: f64) {
        let is_lost = packet.fate == Fate::Lost;
        // The smoothed loss rate (Sec. 4.5.2).
        self.loss_rate = (1.0 - loss_gain) * self.loss_rate + if is_lost { loss_gain } else { 0.0 };
        let is_anew = packet.departed >= self.answered;
        let Fate::Arrived { at, ecn } = packet.fate else {
            self.news.is_lost |= is_anew;
            return;
        };
        let bytes = packet.size.as_bytes() as f64;
        self.flight.acknowledged += bytes;
        self.marks.delivered += 1;
        if ecn == Ecn::Ce {
            self.marks.marked += 1;
            self.news.is_marked = true;
            self.news.is_marked_anew |= is_anew;
        } else {
            self.news.unmarked_bytes += bytes;
        }
        self.saw_ect1 |= ecn == Ecn::Ect1;
        if let Some(at) = at {
            if !self.has_arrival_times {
                (self.has_arrival_times, self.base) = (true, BaseDelay::new());
            }
            self.push_delay(now, at.assume_clock() - packet.departed);
        }
    }

    fn push_delay(&mut self, now: Instant<SenderClock>, shown: Span) {
        self.queue_s = self.base.queueing(now, shown).as_secs_f64();
        self.jitter.high_s = self.jitter.high_s.max(self.queue_s).min(self.target_s);
        self.jitter.low_s = self.jitter.low_s.min(self.queue_s);
        self.drift.least_s = self.drift.least_s.min(self.queue_s);
    }

    /// Updates `l4s_alpha`, the smoothed fraction of marks (Sec. 4.2.1.3).
    fn update_marks(&mut self, now: Instant<SenderClock>) {
        let every = ALPHA_EVERY_S.min(self.round_trip_s.unwrap_or(0.0));
        if self.marks.delivered == 0 || !is_due(self.marks.updated, now, every) {
            return;
        }
        let fraction = self.marks.marked as f64 / self.marks.delivered as f64;
        let alpha = ScreamLaw::alpha(self.marks.alpha, fraction);
        self.marks = Marks { alpha, delivered: 0, marked: 0, updated: Some(now) };
    }

    /// Updates `qdelay_avg` and `ref_wnd_delay_scale` (Sec. 4.2.1.4).
    fn update_queue(&mut self, now: Instant<SenderClock>) {
        if !is_due(self.averaged, now, VIRTUAL_ROUND_TRIP_S.min(self.round_trip_s.unwrap_or(0.0))) {
            return;
        }
        self.averaged = Some(now);
        let risen = QUEUE_GAIN * self.queue_s + (1.0 - QUEUE_GAIN) * self.queue_average_s;
        self.queue_average_s = self.queue_s.min(risen);
        let jitter = &mut self.jitter;
        jitter.high_s *= 1.0 - EXTREME_GAIN;
        jitter.low_s = jitter.low_s * (1.0 - EXTREME_GAIN) + jitter.high_s * EXTREME_GAIN;
        jitter.deviation_s =
            (1.0 - DEVIATION_GAIN) * jitter.deviation_s + DEVIATION_GAIN * (jitter.high_s - jitter.low_s);
        jitter.calm = (1.0 - jitter.deviation_s / MUCH_JITTER_S).clamp(0.0, 1.0);
    }

    /// Updates the state that is kept per round trip. Returns whether the base delay was discarded.
    fn turn_round_trip(&mut self, now: Instant<SenderClock>) -> bool {
        let Some(round_trip_s) = self.round_trip_s else { return false };
        let flight = &mut self.flight;
        let elapsed_s = (now - *flight.began.get_or_insert(now)).as_secs_f64();
        if elapsed_s < 0.0 {
            flight.began = Some(now);
        }
        if elapsed_s < round_trip_s.max(TWO_FRAMES_S) {
            return false;
        }
        *flight = Flight {
            most: 0.0,
            most_before: flight.most,
            acknowledged: 0.0,
            began: Some(now),
            acknowledged_bps: Some(flight.acknowledged * 8.0 / elapsed_s),
        };
        if self.drift.least_s.is_finite() {
            self.drift.average_s += DRIFT_GAIN * (self.drift.least_s - self.drift.average_s);
        }
        self.drift.least_s = f64::INFINITY;
        let is_too_low = self.drift.average_s > self.target_s / 4.0;
        if is_too_low {
            self.drift.average_s = 0.0;
            self.base = BaseDelay::new();
        }
        is_too_low
    }
}

/// Whether `last` is `None`, at least `after_s` seconds have passed since `last`, or the sender's clock was set back.
pub(super) fn is_due(last: Option<Instant<SenderClock>>, now: Instant<SenderClock>, after_s: f64) -> bool {
    last.is_none_or(|last| now < last || (now - last).as_secs_f64() >= after_s)
}
