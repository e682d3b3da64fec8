use super::reader::Reader;
use super::{NtpTime, WireError};
use crate::measure::DelaySummary;

/// The profile-specific extension that makes a sender report a request: 8 bytes.
///
/// Source: Waki 2013, Sec. 5.1. The receiver is asked about the packets sent since the rate was last decided, which was
/// when the report on the request of this time arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportRequest {
    /// When the previous request left (t with index i − 1).
    pub interval_start: NtpTime,
}

impl ReportRequest {
    /// The extension's bytes.
    pub const fn to_bytes(self) -> [u8; 8] {
        self.interval_start.as_bits().to_be_bytes()
    }

    /// Reads the extension of a sender report.
    ///
    /// # Errors
    /// [`WireError::ExtensionLength`] where it has another length.
    pub fn parse(extension: &[u8]) -> Result<Self, WireError> {
        let bytes = <[u8; 8]>::try_from(extension).map_err(|_| WireError::ExtensionLength {
            extension: "report request",
            found: extension.len(),
            need: 8,
        })?;
        Ok(Self { interval_start: NtpTime::from_bits(u64::from_be_bytes(bytes)) })
    }
}

/// The profile-specific extension of the receiver report that answers a request: 12 bytes.
///
/// | word | content |
/// | --- | --- |
/// | 1 | mean one-way delay, signed, in 2⁻²⁴ s: ±128 s in steps of 0.06 µs |
/// | 2 | variance in s², IEEE 754 binary32 |
/// | 3 | number of the report (8 bits), count of samples (24 bits, sticking at its largest) |
///
/// Too few samples have a code of their own: `0x8000_0000`, `0x7FC0_0000`, and a count of zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayReport {
    /// Counts the reports, modulo 256.
    pub number: u8,
    /// The interval's statistics; `None` for too few samples.
    pub delay: Option<DelaySummary>,
}

/// Units of the mean in a second.
const MEAN_SCALE: f64 = (1u32 << 24) as f64;
const NO_MEAN: u32 = 0x8000_0000;
const NO_VARIANCE: u32 = 0x7FC0_0000;
const MAX_SAMPLES: u32 = 0x00FF_FFFF;

impl DelayReport {
    /// The extension's bytes.
    pub fn to_bytes(self) -> [u8; 12] {
        let (mean, variance, samples) = self.delay.map_or((NO_MEAN, NO_VARIANCE, 0), |delay| {
            // Casting saturates; the lowest code is taken.
            let mean = (libm::round(delay.mean_s * MEAN_SCALE) as i32).max(-i32::MAX);
            let samples = u32::try_from(delay.samples).unwrap_or(MAX_SAMPLES).min(MAX_SAMPLES);
            (mean.cast_unsigned(), (delay.variance_s2 as f32).to_bits(), samples)
        });
        let last = u32::from(self.number) << 24 | samples;
        let mut bytes = [0; 12];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip([mean, variance, last]) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Reads the extension of a receiver report.
    ///
    /// # Errors
    /// [`WireError::ExtensionLength`] where it has another length; [`WireError::Statistics`] where the variance is
    /// negative or not a finite number, or less than two samples are said to have given one.
    pub fn parse(extension: &[u8]) -> Result<Self, WireError> {
        if extension.len() != 12 {
            return Err(WireError::ExtensionLength { extension: "delay report", found: extension.len(), need: 12 });
        }
        let mut reader = Reader::new(extension, 0);
        let (mean, variance_bits) = (reader.u32("mean delay")?, reader.u32("delay variance")?);
        let last = reader.u32("report number and sample count")?;
        let (number, samples) = ((last >> 24) as u8, last & MAX_SAMPLES);
        if (mean, variance_bits, samples) == (NO_MEAN, NO_VARIANCE, 0) {
            return Ok(Self { number, delay: None });
        }
        let variance_s2 = f64::from(f32::from_bits(variance_bits));
        if samples < 2 || mean == NO_MEAN || !variance_s2.is_finite() || variance_s2.is_sign_negative() {
            return Err(WireError::Statistics { samples, variance_bits });
        }
        let mean_s = f64::from(mean.cast_signed()) / MEAN_SCALE;
        Ok(Self { number, delay: Some(DelaySummary { mean_s, variance_s2, samples: u64::from(samples) }) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_book() {
        // Mean 9.07 ms = 152 169 units, variance 3.23 ms², report 7 over 5000 samples.
        let delay = DelaySummary { mean_s: 9.07e-3, variance_s2: 3.23e-6, samples: 5000 };
        let bytes = DelayReport { number: 7, delay: Some(delay) }.to_bytes();
        assert_eq!(bytes, [0x00, 0x02, 0x52, 0x69, 0x36, 0x58, 0xC2, 0xFA, 0x07, 0x00, 0x13, 0x88]);
        let none = DelayReport { number: 8, delay: None }.to_bytes();
        assert_eq!(none, [0x80, 0, 0, 0, 0x7F, 0xC0, 0, 0, 0x08, 0, 0, 0]);
        assert_eq!(DelayReport::parse(&none), Ok(DelayReport { number: 8, delay: None }));
    }

    #[test]
    fn statistics_without_sense_are_refused() {
        let words = |mean: u32, variance: f32, last: u32| {
            let mut bytes = [0; 12];
            bytes[..4].copy_from_slice(&mean.to_be_bytes());
            bytes[4..8].copy_from_slice(&variance.to_bits().to_be_bytes());
            bytes[8..].copy_from_slice(&last.to_be_bytes());
            bytes
        };
        for (variance, samples) in [(-1.0, 9), (-0.0, 9), (f32::NAN, 9), (f32::INFINITY, 9), (1.0, 1), (1.0, 0)] {
            assert!(matches!(DelayReport::parse(&words(5, variance, samples)), Err(WireError::Statistics { .. })));
        }
        assert!(matches!(DelayReport::parse(&[0; 24]), Err(WireError::ExtensionLength { found: 24, .. })));
        assert!(matches!(ReportRequest::parse(&[0; 7]), Err(WireError::ExtensionLength { found: 7, .. })));
    }

    proptest! {
        #[test]
        fn the_mean_keeps_a_tenth_of_a_microsecond_and_the_variance_seven_digits(
            mean_s in -100.0f64..100.0, exponent in -12.0f64..4.0, samples in 2u64..20_000_000, number: u8,
        ) {
            let variance_s2 = 10f64.powf(exponent);
            let sent = DelayReport { number, delay: Some(DelaySummary { mean_s, variance_s2, samples }) };
            let found = DelayReport::parse(&sent.to_bytes()).unwrap();
            let delay = found.delay.unwrap();
            prop_assert_eq!(found.number, number);
            prop_assert!((delay.mean_s - mean_s).abs() < 1e-7);
            prop_assert!((delay.variance_s2 / variance_s2 - 1.0).abs() < 1e-7);
            prop_assert_eq!(delay.samples, samples.min(u64::from(MAX_SAMPLES)));
        }

        #[test]
        fn any_twelve_bytes_give_statistics_that_make_sense_or_none(bytes: [u8; 12]) {
            if let Ok(DelayReport { delay: Some(delay), .. }) = DelayReport::parse(&bytes) {
                prop_assert!(delay.mean_s.is_finite() && delay.variance_s2 >= 0.0 && delay.samples >= 2);
            }
        }
    }
}
