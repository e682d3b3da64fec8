use equipoise_papers::capture::{AckRule, Options, analyse};

/// Any bytes are a capture, whole or in part, or none; what is found is within what was given.
///
/// # Panics
/// Where one of these does not hold.
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
}
