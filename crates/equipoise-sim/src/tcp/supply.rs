use equipoise::units::{Size, Span};

use super::Supply;
use super::written::Written;
use crate::Time;

/// The data of the application, in segments.
#[derive(Clone, Debug)]
pub(super) struct Application {
    supply: Supply,
    /// The bytes that the application has written, for [`Supply::Written`].
    written: Written,
    payload: Size,
    start: Time,
    /// The total number of segments; `None` if it is unlimited or not known yet.
    end: Option<u64>,
    /// Size of the data in the last segment, if the number of the last segment is known.
    last: Size,
}

impl Application {
    pub(super) fn new(supply: Supply, payload: Size, start: Time) -> Self {
        let (end, last) = match &supply {
            Supply::Unlimited | Supply::Rate(_) | Supply::Written => (None, payload),
            Supply::Content(content) => (Some(content.packets()), payload),
            Supply::Transfer(data) => {
                let (data, full) = (data.as_bytes(), payload.as_bytes());
                let rest = data % full;
                (Some(data.div_ceil(full)), if rest == 0 { payload } else { Size::from_bytes(rest) })
            }
        };
        Self { supply, written: Written::new(payload), payload, start, end, last }
    }

    /// Whether the data of segment `number` is available at `now`.
    pub(super) fn has(&self, number: u64, now: Time) -> bool {
        self.end.is_none_or(|end| number < end) && self.ready_at(number).is_some_and(|at| at <= now)
    }

    /// Number of segments available at `now`, counted from segment `number`.
    pub(super) fn available(&self, number: u64, now: Time) -> u64 {
        let ready = match &self.supply {
            Supply::Unlimited | Supply::Transfer(_) => u64::MAX,
            Supply::Written => self.written.segments(),
            Supply::Rate(rate) => {
                let elapsed_s = (now - self.start).as_secs_f64().max(0.0);
                (elapsed_s * rate.as_bps_f64() / self.payload.as_bits() as f64) as u64
            }
            Supply::Content(content) => content.ready(now - self.start),
        };
        ready.min(self.end.unwrap_or(u64::MAX)).saturating_sub(number)
    }

    /// The bytes that the application has written.
    pub(super) const fn written(&self) -> &Written {
        &self.written
    }

    /// The bytes that the application has written; the caller can add bytes.
    pub(super) const fn written_mut(&mut self) -> &mut Written {
        &mut self.written
    }

    /// When the data of segment `number` is available, if this is known.
    pub(super) fn next_at(&self, number: u64) -> Option<Time> {
        if self.end.is_none_or(|end| number < end) { self.ready_at(number) } else { None }
    }

    fn ready_at(&self, number: u64) -> Option<Time> {
        let wait = match &self.supply {
            Supply::Unlimited | Supply::Transfer(_) => Some(Span::ZERO),
            Supply::Written => return (number < self.written.segments()).then_some(self.start),
            Supply::Rate(rate) => {
                let data = Size::from_bytes(self.payload.as_bytes().saturating_mul(number.saturating_add(1)));
                rate.time_to_send(data)
            }
            Supply::Content(content) => content.ready_at(number),
        };
        Some(self.start + wait.unwrap_or(Span::MAX))
    }

    /// Ends the data: segment `next` and all later segments will not exist.
    pub(super) fn stop(&mut self, next: u64) {
        if self.end.is_none_or(|end| next < end) {
            (self.end, self.last) = (Some(next), self.payload);
        }
    }

    /// Size of the data in segment `number`.
    pub(super) fn payload(&self, number: u64) -> Size {
        match self.supply {
            Supply::Written => self.written.payload(number),
            _ if self.end.is_some_and(|end| number + 1 == end) => self.last,
            _ => self.payload,
        }
    }

    /// Whether the data ends before segment `next`.
    pub(super) fn ends_at(&self, next: u64) -> bool {
        self.end.is_some_and(|end| end <= next)
    }
}
