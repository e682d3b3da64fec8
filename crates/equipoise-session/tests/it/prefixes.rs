//! Tests that truncated datagrams are rejected or parsed, but never cause a panic.

use equipoise_session::wire::rtcp::{RtcpPacket, parse_compound};
use equipoise_session::wire::rtp::RtpPacket;
use equipoise_session::wire::{DelayReport, ReportRequest, is_rtcp};

use crate::samples;

#[test]
fn a_compound_counts_from_its_first_packet_to_the_end_of_one_and_nowhere_else() {
    let farewell = samples::farewell();
    let ends: Vec<_> = (0..=farewell.len()).filter(|&end| parse_compound(&farewell[..end]).is_ok()).collect();
    // The valid lengths are those of SR, of SR and SDES, and of SR, SDES and BYE.
    assert_eq!(ends, [28, 28 + samples::description().len(), farewell.len()]);
}

#[test]
fn requests_and_reports_cut_short_are_refused() {
    for datagram in [samples::request(), samples::answer()] {
        for end in 0..datagram.len() {
            assert!(parse_compound(&datagram[..end]).is_err(), "{end} of {}", datagram.len());
        }
    }
}

#[test]
fn extensions_of_any_other_length_are_refused() {
    let mut request = ReportRequest { interval_start: 7, receipt: None }.to_bytes();
    let mut report = samples::delay_report().to_bytes();
    (request, report) = (request.repeat(3), report.repeat(3));
    for length in 0..request.len() {
        assert_eq!(ReportRequest::parse(&request[..length]).is_ok(), length == 8, "{length}");
        assert_eq!(DelayReport::parse(&report[..length]).is_ok(), length == 12, "{length}");
    }
}

#[test]
fn a_media_packet_is_never_mistaken_for_rtcp_nor_the_other_way_round() {
    let media = samples::media();
    assert!(!is_rtcp(&media));
    assert_eq!(RtpPacket::parse(&media).map(|packet| packet.header), Ok(samples::header()));
    for datagram in [samples::request(), samples::answer(), samples::farewell()] {
        assert!(is_rtcp(&datagram));
        assert!((0..2).all(|end| !is_rtcp(&datagram[..end])), "without its second byte nothing can be said");
    }
}

#[test]
fn a_report_carries_its_statistics_through_the_datagram() {
    let answer = samples::answer();
    let Some(RtcpPacket::ReceiverReport(report)) = parse_compound(&answer).expect("well formed").next() else {
        panic!("a receiver report")
    };
    let found = DelayReport::parse(report.extension).expect("our own extension");
    let (sent, delay) = (samples::delay_report().delay.unwrap(), found.delay.expect("enough samples"));
    assert_eq!(delay.samples, sent.samples);
    assert!((delay.mean_s - sent.mean_s).abs() < 1e-7, "{delay:?}");
    assert!((delay.variance_s2 / sent.variance_s2 - 1.0).abs() < 1e-7, "{delay:?}");
}
