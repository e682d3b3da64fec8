/// A part of the paper that can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Fig. 3: end-to-end delay.
    Fig3,
    /// Fig. 4: throughput.
    Fig4,
    /// Beyond the paper: capacities measured on Wi-Fi and cellular paths at the same time. This part needs the measured
    /// data.
    Pairs,
    /// Beyond the paper: more paths, paths that fail, and parameters on which the division depends.
    Beyond,
}

impl Part {
    /// All parts that need no measured data.
    pub const ALL: [Self; 3] = [Self::Fig3, Self::Fig4, Self::Beyond];
}
