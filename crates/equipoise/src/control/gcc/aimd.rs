use super::GccForm;
use super::capacity::LinkCapacity;
use super::detector::Usage;
use crate::control::RateLimits;
use crate::units::{Instant, SenderClock, Span};

/// The rate A that the delay allows, in Google congestion control. A rises while the queue is normal, is kept while the
/// queue shrinks, and falls below the delivery rate R at overuse.
///
/// ```text
/// A = β R - 5 kbit/s                             decrease; at most A
/// A = β C                                        decrease, if β R - 5 kbit/s exceeds A and C is known; at most A
/// A = A 1.08^min(Δt, 1 s)                        increase, C unknown; at least by 1 kbit/s
/// A = A + packet Δt / (2 (rtt + 100 ms))         increase, C known; at least by 4 kbit/s per second
/// A ≤ 1.5 R + 10 kbit/s                          limit of an increase
/// ```
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `A` | rate that the delay allows | bit/s |
/// | `R` | delivery rate | bit/s |
/// | `C` | estimated capacity | bit/s |
/// | `β` | factor of a decrease, 0.85 by default | |
/// | `Δt` | time since the last update | s |
/// | `packet` | packet size, estimated from A | bit |
/// | `rtt` | round-trip time | s |
///
/// Source: libwebrtc, `aimd_rate_control`; draft-ietf-rmcat-gcc-02, Sec. 5.5. The equations above are those of
/// libwebrtc. [`GccForm::Draft`] decreases A to β R, and limits an increase to 1.5 R. While C is known, this form
/// increases A in steps of `packet / 2 · Δt / (rtt + 100 ms)`. A step is at least 1 kbit/s and at most half a packet.
///
/// Our interpretation: both forms follow libwebrtc in two points in which the draft differs in details. Only the state
/// of the queue decides between increase, hold and decrease. C is forgotten as described in [`LinkCapacity`].
#[derive(Clone, Debug)]
pub(super) struct Aimd {
    form: GccForm,
    limits: RateLimits,
    /// β, the factor of a decrease.
    decrease: f64,
    bps: f64,
    /// The last delivery rate, in bit/s; before the first one, the start rate.
    acked_bps: f64,
    capacity: LinkCapacity,
    round_trip: Span,
    is_holding: bool,
    changed: Option<Instant<SenderClock>>,
}

/// Factor by which the rate grows per second while the capacity is unknown (draft-ietf-rmcat-gcc-02, Sec. 5.5;
/// libwebrtc, `aimd_rate_control`).
const GROWTH: f64 = 1.08;
/// Maximum elapsed time that counts for one step while the capacity is unknown, in s (draft-ietf-rmcat-gcc-02,
/// Sec. 5.5).
const LONGEST_STEP_S: f64 = 1.0;
/// The minimum step of an increase, in bit/s, except in libwebrtc's form near the capacity (draft-ietf-rmcat-gcc-02,
/// Sec. 5.5).
const LEAST_STEP: f64 = 1000.0;
/// The minimum growth near the capacity in libwebrtc's form, in bit/s per second (libwebrtc, `aimd_rate_control`).
const LEAST_SLOPE: f64 = 4000.0;
/// An increase raises the rate to at most this multiple of the delivery rate (draft-ietf-rmcat-gcc-02, Sec. 5.5).
const HEADROOM: f64 = 1.5;
/// In the libwebrtc form, the rate after an increase is at most `HEADROOM * delivery rate + HEADROOM_OFFSET`, in bit/s.
/// Without the offset, an encoder with an uneven rate would keep the estimate low (libwebrtc, `aimd_rate_control`).
const HEADROOM_OFFSET: f64 = 10_000.0;
/// At a decrease, this value, in bit/s, is subtracted from the reduced rate, so that the queue also drains at low rates
/// (libwebrtc, `aimd_rate_control`).
const DECREASE_OFFSET: f64 = 5000.0;
/// Assumed round-trip time before the first measurement (libwebrtc, `aimd_rate_control`).
const FIRST_ROUND_TRIP: Span = Span::from_millis(200);
/// Assumed time until the detector finds an overuse (draft-ietf-rmcat-gcc-02, Sec. 5.5).
const DETECTION: Span = Span::from_millis(100);
/// Assumed frame rate for the estimate of the packet size, in frames/s (draft-ietf-rmcat-gcc-02, Sec. 5.5).
const FRAMES: f64 = 30.0;
/// Size of the largest packet of a frame, in bits (draft-ietf-rmcat-gcc-02, Sec. 5.5).
const PACKET: f64 = 1200.0 * 8.0;
/// A decrease is allowed one round-trip time after the last update of the rate. For this purpose, the round-trip time
/// is limited to the range between these two values (libwebrtc, `aimd_rate_control`).
const SOONEST_DECREASE: (Span, Span) = (Span::from_millis(10), Span::from_millis(200));
/// If the delivery rate is below this share of the rate, a decrease is allowed immediately (libwebrtc,
/// `aimd_rate_control`).
const COLLAPSE: f64 = 0.5;

