use crate::units::Span;

/// Interarrival jitter `J`, the smoothed absolute difference `|D|` of the transit times of successive packets.
///
/// Source: RFC 3550, Sec. 6.4.1: `J += (|D| - J) / 16`.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterarrivalJitter {
    last_transit: Option<Span>,
    jitter_s: f64,
}

impl InterarrivalJitter {
    /// Weight of one difference in the average (RFC 3550, Sec. 6.4.1).
    const GAIN: f64 = 1.0 / 16.0;

    /// Records a packet with transit time `transit`; the clocks of sender and receiver need not be synchronised.
    pub fn push(&mut self, transit: Span) {
        if let Some(last) = self.last_transit.replace(transit) {
            self.jitter_s += ((transit - last).abs().as_secs_f64() - self.jitter_s) * Self::GAIN;
        }
    }

    /// Returns the jitter in seconds; zero before the second packet, as in RFC 3550.
    pub const fn as_secs_f64(&self) -> f64 {
        self.jitter_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_stream_has_none_and_one_step_counts_a_sixteenth() {
        let mut jitter = InterarrivalJitter::default();
        jitter.push(Span::from_millis(5));
        jitter.push(Span::from_millis(5));
        assert!(jitter.as_secs_f64() < 1e-15);
        jitter.push(Span::from_millis(21));
        assert!((jitter.as_secs_f64() - 0.001).abs() < 1e-12, "16 ms / 16");
    }
}
