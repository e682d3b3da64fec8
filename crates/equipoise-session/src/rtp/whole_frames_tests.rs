//! Tests of what the controller is told about the frames of another program's video.

extern crate std;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use std::sync::{Arc, Mutex};

use equipoise::control::{Allowance, BoxedController, Controller, Feedback, Needs, QueuedFrame, find};
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

use super::two_ends::{EPOCH, MILLI, Passing, TwoEnds};
use super::{Clocks, Delays, Payload, Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig};
use crate::feedback::{Format, Reporting};
use crate::wire::rtp::RtpHeader;
use crate::{Event, Input};

const VIDEO: u32 = 0x0102_0304;
const AUDIO: u32 = 0x0A0B_0C0D;
const REPORTING: Reporting = Reporting { format: Format::CongestionFeedback, interval: Span::from_millis(50) };

/// Creates a session with per-packet reports and a second source. Each datagram arrives after 5 ms, and none is lost.
fn ends(controller: BoxedController) -> TwoEnds<impl FnMut(&Passing) -> Vec<u64>> {
    let mut ends = TwoEnds::cbr(Payload::Rtp, |_: &Passing| vec![5 * MILLI]);
    let stream = StreamConfig::new(VIDEO, 96, Size::from_bytes(1200), "sender@test");
    let base = SenderConfig::new(stream, Span::from_millis(500), Instant::from_nanos(EPOCH), 1);
    let config = SenderConfig {
        payload: Payload::Rtp,
        has_further_source: true,
        reporting: Some(REPORTING),
        delays: Delays::Queueing,
        ..base
    };
    ends.sender = Sender::new(config, controller).expect("valid");
    let receiver = ReceiverConfig {
        payload: Payload::Rtp,
        clocks: Clocks::Apart,
        reporting: Some(REPORTING),
        ..ReceiverConfig::new(9, "receiver@test", VIDEO, ClockMap::SYNCHRONISED, 2)
    };
    ends.receiver = Receiver::new(receiver).expect("valid");
    ends
}

/// Returns the `packets` packets of a frame, each of `length` bytes. The last packet has the marker bit. `packets` must
/// be at most ten, because each frame has ten sequence numbers.
fn frame(number: u16, packets: u16, length: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..packets).map(move |part| {
        let (sequence, timestamp) = (number * 10 + part, u32::from(number) * 3000);
        let marker = part + 1 == packets;
        let header = RtpHeader { marker, payload_type: 96, sequence, timestamp, ssrc: VIDEO, ..RtpHeader::default() };
        let mut packet = Vec::new();
        header.encode(&mut packet);
        packet.resize(length, 7);
        packet
    })
}

/// A controller that allows 0.8 Mbit/s and records the frames.
#[derive(Debug)]
struct Recorder(Arc<Mutex<Vec<QueuedFrame>>>);

impl Controller for Recorder {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, _feedback: &Feedback<'_>) {}

    fn on_frame(&mut self, _now: Instant<SenderClock>, frame: &QueuedFrame) {
        self.0.lock().expect("no panic").push(*frame);
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(Rate::from_bps(800_000))
    }

    fn needs(&self) -> Needs {
        Needs::PACKETS
    }
}

/// If this test fails, the controller is told a wrong amount of waiting data, or a frame size that includes packets
/// that were already sent.
#[test]
fn a_frame_is_what_is_queued_of_it_at_its_marker() {
    let frames = Arc::new(Mutex::new(Vec::new()));
    let mut ends = ends(Box::new(Recorder(Arc::clone(&frames))));
    ends.run_until(1);
    for packet in frame(0, 5, 1000) {
        ends.tell(true, Input::payload(&packet));
    }
    ends.run_until(6);
    let mut audio = frame(9, 1, 100).next().expect("a packet");
    audio[8..12].copy_from_slice(&AUDIO.to_be_bytes());
    ends.tell(true, Input::payload(&audio));
    for packet in frame(1, 2, 500) {
        ends.tell(true, Input::payload(&packet));
    }
    ends.run_until(500);
    for packet in frame(2, 1, 300) {
        ends.tell(true, Input::payload(&packet));
    }
    let bytes = Size::from_bytes;
    // The first packet leaves when it is queued. The next one leaves 10 ms later.
    let expected = [
        QueuedFrame::new(bytes(4000), Size::ZERO, Span::ZERO),
        QueuedFrame::new(bytes(1000), bytes(4100), Span::from_millis(5)),
        QueuedFrame::new(bytes(300), Size::ZERO, Span::ZERO),
    ];
    assert_eq!(*frames.lock().expect("no panic"), expected);
}

/// If this test fails, the law `equipoise` does not measure the capacity while the session sends the video of an
/// external encoder. Then flows that share a link reach equal rates slowly.
#[test]
fn the_first_packets_of_some_frames_are_a_burst_that_measures_the_capacity() {
    let law = find("equipoise").expect("in the catalogue");
    let given = [("min_rate", "0.2 Mbit/s"), ("initial_rate", "2.5 Mbit/s"), ("max_rate", "2.5 Mbit/s")];
    let controller = law.build(&law.parse(&given).expect("right"), Size::from_bytes(1200)).expect("right");
    let mut ends = ends(controller);
    for number in 0..300_u16 {
        ends.run_until(u64::from(number) * 1000 / 30);
        for packet in frame(number, 9, 900) {
            ends.tell(true, Input::payload(&packet));
        }
    }
    let media = ends.events.iter().filter(|(_, event)| matches!(event, Event::MediaSent { .. }));
    let sent: Vec<_> = media.map(|(at, _)| *at).collect();
    // The rate is 2.5 Mbit/s. In a burst, packets leave at three times this rate, so packets of 1 kB are 1.1 ms apart.
    // Other packets are further apart.
    let close = |from: u64, until: u64| {
        let pairs = sent.windows(2).filter(|pair| (from..until).contains(&(pair[0] / MILLI)));
        pairs.filter(|pair| pair[1] - pair[0] < 1_300_000).count()
    };
    assert_eq!(close(1000, 3000), 0, "no burst in the first 3 s, except for the probes at the start");
    assert!((5..60).contains(&close(3000, 10_000)), "{}", close(3000, 10_000));
}
