use alloc::vec::Vec;

#[cfg(doc)]
use super::NtpTime;
use super::WireError;
use super::reader::Reader;
use super::receipt::{Receipt, ReceiptRequest};
use equipoise::measure::DelaySummary;
use equipoise::units::{Rate, Span};

/// The profile-specific extension that makes a sender report a request for a delay report: 8 bytes, and 12 more if it
/// requests a receipt.
///
/// Source: Waki 2013, Sec. 5.1. The extension contains the time of the previous request. From this time, the receiver
/// estimates when the sender received the report on that request and decided a new rate. The answer has statistics of
/// the packets sent since this decision.
///
/// Our reading: packet analysers parse the data after the report blocks as a list of elements. An element begins with a
/// 16-bit type and its 16-bit length. Packet analysers would show a 64-bit time alone as malformed. So the extension is
/// an element. Its content is the middle 32 bits of the time.
///
/// | bits | content |
/// | --- | --- |
/// | 16 | `0x8001`, a type that no other format uses |
/// | 16 | 8, the length |
/// | 32 | when the interval began: the middle 32 bits of the NTP time, 1/65 536 s |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportRequest {
    /// Start of the interval, as [`NtpTime::middle`]: the time of the previous request (t with index i − 1 in Waki
    /// 2013), even if that request was skipped. If the clocks of sender and receiver are not known to agree and the
    /// sender has decided its rate since then, the start is the time of this decision.
    pub interval_start: u32,
    /// The receipt request, if any.
    pub receipt: Option<ReceiptRequest>,
}

/// This bit is set in the type numbers of all our elements of RTCP report extensions. Other formats use smaller type
/// numbers.
pub(super) const OURS: u16 = 0x8000;
const REQUEST_TYPE: u16 = OURS | 1;
const REQUEST_LEN: u16 = 8;
const REPORT_LEN: u16 = 12;
const ORIGIN_TYPE: u16 = OURS | 2;
const ORIGIN_LEN: u16 = 16;
const PLAYOUT_TYPE: u16 = OURS | 3;
const PLAYOUT_LEN: u16 = 20;
const BOTTLENECK_TYPE: u16 = OURS | 4;
const BOTTLENECK_LEN: u16 = 8;
const MARKS_TYPE: u16 = OURS | 5;
const MARKS_LEN: u16 = 12;

/// Whether `bytes` begins with the first element of a request.
pub(super) fn is_request(bytes: &[u8]) -> bool {
    let [high, low] = REQUEST_TYPE.to_be_bytes();
    let [long, short] = REQUEST_LEN.to_be_bytes();
    bytes.starts_with(&[high, low, long, short])
}

impl ReportRequest {
    /// Returns the encoded extension.
    pub fn to_bytes(self) -> Vec<u8> {
        let head = u32::from(REQUEST_TYPE) << 16 | u32::from(REQUEST_LEN);
        let mut out = (u64::from(head) << 32 | u64::from(self.interval_start)).to_be_bytes().to_vec();
        if let Some(receipt) = self.receipt {
            receipt.write(&mut out);
        }
        out
    }

    /// Reads the extension of a sender report.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the extension is too short, and [`WireError::Extension`] if it has another format.
    pub fn parse(extension: &[u8]) -> Result<Self, WireError> {
        let refused = WireError::Extension { extension: "report request", found: extension.len(), need: 8 };
        let mut reader = Reader::new(extension, 0);
        let (kind, length) = (reader.u16("extension type")?, reader.u16("extension length")?);
        let interval_start = reader.u32("start of the interval")?;
        if kind != REQUEST_TYPE || length != REQUEST_LEN {
            return Err(refused);
        }
        let receipt = ReceiptRequest::read(&mut reader)?;
        if reader.rest().is_empty() { Ok(Self { interval_start, receipt }) } else { Err(refused) }
    }
}

