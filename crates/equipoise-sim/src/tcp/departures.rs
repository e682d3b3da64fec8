use equipoise::measure::{BandwidthEstimate, InlineMeasurement};
use equipoise::pace::{Pacer, Readiness};
use equipoise::units::{Rate, Size};

use crate::{SimClock, Time};

/// Decides when the sender sends the segments that the windows allow. Segments are paced, or are spaced by the
/// bandwidth measurement.
pub(super) struct Departures {
    pacer: Pacer<SimClock>,
    measurement: Option<InlineMeasurement>,
    measured: Option<BandwidthEstimate>,
    held: Option<Time>,
}

impl Departures {
    pub(super) const fn new(measurement: Option<InlineMeasurement>) -> Self {
        Self { pacer: Pacer::new(Rate::ZERO), measurement, measured: None, held: None }
    }

    /// Sets the wake-up time; `None` for no wake-up.
    pub(super) const fn hold(&mut self, at: Option<Time>) {
        self.held = at;
    }

    /// The wake-up time: when the next delayed segment may leave.
    pub(super) const fn wake(&self) -> Option<Time> {
        self.held
    }

    /// Clears the wake-up time if it has come.
    pub(super) fn on_timer(&mut self, now: Time) {
        self.held = self.held.filter(|held| *held > now);
    }

    /// Whether a segment may leave at `now` if the pacing rate is `rate`. `room` is the number of new segments that the
    /// windows and the application allow; `None` for a retransmission, which the bandwidth measurement does not delay.
    pub(super) fn allow(&mut self, now: Time, rate: Option<Rate>, room: Option<u64>) -> bool {
        if let (Some(measurement), Some(room)) = (&mut self.measurement, room) {
            let at: Time = measurement.next_departure(now.assume_clock(), room).assume_clock();
            if at > now {
                self.held = Some(at);
                return false;
            }
            if measurement.is_streaming() {
                return true;
            }
        }
        let Some(rate) = rate else { return true };
        self.pacer.set_rate(rate);
        match self.pacer.poll(now) {
            Readiness::Now => return true,
            Readiness::At(at) => self.held = Some(at),
            Readiness::Never => {}
        }
        false
    }

    /// Records that segment `number` was sent. `again` says whether it was a retransmission.
    pub(super) fn on_sent(&mut self, now: Time, (number, again): (u64, bool), size: Size, rate: Option<Rate>) {
        if rate.is_some() {
            // A segment leaves after its due time only if the windows, the application or the measurement delayed it.
            // The pacer must not send faster to compensate for this delay.
            self.pacer.rested_until(now);
            self.pacer.on_departure(now, size);
        }
        if let Some(measurement) = &mut self.measurement {
            measurement.on_sent(now.assume_clock(), number, again);
        }
    }

    /// Records that all segments below `next` are acknowledged. Returns a new bandwidth estimate, if there is one.
    pub(super) fn on_ack(&mut self, now: Time, next: u64) -> Option<BandwidthEstimate> {
        let measurement = self.measurement.as_mut()?;
        measurement.on_ack(now.assume_clock(), next);
        let estimate = measurement.take_estimate();
        self.measured = estimate.or(self.measured);
        estimate
    }

    /// The latest bandwidth estimate.
    pub(super) const fn measured(&self) -> Option<BandwidthEstimate> {
        self.measured
    }

    /// Records that a segment was lost.
    pub(super) fn on_loss(&mut self) {
        if let Some(measurement) = &mut self.measurement {
            measurement.on_loss();
        }
    }

    /// Records that the retransmission timer expired.
    pub(super) fn on_timeout(&mut self) {
        if let Some(measurement) = &mut self.measurement {
            measurement.on_timeout();
            self.measured = None;
        }
    }
}
