use equipoise_papers::capture::{AckRule, Options, RtpOptions, analyse, analyse_rtp};

/// Analyses any bytes as a packet capture, for TCP and for RTP.
///
/// # Panics
/// If the analysis panics, if it counts more segments or packets than frames, or if its statistics contradict each
/// other.
pub fn capture(bytes: &[u8]) {
    for rule in [AckRule::Pair, AckRule::Every] {
        let Ok(analysis) = analyse(bytes, &Options { rule, bin: None }) else { continue };
        assert!(analysis.segments <= analysis.frames);
        let directions = analysis.connections.iter().flat_map(|connection| &connection.directions);
        for rtt in directions.filter_map(|direction| direction.rtt.as_ref()) {
            assert_eq!(rtt.counts.iter().sum::<u64>(), rtt.samples);
            assert!(rtt.min_s <= rtt.p50_s && rtt.p50_s <= rtt.max_s && rtt.min_s >= 0.0);
        }
    }
    let Ok(analysis) = analyse_rtp(bytes, &RtpOptions { clock_rate: Some(90_000) }) else { return };
    assert!(analysis.rtp_packets + analysis.rtcp_packets <= analysis.frames);
    for stream in &analysis.streams {
        assert!(stream.duplicates + stream.reordered < stream.packets && stream.lost <= stream.expected.cast_signed());
        assert!(stream.jitter.is_none_or(|jitter| jitter.last_s <= jitter.max_s && jitter.mean_s >= 0.0));
    }
}
