use alloc::vec::Vec;

use super::PairWireError;

/// Header of an application data unit (ADU) in the byte stream of a flow pair: 12 bytes.
///
/// | bits | content |
/// | --- | --- |
/// | 64 | number of the ADU, from 0, counted over both transports |
/// | 32 | length of the ADU in bytes |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AduHeader {
    /// Number of the ADU, from 0, counted over both transports.
    pub number: u64,
    /// Length of the ADU in bytes, [`AduHeader::LONGEST`] at most.
    pub length: u32,
}

/// Header of each part of an application data unit (ADU) in the RTP packets of a flow pair: 20 bytes.
///
/// | bits | content |
/// | --- | --- |
/// | 96 | the ADU's header |
/// | 32 | offset of the part in the ADU |
/// | 32 | number of ADUs that RTP sent before this ADU, since the last switch from TCP to RTP |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AduPart {
    /// The ADU that contains the part.
    pub adu: AduHeader,
    /// Offset of the part in the ADU, in bytes.
    pub offset: u32,
    /// Number of ADUs sent before this ADU in the same running period.
    pub since_switch: u32,
}

impl AduHeader {
    /// Length of the encoded header in bytes.
    pub const LEN: usize = 12;
    /// Maximum length of an ADU, in bytes. Our choice: enough for a compressed video picture. At a few Mbit/s, a longer
    /// ADU would delay the following ADUs by seconds.
    pub const LONGEST: u32 = 1 << 20;

    /// Encodes the header.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (number, length) = bytes.split_at_mut(8);
        number.copy_from_slice(&self.number.to_be_bytes());
        length.copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// [`PairWireError::Adu`] if the ADU is too long, or has the largest number, which no ADU can follow.
    pub fn parse(bytes: [u8; Self::LEN]) -> Result<Self, PairWireError> {
        let (number, length) = bytes.split_at(8);
        let number = u64::from_be_bytes(number.try_into().unwrap_or_default());
        let length = u32::from_be_bytes(length.try_into().unwrap_or_default());
        let fits = length <= Self::LONGEST && number < u64::MAX;
        if fits { Ok(Self { number, length }) } else { Err(PairWireError::Adu { number, length, offset: 0 }) }
    }
}

impl AduPart {
    /// Length of the part's header in bytes.
    pub const LEN: usize = AduHeader::LEN + 8;

    /// Appends the part's header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.adu.to_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&self.since_switch.to_be_bytes());
    }

    /// Parses the header of a part and returns it with the part's bytes.
    ///
    /// # Errors
    /// [`PairWireError::Truncated`] if the header is incomplete; [`PairWireError::Adu`] if [`AduHeader::parse`] returns
    /// this error, if the part would exceed the ADU, or if `since_switch` is above the ADU's number.
    pub fn parse(payload: &[u8]) -> Result<(Self, &[u8]), PairWireError> {
        let truncated = PairWireError::Truncated { have: payload.len() };
        let (header, rest) = payload.split_first_chunk().ok_or(truncated)?;
        let (offset, rest) = rest.split_first_chunk().ok_or(truncated)?;
        let (since_switch, part) = rest.split_first_chunk().ok_or(truncated)?;
        let adu = AduHeader::parse(*header)?;
        let offset = u32::from_be_bytes(*offset);
        let since_switch = u32::from_be_bytes(*since_switch);
        let end = u64::from(offset).saturating_add(part.len() as u64);
        if end > u64::from(adu.length) || u64::from(since_switch) > adu.number {
            return Err(PairWireError::Adu { number: adu.number, length: adu.length, offset });
        }
        Ok((Self { adu, offset, since_switch }, part))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_book() {
        let part = AduPart { adu: AduHeader { number: 258, length: 5120 }, offset: 512, since_switch: 3 };
        let mut bytes = Vec::new();
        part.encode(&mut bytes);
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0x14, 0, 0, 0, 2, 0, 0, 0, 0, 3]);
        bytes.extend_from_slice(&[7; 512]);
        assert_eq!(AduPart::parse(&bytes), Ok((part, &[7; 512][..])));
        assert_eq!(part.adu.to_bytes(), bytes[..12]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let header = |number: u64, length: u32| AduHeader { number, length }.to_bytes();
        assert!(AduHeader::parse(header(0, AduHeader::LONGEST)).is_ok());
        assert!(matches!(AduHeader::parse(header(0, AduHeader::LONGEST + 1)), Err(PairWireError::Adu { .. })));
        assert!(matches!(AduHeader::parse(header(u64::MAX, 0)), Err(PairWireError::Adu { .. })));
        let part = |number, length, offset, since_switch, payload: usize| {
            let mut bytes = Vec::new();
            AduPart { adu: AduHeader { number, length }, offset, since_switch }.encode(&mut bytes);
            bytes.resize(AduPart::LEN + payload, 0);
            AduPart::parse(&bytes).is_ok()
        };
        assert!(part(9, 100, 50, 9, 50) && part(9, 0, 0, 0, 0));
        assert!(!part(9, 100, 50, 9, 51), "beyond its end");
        assert!(!part(9, 100, u32::MAX, 9, 50), "far beyond its end");
        assert!(!part(9, 100, 50, 10, 50), "more before it than there are");
        assert!(matches!(AduPart::parse(&[0; 19]), Err(PairWireError::Truncated { .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_do_not(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok((part, payload)) = AduPart::parse(&bytes) {
                let mut again = vec![];
                part.encode(&mut again);
                again.extend_from_slice(payload);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
