use equipoise::measure::DelaySummary;
use equipoise::units::Instant;
use equipoise_session::wire::{DelayReport, NtpTime, ReportRequest};

/// Parses any bytes as the extensions of RTCP reports: report requests and delay reports. In addition, takes delay
/// statistics and an NTP timestamp from the bytes. Encodes the statistics, and converts the timestamp.
///
/// # Panics
/// If a parsed extension is not encoded to the same bytes, if impossible statistics are accepted, if possible
/// statistics change when they are encoded and parsed, or if the timestamp is converted to a wrong time.
pub fn delay_report(bytes: &[u8]) {
    if let Ok(request) = ReportRequest::parse(bytes) {
        assert_eq!(request.to_bytes(), bytes);
    }
    if let Ok(report) = DelayReport::parse(bytes) {
        assert_eq!(report.to_bytes(), bytes);
        if let Some(delay) = report.delay {
            assert!(delay.mean_s.abs() < 128.0 && delay.samples >= 2, "{delay:?}");
            assert!(delay.variance_s2.is_finite() && delay.variance_s2 >= 0.0, "{delay:?}");
        }
    }
    if let Some((numbers, _)) = bytes.split_first_chunk::<24>() {
        let (words, _) = numbers.as_chunks::<8>();
        if let [mean, variance, samples] = words.iter().map(|word| u64::from_be_bytes(*word)).collect::<Vec<_>>()[..] {
            carry(DelaySummary { mean_s: f64::from_bits(mean), variance_s2: f64::from_bits(variance), samples });
            near(NtpTime::from_bits(mean), variance);
        }
    }
}

/// Checks that valid statistics are the same after they were encoded and parsed, except for rounding. If there are more
/// samples than the format can count, the maximum count is encoded.
fn carry(sent: DelaySummary) {
    let found = DelayReport::parse(&DelayReport::agreed(Some(sent)).to_bytes());
    let is_sound = sent.mean_s.abs() <= 100.0 && (1e-12..=1e4).contains(&sent.variance_s2) && sent.samples >= 2;
    if is_sound {
        let delay = found.expect("sound statistics are read").delay.expect("and are not too few");
        assert!((delay.mean_s - sent.mean_s).abs() <= 1e-7, "{sent:?} became {delay:?}");
        assert!((delay.variance_s2 / sent.variance_s2 - 1.0).abs() <= 1e-7, "{sent:?} became {delay:?}");
        assert_eq!(delay.samples, sent.samples.min(u64::from(DelayReport::MAX_SAMPLES)));
    }
}

/// Checks the conversion of an NTP timestamp to a time. If the time is converted back, the timestamp must be the same,
/// except for rounding. The time must be at most half an NTP era from `reference`, which is in ns. A result at a limit
/// of the clock's range is not checked.
fn near(time: NtpTime, reference: u64) {
    const HALF_AN_ERA_NS: u64 = 1_000_000_000 << 31;
    let found = time.to_instant_near(Instant::from_nanos(reference)).as_nanos();
    if found == 0 || found == u64::MAX {
        return;
    }
    assert!(found.abs_diff(reference) <= HALF_AN_ERA_NS, "{found} is not near {reference}");
    // A nanosecond is 4.3 units of the timestamp's fraction, so rounding to nanoseconds changes the timestamp by at
    // most 3 units.
    let again = NtpTime::from_instant(Instant::from_nanos(found)).as_bits();
    let apart = again.wrapping_sub(time.as_bits()).cast_signed().unsigned_abs();
    assert!(apart <= 3, "{time:?} became {again:#018x}");
}
