//! Tests of how frames of live media are sent in packets.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::{LiveMedia, Pause, Sender, SenderConfig, StreamConfig, Supply};
use crate::wire::is_rtcp;
use crate::wire::rtp::{RtpHeader, RtpPacket};
use crate::{Endpoint, Event, Fragment, Input, Medium, Output};
use equipoise::control::{Allowance, BoxedController, Cbr, Controller, Feedback, Snapshot};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};
use equipoise_path::video::Encoder;

const MBPS: Rate = Rate::from_bps(1_000_000);
const FRAME: Span = Span::from_millis(40);

/// A media packet that was sent: its time in ms, its header, the bytes of media in it, and the content of its
/// `MediaSent` event.
struct Left {
    millis: f64,
    header: RtpHeader,
    media: usize,
    size: Size,
    waited: Span,
    fragment: Option<Fragment>,
}

fn sender(rate: Rate, supply: Supply, pauses: Vec<Pause>) -> Sender {
    of_law(Box::new(Cbr::new(rate)), supply, pauses)
}

fn of_law(law: BoxedController, supply: Supply, pauses: Vec<Pause>) -> Sender {
    let stream = StreamConfig::new(7, 96, Size::from_bytes(1000), "sender@test");
    let config = SenderConfig { supply, pauses, ..SenderConfig::new(stream, Span::from_secs(1), Instant::ZERO, 1) };
    Sender::new(config, law).expect("a valid configuration")
}

/// A controller with a constant rate, and a pacing rate of twice that rate.
#[derive(Debug)]
struct Paced(Rate);

impl Controller for Paced {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, _feedback: &Feedback<'_>) {}

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.0).with_pace(Rate::from_bps(2 * self.0.as_bps()))
    }

    /// These tests have no receiver, so no report can prove a delivery rate.
    fn is_held_to_proof(&self) -> bool {
        false
    }

    fn snapshot(&self) -> Snapshot {
        Cbr::new(self.0).snapshot()
    }
}

/// Runs a sender without a receiver. Returns the packets that it sent, and its events other than `MediaSent`.
fn run(mut sender: Sender, until: Span) -> (Vec<Left>, Vec<(f64, Event)>) {
    let (mut left, mut events) = (Vec::new(), Vec::new());
    let mut event_of = None;
    let mut now: Instant<SenderClock> = Instant::ZERO;
    while now < Instant::ZERO + until {
        sender.handle(now, Input::Timer);
        let millis = now.as_nanos() as f64 / 1e6;
        while let Some(output) = sender.poll() {
            match output {
                Output::Transmit { transmit, .. } if !is_rtcp(transmit.head) => {
                    let mut bytes = transmit.head.to_vec();
                    bytes.resize(transmit.len(), 0);
                    let packet = RtpPacket::parse(&bytes).expect("well formed");
                    left.push((millis, packet.header, packet.payload.len(), transmit.packet_size()));
                }
                Output::Event { event: Event::MediaSent { size, waited, fragment, .. }, .. } => {
                    event_of.get_or_insert_with(Vec::new).push((size, waited, fragment));
                }
                Output::Event { event, .. } => events.push((millis, event)),
                _ => {}
            }
        }
        now = sender.wake().map_or(Instant::MAX, |wake| wake.at);
    }
    let told = event_of.unwrap_or_default();
    assert_eq!(told.len(), left.len());
    let both = left.into_iter().zip(told).map(|((millis, header, media, at), (size, waited, fragment))| {
        assert_eq!(size, at, "the event has the size of the packet");
        Left { millis, header, media, size, waited, fragment }
    });
    (both.collect(), events)
}

/// Creates an encoder that makes 25 frames per second of 5000 bytes each: 1 Mbit/s without headers.
fn video() -> Encoder {
    Encoder::constant(MBPS, FRAME)
}

fn live(video: Encoder, audio: Option<Encoder>) -> LiveMedia {
    LiveMedia { video: Some(video), audio, pacing: LiveMedia::PACING, skip_after: None }
}

/// A frame of 5000 bytes is sent in packets with at most 944 bytes of media: five full packets and one with 280 bytes.
/// All have the frame's capture time, and the last one has the marker bit.
#[test]
fn a_packet_has_a_part_of_one_frame_and_the_time_of_its_capture() {
    let (left, _) =
        run(sender(Rate::from_bps(2_000_000), Supply::Live(Box::new(live(video(), None))), vec![]), FRAME * 2);
    let first = &left[..6];
    assert_eq!(first.iter().map(|it| it.media).collect::<Vec<_>>(), [944, 944, 944, 944, 944, 280]);
    assert_eq!(first.iter().map(|it| it.header.marker).collect::<Vec<_>>(), [false, false, false, false, false, true]);
    assert!(first.iter().all(|it| it.header.timestamp == first[0].header.timestamp));
    assert_eq!(first[5].size, Size::from_bytes(336));
    assert_eq!(left[6].header.timestamp.wrapping_sub(first[0].header.timestamp), 3600, "40 ms at 90 kHz");
    let last = first[5].fragment.expect("a part of a frame");
    assert_eq!(last, Fragment { medium: Medium::Video, frame: 0, is_last: true });
    // 1000 bytes at the pacing rate of 3 Mbit/s take 2.667 ms.
    assert!((first[1].millis - 8.0 / 3.0).abs() < 1e-3 && (first[5].millis - 40.0 / 3.0).abs() < 1e-3);
    assert_eq!(first[5].waited.as_nanos(), (first[5].millis * 1e6) as i64);
}

