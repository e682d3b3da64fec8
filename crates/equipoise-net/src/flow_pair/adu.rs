use equipoise_pair::tpba::Period;

/// A received application data unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adu {
    /// Its number, from 0.
    pub number: u64,
    /// ADUs before it that the network lost.
    pub missing: u64,
    /// The transport that carried it.
    pub over: Period,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Why a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairEnd {
    /// The sender ended it, and all ADUs sent over TCP have arrived.
    Finished,
    /// The connection was lost.
    Lost,
    /// The TCP stream is not a flow-pair stream.
    Garbled,
}