/// The profile-specific extension of the receiver report that answers a request: 12 bytes, 16 more if the relation of
/// the clocks is unknown, 20 more if the receiver has a playout buffer, 8 more if enough packet pairs arrived, 12 more
/// if ECN-capable packets arrived, and 20 more with a receipt.
///
/// | bits | content |
/// | --- | --- |
/// | 16 | `0x8000` plus the number of samples (at most `0x7FFF`): a type that no other format uses |
/// | 16 | 12, the length |
/// | 32 | mean one-way delay, signed, in 2⁻²⁴ s: ±128 s in steps of 0.06 µs |
/// | 32 | variance in s², IEEE 754 binary32 |
///
/// If there are too few samples, their number is 0, the mean is `0x8000_0000`, and the variance is `0x7FC0_0000`. The
/// last SR field of the report block identifies the request.
///
/// The next element is present if the relation of the clocks is unknown:
///
/// | bits | content |
/// | --- | --- |
/// | 16 | `0x8002`, a type that no other format uses |
/// | 16 | 16, the length |
/// | 64 | origin, signed, in ns: subtracted from every delay |
/// | 32 | minimum delay of the interval, minus the origin, encoded like the mean; `0x8000_0000` for none |
///
/// The next element is present if the receiver has a playout buffer:
///
/// | bits | content |
/// | --- | --- |
/// | 16 | `0x8003`, a type that no other format uses |
/// | 16 | 20, the length |
/// | 32 | occupancy, in packets |
/// | 32 | arrival rate since the last report, in bytes of IP packets per second |
/// | 32 | service rate since the last report, in the same unit |
/// | 32 | packets discarded since the start; wraps |
///
/// The next element is present if enough packet pairs arrived:
///
/// | bits | content |
/// | --- | --- |
/// | 16 | `0x8004`, a type that no other format uses |
/// | 16 | 8, the length |
/// | 32 | rate of the bottleneck in bit/s, IEEE 754 binary32 |
///
/// The next element is present if ECN-capable packets arrived (RFC 3168). It has the sum of the ECT(0), ECT(1) and
/// ECN-CE counters of RFC 6679, Sec. 5.2, and the ECN-CE counter alone:
///
/// | bits | content |
/// | --- | --- |
/// | 16 | `0x8005`, a type that no other format uses |
/// | 16 | 12, the length |
/// | 32 | packets that arrived with ECT or CE since the start; wraps |
/// | 32 | packets that arrived with CE since the start; wraps |
///
/// The [`Receipt`] is last, if it was requested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayReport {
    /// The interval's delay statistics; `None` if there are too few samples.
    pub delay: Option<DelaySummary>,
    /// What was subtracted from the delays; `None` if sender and receiver know the relation of their clocks.
    pub origin: Option<DelayOrigin>,
    /// The state of the playout buffer; `None` if the receiver has no such buffer.
    pub playout: Option<PlayoutReport>,
    /// The bottleneck's rate, to 24 bits of precision; `None` if too few packet pairs arrived.
    pub bottleneck: Option<Rate>,
    /// Counters of ECN-capable and of marked packets; `None` if no ECN-capable packet has arrived.
    pub marks: Option<MarkReport>,
    /// The receipt, if it was requested.
    pub receipt: Option<Receipt>,
}

/// Number of ECN-capable packets and number of marked packets (RFC 3168) that have arrived since the start, both modulo
/// 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkReport {
    /// Packets that arrived with ECT(0), ECT(1) or CE.
    pub capable: u32,
    /// Packets that arrived with CE.
    pub marked: u32,
}

impl MarkReport {
    /// Returns the share of marked packets among the ECN-capable packets that arrived since the report `before`; `None`
    /// if no such packet arrived, or if more packets were marked than arrived.
    pub fn share_since(self, before: Self) -> Option<f64> {
        let [capable, marked] = [self.capable.wrapping_sub(before.capable), self.marked.wrapping_sub(before.marked)];
        (capable > 0 && marked <= capable).then(|| f64::from(marked) / f64::from(capable))
    }
}

/// The state of a receiver's playout buffer in a report. Rates go up to 34 Gbit/s in steps of 8 bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayoutReport {
    /// Number of the session's packets in the buffer.
    pub occupancy: u32,
    /// Rate at which packets arrived since the last report, including discarded packets.
    pub arrival: Rate,
    /// Rate at which the buffer played out packets since the last report.
    pub service: Rate,
    /// Number of packets since the start that arrived while the buffer was full, modulo 2³².
    pub discarded: u32,
}

/// What was subtracted from the delays in a report, because the relation of the clocks is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayOrigin {
    /// The origin, which was subtracted from the reported delays. A delay before the subtraction is the receiver's
    /// clock at arrival minus the sender's clock at sending.
    pub origin: Span,
    /// The interval's minimum delay minus [`origin`](Self::origin); `None` if no packet arrived.
    pub least: Option<Span>,
}