/// If this test fails, audio waits for video.
#[test]
fn audio_goes_first() {
    let audio = Some(Encoder::constant(Rate::from_bps(20_000), Span::from_millis(20)));
    let (left, _) =
        run(sender(Rate::from_bps(500_000), Supply::Live(Box::new(live(video(), audio))), vec![]), Span::from_secs(1));
    let of = |medium| left.iter().filter(move |it| it.fragment.is_some_and(|it| it.medium == medium));
    assert_eq!(of(Medium::Audio).count(), 50);
    for packet in of(Medium::Audio) {
        assert_eq!((packet.media, packet.header.payload_type, packet.header.marker), (50, 97, true));
        // At most one full video packet may be sent before the audio packet. Sending this packet takes 10.67 ms at the
        // pacing rate of 750 kbit/s.
        assert!(packet.waited.as_millis_f64() < 10.7, "{:?}", packet.waited);
    }
    assert!(of(Medium::Video).any(|it| it.waited > FRAME * 5), "the video is more than the rate allows");
    let numbers: Vec<u16> = left.iter().map(|it| it.header.sequence).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "one numbering for both");
}

/// The video encoder's rate is twice the allowed rate. At most 8750 bytes of video are queued: the data of 60 ms at the
/// allowed rate, and one frame. More than a quarter of the frames are skipped.
#[test]
fn frames_are_skipped_while_what_waits_takes_too_long() {
    let media = LiveMedia { skip_after: Some(Span::from_millis(60)), ..live(video(), None) };
    let (left, events) =
        run(sender(Rate::from_bps(500_000), Supply::Live(Box::new(media)), vec![]), Span::from_secs(2));
    let frames = |is: fn(&Option<Size>) -> bool| {
        let captured = |event: &Event| matches!(event, Event::FrameCaptured { size, .. } if is(size));
        events.iter().filter(|(_, event)| captured(event)).count()
    };
    assert_eq!(frames(|_| true), 50);
    let skipped = frames(Option::is_none);
    assert!((10..35).contains(&skipped), "{skipped}");
    // The last packet of a frame waits longest. Sending the data queued before the frame takes at most 60 ms. Sending
    // the frame takes at most 64 ms: six packets of at most 1000 bytes at the pacing rate of 750 kbit/s.
    let longest = left.iter().map(|it| it.waited).max().expect("packets");
    assert!(longest < Span::from_millis(60 + 64), "{longest}");
}

#[test]
fn nothing_is_captured_in_a_pause() {
    let pause = |from, until: Option<i64>| Pause {
        from: Instant::ZERO + Span::from_millis(from),
        until: until.map(|at| Instant::ZERO + Span::from_millis(at)),
    };
    let pauses = || vec![pause(310, Some(710)), pause(1000, None)];
    let (left, events) = run(
        sender(Rate::from_bps(2_000_000), Supply::Live(Box::new(live(video(), None))), pauses()),
        Span::from_secs(2),
    );
    let captured: Vec<f64> =
        events.iter().filter(|(_, event)| matches!(event, Event::FrameCaptured { .. })).map(|(at, _)| *at).collect();
    let expected: Vec<f64> = (0..8).chain(18..25).map(|frame| f64::from(frame) * 40.0).collect();
    assert_eq!(captured, expected);
    assert_eq!(left.len(), 15 * 6, "and all of it is sent");
    let (left, _) = run(sender(MBPS, Supply::Unlimited, pauses()), Span::from_secs(2));
    let silent = |from: f64, until: f64| left.iter().all(|it| it.millis < from || it.millis >= until);
    assert!(silent(310.0, 710.0) && silent(1000.0, 2000.0));
    let after: Vec<f64> = left.iter().map(|it| it.millis).filter(|at| *at >= 710.0).take(2).collect();
    assert_eq!(after, [710.0, 718.0], "at the rate from the first packet on");
}

/// A source that always has data sends at the controller's rate. The packets of a frame leave at the controller's
/// pacing rate, which is higher. If this test fails, a source that always has data may exceed the controller's rate.
#[test]
fn what_has_no_end_leaves_at_the_rate_and_frames_at_their_pace() {
    let (left, _) = run(of_law(Box::new(Paced(MBPS)), Supply::Unlimited, vec![]), Span::from_secs(2));
    let gaps: Vec<f64> = left.windows(2).map(|pair| pair[1].millis - pair[0].millis).collect();
    assert_eq!(gaps, [8.0; 249]);
    let (left, _) =
        run(of_law(Box::new(Paced(MBPS)), Supply::Live(Box::new(live(video(), None))), vec![]), Span::from_millis(30));
    let gaps: Vec<f64> = left.windows(2).map(|pair| pair[1].millis - pair[0].millis).collect();
    assert_eq!(gaps, [4.0; 5]);
}
