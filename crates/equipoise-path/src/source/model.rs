use alloc::boxed::Box;
use core::fmt;

use rand_distr::{Distribution, Exp1};

use equipoise::random::Generator;
use equipoise::units::{Size, Span};

/// A model of background traffic: it determines the gaps between the packets of a [`Source`](super::Source).
///
/// Times are in nanoseconds since the origin of the source. A model must draw random numbers only from the generator of
/// the source, so that the same seed yields the same departures.
pub trait TrafficModel: Send + Sync + fmt::Debug {
    /// Returns the next gap between two packets, as the number of bits that could be sent in the gap at the rate of the
    /// source. If packets are evenly spaced, each gap equals the packet size, `packet`.
    ///
    /// A gap is measured in bits and not in time, so that a change of the rate also applies to the gap in progress. If
    /// the returned value is `NaN`, zero or negative, the source uses `packet` instead.
    fn gap(&mut self, packet: Size, random: &mut Generator) -> f64;

    /// Fills `gaps` with the next gaps between packets. A source requests several gaps in advance.
    fn gaps(&mut self, packet: Size, random: &mut Generator, gaps: &mut [f64]) {
        gaps.fill_with(|| self.gap(packet, random));
    }

    /// Returns the departure time of the packet that is due at `due_ns`. A model with silences may return a later time.
    /// If the returned time is earlier, or `NaN`, the packet leaves at `due_ns`.
    fn departure_ns(&mut self, due_ns: f64, _random: &mut Generator) -> f64 {
        due_ns
    }

    /// Whether [`TrafficModel::departure_ns`] may return a time later than `due_ns`. If so, `departure_ns` must be
    /// called for each packet.
    fn has_silences(&self) -> bool {
        true
    }

    /// Called when the host stalled for `late_ns`. The model must add `late_ns` to all times that it stores.
    fn on_stall(&mut self, _late_ns: f64) {}

    /// Mean rate of the traffic, as a share of the rate of the source, 0 to 1.
    fn mean_share(&self) -> f64 {
        1.0
    }
}

/// A traffic model on the heap, as a [`Source`](super::Source) stores it.
pub type BoxedTraffic = Box<dyn TrafficModel>;

/// The built-in models of background traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Exponentially distributed gaps between packets.
    Poisson,
    /// Equal gaps between packets.
    Constant,
    /// Bursts with equal gaps between packets, separated by silences. The lengths of bursts and silences are
    /// exponentially distributed.
    ///
    /// The rate of the source is the rate within a burst; the mean rate is `rate · on / (on + off)`.
    OnOff {
        /// Mean length of a burst; above zero.
        on: Span,
        /// Mean length of a silence; above zero.
        off: Span,
    },
}

impl From<Traffic> for BoxedTraffic {
    fn from(traffic: Traffic) -> Self {
        match traffic {
            Traffic::Poisson => Box::new(Poisson),
            Traffic::Constant => Box::new(Constant),
            Traffic::OnOff { on, off } => Box::new(OnOff { on, off, burst_end_ns: 0.0 }),
        }
    }
}

#[derive(Debug)]
struct Poisson;

impl TrafficModel for Poisson {
    fn gap(&mut self, packet: Size, random: &mut Generator) -> f64 {
        exponential(packet.as_bits() as f64, random)
    }

    fn has_silences(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct Constant;

impl TrafficModel for Constant {
    fn gap(&mut self, packet: Size, _: &mut Generator) -> f64 {
        packet.as_bits() as f64
    }

    fn has_silences(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct OnOff {
    on: Span,
    off: Span,
    burst_end_ns: f64,
}

impl TrafficModel for OnOff {
    fn gap(&mut self, packet: Size, _: &mut Generator) -> f64 {
        packet.as_bits() as f64
    }

    fn departure_ns(&mut self, due_ns: f64, random: &mut Generator) -> f64 {
        let mut departure_ns = due_ns;
        while departure_ns > self.burst_end_ns {
            let silence = exponential(self.off.as_nanos() as f64, random);
            let burst = exponential(self.on.as_nanos() as f64, random);
            departure_ns = departure_ns.max(self.burst_end_ns) + silence;
            self.burst_end_ns = departure_ns + burst;
        }
        departure_ns
    }

    fn on_stall(&mut self, late_ns: f64) {
        self.burst_end_ns += late_ns;
    }

    fn mean_share(&self) -> f64 {
        self.on.as_secs_f64() / (self.on + self.off).as_secs_f64()
    }
}

/// Draws an exponentially distributed number by the ziggurat method (Marsaglia 2000), which rarely computes a
/// logarithm.
pub(super) fn exponential(mean: f64, random: &mut Generator) -> f64 {
    let standard: f64 = Exp1.sample(random);
    standard * mean
}