/// Encoded delays are in units of 1/`MEAN_SCALE` s.
const MEAN_SCALE: f64 = (1u32 << 24) as f64;
const NO_MEAN: u32 = 0x8000_0000;
const NO_VARIANCE: u32 = 0x7FC0_0000;

impl DelayReport {
    /// Maximum number of samples in a report; a larger count is encoded as this maximum.
    pub const MAX_SAMPLES: u16 = 0x7FFF;

    /// Creates a report with delay statistics only, for clocks whose relation is known.
    pub const fn agreed(delay: Option<DelaySummary>) -> Self {
        Self { delay, origin: None, playout: None, bottleneck: None, marks: None, receipt: None }
    }

    /// Returns the encoded extension.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.statistics().to_vec();
        if let Some(DelayOrigin { origin, least }) = self.origin {
            out.extend_from_slice(&ORIGIN_TYPE.to_be_bytes());
            out.extend_from_slice(&ORIGIN_LEN.to_be_bytes());
            out.extend_from_slice(&origin.as_nanos().to_be_bytes());
            let least = least.map_or(NO_MEAN, |least| fixed(least.as_secs_f64()));
            out.extend_from_slice(&least.to_be_bytes());
        }
        if let Some(PlayoutReport { occupancy, arrival, service, discarded }) = self.playout {
            let head = u32::from(PLAYOUT_TYPE) << 16 | u32::from(PLAYOUT_LEN);
            for word in [head, occupancy, bytes_per_second(arrival), bytes_per_second(service), discarded] {
                out.extend_from_slice(&word.to_be_bytes());
            }
        }
        if let Some(bottleneck) = self.bottleneck {
            out.extend_from_slice(&BOTTLENECK_TYPE.to_be_bytes());
            out.extend_from_slice(&BOTTLENECK_LEN.to_be_bytes());
            out.extend_from_slice(&(bottleneck.as_bps_f64() as f32).to_be_bytes());
        }
        if let Some(MarkReport { capable, marked }) = self.marks {
            for word in [u32::from(MARKS_TYPE) << 16 | u32::from(MARKS_LEN), capable, marked] {
                out.extend_from_slice(&word.to_be_bytes());
            }
        }
        if let Some(receipt) = self.receipt {
            receipt.write(&mut out);
        }
        out
    }

    fn statistics(&self) -> [u8; 12] {
        let (samples, mean, variance) = self.delay.map_or((0, NO_MEAN, NO_VARIANCE), |delay| {
            let samples = u16::try_from(delay.samples).unwrap_or(Self::MAX_SAMPLES).min(Self::MAX_SAMPLES);
            (samples, fixed(delay.mean_s), (delay.variance_s2 as f32).to_bits())
        });
        let head = u32::from(OURS | samples) << 16 | u32::from(REPORT_LEN);
        let mut bytes = [0; 12];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip([head, mean, variance]) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Reads the extension of a receiver report.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the extension is too short; [`WireError::Extension`] if it has another format or a
    /// rate is invalid; [`WireError::Statistics`] if the mean or the variance is invalid, or if a report that states
    /// them has fewer than two samples.
    pub fn parse(extension: &[u8]) -> Result<Self, WireError> {
        let refused = WireError::Extension { extension: "delay report", found: extension.len(), need: 12 };
        let mut reader = Reader::new(extension, 0);
        let (kind, length) = (reader.u16("extension type")?, reader.u16("extension length")?);
        let (mean, variance_bits) = (reader.u32("mean delay")?, reader.u32("delay variance")?);
        if kind & OURS == 0 || length != REPORT_LEN {
            return Err(refused);
        }
        let is_next = |reader: &Reader<'_>, kind: u16| reader.rest().starts_with(&kind.to_be_bytes());
        let origin = is_next(&reader, ORIGIN_TYPE).then(|| DelayOrigin::read(&mut reader)).transpose()?;
        let playout = is_next(&reader, PLAYOUT_TYPE).then(|| PlayoutReport::read(&mut reader)).transpose()?;
        let bottleneck = is_next(&reader, BOTTLENECK_TYPE).then(|| read_bottleneck(&mut reader)).transpose()?;
        let marks = is_next(&reader, MARKS_TYPE).then(|| MarkReport::read(&mut reader)).transpose()?;
        let receipt = Receipt::read(&mut reader)?;
        if !reader.rest().is_empty() {
            return Err(refused);
        }
        let samples = kind & !OURS;
        if (samples, mean, variance_bits) == (0, NO_MEAN, NO_VARIANCE) {
            return Ok(Self { delay: None, origin, playout, bottleneck, marks, receipt });
        }
        let variance_s2 = f64::from(f32::from_bits(variance_bits));
        if samples < 2 || mean == NO_MEAN || !variance_s2.is_finite() || variance_s2.is_sign_negative() {
            return Err(WireError::Statistics { samples, variance_bits });
        }
        let mean_s = f64::from(mean.cast_signed()) / MEAN_SCALE;
        let delay = Some(DelaySummary { mean_s, variance_s2, samples: u64::from(samples) });
        Ok(Self { delay, origin, playout, bottleneck, marks, receipt })
    }
}

