//! Tests that the bytes in the book's examples are the bytes that the encoders write.

use std::fs;
use std::path::Path;

use crate::samples;

/// Returns the bytes of the book's example `name`. The example begins after the line `# NAME` of a code block, and ends
/// at an empty line or at the end of the block. In each line, `#` begins a comment.
fn example(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/wire.md");
    let page = fs::read_to_string(&path).expect("the book has a chapter on wire formats");
    let heading = format!("# {name}");
    let lines = page.lines().skip_while(|line| *line != heading).skip(1);
    let hex: String = lines
        .take_while(|line| !line.starts_with("```") && !line.is_empty())
        .flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace())
        .collect();
    assert!(!hex.is_empty(), "the book has no example `{heading}`");
    let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).expect("a hexadecimal digit")).collect();
    digits.chunks_exact(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).expect("two digits are a byte")).collect()
}

#[test]
fn every_example_of_the_book_is_what_the_encoder_writes() {
    let [loss, intra] = samples::key_frame_requests();
    for (name, bytes) in [
        ("picture loss indication", loss),
        ("full intra request", intra),
        ("request for packets", samples::nack()),
        ("header of a media packet", samples::media()),
        ("request", samples::request()),
        ("report", samples::answer()),
        ("too few samples", samples::TOO_FEW.to_bytes()),
        ("playout buffer", samples::playout()),
        ("congestion control feedback", samples::congestion_feedback()),
        ("transport-wide feedback", samples::transport_feedback()),
        ("head of a part", samples::part()),
        ("last datagram of a sender", samples::farewell()),
        ("answer and request in one report", samples::both()),
    ] {
        assert_eq!(example(name), bytes, "{name}: {bytes:02X?}");
    }
}

#[test]
fn the_lengths_that_the_book_states_hold() {
    // RFC 3550, Sec. 6.4.1: the length field is the number of 32-bit words minus one. Waki 2013 states 64 and 72 bytes
    // for request and report, including 28 bytes of IPv4 and UDP headers.
    for (datagram, length, field) in [
        (samples::request(), 64 - 28, [0, 8]),
        (samples::answer(), 72 - 28, [0, 10]),
        (samples::media(), 28, [0, 3]),
        (samples::both(), 100 - 28, [0, 17]),
    ] {
        assert_eq!(datagram.len(), length);
        let at = if length == 28 { 14 } else { 2 };
        assert_eq!(datagram[at..at + 2], field);
    }
}
