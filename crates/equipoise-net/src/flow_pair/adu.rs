use equipoise_pair::tpba::Period;

/// A received application data unit (ADU).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adu {
    /// The ADU's number in the flow, from 0.
    pub number: u64,
    /// Number of ADUs that the network lost directly before this ADU.
    pub missing: u64,
    /// The transport that carried the ADU.
    pub over: Period,
    /// The bytes of the ADU.
    pub data: Vec<u8>,
}

/// Why a flow pair ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairEnd {
    /// The sender ended the flow, and all ADUs sent over TCP have arrived.
    Finished,
    /// The TCP connection was lost.
    Lost,
    /// The data on the TCP connection is not that of a flow pair.
    Garbled,
}
