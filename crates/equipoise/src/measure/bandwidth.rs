use crate::units::Rate;

/// Capacity and available bandwidth of a path, as measured between its ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandwidthEstimate {
    /// K: the rate of the narrowest link.
    pub capacity: Measured,
    /// A: the rate that cross traffic leaves to this flow.
    pub available: Measured,
}

/// A rate and its confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The rate.
    pub rate: Rate,
    /// 95 % confidence interval of the rate over the recent measurements; `None` if there are too few.
    pub interval: Option<(Rate, Rate)>,
}

impl Measured {
    /// A rate that is known exactly, as in a simulator that knows its links.
    pub const fn exact(rate: Rate) -> Self {
        Self { rate, interval: Some((rate, rate)) }
    }
}
