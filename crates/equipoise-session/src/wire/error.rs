use thiserror::Error;

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end before the field does.
    #[error("{field} at byte {offset} needs {need} bytes, {have} are left")]
    Truncated {
        /// The field that was being read.
        field: &'static str,
        /// Where it begins.
        offset: usize,
        /// Its length.
        need: usize,
        /// What is there.
        have: usize,
    },
    /// The version is not that of RTP.
    #[error("version {found} at byte {offset}, where RTP and RTCP have 2")]
    Version {
        /// The version found.
        found: u8,
        /// Where it stands.
        offset: usize,
    },
    /// The padding is longer than the packet, zero, or not on the last packet of a compound.
    #[error("padding of {found} bytes does not fit into {have}")]
    Padding {
        /// The padding found.
        found: usize,
        /// What there was room for.
        have: usize,
    },
    /// An extension is not of this form.
    #[error("an extension of {found} bytes is no {extension}, which has {need} and its own type")]
    Extension {
        /// The form that was expected.
        extension: &'static str,
        /// Its length.
        found: usize,
        /// The length that form has.
        need: usize,
    },
    /// A header extension is not made of elements, or has no room for one more.
    #[error(
        "a header extension of profile {found:#06x} takes no further element; RFC 8285's 0xbede or 0x1000 would, with room"
    )]
    Profile {
        /// The profile found.
        found: u16,
    },
    /// An element has the identifier that the sending time goes under.
    #[error("extension identifier {id} is in use; let the other program use another one")]
    IdentifierInUse {
        /// The identifier.
        id: u8,
    },
    /// A count is larger than its format allows.
    #[error("{field} at byte {offset} is {found}, {most} are allowed")]
    Count {
        /// The field that counts.
        field: &'static str,
        /// Where it begins.
        offset: usize,
        /// The count found.
        found: usize,
        /// The most that there may be.
        most: usize,
    },
    /// The statistics of a delay report make no sense.
    #[error("a delay report of {samples} samples with variance bits {variance_bits:#010x}")]
    Statistics {
        /// The count of samples found.
        samples: u16,
        /// The variance as found.
        variance_bits: u32,
    },
}
