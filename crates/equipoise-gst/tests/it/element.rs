use std::time::{Duration, Instant};

use gst::glib::translate::UnsafeFrom;
use gst::prelude::*;
use gst::{ClockTime, glib};
use gst_check::Harness;

use crate::init;

const CAPS: &str = "application/x-rtp, media=video, clock-rate=90000, encoding-name=VP8, payload=96, \
    extmap-3=http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";

/// Creates a test harness in which the element, with these properties, is between a source and a sink.
fn harness(properties: &str) -> Harness {
    init();
    let mut harness = Harness::new_parse(&format!("rtpequipoisebwe name=bwe {properties}"));
    harness.use_systemclock();
    harness.set_src_caps_str(CAPS);
    harness.play();
    harness
}

fn bwe(harness: &Harness) -> gst::Element {
    let element = harness.element().expect("an element");
    match element.clone().downcast::<gst::Bin>() {
        Ok(bin) => bin.by_name("bwe").expect("the element"),
        Err(element) => element,
    }
}

/// Returns an RTP packet with the header extension for a transport-wide sequence number.
fn packet(number: u16, payload: usize) -> gst::Buffer {
    let [high, low] = number.to_be_bytes();
    let header = [0x90, 0x60, high, low, 0, 0, 0, 1, 0, 0, 0, 7, 0xBE, 0xDE, 0, 1, 0x31, 0, 0, 0];
    gst::Buffer::from_slice([&header[..], &vec![0; payload]].concat())
}

