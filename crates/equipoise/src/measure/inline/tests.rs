use proptest::prelude::*;

use super::*;
use crate::units::{Instant, SenderClock, Size, Span};

const SEGMENT: Size = Size::from_bytes(1500);

/// Returns a measurement after the first ten segments were acknowledged, one per millisecond, from 20 ms on. Each
/// acknowledgement released two segments.
fn begun() -> InlineMeasurement {
    let mut measurement = InlineMeasurement::new(InlineConfig::new(SEGMENT));
    for number in 0..10 {
        assert_eq!(measurement.next_departure(at(0), 10 - number), at(0), "the first window leaves at once");
        measurement.on_sent(at(0), number, false);
    }
    for number in 0..10 {
        measurement.on_ack(at(20 + number), number + 1);
        (0..2).for_each(|more| measurement.on_sent(at(20 + number), 10 + 2 * number + more, false));
    }
    measurement
}

fn at(millis: u64) -> Instant<SenderClock> {
    Instant::from_nanos(millis * 1_000_000)
}

#[test]
fn segments_are_held_for_three_quarters_of_a_round_trip_at_most() {
    let mut measurement = begun();
    let until = measurement.next_departure(at(30), 5);
    assert!(until > at(40) && until < at(48), "round trips were 20 to 22 ms: {until:?}");
    assert_eq!(measurement.next_departure(until, 5), until, "it was given up");
}

#[test]
fn a_stream_leaves_with_a_burst_at_its_head_and_spaced_behind_it() {
    let mut measurement = begun();
    let mut now = at(30);
    let departures: std::vec::Vec<_> = (0..20)
        .map(|index| {
            now = measurement.next_departure(now, 20 - index);
            measurement.on_sent(now, 30 + index, false);
            now
        })
        .collect();
    let at_once = departures.iter().filter(|departure| **departure == at(30)).count();
    assert_eq!(at_once, 4, "{departures:?}");
    // The link delivers one segment per millisecond, and the mean rate of a stream must not exceed the link's rate. So
    // the sixteenth segment leaves at least 15 ms after the first one, although the first four leave at once.
    let stream = departures.get(15).copied().unwrap() - at(30);
    assert!(stream >= Span::from_millis(15), "{stream}");
    assert_eq!(departures.get(16), departures.get(19), "what is behind the stream leaves at once");
}

#[test]
fn a_retransmission_a_loss_and_a_timeout_end_the_hold() {
    for event in 0..3 {
        let mut measurement = begun();
        assert!(measurement.next_departure(at(30), 5) > at(30));
        match event {
            0 => measurement.on_sent(at(30), 12, true),
            1 => measurement.on_loss(),
            _ => measurement.on_timeout(),
        }
        assert_eq!(measurement.next_departure(at(30), 5), at(30), "event {event}");
    }
}

#[test]
fn a_timeout_discards_all_results() {
    let mut measurement = begun();
    assert!(measurement.capacity_bps().is_some());
    measurement.on_timeout();
    assert!(measurement.capacity_bps().is_none());
    assert_eq!(measurement.take_estimate(), None);
}

#[derive(Clone, Debug)]
enum Call {
    Depart(u64),
    Send(u64, bool),
    Ack(u64),
    Loss,
    Timeout,
}

fn call() -> impl Strategy<Value = (u64, Call)> {
    let time = prop_oneof![0..1_000_000_u64, 0..100_000_000_u64, any::<u64>()];
    let number = prop_oneof![0..3_u64, 0..100_u64, any::<u64>()];
    let call = prop_oneof![
        6 => number.clone().prop_map(Call::Depart),
        6 => (number.clone(), prop::bool::weighted(0.05)).prop_map(|(number, again)| Call::Send(number, again)),
        6 => number.prop_map(Call::Ack),
        1 => Just(Call::Loss),
        1 => Just(Call::Timeout),
    ];
    (time, call)
}

proptest! {
    /// If this test fails, an invalid acknowledgement or a skipped call makes a sender stop or panic.
    #[test]
    fn any_calls_in_any_order_are_safe_and_hold_nothing_for_ever(
        calls in prop::collection::vec(call(), 0..400),
        segment in any::<u64>(),
        most_held in any::<f64>(),
    ) {
        let mut measurement = InlineMeasurement::new(InlineConfig { segment: Size::from_bytes(segment), most_held });
        let mut now = Instant::ZERO;
        for (time, call) in calls {
            now = now + Span::from_nanos(time as i64);
            match call {
                Call::Depart(room) => prop_assert!(measurement.next_departure(now, room) >= now),
                // Usually the next number is sent, sometimes the number after it.
                Call::Send(skip @ 0..3, again) => {
                    measurement.on_sent(now, measurement.next_number.saturating_add(skip / 2), again);
                }
                Call::Send(number, again) => measurement.on_sent(now, number, again),
                Call::Ack(more @ 0..100) => measurement.on_ack(now, measurement.acknowledged.saturating_add(more)),
                Call::Ack(up_to) => measurement.on_ack(now, up_to),
                Call::Loss => measurement.on_loss(),
                Call::Timeout => measurement.on_timeout(),
            }
            if let Some(estimate) = measurement.take_estimate() {
                for measured in [estimate.capacity, estimate.available] {
                    let (low, high) = measured.interval.unwrap_or((measured.rate, measured.rate));
                    prop_assert!(low <= measured.rate && measured.rate <= high);
                }
            }
        }
        // A segment may leave after at most two waits, unless the clock has reached its maximum.
        let asked = measurement.next_departure(now, 1);
        let again = measurement.next_departure(asked, 1);
        prop_assert!(measurement.next_departure(again, 1) == again || again == Instant::MAX);
    }
}
