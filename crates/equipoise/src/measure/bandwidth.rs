use crate::units::Rate;

/// Capacity and available bandwidth of a path, as measured between its two endpoints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandwidthEstimate {
    /// K: the rate of the slowest link.
    pub capacity: Measured,
    /// A: the rate that cross traffic leaves to this flow.
    pub available: Measured,
}

/// A measured rate and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The measured rate.
    pub rate: Rate,
    /// 95 % confidence interval of the rate over the recent measurements; `None` if there are too few measurements.
    pub interval: Option<(Rate, Rate)>,
}

impl Measured {
    /// Returns a rate that is known exactly, as in a simulator that knows its links.
    pub const fn exact(rate: Rate) -> Self {
        Self { rate, interval: Some((rate, rate)) }
    }
}
