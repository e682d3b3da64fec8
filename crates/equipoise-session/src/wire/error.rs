use thiserror::Error;

/// Why bytes cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end before the field does.
    #[error("{field} at byte {offset} needs {need} bytes, {have} are left")]
    Truncated {
        /// The field that was read.
        field: &'static str,
        /// Where the field starts.
        offset: usize,
        /// Length of the field.
        need: usize,
        /// Bytes available.
        have: usize,
    },
    /// The version is not that of RTP.
    #[error("version {found} at byte {offset}, where RTP and RTCP have 2")]
    Version {
        /// The version found.
        found: u8,
        /// Offset of the byte with the version.
        offset: usize,
    },
    /// The padding is longer than the packet, zero, or not on the last packet of a compound.
    #[error("padding of {found} bytes does not fit into {have}")]
    Padding {
        /// The padding found.
        found: usize,
        /// Bytes available for it.
        have: usize,
    },
    /// An extension does not have the expected format.
    #[error("an extension of {found} bytes is not of the form {extension}, which has {need} bytes and its own type")]
    Extension {
        /// The expected format.
        extension: &'static str,
        /// The length found.
        found: usize,
        /// The length of that format.
        need: usize,
    },
    /// A header extension does not consist of elements, or has no room for another one.
    #[error(
        "a header extension of profile {found:#06x} takes no further element; RFC 8285's 0xbede or 0x1000 would, with room"
    )]
    Profile {
        /// The profile found.
        found: u16,
    },
    /// Another element already uses the identifier of the sending time.
    #[error("extension identifier {id} is in use; let the other program use another one")]
    IdentifierInUse {
        /// The identifier.
        id: u8,
    },
    /// A count is larger than its format allows.
    #[error("{field} at byte {offset} is {found}, {most} are allowed")]
    Count {
        /// The count field.
        field: &'static str,
        /// Offset of the count field.
        offset: usize,
        /// The count found.
        found: usize,
        /// The maximum count.
        most: usize,
    },
    /// The statistics of a delay report are invalid.
    #[error("a delay report of {samples} samples with variance bits {variance_bits:#010x}")]
    Statistics {
        /// The count of samples found.
        samples: u16,
        /// The variance as found.
        variance_bits: u32,
    },
}
