/// A part of the paper that can be run separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Table 1, Fig. 3 and 4: one source.
    Table1,
    /// Table 4 and Fig. 5: six sources over one bottleneck.
    Table4,
    /// Table 6 and Fig. 10: four bottlenecks in series.
    Table6,
    /// Fig. 6 to 8: different buffer sizes.
    Fig6,
}

impl Part {
    /// All parts of the paper.
    pub const ALL: [Self; 4] = [Self::Table1, Self::Table4, Self::Table6, Self::Fig6];
}
