//! What a handle does.

use std::ffi::CStr;
use std::ptr;

use equipoise::control::adapt::{IntervalConfig, Origin};
use equipoise::control::{Beliefs, BoxedController, Mode, Needs, SentPacket};
use equipoise::pace::{Pacer, Readiness};
use equipoise::units::{Instant, SenderClock, Size, Span};
use equipoise_session::feedback::{FeedbackCounts, Format, History, Scope};
use equipoise_session::guest::{Guest, Reports};
use equipoise_session::wire::feedback::ArrivalFeedback;
use equipoise_session::wire::rtcp::parse_compound;

use super::{
    EQ_FEEDBACK_ACKS, EQ_FEEDBACK_ARRIVALS, EQ_FEEDBACK_RFC8888, EQ_FEEDBACK_TWCC, EQ_OPEN, eq_controller_options,
    eq_controller_status, eq_packet,
};
use crate::border::{Growing as _, LONGEST_PACKET, bytes};
use crate::error::{Fault, eq_error};
use crate::time::{CallersClock, EQ_NEVER, span_or};

/// So many packets are remembered where feedback is of arrays, as for RTCP.
const REMEMBERED: u16 = 1 << 13;
/// Numbers of packets are below it, so that others can follow.
const HIGHEST: u64 = 1 << 62;
/// A controller and its pacer. One thread at a time may use it.
pub struct eq_controller {
    pub(super) guest: Guest,
    pub(super) pacer: Pacer<SenderClock>,
    pacing: f64,
    sent: Sent,
    pub(super) clock: CallersClock,
}

/// What was sent, to be joined with the feedback on it.
enum Sent {
    /// Feedback is RTCP.
    Rtcp(Reports),
    /// Feedback is arrays, by numbers above the last one.
    Arrays(History, Option<u64>),
}

impl Sent {
    fn in_flight(&self) -> Size {
        match self {
            Self::Rtcp(reports) => reports.in_flight(),
            Self::Arrays(history, _) => history.in_flight(),
        }
    }

    fn counts(&self) -> FeedbackCounts {
        match self {
            Self::Rtcp(reports) => reports.counts(),
            Self::Arrays(history, _) => history.counts(),
        }
    }
}

impl eq_controller {
    pub(super) fn new(make: &eq_controller_options, controller: BoxedController, now_ns: i64) -> Result<Self, Fault> {
        let usual = IntervalConfig::new(span_or(make.interval_ns, Span::from_millis(250)));
        let rtcp =
            |format: Format| (Sent::Rtcp(Reports::new(format)), IntervalConfig { quantum: format.quantum(), ..usual });
        let history = || Sent::Arrays(History::new(Scope::Transport, REMEMBERED), None);
        let (sent, intervals) = match make.feedback {
            EQ_FEEDBACK_TWCC => rtcp(Format::TransportWide),
            EQ_FEEDBACK_RFC8888 => rtcp(Format::CongestionFeedback),
            EQ_FEEDBACK_ARRIVALS => (history(), usual),
            EQ_FEEDBACK_ACKS => (history(), IntervalConfig { origin: Origin::RoundTrip, ..usual }),
            other => {
                let words = format!("`feedback` is {other}; it is one of EQ_FEEDBACK_..., 0 to 3");
                return Err(Fault::new(eq_error::EQ_E_ARGUMENT, words));
            }
        };
        let provided = if make.has_ecn == 0 { Needs::PACKETS } else { Needs::PACKETS.and(Needs::ECN) };
        let clock = CallersClock::starting_at(now_ns);
        let guest = Guest::new(controller, provided, intervals, clock.time(now_ns))?;
        let pacing = if make.pacing >= 1.0 && make.pacing.is_finite() { make.pacing } else { 1.5 };
        let pacer = Pacer::new(guest.pace(pacing));
        Ok(Self { guest, pacer, pacing, sent, clock })
    }

    /// The controller may have decided.
    pub(super) fn decided(&mut self) {
        self.pacer.set_rate(self.guest.pace(self.pacing));
    }

    /// How much faster than the rate packets leave.
    fn pacing_now(&self) -> f64 {
        self.pacer.rate().as_bps_f64() / self.guest.rate().as_bps_f64().max(1.0)
    }

    pub(super) fn on_sent(
        &mut self,
        now: Instant<SenderClock>,
        ssrc: u32,
        number: u64,
        size: usize,
    ) -> Result<(), Fault> {
        let size = bytes(size, LONGEST_PACKET)?;
        self.pacer.on_departure(now, size);
        let packet = match &mut self.sent {
            // Sequence numbers are of 16 bits.
            Sent::Rtcp(reports) => reports.on_sent(now, ssrc, number as u16, size),
            Sent::Arrays(history, last) if number < HIGHEST && *last < Some(number) => {
                *last = Some(number);
                history.on_sent(number, size, now);
                Some(SentPacket::new(number, size, history.in_flight()))
            }
            Sent::Arrays(..) => None,
        };
        let packet = packet.ok_or_else(|| {
            let words = format!(
                "packet {number} is not behind the one before, or above 2^62; a packet that is sent again has a new number"
            );
            Fault::new(eq_error::EQ_E_ARGUMENT, words)
        })?;
        self.guest.on_sent(now, packet);
        self.decided();
        Ok(())
    }

