//! Wire format that a flow pair adds to RTP and TCP: the hello messages of sender and receiver, and the headers of
//! ADUs.
//!
//! All input may come from an attacker: lengths are checked before bytes are read, and nothing panics.
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod adu;
mod hello;

use thiserror::Error;

pub use adu::{AduHeader, AduPart};
pub use hello::PairHello;

/// The error that bytes are not valid for a flow pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PairWireError {
    /// The bytes end before the end of a header.
    #[error("the header of an ADU's part needs {need} bytes, but only {have} are present", need = AduPart::LEN)]
    Truncated {
        /// The number of bytes present.
        have: usize,
    },
    /// A correct flow pair never sends this ADU or part.
    #[error("ADU {number} of {length} bytes, with a part at offset {offset}; ADUs have at most {LONGEST} bytes", LONGEST = AduHeader::LONGEST)]
    Adu {
        /// The number of the ADU.
        number: u64,
        /// The ADU's length according to the header.
        length: u32,
        /// The offset of the part.
        offset: u32,
    },
    /// The byte stream does not begin with the hello of a flow pair.
    #[error(
        "a stream that begins with {found:02x?} is not a flow pair; a flow pair begins with 45 51 46 50 (EQFP), 01, 00"
    )]
    NoPair {
        /// The stream's first bytes.
        found: [u8; 6],
    },
}