impl Aimd {
    pub(super) fn new(form: GccForm, limits: RateLimits, decrease: f64) -> Self {
        let bps = limits.start().as_bps_f64();
        Self {
            form,
            limits,
            decrease,
            bps,
            acked_bps: bps,
            capacity: LinkCapacity::new(),
            round_trip: FIRST_ROUND_TRIP,
            is_holding: true,
            changed: None,
        }
    }

    /// Returns the rate in bit/s.
    pub(super) const fn bps(&self) -> f64 {
        self.bps
    }

    /// Records a measured round-trip time; ignored if it is not positive.
    pub(super) fn set_round_trip(&mut self, round_trip: Span) {
        if round_trip > Span::ZERO {
            self.round_trip = round_trip;
        }
    }

    /// Sets the rate and the time of the last update, for example after the result of a probe.
    pub(super) fn set(&mut self, now: Instant<SenderClock>, bps: f64) {
        self.bps = self.clamped(bps);
        self.changed = Some(now);
    }

    /// Sets a rate that was decided outside of this law, without changing the time of the last update.
    pub(super) fn go_on_from(&mut self, bps: f64) {
        self.bps = self.clamped(bps);
    }

    /// Whether a decrease is allowed. It is allowed if the rate was last updated at least one round-trip time ago. For
    /// this purpose, the round-trip time is limited to 10 to 200 ms. A decrease is also allowed if the delivery rate is
    /// below half of the rate.
    pub(super) fn may_decrease(&self, now: Instant<SenderClock>, acked_bps: Option<f64>) -> bool {
        let (soonest, latest) = SOONEST_DECREASE;
        let wait = self.round_trip.clamp(soonest, latest);
        self.changed.is_none_or(|changed| now - changed >= wait)
            || acked_bps.is_some_and(|acked| acked < COLLAPSE * self.bps)
    }

    /// Halves the rate if the last update of the rate was long enough ago (see [`may_decrease`](Self::may_decrease)).
    /// Called at overuse, before the first delivery rate is known.
    pub(super) fn halve(&mut self, now: Instant<SenderClock>) {
        if self.may_decrease(now, None) {
            self.set(now, self.bps / 2.0);
        }
    }

    /// Updates the rate. `usage` is the state of the detector, and `acked_bps` is the delivery rate, if known.
    pub(super) fn update(&mut self, now: Instant<SenderClock>, usage: Usage, acked_bps: Option<f64>) {
        if let Some(acked) = acked_bps.filter(|acked| acked.is_finite()) {
            self.acked_bps = acked;
        }
        match usage {
            Usage::Over => self.decrease(now),
            Usage::Under => self.is_holding = true,
            Usage::Normal => {
                if core::mem::take(&mut self.is_holding) {
                    self.changed = Some(now);
                }
                self.increase(now);
            }
        }
    }

    fn increase(&mut self, now: Instant<SenderClock>) {
        if self.capacity.is_above(self.acked_bps) {
            self.capacity.forget();
        }
        let offset = if self.form == GccForm::Draft { 0.0 } else { HEADROOM_OFFSET };
        let most = HEADROOM * self.acked_bps + offset;
        if self.bps < most {
            let elapsed_s = self.changed.map_or(LONGEST_STEP_S, |changed| (now - changed).as_secs_f64().max(0.0));
            let step = if self.capacity.bps().is_some() { self.added(elapsed_s) } else { self.grown(elapsed_s) };
            self.bps = self.clamped((self.bps + step).min(most));
        }
        self.changed = Some(now);
    }

    /// Returns the step of an increase while the capacity is unknown, in bit/s.
    fn grown(&self, elapsed_s: f64) -> f64 {
        (self.bps * (libm::pow(GROWTH, elapsed_s.min(LONGEST_STEP_S)) - 1.0)).max(LEAST_STEP)
    }

    /// Returns the step of an increase near the capacity, in bit/s.
    fn added(&self, elapsed_s: f64) -> f64 {
        let response_s = (self.round_trip + DETECTION).as_secs_f64();
        match self.form {
            GccForm::Libwebrtc => (self.packet_bits() / (2.0 * response_s)).max(LEAST_SLOPE) * elapsed_s,
            GccForm::Draft => (0.5 * (elapsed_s / response_s).min(1.0) * self.packet_bits()).max(LEAST_STEP),
        }
    }

