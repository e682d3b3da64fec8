use crate::units::Rate;

/// Capacity and available bandwidth of a path, as a measurement between its ends found them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandwidthEstimate {
    /// K: what the narrowest link carries.
    pub capacity: Measured,
    /// A: what the others leave of it to this flow.
    pub available: Measured,
}

/// A rate and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The rate.
    pub rate: Rate,
    /// 95 % confidence interval of the rate over the recent measurements; `None` while there are too few.
    pub interval: Option<(Rate, Rate)>,
}

impl Measured {
    /// A rate that is known for sure, as a world that sees its own links knows it.
    pub const fn exact(rate: Rate) -> Self {
        Self { rate, interval: Some((rate, rate)) }
    }
}
