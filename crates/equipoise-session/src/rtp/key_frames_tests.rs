//! Tests of key frame requests from a receiver's application to the sender's encoder.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use equipoise::control::Cbr;
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, Size, Span};

use super::{Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig};
use crate::wire::key_frames::{KeyFrameRequest, encode_key_frame_request};
use crate::{DropReason, Endpoint, Event, Input, Output};
use KeyFrameRequest::{FullIntra, PictureLoss};

const SENDER: u32 = 1;
const RECEIVER: u32 = 2;

struct Ends {
    sender: Sender,
    receiver: Receiver,
    /// Requests that reached the sender's encoder, with times in ms.
    wanted: Vec<(u64, KeyFrameRequest)>,
    ignored: Vec<DropReason>,
    /// The receiver's datagrams that contain a key frame request, with times in ms.
    asked: Vec<(u64, Vec<u8>)>,
}

impl Ends {
    fn new() -> Self {
        let stream = StreamConfig::new(SENDER, 96, Size::from_bytes(1000), "s");
        let config = SenderConfig::new(stream, Span::from_secs(1), Instant::ZERO, 1);
        let sender = Sender::new(config, Box::new(Cbr::new(Rate::from_bps(100_000)))).expect("valid");
        let receiver = ReceiverConfig::new(RECEIVER, "r", SENDER, ClockMap::SYNCHRONISED, 1);
        let receiver = Receiver::new(receiver).expect("valid");
        Self { sender, receiver, wanted: Vec::new(), ignored: Vec::new(), asked: Vec::new() }
    }

    /// Passes an input to the receiver at `millis`, and stores the key frame requests that the receiver sends.
    fn at_receiver(&mut self, millis: u64, input: Input<'_>) {
        self.receiver.handle(Instant::from_nanos(millis * 1_000_000), input);
        while let Some(output) = self.receiver.poll() {
            match output {
                Output::Transmit { transmit, .. } if transmit.head.get(1) == Some(&206) => {
                    self.asked.push((millis, transmit.head.to_vec()));
                }
                _ => {}
            }
        }
    }

    fn at_sender(&mut self, millis: u64, input: Input<'_>) {
        self.sender.handle(Instant::from_nanos(millis * 1_000_000), input);
        while let Some(output) = self.sender.poll() {
            match output {
                Output::Event { event: Event::KeyFrameWanted(request), .. } => self.wanted.push((millis, request)),
                Output::Event { event: Event::Ignored(reason), .. } => self.ignored.push(reason),
                _ => {}
            }
        }
    }
}

#[test]
fn a_request_of_the_application_comes_to_the_encoder() {
    let mut ends = Ends::new();
    ends.at_receiver(10, Input::KeyFrame(PictureLoss));
    let (_, datagram) = ends.asked.pop().expect("asked at once");
    ends.at_sender(20, Input::datagram(&datagram));
    assert_eq!((ends.wanted, ends.ignored), (vec![(20, PictureLoss)], vec![]));
}

/// If this test fails, a decoder that requests a key frame for every lost packet fills the path from receiver to sender
/// with requests, and the encoder produces only key frames.
#[test]
fn a_flood_of_requests_becomes_few_and_the_last_is_not_forgotten() {
    let mut ends = Ends::new();
    for millis in 0..1000 {
        ends.at_receiver(millis, Input::KeyFrame(PictureLoss));
    }
    let times: Vec<_> = ends.asked.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 300, 600, 900]);
    // The last request waits until 300 ms after the previous request. The receiver's wake-up is at that time.
    let wake = ends.receiver.wake().expect("something is due");
    assert_eq!(wake.at, Instant::from_nanos(1_200_000_000));
    ends.at_receiver(1200, Input::Timer);
    assert_eq!(ends.asked.len(), 5);
    ends.at_receiver(1500, Input::Timer);
    assert_eq!(ends.asked.len(), 5, "what was asked for is asked for once");
}

#[test]
fn of_two_requests_at_a_time_the_one_that_asks_for_more_is_sent() {
    let mut ends = Ends::new();
    ends.at_receiver(0, Input::KeyFrame(PictureLoss));
    ends.at_receiver(1, Input::KeyFrame(FullIntra));
    ends.at_receiver(2, Input::KeyFrame(PictureLoss));
    ends.at_receiver(300, Input::Timer);
    ends.at_receiver(300, Input::KeyFrame(FullIntra));
    ends.at_receiver(600, Input::Timer);
    let asked = core::mem::take(&mut ends.asked);
    for (at, datagram) in &asked {
        ends.at_sender(*at, Input::datagram(datagram));
    }
    assert_eq!(ends.wanted, [(0, PictureLoss), (300, FullIntra), (600, FullIntra)]);
}

#[test]
fn a_sender_takes_no_repetition_no_flood_and_nothing_that_is_not_to_it() {
    let mut ends = Ends::new();
    let written = |ssrc, request, number| {
        let mut out = Vec::new();
        encode_key_frame_request(RECEIVER, ssrc, (request, number), &mut out);
        out
    };
    ends.at_sender(1000, Input::datagram(&written(SENDER, FullIntra, 7)));
    ends.at_sender(1050, Input::datagram(&written(SENDER, PictureLoss, 0)));
    ends.at_sender(1200, Input::datagram(&written(SENDER, FullIntra, 7)));
    ends.at_sender(1200, Input::datagram(&written(9, PictureLoss, 0)));
    let mut long = written(SENDER, PictureLoss, 0);
    long.extend_from_slice(&[0; 4]);
    long[3] = 3;
    ends.at_sender(1200, Input::datagram(&long));
    ends.at_sender(1200, Input::KeyFrame(PictureLoss));
    assert_eq!(ends.wanted, [(1000, FullIntra)]);
    let reasons =
        [DropReason::Full, DropReason::Duplicate, DropReason::Foreign, DropReason::Malformed, DropReason::Stray];
    assert_eq!(ends.ignored, reasons);
    ends.at_sender(1200, Input::datagram(&written(SENDER, FullIntra, 8)));
    assert_eq!(ends.wanted.len(), 2);
}

#[test]
fn a_sender_that_has_left_is_asked_for_nothing() {
    let mut ends = Ends::new();
    let mut goodbye = Vec::new();
    crate::wire::rtcp::encode_goodbye(SENDER, &mut goodbye);
    ends.at_receiver(0, Input::datagram(&goodbye));
    ends.at_receiver(1, Input::KeyFrame(PictureLoss));
    assert!(ends.asked.is_empty());
}
