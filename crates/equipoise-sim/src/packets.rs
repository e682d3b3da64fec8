use equipoise::session::Transmit;
use equipoise::units::Size;

/// Datagrams under way, in slots that are used again: no allocation once the path is full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<Packet>,
    free: Vec<PacketId>,
}

/// A slot's number.
pub(crate) type PacketId = u32;

/// A datagram: its head, and how much media follows, which is zeros here.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    head: [u8; Transmit::MAX_HEAD],
    head_len: u8,
    len: u32,
}

impl Packets {
    /// Keeps a datagram.
    pub(crate) fn insert(&mut self, transmit: &Transmit<'_>) -> PacketId {
        let kept = transmit.head.len().min(Transmit::MAX_HEAD);
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Packet { head: [0; Transmit::MAX_HEAD], head_len: 0, len: 0 });
            (self.slots.len() - 1) as PacketId
        });
        let packet = &mut self.slots[id as usize];
        packet.head[..kept].copy_from_slice(&transmit.head[..kept]);
        packet.head_len = kept as u8;
        packet.len = transmit.len() as u32;
        id
    }

    /// Size of the IP packet.
    pub(crate) fn size(&self, id: PacketId) -> Size {
        Size::from_bytes(u64::from(self.slots[id as usize].len)) + Size::IPV4_UDP
    }

    /// Gives up a datagram; `scratch`, which is all zeros from the head on, takes its bytes.
    pub(crate) fn remove<'a>(&mut self, id: PacketId, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let packet = &self.slots[id as usize];
        let (head_len, len) = (usize::from(packet.head_len), packet.len as usize);
        if scratch.len() < len.max(Transmit::MAX_HEAD) {
            scratch.resize(len.max(Transmit::MAX_HEAD), 0);
        }
        scratch[..Transmit::MAX_HEAD].fill(0);
        scratch[..head_len].copy_from_slice(&packet.head[..head_len]);
        self.free.push(id);
        &scratch[..len]
    }

    /// Gives up a datagram that nobody wants.
    pub(crate) fn discard(&mut self, id: PacketId) {
        self.free.push(id);
    }
}
