/// A part of the paper that can be run separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Fig. 3: end-to-end delay.
    Fig3,
    /// Fig. 4: throughput.
    Fig4,
    /// Beyond the paper: Wi-Fi and cellular paths whose capacities were measured at the same time. This part needs the
    /// measured data.
    Pairs,
    /// Beyond the paper: more paths, paths that fail, and parameters that may change how the traffic is divided.
    Beyond,
}

impl Part {
    /// All parts except the one that needs measured data.
    pub const ALL: [Self; 3] = [Self::Fig3, Self::Fig4, Self::Beyond];
}
