//! The controller handle of the C API, and the operations on it.

use std::ffi::CStr;
use std::ptr;

use equipoise::control::{Beliefs, BoxedController, Mode};
use equipoise::pace::Readiness;
use equipoise::units::{Instant, SenderClock, Size};
use equipoise_session::feedback::Format;
use equipoise_session::guest::{FeedbackKind, PacedConfig, PacedError, PacedGuest};

use super::{
    EQ_FEEDBACK_ACKS, EQ_FEEDBACK_ARRIVALS, EQ_FEEDBACK_RFC8888, EQ_FEEDBACK_TWCC, EQ_OPEN, eq_controller_options,
    eq_controller_status, eq_packet,
};
use crate::border::{Growing as _, LONGEST_PACKET, bytes};
use crate::error::{Fault, eq_error};
use crate::time::{CallersClock, EQ_NEVER, span_or};

/// A controller and its pacer. Only one thread may use a handle at a time.
pub struct eq_controller {
    pub(super) inner: PacedGuest,
    pub(super) clock: CallersClock,
}

impl From<PacedError> for Fault {
    fn from(error: PacedError) -> Self {
        let (code, words) = match &error {
            PacedError::Number { .. } => (eq_error::EQ_E_ARGUMENT, error.to_string()),
            PacedError::NotRtcp => (eq_error::EQ_E_STATE, format!("{error}: call eq_controller_packets")),
            PacedError::NotArrays => (eq_error::EQ_E_STATE, format!("{error}: call eq_controller_rtcp")),
            _ => (eq_error::EQ_E_FEEDBACK, error.to_string()),
        };
        Self::new(code, words)
    }
}

impl eq_controller {
    pub(super) fn new(make: &eq_controller_options, controller: BoxedController, now_ns: i64) -> Result<Self, Fault> {
        let feedback = match make.feedback {
            EQ_FEEDBACK_TWCC => FeedbackKind::Rtcp(Format::TransportWide),
            EQ_FEEDBACK_RFC8888 => FeedbackKind::Rtcp(Format::CongestionFeedback),
            EQ_FEEDBACK_ARRIVALS => FeedbackKind::Arrivals,
            EQ_FEEDBACK_ACKS => FeedbackKind::Acks,
            other => {
                let words = format!("`feedback` is {other}; it is one of EQ_FEEDBACK_..., 0 to 3");
                return Err(Fault::new(eq_error::EQ_E_ARGUMENT, words));
            }
        };
        let usual = PacedConfig::new(feedback);
        let pacing = if make.pacing >= 1.0 && make.pacing.is_finite() { make.pacing } else { usual.pacing };
        let interval = span_or(make.interval_ns, usual.interval);
        let clock = CallersClock::starting_at(now_ns);
        let config = PacedConfig { pacing, interval, has_ecn: make.has_ecn != 0, ..usual };
        Ok(Self { inner: PacedGuest::new(controller, config, clock.time(now_ns))?, clock })
    }

    pub(super) fn on_sent(
        &mut self,
        now: Instant<SenderClock>,
        ssrc: u32,
        number: u64,
        size: usize,
    ) -> Result<(), Fault> {
        Ok(self.inner.on_sent(now, ssrc, number, bytes(size, LONGEST_PACKET)?)?)
    }

    pub(super) fn on_packets(&mut self, now: Instant<SenderClock>, packets: &[eq_packet]) -> Result<(), Fault> {
        let fates: Vec<_> = packets.iter().map(|packet| (packet.number, packet.fate())).collect();
        Ok(self.inner.on_fates(now, &fates)?)
    }

    pub(super) fn next_departure(&self, now_ns: i64) -> i64 {
        match self.inner.next_departure(self.clock.time(now_ns)) {
            Readiness::Now => now_ns,
            Readiness::At(due) => self.clock.nanos(due),
            Readiness::Never => EQ_NEVER,
        }
    }

    pub(super) fn status(&self) -> eq_controller_status {
        let (guest, counts) = (self.inner.guest(), self.inner.counts());
        let beliefs = guest.beliefs();
        let believed = |what: fn(&Beliefs) -> Option<f32>| beliefs.as_ref().and_then(what).map_or(f64::NAN, f64::from);
        let mode = beliefs.map(|beliefs| match beliefs.mode {
            Mode::Delay => c"delay",
            Mode::Rival => c"rival",
            Mode::Policed => c"policed",
        });
        eq_controller_status {
            rate_bps: guest.rate().as_bps(),
            pace_bps: self.inner.pace().as_bps(),
            window_bytes: guest.window().map_or(EQ_OPEN, Size::as_bytes),
            in_flight_bytes: self.inner.in_flight().as_bytes(),
            round_trip_ns: guest.round_trip().as_nanos(),
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