impl DelayOrigin {
    fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let refused = WireError::Extension { extension: "delay origin", found: reader.rest().len(), need: 16 };
        let (kind, length) = (reader.u16("extension type")?, reader.u16("extension length")?);
        let origin = Span::from_nanos(reader.u64("delay origin")?.cast_signed());
        let least = reader.u32("least delay")?;
        if kind != ORIGIN_TYPE || length != ORIGIN_LEN {
            return Err(refused);
        }
        let least = (least != NO_MEAN).then(|| Span::from_secs_f64(f64::from(least.cast_signed()) / MEAN_SCALE));
        Ok(Self { origin, least: least.flatten() })
    }
}

impl PlayoutReport {
    fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let refused = WireError::Extension { extension: "playout report", found: reader.rest().len(), need: 20 };
        let (kind, length) = (reader.u16("extension type")?, reader.u16("extension length")?);
        let occupancy = reader.u32("occupancy")?;
        let (arrival, service) = (reader.u32("arrival rate")?, reader.u32("service rate")?);
        let discarded = reader.u32("discarded packets")?;
        if kind != PLAYOUT_TYPE || length != PLAYOUT_LEN {
            return Err(refused);
        }
        let rate = |bytes: u32| Rate::from_bps(u64::from(bytes).saturating_mul(8));
        Ok(Self { occupancy, arrival: rate(arrival), service: rate(service), discarded })
    }
}

impl MarkReport {
    fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let refused = WireError::Extension { extension: "mark report", found: reader.rest().len(), need: 12 };
        let (kind, length) = (reader.u16("extension type")?, reader.u16("extension length")?);
        let (capable, marked) = (reader.u32("packets that may be marked")?, reader.u32("marked packets")?);
        if kind != MARKS_TYPE || length != MARKS_LEN {
            return Err(refused);
        }
        Ok(Self { capable, marked })
    }
}

/// Converts a rate to bytes per second, rounded; a rate that is too high becomes the maximum.
fn bytes_per_second(rate: Rate) -> u32 {
    u32::try_from(rate.as_bps().saturating_add(4) / 8).unwrap_or(u32::MAX)
}

/// Reads the element with the bottleneck's rate.
fn read_bottleneck(reader: &mut Reader<'_>) -> Result<Rate, WireError> {
    let refused = WireError::Extension { extension: "bottleneck", found: reader.rest().len(), need: 8 };
    let (kind, length) = (reader.u16("extension type")?, reader.u16("extension length")?);
    let bps = f32::from_bits(reader.u32("bottleneck")?);
    if kind != BOTTLENECK_TYPE || length != BOTTLENECK_LEN {
        return Err(refused);
    }
    Rate::from_bps_f64(f64::from(bps)).ok_or(refused)
}

