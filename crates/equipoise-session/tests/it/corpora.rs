//! Tests with packets of other implementations, well formed and malformed, from a folder that is not part of the
//! project.
//!
//! The environment variable `EQUIPOISE_TEST_DATA` names the folder. Its default is `../shared/data`, relative to the
//! project's folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, fs};

use equipoise::units::Instant;
use equipoise_session::wire::WireError;
use equipoise_session::wire::feedback::ArrivalFeedback;
use equipoise_session::wire::rtcp::{RtcpPacket, parse_compound};
use equipoise_session::wire::rtp::RtpPacket;

/// Returns a folder of the test data; `None`, with the reason printed, if the folder does not exist.
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
fn folder(name: &str) -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = env::var_os("EQUIPOISE_TEST_DATA").map_or(default, PathBuf::from).join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: test data (EQUIPOISE_TEST_DATA): packets of other makers at {}", folder.display());
    None
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    let path = folder.join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the name and content of every file of the folder, except for the license.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.retain(|path| path.is_file() && path.file_name() != Some(OsStr::new("LICENSE")));
    paths.sort();
    let named = |path: PathBuf| {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        (name, fs::read(path).expect("the file can be read"))
    };
    paths.into_iter().map(named).collect()
}

/// Returns a summary of a datagram: the kind of each packet and a count of its parts.
fn outline(datagram: &[u8]) -> Result<String, WireError> {
    let describe = |packet| match packet {
        RtcpPacket::SenderReport(report) => format!("SR {}", report.blocks().count()),
        RtcpPacket::ReceiverReport(report) => format!("RR {}", report.blocks().count()),
        RtcpPacket::SourceDescription(description) => format!("SDES {}", description.cnames().count()),
        RtcpPacket::Goodbye(goodbye) => format!("BYE {}", goodbye.ssrcs().count()),
        RtcpPacket::Subflows(reports) => format!("MPRTCP {}", reports.packets().count()),
        RtcpPacket::Other { packet_type, count, .. } => format!("{packet_type}/{count}"),
    };
    Ok(parse_compound(datagram)?.map(describe).collect::<Vec<_>>().join(", "))
}

/// Whether the packets follow one another without a gap up to the last byte of the datagram, judged by version and
/// length fields alone.
fn is_framed(datagram: &[u8]) -> bool {
    match datagram {
        [first, _, high, low, rest @ ..] if first >> 6 == 2 => {
            let body = 4 * usize::from(u16::from_be_bytes([*high, *low]));
            rest.len() == body || rest.get(body..).is_some_and(is_framed)
        }
        _ => false,
    }
}

#[test]
fn rtcp_of_an_asyncio_stack_is_read_or_refused_as_its_name_says() {
    let Some(folder) = folder("rtp/aiortc") else { return };
    for (name, expected) in [
        ("rtcp_sr.bin", "SR 1"),
        ("rtcp_rr.bin", "RR 1"),
        ("rtcp_sdes.bin", "SDES 1"),
        ("rtcp_bye.bin", "BYE 1"),
        ("rtcp_bye_no_sources.bin", "BYE 0"),
        ("rtcp_bye_padding.bin", "BYE 0"),
        ("rtcp_rtpfb.bin", "205/1"),
        ("rtcp_psfb_pli.bin", "206/1"),
        // These packets are returned unparsed. The parsers of NACKs and of key frame requests would reject them.
        ("rtcp_rtpfb_invalid.bin", "205/1"),
        ("rtcp_psfb_invalid.bin", "206/1"),
    ] {
        assert_eq!(outline(&read(&folder, name)).as_deref(), Ok(expected), "{name}");
    }
    for (name, wrong) in [
        ("rtcp_sr_invalid.bin", "SR NTP time"),
        ("rtcp_rr_invalid.bin", "RR report blocks"),
        ("rtcp_bye_invalid.bin", "BYE sources"),
        ("rtcp_sdes_item_truncated.bin", "SDES item"),
        ("rtcp_sdes_source_truncated.bin", "SDES source"),
    ] {
        let found = outline(&read(&folder, name));
        assert!(matches!(found, Err(WireError::Truncated { field, .. }) if field == wrong), "{name}: {found:?}");
    }
}

