//! The report extension of an endpoint that both sends and receives media: a delay report on received media, and a
//! request for a delay report on sent media.

use super::WireError;
use super::delay_report::is_request;
use super::reader::Reader;

/// The profile-specific report extension of an endpoint that sends and receives, split into its two parts: a
/// [`DelayReport`](super::DelayReport) on received media, followed by a [`ReportRequest`](super::ReportRequest) on sent
/// media. Each part may be missing.
///
/// Our reading: the report is the first part. The parser finds the beginning of the request by the type and the length
/// of the request's first element. No element of a report has both this type and this length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JointExtension<'a> {
    /// The bytes of the report; empty if there is no report.
    pub report: &'a [u8],
    /// The bytes of the request; empty if there is no request.
    pub request: &'a [u8],
}

impl<'a> JointExtension<'a> {
    /// Splits an extension into its parts, without parsing them.
    ///
    /// # Errors
    /// [`WireError::Truncated`] and [`WireError::Extension`] if the extension is not a list of elements.
    pub fn parse(extension: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(extension, 0);
        while !reader.rest().is_empty() && !is_request(reader.rest()) {
            let found = reader.rest().len();
            reader.u16("extension type")?;
            let length = usize::from(reader.u16("extension length")?);
            let short = WireError::Extension { extension: "element", found, need: 4 };
            reader.bytes(length.checked_sub(4).ok_or(short)?, "extension element")?;
        }
        let request = reader.rest();
        let report = extension.get(..reader.offset()).unwrap_or(extension);
        Ok(Self { report, request })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::{DelayOrigin, DelayReport, MarkReport, PlayoutReport, Receipt, ReceiptRequest, ReportRequest};
    use equipoise::measure::DelaySummary;
    use equipoise::units::{Rate, Span};

    fn reports() -> impl Strategy<Value = DelayReport> {
        let delay = proptest::option::of((2u64..0x7FFF, 0i32..1 << 20));
        (delay, any::<[bool; 5]>(), any::<[u32; 4]>()).prop_map(|(delay, has, [a, b, c, d])| DelayReport {
            delay: delay.map(|(samples, mean)| DelaySummary {
                mean_s: f64::from(mean) / f64::from(1 << 24),
                variance_s2: 0.25,
                samples,
            }),
            origin: has[0].then_some(DelayOrigin { origin: Span::from_nanos(a.into()), least: None }),
            playout: has[1].then(|| PlayoutReport {
                occupancy: a,
                arrival: Rate::from_bps(u64::from(b) * 8),
                service: Rate::from_bps(u64::from(c) * 8),
                discarded: d,
            }),
            bottleneck: has[2].then_some(Rate::from_bps(3_000_000)),
            marks: has[3].then_some(MarkReport { capable: b, marked: c }),
            receipt: has[4].then_some(Receipt { nonce: d, arrived: a, stamp: Some(c) }),
        })
    }

    fn requests() -> impl Strategy<Value = ReportRequest> {
        (any::<u32>(), proptest::option::of(any::<(u32, u32)>())).prop_map(|(interval_start, receipt)| ReportRequest {
            interval_start,
            receipt: receipt.map(|(nonce, number)| ReceiptRequest { nonce, number }),
        })
    }

    proptest! {
        /// If this test fails, a part of a report is taken for a request, or a request for a part of a report. A report
        /// with five samples starts with the same bytes as a receipt request.
        #[test]
        fn a_report_and_a_request_are_told_apart_whatever_they_have(
            report in proptest::option::of(reports()), request in proptest::option::of(requests()),
        ) {
            let said = report.map(|report| report.to_bytes()).unwrap_or_default();
            let asked = request.map(ReportRequest::to_bytes).unwrap_or_default();
            let both = [&said[..], &asked].concat();
            let joint = JointExtension::parse(&both).unwrap();
            prop_assert_eq!(joint, JointExtension { report: &said, request: &asked });
            if let Some(report) = report {
                prop_assert_eq!(DelayReport::parse(joint.report), Ok(report));
            }
            if let Some(request) = request {
                prop_assert_eq!(ReportRequest::parse(joint.request), Ok(request));
            }
        }

        #[test]
        fn any_bytes_are_taken_apart_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(joint) = JointExtension::parse(&bytes) {
                prop_assert_eq!([joint.report, joint.request].concat(), bytes);
            }
        }
    }

    #[test]
    fn an_element_shorter_than_its_own_head_is_refused() {
        for length in 0..4 {
            let bytes: Vec<u8> = [0x80, 9, 0, length, 0, 0, 0, 0].to_vec();
            assert!(JointExtension::parse(&bytes).is_err(), "{length}");
        }
    }
}
