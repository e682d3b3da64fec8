use equipoise_pair::tpba::Period;

/// An application data unit that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adu {
    /// Its number, from 0.
    pub number: u64,
    /// ADUs that are missing before it, which the network lost.
    pub missing: u64,
    /// Which transport brought it.
    pub over: Period,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Why a flow is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairEnd {
    /// The sender ended it, and all that TCP carried has come.
    Finished,
    /// The connection was lost.
    Lost,
    /// The stream over TCP was none of a flow pair's.
    Garbled,
}
