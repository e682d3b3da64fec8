//! Examples of datagrams, and of parts of datagrams, that Equipoise sends. The book has the same examples.

use equipoise::measure::DelaySummary;
use equipoise::units::{Instant, Rate, ReceiverClock, Span};
use equipoise_pair::wire::{AduHeader, AduPart};
use equipoise_session::Ecn;
use equipoise_session::wire::feedback::{
    ArrivalTime, PacketArrival, PacketStatus, TransportHead, encode_congestion_feedback, encode_transport_feedback,
};
use equipoise_session::wire::key_frames::{KeyFrameRequest, encode_key_frame_request};
use equipoise_session::wire::nack::encode_nack;
use equipoise_session::wire::rtcp::{self, ReportBlock, SenderInfo};
use equipoise_session::wire::rtp::RtpHeader;
use equipoise_session::wire::{DelayReport, NtpTime, PlayoutReport, ReportRequest};

pub(crate) const SENDER: u32 = 0x0E5F_0001;
pub(crate) const RECEIVER: u32 = 0x0E5F_0002;
pub(crate) const CNAME: &str = "studio@192.0.2.1";

/// A time whose fraction is not zero, so that the bytes show where the seconds end.
const NOW: NtpTime = NtpTime::from_bits(0xEE9A_3C01_4000_0000);

/// The time one second before [`NOW`].
const BEFORE: NtpTime = NtpTime::from_bits(0xEE9A_3C00_4000_0000);

pub(crate) fn info() -> SenderInfo {
    SenderInfo { ssrc: SENDER, ntp: NOW, rtp_timestamp: 0x0003_0D40, packet_count: 125, octet_count: 118_000 }
}

pub(crate) fn block() -> ReportBlock {
    ReportBlock {
        ssrc: SENDER,
        fraction_lost: 3,
        cumulative_lost: -2,
        extended_highest: 0x0001_0203,
        jitter: 45,
        last_sr: NOW.middle(),
        delay_since_last_sr: 0,
    }
}

pub(crate) fn header() -> RtpHeader {
    RtpHeader {
        marker: true,
        payload_type: 96,
        sequence: 0x1234,
        timestamp: 0x0001_5F90,
        ssrc: SENDER,
        send_time: Some(NtpTime::from_bits(0xEE9A_3C00_8000_0000)),
        subflow: None,
        transport_sequence: None,
    }
}

pub(crate) fn delay_report() -> DelayReport {
    let delay = DelaySummary { mean_s: 9.07e-3, variance_s2: 3.23e-6, samples: 5000 };
    DelayReport::agreed(Some(delay))
}

pub(crate) const TOO_FEW: DelayReport = DelayReport::agreed(None);

/// Returns the report element of a playout buffer.
pub(crate) fn playout() -> Vec<u8> {
    let (arrival, service) = (Rate::from_bps(1_600_000), Rate::from_bps(1_440_000));
    let playout = Some(PlayoutReport { occupancy: 12, arrival, service, discarded: 39 });
    let all = DelayReport { playout, ..TOO_FEW }.to_bytes();
    all[TOO_FEW.to_bytes().len()..].to_vec()
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

pub(crate) fn part() -> Vec<u8> {
    let part = AduPart { adu: AduHeader { number: 258, length: 5120 }, offset: 512, since_switch: 3 };
    written(|out| part.encode(out))
}

pub(crate) fn media() -> Vec<u8> {
    written(|out| header().encode(out))
}

pub(crate) fn request() -> Vec<u8> {
    written(|out| info().encode(&[], &ReportRequest { interval_start: BEFORE.middle(), receipt: None }.to_bytes(), out))
}

/// Returns the report of an endpoint that sends and receives. Its report block is on the media of [`RECEIVER`].
pub(crate) fn both() -> Vec<u8> {
    let block =
        ReportBlock { ssrc: RECEIVER, fraction_lost: 0, cumulative_lost: 0, last_sr: BEFORE.middle(), ..block() };
    let request = ReportRequest { interval_start: BEFORE.middle(), receipt: None };
    written(|out| info().encode(&[block], &[delay_report().to_bytes(), request.to_bytes()].concat(), out))
}

pub(crate) fn answer() -> Vec<u8> {
    written(|out| rtcp::encode_receiver_report(RECEIVER, &[block()], &delay_report().to_bytes(), out))
}

pub(crate) fn description() -> Vec<u8> {
    written(|out| rtcp::encode_cname(SENDER, CNAME, out))
}

pub(crate) fn goodbye() -> Vec<u8> {
    written(|out| rtcp::encode_goodbye(SENDER, out))
}

/// When the per-packet reports are made: the time [`NOW`] on the receiver's clock.
const REPORTED: Instant<ReceiverClock> =
    Instant::from_nanos((0xEE9A_3C01 - 2_208_988_800) * 1_000_000_000 + 250_000_000);

/// Returns the statuses of consecutive packets from 0x1234 on. `millis` has each arrival time in ms relative to
/// [`REPORTED`], and the ECN field; `None` for a packet that did not arrive.
fn arrivals<const N: usize>(millis: [Option<(i64, Ecn)>; N]) -> impl Iterator<Item = PacketStatus> + Clone {
    let arrival = |(millis, ecn)| PacketArrival { time: ArrivalTime::At(REPORTED + Span::from_millis(millis)), ecn };
    (0x1234..).zip(millis).map(move |(sequence, millis)| PacketStatus { sequence, arrival: millis.map(arrival) })
}

pub(crate) fn congestion_feedback() -> Vec<u8> {
    let mut packets = arrivals([Some((-50, Ecn::NotCapable)), None, Some((-5, Ecn::Marked))]);
    written(|out| {
        encode_congestion_feedback(RECEIVER, REPORTED, 1200, out, |writer| {
            writer.stream(SENDER, &mut packets).expect("a short report");
        });
    })
}

pub(crate) fn transport_feedback() -> Vec<u8> {
    let at = |millis| Some((millis, Ecn::NotCapable));
    let head = TransportHead { ssrc: RECEIVER, media_ssrc: SENDER, number: 7, at: REPORTED };
    let mut packets = arrivals([at(0), at(1), None, at(71)]);
    written(|out| {
        encode_transport_feedback(&head, &mut packets, 1200, out).expect("a short report");
    })
}

/// Returns a receiver's two kinds of key frame request; the full intra request has the number 7.
pub(crate) fn key_frame_requests() -> [Vec<u8>; 2] {
    [KeyFrameRequest::PictureLoss, KeyFrameRequest::FullIntra]
        .map(|request| written(|out| encode_key_frame_request(RECEIVER, SENDER, (request, 7), out)))
}

/// Returns a receiver's request for missing packets.
pub(crate) fn nack() -> Vec<u8> {
    written(|out| {
        encode_nack(RECEIVER, SENDER, [0x1234, 0x1235, 0x1244, 0x1250], 16, out);
    })
}

/// Returns the last datagram of a sender. The last packet of this datagram is a BYE.
pub(crate) fn farewell() -> Vec<u8> {
    let report = written(|out| info().encode(&[], &[], out));
    [report, description(), goodbye()].concat()
}
