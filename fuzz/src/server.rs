use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use equipoise::units::Span;
use equipoise_net::ServerBench;
use equipoise_session::wire::NtpTime;
use equipoise_session::wire::rtp::{RtpHeader, Subflow};

/// Passes any datagrams from any addresses to a server whose kernel refuses to send.
///
/// The first byte of the input selects whether the server has a key. The rest is a list of operations: time passes;
/// arbitrary bytes arrive; the peer opens or reopens a session, to send or to receive; the last datagram arrives again,
/// unchanged, damaged or truncated; protected media or reports arrive; a message with wrong content and a correct
/// authentication code arrives; the peer's address changes; the kernel's error number changes.
///
/// # Panics
/// If the server ends, if it has too many sessions, paths or timers, or if a peer gets a session without a correct
/// request.
pub fn server(operations: &[u8]) {
    let Some((&variant, mut rest)) = operations.split_first() else { return };
    let bench = ServerBench::new(variant & 1 != 0).expect("a socket");
    let mut peer = Peer { bench, from: places()[0], last: Vec::new(), sequence: 0 };
    while let Some((&operation, after)) = rest.split_first() {
        rest = peer.step(operation, after);
        if let Some(flaw) = peer.bench.flaw() {
            panic!("{flaw}");
        }
    }
}

/// Source addresses of the peer, IPv4 and IPv6, including addresses to which the server cannot send an answer.
fn places() -> [SocketAddr; 6] {
    [
        (Ipv4Addr::new(192, 0, 2, 1), 5000).into(),
        (Ipv4Addr::new(192, 0, 2, 1), 5001).into(),
        (Ipv4Addr::new(192, 0, 2, 2), 0).into(),
        (Ipv4Addr::BROADCAST, 9).into(),
        (Ipv6Addr::LOCALHOST, 5000).into(),
        (Ipv6Addr::UNSPECIFIED, 0).into(),
    ]
}

/// A peer of the server that may send anything.
struct Peer {
    bench: ServerBench,
    from: SocketAddr,
    /// The last datagram that the peer sent.
    last: Vec<u8>,
    sequence: u16,
}

impl Peer {
    /// Executes one operation, and removes its arguments from the front of the input.
    fn step<'a>(&mut self, operation: u8, rest: &'a [u8]) -> &'a [u8] {
        let (argument, after) = rest.split_first().map_or((0, rest), |(first, after)| (*first, after));
        let ssrc = u32::from(operation & 3);
        let (noise, left) = after.split_at(usize::from(argument).min(after.len()));
        match operation {
            0..=31 => self.bench.wait(Span::from_nanos(i64::from(argument) << operation)),
            32..=63 => {
                self.say(noise.to_vec());
                return left;
            }
            64..=95 => {
                // Store one of the peer's messages. Later operations can send this message again, send it damaged, or
                // send it from another address.
                let said = self.bench.call(self.from, ssrc, argument & 15);
                self.last = said.into_iter().nth(usize::from(argument >> 4)).unwrap_or_default();
            }
            96..=111 => {
                self.say(self.last.clone());
                return rest;
            }
            112..=127 => {
                let mut damaged = self.last.clone();
                let length = damaged.len().max(1);
                if let Some(byte) = damaged.get_mut(usize::from(argument) % length) {
                    *byte ^= operation << 1 | 1;
                }
                self.say(damaged);
            }
            128..=143 => {
                let length = usize::from(argument).min(self.last.len());
                self.say(self.last[..length].to_vec());
            }
            144..=191 => {
                self.say_protected(&self.media(ssrc, operation, noise));
                return left;
            }
            192..=207 => {
                // The length field of the RTCP header may contradict the content.
                let words = (noise.len() / 4 + 1) as u8;
                let head = [&[0x80 | operation & 1, 200 + (operation >> 2 & 3), 0, words][..], &ssrc.to_be_bytes()];
                self.say_protected(&[&head.concat(), noise].concat());
                return left;
            }
            208..=215 => self.bench.refuse_with(argument),
            216..=223 => {
                // The peer sends a message with wrong content and a correct authentication code.
                let mut senseless = self.last.clone();
                let has_records = operation & 1 == 0;
                if let (false, Some(byte), Some(change)) =
                    (has_records, senseless.get_mut(usize::from(argument)), after.first())
                {
                    *byte ^= change;
                }
                self.bench.sign(&mut senseless, has_records.then_some(noise));
                self.say(senseless);
                return if has_records { left } else { after };
            }
            _ => self.from = places()[usize::from(argument) % places().len()],
        }
        after
    }

    fn media(&self, ssrc: u32, operation: u8, payload: &[u8]) -> Vec<u8> {
        let seconds = self.bench.now().as_nanos() / 1_000_000_000;
        let header = RtpHeader {
            payload_type: 96,
            sequence: self.sequence,
            ssrc,
            send_time: (operation & 4 == 0).then_some(NtpTime::from_bits(seconds << 32)),
            subflow: (operation & 8 != 0).then_some(Subflow { id: u16::from(operation >> 4), sequence: self.sequence }),
            transport_sequence: None,
            ..RtpHeader::default()
        };
        let mut packet = Vec::new();
        header.encode(&mut packet);
        packet.extend_from_slice(payload);
        packet
    }

    fn say_protected(&mut self, plain: &[u8]) {
        self.sequence = self.sequence.wrapping_add(1);
        // Without a session, the packet is sent unprotected.
        let datagram = self.bench.protected(plain).unwrap_or_else(|| plain.to_vec());
        self.say(datagram);
    }

    fn say(&mut self, datagram: Vec<u8>) {
        let heard = self.bench.hear(self.from, &datagram);
        assert!(heard.is_ok(), "{heard:?} ends all sessions");
        self.last = datagram;
    }
}
