use equipoise::units::Instant;
use equipoise_session::wire::WireError;
use equipoise_session::wire::feedback::{PacketStatus, TransportFeedback, TransportHead, encode_transport_feedback};

/// Reference for the times in reports, in ns. Report times wrap around every 12 days. Of the possible times, the one
/// nearest to the reference is taken.
const NEAR: u64 = 1_795_449_600_000_000_000;

/// Parses any bytes as the body of transport-wide RTCP feedback.
///
/// # Panics
/// If the packet numbers of a parsed report are not consecutive, if the number of packets differs from the count field,
/// or if the report changes when it is encoded, in one or more RTCP packets, and parsed again.
pub fn transport_feedback(body: &[u8]) {
    let near = Instant::from_nanos(NEAR);
    let feedback = match TransportFeedback::parse(body) {
        Ok(feedback) => feedback,
        Err(WireError::Truncated { offset, have, .. }) => {
            assert!(offset + have <= body.len() + 4, "the error names byte {offset} of {}", body.len());
            return;
        }
        Err(_) => return,
    };
    let packets: Vec<PacketStatus> = feedback.report(near).packets.collect();
    assert_eq!(packets.len(), usize::from(feedback.count));
    for (number, status) in packets.iter().enumerate() {
        assert_eq!(status.sequence, feedback.base.wrapping_add(number as u16));
    }
    for limit in [1200, 4 << 16] {
        let (mut rest, mut again, mut number) = (packets.iter().copied(), Vec::new(), feedback.number);
        while rest.len() > 0 {
            let head = TransportHead { ssrc: feedback.ssrc, media_ssrc: feedback.media_ssrc, number, at: near };
            let mut out = Vec::new();
            let taken = encode_transport_feedback(&head, &mut rest, limit, &mut out).expect("there is room for some");
            let found = TransportFeedback::parse(&out[4..]).expect("what we write is well formed");
            assert!(taken > 0 && usize::from(found.count) == taken && out.len() <= limit);
            assert_eq!((found.ssrc, found.media_ssrc, found.number), (feedback.ssrc, feedback.media_ssrc, number));
            // The first known arrival time of the remaining packets is used as reference, because times far from the
            // reference would wrap around.
            let near = packets[again.len()..].iter().find_map(|status| status.arrival?.time.measured()).unwrap_or(near);
            again.extend(found.report(near).packets);
            number = number.wrapping_add(1);
        }
        assert_eq!(again, packets);
    }
}
