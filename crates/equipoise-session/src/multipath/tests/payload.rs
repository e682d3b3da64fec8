//! Tests of payload over several paths with different delays. The paths lose, duplicate and reorder packets, die, and
//! become usable again.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::bench::{Bench, Passing, SSRC, bytes, scheduler};
use crate::rtp::Payload;
use crate::{DropReason, Event};
use crate::{Input, PathChange, PathId};

fn ways(passing: &Passing) -> u64 {
    if passing.path == 0 { 10 } else { 200 }
}

#[test]
fn a_stream_comes_out_byte_by_byte_over_paths_of_10_and_200_ms() {
    let network = |passing: &Passing| match passing.number {
        n if n % 7 == 0 => vec![ways(passing) + 40],
        n if n % 5 == 0 => vec![ways(passing), ways(passing) + 9],
        _ => vec![ways(passing)],
    };
    let mut bench = Bench::new(Payload::Stream, 2, scheduler("equal", &[]), Box::new(network));
    let stream = bytes(1_500_000);
    let given = bench.carry(&stream, false);
    assert_eq!((given.len(), bench.missing), (stream.len(), 0));
    assert!(given == stream, "the bytes are those that went in");
    for path in 0..2 {
        assert!(bench.sent_on(path, 0, 100_000) > 700, "both paths carry it");
    }
    assert_eq!(bench.count(|_, event| *event == Event::Ended { by_peer: true }), 1);
}

#[test]
fn another_programs_packets_come_out_as_they_were_in_their_order() {
    let mut bench = Bench::new(Payload::Rtp, 2, scheduler("equal", &[]), Box::new(|passing| vec![ways(passing)]));
    let packets: Vec<Vec<u8>> = (0..400u16)
        .map(|number| {
            let [high, low] = 65_300u16.wrapping_add(number).to_be_bytes();
            let mut packet = vec![0x80, 0x60 | 0x80, high, low, 9, 9, 9, number as u8];
            packet.extend_from_slice(&SSRC.to_be_bytes());
            packet.extend(bytes(usize::from(number % 60) * 10));
            packet
        })
        .collect();
    for (at, packet) in packets.iter().enumerate() {
        bench.run_until(at as u64 * 2);
        bench.feed(packet, false);
    }
    bench.run_until(3000);
    assert!(bench.given == packets, "the number wraps, the lengths differ, and the bytes are the same");
    assert!(bench.sent_on(0, 0, 3000) > 50 && bench.sent_on(1, 0, 3000) > 50);
}

/// The two paths alternately lose all media for 100 ms. So packets that are sent on both paths arrive, and packets that
/// are sent only on the path that loses media are missing.
#[test]
fn what_is_sent_twice_survives_a_loss_and_comes_out_once() {
    let network = |passing: &Passing| {
        let lost = !passing.is_rtcp && (passing.path == 0) == (passing.millis % 200 < 100);
        if lost { vec![] } else { vec![ways(passing)] }
    };
    let missing = |twice: bool| {
        let mut bench = Bench::new(Payload::Stream, 2, scheduler("equal", &[]), Box::new(network));
        // The payload's rate is 1 Mbit/s, so that all of it can be sent twice at 4 Mbit/s.
        let (stream, mut fed) = (bytes(200_000), 0);
        while fed < stream.len() {
            fed += bench.feed(&stream[fed..(fed + 900).min(stream.len())], twice);
            bench.run_until(bench.millis() + 7);
        }
        bench.run_until(bench.millis() + 1000);
        let copies = bench.count(|_, event| *event == Event::Ignored(DropReason::Duplicate));
        (bench.missing, copies, bench.given.concat() == stream)
    };
    let (once, twice) = (missing(false), missing(true));
    assert!(once.0 > 50 && once.1 == 0 && !once.2, "{once:?}");
    assert!(twice.0 <= 2, "except for a packet whose copy waited into the next phase: {twice:?}");
}

#[test]
fn without_order_packets_come_out_as_they_come_in() {
    let mut bench = Bench::new(Payload::Stream, 2, scheduler("equal", &[]), Box::new(|passing| vec![ways(passing)]));
    let reorder = crate::rtp::ReorderConfig {
        in_order: false,
        hold: equipoise::units::Span::from_millis(400),
        ..Default::default()
    };
    let config = crate::rtp::ReceiverConfig {
        payload: Payload::Stream,
        reorder,
        ..crate::rtp::ReceiverConfig::new(9, "receiver@test", SSRC, equipoise::measure::ClockMap::SYNCHRONISED, 2)
    };
    bench.receiver = super::super::Receiver::new(config).expect("a valid configuration");
    let stream = bytes(400_000);
    let given = bench.carry(&stream, false);
    assert_eq!((given.len(), bench.missing), (stream.len(), 0), "all is there");
    assert!(given != stream, "and not in order");
}

