use equipoise::control::Fate;

use super::*;

const MILLI: u64 = 1_000_000;
/// The first sequence number that `rtpsession` assigns, shortly before a wrap.
const THEIRS: u16 = 65_530;

fn packet(payload: u32) -> PacketInfo {
    PacketInfo { payload, whole: payload + 20, is_numbered: true, ..PacketInfo::default() }
}

/// Returns the state after twenty packets of different sizes were sent, one every 10 ms.
fn departures() -> Departures {
    let mut departures = Departures::new();
    for number in 0..20 {
        departures.on_sent(time(number * 10 * MILLI), packet(size(number)), Size::from_bytes(1000));
    }
    departures
}

fn size(number: u64) -> u32 {
    900 + (number * 37 % 100) as u32
}

/// Returns the status of packet `number`, which arrived 50 ms after `rtpsession` sent it.
fn status(number: u64) -> Status {
    let left_ns = number * 10 * MILLI + 20_000;
    let sequence = THEIRS.wrapping_add(number as u16);
    Status { sequence, size: size(number), left_ns, arrived_ns: Some(left_ns + 50 * MILLI) }
}

fn numbers(news: &News) -> Vec<u64> {
    news.packets.iter().map(|packet| packet.number).collect()
}

/// If this test fails, the sequence numbers that `rtpsession` assigns are not matched with the element's packet
/// numbers, and controllers get feedback about packets that were never sent.
#[test]
fn packets_are_found_by_time_and_size_whatever_the_other_count_is() {
    let mut departures = departures();
    let now = time(300 * MILLI);
    let lost = Status { arrived_ns: None, ..status(4) };
    let news = departures.on_statuses(now, &[status(2), status(3), lost, status(5)]);
    assert_eq!(numbers(&news), [2, 3, 4, 5]);
    assert_eq!(news.packets[2].fate, Fate::Lost);
    assert_eq!(news.packets[3].departed, time(50 * MILLI));
    assert_eq!(news.round_trip, Some(Span::from_millis(250)));
    // Packets that were sent before the reported packets no longer count as in flight.
    assert_eq!(departures.in_flight(), Size::from_bytes(14_000));
    // Some packets are reported again, in another order, with gaps. No packet is counted twice.
    let news = departures.on_statuses(now, &[status(9), status(5), status(7), status(7)]);
    assert_eq!(numbers(&news), [7, 9]);
}

/// If the test fails, feedback is ignored when a `queue` after the element delays packets and then releases all of them
/// at once.
#[test]
fn a_queue_behind_the_element_does_no_harm() {
    let mut departures = departures();
    let late: Vec<_> = (5..15).map(|number| Status { left_ns: 145 * MILLI, ..status(number) }).collect();
    let news = departures.on_statuses(time(300 * MILLI), &late);
    assert_eq!(numbers(&news), (5..15).collect::<Vec<_>>());
}

#[test]
fn a_count_that_begins_anew_is_found_again() {
    let mut departures = departures();
    departures.on_statuses(time(300 * MILLI), &[status(2), status(3)]);
    let anew = |number: u64| Status { sequence: 7 + number as u16, ..status(number) };
    let news = departures.on_statuses(time(310 * MILLI), &[anew(6), anew(7)]);
    assert_eq!(numbers(&news), [6, 7]);
}

/// If this test fails, an element that sends a feedback event upstream can forge arrivals of packets.
#[test]
fn what_fits_no_packet_that_left_is_refused() {
    let foreign = [
        Status { size: 1, ..status(3) },
        Status { left_ns: u64::MAX, ..status(3) },
        Status { left_ns: 0, ..status(3) },
        Status { left_ns: 5000 * MILLI, ..status(3) },
    ];
    for (number, foreign) in (1..).zip(foreign) {
        let mut departures = departures();
        let news = departures.on_statuses(time(300 * MILLI), &[status(2), foreign]);
        assert_eq!(numbers(&news), [0; 0], "{foreign:?}, the {number}th");
        assert_eq!(departures.counts().refused, 1);
        assert_eq!(departures.in_flight(), Size::from_bytes(20_000));
    }
    let news = Departures::new().on_statuses(time(0), &[status(0)]);
    assert_eq!(numbers(&news), [0; 0], "nothing has left");
}

#[test]
fn the_receivers_clock_wraps_and_goes_back_without_a_leap() {
    let mut clock = ReceiverTime::default();
    let wrap = ReceiverTime::WRAP_NS;
    let first = clock.take(wrap - 5 * MILLI);
    assert_eq!(clock.take(3 * MILLI) - first, Span::from_millis(8));
    assert_eq!(clock.take(wrap - MILLI) - first, Span::from_millis(4));
    // GStreamer may report a time above `wrap`, which has not wrapped around.
    assert_eq!(clock.take(wrap + 9 * MILLI) - first, Span::from_millis(14));
    // Any time can follow any other time.
    for ns in [u64::MAX, 0, wrap / 2, wrap / 2 + 1, u64::MAX / 2] {
        clock.take(ns);
    }
}

/// If this test fails, packets are no longer matched after a 16-bit number has wrapped. This number is the sequence
/// number of `rtpsession`, or the low 16 bits of the element's packet number.
#[test]
fn old_packets_are_forgotten_and_new_ones_are_found_after_wraps() {
    let mut departures = Departures::new();
    for number in 0..70_000 {
        departures.on_sent(time(number * 10 * MILLI), packet(size(number)), Size::from_bytes(1000));
        if number % 50 == 49 {
            let told: Vec<_> = (number - 49..=number).map(status).collect();
            let news = departures.on_statuses(time(number * 10 * MILLI + 80 * MILLI), &told);
            assert_eq!(news.packets.len(), 50, "{number}");
        }
    }
    assert_eq!(departures.packets.len(), usize::from(REMEMBERED));
    assert_eq!(departures.in_flight(), Size::ZERO);
}
