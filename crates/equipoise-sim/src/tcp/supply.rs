use equipoise::units::{Size, Span};

use super::Supply;
use crate::Time;

/// What the application has given so far, in segments.
#[derive(Clone, Debug)]
pub(super) struct Application {
    supply: Supply,
    payload: Size,
    start: Time,
    /// No segment from this one on, once it is known which.
    end: Option<u64>,
    /// Data of the last segment, where it is known which that is.
    last: Size,
}

impl Application {
    pub(super) fn new(supply: Supply, payload: Size, start: Time) -> Self {
        let (end, last) = match supply {
            Supply::Unlimited | Supply::Rate(_) => (None, payload),
            Supply::Transfer(data) => {
                let (data, full) = (data.as_bytes(), payload.as_bytes());
                let rest = data % full;
                (Some(data.div_ceil(full)), if rest == 0 { payload } else { Size::from_bytes(rest) })
            }
        };
        Self { supply, payload, start, end, last }
    }

    /// Whether segment `number` can be sent at `now`.
    pub(super) fn has(&self, number: u64, now: Time) -> bool {
        self.end.is_none_or(|end| number < end) && self.ready_at(number) <= now
    }

    /// How many segments from `number` on can be sent at `now`.
    pub(super) fn available(&self, number: u64, now: Time) -> u64 {
        let ready = match self.supply {
            Supply::Unlimited | Supply::Transfer(_) => u64::MAX,
            Supply::Rate(rate) => {
                let elapsed_s = (now - self.start).as_secs_f64().max(0.0);
                (elapsed_s * rate.as_bps_f64() / self.payload.as_bits() as f64) as u64
            }
        };
        ready.min(self.end.unwrap_or(u64::MAX)).saturating_sub(number)
    }

    /// When segment `number` will be there, if it ever is.
    pub(super) fn next_at(&self, number: u64) -> Option<Time> {
        self.end.is_none_or(|end| number < end).then(|| self.ready_at(number))
    }

    fn ready_at(&self, number: u64) -> Time {
        let Supply::Rate(rate) = self.supply else { return self.start };
        let data = Size::from_bytes(self.payload.as_bytes().saturating_mul(number.saturating_add(1)));
        self.start + rate.time_to_send(data).unwrap_or(Span::MAX)
    }

    /// Nothing from segment `next` on.
    pub(super) fn stop(&mut self, next: u64) {
        if self.end.is_none_or(|end| next < end) {
            (self.end, self.last) = (Some(next), self.payload);
        }
    }

    /// Data of segment `number`.
    pub(super) fn payload(&self, number: u64) -> Size {
        if self.end.is_some_and(|end| number + 1 == end) { self.last } else { self.payload }
    }

    /// Whether all data up to segment `next` is all there will ever be.
    pub(super) fn ends_at(&self, next: u64) -> bool {
        self.end.is_some_and(|end| end <= next)
    }
}