/// Returns the packets that pass the element within `time`.
fn pulled(harness: &mut Harness, time: Duration) -> Vec<gst::Buffer> {
    let (end, mut buffers) = (Instant::now() + time, Vec::new());
    while Instant::now() < end {
        match harness.try_pull() {
            Some(buffer) => buffers.push(buffer),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    buffers
}

/// Returns the structure of the event in which `rtpsession` reports the feedback about these packets.
fn packets(packets: impl IntoIterator<Item = impl ToSendValue>) -> gst::Structure {
    let packets = glib::ValueArray::new(packets.into_iter().map(|packet| packet.to_send_value()));
    // SAFETY: the array contains only sendable values, and nothing else refers to it.
    let packets = unsafe { glib::SendValue::unsafe_from(packets.to_value().into_raw()) };
    let mut structure = gst::Structure::new_empty("RTPTWCCPackets");
    structure.set_value("packets", packets);
    structure
}

fn feedback(statuses: Vec<gst::Structure>) -> gst::Event {
    gst::event::CustomUpstream::new(packets(statuses))
}

fn status(number: u32, size: u32, left: ClockTime, arrived: ClockTime) -> gst::Structure {
    gst::Structure::builder("RTPTWCCPacket")
        .field("seqnum", number)
        .field("local-ts", left)
        .field("remote-ts", arrived)
        .field("size", size)
        .field("lost", false)
        .build()
}

#[test]
fn packets_pass_unchanged_in_order_one_by_one_and_the_end_comes_after_them() {
    let mut harness = harness("controller=cbr controller-params=\"rate=800 kbit/s\" max-bitrate=800000");
    let sent: Vec<_> = (0..10).map(|number| packet(number, 952)).collect();
    let begin = Instant::now();
    for buffer in &sent {
        harness.push(buffer.clone()).expect("taken");
    }
    assert!(begin.elapsed() < Duration::from_millis(500), "the encoder's thread is not held up");
    assert!(harness.push_event(gst::event::Eos::new()));
    let mut passed = Vec::new();
    while let Ok(Some(buffer)) = harness.pull_until_eos() {
        passed.push(buffer);
    }
    assert_eq!(passed, sent);
    // Each packet of 1000 bytes takes 1000 * 8 / (1.5 * 800 kbit/s) = 6.7 ms.
    assert!(begin.elapsed() > Duration::from_millis(55), "{:?}", begin.elapsed());
    let caps = harness.sinkpad().and_then(|pad| pad.current_caps()).expect("caps");
    assert_eq!(caps, CAPS.parse::<gst::Caps>().expect("caps"));
}

#[test]
fn lists_pass_as_what_they_hold() {
    let mut harness = harness("");
    let list: gst::BufferList = (0..3).map(|number| packet(number, 300)).collect();
    harness.srcpad().expect("the harness's pad").push_list(list).expect("taken");
    for _ in 0..3 {
        assert_eq!(harness.pull().expect("a packet").size(), 320);
    }
}

/// If this test fails, the element passes old packets after a seek or a reconnection, or passes no packets at all.
#[test]
fn a_flush_drops_what_waits_and_then_packets_pass_again() {
    let mut harness = harness("controller=cbr controller-params=\"rate=10 kbit/s\"");
    for number in 0..50 {
        harness.push(packet(number, 1000)).expect("taken");
    }
    harness.push_event(gst::event::FlushStart::new());
    assert_eq!(harness.push(packet(50, 10)), Err(gst::FlowError::Flushing));
    while harness.try_pull().is_some() {}
    harness.push_event(gst::event::FlushStop::new(true));
    harness.push_event(gst::event::Segment::new(&gst::FormattedSegment::<ClockTime>::new()));
    harness.push(packet(51, 10)).expect("taken");
    assert_eq!(harness.pull().expect("a packet"), packet(51, 10));
}

#[test]
fn states_go_up_and_down_whatever_waits() {
    let mut harness = harness("");
    let element = harness.element().expect("an element");
    for _ in 0..5 {
        for number in 0..100 {
            let _ = harness.push(packet(number, 1000));
        }
        for state in [gst::State::Paused, gst::State::Ready, gst::State::Null, gst::State::Playing] {
            element.set_state(state).expect("the state");
        }
        harness.push_event(gst::event::StreamStart::new("again"));
        harness.set_src_caps_str(CAPS);
    }
    harness.push(packet(1, 10)).expect("taken");
    while harness.pull().expect("a packet").size() != 30 {}
}

/// If this test fails, packets are matched with feedback in the unit tests, but not in a pipeline.
#[test]
fn feedback_moves_the_estimate_and_tells_the_encoder() {
    let mut harness = harness("estimated-bitrate=200000 min-bitrate=50000");
    let bwe = bwe(&harness);
    let (told, book) = std::sync::mpsc::channel();
    bwe.connect_notify(Some("estimated-bitrate"), move |bwe, _| {
        let _ = told.send(bwe.property::<u32>("estimated-bitrate"));
    });
    assert_eq!(bwe.property::<u32>("estimated-bitrate"), 200_000);
    let clock = gst::SystemClock::obtain();
    let mut number = 0;
    for _ in 0..40 {
        let mut told = Vec::new();
        for _ in 0..3 {
            harness.push(packet(number, 300)).expect("taken");
            harness.pull().expect("a packet");
            // This is the status that `rtpsession` would report over a path without a queue.
            let left = clock.time();
            told.push(status(u32::from(number.wrapping_add(65_500)), 300, left, left + ClockTime::SECOND));
            number += 1;
        }
        std::thread::sleep(Duration::from_millis(20));
        harness.push_upstream_event(feedback(told));
    }
    let rates: Vec<_> = book.try_iter().collect();
    assert!(rates.iter().any(|bps| *bps > 250_000), "{rates:?}");
    let stats: gst::Structure = bwe.property("stats");
    assert_eq!(stats.get::<u64>("reports"), Ok(40), "{stats}");
    assert_eq!(stats.get::<u64>("packets"), Ok(120), "{stats}");
    assert_eq!(stats.get::<u64>("reports-refused"), Ok(0), "{stats}");
}

/// In this test, the events have missing fields, wrong types, absurd numbers, decreasing times, or packets that were
/// never sent. If the test fails, such events stop the element or raise its rate.
#[test]
fn hostile_events_neither_end_it_nor_raise_the_rate() {
    let mut harness = harness("estimated-bitrate=200000");
    let bwe = bwe(&harness);
    for number in 0..20 {
        harness.push(packet(number, 300)).expect("taken");
        harness.pull().expect("a packet");
    }
    let now = gst::SystemClock::obtain().time();
    let rate = |bwe: &gst::Element| bwe.property::<gst::Structure>("stats").get::<u64>("rate").expect("a rate");
    let before = rate(&bwe);
    let far = ClockTime::from_nseconds(u64::MAX - 1);
    let sane = || gst::Structure::builder("RTPTWCCPacket");
    let mut events = vec![
        gst::Structure::new_empty("RTPTWCCPackets"),
        gst::Structure::builder("RTPTWCCPackets").field("packets", 7u32).build(),
        packets([7u32, 8]),
        gst::Structure::new_empty("SomethingElse"),
    ];
    let strange = [
        sane().build(),
        sane().field("seqnum", "three").field("lost", 3i32).field("size", -1i32).build(),
        sane().field("seqnum", u32::MAX).field("local-ts", now).field("size", 300u32).field("lost", true).build(),
        sane().field("seqnum", 3u32).field("local-ts", now).field("size", 300u32).field("lost", false).build(),
        status(3, u32::MAX, now, now),
        status(3, 300, ClockTime::ZERO, ClockTime::ZERO),
        status(3, 300, far, far),
        status(3, 300, now + ClockTime::from_seconds(5), now),
    ];
    events.extend(strange.iter().map(|packet| packets(vec![packet.clone(); 100])).chain([packets(strange.to_vec())]));
    for number in 0..200 {
        // The numbers and sending times of these events decrease.
        let left = now.saturating_sub(ClockTime::from_mseconds(number));
        events.push(packets([status(65_535 - number as u32, 299, left, far.saturating_sub(left))]));
    }
    for structure in events {
        harness.push_upstream_event(gst::event::CustomUpstream::new(structure));
        assert!(rate(&bwe) <= before, "{} after {before} bit/s", rate(&bwe));
    }
    harness.push(packet(20, 300)).expect("taken");
    assert_eq!(harness.pull().expect("a packet").size(), 320);
    assert!(pulled(&mut harness, Duration::from_millis(5)).is_empty());
}

#[test]
fn what_is_wrong_with_properties_is_said_on_the_bus() {
    init();
    for (properties, named) in [
        ("controller=gc", "there is no controller \"gc\"; there are "),
        ("controller-params=\"max_rat=1 Mbit/s\"", "max_rate"),
        ("controller=tq", "playout"),
        ("min-bitrate=2000 max-bitrate=1000", "above `max-bitrate`"),
    ] {
        let launch = format!("rtpequipoisebwe {properties} ! fakesink");
        let pipeline =
            gst::parse::launch(&launch).expect("a pipeline").downcast::<gst::Pipeline>().expect("a pipeline");
        assert!(pipeline.set_state(gst::State::Ready).is_err(), "{properties}");
        let message = pipeline.bus().and_then(|bus| bus.pop_filtered(&[gst::MessageType::Error])).expect("an error");
        let gst::MessageView::Error(error) = message.view() else { panic!("an error") };
        assert!(error.error().to_string().contains(named), "{}", error.error());
        pipeline.set_state(gst::State::Null).expect("it stops");
    }
}

#[test]
fn it_is_said_once_that_packets_have_no_room_for_a_number() {
    let mut harness = harness("controller=cbr controller-params=\"rate=10 Mbit/s\"");
    let bus = gst::Bus::new();
    harness.element().expect("an element").set_bus(Some(&bus));
    let bare = || gst::Buffer::from_slice([0x80, 0x60, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 1, 2, 3]);
    for _ in 0..300 {
        harness.push(bare()).expect("taken");
        harness.pull().expect("a packet");
    }
    let warnings = bus.iter_filtered(&[gst::MessageType::Warning]).count();
    assert_eq!(warnings, 1);
}
