use alloc::boxed::Box;
use core::fmt;

use rand_distr::{Distribution, Exp1};

use equipoise::random::Generator;
use equipoise::units::{Size, Span};

/// A model of background traffic: the gaps between the packets of a [`Source`](super::Source).
///
/// Times are in nanoseconds since the origin of the source. Random numbers come only from the generator of the source,
/// so that the same seed yields the same departures.
pub trait TrafficModel: Send + Sync + fmt::Debug {
    /// The next gap, in bits that are sent at the rate of the source: for even spacing, a gap equals the size of a
    /// packet, `packet`.
    ///
    /// A gap is measured in bits so that a step of the rate applies in mid-gap. `NaN`, zero and negative values count
    /// as an even gap.
    fn gap(&mut self, packet: Size, random: &mut Generator) -> f64;

    /// Draws the gaps after the next packets: a source requests several in advance.
    fn gaps(&mut self, packet: Size, random: &mut Generator, gaps: &mut [f64]) {
        gaps.fill_with(|| self.gap(packet, random));
    }

    /// When the packet that is due at `due_ns` leaves; a model with silences returns a later time. Earlier times and
    /// `NaN` count as `due_ns`.
    fn departure_ns(&mut self, due_ns: f64, _random: &mut Generator) -> f64 {
        due_ns
    }

    /// Whether [`TrafficModel::departure_ns`] may return a later time, and must be called for each packet.
    fn has_silences(&self) -> bool {
        true
    }

    /// Called when the host stalled: all times kept by the model move by `late_ns`.
    fn on_stall(&mut self, _late_ns: f64) {}

    /// Mean rate of the model relative to the rate of the source, 0 to 1.
    fn mean_share(&self) -> f64 {
        1.0
    }
}

/// A traffic model on the heap, as a source stores it.
pub type BoxedTraffic = Box<dyn TrafficModel>;

/// The built-in models of background traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Exponential gaps between packets.
    Poisson,
    /// Even gaps.
    Constant,
    /// Even gaps during bursts of exponential length, with silences of exponential length in between.
    ///
    /// The source's rate is the rate within a burst; the mean rate is `rate · on / (on + off)`.
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

/// An exponentially distributed number, by the ziggurat method of Marsaglia 2000, which rarely needs a logarithm.
pub(super) fn exponential(mean: f64, random: &mut Generator) -> f64 {
    let standard: f64 = Exp1.sample(random);
    standard * mean
}
