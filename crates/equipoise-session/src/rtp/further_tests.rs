//! Tests of a session that carries the packets of two programs: audio in addition to video.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use equipoise::control::Cbr;
use equipoise::units::{Instant, Rate, Size, Span};

use super::two_ends::{EPOCH, MILLI, Passing, TwoEnds};
use super::{Payload, Sender, SenderConfig, StreamConfig};
use crate::{DropReason, Event, Input};

const VIDEO: u32 = 0x0102_0304;
const AUDIO: u32 = 0x0A0B_0C0D;

fn packet(source: u32, number: u16, length: usize) -> Vec<u8> {
    let head = [&[0x80, 96][..], &number.to_be_bytes(), &[9, 9, 9, 9], &source.to_be_bytes()].concat();
    [&head[..], &vec![7; length]].concat()
}

/// Creates a session at 1 Mbit/s; `has_further_source` says whether it accepts a further source.
fn ends<F: FnMut(&Passing) -> Vec<u64>>(has_further_source: bool, path: F) -> TwoEnds<F> {
    let stream = StreamConfig::new(VIDEO, 96, Size::from_bytes(1200), "sender@test");
    let base = SenderConfig::new(stream, Span::from_millis(500), Instant::from_nanos(EPOCH), 1);
    let config = SenderConfig { payload: Payload::Rtp, has_further_source, ..base };
    let sender = Sender::new(config, Box::new(Cbr::new(Rate::from_bps(1_000_000)))).expect("valid");
    TwoEnds { sender, ..TwoEnds::cbr(Payload::Rtp, path) }
}

/// If this test fails, a large video frame delays the audio.
#[test]
fn audio_leaves_before_the_video_that_waits_and_both_come_out_as_they_were() {
    let mut bench = ends(true, |_: &Passing| vec![5 * MILLI]);
    let video: Vec<_> = (0..30).map(|number| packet(VIDEO, number, 1000)).collect();
    for packet in &video {
        bench.tell(true, Input::payload(packet));
    }
    bench.run_until(20);
    let audio: Vec<_> = (0..5).map(|number| packet(AUDIO, 700 + number, 80)).collect();
    for (packet, at) in audio.iter().zip(0..) {
        bench.run_until(20 + 20 * at);
        bench.tell(true, Input::payload(packet));
    }
    bench.run_until(390);
    let of = |source: u32| -> Vec<_> {
        bench.packets.iter().filter(|packet| packet[8..12] == source.to_be_bytes()).cloned().collect()
    };
    assert!(of(AUDIO) == audio && of(VIDEO) == video, "{} and {}", of(AUDIO).len(), of(VIDEO).len());
    // A video packet takes about 8.4 ms at 1 Mbit/s, and each audio packet waits for at most one video packet.
    let waits: Vec<_> = bench
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::MediaSent { size, waited, .. } if size.as_bytes() < 300 => Some(waited.as_nanos()),
            _ => None,
        })
        .collect();
    assert!(waits.len() == 5 && waits.iter().all(|waited| *waited <= 10 * MILLI as i64), "{waits:?}");
    assert_eq!(bench.missing, 0);
}

/// If this test fails, the audio stops while the receiver waits for a lost video packet.
#[test]
fn audio_does_not_wait_for_video_that_is_lost() {
    let mut bench = ends(true, |passing: &Passing| if passing.number == 3 { vec![] } else { vec![5 * MILLI] });
    for number in 0..5 {
        bench.run_until(20 * u64::from(number));
        bench.tell(true, Input::payload(&packet(VIDEO, number, 400)));
        bench.tell(true, Input::payload(&packet(AUDIO, number, 80)));
    }
    // A video packet was lost about 20 ms after the start. The receiver waits 100 ms for this packet.
    bench.run_until(100);
    let given = |source: u32| bench.packets.iter().filter(|packet| packet[8..12] == source.to_be_bytes()).count();
    assert!(given(AUDIO) == 5 && given(VIDEO) <= 1, "{} and {}", given(AUDIO), given(VIDEO));
    bench.run_until(400);
    assert_eq!((bench.packets.len(), bench.missing), (9, 1));
}

#[test]
fn of_further_sources_there_is_one_at_a_time_and_none_unless_it_was_asked_for() {
    let mut bench = ends(false, |_: &Passing| vec![MILLI]);
    bench.tell(true, Input::payload(&packet(AUDIO, 1, 80)));
    let foreign = |event: &Event| *event == Event::Ignored(DropReason::Foreign);
    assert_eq!(bench.count(foreign), 1);
    let mut bench = ends(true, |_: &Passing| vec![MILLI]);
    bench.tell(true, Input::payload(&packet(AUDIO, 1, 80)));
    bench.tell(true, Input::payload(&packet(AUDIO + 1, 1, 80)));
    assert_eq!(bench.count(foreign), 1);
    bench.run_until(2100);
    bench.tell(true, Input::payload(&packet(AUDIO + 1, 1, 80)));
    bench.run_until(2200);
    assert_eq!((bench.count(foreign), bench.packets.len()), (1, 2), "who was silent for 2 s makes room");
}
