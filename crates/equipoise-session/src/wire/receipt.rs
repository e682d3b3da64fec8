//! Receipts prove that a report comes from the receiver of the media. An element of the report request asks for a
//! receipt. The receipt is an element of the report.

use alloc::vec::Vec;

use super::WireError;
use super::delay_report::OURS;
use super::reader::Reader;

/// The element that requests a receipt. It has 12 bytes and follows the first element of a request.
///
/// | bits | content |
/// | --- | --- |
/// | 16 | `0x8005`, the type |
/// | 16 | 12, the length |
/// | 32 | nonce, drawn at random for this request |
/// | 32 | number of the queried packet on its path; the lower 16 bits are the sequence number |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiptRequest {
    /// A random number that is chosen for this request, so that only a peer that saw the request can answer it.
    pub nonce: u32,
    /// The sender's number of the queried packet. Its lower 16 bits are the packet's sequence number.
    pub number: u32,
}

/// A receipt, the last element of a report: 20 bytes.
///
/// | bits | content |
/// | --- | --- |
/// | 16 | `0x8006`, the type |
/// | 16 | 20, the length |
/// | 32 | the request's nonce |
/// | 32 | packets that have arrived since the session began, each counted once; wraps |
/// | 32 | whether the queried packet arrived: 0 or 1 |
/// | 32 | if it arrived, the lower 32 bits of the NTP timestamp of its sending time |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The request's nonce.
    pub nonce: u32,
    /// Number of packets that have arrived since the session began, each counted once, modulo 2³².
    pub arrived: u32,
    /// The lower 32 bits of the NTP timestamp in the queried packet; `None` if the packet did not arrive.
    pub stamp: Option<u32>,
}

const REQUEST_HEAD: u32 = ((OURS as u32 | 5) << 16) + 12;
const RECEIPT_HEAD: u32 = ((OURS as u32 | 6) << 16) + 20;

impl ReceiptRequest {
    /// Appends the element to `out`.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        for word in [REQUEST_HEAD, self.nonce, self.number] {
            out.extend_from_slice(&word.to_be_bytes());
        }
    }

    /// Reads the element, which must be the last one of the extension; `None` if no element is left.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, WireError> {
        let found = reader.rest().len();
        if found == 0 {
            return Ok(None);
        }
        let head = reader.u32("receipt request")?;
        let (nonce, number) = (reader.u32("nonce")?, reader.u32("packet's number")?);
        if head != REQUEST_HEAD {
            return Err(WireError::Extension { extension: "receipt request", found, need: 12 });
        }
        Ok(Some(Self { nonce, number }))
    }
}

impl Receipt {
    /// Appends the element to `out`.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let Self { nonce, arrived, stamp } = self;
        for word in [RECEIPT_HEAD, nonce, arrived, u32::from(stamp.is_some()), stamp.unwrap_or(0)] {
            out.extend_from_slice(&word.to_be_bytes());
        }
    }

    /// Reads the element, which must be the last one of the extension; `None` if no element is left.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, WireError> {
        let found = reader.rest().len();
        if found == 0 {
            return Ok(None);
        }
        let head = reader.u32("receipt")?;
        let (nonce, arrived) = (reader.u32("nonce")?, reader.u32("packets arrived")?);
        let (did_arrive, stamp) = (reader.u32("whether the packet arrived")?, reader.u32("sending time")?);
        if head != RECEIPT_HEAD || did_arrive > 1 {
            return Err(WireError::Extension { extension: "receipt", found, need: 20 });
        }
        Ok(Some(Self { nonce, arrived, stamp: (did_arrive == 1).then_some(stamp) }))
    }
}

#[cfg(test)]
mod tests {
    use crate::wire::{DelayReport, ReportRequest};

    use super::*;

    #[test]
    fn a_receipt_and_its_request_stand_behind_all_else() {
        let receipt = Some(ReceiptRequest { nonce: 0xCAFE_F00D, number: 0x0005_1234 });
        let bytes = ReportRequest { interval_start: 7, receipt }.to_bytes();
        assert_eq!(bytes[8..], [0x80, 5, 0, 12, 0xCA, 0xFE, 0xF0, 0x0D, 0, 5, 0x12, 0x34]);
        assert_eq!(ReportRequest::parse(&bytes), Ok(ReportRequest { interval_start: 7, receipt }));
        for stamp in [None, Some(9)] {
            let receipt = Some(Receipt { nonce: 5, arrived: 0xFFFF_FFFF, stamp });
            let report = DelayReport { receipt, ..DelayReport::agreed(None) };
            let bytes = report.to_bytes();
            let said = if stamp.is_some() { [0, 0, 0, 1, 0, 0, 0, 9] } else { [0; 8] };
            assert_eq!(bytes[12..24], [0x80, 6, 0, 20, 0, 0, 0, 5, 0xFF, 0xFF, 0xFF, 0xFF]);
            assert_eq!(bytes[24..], said);
            assert_eq!(DelayReport::parse(&bytes), Ok(report));
            for end in 13..bytes.len() {
                assert!(DelayReport::parse(&bytes[..end]).is_err());
            }
            assert!(DelayReport::parse(&[&bytes[..], &bytes[12..]].concat()).is_err(), "one is enough");
        }
    }
}