#[test]
fn rtp_of_an_asyncio_stack_is_read_to_its_payload() {
    let Some(folder) = folder("rtp/aiortc") else { return };
    for (name, payload_type, sequence, payload) in [
        ("rtp.bin", 0, 15_743, 160),
        ("rtp_dtmf.bin", 101, 24_152, 4),
        ("rtp_only_padding.bin", 120, 27_759, 0),
        ("rtp_only_padding_with_header_extensions.bin", 98, 22_138, 0),
        ("rtp_with_csrc.bin", 0, 16_082, 160),
        ("rtp_with_sdes_mid.bin", 111, 14_156, 54),
    ] {
        let datagram = read(&folder, name);
        let packet = RtpPacket::parse(&datagram).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = (packet.header.payload_type, packet.header.sequence, packet.payload.len());
        assert_eq!(found, (payload_type, sequence, payload), "{name}");
    }
}

#[test]
fn rtcp_that_browsers_send_a_gateway_is_read_and_what_crashed_it_does_no_harm() {
    let Some(folder) = folder("rtp/janus-corpora/rtcp_fuzzer/1meetecho") else { return };
    for (name, expected) in [
        ("sr-sdes.rtcp", "SR 0, SDES 1"),
        ("rr.rtcp", "RR 1"),
        ("rr-sdes-bye.rtcp", "RR 0, SDES 1, BYE 1"),
        ("rr-remb.rtcp", "RR 1, 206/15"),
        ("remb.rtcp", "206/15"),
        ("nacks.rtcp", "205/1"),
        ("pli.rtcp", "206/1"),
        ("fir.rtcp", "206/4"),
        ("twcc-feedback.rtcp", "205/15"),
    ] {
        assert_eq!(outline(&read(&folder, name)).as_deref(), Ok(expected), "{name}");
    }
    for (name, datagram) in files(&folder) {
        assert!(outline(&datagram).is_err() || is_framed(&datagram), "{name}");
    }
}

/// The report has ten consecutive packets. Its first delta is relative to the reference time.
#[test]
fn transport_feedback_that_a_browser_sends_a_gateway_is_read_to_its_times() {
    let Some(folder) = folder("rtp/janus-corpora/rtcp_fuzzer/1meetecho") else { return };
    let datagram = read(&folder, "twcc-feedback.rtcp");
    let packet = parse_compound(&datagram).expect("well formed").next().expect("a packet");
    let Some(Ok(ArrivalFeedback::Transport(feedback))) = ArrivalFeedback::of(&packet) else { panic!("{packet:?}") };
    assert_eq!((feedback.base, feedback.count, feedback.reference, feedback.number), (0x0A74, 10, 0x0005_3F58, 0xBB));
    let reference = i64::from(feedback.reference) * 64_000;
    let times = feedback.report(Instant::ZERO).packets.filter_map(|packet| packet.arrival?.time.measured());
    let since: Vec<_> = times.map(|at| at.as_nanos() as i64 / 1000 - reference).collect();
    let expected = [56_000, 56_000, 57_000, 57_000, 57_000, 57_000, 57_000, 57_000, 62_000, 62_000];
    assert_eq!(since, expected);
}

#[test]
fn of_the_rtcp_seeds_of_webrtc_those_are_refused_whose_contents_do_not_fit() {
    let Some(folder) = folder("rtp/janus-corpora/rtcp_fuzzer/2webrtc") else { return };
    let refused: Vec<_> = files(&folder)
        .into_iter()
        .filter(|(_, datagram)| is_framed(datagram))
        .filter_map(|(name, datagram)| outline(&datagram).err().map(|error| (name, error)))
        .collect();
    let names: Vec<_> = refused.iter().map(|(name, _)| name.trim_end_matches(".rtcp")).collect();
    // The refused datagrams have unterminated lists of SDES items, fewer sources than their count states, or invalid
    // padding.
    assert_eq!(names, ["25", "32", "35", "37", "66", "9"], "{refused:?}");
    for (name, datagram) in files(&folder) {
        assert!(outline(&datagram).is_err() || is_framed(&datagram), "{name}");
    }
}

#[test]
fn rtp_that_crashed_a_gateway_does_no_harm() {
    for name in ["rtp/janus-corpora/rtp_fuzzer/1meetecho", "rtp/janus-corpora/rtp_fuzzer/2webrtc"] {
        let Some(folder) = folder(name) else { return };
        for (name, datagram) in files(&folder) {
            match RtpPacket::parse(&datagram) {
                Ok(packet) => assert!(packet.payload.len() + 12 <= datagram.len(), "{name}"),
                Err(error) => assert!(!name.contains("-with-ext"), "{name}: {error}"),
            }
        }
    }
}
