/// Mean and variance of the one-way delays of an interval's packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelaySummary {
    /// Mean one-way delay, in seconds. If the clocks are not synchronised, the value includes the offset between the
    /// clocks and may be negative.
    pub mean_s: f64,
    /// Variance (divisor n − 1), in s²; zero or more.
    pub variance_s2: f64,
    /// Number of packets; two or more.
    pub samples: u64,
}
