use equipoise::units::Size;
use equipoise_session::{Ecn, Transmit};

/// The datagrams in flight, in reusable slots. A slot is added only if more datagrams are in flight than ever before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<Packet>,
    free: Vec<PacketId>,
}

/// The number of a slot.
pub(crate) type PacketId = u32;

/// A datagram: its first bytes (head), and its length in bytes. The bytes after the head are media, which are zeros in
/// the simulator.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    head: [u8; Transmit::MAX_HEAD],
    head_len: u8,
    len: u32,
    /// Size of the IP packet.
    size: Size,
    ecn: Ecn,
    /// Number of packets in flight that carry this datagram: more than one if links duplicated the packet.
    copies: u32,
}

impl Packet {
    const EMPTY: Self =
        Self { head: [0; Transmit::MAX_HEAD], head_len: 0, len: 0, size: Size::ZERO, ecn: Ecn::NotCapable, copies: 0 };
}

impl Packets {
    /// Stores a datagram. Returns the number of its slot.
    pub(crate) fn insert(&mut self, transmit: &Transmit<'_>) -> PacketId {
        let kept = transmit.head.len().min(Transmit::MAX_HEAD);
        let id = self.slot();
        let packet = &mut self.slots[id as usize];
        packet.head[..kept].copy_from_slice(&transmit.head[..kept]);
        packet.head_len = kept as u8;
        packet.len = transmit.len() as u32;
        packet.size = transmit.packet_size();
        packet.ecn = transmit.ecn;
        packet.copies = 1;
        id
    }

    fn slot(&mut self) -> PacketId {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Packet::EMPTY);
            (self.slots.len() - 1) as PacketId
        })
    }

    /// ECN field of the datagram's IP header when the datagram was sent.
    pub(crate) fn ecn(&self, id: PacketId) -> Ecn {
        self.slots[id as usize].ecn
    }

    /// Size of the datagram's IP packet.
    pub(crate) fn size(&self, id: PacketId) -> Size {
        self.slots[id as usize].size
    }

    /// Records that a link has duplicated a packet.
    pub(crate) fn copy(&mut self, id: PacketId) {
        self.slots[id as usize].copies += 1;
    }

    /// Removes one copy of a datagram. Returns the bytes of the datagram, written into `scratch`. Only this function
    /// may write into `scratch`, so that all bytes after the head are zeros.
    pub(crate) fn remove<'a>(&mut self, id: PacketId, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        self.discard(id);
        let packet = &self.slots[id as usize];
        let (head_len, len) = (usize::from(packet.head_len), packet.len as usize);
        if scratch.len() < len.max(Transmit::MAX_HEAD) {
            scratch.resize(len.max(Transmit::MAX_HEAD), 0);
        }
        scratch[..Transmit::MAX_HEAD].fill(0);
        scratch[..head_len].copy_from_slice(&packet.head[..head_len]);
        &scratch[..len]
    }

    /// Removes one copy of a datagram. If it was the last copy, the slot becomes free.
    pub(crate) fn discard(&mut self, id: PacketId) {
        let copies = &mut self.slots[id as usize].copies;
        *copies -= 1;
        if *copies == 0 {
            self.free.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use equipoise_session::Carrier;

    use super::*;

    /// If this test fails, data that is left in the scratch buffer or in a slot appears in another datagram.
    #[test]
    fn a_datagram_comes_out_as_it_went_in_whatever_was_there_before() {
        let (mut packets, mut scratch) = (Packets::default(), Vec::new());
        for (head_len, media) in [(Transmit::MAX_HEAD, 0), (24, 900), (Transmit::MAX_HEAD, 1300), (0, 200), (64, 0)] {
            let head = vec![0xAB; head_len];
            let id = packets.insert(&Transmit { head: &head, media, carrier: Carrier::Udp, ecn: Ecn::NotCapable });
            assert_eq!(packets.size(id), Size::IPV4_UDP + Size::from_bytes((head_len + media) as u64));
            let datagram = packets.remove(id, &mut scratch);
            let (found_head, found_media) = datagram.split_at(head_len);
            assert_eq!((found_head, found_media.len()), (head.as_slice(), media));
            assert!(found_media.iter().all(|byte| *byte == 0), "{head_len} bytes of head before {media} of media");
        }
        assert_eq!(packets.slots.len(), 1, "one datagram at a time is one slot");
    }

    #[test]
    fn slots_of_delivered_and_dropped_datagrams_are_used_again() {
        let (mut packets, mut scratch) = (Packets::default(), Vec::new());
        for _ in 0..100 {
            let [first, second] = [1, 2].map(|byte| {
                packets.insert(&Transmit { head: &[byte], media: 10, carrier: Carrier::Udp, ecn: Ecn::NotCapable })
            });
            packets.discard(first);
            packets.copy(second);
            for _ in 0..2 {
                assert_eq!(packets.remove(second, &mut scratch).first(), Some(&2), "the copy is as good");
            }
        }
        assert_eq!(packets.slots.len(), 2);
    }
}