    /// Returns the size of a packet, in bits. It is assumed that each frame is divided into packets of equal size.
    fn packet_bits(&self) -> f64 {
        let frame = self.bps / FRAMES;
        frame / libm::ceil(frame / PACKET).max(1.0)
    }

    fn decrease(&mut self, now: Instant<SenderClock>) {
        let mut lower = self.decrease * self.acked_bps;
        if self.form == GccForm::Libwebrtc && lower > DECREASE_OFFSET {
            lower -= DECREASE_OFFSET;
        }
        if lower > self.bps
            && let Some(capacity) = self.capacity.bps()
        {
            lower = self.decrease * capacity;
        }
        if self.capacity.is_below(self.acked_bps) {
            self.capacity.forget();
        }
        self.capacity.push(self.acked_bps);
        self.bps = self.clamped(lower.min(self.bps));
        (self.is_holding, self.changed) = (true, Some(now));
    }

    /// Returns `bps` clamped to the rate limits; for NaN, returns the current rate.
    fn clamped(&self, bps: f64) -> f64 {
        if bps.is_nan() { self.bps } else { bps.clamp(self.limits.min().as_bps_f64(), self.limits.max().as_bps_f64()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Rate;

    fn at(millis: u64) -> Instant<SenderClock> {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn aimd(form: GccForm, start_kbps: u64) -> Aimd {
        let limits = RateLimits::within(Rate::from_bps(5000), Rate::from_bps(50_000_000));
        Aimd::new(form, limits.starting_at(Rate::from_bps(1000 * start_kbps)), 0.85)
    }

    /// Returns a controller that has just estimated a capacity equal to its own rate.
    fn near_capacity(form: GccForm, kbps: u64, round_trip_ms: i64) -> Aimd {
        let mut aimd = aimd(form, kbps);
        aimd.capacity.push(aimd.bps);
        aimd.set_round_trip(Span::from_millis(round_trip_ms));
        aimd.changed = Some(at(0));
        aimd
    }

    /// The expected growth of the rate is packet / (2 (rtt + 100 ms)), in kbit/s per second. At 30 frames/s, a frame
    /// has 4 packets of 8333 bits at 1 Mbit/s, and 2 packets of 5000 bits at 300 kbit/s.
    #[test]
    fn near_the_capacity_the_rate_rises_as_computed() {
        for (kbps, expected) in [(1000, [27.8, 20.8, 13.9]), (300, [16.7, 12.5, 8.3])] {
            for (round_trip_ms, slope) in [50, 100, 200].into_iter().zip(expected) {
                let found = near_capacity(GccForm::Libwebrtc, kbps, round_trip_ms).added(1.0) / 1e3;
                assert!((found - slope).abs() < 0.05, "{kbps} kbit/s, {round_trip_ms} ms: {found}");
            }
        }
        let slowest = near_capacity(GccForm::Libwebrtc, 10, 5000).added(1.0);
        assert!((slowest - LEAST_SLOPE).abs() < 1e-9);
    }

    fn seconds_to(aimd: &mut Aimd, goal_kbps: f64, acked: impl Fn(f64) -> f64) -> f64 {
        let mut millis = 0;
        while aimd.bps < 1e3 * goal_kbps {
            let arriving = acked(aimd.bps);
            aimd.update(at(millis), Usage::Normal, Some(arriving));
            millis += 200;
            assert!(millis < 1_000_000, "it never gets there");
        }
        millis as f64 / 1e3
    }

    /// At 8 % per second, doubling the rate takes ln 2 / ln 1.08 = 9.0 s. Growth from 150 to 1000 kbit/s takes
    /// ln(1/0.15) / ln 1.08 = 24.7 s, and from 300 to 1000 kbit/s ln(1/0.3) / ln 1.08 = 15.6 s.
    #[test]
    fn without_a_capacity_the_rate_grows_by_8_percent_a_second() {
        for (from, to, seconds) in [(500, 1000.0, 9.0), (150, 1000.0, 24.7), (300, 1000.0, 15.6)] {
            let found = seconds_to(&mut aimd(GccForm::Libwebrtc, from), to, |bps| bps);
            // The rate is updated every 200 ms. The first update leaves the hold state and adds only 1 kbit/s.
            assert!((found - seconds).abs() < 0.5, "{from} to {to}: {found} for {seconds} s");
        }
    }

    /// At a constant 20.8 kbit/s per second, a rise of 150 kbit/s takes 7.2 s. In this test, the rise takes longer for
    /// two reasons. First, the rate rises by 155 kbit/s. Second, above 864 kbit/s, a frame consists of four packets
    /// instead of three. Therefore the packets are smaller, and the steps of the rate are smaller.
    #[test]
    fn what_a_decrease_took_is_back_after_seven_seconds() {
        let mut aimd = near_capacity(GccForm::Libwebrtc, 1000, 100);
        aimd.update(at(0), Usage::Over, Some(1e6));
        assert!((aimd.bps - 845e3).abs() < 1e-6);
        let found = seconds_to(&mut aimd, 1000.0, |_| 1e6);
        assert!((found - 7.2).abs() < 0.9, "{found}");
    }

    #[test]
    fn overuse_goes_below_what_arrives_and_holds_until_the_queue_is_normal() {
        let mut aimd = aimd(GccForm::Libwebrtc, 1000);
        aimd.update(at(0), Usage::Over, Some(600e3));
        assert!((aimd.bps - 505e3).abs() < 1e-6);
        aimd.update(at(100), Usage::Under, Some(600e3));
        assert!((aimd.bps - 505e3).abs() < 1e-6, "held while the queue empties");
        aimd.update(at(200), Usage::Normal, Some(500e3));
        aimd.update(at(300), Usage::Normal, Some(500e3));
        assert!(aimd.bps > 505e3);
        // While a queue drains, the delivery rate is above the sending rate. Then the new rate is the lower of two
        // rates: the current rate, and 0.85 times the estimated capacity, here 0.85 · 600 = 510 kbit/s.
        aimd.update(at(400), Usage::Over, Some(900e3));
        assert!(aimd.bps <= 507e3, "never up: {}", aimd.bps);
    }

    #[test]
    fn an_increase_ends_at_one_and_a_half_times_what_arrives() {
        for (form, most) in [(GccForm::Libwebrtc, 310e3), (GccForm::Draft, 300e3)] {
            let mut aimd = aimd(form, 250);
            (0..1000).for_each(|step| aimd.update(at(100 * step), Usage::Normal, Some(200e3)));
            assert!((aimd.bps - most).abs() < 1e-6, "{}", aimd.bps);
            // If the delivery rate falls, the limit up to which the rate may be increased falls. The current rate is
            // kept, although it is above this limit.
            aimd.update(at(100_100), Usage::Normal, Some(100e3));
            assert!((aimd.bps - most).abs() < 1e-6);
        }
    }

    #[test]
    fn a_second_decrease_waits_for_a_round_trip_unless_the_rate_collapsed() {
        let mut aimd = aimd(GccForm::Libwebrtc, 1000);
        aimd.set_round_trip(Span::from_millis(80));
        assert!(aimd.may_decrease(at(0), Some(900e3)));
        aimd.update(at(0), Usage::Over, Some(1e6));
        let may = |millis, acked| aimd.may_decrease(at(millis), Some(acked));
        assert_eq!([may(79, 800e3), may(80, 800e3), may(10, 422e3), may(10, 423e3)], [false, true, true, false]);
    }

    #[test]
    fn the_drafts_step_is_half_a_packet_for_each_response_time() {
        let aimd = near_capacity(GccForm::Draft, 1000, 100);
        assert!((aimd.added(0.1) - 0.5 * 0.5 * 1e6 / 120.0).abs() < 1e-6);
        assert!((aimd.added(5.0) - 0.5 * 1e6 / 120.0).abs() < 1e-6);
        assert!((aimd.added(0.001) - 1000.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn it_stays_between_its_limits_and_grows_by_no_more_than_a_second_allows(
            steps in prop::collection::vec((0u64..5000, 0..3u8, any::<f64>()), 1..200),
            draft in any::<bool>(),
        ) {
            let mut aimd = aimd(if draft { GccForm::Draft } else { GccForm::Libwebrtc }, 300);
            let mut millis: u64 = 0;
            for (step, usage, acked) in steps {
                millis += step;
                let before = aimd.bps;
                let usage = [Usage::Over, Usage::Normal, Usage::Under][usize::from(usage)];
                aimd.update(at(millis), usage, Some(acked));
                prop_assert!((5000.0..=50e6).contains(&aimd.bps), "{}", aimd.bps);
                if usage == Usage::Normal {
                    prop_assert!(aimd.bps <= before * GROWTH + 1000.0 + 4000.0 * 5.0 + before.sqrt() * 100.0 * 5.0);
                } else {
                    prop_assert!(aimd.bps <= before, "only a path that is not overused raises");
                }
            }
        }
    }
}
