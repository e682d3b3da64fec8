use equipoise::units::Instant;
use equipoise_session::wire::WireError;
use equipoise_session::wire::feedback::{CongestionFeedback, PacketStatus, StreamWriter, encode_congestion_feedback};

/// Reference for the times in reports, in ns. Report times wrap around every 18 hours. Of the possible times, the one
/// nearest to the reference is taken.
const NEAR: u64 = 1_795_449_600_000_000_000;
const LONGEST: usize = 4 << 16;

/// Parses any bytes as the body of RTCP congestion control feedback (RFC 8888).
///
/// # Panics
/// If a parsed report has more packets than the RFC allows, if its packet numbers are not consecutive, or if the report
/// is different after it was encoded and parsed again.
pub fn congestion_feedback(body: &[u8]) {
    let near = Instant::from_nanos(NEAR);
    let feedback = match CongestionFeedback::parse(body) {
        Ok(feedback) => feedback,
        Err(WireError::Truncated { offset, have, .. }) => {
            assert!(offset + have <= body.len() + 4, "the error names byte {offset} of {}", body.len());
            return;
        }
        Err(_) => return,
    };
    let (mut again, mut is_whole) = (Vec::new(), true);
    let made = feedback.streams().next().and_then(|stream| stream.report(near).made).unwrap_or(near);
    encode_congestion_feedback(feedback.ssrc, made, LONGEST, &mut again, |writer| {
        for stream in feedback.streams() {
            let report = stream.report(near);
            assert_eq!(report.made, Some(made));
            let packets: Vec<PacketStatus> = report.packets.collect();
            assert!(packets.len() == stream.len() && packets.len() <= 16_384);
            for (offset, status) in packets.iter().enumerate() {
                assert_eq!(status.sequence, stream.begin.wrapping_add(offset as u16));
            }
            is_whole &= write(writer, stream.ssrc, stream.begin, &packets);
        }
    });
    if is_whole {
        let found = CongestionFeedback::parse(&again[4..]).expect("what we write is well formed");
        assert_eq!(found.ssrc, feedback.ssrc);
        let reports = |feedback: CongestionFeedback<'_>| {
            feedback
                .streams()
                .map(|stream| (stream.ssrc, stream.report(near).packets.collect()))
                .collect::<Vec<(u32, Vec<_>)>>()
        };
        assert_eq!(reports(found), reports(feedback));
    }
}

/// Encodes a report on the packets of one stream. Returns whether all packets fit into the report.
fn write(writer: &mut StreamWriter<'_>, ssrc: u32, begin: u16, packets: &[PacketStatus]) -> bool {
    if packets.is_empty() {
        return writer.nothing_new(ssrc, begin).is_ok();
    }
    writer.stream(ssrc, &mut packets.iter().copied()) == Ok(packets.len())
}