    pub(super) fn on_rtcp(&mut self, now: Instant<SenderClock>, bytes: &[u8]) -> Result<(), Fault> {
        let pacing = self.pacing_now();
        let Sent::Rtcp(reports) = &mut self.sent else {
            let words = "this controller was made for feedback in arrays: call eq_controller_packets";
            return Err(Fault::new(eq_error::EQ_E_STATE, words));
        };
        let wrong = |error: &dyn std::fmt::Display| Fault::new(eq_error::EQ_E_FEEDBACK, error.to_string());
        let compound = parse_compound(bytes).map_err(|error| wrong(&error))?;
        let before = reports.counts();
        let mut malformed = None;
        for feedback in compound.filter_map(|packet| ArrivalFeedback::of(&packet)) {
            match feedback {
                Ok(feedback) => {
                    let news = reports.on_feedback(now, feedback);
                    self.guest.on_feedback(now, &news.feedback(), pacing);
                }
                Err(error) => malformed = Some(wrong(&error)),
            }
        }
        let refused = reports.counts().refused - before.refused;
        self.decided();
        match malformed {
            Some(fault) => Err(fault),
            None if refused > 0 => Err(wrong(&"the report tells of packets that were never sent")),
            None => Ok(()),
        }
    }

    pub(super) fn on_packets(&mut self, now: Instant<SenderClock>, packets: &[eq_packet]) -> Result<(), Fault> {
        let pacing = self.pacing_now();
        let Sent::Arrays(history, _) = &mut self.sent else {
            let words = "this controller was made for feedback in RTCP: call eq_controller_rtcp";
            return Err(Fault::new(eq_error::EQ_E_STATE, words));
        };
        let fates: Vec<_> = packets.iter().map(|packet| (packet.number, packet.fate())).collect();
        let joined = history.on_fates(now, &fates);
        let joined = joined.map_err(|error| Fault::new(eq_error::EQ_E_FEEDBACK, error.to_string()))?;
        self.guest.on_feedback(now, &joined.feedback(false), pacing);
        self.decided();
        Ok(())
    }

    pub(super) fn on_timer(&mut self, now: Instant<SenderClock>) {
        if self.guest.next_timer().is_some_and(|at| at <= now) {
            if self.guest.on_timer(now) {
                match &mut self.sent {
                    Sent::Rtcp(reports) => reports.on_silence(),
                    Sent::Arrays(history, _) => history.on_silence(),
                }
            }
            self.decided();
        }
    }

    pub(super) fn next_departure(&self, now_ns: i64) -> i64 {
        // One packet may always be under way: nothing would ever be heard without.
        let full = self.guest.window().is_some_and(|window| self.sent.in_flight() >= window.max(Size::from_bytes(1)));
        match self.pacer.poll(self.clock.time(now_ns)) {
            _ if full => EQ_NEVER,
            Readiness::Now => now_ns,
            Readiness::At(due) => self.clock.nanos(due),
            Readiness::Never => EQ_NEVER,
        }
    }

    pub(super) fn status(&self) -> eq_controller_status {
        let (beliefs, counts) = (self.guest.beliefs(), self.sent.counts());
        let believed = |what: fn(&Beliefs) -> Option<f32>| beliefs.as_ref().and_then(what).map_or(f64::NAN, f64::from);
        let mode = beliefs.map(|beliefs| match beliefs.mode {
            Mode::Delay => c"delay",
            Mode::Rival => c"rival",
            Mode::Policed => c"policed",
        });
        eq_controller_status {
            rate_bps: self.guest.rate().as_bps(),
            pace_bps: self.pacer.rate().as_bps(),
            window_bytes: self.guest.window().map_or(EQ_OPEN, Size::as_bytes),
            in_flight_bytes: self.sent.in_flight().as_bytes(),
            round_trip_ns: self.guest.round_trip().as_nanos(),
            reports: counts.reports,
            refused: counts.refused,
            mode: mode.map_or(ptr::null(), CStr::as_ptr),
            capacity_bps: believed(|beliefs| beliefs.capacity_bps),
            available_bps: believed(|beliefs| beliefs.available_bps),
            base_s: believed(|beliefs| Some(beliefs.base_s)),
            queue_s: believed(|beliefs| Some(beliefs.queue_s)),
            target_s: believed(|beliefs| Some(beliefs.target_s)),
            ..eq_controller_status::standard()
        }
    }
}
