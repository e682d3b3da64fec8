//! Exchanges RTCP with local programs. At the receiver of a session, the decoder sends requests for key frames. At the
//! sender of the session, such requests are passed to the encoder.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use equipoise_net::KeyFrames;
use equipoise_session::wire::is_rtcp;
use equipoise_session::wire::key_frames::{KeyFrameFeedback, KeyFrameRequest, encode_key_frame_request};
use equipoise_session::wire::rtcp::{encode_cname, encode_receiver_report, parse_compound};

/// Forwards the decoder's key-frame requests to the senders of the requested SSRCs, until `stop` is set. `socket`
/// receives the requests, and also sends RTP packets to the decoder (RFC 5761). It needs a read timeout, so that the
/// thread notices `stop`. Requests from hosts other than the decoder's host are ignored.
pub(super) fn from_decoder(socket: UdpSocket, decoder: SocketAddr, key_frames: KeyFrames, stop: Arc<AtomicBool>) {
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        while !stop.load(Ordering::Relaxed) {
            match socket.recv_from(&mut buffer) {
                Ok((length, from)) if from.ip().to_canonical() == decoder.ip().to_canonical() => {
                    ask(buffer.get(..length).unwrap_or_default(), &key_frames);
                }
                // An error is a read timeout, or an ICMP error because the decoder does not listen yet.
                Ok(_) | Err(_) => {}
            }
        }
    });
}

fn ask(datagram: &[u8], key_frames: &KeyFrames) {
    let packets = parse_compound(datagram).into_iter().flatten();
    let feedback = packets.filter_map(|packet| KeyFrameFeedback::of(&packet)).flatten();
    for asked in feedback.flat_map(|feedback| feedback.asked()) {
        key_frames.request(asked.media_ssrc, asked.request);
    }
}

/// Sends RTCP packets to an encoder.
pub(super) struct ToEncoder {
    /// The socket at which the encoder's RTP packets arrive.
    socket: UdpSocket,
    to: Encoder,
    /// Sequence number of the next full intra request.
    number: u8,
}

/// The encoder whose RTP packets the session carries. Clones share the state.
#[derive(Clone, Debug)]
pub(super) struct Encoder {
    /// The address for RTCP, if the user gave one. If this is `None`, RTCP is sent to the source address of the
    /// encoder's last RTP packet (RFC 4961).
    rtcp: Option<SocketAddr>,
    last: Arc<Mutex<LastPacket>>,
}

/// The encoder's last RTP packet.
#[derive(Clone, Copy, Debug)]
struct LastPacket {
    from: SocketAddr,
    ssrc: u32,
    at: Instant,
}

/// If the encoder sent no packet for this time, another SSRC may replace its SSRC. This is necessary because a
/// restarted program chooses a new SSRC.
const FORGOTTEN: Duration = Duration::from_secs(2);

impl Encoder {
    /// Creates the encoder whose first RTP packet has the SSRC `ssrc` and arrived from `from`.
    pub(super) fn new(from: SocketAddr, ssrc: u32, rtcp: Option<SocketAddr>) -> Self {
        Self { rtcp, last: Arc::new(Mutex::new(LastPacket { from, ssrc, at: Instant::now() })) }
    }

    /// Returns whether an RTP packet with the SSRC `ssrc`, which arrived from `from` at `now`, is a packet of the
    /// encoder. If so, records the packet. After [`FORGOTTEN`] without a packet of the encoder, a packet with another
    /// SSRC also counts as a packet of the encoder, if it comes from the encoder's host.
    pub(super) fn accepts(&self, now: Instant, from: SocketAddr, ssrc: u32) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_silent = now.saturating_duration_since(last.at) >= FORGOTTEN;
        let is_own = ssrc == last.ssrc || is_silent && from.ip().to_canonical() == last.from.ip().to_canonical();
        if is_own {
            *last = LastPacket { from, ssrc, at: now };
        }
        is_own
    }

    /// Returns the address for RTCP, and the encoder's SSRC.
    fn address(&self) -> (SocketAddr, u32) {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        (self.rtcp.unwrap_or(last.from), last.ssrc)
    }
}

impl ToEncoder {
    /// Creates the sender of RTCP packets to the encoder `to`, whose RTP packets arrive at `socket`.
    pub(super) fn new(socket: &UdpSocket, to: Encoder) -> io::Result<Self> {
        Ok(Self { socket: socket.try_clone()?, to, number: 0 })
    }

    /// Requests a key frame, in a compound packet that any RTP tool accepts (RFC 3550, Sec. 6.1).
    pub(super) fn ask(&mut self, request: KeyFrameRequest) {
        let (address, ssrc) = self.to.address();
        // The receiver report needs an SSRC of its own: any value except the encoder's SSRC.
        let (own, mut datagram) = (ssrc.wrapping_add(1), Vec::new());
        encode_receiver_report(own, &[], &[], &mut datagram);
        encode_cname(own, "receiver@equipoise", &mut datagram);
        encode_key_frame_request(own, ssrc, (request, self.number), &mut datagram);
        self.number = self.number.wrapping_add(u8::from(request == KeyFrameRequest::FullIntra));
        // An error is ignored: if the encoder does not accept RTCP, the session continues.
        let _ = self.socket.send_to(&datagram, address);
    }
}

/// Whether a datagram is an RTP packet of version 2.
pub(super) fn is_rtp(datagram: &[u8]) -> bool {
    datagram.len() >= 12 && datagram[0] >> 6 == 2 && !is_rtcp(datagram)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the test fails, a restarted encoder stays silent, or another host can replace the encoder's media and receive
    /// the requests for key frames.
    #[test]
    fn only_the_encoders_host_can_go_on_with_another_source() {
        let [host, other] = ["127.0.0.1:5004", "192.0.2.7:5004"].map(|it| it.parse().expect("an address"));
        let restarted = "127.0.0.1:6004".parse().expect("an address");
        let encoder = Encoder::new(host, 1, None);
        let at = |seconds| Instant::now() + Duration::from_secs(seconds);
        assert!(encoder.accepts(at(1), host, 1));
        assert!(!encoder.accepts(at(2), restarted, 2), "the first source is not silent yet");
        assert!(!encoder.accepts(at(9), other, 2), "a stranger");
        assert_eq!(encoder.address(), (host, 1));
        assert!(encoder.accepts(at(10), restarted, 2));
        assert!(!encoder.accepts(at(11), host, 1), "the old source has been replaced");
        assert_eq!(encoder.address(), (restarted, 2));
    }
}