/// Encodes seconds in steps of 2⁻²⁴ s. Values out of range become the nearest value in range. The lowest code is
/// reserved.
fn fixed(seconds: f64) -> u32 {
    (libm::round(seconds * MEAN_SCALE) as i32).max(-i32::MAX).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_book() {
        // The report has 5000 samples, a mean of 9.07 ms (152 169 units), and a variance of 3.23 ms².
        let delay = DelaySummary { mean_s: 9.07e-3, variance_s2: 3.23e-6, samples: 5000 };
        let bytes = DelayReport::agreed(Some(delay)).to_bytes();
        assert_eq!(bytes, [0x93, 0x88, 0x00, 0x0C, 0x00, 0x02, 0x52, 0x69, 0x36, 0x58, 0xC2, 0xFA]);
        let none = DelayReport::agreed(None).to_bytes();
        assert_eq!(none, [0x80, 0, 0x00, 0x0C, 0x80, 0, 0, 0, 0x7F, 0xC0, 0, 0]);
        assert_eq!(DelayReport::parse(&none), Ok(DelayReport::agreed(None)));
        let request = ReportRequest { interval_start: 0x3C00_4000, receipt: None };
        assert_eq!(request.to_bytes(), [0x80, 0x01, 0x00, 0x08, 0x3C, 0x00, 0x40, 0x00]);
        assert_eq!(ReportRequest::parse(&request.to_bytes()), Ok(request));
    }

    #[test]
    fn an_origin_stands_behind_the_statistics() {
        let origin = DelayOrigin { origin: Span::from_secs(-3600), least: Some(Span::from_millis(-500)) };
        let report = DelayReport { origin: Some(origin), ..DelayReport::agreed(None) };
        let bytes = report.to_bytes();
        // The origin is -3600 s = -3 600 000 000 000 ns; the minimum delay is -0.5 s = -2²³ units.
        assert_eq!(bytes[12..], [0x80, 2, 0, 16, 0xFF, 0xFF, 0xFC, 0xB9, 0xCF, 0x47, 0x60, 0x00, 0xFF, 0x80, 0, 0]);
        assert_eq!(DelayReport::parse(&bytes), Ok(report));
        for end in 13..bytes.len() {
            assert!(DelayReport::parse(&bytes[..end]).is_err());
        }
        let none = DelayReport { origin: Some(DelayOrigin { least: None, ..origin }), ..report };
        assert_eq!(DelayReport::parse(&none.to_bytes()), Ok(none));
    }

    #[test]
    fn marks_are_counted_since_the_start_and_told_since_the_last_report() {
        let marks = MarkReport { capable: 1000, marked: 50 };
        let report =
            DelayReport { marks: Some(marks), bottleneck: Some(Rate::from_bps(8)), ..DelayReport::agreed(None) };
        let bytes = report.to_bytes();
        assert_eq!(bytes[20..], [0x80, 5, 0, 12, 0, 0, 0x03, 0xE8, 0, 0, 0, 50]);
        assert_eq!(DelayReport::parse(&bytes), Ok(report));
        for end in 21..bytes.len() {
            assert!(DelayReport::parse(&bytes[..end]).is_err());
        }
        assert_eq!(marks.share_since(MarkReport::default()), Some(0.05));
        assert_eq!(
            marks.share_since(MarkReport { capable: u32::MAX - 999, marked: u32::MAX - 49 }),
            Some(0.05),
            "both wrap"
        );
        assert_eq!(marks.share_since(marks), None, "none came");
        assert_eq!(marks.share_since(MarkReport { capable: 990, marked: 0 }), None, "more marked than came");
    }

    #[test]
    fn a_playout_buffer_stands_at_the_end_with_or_without_an_origin() {
        let playout = PlayoutReport {
            occupancy: 12,
            arrival: Rate::from_bps(1_600_000),
            service: Rate::from_bps(1_440_000),
            discarded: 39,
        };
        let origin = DelayOrigin { origin: Span::from_secs(1), least: None };
        for origin in [None, Some(origin)] {
            let report = DelayReport { origin, playout: Some(playout), ..DelayReport::agreed(None) };
            let bytes = report.to_bytes();
            // The rates are 200 000 and 180 000 bytes/s.
            let expected = [0x80, 3, 0, 20, 0, 0, 0, 12, 0, 3, 0x0D, 0x40, 0, 2, 0xBF, 0x20, 0, 0, 0, 39];
            assert_eq!(bytes[bytes.len() - 20..], expected);
            assert_eq!(DelayReport::parse(&bytes), Ok(report));
            for end in bytes.len() - 19..bytes.len() {
                assert!(DelayReport::parse(&bytes[..end]).is_err());
            }
            assert!(DelayReport::parse(&[&bytes[..], &expected].concat()).is_err(), "one is enough");
        }
        let fast = PlayoutReport { arrival: Rate::from_bps(u64::MAX), ..playout };
        let bytes = DelayReport { playout: Some(fast), ..DelayReport::agreed(None) }.to_bytes();
        let found = DelayReport::parse(&bytes).expect("a report").playout.expect("a buffer");
        assert_eq!(found.arrival, Rate::from_bps(u64::from(u32::MAX) * 8));
    }

    #[test]
    fn the_bottleneck_stands_last() {
        // The rate 1.2 Mbit/s is 1 200 000 = 1.1444092 · 2²⁰ as a binary32 number.
        let element = [0x80, 4, 0, 8, 0x49, 0x92, 0x7C, 0x00];
        let agreed = DelayReport { bottleneck: Some(Rate::from_bps(1_200_000)), ..DelayReport::agreed(None) };
        let bytes = agreed.to_bytes();
        assert_eq!((bytes.len(), &bytes[12..]), (20, &element[..]));
        assert_eq!(DelayReport::parse(&bytes), Ok(agreed));
        let apart = DelayReport { origin: Some(DelayOrigin { origin: Span::ZERO, least: None }), ..agreed };
        let bytes = apart.to_bytes();
        assert_eq!((bytes.len(), &bytes[28..]), (36, &element[..]));
        assert_eq!(DelayReport::parse(&bytes), Ok(apart));
        for wrong in [f32::NAN, -1.0] {
            let mut bytes = bytes.clone();
            bytes[32..].copy_from_slice(&wrong.to_be_bytes());
            assert!(matches!(DelayReport::parse(&bytes), Err(WireError::Extension { .. })), "{wrong}");
        }
        assert!(DelayReport::parse(&[bytes.as_slice(), &[0]].concat()).is_err(), "nothing may follow");
    }

    #[test]
    fn statistics_without_sense_are_refused() {
        let words = |samples: u16, mean: u32, variance: f32| {
            let mut bytes = [0; 12];
            bytes[..2].copy_from_slice(&(OURS | samples).to_be_bytes());
            bytes[2..4].copy_from_slice(&REPORT_LEN.to_be_bytes());
            bytes[4..8].copy_from_slice(&mean.to_be_bytes());
            bytes[8..].copy_from_slice(&variance.to_bits().to_be_bytes());
            bytes
        };
        for (variance, samples) in [(-1.0, 9), (-0.0, 9), (f32::NAN, 9), (f32::INFINITY, 9), (1.0, 1), (1.0, 0)] {
            assert!(matches!(DelayReport::parse(&words(samples, 5, variance)), Err(WireError::Statistics { .. })));
        }
        assert!(DelayReport::parse(&words(9, 5, 1.0)).is_ok());
    }

    #[test]
    fn other_peoples_extensions_are_refused() {
        // The first extension is an element of type 1, as in Microsoft's RTP. The second extension has a wrong length
        // field.
        for foreign in [[0, 1, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0], [0x80, 9, 0, 16, 0, 0, 0, 5, 0x3F, 0x80, 0, 0]] {
            assert!(matches!(DelayReport::parse(&foreign), Err(WireError::Extension { .. })), "{foreign:?}");
            assert!(ReportRequest::parse(&foreign[..8]).is_err());
        }
        assert!(matches!(DelayReport::parse(&[0x80; 24]), Err(WireError::Extension { .. })));
        assert!(matches!(ReportRequest::parse(&[0; 7]), Err(WireError::Truncated { .. })));
    }

    proptest! {
        #[test]
        fn the_mean_keeps_a_tenth_of_a_microsecond_and_the_variance_seven_digits(
            mean_s in -100.0f64..100.0, exponent in -12.0f64..4.0, samples in 2u64..100_000,
        ) {
            let variance_s2 = 10f64.powf(exponent);
            let sent = DelayReport::agreed(Some(DelaySummary { mean_s, variance_s2, samples }));
            let found = DelayReport::parse(&sent.to_bytes()).unwrap();
            let delay = found.delay.unwrap();
            prop_assert!((delay.mean_s - mean_s).abs() < 1e-7);
            prop_assert!((delay.variance_s2 / variance_s2 - 1.0).abs() < 1e-7);
            prop_assert_eq!(delay.samples, samples.min(u64::from(DelayReport::MAX_SAMPLES)));
        }

        #[test]
        fn any_twelve_bytes_give_statistics_that_make_sense_or_none(bytes: [u8; 12]) {
            if let Ok(DelayReport { delay: Some(delay), .. }) = DelayReport::parse(&bytes) {
                prop_assert!(delay.mean_s.is_finite() && delay.variance_s2 >= 0.0 && delay.samples >= 2);
            }
        }
    }
}
