//! Bytes ↔ meaning of what a flow pair adds to RTP and TCP: the first words of both ends, and the heads of its units.
//!
//! Everything here may come from a stranger: lengths are checked before anything is read, and nothing panics.
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod adu;
mod hello;

use thiserror::Error;

pub use adu::{AduHeader, AduPart};
pub use hello::PairHello;

/// Why bytes are not a flow pair's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PairWireError {
    /// The bytes end before the head of a part does.
    #[error("the head of an ADU's part needs {need} bytes, {have} are there", need = AduPart::LEN)]
    Truncated {
        /// What is there.
        have: usize,
    },
    /// No honest flow pair has such a unit, or such a part of one.
    #[error("ADU {number} of {length} bytes, with a part from byte {offset} on; units have {LONGEST} bytes at most", LONGEST = AduHeader::LONGEST)]
    Adu {
        /// The unit's number.
        number: u64,
        /// Its length as found.
        length: u32,
        /// Where the part begins.
        offset: u32,
    },
    /// A byte stream does not begin as that of a flow pair does.
    #[error("a stream that begins with {found:02x?} is no flow pair's, which begins with 45 51 46 50 (EQFP), 01, 00")]
    NoPair {
        /// Its first bytes.
        found: [u8; 6],
    },
}