/// One random step of the property test.
#[derive(Clone, Debug)]
enum Act {
    Change(u16, PathChange),
    Feed(usize, bool),
    Junk(bool, u16, Vec<u8>),
    Wait(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let change =
        prop_oneof![Just(PathChange::Up), Just(PathChange::Up), Just(PathChange::Down), Just(PathChange::Removed)];
    let act = prop_oneof![
        (0u16..4, change).prop_map(|(path, change)| Act::Change(path, change)),
        (1usize..20_000, any::<bool>()).prop_map(|(length, twice)| Act::Feed(length, twice)),
        (any::<bool>(), 0u16..4, proptest::collection::vec(any::<u8>(), 0..80))
            .prop_map(|(to_sender, path, junk)| Act::Junk(to_sender, path, junk)),
        (1u64..800).prop_map(Act::Wait),
        (1u64..800).prop_map(Act::Wait),
    ];
    proptest::collection::vec(act, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever happens to the paths, the delivered packets are some of those that were sent, unchanged and in order,
    /// each at most once. Packets that are not delivered were lost or too late.
    #[test]
    fn whatever_the_paths_do_the_output_is_the_input_less_what_is_missing(
        acts in acts(), fates in proptest::collection::vec((0u64..100, 0u64..150), 16), sent_with in 0usize..2,
    ) {
        let network = move |passing: &Passing| {
            // Losses, copies and delays follow a random table of 16 entries that repeats. On average, 10 % of packets
            // are lost and 10 % are duplicated. Delays vary by up to 150 ms, so that packets are reordered.
            let (fate, late) = fates[(passing.number % 16) as usize];
            match fate {
                0..10 => vec![],
                10..20 => vec![ways(passing), ways(passing) + late],
                _ => vec![ways(passing) + late],
            }
        };
        let scheduler = scheduler(["ap", "equal"][sent_with], &[]);
        let mut bench = Bench::new(Payload::Rtp, 1, scheduler, Box::new(network));
        let (mut sequence, mut fed) = (60_000u16, Vec::new());
        for act in acts {
            match act {
                Act::Change(path, change) => bench.change(path, change),
                Act::Feed(length, twice) => for part in bytes(length).chunks(900) {
                    let mut packet = vec![0x80, 96, (sequence >> 8) as u8, sequence as u8, 0, 0, 0, 0];
                    packet.extend_from_slice(&SSRC.to_be_bytes());
                    packet.extend_from_slice(part);
                    bench.tell(true, Input::Payload { payload: &packet, twice });
                    sequence = sequence.wrapping_add(1);
                    fed.push(packet);
                },
                Act::Junk(to_sender, path, junk) => {
                    bench.tell(to_sender, Input::Datagram { path: PathId(path), datagram: &junk, ecn: crate::Ecn::NotCapable });
                }
                Act::Wait(millis) => bench.run_until(bench.millis() + millis),
            }
        }
        bench.change(0, PathChange::Up);
        bench.run_until(bench.millis() + 3000);
        let numbers: Vec<u16> = bench.given.iter().map(|packet| u16::from_be_bytes([packet[2], packet[3]]).wrapping_sub(60_000)).collect();
        prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "in order and once: {:?}", numbers);
        prop_assert!(bench.given.iter().zip(&numbers).all(|(packet, number)| fed.get(usize::from(*number)) == Some(packet)));
        let first = u64::from(numbers.first().copied().unwrap_or(0));
        let last = u64::from(numbers.last().copied().unwrap_or(0));
        let whole = if numbers.is_empty() { 0 } else { last - first + 1 };
        // Packets that were queued for too long were never sent. They have no number in the session, so they do not
        // count as missing.
        let expired = bench.events.iter().map(|(_, _, event)| if let Event::PayloadExpired { packets } = event { *packets } else { 0 });
        let told = numbers.len() as u64 + bench.missing;
        prop_assert!(told <= whole && told + expired.sum::<u64>() >= whole, "{} of {}", told, whole);
    }
}
