use thiserror::Error;

/// Why bytes cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end before the end of a field.
    #[error("{field} at byte {offset} needs {need} bytes, {have} are left")]
    Truncated {
        /// The field that was read.
        field: &'static str,
        /// Offset of the field's first byte.
        offset: usize,
        /// Length of the field in bytes.
        need: usize,
        /// Number of bytes that are available for the field.
        have: usize,
    },
    /// The version is not 2, the version of RTP and RTCP.
    #[error("version {found} at byte {offset}, where RTP and RTCP have 2")]
    Version {
        /// The version in the packet.
        found: u8,
        /// Offset of the byte with the version.
        offset: usize,
    },
    /// The padding is empty, or longer than the packet. RTCP has two further rules: the length of the padding must be a
    /// multiple of four bytes, and only the last packet of a compound may have padding. Transport-wide feedback is
    /// exempt from these two rules.
    #[error("padding of {found} bytes does not fit into {have}")]
    Padding {
        /// The length of the padding that the packet states, in bytes.
        found: usize,
        /// Number of bytes in the packet that could be padding.
        have: usize,
    },
    /// An extension does not have the expected format.
    #[error("an extension of {found} bytes is not of the form {extension}, which has {need} bytes and its own type")]
    Extension {
        /// The expected format.
        extension: &'static str,
        /// The actual length in bytes.
        found: usize,
        /// The minimum length of the expected format, in bytes.
        need: usize,
    },
    /// No element can be added to a header extension. Either its profile is not one of RFC 8285, or the elements and
    /// the padding do not end at the end of the extension, or the extension has no room for a further element.
    #[error(
        "a header extension of profile {found:#06x} takes no further element; RFC 8285's 0xbede or 0x1000 would, with room"
    )]
    Profile {
        /// The profile of the header extension.
        found: u16,
    },
    /// Another element of the header extension already has an identifier that we need.
    #[error("extension identifier {id} is in use; let the other program use another one")]
    IdentifierInUse {
        /// The identifier in question.
        id: u8,
    },
    /// A count is larger than the format allows.
    #[error("{field} at byte {offset} is {found}, {most} are allowed")]
    Count {
        /// The name of the count field.
        field: &'static str,
        /// Offset of the count field.
        offset: usize,
        /// The count in the packet.
        found: usize,
        /// The maximum count.
        most: usize,
    },
    /// The statistics of a delay report are invalid.
    #[error("a delay report of {samples} samples with variance bits {variance_bits:#010x}")]
    Statistics {
        /// The number of samples in the report.
        samples: u16,
        /// The bits of the variance in the report.
        variance_bits: u32,
    },
}
