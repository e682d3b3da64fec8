use super::PairWireError;

/// The first message that the sender and the receiver of a flow pair each send over TCP, 12 bytes long.
///
/// | bits | content |
/// | --- | --- |
/// | 32 | `EQFP` |
/// | 8 | version, 1 |
/// | 8 | 0 |
/// | 16 | UDP port at which the sender of the message receives datagrams |
/// | 32 | synchronisation source (SSRC) of the sender of the message |
///
/// The flow's sender sends its hello first, and the flow's receiver answers with a hello. The receiver ignores the port
/// in the sender's hello, because NAT may change the port. The receiver sends its datagrams to the address from which
/// the sender's datagrams arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairHello {
    /// UDP port at which the sender of this message receives datagrams.
    pub port: u16,
    /// The synchronisation source (SSRC) in the RTP and RTCP packets of the sender of this message.
    pub ssrc: u32,
}

impl PairHello {
    /// Length of the message in bytes.
    pub const LEN: usize = 12;
    /// Magic number, version, and a zero byte.
    const BEGINNING: [u8; 6] = *b"EQFP\x01\0";

    /// Encodes the message.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (beginning, rest) = bytes.split_at_mut(Self::BEGINNING.len());
        let (port, ssrc) = rest.split_at_mut(2);
        beginning.copy_from_slice(&Self::BEGINNING);
        port.copy_from_slice(&self.port.to_be_bytes());
        ssrc.copy_from_slice(&self.ssrc.to_be_bytes());
        bytes
    }

    /// Parses the first bytes of a stream.
    ///
    /// # Errors
    /// [`PairWireError::NoPair`] if the bytes are not the hello of a flow pair of this version.
    pub fn parse(bytes: [u8; Self::LEN]) -> Result<Self, PairWireError> {
        let [b0, b1, b2, b3, b4, b5, port @ .., s0, s1, s2, s3] = bytes;
        let found = [b0, b1, b2, b3, b4, b5];
        if found != Self::BEGINNING {
            return Err(PairWireError::NoPair { found });
        }
        Ok(Self { port: u16::from_be_bytes(port), ssrc: u32::from_be_bytes([s0, s1, s2, s3]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_book() {
        let hello = PairHello { port: 5004, ssrc: 0x1234_5678 };
        let bytes = [0x45, 0x51, 0x46, 0x50, 1, 0, 0x13, 0x8C, 0x12, 0x34, 0x56, 0x78];
        assert_eq!(hello.to_bytes(), bytes);
        assert_eq!(PairHello::parse(bytes), Ok(hello));
    }

    #[test]
    fn another_version_and_another_protocol_are_refused() {
        assert_eq!(PairHello::parse(*b"GET / HTTP/1"), Err(PairWireError::NoPair { found: *b"GET / " }));
        let mut next = PairHello { port: 1, ssrc: 2 }.to_bytes();
        next[4] = 2;
        assert!(matches!(PairHello::parse(next), Err(PairWireError::NoPair { .. })));
    }
}
